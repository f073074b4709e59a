//! What one shard has found in a column, as it travels, and what all shards have found together.

use crate::{ColumnValues, Sketch, TableValues};
use base::row::value_len;
use base::{Datum, RowBatch, TableId};
use std::collections::BTreeMap;

/// Columns of the rows as which digests travel: table, column, what is told, a value, a number.
pub const WIRE_WIDTH: usize = 5;

/// Common values of a column that are kept of all shards together.
const COMMON: usize = 32;
/// Values between which equal parts of the others lie.
const BOUNDS: usize = 100;

/// What one shard has found in one column.
#[derive(Clone, PartialEq, Debug)]
pub struct Digest {
    /// The column's place in its table.
    pub column: u16,
    /// Rows that the shard has.
    pub rows: f64,
    /// Rows that it has looked at.
    pub taken: f64,
    /// Share of those that are NULL here.
    pub nulls: f64,
    /// Bytes of a value.
    pub width: f64,
    /// Values that were too long to be looked at.
    pub long: f64,
    /// The values that it has seen.
    pub sketch: Sketch,
    /// Common values with their shares of the rows.
    pub common: Vec<(Datum, f64)>,
    /// Values between which equal parts of the other rows lie.
    pub bounds: Vec<Datum>,
}

/// What a row tells. The numbers travel between nodes.
const SKETCH: i64 = 0;
const TAKEN: i64 = 1;
const NULLS: i64 = 2;
const WIDTH: i64 = 3;
const LONG: i64 = 4;
const COMMON_VALUE: i64 = 5;
const BOUND: i64 = 6;

impl Digest {
    /// Bytes that it takes up on its way, about.
    pub fn size_bytes(&self) -> usize {
        const ROW: usize = 32;
        let common = self.common.iter().map(|(value, _)| value);
        let values = common.chain(&self.bounds);
        let values: usize = values.map(|value| ROW + value_len(value)).sum();
        values + self.sketch.bytes().len() + 5 * ROW
    }

    /// Appends it to what travels, as a digest of `table`.
    pub fn push_to(&self, table: TableId, batch: &mut RowBatch) {
        let mut push = |what: i64, value: Datum, number: f64| {
            batch.push([
                Datum::Int(i64::from(table.0)),
                Datum::Int(i64::from(self.column)),
                Datum::Int(what),
                value,
                Datum::Float(number),
            ]);
        };
        push(SKETCH, Datum::Bytes(self.sketch.bytes().into()), self.rows);
        push(TAKEN, Datum::Null, self.taken);
        push(NULLS, Datum::Null, self.nulls);
        push(WIDTH, Datum::Null, self.width);
        push(LONG, Datum::Null, self.long);
        for (value, share) in &self.common {
            push(COMMON_VALUE, value.clone(), *share);
        }
        for bound in &self.bounds {
            push(BOUND, bound.clone(), 0.0);
        }
    }
}

/// What all shards have found, from the rows that they have sent, those of a shard behind one
/// another. Rows that make no sense are left out.
pub fn merged(batch: &RowBatch) -> BTreeMap<TableId, TableValues> {
    let mut found: BTreeMap<(TableId, u16), Vec<Digest>> = BTreeMap::new();
    for row in batch.iter() {
        if let [table, column, what, value, number] = row
            && let (Datum::Int(table), Datum::Int(column)) = (table, column)
            && let (Datum::Int(what), Datum::Float(number)) = (what, number)
            && let (Ok(table), Ok(column)) = (u32::try_from(*table), u16::try_from(*column))
        {
            let digests = found.entry((TableId(table), column)).or_default();
            take(digests, column, *what, value, *number);
        }
    }
    let mut tables: BTreeMap<TableId, TableValues> = BTreeMap::new();
    for ((table, column), digests) in found {
        if let Some(values) = together(&digests) {
            let table = tables.entry(table).or_default();
            table.rows = table.rows.max(values.rows);
            table.columns.insert(column, values);
        }
    }
    tables
}

