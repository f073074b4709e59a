//! Sorting: runs of some thousand rows are sorted as they come, and merged as they are read.
//!
//! No step sorts more than one run or merges more than one batch, and nothing is copied to sort it.
//! Runs are in the order of the input and equal rows leave the earlier run first, so the sort is
//! stable. Most rows are told apart by a number made of their first key ([`lead`]), without a look
//! at the rows themselves.

use super::long::{Long, Shrink};
use super::source::{Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use bind::rel::SortKey;
use core::cmp::Ordering;
use expr::Expr;
use expr::rows::{compare_rows, datums_heap_bytes, heap_bytes};
use plan::step::{Step, StepOp};
use txn::OpError;

/// Rows that are sorted at once.
const RUN_ROWS: usize = 4096;
/// Bytes of values beyond which a run is sorted, whatever its rows.
const RUN_BYTES: usize = 4 << 20;

/// Rows in one order.
struct Run {
    rows: RowBatch,
    /// Their order, and how many of them have been taken.
    order: Vec<u32>,
    taken: usize,
}

impl Run {
    fn row(&self) -> &[Datum] {
        self.rows.row(self.order[self.taken] as usize)
    }

    /// Memory that it takes without what its values hold.
    fn frame_bytes(&self) -> usize {
        frame_bytes(&self.rows) + heap_bytes(self.order.capacity() * size_of::<u32>())
    }
}

/// Sorted rows; whatever they hold is freed run by run.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Shrink for Runs {
    fn entries(&self) -> usize {
        self.0.len() * RUN_ROWS
    }

    fn shrink(&mut self, most: usize) {
        let runs = most.div_ceil(RUN_ROWS).min(self.0.len());
        self.0.truncate(self.0.len() - runs);
    }
}

fn frame_bytes(rows: &RowBatch) -> usize {
    heap_bytes(rows.datums.capacity() * size_of::<Datum>())
}

pub(super) struct SortRows<'a> {
    cx: &'a Cx<'a>,
    input: Option<Source<'a>>,
    keys: &'a [SortKey],
    limit: Option<&'a Expr>,
    slots: Slots,
    /// Rows that are not in a run yet.
    open: RowBatch,
    open_bytes: usize,
    /// Sorted rows; those that are not read to their end are in `heap`.
    runs: Long<'a, Runs>,
    /// Runs by number, each with the lead of its next row; the one with the first row is at the
    /// root.
    heap: Vec<(u64, u32)>,
    /// Of what kind all first keys so far are; none: they have different ones, and no leads.
    kind: Option<Kind>,
    /// Rows that are still wanted.
    left: usize,
    charge: Charge<'a>,
}

