// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Extensions and their handlers, and which handler answers a call.

use std::{
    collections::{BTreeSet, HashMap},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use prost::{Message, Name, bytes::Bytes};
use prost_types::FileDescriptorSet;
use tonic::Status;

use crate::{
    answer::{Answer, Answers, Content, Error, Reason, Result},
    contract::{FILE_DESCRIPTOR_SET, Hook, descriptors, find},
    hooks::v1alpha1::{
        DiscoveryResponse, ExtensionHandler, FailurePolicy, GroupVersionHook, ResponseStatus as ContractStatus,
    },
    log,
    serve::{Options, ServeError, hook_of},
};

const DISCOVERY: &str = "/hookgate.hooks.v1alpha1.DiscoveryService/Discovery";

/// The name of a handler, and what its discovery states besides its hook. A string is a handler with all defaults.
#[derive(Debug, Clone)]
pub struct Handler {
    name: String,
    timeout_seconds: i32,
    failure_policy: FailurePolicy,
    cluster_api_version: Option<String>,
}

impl Handler {
    /// Returns a handler of this name, a DNS-1123 label, with a timeout of 10 seconds and the failure policy Fail.
    pub fn new(name: impl Into<String>) -> Self {
        Handler {
            name: name.into(),
            timeout_seconds: 10,
            failure_policy: FailurePolicy::Fail,
            cluster_api_version: None,
        }
    }

    /// Sets how long callers wait for an answer, from 0 to 30 seconds.
    pub fn timeout_seconds(mut self, seconds: i32) -> Self {
        self.timeout_seconds = seconds;
        self
    }

    /// Sets what callers do with a call that could not be completed.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = policy;
        self
    }

    /// Sets the version of Cluster API's objects that the handler reads, in place of that of the extension.
    pub fn cluster_api_version(mut self, version: impl Into<String>) -> Self {
        self.cluster_api_version = Some(version.into());
        self
    }
}

impl From<&str> for Handler {
    fn from(name: &str) -> Self {
        Handler::new(name)
    }
}

type Answering = Pin<Box<dyn Future<Output = Result> + Send>>;

/// What a call says besides its request.
#[derive(Default)]
pub(crate) struct Caller {
    pub(crate) id: String,
    pub(crate) timeout: Option<Duration>,
}

struct Registration {
    handler: Handler,
    hook: Hook,
    function: Box<dyn Fn(Bytes) -> Answering + Send + Sync>,
}

/// A Runtime Extension: handlers, and how they are served.
///
/// A mistake in what it is made of is returned by the method that starts it: [`Extension::serve`], [`Extension::call`]
/// or [`check`](crate::check).
pub struct Extension {
    pub(crate) descriptors: Vec<FileDescriptorSet>,
    groups: HashMap<String, String>,
    cluster_api_version: String,
    registrations: Vec<Registration>,
    mistake: Option<String>,
    pub(crate) encoded: Vec<Vec<u8>>,
    pub(crate) options: Options,
}

impl Default for Extension {
    fn default() -> Self {
        Extension::new()
    }
}

impl Extension {
    /// Returns an extension without handlers, whose objects have the version v1beta2.
    pub fn new() -> Self {
        let extension = Extension {
            descriptors: Vec::new(),
            groups: HashMap::new(),
            cluster_api_version: "v1beta2".into(),
            registrations: Vec::new(),
            mistake: None,
            encoded: Vec::new(),
            options: Options::default(),
        };
        extension.contract(FILE_DESCRIPTOR_SET, [])
    }

    /// Adds stubs of one's own: their encoded FileDescriptorSet, and the apiVersion of each of their packages that has
    /// hooks. They are generated with `enable_type_names`.
    pub fn contract<const N: usize>(mut self, descriptor_set: &[u8], api_versions: [(&str, &str); N]) -> Self {
        match descriptors(descriptor_set) {
            Ok(set) => self.descriptors.push(set),
            Err(error) => self.note(error),
        }
        self.encoded.push(descriptor_set.to_vec());
        self.groups.extend(api_versions.map(|(package, version)| (package.into(), version.into())));
        self
    }

    /// Sets the version of Cluster API's objects that handlers read, to which the gateway converts others. If it is
    /// empty, objects arrive as they were sent.
    pub fn cluster_api_version(mut self, version: impl Into<String>) -> Self {
        self.cluster_api_version = version.into();
        self
    }

