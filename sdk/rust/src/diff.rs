// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! JSON pointers (RFC 6901), and the differences of two values as patches.

use serde_json::{Map, Value, json};

use crate::answer::{Error, Result};

/// Returns the unescaped segments of a JSON pointer, of which there is one at least.
pub(crate) fn segments(pointer: &str) -> Result<Vec<String>> {
    let Some(path) = pointer.strip_prefix('/') else {
        return Err(Error::internal("invalid path", format!("\"{pointer}\" is not a JSON pointer: it begins with /")));
    };
    Ok(path.split('/').map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect())
}

/// Sets a value at a JSON pointer. Parents that are missing or null become objects; `-` is the end of a list.
pub(crate) fn set(root: &mut Value, pointer: &str, value: Value) -> Result<()> {
    let segments = segments(pointer)?;
    let mut place = root;
    for segment in &segments {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        place = match place {
            Value::Object(members) => members.entry(segment.as_str()).or_insert(Value::Null),
            Value::Array(elements) => {
                let end = elements.len();
                let at = if segment == "-" { end } else { index(segment).unwrap_or(usize::MAX) };
                if at == end {
                    elements.push(Value::Null);
                }
                elements.get_mut(at).ok_or_else(|| invalid(pointer, &format!("there is no element {segment}")))?
            }
            _ => return Err(invalid(pointer, &format!("what has {segment} is neither an object nor a list"))),
        };
    }
    *place = value;
    Ok(())
}

/// Removes what is at a JSON pointer, if there is something.
pub(crate) fn remove(root: &mut Value, pointer: &str) -> Result<()> {
    let mut segments = segments(pointer)?;
    let last = segments.pop().expect("there is one at least");
    let mut place = root;
    for segment in &segments {
        let next = match place {
            Value::Object(members) => members.get_mut(segment),
            Value::Array(elements) => index(segment).and_then(|i| elements.get_mut(i)),
            _ => None,
        };
        match next {
            Some(next) => place = next,
            None => return Ok(()),
        }
    }
    match place {
        Value::Object(members) => {
            members.shift_remove(&last);
        }
        Value::Array(elements) => {
            if let Some(i) = index(&last).filter(|i| *i < elements.len()) {
                elements.remove(i);
            }
        }
        _ => {}
    }
    Ok(())
}

fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|i: &usize| i.to_string() == segment)
}

fn invalid(pointer: &str, text: &str) -> Error {
    Error::internal("invalid path", format!("{pointer}: {text}"))
}

/// Appends the operations of the JSON patch (RFC 6902) that makes one object another one.
pub(crate) fn patch(path: &str, before: &Value, after: &Value, operations: &mut Vec<Value>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let at = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            for (name, value) in old {
                match new.get(name) {
                    None => operations.push(json!({"op": "remove", "path": at(name)})),
                    Some(now) if nested(value, now) => patch(&at(name), value, now, operations),
                    Some(now) if equal(value, now) => {}
                    Some(now) => operations.push(json!({"op": "add", "path": at(name), "value": now})),
                }
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                operations.push(json!({"op": "add", "path": at(name), "value": value}));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (i, (value, now)) in old.iter().zip(new).enumerate() {
                let at = format!("{path}/{i}");
                if nested(value, now) {
                    patch(&at, value, now, operations);
                } else if !equal(value, now) {
                    operations.push(json!({"op": "replace", "path": at, "value": now}));
                }
            }
            for value in new.iter().skip(old.len()) {
                operations.push(json!({"op": "add", "path": format!("{path}/-"), "value": value}));
            }
        }
        _ => {}
    }
}

/// Reports whether the difference of two values is written below them: that of objects, of lists of one length, and of
/// lists of which one begins with the other one.
fn nested(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(_), Value::Object(_)) => true,
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() || old.len() < new.len() && old.iter().zip(new).all(|(a, b)| equal(a, b))
        }
        _ => false,
    }
}

/// Reports whether two values are equal as JSON: 1 equals 1.0.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| equal(value, other)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Number(a), Value::Number(b)) if a.is_f64() != b.is_f64() => {
            let (integer, float) = if a.is_f64() { (b, a) } else { (a, b) };
            float.as_f64().is_some_and(|f| f.fract() == 0.0 && Some(f as i128) == integer.as_i128())
        }
        _ => a == b,
    }
}

/// Returns the JSON merge patch (RFC 7386) that makes one value another one, or nothing if they are equal.
pub(crate) fn merge(before: Option<&Value>, after: Option<&Value>) -> Option<Value> {
    match (before, after) {
        (None, None) => None,
        (_, None) => Some(Value::Null),
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
            let changes: Map<String, Value> =
                names.filter_map(|name| Some((name.clone(), merge(old.get(name), new.get(name))?))).collect();
            (!changes.is_empty()).then_some(Value::Object(changes))
        }
        (Some(old), Some(new)) if equal(old, new) => None,
        (_, Some(new)) => Some(new.clone()),
    }
}
