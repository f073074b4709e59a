//! Enum types of users: pg_enum, their rows of pg_type, labels and values.

use super::types::{self, TypeRow};
use super::*;
use ::functions::keywords::quote_ident;
use base::SqlError;
use base::full_name::schema_of;
use catalog::EnumType;
use expr::resolve::enums::{OF_TYPE, READ, SHOW};

/// Rows of pg_enum.
pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for found in cx.database.enums.values() {
        for (order, label) in (1i64..).zip(&found.labels) {
            out.push([
                oid(label.id),
                oid(found.id),
                Datum::Float(order as f64),
                text(label.text.as_str()),
            ]);
        }
    }
}

/// Rows of pg_type with name and schema: the types and their arrays.
pub(super) fn types(cx: &CatalogCx<'_>) -> impl Iterator<Item = (TypeRow, String, u32)> {
    cx.database.enums.values().flat_map(|found| {
        let schema = schema_of(&found.name);
        let row = types::of_enum(found.id);
        let array = (
            types::array_of(&row, ""),
            format!("_{}", own(&found.name)),
            schema,
        );
        [(row, own(&found.name).to_owned(), schema), array]
    })
}

/// The full name of an enum type or of the array of one, as pg_type has it.
pub(super) fn name_of(cx: &CatalogCx<'_>, id: u32) -> Option<String> {
    let ty = cx.database.type_by_oid(id)?;
    let found = cx.database.enum_by_id(ty.enum_id()?)?;
    Some(match ty {
        Type::Array(_) => beside(&found.name, &format!("_{}", own(&found.name))),
        _ => found.name.clone(),
    })
}

/// The same as `format_type` shows it.
pub(super) fn shown(cx: &CatalogCx<'_>, id: u32) -> Option<String> {
    let ty = cx.database.type_by_oid(id)?;
    let found = cx.database.enum_by_id(ty.enum_id()?)?;
    let name = cx.shown_name(&found.name, path::has_type);
    Some(match ty {
        Type::Array(_) => format!("{name}[]"),
        _ => name,
    })
}

/// `format_type(oid, modifier)` of any type.
pub(super) fn type_name(cx: &CatalogCx<'_>, id: u32, typmod: Option<i64>) -> String {
    let typmod = typmod.map(|typmod| typmod as i32);
    shown(cx, id).unwrap_or_else(|| names::type_name(id, typmod))
}

/// The oid of the enum type that a text names, or of the array of one.
pub(super) fn find(cx: &CatalogCx<'_>, wanted: &str) -> Option<u32> {
    let wanted = wanted.trim();
    let (name, is_array) = match wanted.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (wanted, false),
    };
    let parts = names::parts(name).ok()?;
    let path = cx.path();
    let names = catalog::Names {
        database: cx.database,
        path: &path,
    };
    let of = |schema, name: &str| cx.database.type_named(&names.of_type(schema, name)?);
    let ty = match parts.as_slice() {
        [name] if types::all().all(|row| row.name != name) => of(None, name)?,
        [schema, name] => of(Some(schema), name)?,
        _ => return None,
    };
    Some(if is_array { ty.array_of()? } else { ty }.oid())
}

/// The text of a value, and of each in an array.
pub(super) fn labelled(of: &EnumType, value: &Datum) -> Datum {
    match value {
        Datum::Int(place) => of.label_at(*place).map_or(Datum::Null, text),
        Datum::Array(items) => Datum::Array(items.iter().map(|item| labelled(of, item)).collect()),
        other => other.clone(),
    }
}

/// A function over enum types; `None` for other functions.
pub(super) fn call(
    cx: &CatalogCx<'_>,
    name: &str,
    args: &[Datum],
) -> Option<Result<Datum, SqlError>> {
    match args {
        _ if OF_TYPE.contains(&name) => Some(of_type(cx, name, args)),
        [Datum::Null, _] if matches!(name, READ | SHOW) => Some(Ok(Datum::Null)),
        [value, Datum::Int(id)] if matches!(name, READ | SHOW) => Some(convert(cx, *id, value)),
        _ => None,
    }
}

/// Labels become values and values labels.
///
/// # Errors
/// 22P02 for what is no label.
pub(super) fn convert(cx: &CatalogCx<'_>, id: i64, value: &Datum) -> Result<Datum, SqlError> {
    match value {
        Datum::Text(label) => type_of(cx, id)?.place_of(label).map(Datum::Int),
        Datum::Array(items) => {
            let items = items.iter().map(|item| convert(cx, id, item));
            Ok(Datum::Array(items.collect::<Result<_, _>>()?))
        }
        other => Ok(labelled(type_of(cx, id)?, other)),
    }
}

fn type_of<'a>(cx: &CatalogCx<'a>, id: i64) -> Result<&'a EnumType, SqlError> {
    let found = u32::try_from(id).ok();
    let found = found.and_then(|id| cx.database.enum_by_id(id));
    found.map(|found| &**found).ok_or_else(|| {
        let message = format!("type with OID {id} does not exist");
        SqlError::new(base::SqlState::UNDEFINED_OBJECT, message)
    })
}

/// `enum_first`, `enum_last` and `enum_range`; the oid of the type comes last.
///
/// # Errors
/// 42704 if the type is gone, 55000 if it has no labels.
fn of_type(cx: &CatalogCx<'_>, name: &str, args: &[Datum]) -> Result<Datum, SqlError> {
    let (id, bounds) = match args {
        [bounds @ .., Datum::Int(id)] => (*id, bounds),
        _ => return Ok(Datum::Null),
    };
    let found = type_of(cx, id)?;
    let known = found.labels.iter().filter(|label| !label.adding);
    let mut places = known.map(|label| Datum::Int(label.place));
    let end = match name {
        "enum_first" => places.next(),
        "enum_last" => places.next_back(),
        _ => {
            let [low, high] = match bounds {
                [low, high] => [low, high],
                _ => [&Datum::Null; 2],
            };
            let inside = |place: &Datum| {
                (low.is_null() || low.compare(place).is_le())
                    && (high.is_null() || high.compare(place).is_ge())
            };
            return Ok(array(places.filter(inside)));
        }
    };
    end.ok_or_else(|| {
        let name = quote_ident(own(&found.name));
        let message = format!("enum {name} contains no values");
        SqlError::new(base::SqlState::OBJECT_NOT_READY, message)
    })
}
