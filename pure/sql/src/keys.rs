//! Keys and index entries of rows.
//!
//! An entry of a secondary index is a row that holds the primary key columns of its table row, in
//! key order. Its key is that of `Index::stored_columns`; a unique index leaves the primary key
//! columns out unless one of its own columns is NULL.

use base::key::{Slot, encode_datum, slot_of};
use base::{Datum, Key};
use catalog::{Index, Table};

/// Bytes reserved for a key of `columns` columns: integers take no more.
pub(crate) fn key_capacity(columns: usize) -> usize {
    10 * columns
}

/// Key of the entry of a full table row in one of the table's indexes.
pub(crate) fn entry_key(table: &Table, index: &Index, row: &[Datum]) -> Key {
    let value = |column: u16| &row[usize::from(column)];
    let own = index.columns.len();
    let mut bytes = Vec::with_capacity(key_capacity(own + 1));
    for key in &index.columns {
        encode_datum(&mut bytes, value(key.column), key.descending);
    }
    let short = index.unique && !index.columns.iter().any(|key| value(key.column).is_null());
    if index.id != table.primary.id && !short {
        for key in &index.stored_columns(table)[own..] {
            encode_datum(&mut bytes, value(key.column), key.descending);
        }
    }
    Key::new(index.id, row_slot(index, row), bytes)
}

/// Slot of the entry of a full table row.
pub(crate) fn row_slot(index: &Index, row: &[Datum]) -> Slot {
    let mut bytes = Vec::with_capacity(key_capacity(index.slot_columns.len()));
    for column in &index.slot_columns {
        encode_datum(&mut bytes, &row[usize::from(*column)], false);
    }
    slot_of(&bytes)
}

/// The row of a secondary index entry: the primary key of the table row.
pub(crate) fn entry_row(table: &Table, row: &[Datum]) -> Vec<u8> {
    let key = table
        .primary
        .columns
        .iter()
        .map(|key| row[usize::from(key.column)].clone());
    base::row::to_vec(&key.collect::<Vec<_>>())
}

/// Whether two rows have different entries in an index.
pub(crate) fn entry_differs(table: &Table, index: &Index, old: &[Datum], new: &[Datum]) -> bool {
    let differs = |column: u16| {
        let (old, new) = (&old[usize::from(column)], &new[usize::from(column)]);
        old != new
    };
    index
        .stored_columns(table)
        .iter()
        .any(|key| differs(key.column))
        || index.slot_columns.iter().any(|column| differs(*column))
        || table.primary.columns.iter().any(|key| differs(key.column))
}
