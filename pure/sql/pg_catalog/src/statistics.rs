//! `pg_stats`: what ANALYZE, or the shards by themselves, have found in the columns of tables.

use super::{CatalogCx, grants, own};
use ::statistics::{ColumnValues, merged};
use base::{Datum, RowBatch, Type};

/// Columns that the session's user may not read are left out, and so are tables whose policies
/// concern the user: the values are of all rows.
pub(super) fn stats(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let Some(told) = cx.told else {
        return;
    };
    let found = merged(told);
    for table in cx.tables() {
        let Some(values) = found.get(&table.id) else {
            continue;
        };
        let guarded = cx
            .catalog
            .rows_guarded(cx.database, table.id, cx.acting())
            .is_some();
        if guarded {
            continue;
        }
        let columns = table.columns.iter().enumerate();
        for (place, column) in columns.filter(|(_, column)| !column.hidden) {
            let Some(known) = u16::try_from(place).ok().and_then(|it| values.column(it)) else {
                continue;
            };
            let asked = [
                Datum::Int(i64::from(table.id.0)),
                Datum::Int(i64::from(crate::number(table, place as u16))),
                Datum::Text("SELECT".into()),
            ];
            let may = grants::privilege(cx, "has_column_privilege", &asked);
            if !matches!(may, Ok(Datum::Bool(true))) {
                continue;
            }
            let mut row = vec![
                Datum::Text(cx.schema_name(&table.name).into()),
                Datum::Text(own(&table.name).into()),
                Datum::Text(column.name.as_str().into()),
                Datum::Bool(false),
            ];
            row.extend(shown(known, column.ty));
            // No correlation, and nothing of elements.
            row.extend((0..4).map(|_| Datum::Null));
            out.push(row);
        }
    }
}

/// null_frac, avg_width, n_distinct, most_common_vals, most_common_freqs, histogram_bounds.
fn shown(known: &ColumnValues, ty: Type) -> [Datum; 6] {
    let list = |values: Vec<Datum>| match (values.is_empty(), ty.array_of()) {
        (false, Some(array)) => {
            let text = functions::string::output(array, &Datum::Array(values.into()));
            Datum::Text(text.into())
        }
        _ => Datum::Null,
    };
    // As in PostgreSQL: what grows with the table is told as a share of it, negative.
    let distinct = match known.grows() {
        true => -(known.distinct / known.rows.max(1.0)).min(1.0),
        false => known.distinct.round(),
    };
    let shares: Vec<Datum> = known
        .common
        .iter()
        .map(|(_, share)| Datum::Float(f64::from(*share as f32)))
        .collect();
    [
        Datum::Float(f64::from(known.nulls as f32)),
        Datum::Int(known.width.round() as i64),
        Datum::Float(f64::from(distinct as f32)),
        list(
            known
                .common
                .iter()
                .map(|(value, _)| value.clone())
                .collect(),
        ),
        match shares.is_empty() {
            true => Datum::Null,
            false => Datum::Array(shares.into()),
        },
        list(known.bounds.clone()),
    ]
}
