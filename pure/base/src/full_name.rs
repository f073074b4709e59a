//! Names of objects with the number of their schema: by these the catalog knows tables, views,
//! sequences and types.
//!
//! A full name is `name` for what is in the first schema, [`PUBLIC_SCHEMA`], and
//! `MARK number MARK name` for everything else. [`MARK`] is no character of any text that a client
//! can send, so no name that a client writes is the full name of something else. The number of a
//! schema never changes; its name may.
//!
//! Texts for people must not have marks: [`named`] puts the names of schemas there.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

/// The schema `public` with which every database begins.
pub const PUBLIC_SCHEMA: u32 = 2200;

/// Set in the numbers of schemas that hold what a session made for itself. The other bits are the
/// backend number of the session.
const TEMPORARY: u32 = 1 << 31;

/// The number of the schema for what the session with this backend number makes for itself.
pub const fn temporary_of(pid: i32) -> u32 {
    TEMPORARY | pid as u32
}

/// The backend number of the session whose schema this is; `None`: it is no session's.
pub const fn session_of(schema: u32) -> Option<i32> {
    match schema {
        u32::MAX => None,
        _ if schema & TEMPORARY == 0 => None,
        _ => Some((schema & !TEMPORARY) as i32),
    }
}

/// Whether a schema holds what a session made for itself.
pub const fn is_temporary(schema: u32) -> bool {
    session_of(schema).is_some()
}

/// Whether an object goes with its session, by its full name.
pub fn is_temporary_name(full: &str) -> bool {
    is_temporary(schema_of(full))
}

/// Stands around the number of a schema.
pub const MARK: char = '\0';

/// The full name of an object of a schema.
pub fn full(schema: u32, name: &str) -> String {
    match schema {
        PUBLIC_SCHEMA => name.into(),
        other => format!("{MARK}{other}{MARK}{name}"),
    }
}

/// The schema and the name of a full name.
pub fn split(full: &str) -> (u32, &str) {
    let parts = full.strip_prefix(MARK).and_then(|rest| {
        let (number, name) = rest.split_once(MARK)?;
        Some((number.parse().ok()?, name))
    });
    parts.unwrap_or((PUBLIC_SCHEMA, full))
}

/// The name without its schema.
pub fn own(full: &str) -> &str {
    split(full).1
}

/// The schema of a full name.
pub fn schema_of(full: &str) -> u32 {
    split(full).0
}

/// The full name of another object in the schema of this one.
pub fn beside(other: &str, name: &str) -> String {
    full(schema_of(other), name)
}

/// The text with `prefix` of a schema in place of its number, or nothing behind a quote: there
/// only the name itself is shown.
pub fn named<'t>(text: &'t str, prefix: &dyn Fn(u32) -> String) -> Cow<'t, str> {
    if !text.contains(MARK) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(MARK) {
        out.push_str(before);
        let found = after.split_once(MARK);
        let Some((number, behind)) = found.and_then(|(number, behind)| {
            let number: u32 = number.parse().ok()?;
            Some((number, behind))
        }) else {
            rest = after;
            continue;
        };
        if !out.ends_with(['"', '\u{201c}']) {
            out.push_str(&prefix(number));
        }
        rest = behind;
    }
    out.push_str(rest);
    out.into()
}

/// The text with names alone.
pub fn bare(text: &str) -> Cow<'_, str> {
    named(text, &|_| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_are_split_as_they_were_made() {
        assert_eq!(full(PUBLIC_SCHEMA, "t"), "t");
        for (schema, name) in [
            (PUBLIC_SCHEMA, "t"),
            (16_400, "t"),
            (16_400, ""),
            (7, "a.b"),
        ] {
            assert_eq!(split(&full(schema, name)), (schema, name));
        }
        assert_eq!(beside(&full(7, "t"), "i"), full(7, "i"));
        assert_eq!(split("\0x\0t"), (PUBLIC_SCHEMA, "\0x\0t"));
    }

    #[test]
    fn schemas_of_sessions_are_told_apart() {
        for pid in [1, 2_097_153, i32::MAX - 1] {
            assert_eq!(session_of(temporary_of(pid)), Some(pid));
        }
        for other in [0, 11, PUBLIC_SCHEMA, 16_400, u32::MAX] {
            assert!(!is_temporary(other));
        }
        assert!(is_temporary_name(&full(temporary_of(5), "t")));
        assert!(!is_temporary_name("t"));
    }

    #[test]
    fn people_see_no_marks() {
        let shown = |text: &str| named(text, &|number| format!("s{number}.")).into_owned();
        let table = full(7, "t");
        assert_eq!(
            shown(&format!("table {table} is there")),
            "table s7.t is there"
        );
        assert_eq!(shown(&format!("relation \"{table}\"")), "relation \"t\"");
        for odd in ["\0", "\0\0", "\0x\0t", "a\0", "\u{0}7"] {
            assert!(!shown(odd).contains(MARK), "{odd:?}");
        }
        assert_eq!(bare(&table), "t");
    }
}
