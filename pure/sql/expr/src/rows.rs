//! Rows in memory: order, size, and how errors show them.

use base::grid::Grid;
use base::{Datum, Range, RowBatch, Type};
use std::cmp::Ordering;

/// Values that make a group or a join partner: equal as SQL's `IS NOT DISTINCT FROM`.
#[derive(Clone, Debug)]
pub struct GroupKey(pub Vec<Datum>);

impl GroupKey {
    /// Memory that it takes outside of itself, in bytes.
    pub fn bytes(&self) -> usize {
        row_bytes(&self.0)
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
pub fn compare_rows(
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

/// Bytes of memory that an allocation of `bytes` bytes takes: with its header, in steps of 16.
pub const fn heap_bytes(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=24 => 32,
        _ => (bytes + 8).next_multiple_of(16),
    }
}

/// Memory that a value holds outside of itself, in bytes.
#[inline]
pub fn datum_heap_bytes(datum: &Datum) -> usize {
    match datum {
        Datum::Text(text) => heap_bytes(text.len()),
        Datum::Bytes(bytes) => heap_bytes(bytes.len()),
        Datum::Bits(bits) => heap_bytes(bits.encoded().len()),
        Datum::Jsonb(json) => heap_bytes(json.as_str().len()),
        Datum::Array(items) => {
            let inner = items.iter().map(datum_heap_bytes).sum::<usize>();
            heap_bytes(size_of_val::<[Datum]>(items)) + inner
        }
        Datum::Record(record) => {
            let inner = record.values().iter().map(datum_heap_bytes).sum::<usize>();
            let types = heap_bytes(size_of_val::<[Type]>(record.types()));
            let values = heap_bytes(size_of_val::<[Datum]>(record.values()));
            heap_bytes(size_of::<base::Record>()) + types + values + inner
        }
        Datum::Range(range) => heap_bytes(size_of::<Range>()) + datums_heap_bytes(range.values()),
        Datum::Multirange(value) => {
            let values = value.ranges().iter().map(|range| range.values());
            let inner = values
                .map(|values| datums_heap_bytes(values))
                .sum::<usize>();
            heap_bytes(size_of_val::<[Range]>(value.ranges())) + inner
        }
        Datum::Large(value) => heap_bytes(value.heap_bytes()),
        Datum::Grid(grid) => {
            let inner = grid.items().iter().map(datum_heap_bytes).sum::<usize>();
            heap_bytes(size_of::<Grid>()) + heap_bytes(size_of_val::<[Datum]>(grid.items())) + inner
        }
        _ => 0,
    }
}

/// Memory that values hold outside of themselves, in bytes.
pub fn datums_heap_bytes(datums: &[Datum]) -> usize {
    datums.iter().map(datum_heap_bytes).sum()
}

/// Memory that a list of values takes, spare capacity included, in bytes.
pub fn row_bytes(row: &Vec<Datum>) -> usize {
    heap_bytes(row.capacity() * size_of::<Datum>()) + datums_heap_bytes(row)
}

/// Memory that a batch takes, in bytes.
pub fn batch_bytes(batch: &RowBatch) -> usize {
    row_bytes(&batch.datums)
}

/// Memory that an entry of an ordered map or set takes beside what it points to, in bytes: nodes
/// are filled to little more than half where keys ascend.
pub const fn entry_bytes(entry: usize) -> usize {
    2 * entry + 16
}

/// Memory that a group with this number of states takes without what they hold, in bytes.
pub fn group_bytes<State>(key: &GroupKey, states: usize) -> usize {
    const ENTRY: usize = entry_bytes(size_of::<GroupKey>() + size_of::<Vec<()>>());
    key.bytes() + ENTRY + heap_bytes(states * size_of::<State>())
}

/// A value as text for an error message; NULL is `null`.
pub fn shown(ty: Type, datum: &Datum) -> String {
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
pub fn failing_row(columns: &[(String, Type)], row: &[Datum]) -> String {
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
pub fn shown_key(names: &[&str], values: &[(Type, &Datum)]) -> String {
    let values: Vec<String> = values.iter().map(|(ty, datum)| shown(*ty, datum)).collect();
    format!("Key ({})=({})", names.join(", "), values.join(", "))
}
