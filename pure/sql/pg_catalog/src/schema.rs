//! Views of `information_schema`.

use super::constraints::{Constraint, of_table, target};
use super::relations::owner;
use super::sees::{CONSTRAINTS, READS};
use super::*;
use catalog::{Action, Column, Deferral, Identity};

/// Name of the session's database, the first column of most views.
pub(super) fn here(cx: &CatalogCx<'_>) -> Datum {
    text(cx.database.name.as_str())
}

/// Catalog, schema and name of something by its full name.
pub(super) fn placed(cx: &CatalogCx<'_>, full: &str) -> [Datum; 3] {
    [here(cx), cx.schema(full), text(own(full))]
}

/// The same of a constraint, which is where its table is.
fn constrained(cx: &CatalogCx<'_>, table: &Table, constraint: &str) -> [Datum; 3] {
    placed(cx, &beside(&table.name, constraint))
}

pub(super) fn catalog_name(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    out.push([here(cx)]);
}

pub(super) fn schemata(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let own = cx.database.schemas.keys().map(String::as_str);
    for schema in ["information_schema", "pg_catalog"].into_iter().chain(own) {
        let target = ::rights::Target::Schema(cx.database.id.0, schema.into());
        let owner = cx.catalog.rights.owner(&target);
        if !cx.sees_schema(schema, owner) {
            continue;
        }
        let mut row = vec![here(cx), text(schema), text(cx.role_name(owner))];
        row.resize(7, Datum::Null);
        out.push(row);
    }
}

pub(super) fn tables(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let mut push = |schema: &str, name: &str, kind: char, insertable: bool| {
        let temporary = schema.starts_with(catalog::TEMPORARY_ALIAS);
        let kind = match kind {
            'v' => "VIEW",
            _ if temporary => "LOCAL TEMPORARY",
            _ => "BASE TABLE",
        };
        let mut row = vec![here(cx), text(schema), text(name), text(kind)];
        row.extend(core::iter::repeat_n(Datum::Null, 5));
        let at_commit = match temporary && kind != "VIEW" {
            true => text("PRESERVE"),
            false => Datum::Null,
        };
        row.extend([yes_no(insertable), yes_no(false), at_commit]);
        out.push(row);
    };
    for table in all().filter(|table| cx.sees(table.oid, READS)) {
        push(table.schema, table.name, table.kind, false);
    }
    let mine = |name: &&str| !cx.is_of_others(base::full_name::schema_of(name));
    let is_table =
        |table: &&Table| mine(&&*table.name) && cx.database.stored_view(&table.name).is_none();
    let seen = |table: &&Table| cx.sees(table.id.0, READS);
    for table in cx.tables().filter(is_table).filter(seen) {
        push(cx.schema_name(&table.name), own(&table.name), 'r', true);
    }
    let views = cx.views().filter(|view| mine(&&*view.name));
    for view in views.filter(|view| cx.sees(view.id.0, READS)) {
        push(
            cx.schema_name(&view.name),
            own(&view.name),
            'v',
            view.updatable,
        );
    }
}

/// The tables that information_schema shows: no materialized views.
pub(super) fn plain_tables<'a>(cx: &'a CatalogCx<'_>) -> impl Iterator<Item = &'a Table> {
    cx.tables()
        .filter(move |table| cx.database.stored_view(&table.name).is_none())
}

