//! Keys and index entries of rows.
//!
//! An entry of a secondary index is a row that holds the primary key columns of its table row, in
//! key order. Its key is that of `Index::stored_columns`; a unique index leaves the primary key
//! columns out unless one of its own columns is NULL and NULLs differ. Rows for which the condition
//! of an index is not true have no entry (`Index::has_entry`): callers look.

use base::key::{Slot, encode_datum, slot_of};
use base::{Datum, Key};
use catalog::{Index, Table};

/// Bytes reserved for a key of `columns` columns: integers take no more.
pub(crate) fn key_capacity(columns: usize) -> usize {
    10 * columns
}

/// Key of the entry of a full table row in one of the table's indexes.
pub(crate) fn entry_key(table: &Table, index: &Index, row: &[Datum]) -> Key {
    let mut bytes = Vec::with_capacity(key_capacity(index.columns.len() + 1));
    let slot = append_key(table, index, row, &mut bytes);
    Key::new(index.id, slot, bytes)
}

/// Appends the key of the entry of a full table row; gives its slot.
pub(crate) fn append_key(table: &Table, index: &Index, row: &[Datum], bytes: &mut Vec<u8>) -> Slot {
    let value = |column: u16| &row[usize::from(column)];
    let (start, own) = (bytes.len(), index.columns.len());
    // The slot of a key that begins with the partition columns is that of its first bytes.
    let partition = index.slot_columns.len();
    let mut leads = own >= partition;
    let mut partition_end = start;
    for (i, key) in index.columns.iter().enumerate() {
        encode_datum(bytes, value(key.column), key.descending);
        if i < partition {
            leads &= index.slot_columns[i] == key.column && !key.descending;
            partition_end = bytes.len();
        }
    }
    let slot = match leads {
        true => slot_of(&bytes[start..partition_end]),
        false => row_slot(index, row),
    };
    let is_primary = index.id == table.primary.id;
    if !is_primary && index.is_open(row) {
        for key in &index.stored_columns(table)[own..] {
            encode_datum(bytes, value(key.column), key.descending);
        }
    }
    slot
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
    let mut out = Vec::new();
    append_entry_row(table, row, &mut out);
    out
}

/// Appends the row of a secondary index entry.
pub(crate) fn append_entry_row(table: &Table, row: &[Datum], out: &mut Vec<u8>) {
    let columns = &table.primary.columns;
    let value = |i: usize| &row[usize::from(columns[i].column)];
    base::row::encode_with(columns.len(), value, out);
}

/// Whether two rows have different entries in an index, or only one of them has one.
pub(crate) fn entry_differs(table: &Table, index: &Index, old: &[Datum], new: &[Datum]) -> bool {
    if index.has_entry(old) != index.has_entry(new) {
        return true;
    }
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
