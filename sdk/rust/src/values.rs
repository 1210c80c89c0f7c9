// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! Typed values of settings and variables.

use std::collections::HashMap;

use crate::answer::{Error, Result};

mod sealed {
    pub trait Sealed {}
}

/// The types that settings and variables are read as: `String`, `i64`, `f64`, `bool` and `serde_json::Value`.
pub trait Typed: sealed::Sealed + Sized {
    #[doc(hidden)]
    const TYPE: &str;
    #[doc(hidden)]
    fn from_text(text: &str) -> Option<Self>;
    #[doc(hidden)]
    fn from_json(value: &serde_json::Value) -> Option<Self>;
}

macro_rules! value {
    ($type:ty, $name:literal, $text:expr, $json:expr) => {
        impl sealed::Sealed for $type {}
        impl Typed for $type {
            const TYPE: &str = $name;
            fn from_text(text: &str) -> Option<Self> {
                $text(text)
            }
            fn from_json(value: &serde_json::Value) -> Option<Self> {
                $json(value)
            }
        }
    };
}

fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

value!(String, "a string", |t: &str| Some(t.to_owned()), |v: &serde_json::Value| v.as_str().map(str::to_owned));
value!(i64, "an integer", |t: &str| t.parse().ok(), serde_json::Value::as_i64);
value!(f64, "a number", |t: &str| t.parse().ok().and_then(finite), serde_json::Value::as_f64);
value!(bool, "true or false", |t: &str| t.parse().ok(), serde_json::Value::as_bool);
value!(serde_json::Value, "JSON", |t: &str| serde_json::from_str(t).ok(), |v: &serde_json::Value| Some(v.clone()));

/// Returns a setting of a request. The error is a Failure: it is not set, or not of the type.
pub fn setting<T: Typed>(settings: &HashMap<String, String>, name: &str) -> Result<T> {
    let text = settings.get(name).ok_or_else(|| Error::failure(format!("setting \"{name}\" is not set")))?;
    T::from_text(text).ok_or_else(|| Error::failure(format!("setting \"{name}\": want {}", T::TYPE)))
}

/// Returns a setting of a request, or the default if it is not set. The error is a Failure: it is not of the type.
pub fn setting_or<T: Typed>(settings: &HashMap<String, String>, name: &str, default: T) -> Result<T> {
    if settings.contains_key(name) { setting(settings, name) } else { Ok(default) }
}