/// What `columns` says about a type: maximal characters and bytes, numeric precision, radix and
/// scale, precision of fractions of a second.
pub(super) fn measures(ty: Type) -> [Datum; 6] {
    let of_text = |characters: Datum, bytes: i64| {
        let mut measures = [const { Datum::Null }; 6];
        (measures[0], measures[1]) = (characters, int(bytes));
        measures
    };
    let of_number = |precision: Datum, radix: i64, scale: Datum| {
        let (characters, bytes) = (Datum::Null, Datum::Null);
        [characters, bytes, precision, int(radix), scale, Datum::Null]
    };
    match ty {
        Type::Int2 => of_number(int(16), 2, int(0)),
        Type::Int4 => of_number(int(32), 2, int(0)),
        Type::Int8 => of_number(int(64), 2, int(0)),
        Type::Float4 => of_number(int(24), 2, Datum::Null),
        Type::Float8 => of_number(int(53), 2, Datum::Null),
        Type::Numeric(Some((precision, scale))) => {
            // As PostgreSQL has it: the eleven bits of a negative scale without its sign.
            of_number(int(precision), 10, int(scale & 0x7ff))
        }
        Type::Numeric(None) => of_number(Datum::Null, 10, Datum::Null),
        Type::Varchar(Some(n)) => of_text(int(n), i64::from(n) * 4),
        Type::Char(n) if n > 0 => of_text(int(n), i64::from(n) * 4),
        Type::Text | Type::Varchar(None) | Type::Char(_) => of_text(Datum::Null, 1 << 30),
        Type::Date => moment(0),
        Type::Bit(Some(n)) | Type::Varbit(Some(n)) => {
            let mut measures = [const { Datum::Null }; 6];
            measures[0] = int(n);
            measures
        }
        Type::Time(digits)
        | Type::Timetz(digits)
        | Type::Timestamp(digits)
        | Type::Timestamptz(digits) => moment(digits.unwrap_or(base::types::SECOND_DIGITS_MAX)),
        Type::Interval(modifier) => {
            let digits = modifier.and_then(|modifier| modifier.digits);
            moment(digits.unwrap_or(base::types::SECOND_DIGITS_MAX))
        }
        _ => [const { Datum::Null }; 6],
    }
}

/// The fields of an interval, if they are not all.
pub(super) fn span_words(ty: Type) -> Datum {
    match ty {
        Type::Interval(Some(modifier)) if modifier.fields.is_some() => {
            text(modifier.words().trim_start().to_ascii_uppercase())
        }
        _ => Datum::Null,
    }
}

/// Only a precision in digits of the second.
fn moment(digits: u8) -> [Datum; 6] {
    let mut all = [const { Datum::Null }; 6];
    all[5] = int(i64::from(digits));
    all
}

/// A column of a relation without constraints.
fn nullable(name: &str, ty: Type) -> Column {
    Column::new(name, ty)
}

pub(super) fn columns(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let system = |described: &VirtualColumn| nullable(described.name, described.ty);
    for table in all() {
        if !cx.sees(table.oid, READS) {
            continue;
        }
        for (at, described) in table.columns.iter().enumerate() {
            let named = (table.schema, table.name);
            column(cx, named, at + 1, &system(described), out);
        }
    }
    for table in plain_tables(cx) {
        let seen = |at: &usize| cx.sees_column(table.id.0, at + 1);
        for (at, described) in visible(table).filter(|(at, _)| seen(at)) {
            column(cx, ("", &table.name), at + 1, described, out);
        }
    }
    for view in cx.views() {
        let seen = |at: &usize| cx.sees_column(view.id.0, at + 1);
        let columns = view.columns.iter().enumerate();
        for (at, own) in columns.filter(|(at, _)| seen(at)) {
            let described = nullable(&own.name, own.ty);
            column(cx, ("", &view.name), at + 1, &described, out);
        }
    }
}

/// The word for a type.
pub(super) fn type_word(ty: Type) -> String {
    match ty {
        Type::Array(_) => "ARRAY".into(),
        Type::Enum(_) | Type::Composite(_) => "USER-DEFINED".into(),
        plain => plain.base_name().into(),
    }
}

/// Schema and name of a type.
pub(super) fn udt<'a>(cx: &CatalogCx<'a>, ty: Type) -> (&'a str, String) {
    match enums::name_of(cx, ty.oid()) {
        Some(name) => (cx.schema_name(&name), own(&name).to_owned()),
        None => ("pg_catalog", ty.catalog_name().to_owned()),
    }
}