    /// Adds a handler. Its hook is the one whose request the function takes.
    pub fn handle<Q, A, F, R>(mut self, handler: impl Into<Handler>, function: F) -> Self
    where
        Q: Message + Name + Default,
        A: Answers,
        F: Fn(Q) -> R + Send + Sync + 'static,
        R: Future<Output = Result<A>> + Send + 'static,
    {
        let handler = handler.into();
        let hook = self.registrable(&handler).and_then(|()| find(&self.descriptors, &self.groups, &Q::full_name()));
        let hook = match hook {
            Ok(hook) => hook,
            Err(mistake) => {
                self.note(format!("handler \"{}\": {mistake}", handler.name));
                return self;
            }
        };
        if let Some(name) = A::message_name().filter(|name| *name != hook.response) {
            self.note(format!(
                "handler \"{}\": it returns a {name}, but {} is answered with a {}",
                handler.name, hook.name, hook.response
            ));
        }
        let function = move |request: Bytes| -> Answering {
            match Q::decode(request) {
                Ok(request) => {
                    let answer = catch_unwind(AssertUnwindSafe(|| function(request)));
                    Box::pin(async move { Ok(answer.map_err(panicked)?.await?.into_answer()) })
                }
                Err(error) => Box::pin(async move { Err(Status::invalid_argument(error.to_string()).into()) }),
            }
        };
        self.registrations.push(Registration { handler, hook, function: Box::new(function) });
        self
    }

    fn registrable(&self, handler: &Handler) -> std::result::Result<(), String> {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let name = &handler.name;
        if name.is_empty()
            || name.len() > 63
            || !name.chars().all(valid)
            || name.starts_with('-')
            || name.ends_with('-')
        {
            return Err("the name is not a DNS-1123 label: use at most 63 of a-z, 0-9 and, inside, -".into());
        }
        if self.registrations.iter().any(|r| r.handler.name == *name) {
            return Err("there is a handler of this name already".into());
        }
        if !(0..=30).contains(&handler.timeout_seconds) {
            return Err(format!("a timeout of {} seconds is not from 0 to 30", handler.timeout_seconds));
        }
        Ok(())
    }

    /// Keeps the first mistake.
    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    pub(crate) fn checked(&self) -> std::result::Result<(), ServeError> {
        match &self.mistake {
            Some(mistake) => Err(ServeError::new(mistake)),
            None if self.registrations.is_empty() => {
                Err(ServeError::new("the extension has no handlers: add one with Extension::handle"))
            }
            None => Ok(()),
        }
    }

    /// Calls a handler in this process, as a server would. The error is the status that a caller would receive.
    pub async fn call<Q: Message + Name, A: Message + Name + Default>(
        &self,
        handler: &str,
        request: Q,
    ) -> std::result::Result<A, Status> {
        self.checked().map_err(|mistake| Status::failed_precondition(mistake.to_string()))?;
        let hook = find(&self.descriptors, &self.groups, &Q::full_name()).map_err(Status::invalid_argument)?;
        if A::full_name() != hook.response {
            let (name, want) = (A::full_name(), &hook.response);
            return Err(Status::invalid_argument(format!("{} is answered with a {want}, not a {name}", hook.name)));
        }
        let request = hook.with_handler(request.encode_to_vec(), handler);
        let response = self.answer(&hook.path, request.into(), &Caller::default()).await?;
        A::decode(&response[..]).map_err(|error| Status::internal(error.to_string()))
    }

    /// Answers a call of the method at path.
    pub(crate) async fn answer(
        &self,
        path: &str,
        request: Bytes,
        caller: &Caller,
    ) -> std::result::Result<Vec<u8>, Status> {
        if path == DISCOVERY {
            return Ok(self.discovery().encode_to_vec());
        }
        if path.starts_with("/grpc.") {
            return Err(Status::unimplemented("")); // clients try services of gRPC that are not served
        }
        let mut call = log::Call::new(hook_of(path), &caller.id, caller.timeout);
        let registration = match self.select(path, &request) {
            Ok(registration) => registration,
            Err((kind, status)) => {
                if kind == "UnknownHook" && path.contains(".DiscoveryService/") {
                    call.expected_to_fail(); // a gateway calls the discoveries of all groups
                }
                call.end(Some(log::Problem::status(kind, &status)));
                return Err(status);
            }
        };
        let (hook, name) = (&registration.hook, &registration.handler.name);
        call.handled_by(name);
        let answer = catching((registration.function)(request)).await.and_then(|answer| encode(hook, answer));
        let failure = match answer {
            Ok(response) => {
                let failed = hook.status_of(&response)? == ContractStatus::Failure as i32;
                call.end(if failed { Some(log::Problem::failure(hook.message_of(&response)?)) } else { None });
                return Ok(response);
            }
            Err(Error(Reason::Status(status))) => {
                call.end(Some(log::Problem::of_handler(&status)));
                return Err(status);
            }
            Err(Error(Reason::Failure(message))) => {
                call.end(Some(log::Problem::failure(message.clone())));
                message
            }
            Err(Error(Reason::Internal { kind, text })) => {
                call.end(Some(log::Problem::internal(format!("{kind}: {text}"))));
                format!(
                    "handler \"{name}\": internal error ({kind}); search the log of the extension for the call's id"
                )
            }
        };
        hook.response(ContractStatus::Failure, &failure, 0).ok_or_else(|| Status::internal(failure))
    }

