//! Constraints: pg_constraint, and the list of them that other tables use.

use super::*;
use base::full_name::schema_of;
use catalog::{Action, Check, Deferral, ForeignKey, Validity};

/// A constraint of a table.
#[derive(Clone, Copy)]
pub(super) enum Constraint<'a> {
    /// PRIMARY KEY.
    Primary(&'a Index, &'a str),
    /// UNIQUE; its name is that of the index.
    Unique(&'a Index),
    /// CHECK.
    Check(usize, &'a Check),
    /// FOREIGN KEY.
    Foreign(usize, &'a ForeignKey),
}

/// The constraints of a table. NOT NULL is a property of columns and not listed, nor is what will
/// take the place of another constraint.
pub(super) fn of_table(table: &Table) -> impl Iterator<Item = Constraint<'_>> {
    let primary = table.key_index().filter(|index| index.constraint);
    let unique = table.secondary.iter();
    let unique = unique.filter(|index| index.constraint && !index.of_key);
    let checks = table.checks.iter().enumerate();
    let foreign = table.foreign_keys.iter().enumerate();
    primary
        .into_iter()
        .map(|index| Constraint::Primary(index, &index.name))
        .chain(unique.map(Constraint::Unique))
        .chain(checks.map(|(n, check)| Constraint::Check(n, check)))
        .chain(foreign.map(|(n, key)| Constraint::Foreign(n, key)))
        .filter(|constraint| !catalog::is_copy(constraint.name()))
}

impl<'a> Constraint<'a> {
    pub(super) fn name(self) -> &'a str {
        match self {
            Constraint::Primary(_, name) => name,
            Constraint::Unique(index) => &index.name,
            Constraint::Check(_, check) => &check.name,
            Constraint::Foreign(_, key) => &key.name,
        }
    }

    /// Its oid. Keys share the number of their index, which no other constraint has; the others
    /// are numbered within their table, above all catalog numbers.
    pub(super) fn oid(self, table: &Table) -> u32 {
        let numbered = |n: usize| 1 << 30 | (table.id.0 & 0x3f_ffff) << 8 | (n & 0x7f) as u32;
        match self {
            Constraint::Primary(index, _) | Constraint::Unique(index) => index.id.0,
            Constraint::Check(n, _) => numbered(n),
            Constraint::Foreign(n, _) => numbered(n) | 0x80,
        }
    }

    /// The letter of `contype`.
    fn letter(self) -> char {
        match self {
            Constraint::Primary(..) => 'p',
            Constraint::Unique(_) => 'u',
            Constraint::Check(..) => 'c',
            Constraint::Foreign(..) => 'f',
        }
    }

    /// The words of information_schema.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Constraint::Primary(..) => "PRIMARY KEY",
            Constraint::Unique(_) => "UNIQUE",
            Constraint::Check(..) => "CHECK",
            Constraint::Foreign(..) => "FOREIGN KEY",
        }
    }

    /// Whether all rows are known to meet it.
    pub(super) fn is_valid(self) -> bool {
        match self {
            Constraint::Primary(..) | Constraint::Unique(_) => true,
            Constraint::Check(_, check) => check.validity == Validity::Valid,
            Constraint::Foreign(_, key) => key.validity == Validity::Valid,
        }
    }

    /// When it is checked.
    pub(super) fn deferral(self) -> Deferral {
        match self {
            Constraint::Foreign(_, key) => key.deferral,
            Constraint::Primary(index, _) | Constraint::Unique(index) => index.deferral,
            Constraint::Check(..) => Deferral::Never,
        }
    }

    /// Positions of the columns that it is over, in its order; for a check those it mentions.
    pub(super) fn columns(self, table: &Table) -> Vec<u16> {
        match self {
            Constraint::Primary(index, _) | Constraint::Unique(index) => {
                index.columns.iter().map(|column| column.column).collect()
            }
            Constraint::Check(_, check) => table.columns_of_check(check),
            Constraint::Foreign(_, key) => key.columns.clone(),
        }
    }
}

/// The key of the parent that a foreign key points to: its index and constraint.
pub(super) fn target<'a>(
    cx: &CatalogCx<'a>,
    key: &ForeignKey,
) -> Option<(&'a Table, &'a Index, &'a str)> {
    let parent = cx.database.tables.get(&key.parent)?;
    let same = |index: &Index| {
        index.columns.len() == key.parent_columns.len()
            && index
                .columns
                .iter()
                .all(|column| key.parent_columns.contains(&column.column))
    };
    if let Some(name) = parent
        .primary_constraint
        .as_ref()
        .filter(|_| same(&parent.primary))
    {
        return Some((parent, &parent.primary, name));
    }
    let index = parent
        .secondary
        .iter()
        .find(|index| index.is_immediate() && same(index))?;
    Some((parent, index, &index.name))
}

/// The letter of `confdeltype` and `confupdtype`.
fn action(action: Action) -> char {
    match action {
        Action::NoAction => 'a',
        Action::Restrict => 'r',
        Action::Cascade => 'c',
        Action::SetNull => 'n',
        Action::SetDefault => 'd',
    }
}

/// Attribute numbers as an array; NULL for none.
fn numbers(table: &Table, columns: &[u16]) -> Datum {
    match columns {
        [] => Datum::Null,
        columns => array(columns.iter().map(|column| int(number(table, *column)))),
    }
}

pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for constraint in of_table(table) {
            push(cx, table, constraint, out);
        }
    }
    domains::constraints(cx, out);
}

fn push(cx: &CatalogCx<'_>, table: &Table, constraint: Constraint<'_>, out: &mut RowBatch) {
    let key = match constraint {
        Constraint::Foreign(_, key) => Some(key),
        _ => None,
    };
    let parent = key.and_then(|key| target(cx, key));
    let index = match constraint {
        Constraint::Primary(index, _) | Constraint::Unique(index) => index.id.0,
        Constraint::Check(..) => 0,
        Constraint::Foreign(..) => parent.map_or(0, |(_, index, _)| index.id.0),
    };
    let expression = match constraint {
        Constraint::Check(_, check) => text(cx.kept_text(&check.expression)),
        _ => Datum::Null,
    };
    // ' ' stands for "not a foreign key".
    let key_letter = |of: fn(&ForeignKey) -> char| letter(key.map_or(' ', of));
    out.push([
        oid(constraint.oid(table)),
        text(constraint.name()),
        oid(schema_of(&table.name)),
        letter(constraint.letter()),
        flag(constraint.deferral() != Deferral::Never),
        flag(constraint.deferral() == Deferral::Initial),
        flag(constraint.is_valid()),
        oid(table.id.0),
        oid(0),
        oid(index),
        oid(0),
        oid(parent.map_or(0, |(parent, ..)| parent.id.0)),
        key_letter(|key| action(key.on_update)),
        key_letter(|key| action(key.on_delete)),
        key_letter(|key| if key.match_full { 'f' } else { 's' }),
        flag(true),
        int(0),
        flag(!matches!(constraint, Constraint::Check(..))),
        numbers(table, &constraint.columns(table)),
        key.map_or(Datum::Null, |key| match parent {
            Some((parent, ..)) => numbers(parent, &key.parent_columns),
            None => Datum::Null,
        }),
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Null,
        Datum::Null,
        expression,
    ]);
}