fn column(
    cx: &CatalogCx<'_>,
    (system, table): (&'static str, &str),
    number: usize,
    column: &Column,
    out: &mut RowBatch,
) {
    let (type_schema, udt_name) = udt(cx, column.ty);
    let schema = match system {
        "" => cx.schema_name(table),
        system => system,
    };
    let default = column.default.as_deref();
    let domain = column.domain.and_then(|id| domains::by_id(cx, id));
    let not_null = column.not_null || domain.is_some_and(|domain| domain.not_null);
    let mut row = vec![
        here(cx),
        text(schema),
        text(own(table)),
        text(column.name.as_str()),
        int(number),
        optional(default.map(|default| cx.kept_text(default))),
        yes_no(!not_null),
        text(type_word(column.ty)),
    ];
    row.extend(measures(column.ty));
    row.push(span_words(column.ty));
    // Character set and collation: nothing to say.
    row.extend(core::iter::repeat_n(Datum::Null, 7));
    match domain {
        Some(domain) => row.extend(placed(cx, &domain.name)),
        None => row.extend([const { Datum::Null }; 3]),
    }
    row.extend([here(cx), text(type_schema), text(udt_name)]);
    row.extend(core::iter::repeat_n(Datum::Null, 4));
    row.extend([
        text(number.to_string()),
        yes_no(false),
        yes_no(column.identity.is_some()),
    ]);
    let sequence = cx.database.sequences.values().find(|sequence| {
        let owns = |(owner, of): &(String, String)| owner == table && *of == column.name;
        system.is_empty() && sequence.owned_by.as_ref().is_some_and(owns)
    });
    match (column.identity, sequence) {
        (Some(identity), Some(sequence)) => row.extend([
            text(match identity {
                Identity::Always => "ALWAYS",
                Identity::ByDefault => "BY DEFAULT",
            }),
            text(sequence.start.to_string()),
            text(sequence.increment.to_string()),
            text(sequence.max.to_string()),
            text(sequence.min.to_string()),
        ]),
        _ => row.extend(core::iter::repeat_n(Datum::Null, 5)),
    }
    row.push(yes_no(
        column.identity.is_some() && sequence.is_some_and(|it| it.cycle),
    ));
    row.extend(generation(cx, column));
    row.push(yes_no(system.is_empty()));
    out.push(row);
}

/// Whether a column is computed, and from what.
fn generation(cx: &CatalogCx<'_>, column: &Column) -> [Datum; 2] {
    match &column.generated {
        Some(from) => [text("ALWAYS"), text(cx.kept_text(&catalog::as_key(from)))],
        None => [text("NEVER"), Datum::Null],
    }
}

/// Name of the check that information_schema shows for a NOT NULL column.
fn not_null_name(table: &Table, at: usize) -> String {
    format!("{PUBLIC}_{}_{}_not_null", table.id.0, at + 1)
}

pub(super) fn table_constraints(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let mut push = |table: &Table, name: &str, kind: &str, deferral: Deferral| {
        let nulls = if kind == "UNIQUE" {
            yes_no(true)
        } else {
            Datum::Null
        };
        let mut row = [constrained(cx, table, name), placed(cx, &table.name)].concat();
        row.extend([
            text(kind),
            yes_no(deferral != Deferral::Never),
            yes_no(deferral == Deferral::Initial),
            yes_no(true),
            nulls,
        ]);
        out.push(row);
    };
    for table in cx.tables().filter(|table| cx.sees(table.id.0, CONSTRAINTS)) {
        for constraint in of_table(table) {
            let deferral = constraint.deferral();
            push(table, constraint.name(), constraint.kind(), deferral);
        }
        for (at, _) in visible(table).filter(|(_, column)| column.not_null) {
            push(table, &not_null_name(table, at), "CHECK", Deferral::Never);
        }
    }
}

pub(super) fn check_constraints(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables().filter(|table| cx.has_owner(table.id.0)) {
        for check in &table.checks {
            let clause = text(format!("(({}))", cx.kept_text(&check.expression)));
            let [database, schema, name] = constrained(cx, table, &check.name);
            out.push([database, schema, name, clause]);
        }
        for (at, column) in visible(table).filter(|(_, column)| column.not_null) {
            let clause = text(format!("{} IS NOT NULL", column.name));
            let [database, schema, name] = constrained(cx, table, &not_null_name(table, at));
            out.push([database, schema, name, clause]);
        }
    }
    domains::check_constraints(cx, out);
}

pub(super) fn key_column_usage(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for constraint in of_table(table) {
            if matches!(constraint, Constraint::Check(..)) {
                continue;
            }
            for (position, at) in constraint.columns(table).into_iter().enumerate() {
                if !cx.sees_column(table.id.0, number(table, at).into()) {
                    continue;
                }
                // Which column of the parent's key this one points to.
                let pointed = match constraint {
                    Constraint::Foreign(_, key) => target(cx, key).and_then(|(_, index, _)| {
                        let wanted = key.parent_columns.get(position)?;
                        index
                            .columns
                            .iter()
                            .position(|column| column.column == *wanted)
                    }),
                    _ => None,
                };
                let mut row = [
                    constrained(cx, table, constraint.name()),
                    placed(cx, &table.name),
                ]
                .concat();
                row.extend([
                    text(table.columns[at as usize].name.as_str()),
                    int(position + 1),
                    pointed.map_or(Datum::Null, |position| int(position + 1)),
                ]);
                out.push(row);
            }
        }
    }
}

