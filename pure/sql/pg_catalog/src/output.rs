//! Text forms that depend on the session and the catalog: the names behind `reg...` types.
//!
//! Inside, such a value is an oid. What goes to a client as text gets its name at the very end, so
//! that everything before compares and sorts oids, as PostgreSQL does.

use crate::{CatalogCx, enums, functions};
use base::text::SpanStyle;
use base::zone::Zone;
use base::{ArrayKind, Datum, OutColumn, Reg, RowBatch, SqlError, SqlState, Type};

/// What the oids of a type stand for, if it is a `reg...` type or an array of one.
pub fn reg(ty: Type) -> Option<Reg> {
    match ty.element().unwrap_or(ty) {
        Type::Reg(reg) => Some(reg),
        _ => None,
    }
}

/// Whether a value of the type has a text form of its own ([`base::text`]); others go through
/// [`put_names`].
pub fn is_plain(ty: Type) -> bool {
    reg(ty).is_none() && ty.user_id().is_none()
}

/// Whether values of the type read the same in every session: its text form needs neither catalog
/// nor settings. Quicker to ask than the three questions of [`is_plain`], [`is_zoned`] and
/// [`has_spans`], and `false` for some types that none of them is about.
#[inline]
pub fn is_usual(ty: Type) -> bool {
    matches!(
        ty,
        Type::Bool
            | Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Float4
            | Type::Float8
            | Type::Numeric(_)
            | Type::Text
            | Type::Varchar(_)
            | Type::Char(_)
            | Type::Bytea
            | Type::Date
    )
}

/// Refuses to give values of a type in the binary format.
///
/// # Errors
/// 0A000 for `tid`: PostgreSQL's form of it has 6 bytes, the numbers of rows here need 8.
pub fn check_binary(ty: Type) -> Result<(), SqlError> {
    if ty.element().unwrap_or(ty) != Type::Tid {
        return Ok(());
    }
    let message = format!("the binary format of type {} is not supported", ty.name());
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("Ask for its text."))
}

/// Whether the text form of a type shows the session's time zone.
pub fn is_zoned(ty: Type) -> bool {
    // A row may have one among its fields.
    ty.has_moments() || matches!(ty.element().unwrap_or(ty), Type::Composite(_))
}

/// Whether the text form of a type shows the session's style of intervals.
pub fn has_spans(ty: Type) -> bool {
    let ty = ty.element().unwrap_or(ty);
    matches!(ty, Type::Interval(_) | Type::Composite(_))
}

/// Puts texts in a style in the place of intervals, as [`put_names`] does with names.
pub fn put_spans(
    style: SpanStyle,
    columns: &[OutColumn],
    as_text: &dyn Fn(usize) -> bool,
    batch: &mut RowBatch,
) {
    for (at, column) in columns.iter().enumerate() {
        if has_spans(column.ty) && as_text(at) {
            let values = batch.datums.iter_mut().skip(at).step_by(columns.len());
            values.for_each(|value| in_style(style, value));
        }
    }
}

/// A value whose text form has intervals in a style.
pub fn in_style(style: SpanStyle, value: &mut Datum) {
    match value {
        Datum::Interval(span) => *value = style.text(*span).into(),
        Datum::Record(record) => {
            **record = record.map(|(ty, value)| {
                let mut value = value.clone();
                if has_spans(ty) {
                    in_style(style, &mut value);
                }
                value
            });
        }
        Datum::Array(items) => items.iter_mut().for_each(|item| in_style(style, item)),
        Datum::Grid(grid) => grid
            .items_mut()
            .iter_mut()
            .for_each(|item| in_style(style, item)),
        _ => {}
    }
}

/// Whether a text of the type is read in the session's time zone.
pub fn reads_zone(ty: Type) -> bool {
    ty.has_moments() || matches!(ty.element().unwrap_or(ty), Type::Timetz(_))
}

/// A value whose text form is that of the value in a zone.
pub fn in_zone(zone: &Zone, value: &mut Datum) {
    match value {
        Datum::Record(record) => {
            let shown = record.map(|(ty, value)| {
                let mut value = value.clone();
                if is_zoned(ty) {
                    in_zone(zone, &mut value);
                }
                value
            });
            **record = shown;
        }
        Datum::Array(items) => items.iter_mut().for_each(|item| in_zone(zone, item)),
        Datum::Grid(grid) => grid
            .items_mut()
            .iter_mut()
            .for_each(|item| in_zone(zone, item)),
        moments => {
            if let Some(text) = base::text::zoned(moments, zone) {
                *moments = text.into();
            }
        }
    }
}

