// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod answer;
mod check;
mod contract;
mod diff;
mod extension;
mod log;
mod objects;
mod patches;
mod serve;
#[cfg(feature = "testing")]
mod testing;
mod tls;
#[cfg(feature = "opentelemetry")]
mod trace;
mod values;

pub use answer::{Answer, Answers, Error, Result, done, fail, wait};
pub use check::check;
pub use contract::FILE_DESCRIPTOR_SET;
pub use extension::{Extension, Handler};
pub use objects::{Raw, covers, load};
pub use patches::{Item, Patches, Selection};
pub use serve::ServeError;
pub use values::{Typed, setting, setting_or};

/// The hooks of Cluster API, generated from the contract.
pub mod hooks {
    /// The stubs of the package `hookgate.hooks.v1alpha1`.
    #[allow(missing_docs, clippy::all)]
    pub mod v1alpha1 {
        tonic::include_proto!("hookgate.hooks.v1alpha1");
    }
}

/// The hooks of infrastructure, generated from the contract.
pub mod infrastructure {
    /// The stubs of the package `hookgate.infrastructure.v1alpha1`.
    #[allow(missing_docs, clippy::all)]
    pub mod v1alpha1 {
        tonic::include_proto!("hookgate.infrastructure.v1alpha1");
    }
}

/// The hooks that accompany single Machines, generated from the contract.
pub mod machines {
    /// The stubs of the package `hookgate.machines.v1alpha1`.
    #[allow(missing_docs, clippy::all)]
    pub mod v1alpha1 {
        tonic::include_proto!("hookgate.machines.v1alpha1");
    }
}
