// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! A Runtime Extension over gRPC. This file is the server; hooks.rs implements the hooks.

mod hooks;

/// The stubs that build.rs generates from the contract.
mod contract {
    tonic::include_proto!("hookgate.hooks.v1alpha1");
}

use std::{error::Error, os::unix::fs::FileTypeExt};

use contract::{
    discovery_service_server::DiscoveryServiceServer,
    in_place_update_hooks_service_server::InPlaceUpdateHooksServiceServer,
    lifecycle_hooks_service_server::LifecycleHooksServiceServer,
    topology_mutation_hooks_service_server::TopologyMutationHooksServiceServer,
};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Server, server::TcpIncoming};

/// Cluster API's limit, in both directions. gRPC's is 4 MiB, which the templates of one cluster can exceed.
const MESSAGE_LIMIT: usize = 20 << 20;

/// Gives a service its message limits.
macro_rules! limited {
    ($server:ident) => {
        $server::new(hooks::Extension).max_decoding_message_size(MESSAGE_LIMIT).max_encoding_message_size(MESSAGE_LIMIT)
    };
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9090".into());

    let (mut health, health_service) = tonic_health::server::health_reporter();
    let router = Server::builder()
        .add_service(health_service)
        .add_service(limited!(DiscoveryServiceServer))
        .add_service(limited!(LifecycleHooksServiceServer))
        .add_service(limited!(TopologyMutationHooksServiceServer))
        .add_service(limited!(InPlaceUpdateHooksServiceServer));

    let mut terminated = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        // A client that watches the health has a call that would never end.
        health.clear_service_status("").await;
    };

    if let Some(path) = address.strip_prefix("unix://") {
        // A killed server leaves its socket.
        if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        println!("listening on {address}");
        router.serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop).await?;
    } else {
        let listener = TcpListener::bind(&address).await?;
        println!("listening on {address}");
        router.serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), stop).await?;
    }
    Ok(())
}