impl<'a> SortRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> SortRows<'a> {
        let StepOp::Sort { input, keys, limit } = &step.op else {
            unreachable!("opened for a sort");
        };
        SortRows {
            cx,
            input: Some(open(cx, input, slots)),
            keys,
            limit: limit.as_ref(),
            slots: slots.clone(),
            open: RowBatch::new(step.width as usize),
            open_bytes: 0,
            runs: Long::new(cx.port, Runs::default()),
            heap: Vec::new(),
            kind: Some(Kind::Unknown),
            left: usize::MAX,
            charge: Charge::new(cx.port),
        }
    }

    fn compare(&self, a: &[Datum], b: &[Datum]) -> Ordering {
        let keys = self.keys.iter();
        compare_rows(a, b, keys.map(|k| (k.column, k.descending, k.nulls_first)))
    }

    async fn collect(&mut self, mut input: Source<'a>) -> Result<(), OpError> {
        if let Some(limit) = self.limit {
            let limit = self.cx.value(limit, &self.slots)?.as_int();
            self.left = limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0));
        }
        // A limit that fits into a run keeps all in one.
        let top = (self.left <= RUN_ROWS).then_some(self.left);
        while let Some(batch) = input.next().await? {
            let rows = batch.rows as usize;
            self.take(batch)?;
            self.cx.breathe(rows).await;
            let kept = top.unwrap_or(0);
            let many = self.open.rows as usize >= RUN_ROWS + kept;
            if many || self.open_bytes >= RUN_BYTES && self.open.rows as usize > 2 * kept {
                self.close()?;
                if let Some(limit) = top {
                    self.cut(limit)?;
                }
                self.cx.breathe(RUN_ROWS).await;
            }
        }
        self.close()?;
        let runs = self.runs.0.iter().enumerate();
        let runs = runs.filter(|(_, run)| !run.order.is_empty());
        let heads = runs.map(|(number, run)| (self.lead(run.row()), number as u32));
        let heads: Vec<(u64, u32)> = heads.collect();
        self.charge
            .add(heap_bytes(heads.capacity() * size_of::<(u64, u32)>()))?;
        self.heap = heads;
        for at in (0..self.heap.len() / 2).rev() {
            self.sink(at);
        }
        Ok(())
    }

    /// Moves the rows of a batch to the open ones.
    fn take(&mut self, mut batch: RowBatch) -> Result<(), SqlError> {
        let heap = datums_heap_bytes(&batch.datums);
        let before = frame_bytes(&self.open);
        let wanted = self.open.datums.len() + batch.datums.len();
        if wanted > self.open.datums.capacity() {
            let most = wanted.max(2 * self.open.datums.capacity());
            self.charge.room(heap_bytes(most * size_of::<Datum>()))?;
        }
        self.charge.add(heap)?;
        self.open.datums.append(&mut batch.datums);
        self.open.rows += batch.rows;
        self.open_bytes += heap;
        self.charge.change(before, frame_bytes(&self.open))
    }

    /// Sorts the open rows: they become a run.
    fn close(&mut self) -> Result<(), SqlError> {
        if self.open.rows == 0 {
            return Ok(());
        }
        let width = self.open.width as usize;
        let before = frame_bytes(&self.open);
        let mut rows = core::mem::replace(&mut self.open, RowBatch::new(width));
        rows.datums.shrink_to_fit();
        let order = self.order(&rows);
        self.open_bytes = 0;
        let run = Run {
            rows,
            order,
            taken: 0,
        };
        self.charge.change(before, run.frame_bytes())?;
        if self.runs.0.len() == self.runs.0.capacity() {
            let slot = size_of::<Run>();
            self.charge.add((self.runs.0.len() + 4) * slot)?;
        }
        self.runs.0.push(run);
        Ok(())
    }

    /// The numbers of rows in their order.
    fn order(&mut self, rows: &RowBatch) -> Vec<u32> {
        let kinds = rows.iter().map(|row| Kind::of(self.first_key(row)));
        self.kind = kinds.fold(self.kind, |all, one| all?.and(one));
        let numbers = 0..rows.rows;
        let mut order: Vec<(u64, u32)> = numbers
            .map(|number| (self.lead(rows.row(number as usize)), number))
            .collect();
        order.sort_unstable_by(|a, b| {
            let rest = || self.compare(rows.row(a.1 as usize), rows.row(b.1 as usize));
            a.0.cmp(&b.0).then_with(rest).then(a.1.cmp(&b.1))
        });
        order.into_iter().map(|(_, number)| number).collect()
    }

    fn first_key<'r>(&self, row: &'r [Datum]) -> &'r Datum {
        const NONE: &Datum = &Datum::Null;
        self.keys
            .first()
            .map_or(NONE, |key| &row[key.column as usize])
    }

    /// A number for a row: if that of another one is larger, the other one comes later.
    fn lead(&self, row: &[Datum]) -> u64 {
        match (self.kind, self.keys.first()) {
            (Some(_), Some(key)) => {
                lead(&row[key.column as usize], key.descending, key.nulls_first)
            }
            _ => 0,
        }
    }

    /// Keeps the first rows of the only run, as open ones.
    fn cut(&mut self, limit: usize) -> Result<(), SqlError> {
        let mut run = self.runs.0.pop().expect("just closed");
        let before = run.frame_bytes();
        let mut kept = RowBatch::new(run.rows.width as usize);
        let width = run.rows.width as usize;
        let count = limit.min(run.order.len());
        kept.datums.reserve_exact(count * width);
        for place in &run.order[..count] {
            let from = *place as usize * width;
            let row = &mut run.rows.datums[from..from + width];
            kept.push(row.iter_mut().map(core::mem::take));
        }
        let dropped = datums_heap_bytes(&run.rows.datums);
        drop(run);
        self.open_bytes = datums_heap_bytes(&kept.datums);
        self.charge.sub(dropped);
        self.open = kept;
        self.charge.change(before, frame_bytes(&self.open))
    }

    /// Whether the next row of run `a` comes before that of run `b`.
    fn leads(&self, a: (u64, u32), b: (u64, u32)) -> bool {
        let rest = || {
            let (left, right) = (&self.runs.0[a.1 as usize], &self.runs.0[b.1 as usize]);
            self.compare(left.row(), right.row()).then(a.1.cmp(&b.1))
        };
        a.0.cmp(&b.0).then_with(rest).is_lt()
    }

    /// Moves an entry of the heap down to its place.
    fn sink(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return;
            }
            let second = right < self.heap.len() && self.leads(self.heap[right], self.heap[left]);
            let child = if second { right } else { left };
            if !self.leads(self.heap[child], self.heap[at]) {
                return;
            }
            self.heap.swap(child, at);
            at = child;
        }
    }

    /// Takes the first of all rows.
    fn next_row(&mut self, out: &mut RowBatch) -> Option<usize> {
        let (_, number) = *self.heap.first()?;
        let run = &mut self.runs.0[number as usize];
        let width = run.rows.width as usize;
        let from = run.order[run.taken] as usize * width;
        let row = &mut run.rows.datums[from..from + width];
        let bytes = datums_heap_bytes(row);
        out.push(row.iter_mut().map(core::mem::take));
        run.taken += 1;
        self.charge.sub(bytes);
        if run.taken == run.order.len() {
            self.charge.sub(run.frame_bytes());
            run.rows.datums = Vec::new();
            run.order = Vec::new();
            self.heap.swap_remove(0);
        } else {
            self.heap[0].0 = self.lead(self.runs.0[number as usize].row());
        }
        self.sink(0);
        Some(bytes)
    }
}

