//! Values of `jsonb`.

use crate::error::{SqlError, SqlState};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::cmp::Ordering;
use json::JsonError;
use serde::{Deserialize, Serialize};

/// A JSON value in its normal form, which is text ([`json::normalise`]).
///
/// What comes from a disk or another node is taken for normal; of other text the functions of
/// [`json`] make something, but never a panic.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Jsonb(Box<str>);

impl Jsonb {
    /// The value that a text of JSON stands for.
    ///
    /// # Errors
    /// 22P02, 22P05 and 22003 for what is none, 54001 if it nests too deeply.
    pub fn parse(text: &str) -> Result<Jsonb, SqlError> {
        Ok(Jsonb::from_normal(json::normalise(text)?))
    }

    /// The value of a text in normal form.
    pub fn from_normal(text: impl Into<Box<str>>) -> Jsonb {
        Jsonb(text.into())
    }

    /// Its normal form.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Jsonb {
    fn eq(&self, other: &Jsonb) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Jsonb {}

impl PartialOrd for Jsonb {
    fn partial_cmp(&self, other: &Jsonb) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Jsonb {
    fn cmp(&self, other: &Jsonb) -> Ordering {
        json::compare(&self.0, &other.0)
    }
}

impl From<JsonError> for SqlError {
    fn from(error: JsonError) -> SqlError {
        let code = error.state.as_bytes().try_into().map(SqlState);
        SqlError::new(code.unwrap_or(SqlState::INTERNAL), error.message)
            .detail(error.detail)
            .hint(error.hint)
            .context(error.context)
    }
}

/// The text, if it is JSON.
///
/// # Errors
/// 22P02 if it is none, 54001 if it nests too deeply.
pub(crate) fn checked_json(text: &str) -> Result<Box<str>, SqlError> {
    json::check(text)?;
    Ok(String::from(text).into_boxed_str())
}

/// The normal form of a `jsonpath`.
///
/// # Errors
/// Those of [`json::path::Path::parse`].
pub(crate) fn normal_path(text: &str) -> Result<Box<str>, SqlError> {
    let path = json::path::Path::parse(text)?;
    Ok(path.to_string().into_boxed_str())
}
