// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

use semver::Version;
use serde_json::{Value, json};
use tonic::{Request, Response, Status};

use crate::contract::*;

/// The one annotation that lets an upgrade to another minor version go on.
const APPROVED_MINOR: &str = "example.hookgate.dev/approved-minor";
/// The variable that the patch is made from.
const IMAGE_REPOSITORY: &str = "imageRepository";

const SUCCESS: i32 = ResponseStatus::Success as i32;
const FAILURE: i32 = ResponseStatus::Failure as i32;

pub struct Extension;

#[tonic::async_trait]
impl discovery_service_server::DiscoveryService for Extension {
    async fn discovery(&self, _: Request<DiscoveryRequest>) -> Result<Response<DiscoveryResponse>, Status> {
        let handler = |name: &str, hook: &str| ExtensionHandler {
            name: name.into(),
            request_hook: Some(GroupVersionHook {
                api_version: "hooks.runtime.cluster.x-k8s.io/v1alpha1".into(),
                hook: hook.into(),
                ..Default::default()
            }),
            timeout_seconds: Some(10),
            failure_policy: FailurePolicy::Fail as i32,
            // The version of objects that is read here: the gateway converts others.
            cluster_api_version: "v1beta2".into(),
            ..Default::default()
        };
        Ok(Response::new(DiscoveryResponse {
            status: SUCCESS,
            handlers: vec![
                handler("approve-upgrade", "BeforeClusterUpgrade"),
                handler("image-repository", "GeneratePatches"),
                handler("image-repository-variables", "DiscoverVariables"),
                handler("patch-in-place", "CanUpdateMachine"),
            ],
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl lifecycle_hooks_service_server::LifecycleHooksService for Extension {
    /// Blocks an upgrade to another minor version until it is approved.
    async fn before_cluster_upgrade(
        &self,
        request: Request<BeforeClusterUpgradeRequest>,
    ) -> Result<Response<BeforeClusterUpgradeResponse>, Status> {
        let request = request.into_inner();
        let cluster = object("cluster", &request.cluster)?;
        let mut answer = BeforeClusterUpgradeResponse { status: SUCCESS, ..Default::default() };

        match (minor(&request.from_kubernetes_version), minor(&request.to_kubernetes_version)) {
            (None, _) => {
                answer.status = FAILURE;
                answer.message = not_a_version("fromKubernetesVersion", &request.from_kubernetes_version);
            }
            (_, None) => {
                answer.status = FAILURE;
                answer.message = not_a_version("toKubernetesVersion", &request.to_kubernetes_version);
            }
            (Some(from), Some(to)) => {
                let approved = &cluster["metadata"]["annotations"][APPROVED_MINOR];
                if from != to && approved != &to {
                    // Blocking is not a failure: the caller asks again after this many seconds.
                    answer.retry_after_seconds = 30;
                    answer.message = format!("upgrade to {to} waits for the annotation {APPROVED_MINOR}: {to}");
                }
            }
        }
        Ok(Response::new(answer))
    }
}

#[tonic::async_trait]
impl topology_mutation_hooks_service_server::TopologyMutationHooksService for Extension {
    /// Sets the image repository of every KubeadmControlPlaneTemplate from the variable.
    async fn generate_patches(
        &self,
        request: Request<GeneratePatchesRequest>,
    ) -> Result<Response<GeneratePatchesResponse>, Status> {
        let request = request.into_inner();
        let mut answer = GeneratePatchesResponse { status: SUCCESS, ..Default::default() };
        for (i, item) in request.items.iter().enumerate() {
            let template = object(&format!("items[{i}].object"), &item.object)?;
            if template["kind"] != "KubeadmControlPlaneTemplate" {
                continue;
            }
            let mut variables = item.variables.iter().chain(&request.variables); // the item's own win
            let Some(variable) = variables.find(|v| v.name == IMAGE_REPOSITORY) else {
                continue;
            };
            let raw = variable.value.as_ref().map_or(&[][..], |v| &v.raw);
            match json(&format!("variables[{IMAGE_REPOSITORY}].value"), raw)? {
                Value::String(repository) if repository.is_empty() => {}
                Value::String(repository) => answer.items.push(GeneratePatchesResponseItem {
                    uid: item.uid.clone(),
                    patch_type: PatchType::JsonPatch as i32,
                    patch: Some(json!([set_image_repository(&template, repository)]).to_string().into()),
                    ..Default::default()
                }),
                _ => {
                    return Ok(Response::new(GeneratePatchesResponse {
                        status: FAILURE,
                        message: format!("variable \"{IMAGE_REPOSITORY}\" is not a string"),
                        ..Default::default()
                    }));
                }
            }
        }
        Ok(Response::new(answer))
    }

    async fn discover_variables(
        &self,
        _: Request<DiscoverVariablesRequest>,
    ) -> Result<Response<DiscoverVariablesResponse>, Status> {
        let schema = json!({
            "type": "string",
            "description": "Registry and path that the images of Kubernetes are pulled from.",
            "minLength": 1,
            "example": "registry.example.com/kubernetes",
        });
        Ok(Response::new(DiscoverVariablesResponse {
            status: SUCCESS,
            variables: vec![ClusterClassVariable {
                name: IMAGE_REPOSITORY.into(),
                required: Some(false),
                schema: Some(VariableSchema {
                    open_api_v3_schema: Some(Json { raw: schema.to_string().into() }),
                    ..Default::default()
                }),
                ..Default::default()
            }],
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl in_place_update_hooks_service_server::InPlaceUpdateHooksService for Extension {
    /// Offers to change a Machine from one patch version to another in place.
    async fn can_update_machine(
        &self,
        request: Request<CanUpdateMachineRequest>,
    ) -> Result<Response<CanUpdateMachineResponse>, Status> {
        let request = request.into_inner();
        let current = object("current.machine", &request.current.unwrap_or_default().machine)?;
        let desired = object("desired.machine", &request.desired.unwrap_or_default().machine)?;
        let mut answer = CanUpdateMachineResponse { status: SUCCESS, ..Default::default() };

        let from = current["spec"]["version"].as_str().unwrap_or_default();
        let to = desired["spec"]["version"].as_str().unwrap_or_default();
        if from != to && minor(from).is_some() && minor(from) == minor(to) {
            answer.machine_patch = Some(Patch {
                patch_type: PatchType::JsonMergePatch as i32,
                patch: json!({"spec": {"version": to}}).to_string().into(),
                ..Default::default()
            });
        }
        Ok(Response::new(answer))
    }
}

/// Returns the operation that sets the image repository of a KubeadmControlPlaneTemplate. A patch cannot add below what
/// is not there, so it adds the first parent that is missing, with all that is below it.
fn set_image_repository(template: &Value, repository: String) -> Value {
    let segments = ["spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration", IMAGE_REPOSITORY];
    let (mut parent, mut depth) = (template, 0);
    while depth < segments.len() - 1 && parent[segments[depth]].is_object() {
        parent = &parent[segments[depth]];
        depth += 1;
    }
    let below = segments[depth + 1..].iter().rev();
    let value = below.fold(Value::String(repository), |value, segment| json!({*segment: value}));
    json!({"op": "add", "path": format!("/{}", segments[..=depth].join("/")), "value": value})
}

/// Returns the minor version, v1.36 of v1.36.1.
fn minor(version: &str) -> Option<String> {
    let version = Version::parse(version.strip_prefix('v')?).ok()?;
    Some(format!("v{}.{}", version.major, version.minor))
}

fn not_a_version(member: &str, value: &str) -> String {
    format!("{member} \"{value}\" is not a version like v1.36.1")
}

/// Decodes a Kubernetes object. Values are looked up as needed: the extension does not validate its schema.
fn object(member: &str, object: &Option<RawExtension>) -> Result<Value, Status> {
    json(member, object.as_ref().map_or(&[], |o| &o.raw))
}

fn json(member: &str, raw: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(raw).map_err(|err| Status::invalid_argument(format!("{member}: {err}")))
}
