// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Answers of GeneratePatches, made from edited copies.

use serde::Deserialize;
use serde_json::Value;
use tonic::Status;

use crate::{
    answer::{Error, Result},
    diff,
    hooks::v1alpha1::{
        GeneratePatchesRequest, GeneratePatchesRequestItem, GeneratePatchesResponse, GeneratePatchesResponseItem,
        HolderReference, PatchType, ResponseStatus, Variable,
    },
    objects::{Raw, load},
    values::Typed,
};

/// The templates of a GeneratePatches request, to edit. The answer has a JSON patch for each that differs then.
pub struct Patches<'r> {
    items: Vec<Item<'r>>,
}

/// One template of a request.
pub struct Item<'r> {
    index: usize,
    item: &'r GeneratePatchesRequestItem,
    variables: &'r [Variable],
    edited: Option<(Value, Value)>, // as it was, and as it is
}

/// Which templates of a request are meant. A string is a kind, and nothing means all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'k> {
    kind: Option<&'k str>,
    group: Option<&'k str>,
    holder: Option<&'k str>,
}

impl<'k> Selection<'k> {
    /// Returns the selection of all templates.
    pub fn all() -> Self {
        Selection::default()
    }

    /// Selects those of a kind.
    pub fn kind(self, kind: &'k str) -> Self {
        Selection { kind: Some(kind), ..self }
    }

    /// Selects those of an API group, such as `controlplane.cluster.x-k8s.io`.
    pub fn group(self, group: &'k str) -> Self {
        Selection { group: Some(group), ..self }
    }

    /// Selects those that an object of this kind uses, such as `MachineDeployment`.
    pub fn holder(self, kind: &'k str) -> Self {
        Selection { holder: Some(kind), ..self }
    }
}

impl<'k> From<&'k str> for Selection<'k> {
    fn from(kind: &'k str) -> Self {
        Selection::all().kind(kind)
    }
}

impl<'k> From<Option<&'k str>> for Selection<'k> {
    fn from(kind: Option<&'k str>) -> Self {
        Selection { kind, ..Selection::all() }
    }
}

impl<'r> Patches<'r> {
    /// Returns the templates of a request.
    pub fn new(request: &'r GeneratePatchesRequest) -> Self {
        let items = request.items.iter().enumerate();
        let variables = &request.variables;
        Patches { items: items.map(|(index, item)| Item { index, item, variables, edited: None }).collect() }
    }

    /// Returns the templates of a kind, all of them for none, or those of a [`Selection`].
    pub fn items<'k>(&mut self, which: impl Into<Selection<'k>>) -> Result<Vec<&mut Item<'r>>> {
        let which = which.into();
        let mut items = Vec::new();
        for item in &mut self.items {
            if item.matches(which)? {
                items.push(item);
            }
        }
        Ok(items)
    }

    /// Returns the answer: a patch for each template that was changed, in the order of the request.
    pub fn answer(self) -> Result<GeneratePatchesResponse> {
        let mut answer = GeneratePatchesResponse { status: ResponseStatus::Success as i32, ..Default::default() };
        for item in self.items {
            let Some((before, after)) = &item.edited else {
                continue;
            };
            if !after.is_object() {
                return Err(Error::failure(format!("{}: a patch cannot replace the whole object", item.member())));
            }
            let mut operations = Vec::new();
            diff::patch("", before, after, &mut operations);
            if !operations.is_empty() {
                answer.items.push(GeneratePatchesResponseItem {
                    uid: item.item.uid.clone(),
                    patch_type: PatchType::JsonPatch as i32,
                    patch: Some(Value::Array(operations).to_string().into()),
                    ..Default::default()
                });
            }
        }
        Ok(answer)
    }
}

