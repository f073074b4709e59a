//! Rows in memory: order, size, and how errors show them.

use base::{Datum, RowBatch, Type};
use std::cmp::Ordering;

/// Values that make a group or a join partner: equal as SQL's `IS NOT DISTINCT FROM`.
#[derive(Clone, Debug)]
pub(crate) struct GroupKey(pub(crate) Vec<Datum>);

impl GroupKey {
    /// Size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        datums_bytes(&self.0)
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &GroupKey) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for GroupKey {}

impl PartialOrd for GroupKey {
    fn partial_cmp(&self, other: &GroupKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GroupKey {
    fn cmp(&self, other: &GroupKey) -> Ordering {
        for (a, b) in self.0.iter().zip(&other.0) {
            let order = a.compare(b);
            if order != Ordering::Equal {
                return order;
            }
        }
        self.0.len().cmp(&other.0.len())
    }
}

/// Compares two rows by (column, descending, nulls first) keys.
pub(crate) fn compare_rows(
    a: &[Datum],
    b: &[Datum],
    keys: impl Iterator<Item = (u32, bool, bool)>,
) -> Ordering {
    for (column, descending, nulls_first) in keys {
        let (left, right) = (&a[column as usize], &b[column as usize]);
        let order = match (left.is_null(), right.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if descending => right.compare(left),
            (false, false) => left.compare(right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Size of values in memory, in bytes.
pub(crate) fn datums_bytes(datums: &[Datum]) -> usize {
    let heap = |datum: &Datum| match datum {
        Datum::Text(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        Datum::Array(items) => items.len() * size_of::<Datum>(),
        _ => 0,
    };
    size_of_val(datums) + datums.iter().map(heap).sum::<usize>()
}

/// Size of a batch in memory, in bytes.
pub(crate) fn batch_bytes(batch: &RowBatch) -> usize {
    datums_bytes(&batch.datums)
}

/// A value as text for an error message; NULL is `null`.
pub(crate) fn shown(ty: Type, datum: &Datum) -> String {
    if datum.is_null() {
        return "null".into();
    }
    let mut out = Vec::new();
    base::text::format(ty, datum, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Longest value that errors show, in characters.
const SHOWN_MAX: usize = 64;

/// `Failing row contains (1, null).`
pub(crate) fn failing_row(columns: &[(String, Type)], row: &[Datum]) -> String {
    let visible = columns
        .iter()
        .zip(row)
        .filter(|((name, _), _)| !name.starts_with('$'));
    let values = visible.map(|((_, ty), datum)| {
        let text = shown(*ty, datum);
        match text.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    });
    format!(
        "Failing row contains ({}).",
        values.collect::<Vec<_>>().join(", ")
    )
}

/// `Key (a, b)=(1, x)` for details of key errors.
pub(crate) fn shown_key(names: &[&str], values: &[(Type, &Datum)]) -> String {
    let values: Vec<String> = values.iter().map(|(ty, datum)| shown(*ty, datum)).collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}
