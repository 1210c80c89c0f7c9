// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Requests from files, for tests. The contract's JSON is not protobuf's: objects are inlined, enums are Cluster API's
//! strings, and members that the contract does not know are kept in unknown_members.

use std::{any, collections::HashMap, path::Path};

use prost::{Message, Name, encoding};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto,
    field_descriptor_proto::{Label, Type},
};
use saphyr::{LoadableYamlNode, ScalarOwned, YamlOwned};
use serde_json::{Map, Value};

use crate::extension::Extension;

type Found<T> = std::result::Result<T, String>;

impl Extension {
    /// Reads a request from a file in the contract's JSON, or in YAML of the same form, as `hookgate call HOOK
    /// --example` prints it.
    ///
    /// # Panics
    ///
    /// If the file cannot be read, or is not the request of this type: the text says what is wrong.
    #[track_caller]
    pub fn request<Q: Message + Name + Default>(&self, path: impl AsRef<Path>) -> Q {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
        let request = parse(&text).and_then(|value| {
            let encoded = Types::of(self).request(&Q::full_name(), value)?;
            Q::decode(&encoded[..]).map_err(|error| error.to_string())
        });
        request.unwrap_or_else(|error| panic!("{} is no {}: {error}", path.display(), any::type_name::<Q>()))
    }
}

/// Parses JSON, or else YAML.
fn parse(text: &str) -> Found<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let documents = YamlOwned::load_from_str(text).map_err(|error| error.to_string())?;
    match documents.into_iter().next() {
        Some(document) => json(document),
        None => Err("it is empty".into()),
    }
}

fn json(node: YamlOwned) -> Found<Value> {
    match node {
        YamlOwned::Value(ScalarOwned::Null) => Ok(Value::Null),
        YamlOwned::Value(ScalarOwned::Boolean(value)) => Ok(value.into()),
        YamlOwned::Value(ScalarOwned::Integer(value)) => Ok(value.into()),
        YamlOwned::Value(ScalarOwned::FloatingPoint(value)) => Ok(value.into_inner().into()),
        YamlOwned::Value(ScalarOwned::String(value)) => Ok(value.into()),
        YamlOwned::Sequence(values) => values.into_iter().map(json).collect(),
        YamlOwned::Mapping(members) => {
            let member = |(name, value): (YamlOwned, YamlOwned)| match json(name)? {
                Value::String(name) => Ok((name, json(value)?)),
                other => Err(format!("the name of a member is {other}: quote it")),
            };
            Ok(Value::Object(members.into_iter().map(member).collect::<Found<Map<String, Value>>>()?))
        }
        _ => Err("aliases and tags of YAML are not read".into()),
    }
}

/// The types of an extension's stubs, by their full names.
struct Types<'e> {
    messages: HashMap<String, &'e DescriptorProto>,
    enums: HashMap<String, &'e EnumDescriptorProto>,
}

impl<'e> Types<'e> {
    fn of(extension: &'e Extension) -> Self {
        let mut types = Types { messages: HashMap::new(), enums: HashMap::new() };
        for file in extension.descriptors.iter().flat_map(|set| &set.file) {
            types.add(&format!(".{}", file.package()), &file.message_type, &file.enum_type);
        }
        types
    }

    fn add(&mut self, scope: &str, messages: &'e [DescriptorProto], enums: &'e [EnumDescriptorProto]) {
        self.enums.extend(enums.iter().map(|e| (format!("{scope}.{}", e.name()), e)));
        for message in messages {
            let name = format!("{scope}.{}", message.name());
            self.add(&name, &message.nested_type, &message.enum_type);
            self.messages.insert(name, message);
        }
    }

    /// Encodes a request.
    fn request(&self, name: &str, value: Value) -> Found<Vec<u8>> {
        let Value::Object(mut members) = value else { return Err("want an object".into()) };
        members.remove("apiVersion");
        let want = name.rsplit('.').next().unwrap_or_default();
        match members.remove("kind") {
            Some(kind) if kind != want => Err(format!("kind is {kind}, want {want}")),
            _ => self.message(&format!(".{name}"), &Value::Object(members), ""),
        }
    }

    /// Encodes a message of a type.
    fn message(&self, name: &str, value: &Value, place: &str) -> Found<Vec<u8>> {
        let message = self.messages.get(name).ok_or_else(|| format!("{name} is not in the stubs"))?;
        let mut encoded = Vec::new();
        if let [raw] = &message.field[..] {
            if raw.name() == "raw" {
                encoding::bytes::encode(raw.number() as u32, &value.to_string().into_bytes(), &mut encoded);
                return Ok(encoded);
            }
        }
        let Value::Object(members) = value else { return Err(format!("{place}: want an object")) };
        for (name, value) in members {
            let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
            let known = |field: &&FieldDescriptorProto| field.json_name() == name && field.name() != "unknown_members";
            match (message.field.iter().find(known), value) {
                (Some(_), Value::Null) => {} // as good as absent
                (Some(field), _) => self.field(field, value, &place, &mut encoded)?,
                (None, _) => {
                    let unknown = message.field.iter().find(|field| field.name() == "unknown_members");
                    let field = unknown.ok_or_else(|| format!("{place}: there is no such member"))?;
                    self.entry(field, name, value, &place, &mut encoded)?;
                }
            }
        }
        Ok(encoded)
    }

