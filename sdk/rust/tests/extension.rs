// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Handlers: which one answers, and what becomes of what it returns.

use std::collections::HashMap;

use hookgate::{
    Answer, Extension, Handler, Result, ServeError, done, fail, hooks::v1alpha1::*, infrastructure, load, setting,
    setting_or, wait,
};
use tonic::{Code, Status};

type Create = BeforeClusterCreateRequest;
type Created = BeforeClusterCreateResponse;

async fn call(extension: &Extension, handler: &str) -> std::result::Result<Created, Status> {
    extension.call(handler, Create::default()).await
}

#[tokio::test]
async fn answers() {
    async fn broken(_: Create) -> Result {
        Ok("x".parse::<i32>().map(|_| done())??)
    }
    let extension = Extension::new()
        .handle("done", async |_: Create| done())
        .handle("wait", async |_: Create| wait(30, "why"))
        .handle("fail", async |_: Create| fail::<Answer>("why"))
        .handle("message", async |_: Create| Ok(Created { message: "why".into(), ..Default::default() }))
        .handle("no-message", async |_: Create| wait(30, ""))
        .handle("error", broken)
        .handle("panic", async |_: Create| -> Result { panic!("secret") })
        .handle("status", async |_: Create| -> Result { Err(Status::aborted("why"))? });
    let internal = |name, kind| {
        let text =
            format!("handler \"{name}\": internal error ({kind}); search the log of the extension for the call's id");
        (ResponseStatus::Failure, text, 0)
    };
    for (name, (status, message, seconds)) in [
        ("done", (ResponseStatus::Success, String::new(), 0)),
        ("wait", (ResponseStatus::Success, "why".into(), 30)),
        ("fail", (ResponseStatus::Failure, "why".into(), 0)),
        ("message", (ResponseStatus::Success, "why".into(), 0)),
        ("no-message", internal("no-message", "invalid answer")),
        ("error", internal("error", "core::num::error::ParseIntError")),
        ("panic", internal("panic", "panic")),
    ] {
        let want = Created { status: status as i32, message, retry_after_seconds: seconds, ..Default::default() };
        assert_eq!(call(&extension, name).await.unwrap(), want, "{name}");
    }
    let status = call(&extension, "status").await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Aborted, "why"));
}

#[tokio::test]
async fn hooks_that_cannot_wait() {
    let extension = Extension::new().handle("x", async |_: DiscoverVariablesRequest| wait(1, "why"));
    let answer: DiscoverVariablesResponse = extension.call("", DiscoverVariablesRequest::default()).await.unwrap();
    assert_eq!(answer.status, ResponseStatus::Failure as i32);
    assert!(answer.message.contains("internal error (invalid answer)"), "{}", answer.message);
}

#[tokio::test]
async fn selection() {
    let one = Extension::new().handle("only", async |_: Create| done());
    let two = Extension::new().handle("a", async |_: Create| done()).handle("b", async |_: Create| fail::<Answer>("b"));
    call(&one, "").await.unwrap();
    assert_eq!(call(&two, "b").await.unwrap().message, "b");
    for (extension, handler, code, text) in [
        (&one, "other", Code::NotFound, "BeforeClusterCreate has no handler \"other\", but only"),
        (&two, "", Code::InvalidArgument, "BeforeClusterCreate has several handlers: name one of a, b"),
    ] {
        let status = call(extension, handler).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (code, text));
    }
    let other: std::result::Result<BeforeClusterDeleteResponse, _> =
        one.call("", BeforeClusterDeleteRequest::default()).await;
    assert_eq!(other.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn mistakes_of_registration() {
    async fn ok(_: Create) -> Result {
        done()
    }
    let new = Extension::new;
    for (extension, want) in [
        (new(), "the extension has no handlers"),
        (new().handle("Upper", ok), "handler \"Upper\": the name is not a DNS-1123 label"),
        (new().handle("a", ok).handle("a", ok), "handler \"a\": there is a handler of this name already"),
        (new().handle(Handler::new("a").timeout_seconds(31), ok), "handler \"a\": a timeout of 31 seconds"),
        (new().handle("a", async |_: Variable| done()), "no rpc takes a hookgate.hooks.v1alpha1.Variable"),
        (
            new().handle("a", async |_: Create| Ok(DiscoverVariablesResponse::default())),
            "it returns a hookgate.hooks.v1alpha1.DiscoverVariablesResponse, but BeforeClusterCreate",
        ),
        (new().contract(b"\xff", []).handle("a", ok), "not a FileDescriptorSet"),
        (
            new().handle("a", ok).address("192.0.2.1:9090"),
            "listen on 192.0.2.1:9090: everyone could call, without TLS: set Extension::tls, or Extension::insecure",
        ),
        (new().handle("a", ok).client_ca("ca.crt"), "there is a client_ca, but no certificate to serve with"),
    ] {
        let error: ServeError = extension.serve().await.unwrap_err();
        assert!(error.to_string().contains(want), "{error}, want {want}");
    }
}

#[tokio::test]
async fn discovery_is_made_from_the_handlers() {
    use infrastructure::v1alpha1::*;
    let extension = Extension::new().handle("b", async |_: Create| done()).handle(
        Handler::new("a").timeout_seconds(5).failure_policy(FailurePolicy::Ignore).cluster_api_version("v1beta1"),
        async |_: DeleteClusterRequest| Ok(DeleteClusterResponse::default()),
    );
    let answer: DiscoveryResponse = extension.call("", DiscoveryRequest::default()).await.unwrap();
    let handler = |name: &str, api_version: &str, hook: &str, seconds, policy: FailurePolicy, version: &str| {
        let request_hook =
            GroupVersionHook { api_version: api_version.into(), hook: hook.into(), ..Default::default() };
        ExtensionHandler {
            name: name.into(),
            request_hook: Some(request_hook),
            timeout_seconds: Some(seconds),
            failure_policy: policy as i32,
            cluster_api_version: version.into(),
            ..Default::default()
        }
    };
    let (hooks, infrastructure) = ("hooks.runtime.cluster.x-k8s.io/v1alpha1", "infrastructure.hookgate.dev/v1alpha1");
    let want = vec![
        handler("b", hooks, "BeforeClusterCreate", 10, FailurePolicy::Fail, "v1beta2"),
        handler("a", infrastructure, "DeleteCluster", 5, FailurePolicy::Ignore, "v1beta1"),
    ];
    assert_eq!(answer.handlers, want);
}

#[test]
fn settings() {
    let settings = HashMap::from([("n", "3"), ("t", "true"), ("s", "secret")].map(|(k, v)| (k.into(), v.into())));
    assert_eq!(setting::<i64>(&settings, "n").unwrap(), 3);
    assert!(setting::<bool>(&settings, "t").unwrap());
    assert_eq!(setting_or(&settings, "other", 1.5).unwrap(), 1.5);
    for (name, want) in [("s", "setting \"s\": want an integer"), ("other", "setting \"other\" is not set")] {
        assert_eq!(format!("{:?}", setting::<i64>(&settings, name).unwrap_err()), want);
    }
}

#[test]
fn objects() {
    let raw = |text: &'static str| RawExtension { raw: text.into() };
    assert_eq!(load("cluster", &raw("{\"n\": 9007199254740993}")).unwrap()["n"], 9007199254740993_i64);
    for (text, want) in
        [("", "cluster: there is none"), ("[]", "cluster: not a JSON object"), ("{\"n\": NaN}", "cluster: expected")]
    {
        let error = format!("{:?}", load("cluster", &raw(text)).unwrap_err());
        assert!(error.contains(want), "{error}, want {want}");
    }
}