/// Puts the texts of moments in a zone in the place of the moments, as [`put_names`] does with
/// names.
pub fn put_zone(
    zone: &Zone,
    columns: &[OutColumn],
    as_text: &dyn Fn(usize) -> bool,
    batch: &mut RowBatch,
) {
    for (at, _) in columns
        .iter()
        .enumerate()
        .filter(|(at, column)| is_zoned(column.ty) && as_text(*at))
    {
        let values = batch.datums.iter_mut().skip(at).step_by(columns.len());
        values.for_each(|value| in_zone(zone, value));
    }
}

/// Puts names in the place of oids in the columns for which `as_text` says that the client reads
/// them as text.
///
/// # Errors
/// XX000 for values of an enum type that has been dropped since the rows were read.
pub fn put_names(
    cx: &CatalogCx<'_>,
    columns: &[OutColumn],
    as_text: &dyn Fn(usize) -> bool,
    batch: &mut RowBatch,
) -> Result<(), SqlError> {
    for (at, column) in columns.iter().enumerate() {
        if let Type::Composite(_) = column.ty.element().unwrap_or(column.ty) {
            let values = batch.datums.iter_mut().skip(at).step_by(columns.len());
            values.for_each(|value| *value = enums::fields_labelled(cx, value));
            continue;
        }
        if let Some(id) = column.ty.user_id() {
            let Some(found) = cx.database.enum_by_id(id) else {
                let message = format!("cache lookup failed for type {id}");
                return Err(SqlError::new(SqlState::INTERNAL, message));
            };
            // The binary form of a label is its text.
            let values = batch.datums.iter_mut().skip(at).step_by(columns.len());
            values.for_each(|value| *value = enums::labelled(found, value));
            continue;
        }
        let Some(reg) = reg(column.ty).filter(|_| as_text(at)) else {
            continue;
        };
        let values = batch.datums.iter_mut().skip(at).step_by(columns.len());
        values.for_each(|value| *value = functions::named(cx, reg, value));
    }
    Ok(())
}

/// A value of an enum type, or an array of such, from its binary form.
///
/// # Errors
/// Those of [`base::wire::decode`]; 22P02 for what is no label.
pub fn read_binary(cx: &CatalogCx<'_>, ty: Type, bytes: &[u8]) -> Result<Datum, SqlError> {
    let Some(id) = ty.user_id() else {
        return base::wire::decode(ty, bytes);
    };
    if let Type::Composite(id) = ty {
        return enums::read_row(cx, id, bytes);
    }
    if matches!(ty, Type::Array(ArrayKind::Composite(_))) {
        let message = "the binary format of arrays of composite types is not supported here";
        return Err(
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint("Send the array as text.")
        );
    }
    let written = match ty.element() {
        Some(_) => base::wire::decode_texts(bytes, id)?,
        None => base::wire::decode(Type::Text, bytes)?,
    };
    enums::convert(cx, i64::from(id), &written)
}

/// A value from its text form.
///
/// # Errors
/// Those of [`base::text::parse`]; 42P01 and its like for a name of nothing.
pub fn read(cx: &CatalogCx<'_>, ty: Type, text: &str) -> Result<Datum, SqlError> {
    if let Some(id) = ty.user_id() {
        let value = match ty.element() {
            Some(_) => base::text::parse(Type::Array(ArrayKind::Text), text)?,
            None => text.into(),
        };
        return enums::convert(cx, i64::from(id), &value);
    }
    match (reg(ty), ty.element()) {
        (None, _) => base::text::parse(ty, text),
        (Some(reg), None) => functions::resolved(cx, reg, text),
        (Some(reg), Some(_)) => {
            let texts = base::text::parse(Type::Array(ArrayKind::Text), text)?;
            texts.try_map_items(|item| match item.as_str() {
                Some(name) => functions::resolved(cx, reg, name),
                None => Ok(Datum::Null),
            })
        }
    }
}
