// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! The caller's trace, by the propagator that the application has set.

use opentelemetry::{Context, global, propagation::Extractor};
use tonic::metadata::{KeyRef, MetadataMap};

struct Carrier<'a>(&'a MetadataMap);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        let text = self.0.keys().filter_map(|key| match key {
            KeyRef::Ascii(key) => Some(key.as_str()),
            KeyRef::Binary(_) => None,
        });
        text.collect()
    }
}

/// Returns the context that a call comes with.
pub(crate) fn parent(metadata: &MetadataMap) -> Context {
    global::get_text_map_propagator(|propagator| propagator.extract_with_context(&Context::new(), &Carrier(metadata)))
}
