//! Joins: pairs of rows, key lookups per left row, dependent right sides.

use super::calls::bound;
use super::scan::lookups;
use super::source::{Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots, WINDOW, WINDOW_FIRST};
use base::{Datum, RowBatch, SqlError};
use bind::rel::{Binds, JoinKind};
use expr::rows::datums_heap_bytes;
use expr::{Columns, Expr, eval_bool};
use plan::step::{Scan, Step, StepOp};
use txn::OpError;

/// Rows joined so far and where they go.
pub(super) struct Joiner<'a> {
    cx: &'a Cx<'a>,
    pub(super) kind: JoinKind,
    pub(super) filter: Option<&'a Expr>,
    /// Each pair is a row of the result.
    joins_all: bool,
    pub(super) right_width: usize,
    /// Room for a left and a right row.
    pair: Vec<Datum>,
    pub(super) out: RowBatch,
    /// Bytes that the values of `out` hold.
    out_bytes: usize,
}

/// How far the joining of left rows has come.
#[derive(Default)]
pub(super) struct Place {
    /// The left row.
    pub(super) row: usize,
    /// Where its next candidate is; 0: it is the first one.
    candidate: usize,
    /// Whether one of them fits.
    any: bool,
    /// Rows and candidates looked at in this step.
    pub(super) work: usize,
}

/// A right row that may fit, with its number, and the place of the next one.
pub(super) struct Candidate<'r> {
    pub(super) next: usize,
    pub(super) number: usize,
    pub(super) row: &'r [Datum],
}

/// The candidate at a place, if there is one.
pub(super) type Candidates<'f, 'r> = &'f dyn Fn(usize) -> Option<Candidate<'r>>;

/// The rows of a batch as candidates.
fn in_batch<'r>(batch: &'r RowBatch) -> impl Fn(usize) -> Option<Candidate<'r>> {
    |number| {
        (number < batch.rows as usize).then(|| Candidate {
            next: number + 1,
            number,
            row: batch.row(number),
        })
    }
}

impl<'a> Joiner<'a> {
    pub(super) fn new(
        cx: &'a Cx<'a>,
        kind: JoinKind,
        filter: Option<&'a Expr>,
        (left, right): (u32, u32),
    ) -> Joiner<'a> {
        let only_left = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let width = if only_left { left } else { left + right } as usize;
        Joiner {
            cx,
            kind,
            filter,
            joins_all: filter.is_none() && !only_left,
            right_width: right as usize,
            pair: Vec::new(),
            out: RowBatch::new(width),
            out_bytes: 0,
        }
    }

    fn passes(&self, pair: &[Datum], slots: &[Datum]) -> Result<bool, SqlError> {
        match self.filter {
            None => Ok(true),
            Some(filter) => Ok(eval_bool(filter, &pair, &self.cx.env(slots))? == Some(true)),
        }
    }

    /// Goes on joining the left row at `place` with its candidates; `matched` hears of right rows
    /// that fit. Whether the row is finished: `false` when a batch is full, or when as
    /// many candidates have been looked at as one step should.
    pub(super) fn row<'r>(
        &mut self,
        left: &[Datum],
        place: &mut Place,
        candidates: Candidates<'_, 'r>,
        slots: &[Datum],
        matched: &mut dyn FnMut(usize),
    ) -> Result<bool, SqlError> {
        if !self.some(left, place, candidates, slots, matched)? {
            return Ok(false);
        }
        match self.kind {
            JoinKind::Semi if place.any => self.push(left.iter().cloned()),
            JoinKind::Anti if !place.any => self.push(left.iter().cloned()),
            JoinKind::Left | JoinKind::Full if !place.any => {
                let nulls = core::iter::repeat_n(Datum::Null, self.right_width);
                self.push(left.iter().cloned().chain(nulls));
            }
            _ => {}
        }
        place.row += 1;
        place.work += 1;
        place.candidate = 0;
        place.any = false;
        Ok(true)
    }

    /// As [`Joiner::row`] for some of the candidates, behind which others follow.
    fn some<'r>(
        &mut self,
        left: &[Datum],
        place: &mut Place,
        candidates: Candidates<'_, 'r>,
        slots: &[Datum],
        matched: &mut dyn FnMut(usize),
    ) -> Result<bool, SqlError> {
        let mut pair = core::mem::take(&mut self.pair);
        while let Some(Candidate { next, number, row }) = candidates(place.candidate) {
            if place.work >= BATCH_ROWS || self.is_full() {
                self.pair = pair;
                return Ok(false);
            }
            place.candidate = next;
            place.work += 1;
            if self.joins_all {
                place.any = true;
                matched(number);
                let start = self.out.datums.len();
                self.out.datums.extend_from_slice(left);
                self.out.datums.extend_from_slice(row);
                self.out_bytes += datums_heap_bytes(&self.out.datums[start..]);
                self.out.rows += 1;
                continue;
            }
            pair.clear();
            pair.extend_from_slice(left);
            pair.extend_from_slice(row);
            if !self.passes(&pair, slots)? {
                continue;
            }
            place.any = true;
            match self.kind {
                JoinKind::Semi | JoinKind::Anti => break,
                _ => {
                    matched(number);
                    self.out_bytes += datums_heap_bytes(&pair);
                    self.out.datums.append(&mut pair);
                    self.out.rows += 1;
                }
            }
        }
        self.pair = pair;
        Ok(true)
    }

    pub(super) fn push(&mut self, row: impl Iterator<Item = Datum>) {
        let start = self.out.datums.len();
        self.out.push(row);
        self.out_bytes += datums_heap_bytes(&self.out.datums[start..]);
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.rows as usize >= BATCH_ROWS || self.out_bytes >= BATCH_BYTES
    }

    pub(super) fn take(&mut self) -> RowBatch {
        let mut next = RowBatch::new(self.out.width as usize);
        if self.is_full() {
            next.datums.reserve(self.out.datums.len());
        }
        self.out_bytes = 0;
        core::mem::replace(&mut self.out, next)
    }
}