impl Rows for SortRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if let Some(input) = self.input.take() {
            self.collect(input).await?;
        }
        let mut out = RowBatch::new(self.open.width as usize);
        let mut bytes = 0;
        while (out.rows as usize) < BATCH_ROWS && bytes < BATCH_BYTES && self.left > 0 {
            let Some(size) = self.next_row(&mut out) else {
                break;
            };
            bytes += size;
            self.left -= 1;
        }
        self.cx.breathe(out.rows as usize).await;
        Ok((out.rows > 0).then_some(out))
    }
}

/// Values of one kind have leads that fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// NULLs only.
    Unknown,
    Whole,
    Float,
    Numeric,
    Text,
    Bytes,
    Day,
    Moment,
    Uuid,
    Other,
}

impl Kind {
    fn of(datum: &Datum) -> Kind {
        match datum {
            Datum::Null => Kind::Unknown,
            Datum::Int(_) => Kind::Whole,
            Datum::Float(_) => Kind::Float,
            Datum::Decimal(_) | Datum::Large(_) => Kind::Numeric,
            Datum::Text(_) => Kind::Text,
            Datum::Bytes(_) => Kind::Bytes,
            Datum::Date(_) => Kind::Day,
            Datum::Timestamp(_) => Kind::Moment,
            Datum::Uuid(_) => Kind::Uuid,
            _ => Kind::Other,
        }
    }

    /// The kind of both; `None` if they are different.
    fn and(self, other: Kind) -> Option<Kind> {
        match (self, other) {
            (Kind::Unknown, kind) | (kind, Kind::Unknown) => Some(kind),
            (a, b) => (a == b).then_some(a),
        }
    }
}

/// Numbers of values that are not NULL are below.
const LEADS: u64 = 1 << 63;

