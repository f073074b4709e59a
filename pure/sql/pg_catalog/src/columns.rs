//! Rows about columns: pg_attribute and pg_attrdef.

use super::types::traits;
use super::*;
use catalog::Identity;

/// What differs between the rows of pg_attribute.
struct Attribute<'a> {
    relation: u32,
    name: &'a str,
    ty: Type,
    number: usize,
    not_null: bool,
    has_default: bool,
    identity: Option<Identity>,
}

impl Attribute<'_> {
    fn push(self, cx: &CatalogCx<'_>, out: &mut RowBatch) {
        let traits = traits(self.ty);
        let identity = match self.identity {
            None => '\0',
            Some(Identity::Always) => 'a',
            Some(Identity::ByDefault) => 'd',
        };
        out.push([
            oid(self.relation),
            text(self.name),
            oid(self.ty.oid()),
            int(-1),
            int(self.ty.typlen()),
            int(self.number),
            int(i64::from(self.ty.element().is_some())),
            int(-1),
            int(self.ty.typmod()),
            flag(traits.by_value),
            letter(traits.align),
            letter(traits.storage),
            letter('\0'),
            flag(self.not_null),
            flag(self.has_default),
            flag(false),
            letter(identity),
            letter('\0'),
            flag(false),
            flag(true),
            int(0),
            oid(traits.collation),
            cx.column_acl(self.relation, self.number.saturating_sub(1) as u16),
            Datum::Null,
            Datum::Null,
            Datum::Null,
        ]);
    }
}

/// A column without default.
fn plain(relation: u32, name: &str, ty: Type, number: usize, not_null: bool) -> Attribute<'_> {
    let has_default = false;
    Attribute {
        relation,
        name,
        ty,
        number,
        not_null,
        has_default,
        identity: None,
    }
}

pub(super) fn attribute(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in all() {
        for (at, column) in table.columns.iter().enumerate() {
            plain(table.oid, column.name, column.ty, at + 1, false).push(cx, out);
        }
    }
    for table in cx.tables() {
        for (at, column) in visible(table) {
            Attribute {
                has_default: column.default.is_some(),
                identity: column.identity,
                ..plain(table.id.0, &column.name, column.ty, at + 1, column.not_null)
            }
            .push(cx, out);
        }
        for (index, _) in indexes(table) {
            for (at, key) in index.columns.iter().enumerate() {
                let column = &table.columns[key.column as usize];
                plain(index.id.0, &column.name, column.ty, at + 1, false).push(cx, out);
            }
        }
    }
    for sequence in cx.database.sequences.values() {
        let columns = [
            ("last_value", Type::Int8),
            ("log_cnt", Type::Int8),
            ("is_called", Type::Bool),
        ];
        for (at, (name, ty)) in columns.into_iter().enumerate() {
            plain(sequence.id.0, name, ty, at + 1, true).push(cx, out);
        }
    }
    for view in cx.views() {
        for (at, column) in view.columns.iter().enumerate() {
            plain(view.id.0, &column.name, column.ty, at + 1, false).push(cx, out);
        }
    }
}

/// The number of a column's default: table and position in one, apart from catalog numbers, which
/// stay below 2^31 by far.
fn default_oid(table: &Table, at: usize) -> u32 {
    1 << 31 | (table.id.0 & 0xf_ffff) << 11 | at as u32
}

pub(super) fn attrdef(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for (at, column) in visible(table) {
            if let Some(default) = &column.default {
                let number = oid(default_oid(table, at));
                let shown = definitions::default(column, default);
                let shown = cx.shown(&cx.database.named_types(&cx.kept_text(&shown)));
                out.push([number, oid(table.id.0), int(at + 1), text(shown)]);
            }
        }
    }
}

/// What defaults depend on, in pg_depend: their column, and the sequence that they draw from.
pub(super) fn depend(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    const PG_ATTRDEF: u32 = 2604;
    const PG_CLASS: u32 = 1259;
    for table in cx.tables() {
        for (at, column) in visible(table) {
            let Some(default) = &column.default else {
                continue;
            };
            let mut push = |relation: u32, number: usize, kind: char| {
                let own = [oid(PG_ATTRDEF), oid(default_oid(table, at)), int(0)];
                let used = [oid(PG_CLASS), oid(relation), int(number), letter(kind)];
                out.push(own.into_iter().chain(used));
            };
            push(table.id.0, at + 1, 'a');
            for sequence in cx.database.sequences.values() {
                if catalog::draws_from(default, &sequence.name) {
                    push(sequence.id.0, 0, 'n');
                }
            }
        }
    }
}
