// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Requests from files.
#![cfg(feature = "testing")]

use std::{fs, panic};

use hookgate::{Extension, Raw, Result, done, hooks, infrastructure::v1alpha1::ReconcileMachineRequest, load};
use hooks::v1alpha1::*;
use prost::{Message, Name};
use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

async fn team(request: BeforeClusterCreateRequest) -> Result {
    assert_eq!(load("cluster", &request.cluster)?["kind"], "Cluster");
    done()
}

fn extension() -> Extension {
    Extension::new().handle("team", team)
}

/// Returns a request as JSON and as protobuf say it.
fn vector<Q: Message + Name + Default>(name: &str) -> [Q; 2] {
    let file = format!("{ROOT}/proto/testdata/{name}.request");
    let encoded = fs::read(format!("{file}.binpb")).unwrap();
    [extension().request(format!("{file}.json")), Q::decode(&encoded[..]).unwrap()]
}

/// Returns JSON, which may be written in several ways.
fn value(raw: &impl Raw) -> Option<Value> {
    Some(raw.raw()).filter(|raw| !raw.is_empty()).map(|raw| serde_json::from_slice(raw).unwrap())
}

#[test]
fn golden_vectors() {
    let requests = vector::<BeforeClusterCreateRequest>("v1alpha1/beforeclustercreate").map(|mut request| {
        let cluster = value(&request.cluster.take());
        (request, cluster)
    });
    assert!(requests[0].1.is_some());
    assert_eq!(requests[0], requests[1]);

    let requests = vector::<GeneratePatchesRequest>("v1alpha1/generatepatches").map(|mut request| {
        let mut values = Vec::new();
        for item in &mut request.items {
            values.push(value(&item.object.take()));
            values.extend(item.variables.iter_mut().map(|variable| value(&variable.value.take())));
        }
        values.extend(request.variables.iter_mut().map(|variable| value(&variable.value.take())));
        let mut unknown: Vec<_> = request.unknown_members.drain().map(|(name, raw)| (name, value(&raw))).collect();
        unknown.sort_by(|a, b| a.0.cmp(&b.0));
        (request, values, unknown)
    });
    assert!(requests[0].1.len() > 3);
    assert_eq!(requests[0], requests[1]);

    let requests = vector::<ReconcileMachineRequest>("infrastructure/v1alpha1/reconcilemachine");
    let [text, binary] = requests.map(|request| (request.bootstrap, request.settings, request.version));
    assert!(text.0.is_some());
    assert_eq!(text, binary);
}

#[tokio::test]
async fn examples_in_yaml() {
    let extension = extension();
    let request: BeforeClusterCreateRequest =
        extension.request(format!("{ROOT}/examples/requests/before-cluster-create.yaml"));
    let response: BeforeClusterCreateResponse = extension.call("team", request).await.unwrap();
    assert_eq!(response.status, ResponseStatus::Success as i32);
}

#[test]
fn what_is_no_request() {
    let file = std::env::temp_dir().join(format!("hookgate-request-{}", std::process::id()));
    let message = |text: &str| {
        fs::write(&file, text).unwrap();
        let panic = panic::catch_unwind(|| extension().request::<GeneratePatchesRequest>(&file)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    for (text, want) in [
        ("[]", "GeneratePatchesRequest: want an object"),
        ("kind: DiscoveryRequest", "kind is \"DiscoveryRequest\", want GeneratePatchesRequest"),
        ("settings: 3", "settings: want an object"),
        ("settings: {a: 3}", "settings.a: want a string"),
        ("items: [3]", "items[0]: want an object"),
        ("items: {}", "items: want a list"),
        ("items: [", "GeneratePatchesRequest: "),
    ] {
        let message = message(text);
        assert!(message.contains(want), "{message}, want {want}");
    }
    fs::remove_file(&file).unwrap();
    let missing = panic::catch_unwind(|| extension().request::<GeneratePatchesRequest>(&file)).unwrap_err();
    assert!(missing.downcast_ref::<String>().unwrap().starts_with("read "));
}
