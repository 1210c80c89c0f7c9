// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

use hookgate::{Error, Extension, Patches, Result, covers, done, hooks::v1alpha1::*, load, wait};
use semver::Version;
use serde_json::json;

/// The one annotation that lets an upgrade to another minor version go on.
const APPROVED_MINOR: &str = "example.hookgate.dev/approved-minor";
/// The variable that the patch is made from.
const IMAGE_REPOSITORY: &str = "imageRepository";

pub fn extension() -> Extension {
    Extension::new()
        .handle("approve-upgrade", approve_upgrade)
        .handle("image-repository", image_repository)
        .handle("image-repository-variables", image_repository_variables)
        .handle("patch-in-place", patch_in_place)
}

/// Blocks an upgrade to another minor version until it is approved.
async fn approve_upgrade(request: BeforeClusterUpgradeRequest) -> Result {
    let cluster = load("cluster", &request.cluster)?;
    let from = known("fromKubernetesVersion", &request.from_kubernetes_version)?;
    let to = known("toKubernetesVersion", &request.to_kubernetes_version)?;
    if from == to || cluster["metadata"]["annotations"][APPROVED_MINOR] == to {
        return done();
    }
    wait(30, format!("upgrade to {to} waits for the annotation {APPROVED_MINOR}: {to}"))
}

/// Sets the image repository of every KubeadmControlPlaneTemplate from the variable.
async fn image_repository(request: GeneratePatchesRequest) -> Result<GeneratePatchesResponse> {
    let mut patches = Patches::new(&request);
    for item in patches.items("KubeadmControlPlaneTemplate")? {
        let repository = item.variable_or(IMAGE_REPOSITORY, String::new())?;
        if !repository.is_empty() {
            item.set("/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository", repository)?;
        }
    }
    patches.answer()
}

async fn image_repository_variables(_: DiscoverVariablesRequest) -> Result<DiscoverVariablesResponse> {
    let schema = json!({
        "type": "string",
        "description": "Registry and path that the images of Kubernetes are pulled from.",
        "minLength": 1,
        "example": "registry.example.com/kubernetes",
    });
    Ok(DiscoverVariablesResponse {
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
    })
}

/// Offers to change a Machine from one patch version to another in place.
async fn patch_in_place(request: CanUpdateMachineRequest) -> Result<CanUpdateMachineResponse> {
    let current = load("current.machine", &request.current.unwrap_or_default().machine)?;
    let desired = load("desired.machine", &request.desired.unwrap_or_default().machine)?;
    let mut answer = CanUpdateMachineResponse::default();
    let from = minor(current["spec"]["version"].as_str().unwrap_or_default());
    if from.is_some() && from == minor(desired["spec"]["version"].as_str().unwrap_or_default()) {
        answer.machine_patch = covers(&current, &desired, &["/spec/version"])?;
    }
    Ok(answer)
}

/// Returns the minor version, v1.36 of v1.36.1.
fn minor(version: &str) -> Option<String> {
    let version = Version::parse(version.strip_prefix('v')?).ok()?;
    Some(format!("v{}.{}", version.major, version.minor))
}

fn known(member: &str, version: &str) -> Result<String> {
    minor(version).ok_or_else(|| Error::failure(format!("{member} \"{version}\" is not a version like v1.36.1")))
}
