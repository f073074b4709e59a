//! Domains: their rows of pg_type and pg_constraint, and the views of `information_schema`.

use super::types::{by_oid, traits};
use super::*;
use base::full_name::schema_of;
use catalog::{Domain, DomainCheck};

/// Functions by which values of a domain are read.
const INPUT: [u32; 2] = [2597, 2598];

/// The domain of this number.
pub(super) fn by_id<'a>(cx: &CatalogCx<'a>, id: u32) -> Option<&'a Domain> {
    cx.database.domain_by_id(id).map(|found| &**found)
}

/// Rows of pg_type.
pub(super) fn types(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for domain in cx.database.domains.values() {
        let below = traits(domain.ty);
        let base = by_oid(domain.ty.oid()).unwrap_or(below);
        let target = ::rights::Target::Relation(domain.id);
        let owner = cx.catalog.rights.owner(&target);
        let default = domain.default.as_ref().map(|text| cx.kept_text(text));
        out.push([
            oid(domain.id),
            text(own(&domain.name)),
            oid(schema_of(&domain.name)),
            oid(owner.0),
            int(domain.ty.typlen()),
            flag(below.by_value),
            letter('d'),
            letter(base.category),
            flag(false),
            flag(true),
            letter(','),
            oid(0),
            oid(0),
            oid(0),
            oid(0),
            oid(INPUT[0]),
            oid(base.io[1]),
            oid(INPUT[1]),
            oid(base.io[3]),
            oid(0),
            oid(0),
            oid(0),
            letter(below.align),
            letter(below.storage),
            flag(domain.not_null),
            oid(domain.over.unwrap_or(domain.ty.oid())),
            int(match domain.over {
                Some(_) => -1,
                None => domain.ty.typmod(),
            }),
            int(0),
            oid(below.collation),
            optional(default.clone()),
            optional(default),
            Datum::Null,
        ]);
    }
}

/// Rows of pg_constraint.
pub(super) fn constraints(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (domain, check) in checks(cx) {
        out.push([
            oid(check.id),
            text(check.name.as_str()),
            oid(schema_of(&domain.name)),
            letter('c'),
            flag(false),
            flag(false),
            flag(true),
            oid(0),
            oid(domain.id),
            oid(0),
            oid(0),
            oid(0),
            letter(' '),
            letter(' '),
            letter(' '),
            flag(true),
            int(0),
            flag(false),
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            Datum::Null,
            text(cx.kept_text(&check.expression)),
        ]);
    }
}

fn checks<'a>(cx: &CatalogCx<'a>) -> impl Iterator<Item = (&'a Domain, &'a DomainCheck)> {
    let domains = cx.database.domains.values();
    domains.flat_map(|domain| domain.checks.iter().map(move |check| (&**domain, check)))
}

/// A condition for people.
fn condition(cx: &CatalogCx<'_>, check: &DomainCheck) -> String {
    cx.kept_text(&check.expression)
}

/// `pg_get_constraintdef` of a condition of a domain.
pub(super) fn definition(cx: &CatalogCx<'_>, id: u32, pretty: bool) -> Option<String> {
    let (_, check) = checks(cx).find(|(_, check)| check.id == id)?;
    let condition = condition(cx, check);
    Some(match pretty {
        true => format!("CHECK ({condition})"),
        false => format!("CHECK (({condition}))"),
    })
}

/// Catalog, schema and name.
fn placed(cx: &CatalogCx<'_>, full: &str) -> [Datum; 3] {
    [
        text(cx.database.name.as_str()),
        cx.schema(full),
        text(own(full)),
    ]
}

/// `information_schema.domains`.
pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for domain in cx.database.domains.values() {
        let [characters, bytes, precision, radix, scale, moment] = schema::measures(domain.ty);
        let (of, name) = schema::udt(cx, domain.ty);
        let default = domain.default.as_ref().map(|text| cx.kept_text(text));
        let mut row = Vec::from(placed(cx, &domain.name));
        let word = match domain.ty.element() {
            _ if domain.over.is_some() => "USER-DEFINED".into(),
            Some(_) => enums::type_name(cx, domain.ty.oid(), None),
            None => schema::type_word(domain.ty),
        };
        row.extend([text(word), characters, bytes]);
        row.extend([const { Datum::Null }; 6]);
        row.extend([precision, radix, scale, moment, Datum::Null, Datum::Null]);
        row.push(optional(default));
        row.extend([text(cx.database.name.as_str()), text(of), text(name)]);
        row.extend([const { Datum::Null }; 4]);
        row.push(text("1"));
        out.push(row);
    }
}

/// `information_schema.domain_constraints`.
pub(super) fn domain_constraints(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (domain, check) in checks(cx) {
        let mut row = Vec::from(placed(cx, &beside(&domain.name, &check.name)));
        row.extend(placed(cx, &domain.name));
        row.extend([text("NO"), text("NO")]);
        out.push(row);
    }
}

/// `information_schema.domain_udt_usage`.
pub(super) fn udt_usage(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for domain in cx.database.domains.values() {
        let (of, name) = schema::udt(cx, domain.ty);
        let mut row = vec![text(cx.database.name.as_str()), text(of), text(name)];
        row.extend(placed(cx, &domain.name));
        out.push(row);
    }
}

/// `information_schema.column_domain_usage`.
pub(super) fn column_usage(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for domain in cx.database.domains.values() {
        for (table, column) in cx.database.domain_columns(domain.id) {
            let found = cx.database.tables.get(&table);
            let found = found.and_then(|table| table.column(&column));
            if found.is_none_or(|(_, column)| column.domain != Some(domain.id)) {
                continue;
            }
            let mut row = Vec::from(placed(cx, &domain.name));
            row.extend(placed(cx, &table));
            row.push(text(column));
            out.push(row);
        }
    }
}

/// What `information_schema.check_constraints` says of domains.
pub(super) fn check_constraints(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (domain, check) in checks(cx) {
        let [database, schema, name] = placed(cx, &beside(&domain.name, &check.name));
        let clause = text(format!("(({}))", condition(cx, check)));
        out.push([database, schema, name, clause]);
    }
}

/// Rows of pg_depend: functions that conditions call, and columns of domains.
pub(super) fn depend(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    const PG_CONSTRAINT: u32 = 2606;
    const PG_TYPE: u32 = 1247;
    for domain in cx.database.domains.values() {
        let Some(over) = domain.over else { continue };
        out.push([
            oid(PG_TYPE),
            oid(domain.id),
            int(0),
            oid(PG_TYPE),
            oid(over),
            int(0),
            letter('n'),
        ]);
    }
    for (domain, check) in checks(cx) {
        let mut push = |class: u32, number: u32, kind: char| {
            out.push([
                oid(PG_CONSTRAINT),
                oid(check.id),
                int(0),
                oid(class),
                oid(number),
                int(0),
                letter(kind),
            ]);
        };
        push(PG_TYPE, domain.id, 'a');
        for function in cx.database.functions_in(&check.expression) {
            push(routines::PG_PROC, function.id, 'n');
        }
    }
}
