//! Statements, parameters and values between PostgreSQL's form and MySQL's.

use crate::link::{LinkError, ParamType};
use mysql_common::constants::ColumnType;
use mysql_common::value::Value;
use std::fmt::Write;
use workload::dialect::Dialect;

/// The statement with a question mark for each `$n`, and which parameter each stands for.
pub(super) fn with_question_marks(sql: &str) -> (String, Vec<u16>) {
    let mut out = String::with_capacity(sql.len());
    let mut places = Vec::new();
    let mut rest = sql;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u16 = rest[..digits].parse().expect("a dollar begins a parameter");
        rest = &rest[digits..];
        out.push('?');
        places.push(number - 1);
    }
    out.push_str(rest);
    (out, places)
}

/// A statement in PostgreSQL's words in those of MySQL. What it does not know stays as it is.
pub(super) fn in_own_words(sql: &str) -> String {
    if let Some(level) = sql.strip_prefix("SET default_transaction_isolation = ") {
        let level = level.trim_matches('\'').to_uppercase();
        return format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
    }
    let sql = Dialect::MySql.statement(sql);
    let parts = sql.split_once(" ON CONFLICT (");
    let parts = parts.and_then(|(insert, rest)| {
        let (_, changes) = rest.split_once(") DO UPDATE SET ")?;
        Some((insert, changes))
    });
    let Some((insert, changes)) = parts else {
        return sql;
    };
    // `VALUES(v)` would be the word, but MariaDB 10.11 has put other bytes into texts by it.
    let list = |text: &str, behind: &str| {
        let (_, rest) = text.split_once(behind)?;
        let (list, _) = rest.split_once(')')?;
        Some(list.split(", ").map(str::to_owned).collect::<Vec<_>>())
    };
    let (columns, values) = (list(insert, " ("), list(insert, " VALUES ("));
    let (columns, values) = (columns.unwrap_or_default(), values.unwrap_or_default());
    let given = columns.iter().zip(&values);
    let changes = given.fold(changes.to_owned(), |changes, (column, value)| {
        changes.replace(&format!("excluded.{column}"), value)
    });
    format!("{insert} ON DUPLICATE KEY UPDATE {changes}")
}

/// The answer of an insert of one row that changes the row where it is there already.
pub(super) const UPSERT: &str = "UPSERT";

/// The word by which PostgreSQL answers such a statement; empty: another one.
pub(super) fn verb_of(sql: &str) -> &'static str {
    if sql.contains(" ON DUPLICATE KEY UPDATE ") {
        return UPSERT;
    }
    let word = sql.trim_start().split([' ', ';', '(']).next().unwrap_or("");
    let known = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK",
    ];
    let mut known = known.into_iter();
    match word.eq_ignore_ascii_case("START") {
        true => "BEGIN",
        false => known
            .find(|verb| word.eq_ignore_ascii_case(verb))
            .unwrap_or(""),
    }
}

/// The body of an execution behind its command.
pub(super) fn push_execute(
    id: u32,
    places: &[u16],
    types: &[ParamType],
    params: &[Option<&[u8]>],
    out: &mut Vec<u8>,
) -> Result<(), LinkError> {
    out.extend_from_slice(&id.to_le_bytes());
    // No cursor, once.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
    let count = places.len();
    if count == 0 {
        return Ok(());
    }
    let nulls = out.len();
    out.resize(nulls + count.div_ceil(8), 0);
    out.push(1);
    for place in places {
        let kind = match types[usize::from(*place)] {
            ParamType::Int | ParamType::BigInt | ParamType::Bool => ColumnType::MYSQL_TYPE_LONGLONG,
            ParamType::Numeric => ColumnType::MYSQL_TYPE_NEWDECIMAL,
            ParamType::Text | ParamType::Timestamp | ParamType::Double | ParamType::Bytea => {
                ColumnType::MYSQL_TYPE_VAR_STRING
            }
        };
        out.extend_from_slice(&[kind as u8, 0]);
    }
    for (at, place) in places.iter().enumerate() {
        let place = usize::from(*place);
        let Some(text) = params[place] else {
            out[nulls + at / 8] |= 1 << (at % 8);
            continue;
        };
        match types[place] {
            ParamType::Int | ParamType::BigInt | ParamType::Bool => {
                let number = std::str::from_utf8(text)
                    .ok()
                    .and_then(|it| it.parse().ok());
                let number: i64 = number.ok_or(LinkError::Protocol("a parameter is no number"))?;
                out.extend_from_slice(&number.to_le_bytes());
            }
            ParamType::Numeric
            | ParamType::Text
            | ParamType::Timestamp
            | ParamType::Double
            | ParamType::Bytea => {
                push_length(text.len(), out);
                out.extend_from_slice(text);
            }
        }
    }
    Ok(())
}

