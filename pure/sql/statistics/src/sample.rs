//! A sample of the rows of one table on one shard.

use crate::Sketch;
use crate::digest::Digest;
use base::Datum;
use base::row::value_len;

/// Rows of which all values are looked at.
const LOOKED_AT: u64 = 30_000;
/// Rows whose values are kept, at most.
const KEPT: usize = 2_048;
/// Longer values are counted, but not kept, in bytes.
const LONG: usize = 128;
/// Common values of a column.
const COMMON: usize = 16;
/// Values between which equal parts of the others lie.
const BOUNDS: usize = 64;

/// Sees the rows of a table one after the other and keeps some of their values.
#[derive(Debug)]
pub struct Sampler {
    columns: Vec<Column>,
    /// One of so many rows is looked at: which ones, their numbers decide, mixed so that no order
    /// of the rows agrees with it.
    every: u64,
    /// One of so many of those is kept; a power of two.
    kept_every: u64,
    seen: u64,
    taken: u64,
    kept: usize,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Column {
    number: u16,
    sketch: Sketch,
    nulls: u64,
    bytes: u64,
    long: u64,
    /// Values with the mixed numbers of their rows.
    values: Vec<(u64, Datum)>,
}

impl Sampler {
    /// For these columns of a table of about `rows` rows.
    pub fn new(columns: impl IntoIterator<Item = u16>, rows: u64) -> Sampler {
        let column = |number| Column {
            number,
            sketch: Sketch::default(),
            nulls: 0,
            bytes: 0,
            long: 0,
            values: Vec::new(),
        };
        Sampler {
            columns: columns.into_iter().map(column).collect(),
            every: rows.div_ceil(LOOKED_AT).max(1),
            kept_every: 1,
            seen: 0,
            taken: 0,
            kept: 0,
            scratch: Vec::new(),
        }
    }

    /// Counts a row. Whether it is to be shown to [`Sampler::add`].
    pub fn wants(&mut self) -> bool {
        self.seen += 1;
        mixed(self.seen).is_multiple_of(self.every)
    }

    /// Looks at a row: `value` gives the value of a column by its place in the table.
    pub fn add(&mut self, value: &dyn Fn(u16) -> Datum) {
        let number = mixed(!self.taken);
        let keeps = number.is_multiple_of(self.kept_every);
        self.taken += 1;
        for column in &mut self.columns {
            let value = value(column.number);
            if value.is_null() {
                column.nulls += 1;
                continue;
            }
            let bytes = value_len(&value);
            column.bytes += bytes as u64;
            if bytes > LONG {
                column.long += 1;
                continue;
            }
            column.sketch.add(&value, &mut self.scratch);
            if keeps {
                column.values.push((number, value));
            }
        }
        self.kept += usize::from(keeps);
        if self.kept >= KEPT {
            self.thin_out();
        }
    }

    /// Drops about half of the rows that are kept.
    fn thin_out(&mut self) {
        self.kept_every *= 2;
        let every = self.kept_every;
        for column in &mut self.columns {
            column
                .values
                .retain(|(number, _)| number.is_multiple_of(every));
        }
        self.kept /= 2;
    }

    /// What the columns hold.
    pub fn finish(self) -> Vec<Digest> {
        let (rows, taken) = (self.seen, self.taken);
        let columns = self.columns.into_iter();
        columns.map(|column| column.finish(rows, taken)).collect()
    }
}

/// A number for the row with this number, as if drawn.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

impl Column {
    fn finish(self, rows: u64, taken: u64) -> Digest {
        let all = taken.max(1) as f64;
        let filled = taken - self.nulls;
        let nulls = self.nulls as f64 / all;
        let mut values: Vec<Datum> = self.values.into_iter().map(|(_, value)| value).collect();
        values.sort_by(Datum::compare);
        // Long values take part as if each were another one.
        let shown = (filled - self.long) as f64 / all;
        let each = shown / values.len().max(1) as f64;
        let (common, rest) = split(values, each);
        Digest {
            column: self.number,
            rows: rows as f64,
            taken: taken as f64,
            nulls,
            width: self.bytes as f64 / filled.max(1) as f64,
            long: self.long as f64,
            sketch: self.sketch,
            common,
            bounds: bounds(rest, BOUNDS),
        }
    }
}

/// The most common of sorted values with their shares, and the others. Each value stands for a
/// share of `each`.
fn split(values: Vec<Datum>, each: f64) -> (Vec<(Datum, f64)>, Vec<Datum>) {
    let total = values.len();
    let mut runs: Vec<(usize, Vec<Datum>)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, run)) if run[0].compare(&value).is_eq() => run.push(value),
            _ => runs.push((runs.len(), vec![value])),
        }
    }
    let distinct = runs.len();
    // A value is common if it is there more than once, and more often than others.
    let least = match distinct <= COMMON {
        true => 1,
        false => (total / distinct * 5 / 4 + 1).max(3),
    };
    runs.sort_by(|(a, one), (b, other)| other.len().cmp(&one.len()).then(a.cmp(b)));
    let common = runs
        .iter()
        .take_while(|(_, run)| run.len() >= least)
        .count();
    let mut rest = runs.split_off(common.min(COMMON));
    rest.sort_by_key(|(place, _)| *place);
    let common = runs.into_iter().filter_map(|(_, mut run)| {
        let count = run.len() as f64;
        Some((run.pop()?, count * each))
    });
    (
        common.collect(),
        rest.into_iter().flat_map(|(_, run)| run).collect(),
    )
}

/// At most `count` of sorted values, the first and the last one among them, with equal distances.
pub(crate) fn bounds(values: Vec<Datum>, count: usize) -> Vec<Datum> {
    let total = values.len();
    if total <= count {
        return values;
    }
    let wanted = |place: usize| place * (total - 1) / (count - 1);
    let mut next = 0;
    let mut kept = Vec::with_capacity(count);
    for (place, value) in values.into_iter().enumerate() {
        if place == wanted(next) {
            kept.push(value);
            next += 1;
            if next == count {
                break;
            }
        }
    }
    kept
}
