//! Views of `information_schema` about types: composite types and their fields, types of columns,
//! elements of arrays; character sets and collations.

use super::schema::{here, measures, placed, plain_tables, span_words, type_word, udt};
use super::sees::READS;
use super::*;

/// A column of a table or view, as its role sees it.
struct Seen<'a> {
    schema: &'a str,
    relation: &'a str,
    name: &'a str,
    /// From 1.
    number: usize,
    ty: Type,
    is_domain: bool,
}

/// Passes each column that the session's role sees.
fn each_column(cx: &CatalogCx<'_>, each: &mut dyn FnMut(Seen<'_>)) {
    for table in all().filter(|table| cx.sees(table.oid, READS)) {
        for (at, column) in table.columns.iter().enumerate() {
            each(Seen {
                schema: table.schema,
                relation: table.name,
                name: column.name,
                number: at + 1,
                ty: column.ty,
                is_domain: false,
            });
        }
    }
    for table in plain_tables(cx) {
        for (at, column) in visible(table).filter(|(at, _)| cx.sees_column(table.id.0, at + 1)) {
            each(Seen {
                schema: cx.schema_name(&table.name),
                relation: own(&table.name),
                name: &column.name,
                number: at + 1,
                ty: column.ty,
                is_domain: column.domain.is_some(),
            });
        }
    }
    for view in cx.views() {
        let columns = view.columns.iter().enumerate();
        for (at, column) in columns.filter(|(at, _)| cx.sees_column(view.id.0, at + 1)) {
            each(Seen {
                schema: cx.schema_name(&view.name),
                relation: own(&view.name),
                name: &column.name,
                number: at + 1,
                ty: column.ty,
                is_domain: false,
            });
        }
    }
}

/// `information_schema.column_udt_usage`.
pub(super) fn column_types(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    each_column(cx, &mut |seen| {
        let (schema, name) = udt(cx, seen.ty);
        out.push([
            here(cx),
            text(schema),
            text(name),
            here(cx),
            text(seen.schema),
            text(seen.relation),
            text(seen.name),
        ]);
    });
}

/// `information_schema.element_types`: of columns and of fields of composite types.
pub(super) fn elements(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let mut push = |of: [&str; 3], number: usize, ty: Type| {
        let Some(element) = ty.element() else {
            return;
        };
        let (schema, name) = udt(cx, element);
        let mut row = vec![here(cx)];
        row.extend(of.map(text));
        row.extend([text(number.to_string()), text(type_word(element))]);
        row.extend(core::iter::repeat_n(Datum::Null, 15));
        row.extend([here(cx), text(schema), text(name)]);
        row.extend(core::iter::repeat_n(Datum::Null, 4));
        row.push(text(format!("a{number}")));
        out.push(row);
    };
    each_column(cx, &mut |seen| {
        if !seen.is_domain {
            push([seen.schema, seen.relation, "TABLE"], seen.number, seen.ty);
        }
    });
    for found in cx.database.enums.values() {
        let of = [
            cx.schema_name(&found.name),
            own(&found.name),
            "USER-DEFINED TYPE",
        ];
        for (at, field) in found.attributes.iter().flatten().enumerate() {
            push(of, at + 1, field.ty);
        }
    }
}

/// `information_schema.attributes`: fields of composite types.
pub(super) fn attributes(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for found in cx.database.enums.values() {
        for (at, field) in found.attributes.iter().flatten().enumerate() {
            let [characters, bytes, precision, radix, scale, moment] = measures(field.ty);
            let (schema, name) = udt(cx, field.ty);
            let mut row = Vec::from(placed(cx, &found.name));
            row.extend([text(field.name.as_str()), int(at + 1), Datum::Null]);
            row.extend([yes_no(true), text(type_word(field.ty)), characters, bytes]);
            row.extend(core::iter::repeat_n(Datum::Null, 6));
            row.extend([precision, radix, scale, moment, span_words(field.ty)]);
            row.extend([Datum::Null, here(cx), text(schema), text(name)]);
            row.extend(core::iter::repeat_n(Datum::Null, 4));
            row.extend([text((at + 1).to_string()), yes_no(false)]);
            out.push(row);
        }
    }
}

/// `information_schema.user_defined_types`: composite types.
pub(super) fn composites(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let width = lookup(Some("information_schema"), "user_defined_types");
    let width = width.map_or(0, |view| view.columns.len());
    for found in cx.database.enums.values() {
        if found.attributes.is_some() {
            let mut row = Vec::from(placed(cx, &found.name));
            row.extend([text("STRUCTURED"), yes_no(true)]);
            row.resize(width, Datum::Null);
            out.push(row);
        }
    }
}

/// `information_schema.collations`.
pub(super) fn collations(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for name in ["default", "C", "POSIX"] {
        out.push([here(cx), text("pg_catalog"), text(name), text("NO PAD")]);
    }
}

/// `information_schema.character_sets`: the only one.
pub(super) fn character_sets(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let mut row = vec![Datum::Null, Datum::Null];
    row.extend([text("UTF8"), text("UCS"), text("UTF8"), here(cx)]);
    row.extend([Datum::Null, Datum::Null]);
    out.push(row);
}