/// A length in front of its bytes.
fn push_length(length: usize, out: &mut Vec<u8>) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// A value as PostgreSQL writes it; `None`: NULL.
pub(super) fn text_of(value: Value) -> Option<Vec<u8>> {
    let mut text = String::new();
    let written = match value {
        Value::NULL => return None,
        Value::Bytes(bytes) => return Some(bytes),
        Value::Int(number) => write!(text, "{number}"),
        Value::UInt(number) => write!(text, "{number}"),
        Value::Float(number) => write!(text, "{number}"),
        Value::Double(number) => write!(text, "{number}"),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let date = write!(
                text,
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
            );
            date.and_then(|()| push_fraction(micros, &mut text))
        }
        Value::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let sign = if is_negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hours);
            let time = write!(text, "{sign}{hours:02}:{minutes:02}:{seconds:02}");
            time.and_then(|()| push_fraction(micros, &mut text))
        }
    };
    written.expect("text takes everything");
    Some(text.into_bytes())
}

/// Microseconds without the zeros at their end.
fn push_fraction(micros: u32, out: &mut String) -> std::fmt::Result {
    if micros == 0 {
        return Ok(());
    }
    let digits = format!("{micros:06}");
    write!(out, ".{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_where_the_statement_wants_them() {
        let (sql, places) = with_question_marks("UPDATE t SET a = $3 WHERE b = $1 AND c = $10");
        assert_eq!(sql, "UPDATE t SET a = ? WHERE b = ? AND c = ?");
        assert_eq!(places, [2, 0, 9]);
    }

    #[test]
    fn words_of_postgresql_become_those_of_mysql() {
        let upsert = "INSERT INTO t (k, v) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET \
                      v = t.v || ',' || excluded.v, w = excluded.v";
        assert_eq!(
            in_own_words(upsert),
            "INSERT INTO t (k, v) VALUES ($1, $2) ON DUPLICATE KEY UPDATE \
             v = t.v || ',' || $2, w = $2"
        );
        assert_eq!(verb_of(&in_own_words(upsert)), UPSERT);
        assert_eq!(
            in_own_words("SET default_transaction_isolation = 'repeatable read'"),
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        );
        assert_eq!(
            in_own_words("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"),
            "START TRANSACTION READ ONLY"
        );
        assert_eq!(in_own_words("SELECT 1"), "SELECT 1");
    }

    #[test]
    fn an_execution_has_types_and_values_in_the_order_of_places() {
        let types = [ParamType::Int, ParamType::Text, ParamType::Numeric];
        let push = |params: &[Option<&[u8]>], out: &mut Vec<u8>| {
            push_execute(7, &[1, 0, 2], &types, params, out)
        };
        let mut out = Vec::new();
        push(&[Some(b"-2"), Some(b"abc"), None], &mut out).unwrap();
        let mut wanted = vec![7, 0, 0, 0, 0, 1, 0, 0, 0, 0b100, 1, 253, 0, 8, 0, 246, 0];
        wanted.extend_from_slice(b"\x03abc");
        wanted.extend_from_slice(&(-2i64).to_le_bytes());
        assert_eq!(out, wanted);
        let error = push(&[Some(b"x"), None, None], &mut Vec::new());
        assert!(matches!(error, Err(LinkError::Protocol(_))));
    }

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        let bytes = |length| {
            let mut out = Vec::new();
            push_length(length, &mut out);
            out
        };
        assert_eq!(bytes(250), [250]);
        assert_eq!(bytes(251), [0xfc, 251, 0]);
        assert_eq!(bytes(0x1_0000), [0xfd, 0, 0, 1]);
        assert_eq!(bytes(0x100_0000), [0xfe, 0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn values_are_written_as_postgresql_writes_them() {
        let text = |value| String::from_utf8(text_of(value).unwrap()).unwrap();
        assert_eq!(text(Value::Int(-5)), "-5");
        assert_eq!(
            text(Value::Date(2026, 1, 2, 3, 4, 5, 60_000)),
            "2026-01-02 03:04:05.06"
        );
        assert_eq!(text(Value::Time(true, 1, 2, 0, 0, 0)), "-26:00:00");
        assert_eq!(text_of(Value::NULL), None);
    }

    #[test]
    fn statements_are_called_as_postgresql_calls_them() {
        assert_eq!(verb_of("  select 1"), "SELECT");
        assert_eq!(verb_of("START TRANSACTION READ ONLY"), "BEGIN");
        assert_eq!(verb_of("SET a = 1"), "");
    }
}
