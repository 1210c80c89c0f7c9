// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Generates the stubs from the contract, without a protoc on the machine.

use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    // The package has a copy of the contract; in the repository, it is shared by all languages.
    let proto = ["proto", "../../proto"].into_iter().find(|p| Path::new(p).exists()).ok_or("no folder proto")?;
    println!("cargo::rerun-if-changed={proto}");
    let mut files = Vec::new();
    for package in ["hookgate/hooks/v1alpha1", "hookgate/infrastructure/v1alpha1", "hookgate/machines/v1alpha1"] {
        for entry in fs::read_dir(Path::new(proto).join(package))? {
            files.push(format!("{package}/{}", entry?.file_name().to_string_lossy()));
        }
    }
    files.sort();

    let mut compiler = protox::Compiler::new([proto])?;
    compiler.include_imports(true).open_files(files)?;
    let descriptors = Path::new(&env::var("OUT_DIR")?).join("descriptors.binpb");
    fs::write(descriptors, compiler.encode_file_descriptor_set())?;

    let mut config = tonic_prost_build::Config::new();
    config.enable_type_names(); // a handler's hook is found by the name of its request
    config.bytes(["."]); // objects of several MiB are not copied out of the request
    tonic_prost_build::configure()
        .build_client(false)
        .generate_default_stubs(true) // a method that is not implemented answers UNIMPLEMENTED
        .compile_fds_with_config(compiler.file_descriptor_set(), config)?;
    Ok(())
}
