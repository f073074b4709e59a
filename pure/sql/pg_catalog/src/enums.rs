//! Enum types of users: pg_enum, their rows of pg_type, labels and values.

use super::types::{self, TypeRow};
use super::*;
use ::functions::keywords::quote_ident;
use base::full_name::schema_of;
use base::record::ANONYMOUS;
use base::text::SpanStyle;
use base::zone::Zone;
use base::{SqlError, SqlState};
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
        let row = types::of_user(found.ty());
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
    if let Some(domain) = domains::by_id(cx, id) {
        return Some(domain.name.clone());
    }
    if let Some((relation, is_array)) = types::relation_of_rows(cx, id) {
        let name = own(&relation);
        return Some(match is_array {
            true => beside(&relation, &format!("_{name}")),
            false => relation,
        });
    }
    let ty = cx.database.type_by_oid(id)?;
    let found = cx.database.enum_by_id(ty.user_id()?)?;
    Some(match ty {
        Type::Array(_) => beside(&found.name, &format!("_{}", own(&found.name))),
        _ => found.name.clone(),
    })
}

/// The same as `format_type` shows it.
pub(super) fn shown(cx: &CatalogCx<'_>, id: u32) -> Option<String> {
    if let Some(domain) = domains::by_id(cx, id) {
        return Some(cx.shown_name(&domain.name, path::has_type));
    }
    if let Some((relation, is_array)) = types::relation_of_rows(cx, id) {
        let name = cx.shown_name(&relation, path::has_type);
        return Some(if is_array { format!("{name}[]") } else { name });
    }
    let ty = cx.database.type_by_oid(id)?;
    let found = cx.database.enum_by_id(ty.user_id()?)?;
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
    let domain = |schema, name: &str| {
        let full = names.of_type(schema, name)?;
        cx.database.domains.get(&full).map(|domain| domain.id)
    };
    let found = match parts.as_slice() {
        [name] if types::all().all(|row| row.name != name) => domain(None, name),
        [schema, name] => domain(Some(schema), name),
        _ => None,
    };
    if found.is_some() && !is_array {
        return found;
    }
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
        Datum::Array(_) | Datum::Grid(_) => mapped(value, |item| labelled(of, item)),
        other => other.clone(),
    }
}

/// A row, or an array of such, with labels in place of the values of enum types.
pub(super) fn fields_labelled(cx: &CatalogCx<'_>, value: &Datum) -> Datum {
    match value {
        Datum::Record(record) => {
            let labelled = record.map(|(ty, value)| match (ty, ty.user_id()) {
                (Type::Composite(_), _) => fields_labelled(cx, value),
                (_, Some(id)) => match cx.database.enum_by_id(id) {
                    Some(of) => labelled(of, value),
                    None => Datum::Null,
                },
                (_, None) => value.clone(),
            });
            Datum::Record(Box::new(labelled))
        }
        Datum::Array(_) | Datum::Grid(_) => mapped(value, |item| fields_labelled(cx, item)),
        other => other.clone(),
    }
}

/// The session's time zone, if it is another one than UTC.
fn zone(cx: &CatalogCx<'_>) -> Option<Zone> {
    let name = (cx.setting)("timezone").filter(|name| name != "UTC")?;
    Zone::named(&name)
}

/// The text of a row as the session sees it.
fn row_text(cx: &CatalogCx<'_>, value: &Datum) -> Datum {
    let mut shown = fields_labelled(cx, value);
    if let Some(zone) = zone(cx) {
        output::in_zone(&zone, &mut shown);
    }
    let style = (cx.setting)("intervalstyle");
    let style = style
        .as_deref()
        .map_or_else(Default::default, SpanStyle::named);
    if style != SpanStyle::Postgres {
        output::in_style(style, &mut shown);
    }
    base::text::to_string(Type::Composite(ANONYMOUS), &shown).into()
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
        Datum::Null => Ok(Datum::Null),
        Datum::Record(_) => Ok(row_text(cx, value)),
        Datum::Text(written) => read_text(cx, id, written),
        Datum::Array(_) | Datum::Grid(_) => {
            value.clone().try_map_items(|item| convert(cx, id, &item))
        }
        other => Ok(labelled(type_of(cx, id)?, other)),
    }
}

fn read_text(cx: &CatalogCx<'_>, id: i64, written: &str) -> Result<Datum, SqlError> {
    match type_of(cx, id) {
        Ok(found) if found.attributes.is_none() => found.place_of(written).map(Datum::Int),
        _ => {
            let zone = zone(cx);
            cx.database.read_record(id as u32, written, zone.as_ref())
        }
    }
}

/// A value of a composite type from its binary form.
///
/// # Errors
/// 22P03 for what is none, 42804 for fields that are not those of the type.
pub(super) fn read_row(cx: &CatalogCx<'_>, id: u32, bytes: &[u8]) -> Result<Datum, SqlError> {
    let (found, attributes) = cx.database.composite(id)?;
    let fields = base::wire::read_record(bytes)?;
    if fields.len() != attributes.len() {
        let (given, expected) = (fields.len(), attributes.len());
        let message = format!("wrong number of columns: {given}, expected {expected}");
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let mut values = Vec::with_capacity(fields.len());
    for (i, (attribute, (oid, value))) in attributes.iter().zip(fields).enumerate() {
        let expected = attribute.ty.oid();
        if oid != expected {
            let name = |oid: u32| type_name(cx, oid, None);
            let message = format!(
                "binary data has type {oid} ({}) instead of expected {expected} ({}) in record \
                 column {}",
                name(oid),
                name(expected),
                i + 1
            );
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        values.push(match value {
            None => Datum::Null,
            Some(bytes) => {
                let value = output::read_binary(cx, attribute.ty, bytes)?;
                base::text::fit(attribute.ty, value)?
            }
        });
    }
    found.record(values)
}

fn type_of<'a>(cx: &CatalogCx<'a>, id: i64) -> Result<&'a EnumType, SqlError> {
    let found = u32::try_from(id).ok();
    let found = found.and_then(|id| cx.database.enum_by_id(id));
    found.map(|found| &**found).ok_or_else(|| {
        let message = format!("type with OID {id} does not exist");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
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
        SqlError::new(SqlState::OBJECT_NOT_READY, message)
    })
}
