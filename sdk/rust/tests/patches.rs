// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Patches: the vectors that all languages share, variables, and what is refused.

use hookgate::{Extension, Patches, Result, Selection, covers, hooks::v1alpha1::*};
use serde_json::{Value, json};
use tonic::{Code, Status};

fn raw(value: &Value) -> Option<RawExtension> {
    Some(RawExtension { raw: value.to_string().into() })
}

fn request(object: &Value) -> GeneratePatchesRequest {
    let item = GeneratePatchesRequestItem { uid: "1".into(), object: raw(object), ..Default::default() };
    GeneratePatchesRequest { items: vec![item], ..Default::default() }
}

fn variable(name: &str, value: Value) -> Variable {
    Variable { name: name.into(), value: Some(Json { raw: value.to_string().into() }), ..Default::default() }
}

#[test]
fn vectors() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("../../testdata/patches.json")).unwrap();
    assert!(!vectors.is_empty());
    for vector in &vectors {
        let request = request(&vector["object"]);
        let mut patches = Patches::new(&request);
        for item in patches.items(None).unwrap() {
            for edit in vector["edit"].as_array().unwrap_or(&Vec::new()) {
                match edit["set"].as_str() {
                    Some(pointer) => item.set(pointer, edit["value"].clone()).unwrap(),
                    None => item.remove(edit["remove"].as_str().unwrap()).unwrap(),
                }
            }
            if let Some(edited) = vector.get("edited") {
                *item.object().unwrap() = edited.clone();
            }
        }
        let answer = patches.answer().unwrap();
        let got = answer.items.first().map_or(json!([]), |item| {
            assert_eq!(item.patch_type, PatchType::JsonPatch as i32);
            serde_json::from_slice(item.patch.as_ref().unwrap()).unwrap()
        });
        // As text, in which 1 is not 1.0, and members have an order.
        assert_eq!(got.to_string(), vector["want"].to_string(), "{}", vector["name"]);
    }
}

#[test]
fn variables() {
    let mut request = request(&json!({}));
    request.variables = vec![
        variable("shared", json!("of the request")),
        variable("both", json!(1)),
        variable("builtin", json!({"cluster": {"name": "c", "x": 1}})),
        variable("proxy", json!({"noProxy": ["a", "b"]})),
    ];
    request.items[0].variables =
        vec![variable("both", json!(2)), variable("builtin", json!({"cluster": {"x": 2}, "controlPlane": {}}))];
    let mut patches = Patches::new(&request);
    let items = patches.items(None).unwrap();
    let item = &items[0];
    assert_eq!(item.variable::<String>("shared").unwrap(), "of the request");
    assert_eq!(item.variable::<i64>("both").unwrap(), 2);
    assert_eq!(item.variable::<String>("builtin.cluster.name").unwrap(), "c");
    assert_eq!(item.variable::<i64>("builtin.cluster.x").unwrap(), 2);
    assert_eq!(item.variable::<String>("proxy.noProxy[1]").unwrap(), "b");
    assert_eq!(item.variable_or("proxy.noProxy[2]", "none".to_owned()).unwrap(), "none");
    for (path, want) in [("missing", "variable \"missing\" is not set"), ("both", "variable \"both\" is not a string")]
    {
        assert_eq!(format!("{:?}", item.variable::<String>(path).unwrap_err()), want);
    }
    assert!(format!("{:?}", item.variable::<String>("a[x]").unwrap_err()).contains("not like name.member[0]"));
}

/// Returns the answer of a handler that edits the items of a kind.
async fn edited(
    request: GeneratePatchesRequest,
    edit: fn(&mut hookgate::Item) -> Result<()>,
) -> std::result::Result<GeneratePatchesResponse, Status> {
    let handler = move |request: GeneratePatchesRequest| async move {
        let mut patches = Patches::new(&request);
        for item in patches.items("K")? {
            edit(item)?;
        }
        patches.answer()
    };
    Extension::new().handle("x", handler).call("", request).await
}

#[tokio::test]
async fn items_that_are_not_looked_into_are_not_changed() {
    let answer = edited(request(&json!({"kind": "other"})), |item| item.set("/a", 1)).await.unwrap();
    assert!(answer.items.is_empty());
}

#[tokio::test]
async fn the_root_stays_an_object() {
    let edit = |item: &mut hookgate::Item| {
        *item.object()? = json!([]);
        Ok(())
    };
    let answer = edited(request(&json!({"kind": "K"})), edit).await.unwrap();
    assert_eq!(answer.status, ResponseStatus::Failure as i32);
    assert_eq!(answer.message, "items[0].object: a patch cannot replace the whole object");
}

#[tokio::test]
async fn objects_that_are_not_json_are_the_callers_mistake() {
    let mut request = request(&json!({}));
    request.items[0].object = Some(RawExtension { raw: "{".into() });
    let status = edited(request, |_| Ok(())).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("items[0].object: "), "{}", status.message());
}

#[test]
fn covers_what_differs_at_the_places() {
    let current = json!({"spec": {"version": "1", "other": 1, "gone": {"a": 1}, "list": [1]}});
    let desired = json!({"spec": {"version": "2", "other": 2, "list": [2]}});
    let patch = covers(&current, &desired, &["/spec/version", "/spec/gone", "/spec/missing"]).unwrap().unwrap();
    assert_eq!(patch.patch_type, PatchType::JsonMergePatch as i32);
    let patch: Value = serde_json::from_slice(&patch.patch).unwrap();
    assert_eq!(patch, json!({"spec": {"version": "2", "gone": null}}));
    assert!(covers(&current, &current, &["/spec"]).unwrap().is_none());
    let error = covers(&current, &desired, &["/spec/list/0"]).unwrap_err();
    assert!(format!("{error:?}").contains("cannot change a part of a list"), "{error:?}");
}

#[test]
fn selections() {
    let item = |uid: &str, api_version: &str, kind: &str, holder: &str| GeneratePatchesRequestItem {
        uid: uid.into(),
        object: raw(&json!({"apiVersion": api_version, "kind": kind})),
        holder_reference: Some(HolderReference { kind: holder.into(), ..Default::default() }),
        ..Default::default()
    };
    let items = vec![
        item("1", "a.example/v1", "Template", "Cluster"),
        item("2", "b.example/v1", "Template", "MachineDeployment"),
        item("3", "b.example/v1", "Other", "MachineDeployment"),
        item("4", "v1", "Other", ""),
    ];
    let request = GeneratePatchesRequest { items, ..Default::default() };
    let all = Selection::all;
    for (which, want) in [
        (all(), "1234"),
        ("Template".into(), "12"),
        (all().group("b.example"), "23"),
        (all().group("v1"), ""),
        (all().holder("MachineDeployment").kind("Other"), "3"),
        (all().holder("Cluster").group("b.example"), ""),
    ] {
        let mut patches = Patches::new(&request);
        let found = patches.items(which).unwrap();
        assert_eq!(found.iter().map(|item| item.uid()).collect::<String>(), want, "{which:?}");
    }
}
