// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//! What a handler returns.

use std::{any::Any, fmt};

use prost::{Message, Name};
use tonic::Status;

/// What a handler returns: an answer, or the [`Error`] that keeps it from answering.
pub type Result<T = Answer> = std::result::Result<T, Error>;

/// An answer that is made for the hook of the handler, whichever it is: see [`done`] and [`wait`].
#[derive(Debug, Clone, PartialEq)]
pub struct Answer(pub(crate) Content);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Done,
    Wait { seconds: i32, message: String },
    Message { name: String, bytes: Vec<u8> },
}

/// Answers with status Success.
pub fn done() -> Result {
    Ok(Answer(Content::Done))
}

/// Asks the caller to call again after that many seconds, at least one; message tells people what it waits for.
pub fn wait(seconds: i32, message: impl Into<String>) -> Result {
    Ok(Answer(Content::Wait { seconds, message: message.into() }))
}

/// Answers with status Failure, which a person must resolve; message says why.
pub fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::failure(message))
}

/// The types that a handler may return: [`Answer`], and the messages of the stubs, whose status is set to Success if it
/// was left unset.
pub trait Answers {
    /// Returns the full name of the message, or nothing if it suits every hook.
    fn message_name() -> Option<String>;
    /// Converts the value.
    fn into_answer(self) -> Answer;
}

impl Answers for Answer {
    fn message_name() -> Option<String> {
        None
    }

    fn into_answer(self) -> Answer {
        self
    }
}

impl<M: Message + Name> Answers for M {
    fn message_name() -> Option<String> {
        Some(M::full_name())
    }

    fn into_answer(self) -> Answer {
        self.into()
    }
}

impl<M: Message + Name> From<M> for Answer {
    /// Lets a handler return [`done`] at one place and a message of the stubs at another one.
    fn from(message: M) -> Self {
        Answer(Content::Message { name: M::full_name(), bytes: message.encode_to_vec() })
    }
}

/// Why a handler does not answer.
///
/// Every other error becomes one by `?`. Its text is for the log alone: the caller is told that there was an internal
/// error, and its type. A [`tonic::Status`] is passed on as it is.
pub struct Error(pub(crate) Reason);

pub(crate) enum Reason {
    Failure(String),
    Status(Status),
    Internal { kind: String, text: String },
}

impl Error {
    /// Returns the error that is answered with status Failure and this message.
    pub fn failure(message: impl Into<String>) -> Self {
        Error(Reason::Failure(message.into()))
    }

    pub(crate) fn internal(kind: impl Into<String>, text: impl Into<String>) -> Self {
        Error(Reason::Internal { kind: kind.into(), text: text.into() })
    }
}

impl<E: std::error::Error + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        if let Some(status) = (&error as &dyn Any).downcast_ref::<Status>() {
            return Error(Reason::Status(status.clone()));
        }
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Error::internal(std::any::type_name::<E>(), text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reason::Failure(message) => write!(f, "{message}"),
            Reason::Status(status) => write!(f, "{status}"),
            Reason::Internal { kind, text } => write!(f, "{kind}: {text}"),
        }
    }
}
