//! Statements about objects of the schema that have files of their own, by more than their first
//! word.

use super::words::Words;
use super::{Kind, absent, domains, policies, rights, routines, schemas, table_as};
use base::SqlError;

/// One of these files: parses the statement if it is one of its own.
type Own = fn(&mut Words<'_>) -> Result<Option<Kind>, SqlError>;

const ALL: &[Own] = &[
    routines::statement,
    domains::parse,
    rights::parse,
    policies::parse,
    schemas::parse,
    table_as::stored,
    absent::parse,
];

/// Parses the statement if it is one of them.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    for parse in ALL {
        if let Some(kind) = parse(words)? {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}
