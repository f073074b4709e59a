//! Names for indexes and constraints that the user did not name and that later steps of the same
//! change must know.

use base::full_name::{beside, own};
use base::limits::NAME_BYTES_MAX;
use catalog::{Database, Table};

/// `first_columns_label`, cut to the length of an identifier.
fn compose(first: &str, columns: &[String], label: &str) -> String {
    let (first, second) = (own(first), columns.join("_"));
    let room = NAME_BYTES_MAX.saturating_sub(label.len() + 2);
    let (mut a, mut b) = (first.to_string(), second);
    while a.len() + b.len() > room {
        if a.len() > b.len() {
            a.pop()
        } else {
            b.pop()
        };
    }
    let parts = [a.as_str(), b.as_str(), label];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("_")
}

fn numbered(taken: impl Fn(&str) -> bool, name: impl Fn(&str) -> String, label: &str) -> String {
    let first = name(label);
    if !taken(&first) {
        return first;
    }
    (1u32..)
        .map(|number| name(&format!("{label}{number}")))
        .find(|name| !taken(name))
        .expect("one of four billion names is free")
}

/// A free name among tables, indexes and sequences, as PostgreSQL chooses it.
pub(super) fn free_name(
    database: &Database,
    table: &str,
    columns: &[String],
    label: &str,
) -> String {
    let taken = |name: &str| database.has_relation(&beside(table, name));
    numbered(taken, |label| compose(table, columns, label), label)
}

/// A free name for a primary key of the table, which has none, or loses the one that it has.
pub(super) fn free_key_name(database: &Database, table: &Table) -> String {
    let goes = table.primary_constraint.as_deref();
    let taken =
        |name: &str| goes != Some(name) && database.has_relation(&beside(&table.name, name));
    numbered(taken, |label| compose(&table.name, &[], label), "pkey")
}

/// A free name among the constraints of a table.
pub(super) fn constraint_name(table: &Table, columns: &[String], label: &str) -> String {
    let taken = |name: &str| table.has_constraint(name);
    numbered(taken, |label| compose(&table.name, columns, label), label)
}
