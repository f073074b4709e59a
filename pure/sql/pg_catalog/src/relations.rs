//! Rows about tables, indexes and sequences: pg_class, pg_index, pg_sequence, pg_depend.

use super::types::opclass_named;
use super::*;
use ::functions::keywords::quote_ident;
use base::full_name::{is_temporary, schema_of};
use catalog::{Sequence, View};

/// What differs between the rows of pg_class; the rest is constant.
struct Class<'a> {
    oid: u32,
    name: &'a str,
    schema: u32,
    method: u32,
    kind: char,
    columns: usize,
    checks: usize,
    has_index: bool,
    has_triggers: bool,
    is_rule: bool,
    /// `d` by the primary key, `n` nothing.
    replica_identity: char,
    shared: bool,
    /// Row security is enabled, and forced.
    guarded: (bool, bool),
    options: Datum,
    populated: bool,
    /// Of what has rows that users see; 0: there is none.
    row_type: u32,
}

impl Class<'_> {
    fn push(self, cx: &CatalogCx<'_>, out: &mut RowBatch) {
        let target = ::rights::Target::Relation(self.oid);
        let owner = match self.kind {
            'i' => cx.owner(self.oid),
            'c' => cx
                .catalog
                .rights
                .owner(&::rights::Target::Relation(self.row_type)),
            _ => cx.catalog.rights.owner(&target),
        };
        let stored = matches!(self.kind, 'r' | 'i' | 'S' | 'm');
        out.push([
            oid(self.oid),
            text(own(self.name)),
            oid(self.schema),
            oid(self.row_type),
            oid(0),
            oid(owner.0),
            oid(self.method),
            oid(if stored { self.oid } else { 0 }),
            oid(0),
            int(0),
            Datum::Float(if self.kind == 'r' { -1.0 } else { 0.0 }), // reltuples: unknown
            int(0),
            oid(0), // reltoastrelid
            flag(self.has_index),
            flag(self.shared),
            letter(if is_temporary(self.schema) { 't' } else { 'p' }),
            letter(self.kind),
            int(self.columns),
            int(self.checks),
            flag(self.is_rule),
            flag(self.has_triggers),
            flag(false),
            flag(self.guarded.0),
            flag(self.guarded.1),
            flag(self.populated),
            letter(self.replica_identity),
            flag(false), // relispartition
            oid(0),
            oid(0),
            oid(0),
            cx.acl(&target),
            self.options,
            Datum::Null,
        ]);
    }
}

pub(super) fn class(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in all() {
        let shared = matches!(table.name, "pg_database" | "pg_authid" | "pg_tablespace");
        let (method, columns) = (
            if table.kind == 'r' { HEAP } else { 0 },
            table.columns.len(),
        );
        Class {
            schema: schema_oid(table.schema),
            is_rule: table.kind == 'v',
            shared,
            ..plain(table.oid, table.name, method, table.kind, columns)
        }
        .push(cx, out);
    }
    for table in cx.tables() {
        let columns = visible(table).count();
        let stored = cx.database.stored_view(&table.name);
        let kind = if stored.is_some() { 'm' } else { 'r' };
        Class {
            checks: table.checks.len(),
            has_index: indexes(table).next().is_some(),
            has_triggers: table.has_keys(),
            replica_identity: 'd',
            guarded: guarded(cx, table),
            options: options(table),
            is_rule: stored.is_some(),
            populated: stored.is_none_or(|stored| stored.filled),
            row_type: types::row_type(table.id.0),
            ..plain(table.id.0, &table.name, HEAP, kind, columns)
        }
        .push(cx, out);
        for (index, _) in indexes(table) {
            let columns = index.columns.len() + index.included.len();
            Class {
                schema: schema_of(&table.name),
                ..plain(index.id.0, &index.name, BTREE, 'i', columns)
            }
            .push(cx, out);
        }
    }
    for sequence in cx.database.sequences.values() {
        plain(sequence.id.0, &sequence.name, 0, 'S', 3).push(cx, out);
    }
    for found in cx.database.enums.values() {
        if let (Some(id), Some(attributes)) = (found.class_id(), &found.attributes) {
            Class {
                row_type: found.id,
                ..plain(id, &found.name, 0, 'c', attributes.len())
            }
            .push(cx, out);
        }
    }
    for view in cx.views() {
        Class {
            is_rule: true,
            options: view_options(view),
            row_type: types::row_type(view.id.0),
            ..plain(view.id.0, &view.name, 0, 'v', view.columns.len())
        }
        .push(cx, out);
    }
}

/// Whether row security is enabled, and forced on the owner.
pub(super) fn guarded(cx: &CatalogCx<'_>, table: &Table) -> (bool, bool) {
    let security = cx.database.rows_of(table.id);
    security.map_or((false, false), |security| {
        (security.enabled, security.forced)
    })
}

