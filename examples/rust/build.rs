// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Generates the stubs from the contract, without a protoc on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const PROTO: &str = "../../proto";
    let services = ["discovery", "lifecycle_hooks", "topology_mutation", "in_place_update"];
    let files = services.map(|name| format!("hookgate/hooks/v1alpha1/{name}.proto"));
    println!("cargo::rerun-if-changed={PROTO}");
    tonic_prost_build::configure()
        .build_client(false)
        .generate_default_stubs(true) // a method that is not implemented answers UNIMPLEMENTED
        .compile_fds(protox::compile(files, [PROTO])?)?;
    Ok(())
}
