// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! An extension with one handler, on the package.
use hookgate::{Extension, Result, ServeError, done, hooks::v1alpha1::BeforeClusterUpgradeRequest};

async fn hello(_: BeforeClusterUpgradeRequest) -> Result {
    done()
}

#[tokio::main]
async fn main() -> std::result::Result<(), ServeError> {
    let address = std::env::args().nth(1).unwrap_or_default();
    Extension::new().handle("hello", hello).address(address).serve().await
}