impl Item<'_> {
    /// Returns a copy of the template, to read and to edit.
    pub fn object(&mut self) -> Result<&mut Value> {
        if self.edited.is_none() {
            let object = load(&self.member(), &self.item.object)?;
            self.edited = Some((object.clone(), object));
        }
        Ok(&mut self.edited.as_mut().expect("it was loaded").1)
    }

    /// Returns what identifies the template in the request.
    pub fn uid(&self) -> &str {
        &self.item.uid
    }

    /// Returns the object that uses the template.
    pub fn holder(&self) -> HolderReference {
        self.item.holder_reference.clone().unwrap_or_default()
    }

    /// Sets a value at a JSON pointer, and makes the parents that are missing or null.
    pub fn set(&mut self, pointer: &str, value: impl Into<Value>) -> Result<()> {
        diff::set(self.object()?, pointer, value.into())
    }

    /// Removes what is at a JSON pointer, if there is something.
    pub fn remove(&mut self, pointer: &str) -> Result<()> {
        diff::remove(self.object()?, pointer)
    }

    /// Returns a variable of the template, or else of the request. A path like `proxy.noProxy[0]` looks into its
    /// value. The error is a Failure: it is not set, or not of the type.
    pub fn variable<T: Typed>(&self, path: &str) -> Result<T> {
        let value = self.look_up(path)?.ok_or_else(|| Error::failure(format!("variable \"{path}\" is not set")))?;
        T::from_json(&value).ok_or_else(|| Error::failure(format!("variable \"{path}\" is not {}", T::TYPE)))
    }

    /// Returns a variable, or the default if it is not set. The error is a Failure: it is not of the type.
    pub fn variable_or<T: Typed>(&self, path: &str, default: T) -> Result<T> {
        if self.look_up(path)?.is_some() { self.variable(path) } else { Ok(default) }
    }

    fn look_up(&self, path: &str) -> Result<Option<Value>> {
        let mut found: Option<Value> = None;
        for (i, segment) in path.split('.').enumerate() {
            let (name, index) = step(segment)
                .ok_or_else(|| Error::internal("invalid path", format!("{path} is not like name.member[0]")))?;
            found = match i {
                0 => self.value(name)?,
                _ => found.and_then(|mut value| value.get_mut(name).map(Value::take)),
            };
            if let Some(index) = index {
                found = found.and_then(|mut value| value.get_mut(index).map(Value::take));
            }
        }
        Ok(found)
    }

    /// Returns the value of a variable. The builtin one has the members of both, as for Cluster API's inline patches.
    fn value(&self, name: &str) -> Result<Option<Value>> {
        let decode = |variables: &[Variable]| match variables.iter().find(|variable| variable.name == name) {
            None => Ok(None),
            Some(variable) => match serde_json::from_slice(variable.value.raw()) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(Status::invalid_argument(format!("variables[{name}].value: {error}"))),
            },
        };
        Ok(match decode(&self.item.variables)? {
            None => decode(self.variables)?,
            Some(own) if name != "builtin" => Some(own),
            Some(own) => Some(match decode(self.variables)? {
                Some(mut shared) => {
                    merge(&mut shared, own);
                    shared
                }
                None => own,
            }),
        })
    }

    /// Reports whether the template is one of a selection. Only what is asked for is decoded.
    fn matches(&self, Selection { kind, group, holder }: Selection) -> Result<bool> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TypeOf {
            #[serde(default)]
            api_version: String,
            #[serde(default)]
            kind: String,
        }
        let held_by = self.item.holder_reference.as_ref().map_or("", |holder| &holder.kind);
        if holder.is_some_and(|kind| kind != held_by) {
            return Ok(false);
        }
        if kind.is_none() && group.is_none() {
            return Ok(true);
        }
        let decoded: serde_json::Result<TypeOf> = serde_json::from_slice(self.item.object.raw());
        let own = decoded.map_err(|error| Status::invalid_argument(format!("{}: {error}", self.member())))?;
        let own_group = own.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        Ok(kind.is_none_or(|kind| kind == own.kind) && group.is_none_or(|group| group == own_group))
    }

    fn member(&self) -> String {
        format!("items[{}].object", self.index)
    }
}

/// Returns the member and the index of a segment like `noProxy[0]`.
fn step(segment: &str) -> Option<(&str, Option<usize>)> {
    match segment.split_once('[') {
        None => (!segment.is_empty() && !segment.contains(']')).then_some((segment, None)),
        Some((member, rest)) => Some((member, Some(rest.strip_suffix(']')?.parse().ok()?))),
    }
}

/// Adds the members of a value to those of another one, and replaces what both have.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
