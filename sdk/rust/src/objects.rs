// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! The objects of requests.

use serde_json::{Map, Value};
use tonic::Status;

use crate::{
    answer::{Error, Result},
    diff,
    hooks::v1alpha1::{Json, Patch, PatchType, RawExtension},
};

/// A field of the stubs that holds JSON as text.
pub trait Raw {
    /// Returns the text, which is empty if there is none.
    fn raw(&self) -> &[u8];
}

impl Raw for RawExtension {
    fn raw(&self) -> &[u8] {
        &self.raw
    }
}

impl Raw for Json {
    fn raw(&self) -> &[u8] {
        &self.raw
    }
}

impl<R: Raw> Raw for Option<R> {
    fn raw(&self) -> &[u8] {
        self.as_ref().map_or(&[], Raw::raw)
    }
}

/// Decodes an object of a request. What is not a JSON object is the caller's mistake: INVALID_ARGUMENT, whose text
/// begins with member.
pub fn load(member: &str, field: &impl Raw) -> Result<Value> {
    if field.raw().is_empty() {
        return Err(Status::invalid_argument(format!("{member}: there is none")).into());
    }
    match serde_json::from_slice(field.raw()) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(Status::invalid_argument(format!("{member}: not a JSON object")).into()),
        Err(error) => Err(Status::invalid_argument(format!("{member}: {error}")).into()),
    }
}

/// Returns the patch of an answer to CanUpdateMachine or CanUpdateMachineSet: it makes current as desired at the places
/// that the JSON pointers name, and nowhere else. It is nothing if they do not differ there.
pub fn covers(current: &Value, desired: &Value, pointers: &[&str]) -> Result<Option<Patch>> {
    let mut patch = Value::Object(Map::new());
    for pointer in pointers {
        let segments = diff::segments(pointer)?;
        let (mut before, mut after) = (Some(current), Some(desired));
        for segment in &segments {
            if [before, after].iter().flatten().any(|value| value.is_array()) {
                let text = "a merge patch cannot change a part of a list: name the list";
                return Err(Error::internal("invalid path", format!("{pointer}: {text}")));
            }
            before = before.and_then(|value| value.get(segment));
            after = after.and_then(|value| value.get(segment));
        }
        if let Some(change) = diff::merge(before, after) {
            diff::set(&mut patch, pointer, change)?;
        }
    }
    let changed = patch.as_object().is_some_and(|members| !members.is_empty());
    Ok(changed.then(|| Patch {
        patch_type: PatchType::JsonMergePatch as i32,
        patch: patch.to_string().into(),
        ..Default::default()
    }))
}
