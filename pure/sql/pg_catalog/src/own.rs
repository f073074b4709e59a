//! `pg_prepared_statements` and `pg_cursors`: what the session itself tells, by settings whose
//! names no text has.

use super::{CatalogCx, array, flag, int, oid, text};
use base::{Datum, RowBatch, codec};

/// The setting that tells of the session's statements.
pub const STATEMENTS: &str = "\u{1}statements";
/// The setting that tells of the session's cursors.
pub const CURSORS: &str = "\u{1}cursors";

/// Name, text, when it was prepared (microseconds of `timestamptz`), types of its parameters,
/// whether by PREPARE.
pub type OwnStatement = (String, String, i64, Vec<u32>, bool);

/// Name, text, whether it is WITH HOLD, whether it can be read backward, when it was declared.
pub type OwnCursor = (String, String, bool, bool, i64);

/// The value of [`STATEMENTS`].
pub fn told_statements(statements: &[OwnStatement]) -> String {
    hex(&codec::to_vec(statements))
}

/// The value of [`CURSORS`].
pub fn told_cursors(cursors: &[OwnCursor]) -> String {
    hex(&codec::to_vec(cursors))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    digits.collect()
}

/// The bytes of a setting; none if the session does not tell.
fn told(cx: &CatalogCx<'_>, setting: &str) -> Vec<u8> {
    let value = (cx.setting)(setting).unwrap_or_default();
    let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

pub(super) fn statements(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let rows: Vec<OwnStatement> = codec::decode(&told(cx, STATEMENTS)).unwrap_or_default();
    for (name, statement, at, types, from_sql) in rows {
        out.push([
            text(name),
            text(statement),
            Datum::Timestamp(at),
            array(types.into_iter().map(oid)),
            flag(from_sql),
            // Each has one plan for all parameters; how often it runs is not counted here.
            int(0),
            int(0),
        ]);
    }
}

pub(super) fn cursors(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let rows: Vec<OwnCursor> = codec::decode(&told(cx, CURSORS)).unwrap_or_default();
    for (name, statement, holds, backward, at) in rows {
        out.push([
            text(name),
            text(statement),
            flag(holds),
            flag(false),
            flag(backward),
            Datum::Timestamp(at),
        ]);
    }
}