/// Access to a table by keys of the left rows.
pub(super) struct LookupRows<'a> {
    cx: &'a Cx<'a>,
    step: u32,
    left: Source<'a>,
    scan: &'a Scan,
    joiner: Joiner<'a>,
    slots: Slots,
    /// Left rows that have not been looked up yet.
    rest: Option<(RowBatch, usize)>,
    /// Left rows that have been, and what was found for each.
    window: Option<Window<'a>>,
    /// Left rows of the next window, at most.
    window_rows: usize,
}

/// Left rows with the right rows that were found for them.
struct Window<'a> {
    left: RowBatch,
    found: Vec<RowBatch>,
    /// Number of the first of them in `left`.
    start: usize,
    place: Place,
    _charge: Charge<'a>,
}

impl<'a> LookupRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> LookupRows<'a> {
        let StepOp::Lookup {
            kind,
            left,
            scan,
            filter,
        } = &step.op
        else {
            unreachable!("opened for a lookup");
        };
        LookupRows {
            cx,
            step: step.id,
            joiner: Joiner::new(cx, *kind, filter.as_ref(), (left.width, scan.width)),
            left: open(cx, left, slots),
            scan,
            slots: slots.clone(),
            rest: None,
            window: None,
            window_rows: WINDOW_FIRST,
        }
    }

    /// Joins what was looked up, as far as a batch holds it.
    async fn join_window(&mut self) -> Result<(), OpError> {
        while let Some(window) = &mut self.window {
            let Window {
                left,
                found,
                start,
                place,
                ..
            } = window;
            while let Some(right) = found.get(place.row) {
                let row = left.row(*start + place.row);
                let finished =
                    self.joiner
                        .row(row, place, &in_batch(right), &self.slots, &mut |_| {})?;
                if !finished {
                    break;
                }
            }
            let work = core::mem::take(&mut place.work);
            if place.row == found.len() {
                let Window {
                    left, found, start, ..
                } = self.window.take().expect("just seen");
                let end = start + found.len();
                if end < left.rows as usize {
                    self.rest = Some((left, end));
                }
            }
            self.cx.breathe(work).await;
            if self.joiner.is_full() {
                break;
            }
        }
        Ok(())
    }
}

