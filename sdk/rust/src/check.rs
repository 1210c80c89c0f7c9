// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! The conformance test.

use std::{
    env,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::sync::oneshot;

use crate::{extension::Extension, serve::ServeError};

/// Serves an extension on a Unix socket and checks it with `hookgate check`: the program that HOOKGATE_BIN names, or
/// the one in PATH. The arguments are further ones of the command. The error has what the command printed.
pub async fn check(extension: Extension, arguments: &[&str]) -> Result<(), ServeError> {
    let program = env::var("HOOKGATE_BIN").unwrap_or_else(|_| "hookgate".into());
    static CHECKS: AtomicU32 = AtomicU32::new(0);
    let number = CHECKS.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("hookgate-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| ServeError::new(format!("make {}: {error}", folder.display())))?;
    let url = format!("unix://{}/x.sock", folder.display());
    let (stop, stopped) = oneshot::channel::<()>();
    let (listening, listened) = oneshot::channel::<()>();
    let ready = |_: &str| {
        let _ = listening.send(());
    };
    let serving = extension.address(&url).serve_until(ready, async move {
        let _ = stopped.await;
    });

    let arguments: Vec<String> = arguments.iter().map(|&argument| argument.into()).collect();
    let checking = tokio::task::spawn_blocking(move || {
        if listened.blocking_recv().is_err() {
            return Ok(()); // the server's error is the one
        }
        let output = Command::new(&program).arg("check").args(arguments).arg(&url).output();
        let _ = stop.send(());
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let printed = [output.stdout, output.stderr].concat();
                Err(ServeError::new(format!(
                    "hookgate check: {}\n{}",
                    output.status,
                    String::from_utf8_lossy(&printed)
                )))
            }
            Err(error) => Err(ServeError::new(format!(
                "run {program}: {error}: install hookgate from https://github.com/hookgate/hookgate/releases, and \
                 put it into PATH or name it in HOOKGATE_BIN"
            ))),
        }
    });
    let served = serving.await;
    let checked = checking.await.unwrap_or_else(|error| Err(ServeError::new(error.to_string())));
    let _ = std::fs::remove_dir_all(folder);
    served.and(checked)
}
