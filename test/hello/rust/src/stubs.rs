// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! An extension with one handler, on the stubs alone.
use hookgate::hooks::v1alpha1::*;
use tonic::{Request, Response, Status, transport::Server};

struct Hello;

#[tonic::async_trait]
impl discovery_service_server::DiscoveryService for Hello {
    async fn discovery(&self, _: Request<DiscoveryRequest>) -> Result<Response<DiscoveryResponse>, Status> {
        let hook = GroupVersionHook {
            api_version: "hooks.runtime.cluster.x-k8s.io/v1alpha1".into(),
            hook: "BeforeClusterUpgrade".into(),
            ..Default::default()
        };
        let handler = ExtensionHandler { name: "hello".into(), request_hook: Some(hook), ..Default::default() };
        Ok(Response::new(DiscoveryResponse { status: 1, handlers: vec![handler], ..Default::default() }))
    }
}

macro_rules! unimplemented {
    ($($name:ident: $request:ident -> $response:ident,)*) => {
        #[tonic::async_trait]
        impl lifecycle_hooks_service_server::LifecycleHooksService for Hello {
            async fn before_cluster_upgrade(
                &self, _: Request<BeforeClusterUpgradeRequest>,
            ) -> Result<Response<BeforeClusterUpgradeResponse>, Status> {
                Ok(Response::new(BeforeClusterUpgradeResponse { status: 1, ..Default::default() }))
            }
            $(async fn $name(&self, _: Request<$request>) -> Result<Response<$response>, Status> {
                Err(Status::unimplemented(""))
            })*
        }
    };
}

unimplemented! {
    before_cluster_create: BeforeClusterCreateRequest -> BeforeClusterCreateResponse,
    after_control_plane_initialized: AfterControlPlaneInitializedRequest -> AfterControlPlaneInitializedResponse,
    before_control_plane_upgrade: BeforeControlPlaneUpgradeRequest -> BeforeControlPlaneUpgradeResponse,
    after_control_plane_upgrade: AfterControlPlaneUpgradeRequest -> AfterControlPlaneUpgradeResponse,
    before_workers_upgrade: BeforeWorkersUpgradeRequest -> BeforeWorkersUpgradeResponse,
    after_workers_upgrade: AfterWorkersUpgradeRequest -> AfterWorkersUpgradeResponse,
    after_cluster_upgrade: AfterClusterUpgradeRequest -> AfterClusterUpgradeResponse,
    before_cluster_delete: BeforeClusterDeleteRequest -> BeforeClusterDeleteResponse,
}

#[tokio::main]
async fn main() -> Result<(), tonic::transport::Error> {
    let address = std::env::args().nth(1).unwrap_or_default().parse().expect("HOST:PORT");
    let (_, health) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(hookgate::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("descriptors");
    Server::builder()
        .add_service(discovery_service_server::DiscoveryServiceServer::new(Hello))
        .add_service(lifecycle_hooks_service_server::LifecycleHooksServiceServer::new(Hello))
        .add_service(health)
        .add_service(reflection)
        .serve(address)
        .await
}