    /// Encodes a field, which may be a map or a list.
    fn field(&self, field: &FieldDescriptorProto, value: &Value, place: &str, into: &mut Vec<u8>) -> Found<()> {
        if field.label() != Label::Repeated {
            return self.value(field, value, place, into);
        }
        let is_map =
            self.messages.get(field.type_name()).is_some_and(|m| m.options.as_ref().is_some_and(|o| o.map_entry()));
        match value {
            Value::Object(members) if is_map => members
                .iter()
                .try_for_each(|(name, value)| self.entry(field, name, value, &format!("{place}.{name}"), into)),
            Value::Array(values) if !is_map => values
                .iter()
                .enumerate()
                .try_for_each(|(i, value)| self.value(field, value, &format!("{place}[{i}]"), into)),
            _ => Err(format!("{place}: want {}", if is_map { "an object" } else { "a list" })),
        }
    }

    /// Encodes an entry of a map.
    fn entry(
        &self,
        map: &FieldDescriptorProto,
        name: &str,
        value: &Value,
        place: &str,
        into: &mut Vec<u8>,
    ) -> Found<()> {
        let entry = self.messages.get(map.type_name()).ok_or_else(|| format!("{place}: of no type"))?;
        let mut encoded = Vec::new();
        for field in &entry.field {
            match field.name() {
                "key" => self.value(field, &name.into(), place, &mut encoded)?,
                _ => self.value(field, value, place, &mut encoded)?,
            }
        }
        encoding::bytes::encode(map.number() as u32, &encoded, into);
        Ok(())
    }

    /// Encodes one value of a field.
    fn value(&self, field: &FieldDescriptorProto, value: &Value, place: &str, into: &mut Vec<u8>) -> Found<()> {
        let tag = field.number() as u32;
        let want = |what: &str| format!("{place}: want {what}");
        match field.r#type() {
            Type::Message => {
                let encoded = self.message(field.type_name(), value, place)?;
                encoding::bytes::encode(tag, &encoded, into);
            }
            Type::Enum => {
                let texts = self.enums.get(field.type_name()).map(|e| texts(e)).unwrap_or_default();
                let named = texts.iter().find(|(text, _)| value == text.as_str());
                let known = || texts.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(", ");
                let (_, number) = named.ok_or_else(|| want(&format!("one of {}", known())))?;
                encoding::int32::encode(tag, number, into);
            }
            Type::String => {
                let text = value.as_str().ok_or_else(|| want("a string"))?;
                encoding::string::encode(tag, &text.to_owned(), into);
            }
            Type::Bool => encoding::bool::encode(tag, &value.as_bool().ok_or_else(|| want("true or false"))?, into),
            Type::Int32 => {
                let number = value.as_i64().and_then(|n| i32::try_from(n).ok());
                encoding::int32::encode(tag, &number.ok_or_else(|| want("an integer of 32 bits"))?, into);
            }
            Type::Int64 => encoding::int64::encode(tag, &value.as_i64().ok_or_else(|| want("an integer"))?, into),
            Type::Double => encoding::double::encode(tag, &value.as_f64().ok_or_else(|| want("a number"))?, into),
            Type::Bytes => {
                let bytes = value.as_str().and_then(base64).ok_or_else(|| want("base64"))?;
                encoding::bytes::encode(tag, &bytes, into);
            }
            other => return Err(want(&format!("a field that is not of the type {other:?}"))),
        }
        Ok(())
    }
}

/// Returns the texts of an enum's values: FAILURE_POLICY_IGNORE is Ignore.
fn texts(of: &EnumDescriptorProto) -> Vec<(String, i32)> {
    let mut prefix = String::new();
    for (i, c) in of.name().char_indices() {
        if i > 0 && c.is_ascii_uppercase() {
            prefix.push('_');
        }
        prefix.push(c.to_ascii_uppercase());
    }
    let word = |word: &str| match word {
        "JSON" => word.to_owned(),
        _ => word.chars().take(1).chain(word.chars().skip(1).map(|c| c.to_ascii_lowercase())).collect(),
    };
    let text = |name: &str| name[prefix.len() + 1..].split('_').map(word).collect::<String>();
    of.value.iter().filter(|value| value.number() != 0).map(|value| (text(value.name()), value.number())).collect()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        bits = bits << 6 | DIGITS.iter().position(|digit| *digit == c)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