/// A relation of users without anything special.
fn plain(id: u32, name: &str, method: u32, kind: char, columns: usize) -> Class<'_> {
    Class {
        oid: id,
        name,
        schema: schema_of(name),
        method,
        kind,
        columns,
        checks: 0,
        has_index: false,
        has_triggers: false,
        is_rule: false,
        replica_identity: 'n',
        shared: false,
        guarded: (false, false),
        options: Datum::Null,
        populated: true,
        row_type: 0,
    }
}

/// The check option of a view.
fn view_options(view: &View) -> Datum {
    match view.check {
        None => Datum::Null,
        Some(false) => array([text("check_option=local")]),
        Some(true) => array([text("check_option=cascaded")]),
    }
}

/// What is special about the placement of a table, in the place of storage options: `\d+` shows it.
fn options(table: &Table) -> Datum {
    let mut options = Vec::new();
    if table.replicated {
        options.push(text("replicated=true"));
    }
    let first = table.primary.columns.first().map(|column| column.column);
    let by_default = table.partition.len() == 1 && table.partition.first().copied() == first;
    if !by_default && !table.partition.is_empty() && table.primary_constraint.is_some() {
        let names: Vec<_> = table
            .partition
            .iter()
            .map(|&at| quote_ident(&table.columns[at as usize].name))
            .collect();
        options.push(text(format!("partition_by=({})", names.join(", "))));
    }
    if options.is_empty() {
        Datum::Null
    } else {
        array(options)
    }
}

/// Type of a key column.
fn key_type(table: &Table, column: &catalog::IndexColumn) -> Type {
    table.columns[column.column as usize].ty
}

pub(super) fn index(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for (index, primary) in indexes(table) {
            let keys = || index.columns.iter();
            let shown = |text: Option<String>| text.map(|text| cx.kept_text(&text));
            let collation = |key: &catalog::IndexColumn| {
                let named = table.column_at(key.column).collation;
                match key_type(table, key).is_text() {
                    true if named > 0 => oid(named),
                    true => oid(COLLATION),
                    false => oid(0),
                }
            };
            out.push([
                oid(index.id.0),
                oid(table.id.0),
                int(index.columns.len() + index.included.len()),
                int(index.columns.len()),
                flag(index.unique || primary),
                flag(index.nulls_equal),
                flag(primary),
                flag(false),
                flag(!index.is_deferrable()),
                flag(false),
                flag(!index.building),
                flag(false),
                flag(true),
                flag(true),
                flag(false),
                array(numbers(table, index).map(int)),
                array(keys().map(collation)),
                array(keys().enumerate().map(|(at, column)| {
                    let class = index.classes.get(at).and_then(Option::as_deref);
                    oid(opclass_named(class, key_type(table, column)))
                })),
                // Bit 0: descending; bit 1: NULLs first.
                array(
                    index.columns.iter().map(|key| {
                        int(i64::from(key.descending) | i64::from(key.nulls_first) << 1)
                    }),
                ),
                optional(shown(definitions::expressions(table, index))),
                optional(shown(definitions::predicate(table, index))),
            ]);
        }
    }
}

/// The numbers of the columns of an index; 0 for an expression.
fn numbers(table: &Table, index: &Index) -> impl Iterator<Item = u16> {
    let keys = index.columns.iter().map(|key| key.column);
    let all = keys.chain(index.included.iter().copied());
    all.map(|column| match table.columns[usize::from(column)].of_index {
        true => 0,
        false => number(table, column),
    })
}

/// One row per key column of every index: what `_pg_expandarray(indkey)` would give.
pub(super) fn index_keys(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for (index, _) in indexes(table) {
            for (position, number) in numbers(table, index).enumerate() {
                out.push([oid(index.id.0), int(number), int(position + 1)]);
            }
        }
    }
}

pub(super) fn sequence(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for sequence in cx.database.sequences.values() {
        out.push([
            oid(sequence.id.0),
            oid(sequence.ty.oid()),
            int(sequence.start),
            int(sequence.increment),
            int(sequence.max),
            int(sequence.min),
            int(1),
            flag(sequence.cycle),
        ]);
    }
}

/// Table and column that own a sequence: (table, attribute number, whether it is an identity).
pub(super) fn owner<'a>(
    cx: &CatalogCx<'a>,
    sequence: &Sequence,
) -> Option<(&'a Table, usize, bool)> {
    let (table, column) = sequence.owned_by.as_ref()?;
    let table = cx.database.tables.get(table)?;
    let (at, column) = visible(table).find(|(_, other)| other.name == *column)?;
    Some((table, at + 1, column.identity.is_some()))
}

/// Which sequence belongs to which column, and what views use; other dependencies are not listed.
pub(super) fn depend(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    const PG_CLASS: u32 = 1259;
    for sequence in cx.database.sequences.values() {
        if let Some((table, attribute, identity)) = owner(cx, sequence) {
            out.push([
                oid(PG_CLASS),
                oid(sequence.id.0),
                int(0),
                oid(PG_CLASS),
                oid(table.id.0),
                int(attribute),
                letter(if identity { 'i' } else { 'a' }),
            ]);
        }
    }
    columns::depend(cx, out);
    user_views::depend(cx, out);
    routines::depend(cx, out);
    domains::depend(cx, out);
}