impl Rows for LookupRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        loop {
            self.join_window().await?;
            if self.joiner.out.rows > 0 {
                return Ok(Some(self.joiner.take()));
            }
            let (batch, at) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.left.next().await? {
                    Some(batch) => (batch, 0),
                    None => return Ok(None),
                },
            };
            let end = (batch.rows as usize).min(at + self.window_rows);
            self.window_rows = (self.window_rows * 8).min(WINDOW);
            let rows: Vec<&[Datum]> = (at..end).map(|i| batch.row(i)).collect();
            let outer: Vec<&dyn Columns> = rows.iter().map(|row| row as &dyn Columns).collect();
            let mut charge = Charge::new(self.cx.port);
            let found = lookups(
                self.cx,
                self.step,
                self.scan,
                &outer,
                &self.slots,
                &mut charge,
            );
            let found = found.await?;
            self.window = Some(Window {
                left: batch,
                found,
                start: at,
                place: Place::default(),
                _charge: charge,
            });
        }
    }
}

/// A right side that runs once per left row.
pub(super) struct LateralRows<'a> {
    cx: &'a Cx<'a>,
    left: Source<'a>,
    right: &'a Step,
    binds: &'a Binds,
    joiner: Joiner<'a>,
    slots: Slots,
    /// Left rows that are not joined yet.
    rest: Option<(RowBatch, Place)>,
    /// The right rows of the first of them, once they are asked for.
    found: Option<Found<'a>>,
}

/// The right rows of a left row, as they come: there may be more than anybody wants.
struct Found<'a> {
    source: Source<'a>,
    /// Those that are joined now.
    now: RowBatch,
    /// Those behind them; `None`: there are none.
    next: Option<RowBatch>,
}

impl<'a> LateralRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> LateralRows<'a> {
        let StepOp::Lateral {
            outer,
            left,
            right,
            binds,
            filter,
        } = &step.op
        else {
            unreachable!("opened for a lateral join");
        };
        let kind = if *outer {
            JoinKind::Left
        } else {
            JoinKind::Inner
        };
        LateralRows {
            cx,
            left: open(cx, left, slots),
            right,
            binds,
            joiner: Joiner::new(cx, kind, filter.as_ref(), (left.width, right.width)),
            slots: slots.clone(),
            rest: None,
            found: None,
        }
    }
}

impl Rows for LateralRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        loop {
            let (batch, mut place) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.left.next().await? {
                    Some(batch) => (batch, Place::default()),
                    None => return Ok(None),
                },
            };
            while place.row < batch.rows as usize && !self.joiner.is_full() {
                let row = batch.row(place.row);
                if self.found.is_none() {
                    let slots = bound(self.cx, self.binds, &row, &self.slots)?;
                    let mut source = open(self.cx, self.right, &slots);
                    let now = source.next().await?;
                    let next = match now {
                        Some(_) => source.next().await?,
                        None => None,
                    };
                    let now = now.unwrap_or_else(|| RowBatch::new(self.right.width as usize));
                    self.found = Some(Found { source, now, next });
                }
                let found = self.found.as_mut().expect("found above");
                let (joiner, slots) = (&mut self.joiner, &self.slots);
                match found.next.is_some() {
                    true => {
                        if joiner.some(
                            row,
                            &mut place,
                            &in_batch(&found.now),
                            slots,
                            &mut |_| {},
                        )? {
                            place.candidate = 0;
                            found.now = found.next.take().expect("just looked at");
                            found.next = found.source.next().await?;
                        }
                    }
                    false => {
                        if joiner.row(row, &mut place, &in_batch(&found.now), slots, &mut |_| {})? {
                            self.found = None;
                        }
                    }
                }
                self.cx.breathe(core::mem::take(&mut place.work)).await;
            }
            if place.row < batch.rows as usize {
                self.rest = Some((batch, place));
            }
            if self.joiner.out.rows > 0 {
                return Ok(Some(self.joiner.take()));
            }
        }
    }
}
