//! Where rows live, and since which catalog: `trellis_shard_of`, `trellis_node_of` and
//! `trellis_placement_version`.

use super::functions::find_table;
use super::*;
use base::key::{encode_datum, slot_of};
use base::{ShardId, SqlError, SqlState};

/// The table with this oid.
///
/// # Errors
/// 42P01 if there is none.
fn table_of<'a>(cx: &'a CatalogCx<'_>, oid: u32) -> Result<&'a Table, SqlError> {
    find_table(cx, oid).ok_or_else(|| {
        let message = format!("relation with OID {oid} is no table of this database");
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })
}

/// The catalog version at which a table last changed: while it stays, so does the home of each key.
///
/// # Errors
/// Those of [`table_of`].
pub(super) fn version(cx: &CatalogCx<'_>, table: u32) -> Result<Datum, SqlError> {
    Ok(int(table_of(cx, table)?.changed))
}

/// The home of the rows of a table whose partition columns have these values, as texts of the
/// columns' types; `None` for a replicated table, which is on every node.
///
/// # Errors
/// 42P01 if there is no such table, 22023 for another number of values than the table has
/// partition columns, 22P02 and its like for a text that is no value of its column.
fn home(cx: &CatalogCx<'_>, table: u32, key: &[Datum]) -> Result<Option<ShardId>, SqlError> {
    let table = table_of(cx, table)?;
    if key.len() != table.partition.len() {
        let columns = table.partition.iter();
        let columns = columns.map(|at| table.columns[usize::from(*at)].name.as_str());
        let columns: Vec<&str> = columns.collect();
        let message = format!(
            "table \"{}\" is not partitioned by {} values",
            table.name,
            key.len()
        );
        let hint = format!("Give a value for each of: {}.", columns.join(", "));
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message).hint(hint));
    }
    if table.replicated {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    for (at, value) in table.partition.iter().zip(key) {
        let ty = table.columns[usize::from(*at)].ty;
        let value = base::text::parse(ty, value.as_str().unwrap_or_default())?;
        encode_datum(&mut bytes, &value, false);
    }
    Ok(Some(cx.catalog.placement.home(slot_of(&bytes))))
}

/// The result of `trellis_shard_of` or `trellis_node_of`.
///
/// # Errors
/// Those of [`home`].
pub(super) fn told(
    cx: &CatalogCx<'_>,
    name: &str,
    table: u32,
    key: &[Datum],
) -> Result<Datum, SqlError> {
    Ok(match home(cx, table, key)? {
        Some(shard) if name == "trellis_node_of" => int(shard.node().0),
        Some(shard) => text(shard.to_string()),
        None => Datum::Null,
    })
}