    /// Returns the full names of the services that have handlers.
    pub(crate) fn services(&self) -> BTreeSet<&str> {
        self.registrations.iter().map(|r| r.hook.service()).collect()
    }

    /// Returns the handler that a call is for, or the kind of the error.
    fn select(&self, path: &str, request: &[u8]) -> std::result::Result<&Registration, (&'static str, Status)> {
        let of_hook = || self.registrations.iter().filter(|r| r.hook.path == path);
        let Some(first) = of_hook().next() else {
            let text = format!("the extension has no handler of {}", hook_of(path));
            return Err(("UnknownHook", Status::unimplemented(text)));
        };
        let hook = &first.hook.name;
        let name = first.hook.handler(request).map_err(|status| ("InvalidRequest", status))?;
        let known = of_hook().map(|r| r.handler.name.as_str()).collect::<Vec<_>>().join(", ");
        if !name.is_empty() {
            let other = || Status::not_found(format!("{hook} has no handler \"{name}\", but {known}"));
            return of_hook().find(|r| r.handler.name == name).ok_or_else(|| ("UnknownHandler", other()));
        }
        if of_hook().count() > 1 {
            let several = Status::invalid_argument(format!("{hook} has several handlers: name one of {known}"));
            return Err(("Ambiguous", several));
        }
        Ok(first)
    }

    fn discovery(&self) -> DiscoveryResponse {
        let handler = |r: &Registration| ExtensionHandler {
            name: r.handler.name.clone(),
            request_hook: Some(GroupVersionHook {
                api_version: r.hook.api_version.clone(),
                hook: r.hook.name.clone(),
                ..Default::default()
            }),
            timeout_seconds: Some(r.handler.timeout_seconds),
            failure_policy: r.handler.failure_policy as i32,
            cluster_api_version: r.handler.cluster_api_version.clone().unwrap_or(self.cluster_api_version.clone()),
            ..Default::default()
        };
        DiscoveryResponse {
            status: ContractStatus::Success as i32,
            handlers: self.registrations.iter().map(handler).collect(),
            ..Default::default()
        }
    }
}

/// Encodes an answer as a response of the hook.
fn encode(hook: &Hook, answer: Answer) -> Result<Vec<u8>> {
    let impossible = |text: String| Error::internal("invalid answer", text);
    match answer.0 {
        Content::Message { name, .. } if name != hook.response => {
            Err(impossible(format!("{} is answered with a {}, not a {name}", hook.name, hook.response)))
        }
        Content::Message { bytes, .. } => Ok(hook.complete(bytes)?),
        Content::Wait { .. } if !hook.can_wait() => {
            Err(impossible(format!("{} cannot wait: its response has no retry_after_seconds", hook.name)))
        }
        Content::Wait { seconds, message } if seconds < 1 || message.is_empty() => {
            Err(impossible("wait needs at least one second, and a message".into()))
        }
        Content::Wait { seconds, message } => response(hook, &message, seconds),
        Content::Done => response(hook, "", 0),
    }
}

fn response(hook: &Hook, message: &str, seconds: i32) -> Result<Vec<u8>> {
    let response = hook.response(ContractStatus::Success, message, seconds);
    response
        .ok_or_else(|| Error::internal("invalid answer", format!("{} has no status: return its response", hook.name)))
}

/// Makes a panic of a handler an error.
async fn catching(answering: Answering) -> Result {
    let mut answering = pin!(answering);
    std::future::poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context)))
            .unwrap_or_else(|panic| Poll::Ready(Err(panicked(panic))))
    })
    .await
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    Error::internal("panic", text.unwrap_or("of no text"))
}