fn take(digests: &mut Vec<Digest>, column: u16, what: i64, value: &Datum, number: f64) {
    if !number.is_finite() || number < 0.0 {
        return;
    }
    if what == SKETCH {
        if let Datum::Bytes(bytes) = value
            && let Some(sketch) = Sketch::from_bytes(bytes)
        {
            digests.push(Digest {
                column,
                rows: number,
                taken: 0.0,
                nulls: 0.0,
                width: 0.0,
                long: 0.0,
                sketch,
                common: Vec::new(),
                bounds: Vec::new(),
            });
        }
        return;
    }
    let Some(digest) = digests.last_mut() else {
        return;
    };
    match what {
        TAKEN => digest.taken = number,
        NULLS => digest.nulls = number.min(1.0),
        WIDTH => digest.width = number,
        LONG => digest.long = number,
        COMMON_VALUE => digest.common.push((value.clone(), number.min(1.0))),
        BOUND => digest.bounds.push(value.clone()),
        _ => {}
    }
}

/// What the digests of one column of all shards say together; `None` without rows.
fn together(digests: &[Digest]) -> Option<ColumnValues> {
    let rows: f64 = digests.iter().map(|digest| digest.rows).sum();
    let taken: f64 = digests.iter().map(|digest| digest.taken).sum();
    if rows < 1.0 || taken < 1.0 {
        return None;
    }
    let part = |digest: &Digest| digest.rows / rows;
    let (mut nulls, mut width, mut filled) = (0.0, 0.0, 0.0);
    let mut sketch = Sketch::default();
    let mut common: Vec<(Datum, f64)> = Vec::new();
    let mut others: Vec<(Datum, f64)> = Vec::new();
    let mut long = 0.0;
    for digest in digests {
        let own = part(digest);
        nulls += own * digest.nulls;
        width += own * (1.0 - digest.nulls) * digest.width;
        filled += own * (1.0 - digest.nulls);
        long += digest.long;
        sketch.merge(&digest.sketch);
        let mut rest = 1.0 - digest.nulls;
        for (value, share) in &digest.common {
            rest -= share;
            common.push((value.clone(), own * share));
        }
        let each = own * rest.max(0.0) / digest.bounds.len().max(1) as f64;
        others.extend(digest.bounds.iter().map(|bound| (bound.clone(), each)));
    }
    let seen = sketch.count() + long;
    let shown = taken * (1.0 - nulls);
    Some(ColumnValues {
        rows,
        nulls,
        width: width / f64::max(filled, 1e-9),
        distinct: extrapolated(seen, shown, rows * (1.0 - nulls)).max(1.0),
        common: most_common(common),
        bounds: weighted_bounds(others),
    })
}

/// Different values among `rows` rows, of which `taken` have `seen`, if all are alike.
fn extrapolated(seen: f64, taken: f64, rows: f64) -> f64 {
    // The sketch errs by some per cent: so many are taken for all.
    const ALL: f64 = 0.9;
    let seen = seen.min(taken.max(1.0));
    if taken >= rows * 0.999 || taken < 1.0 {
        return match seen >= ALL * taken {
            true => rows,
            false => seen,
        };
    }
    if seen >= ALL * taken {
        return rows;
    }
    // `d` values give `d * (1 - exp(-taken / d))` in the sample: rises with `d`.
    let (mut low, mut high) = (seen, rows);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        match middle * (1.0 - (-taken / middle).exp()) < seen {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Equal values together, the most common ones first.
fn most_common(mut values: Vec<(Datum, f64)>) -> Vec<(Datum, f64)> {
    values.sort_by(|(a, _), (b, _)| a.compare(b));
    values.dedup_by(|(later, share), (kept, sum)| {
        let same = later.compare(kept).is_eq();
        if same {
            *sum += *share;
        }
        same
    });
    // Stable, so that equal shares stay in the order of their values.
    values.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    values.truncate(COMMON);
    values
}

/// Bounds of equal parts, from values with different weights.
fn weighted_bounds(mut values: Vec<(Datum, f64)>) -> Vec<Datum> {
    values.sort_by(|(a, _), (b, _)| a.compare(b));
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let count = values.len().min(BOUNDS);
    if count <= 1 || total <= 0.0 {
        return values
            .into_iter()
            .map(|(value, _)| value)
            .take(count)
            .collect();
    }
    let last = values.len() - 1;
    let (mut passed, mut kept) = (0.0, Vec::with_capacity(count));
    for (place, (value, weight)) in values.into_iter().enumerate() {
        passed += weight;
        let due = total * kept.len() as f64 / (count - 1) as f64;
        if kept.len() < count && (passed >= due || place == last) {
            kept.push(value);
        }
    }
    kept
}
