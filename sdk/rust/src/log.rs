// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Log lines: events of `tracing` if the application has a subscriber, else lines of JSON on stderr. Lines at level
//! debug need a subscriber. They never have requests, settings or credentials.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tracing::{debug, dispatcher::has_been_set, error, info, warn};

/// A call that has ended.
pub(crate) struct Call<'a> {
    pub(crate) hook: &'a str,
    pub(crate) handler: &'a str,
    pub(crate) id: &'a str,
    pub(crate) duration: Duration,
}

macro_rules! event {
    ($call:expr, $level:ident, $outcome:expr, $message:expr) => {
        $level!(
            hook = $call.hook,
            handler = $call.handler,
            callID = $call.id,
            durationMs = $call.milliseconds(),
            outcome = $outcome,
            "{}",
            $message
        )
    };
}

impl Call<'_> {
    pub(crate) fn answered(&self) {
        event!(self, debug, "Success", "call answered");
    }

    pub(crate) fn refused(&self, outcome: &str) {
        event!(self, info, outcome, "call failed");
        self.print("info", "call failed", outcome);
    }

    pub(crate) fn broken(&self, text: &str) {
        event!(self, error, "error", text);
        self.print("error", text, "error");
    }

    fn milliseconds(&self) -> f64 {
        (self.duration.as_secs_f64() * 1e6).round() / 1e3
    }

    fn print(&self, level: &str, message: &str, outcome: &str) {
        print(json!({
            "level": level, "message": message, "hook": self.hook, "handler": self.handler, "callID": self.id,
            "durationMs": self.milliseconds(), "outcome": outcome,
        }));
    }
}

/// Says where the server listens.
pub(crate) fn listening(address: &str) {
    info!("listening on {address}");
    print(json!({"level": "info", "message": format!("listening on {address}")}));
}

/// Says what keeps the server from its work, which goes on.
pub(crate) fn warning(text: &str) {
    warn!("{text}");
    print(json!({"level": "warn", "message": text}));
}

fn print(mut line: Value) {
    if !has_been_set() {
        let mut now = prost_types::Timestamp::from(SystemTime::now());
        now.nanos -= now.nanos % 1_000_000;
        line["time"] = now.to_string().into();
        eprintln!("{line}");
    }
}
