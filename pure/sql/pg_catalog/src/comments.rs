//! Comments: pg_description, pg_shdescription and the functions over them.

use super::constraints::of_table;
use super::*;
use catalog::Commented;

/// Oids of the catalogs that hold the objects.
const PG_CLASS: u32 = 1259;
const PG_DATABASE: u32 = 1262;
const PG_NAMESPACE: u32 = 2615;
const PG_CONSTRAINT: u32 = 2606;
const PG_PROC: u32 = 1255;
const PG_TYPE: u32 = 1247;

/// A comment as pg_description has it; of databases as pg_shdescription.
struct Described<'a> {
    object: u32,
    class: u32,
    column: i64,
    text: &'a str,
}

/// The comments of a database, those on itself left out.
fn of_database(database: &Database) -> impl Iterator<Item = Described<'_>> {
    database.comments.iter().filter_map(|(commented, text)| {
        let (object, class, column) = match commented {
            Commented::Database => return None,
            Commented::Schema(number) => (*number, PG_NAMESPACE, 0),
            Commented::Relation(id) => (*id, PG_CLASS, 0),
            Commented::Function(id) => (*id, PG_PROC, 0),
            Commented::Type(id) => (*id, PG_TYPE, 0),
            Commented::Column(table, at) => {
                let mut tables = database.tables.values();
                let found = tables.find(|other| other.id == *table);
                let number = found.map_or(*at + 1, |found| number(found, *at));
                (table.0, PG_CLASS, i64::from(number))
            }
            Commented::Constraint(table, name) => {
                let mut tables = database.tables.values();
                let table = tables.find(|other| other.id == *table)?;
                let constraint = of_table(table).find(|constraint| constraint.name() == name)?;
                (constraint.oid(table), PG_CONSTRAINT, 0)
            }
        };
        Some(Described {
            object,
            class,
            column,
            text,
        })
    })
}

/// Comments on databases.
fn of_cluster<'a>(cx: &CatalogCx<'a>) -> impl Iterator<Item = Described<'a>> {
    let databases = cx.catalog.databases.values();
    databases.filter_map(|database| {
        let text = database.comments.get(&Commented::Database)?;
        Some(Described {
            object: database.id.0,
            class: PG_DATABASE,
            column: 0,
            text,
        })
    })
}

/// Rows of pg_description.
pub(super) fn description(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for found in of_database(cx.database) {
        let (object, class) = (oid(found.object), oid(found.class));
        out.push([object, class, int(found.column), text(found.text)]);
    }
}

/// Rows of pg_shdescription.
pub(super) fn shared_description(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for found in of_cluster(cx) {
        out.push([oid(found.object), oid(found.class), text(found.text)]);
    }
}

/// `obj_description(object [, catalog])`, `shobj_description(object, catalog)` and
/// `col_description(table, column)`.
pub(super) fn described(cx: &CatalogCx<'_>, name: &str, object: u32, args: &[Datum]) -> Datum {
    let class = match args.get(1).and_then(Datum::as_str) {
        None => None,
        Some(class) => match lookup(Some("pg_catalog"), class) {
            Some(table) => Some(table.oid),
            None => return Datum::Null,
        },
    };
    let column = match name {
        "col_description" => args.get(1).and_then(Datum::as_int).unwrap_or(0),
        _ => 0,
    };
    let is_it = |found: &Described<'_>| {
        found.object == object
            && found.column == column
            && class.is_none_or(|class| class == found.class)
            && (name != "col_description" || found.class == PG_CLASS)
    };
    let found = match name {
        "shobj_description" => of_cluster(cx).find(is_it),
        _ => of_database(cx.database).find(is_it),
    };
    optional(found.map(|found| found.text.to_owned()))
}
