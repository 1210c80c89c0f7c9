// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! A Runtime Extension over gRPC. hooks.rs has its handlers.

mod hooks;

#[tokio::main]
async fn main() -> Result<(), hookgate::ServeError> {
    let extension = hooks::extension();
    match std::env::args().nth(1) {
        Some(address) => extension.address(address).serve().await,
        None => extension.serve().await,
    }
}
