// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

use hookgate::{Extension, Result, ServeError, done, hooks::v1alpha1::*};

fn extension() -> Extension {
    Extension::new().handle("hello", hello)
}

async fn hello(_: BeforeClusterCreateRequest) -> Result {
    done()
}

#[tokio::main]
async fn main() -> std::result::Result<(), ServeError> {
    extension().address(std::env::args().nth(1).unwrap_or_default()).serve().await
}

#[tokio::test]
async fn conformance() {
    hookgate::check(extension(), &["--skip", "answers.quick"]).await.unwrap();
}