/// The rule as information_schema spells it.
fn rule(action: Action) -> Datum {
    text(definitions::action(action))
}

pub(super) fn referential_constraints(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let tables = cx.tables().filter(|table| cx.sees(table.id.0, CONSTRAINTS));
    let keys = tables.flat_map(|table| table.foreign_keys.iter().map(move |key| (table, key)));
    for (table, key) in keys.filter(|(_, key)| !catalog::is_copy(&key.name)) {
        let parent = target(cx, key).map(|(parent, _, name)| constrained(cx, parent, name));
        let [database, schema, name] = constrained(cx, table, &key.name);
        let [of_database, of_schema, of_name] =
            parent.unwrap_or([Datum::Null, Datum::Null, Datum::Null]);
        out.push([
            database,
            schema,
            name,
            of_database,
            of_schema,
            of_name,
            text(if key.match_full { "FULL" } else { "NONE" }),
            rule(key.on_update),
            rule(key.on_delete),
        ]);
    }
}

/// Table and columns that a constraint depends on: for foreign keys those of the parent.
fn used<'a>(
    cx: &CatalogCx<'a>,
    table: &'a Table,
    constraint: Constraint<'_>,
) -> Option<(&'a Table, Vec<u16>)> {
    match constraint {
        Constraint::Foreign(_, key) => Some((
            cx.database.tables.get(&key.parent)?,
            key.parent_columns.clone(),
        )),
        other => Some((table, other.columns(table))),
    }
}

pub(super) fn constraint_column_usage(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for constraint in of_table(table) {
            let Some((of, columns)) = used(cx, table, constraint) else {
                continue;
            };
            if !cx.has_owner(of.id.0) {
                continue;
            }
            for at in columns {
                let mut row = placed(cx, &of.name).to_vec();
                row.push(text(of.columns[at as usize].name.as_str()));
                row.extend(constrained(cx, table, constraint.name()));
                out.push(row);
            }
        }
    }
}

pub(super) fn constraint_table_usage(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for constraint in of_table(table) {
            let used = used(cx, table, constraint);
            if let Some((of, _)) = used.filter(|(of, _)| cx.has_owner(of.id.0)) {
                let constraint = constrained(cx, table, constraint.name());
                out.push([placed(cx, &of.name), constraint].concat());
            }
        }
    }
}

pub(super) fn sequences(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for sequence in cx.database.sequences.values() {
        // Sequences of identity columns are part of their column.
        let is_identity = owner(cx, sequence).is_some_and(|(.., identity)| identity);
        if is_identity || !cx.sees_sequence(sequence.id.0) {
            continue;
        }
        let ty = sequence.ty;
        out.push([
            here(cx),
            cx.schema(&sequence.name),
            text(own(&sequence.name)),
            text(ty.base_name().as_ref()),
            int(i64::from(ty.typlen()) * 8),
            int(2),
            int(0),
            text(sequence.start.to_string()),
            text(sequence.min.to_string()),
            text(sequence.max.to_string()),
            text(sequence.increment.to_string()),
            yes_no(sequence.cycle),
        ]);
    }
}
