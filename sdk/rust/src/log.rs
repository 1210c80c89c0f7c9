// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Log lines: events of `tracing` if the application has a subscriber, else lines of JSON on stderr. Lines at level
//! debug need a subscriber. They never have requests, settings or credentials. The packages of all languages write the
//! same ones: docs/extensions.md has them.

use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tonic::{Code, Status};
use tracing::{debug, dispatcher::has_been_set, error, info, warn};

/// Why a call has failed.
pub(crate) struct Problem {
    kind: &'static str,
    code: Option<&'static str>,
    error: String,
}

impl Problem {
    pub(crate) fn failure(message: String) -> Problem {
        Problem { kind: "Failure", code: None, error: message }
    }

    pub(crate) fn internal(text: String) -> Problem {
        Problem { kind: "Internal", code: None, error: text }
    }

    /// Returns the problem of a call that ends with a status.
    pub(crate) fn status(kind: &'static str, status: &Status) -> Problem {
        Problem { kind, code: Some(name(status.code())), error: status.message().into() }
    }

    /// Returns the problem of a call that a handler ends with a status.
    pub(crate) fn of_handler(status: &Status) -> Problem {
        let kind = if status.code() == Code::InvalidArgument { "InvalidRequest" } else { "Status" };
        Problem::status(kind, status)
    }
}

/// A call of a hook. A call that is dropped before it has ended has lost its caller, or is out of time.
pub(crate) struct Call {
    hook: String,
    handler: Option<String>,
    id: String,
    timeout: Option<Duration>,
    start: Instant,
    expected: bool,
    ended: bool,
}

impl Call {
    pub(crate) fn new(hook: &str, id: &str, timeout: Option<Duration>) -> Call {
        let (hook, id, start) = (hook.into(), id.into(), Instant::now());
        Call { hook, handler: None, id, timeout, start, expected: false, ended: false }
    }

    pub(crate) fn handled_by(&mut self, handler: &str) {
        self.handler = Some(handler.into());
    }

    /// Gives the line of a failed call the level debug.
    pub(crate) fn expected_to_fail(&mut self) {
        self.expected = true;
    }

    /// Writes how the call has ended.
    pub(crate) fn end(mut self, problem: Option<Problem>) {
        self.write(problem);
    }

    fn write(&mut self, problem: Option<Problem>) {
        self.ended = true;
        let took = self.start.elapsed().as_nanos() as u64;
        let (hook, handler) = (&*self.hook, self.handler.as_deref());
        let call_id = Some(&*self.id).filter(|id| !id.is_empty());
        let Some(Problem { kind, code, error }) = problem else {
            debug!(hook, handler, call_id, took, "call answered");
            return;
        };
        if self.expected {
            debug!(hook, handler, call_id, kind, code, error, took, "call failed");
            return;
        }
        let level = if kind == "Internal" { "ERROR" } else { "INFO" };
        if kind == "Internal" {
            error!(hook, handler, call_id, kind, code, error, took, "call failed");
        } else {
            info!(hook, handler, call_id, kind, code, error, took, "call failed");
        }
        let mut line = json!({"level": level, "msg": "call failed", "hook": hook, "handler": handler});
        line["call_id"] = call_id.into();
        line["kind"] = kind.into();
        line["code"] = code.into();
        line["error"] = error.into();
        line["took"] = took.into();
        if let Value::Object(members) = &mut line {
            members.retain(|_, value| !value.is_null());
        }
        print(line);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ended {
            // The time of the caller is up a little earlier.
            let late = self.timeout.is_some_and(|t| self.start.elapsed() + Duration::from_millis(100) >= t);
            let (kind, code) = if late { ("Timeout", "DEADLINE_EXCEEDED") } else { ("Canceled", "CANCELLED") };
            self.write(Some(Problem { kind, code: Some(code), error: "the call has ended before its handler".into() }));
        }
    }
}

/// Returns the name of a code in gRPC's specification.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// Says where the server listens.
pub(crate) fn listening(address: &str) {
    info!(address, "listening on {address}");
    print(json!({"level": "INFO", "msg": format!("listening on {address}"), "address": address}));
}

/// Says what keeps the server from its work, which goes on.
pub(crate) fn warning(text: &str) {
    warn!("{text}");
    print(json!({"level": "WARN", "msg": text}));
}

/// Says that a certificate was replaced, or that what its files have now cannot be used.
pub(crate) fn certificate(file: &str, error: Option<&str>) {
    match error {
        None => {
            info!(file, "certificate replaced");
            print(json!({"level": "INFO", "msg": "certificate replaced", "file": file}));
        }
        Some(error) => {
            let msg = "certificate refused: what was read last stays in use";
            error!(error, "{msg}");
            print(json!({"level": "ERROR", "msg": msg, "error": error}));
        }
    }
}

fn print(mut line: Value) {
    if !has_been_set() {
        let mut now = prost_types::Timestamp::from(SystemTime::now());
        now.nanos -= now.nanos % 1_000_000;
        line["time"] = now.to_string().into();
        eprintln!("{line}");
    }
}
