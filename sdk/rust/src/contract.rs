// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! The hooks, as the descriptors of the stubs describe them.

use std::collections::HashMap;

use prost::{
    Message,
    encoding::{self, DecodeContext, WireType},
};
use prost_types::{DescriptorProto, FileDescriptorSet};
use tonic::Status;

use crate::hooks::v1alpha1::ResponseStatus;

/// The descriptors of the contract, as an encoded `google.protobuf.FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.binpb"));

/// A hook: an rpc, the apiVersion of its group, and the numbers of the fields that the package reads and writes.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) api_version: String,
    pub(crate) path: String,
    pub(crate) response: String,
    handler: Option<u32>,
    status: Option<u32>,
    message: Option<u32>,
    retry_after_seconds: Option<u32>,
}

/// Finds the hook whose request is the message of this name. Groups has the apiVersion of packages of one's own.
pub(crate) fn find(
    sets: &[FileDescriptorSet],
    groups: &HashMap<String, String>,
    request: &str,
) -> Result<Hook, String> {
    let files = || sets.iter().flat_map(|set| &set.file);
    let field = |message: &str, field: &str| {
        let wanted = |file: &&prost_types::FileDescriptorProto| message.starts_with(&format!("{}.", file.package()));
        let mut messages = files().filter(wanted).flat_map(|file| file.message_type.iter().map(move |m| (file, m)));
        let (_, found): (_, &DescriptorProto) =
            messages.find(|(file, m)| message == format!("{}.{}", file.package(), m.name()))?;
        found.field.iter().find(|f| f.name() == field).map(|f| f.number() as u32)
    };
    for file in files() {
        for service in &file.service {
            for method in &service.method {
                if method.input_type().trim_start_matches('.') != request {
                    continue;
                }
                let package = file.package();
                let response = method.output_type().trim_start_matches('.').to_owned();
                return Ok(Hook {
                    name: method.name().to_owned(),
                    api_version: api_version(groups, package)?,
                    path: format!("/{package}.{}/{}", service.name(), method.name()),
                    handler: field(request, "handler"),
                    status: field(&response, "status"),
                    message: field(&response, "message"),
                    retry_after_seconds: field(&response, "retry_after_seconds"),
                    response,
                });
            }
        }
    }
    Err(format!("no rpc takes a {request}: give the descriptors of its stubs to Extension::contract first"))
}

fn api_version(groups: &HashMap<String, String>, package: &str) -> Result<String, String> {
    if let Some(api_version) = groups.get(package) {
        return Ok(api_version.clone());
    }
    if let Some(version) = package.strip_prefix("hookgate.hooks.") {
        return Ok(format!("hooks.runtime.cluster.x-k8s.io/{version}"));
    }
    if let Some(version) = package.strip_prefix("hookgate.infrastructure.") {
        return Ok(format!("infrastructure.hookgate.dev/{version}"));
    }
    if let Some(version) = package.strip_prefix("hookgate.machines.") {
        return Ok(format!("hooks.machines.hookgate.dev/{version}"));
    }
    Err(format!("the group of the package {package} is not known: give it to Extension::contract"))
}

impl Hook {
    /// Returns the full name of the service.
    pub(crate) fn service(&self) -> &str {
        self.path.trim_start_matches('/').split('/').next().unwrap_or_default()
    }

    pub(crate) fn can_wait(&self) -> bool {
        self.retry_after_seconds.is_some()
    }

    /// Returns the name of the handler that a request is for, or nothing.
    pub(crate) fn handler(&self, request: &[u8]) -> Result<String, Status> {
        self.text_of(self.handler, request)
    }

    /// Returns the message of a response, or an empty one if it has none.
    pub(crate) fn message_of(&self, response: &[u8]) -> Result<String, Status> {
        self.text_of(self.message, response)
    }

    fn text_of(&self, wanted: Option<u32>, message: &[u8]) -> Result<String, Status> {
        let mut text = String::new();
        for_each_field(message, |tag, wire_type, buffer| {
            if Some(tag) != wanted {
                return encoding::skip_field(wire_type, tag, buffer, DecodeContext::default());
            }
            encoding::string::merge(wire_type, &mut text, buffer, DecodeContext::default())
        })?;
        Ok(text)
    }

    /// Returns a request with the name of a handler.
    pub(crate) fn with_handler(&self, mut request: Vec<u8>, name: &str) -> Vec<u8> {
        if let Some(tag) = self.handler {
            encoding::string::encode(tag, &name.to_owned(), &mut request); // the last one is read
        }
        request
    }

    /// Returns a response with this status, or nothing if responses of the hook have none.
    pub(crate) fn response(&self, status: ResponseStatus, message: &str, seconds: i32) -> Option<Vec<u8>> {
        let mut response = Vec::new();
        encoding::int32::encode(self.status?, &(status as i32), &mut response);
        if let (Some(tag), false) = (self.message, message.is_empty()) {
            encoding::string::encode(tag, &message.to_owned(), &mut response);
        }
        if let (Some(tag), true) = (self.retry_after_seconds, seconds > 0) {
            encoding::int32::encode(tag, &seconds, &mut response);
        }
        Some(response)
    }

    /// Sets the status of a response to Success if it has none.
    pub(crate) fn complete(&self, mut response: Vec<u8>) -> Result<Vec<u8>, Status> {
        if let (Some(tag), 0) = (self.status, self.status_of(&response)?) {
            encoding::int32::encode(tag, &(ResponseStatus::Success as i32), &mut response);
        }
        Ok(response)
    }

    /// Returns the status of a response, or 0 if it has none.
    pub(crate) fn status_of(&self, response: &[u8]) -> Result<i32, Status> {
        let mut status = 0;
        for_each_field(response, |tag, wire_type, buffer| {
            if Some(tag) != self.status {
                return encoding::skip_field(wire_type, tag, buffer, DecodeContext::default());
            }
            encoding::int32::merge(wire_type, &mut status, buffer, DecodeContext::default())
        })?;
        Ok(status)
    }
}

/// Calls a function, which consumes its value, for each field of an encoded message.
fn for_each_field(
    message: &[u8],
    mut field: impl FnMut(u32, WireType, &mut &[u8]) -> Result<(), prost::DecodeError>,
) -> Result<(), Status> {
    let mut buffer = message;
    let mut walk = || {
        while !buffer.is_empty() {
            let (tag, wire_type) = encoding::decode_key(&mut buffer)?;
            field(tag, wire_type, &mut buffer)?;
        }
        Ok(())
    };
    walk().map_err(|error: prost::DecodeError| Status::invalid_argument(error.to_string()))
}

/// Decodes descriptors, as the build of stubs writes them.
pub(crate) fn descriptors(encoded: &[u8]) -> Result<FileDescriptorSet, String> {
    FileDescriptorSet::decode(encoded).map_err(|error| format!("not a FileDescriptorSet: {error}"))
}