/// A number for a value among those of its kind, in their order: 0 or the largest one for NULL.
/// Different values may have the same one.
fn lead(datum: &Datum, descending: bool, nulls_first: bool) -> u64 {
    let place = match datum {
        Datum::Null => return if nulls_first { 0 } else { u64::MAX },
        Datum::Int(value) | Datum::Timestamp(value) => whole_place(*value),
        Datum::Date(day) => whole_place(i64::from(*day)),
        Datum::Uuid(bytes) => text_place(bytes),
        Datum::Float(value) => float_place(*value),
        Datum::Decimal(value) => float_place(value.to_f64()),
        Datum::Large(value) => float_place(value.to_f64()),
        Datum::Text(text) => text_place(text.as_bytes()),
        Datum::Bytes(bytes) => text_place(bytes),
        _ => 0,
    };
    1 + if descending { LEADS - 1 - place } else { place }
}

/// Beyond the limits there is one place for all.
fn whole_place(value: i64) -> u64 {
    (value.clamp(-(1 << 62), (1 << 62) - 1) + (1 << 62)) as u64
}

fn float_place(value: f64) -> u64 {
    // One zero, and one NaN behind all numbers.
    let bits = match value {
        0.0 => 0,
        nan if nan.is_nan() => return LEADS - 1,
        value => value.to_bits(),
    };
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    ordered >> 1
}

fn text_place(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    let some = bytes.len().min(8);
    eight[..some].copy_from_slice(&bytes[..some]);
    u64::from_be_bytes(eight) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_are_in_the_order_of_the_values() {
        let decimal = |text: &str| Datum::Decimal(text.parse().unwrap());
        let text = |text: &str| Datum::Text(text.into());
        let kinds: [Vec<Datum>; 7] = [
            [i32::MIN, -1, 0, 20_000, i32::MAX].map(Datum::Date).into(),
            [i64::MIN, -1, 0, 800_000_000_000_000, i64::MAX]
                .map(Datum::Timestamp)
                .into(),
            [[0; 16], [7; 16], [255; 16]].map(Datum::Uuid).into(),
            [i64::MIN, -(1 << 62), -5, -1, 0, 1, 7, 1 << 62, i64::MAX]
                .map(Datum::Int)
                .into(),
            [
                f64::NEG_INFINITY,
                -1e300,
                -1.5,
                -0.0,
                1e-300,
                0.1,
                2.0,
                f64::INFINITY,
                f64::NAN,
            ]
            .map(Datum::Float)
            .into(),
            [
                "-7.5",
                "-7",
                "0",
                "0.1",
                "0.10000000000000000001",
                "12345678901234567890",
            ]
            .map(decimal)
            .into(),
            [
                "",
                "\0",
                "a",
                "ab",
                "abcdefgh",
                "abcdefghi",
                "b",
                "\u{e4}",
                "\u{10ffff}",
            ]
            .map(text)
            .into(),
        ];
        for values in kinds {
            for (descending, nulls_first) in [(false, false), (true, true), (true, false)] {
                let mut all: Vec<Datum> = values.clone();
                all.push(Datum::Null);
                for a in &all {
                    for b in &all {
                        let keys = core::iter::once((0, descending, nulls_first));
                        let order =
                            compare_rows(core::slice::from_ref(a), core::slice::from_ref(b), keys);
                        let lead = |datum| lead(datum, descending, nulls_first);
                        let leads = lead(a).cmp(&lead(b));
                        assert!(leads == order || leads.is_eq(), "{a:?} {b:?}");
                    }
                }
                // They tell most of them apart.
                let mut leads: Vec<u64> = all
                    .iter()
                    .map(|a| lead(a, descending, nulls_first))
                    .collect();
                leads.sort_unstable();
                leads.dedup();
                assert!(leads.len() + 3 >= all.len(), "{all:?}");
            }
        }
    }

    #[test]
    fn values_of_different_kinds_have_no_leads() {
        let (one, two) = (Kind::of(&Datum::Int(1)), Kind::of(&Datum::Float(2.0)));
        assert_eq!(one.and(Kind::of(&Datum::Null)), Some(one));
        assert_eq!(one.and(two), None);
    }
}
