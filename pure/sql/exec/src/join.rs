//! Joins: key lookups per left row, hash tables, dependent right sides.

use super::calls::bound;
use super::long::Long;
use super::scan::lookups;
use super::source::{RowList, Rows, Source, collect, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots, WINDOW, WINDOW_FIRST};
use base::{Datum, RowBatch, SqlError};
use bind::rel::{Binds, JoinKind};
use expr::rows::{GroupKey, datums_heap_bytes, entry_bytes, heap_bytes};
use expr::{Columns, Expr, eval, eval_bool};
use plan::step::{Scan, Step, StepOp};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use txn::OpError;

/// Rows joined so far and where they go.
struct Joiner<'a> {
    cx: &'a Cx<'a>,
    kind: JoinKind,
    filter: Option<&'a Expr>,
    right_width: usize,
    out: RowBatch,
    /// Bytes that the values of `out` hold.
    out_bytes: usize,
}

/// How far the joining of left rows has come.
#[derive(Default)]
struct Place {
    /// The left row.
    row: usize,
    /// Candidates of it that have been looked at, and whether one of them fits.
    candidate: usize,
    any: bool,
    /// Rows and candidates looked at in this step.
    work: usize,
}

impl<'a> Joiner<'a> {
    fn new(
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
            right_width: right as usize,
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

    /// Goes on joining the left row at `place` with its `count` candidates; `matched` hears of
    /// right rows that fit. Whether the row is finished: `false` when a batch is full, or when as
    /// many candidates have been looked at as one step should.
    fn row<'r>(
        &mut self,
        left: &[Datum],
        place: &mut Place,
        (count, candidate): (usize, &dyn Fn(usize) -> (usize, &'r [Datum])),
        slots: &[Datum],
        matched: &mut dyn FnMut(usize),
    ) -> Result<bool, SqlError> {
        let mut pair = Vec::with_capacity(left.len() + self.right_width);
        while place.candidate < count {
            if place.work >= BATCH_ROWS || self.is_full() {
                return Ok(false);
            }
            let (number, right) = candidate(place.candidate);
            place.candidate += 1;
            place.work += 1;
            pair.clear();
            pair.extend_from_slice(left);
            pair.extend_from_slice(right);
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

    fn push(&mut self, row: impl Iterator<Item = Datum>) {
        let start = self.out.datums.len();
        self.out.push(row);
        self.out_bytes += datums_heap_bytes(&self.out.datums[start..]);
    }

    fn is_full(&self) -> bool {
        self.out.rows as usize >= BATCH_ROWS || self.out_bytes >= BATCH_BYTES
    }

    fn take(&mut self) -> RowBatch {
        let width = self.out.width as usize;
        self.out_bytes = 0;
        core::mem::replace(&mut self.out, RowBatch::new(width))
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
                let candidate = |i: usize| (i, right.row(i));
                let candidates = (right.rows as usize, &candidate as &dyn Fn(usize) -> _);
                let finished = self
                    .joiner
                    .row(row, place, candidates, &self.slots, &mut |_| {})?;
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

/// Memory of an entry beside what its key points to, with a list of up to four rows, in bytes.
const KEY_BYTES: usize = entry_bytes(size_of::<GroupKey>() + size_of::<Vec<usize>>())
    + heap_bytes(4 * size_of::<usize>());

/// The right side in memory, by its keys.
pub(super) struct HashRows<'a> {
    cx: &'a Cx<'a>,
    left: Source<'a>,
    right: &'a Step,
    keys: &'a [(Expr, Expr)],
    joiner: Joiner<'a>,
    left_width: usize,
    slots: Slots,
    built: Option<Built<'a>>,
    rest: Option<(RowBatch, Place)>,
    /// Right rows of a full join of which it is known whether they have a partner.
    passed: usize,
    /// The left side has ended; unmatched right rows of a full join follow.
    ended: bool,
    charge: Charge<'a>,
}

struct Built<'a> {
    rows: Long<'a, RowList>,
    by_key: Long<'a, BTreeMap<GroupKey, Vec<usize>>>,
    matched: Vec<bool>,
}

impl<'a> HashRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> HashRows<'a> {
        let StepOp::Hash {
            kind,
            left,
            right,
            keys,
            filter,
        } = &step.op
        else {
            unreachable!("opened for a hash join");
        };
        HashRows {
            cx,
            left: open(cx, left, slots),
            right,
            keys,
            joiner: Joiner::new(cx, *kind, filter.as_ref(), (left.width, right.width)),
            left_width: left.width as usize,
            slots: slots.clone(),
            built: None,
            rest: None,
            passed: 0,
            ended: false,
            charge: Charge::new(cx.port),
        }
    }

    async fn build(&mut self) -> Result<Built<'a>, OpError> {
        let kind = self.joiner.kind;
        let only_keys = matches!(kind, JoinKind::Semi | JoinKind::Anti)
            && self.joiner.filter.is_none()
            && !self.keys.is_empty();
        if only_keys {
            return self.build_keys().await;
        }
        let rows = collect(self.cx, self.right, &self.slots, &mut self.charge).await?;
        self.charge.add(rows.len())?;
        let mut by_key = Long::new(self.cx.port, BTreeMap::new());
        for (i, row) in rows.iter().enumerate() {
            // NULL equals nothing.
            if self.keys.is_empty() {
                break;
            }
            if let Some(key) = self.right_key(row)? {
                self.enter(&mut by_key, key, i)?;
            }
            if i % BATCH_ROWS == BATCH_ROWS - 1 {
                self.cx.breathe(BATCH_ROWS).await;
            }
        }
        let matched = vec![false; rows.len()];
        Ok(Built {
            rows,
            by_key,
            matched,
        })
    }

    /// The right side of a semi or anti join of which only the keys matter: one row stands for
    /// all.
    async fn build_keys(&mut self) -> Result<Built<'a>, OpError> {
        let mut by_key = Long::new(self.cx.port, BTreeMap::new());
        let mut source = open(self.cx, self.right, &self.slots);
        while let Some(batch) = source.next().await? {
            for row in batch.iter() {
                if let Some(key) = self.right_key(row)?
                    && !by_key.contains_key(&key)
                {
                    self.enter(&mut by_key, key, 0)?;
                }
            }
            self.cx.breathe(batch.rows as usize).await;
        }
        Ok(Built {
            rows: Long::new(self.cx.port, RowList::from_iter([Vec::new()])),
            by_key,
            matched: vec![false],
        })
    }

    /// Notes that right row `i` has this key.
    fn enter(
        &mut self,
        by_key: &mut BTreeMap<GroupKey, Vec<usize>>,
        key: GroupKey,
        i: usize,
    ) -> Result<(), SqlError> {
        match by_key.entry(key) {
            Entry::Vacant(entry) => {
                self.charge.add(entry.key().bytes() + KEY_BYTES)?;
                entry.insert(vec![i]);
            }
            Entry::Occupied(entry) => {
                let same = entry.into_mut();
                if same.len() == same.capacity() && same.len() >= 4 {
                    self.charge.add(same.len() * size_of::<usize>())?;
                }
                same.push(i);
            }
        }
        Ok(())
    }

    /// The keys of a right row; `None` if one of them is NULL.
    fn right_key(&self, row: &[Datum]) -> Result<Option<GroupKey>, SqlError> {
        let env = self.cx.env(&self.slots);
        let mut key = Vec::with_capacity(self.keys.len());
        for (_, right) in self.keys {
            key.push(eval(right, &row, &env)?);
        }
        Ok((!key.iter().any(Datum::is_null)).then_some(GroupKey(key)))
    }

    /// Gives the next right rows of a full join that have no partner.
    async fn unmatched(&mut self) {
        let built = self.built.as_ref().expect("built above");
        let mut work = 0;
        while self.passed < built.rows.len() && !self.joiner.is_full() {
            if !built.matched[self.passed] {
                let nulls = core::iter::repeat_n(Datum::Null, self.left_width);
                let row = built.rows[self.passed].iter().cloned();
                self.joiner.push(nulls.chain(row));
            }
            self.passed += 1;
            work += 1;
            if work % BATCH_ROWS == 0 {
                self.cx.breathe(BATCH_ROWS).await;
            }
        }
    }

    /// Goes on joining one left row.
    fn probe(&mut self, left: &[Datum], place: &mut Place) -> Result<bool, SqlError> {
        let built = self.built.as_mut().expect("built before probing");
        let (rows, matched) = (&built.rows, &mut built.matched);
        let mut mark = |number: usize| matched[number] = true;
        if self.keys.is_empty() {
            let candidate = |i: usize| (i, rows[i].as_slice());
            let candidates = (rows.len(), &candidate as &dyn Fn(usize) -> _);
            return self
                .joiner
                .row(left, place, candidates, &self.slots, &mut mark);
        }
        let env = self.cx.env(&self.slots);
        let mut key = Vec::with_capacity(self.keys.len());
        for (expr, _) in self.keys {
            key.push(eval(expr, &left, &env)?);
        }
        let found = match key.iter().any(Datum::is_null) {
            true => &[][..],
            false => built
                .by_key
                .get(&GroupKey(key))
                .map_or(&[][..], |list| list),
        };
        let candidate = |i: usize| (found[i], rows[found[i]].as_slice());
        let candidates = (found.len(), &candidate as &dyn Fn(usize) -> _);
        self.joiner
            .row(left, place, candidates, &self.slots, &mut mark)
    }
}

impl Rows for HashRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if self.built.is_none() {
            // Without left rows only a full join needs the right ones.
            match self.left.next().await? {
                Some(batch) => self.rest = Some((batch, Place::default())),
                None if self.joiner.kind != JoinKind::Full => return Ok(None),
                None => {}
            }
            self.built = Some(self.build().await?);
        }
        while !self.ended {
            let (batch, mut place) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.left.next().await? {
                    Some(batch) => (batch, Place::default()),
                    None => {
                        self.ended = true;
                        break;
                    }
                },
            };
            while place.row < batch.rows as usize
                && !self.joiner.is_full()
                && place.work < BATCH_ROWS
            {
                self.probe(batch.row(place.row), &mut place)?;
            }
            let work = core::mem::take(&mut place.work);
            if place.row < batch.rows as usize {
                self.rest = Some((batch, place));
            }
            self.cx.breathe(work).await;
            if self.joiner.is_full() {
                return Ok(Some(self.joiner.take()));
            }
            if self.rest.is_none() && self.joiner.out.rows > 0 {
                return Ok(Some(self.joiner.take()));
            }
        }
        if self.joiner.out.rows > 0 {
            return Ok(Some(self.joiner.take()));
        }
        if self.joiner.kind == JoinKind::Full {
            self.unmatched().await;
        }
        let batch = self.joiner.take();
        Ok((batch.rows > 0).then_some(batch))
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
    /// The right rows of the first of them, once they are known.
    found: Option<(Long<'a, RowList>, Charge<'a>)>,
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
                    let mut charge = Charge::new(self.cx.port);
                    let rows = collect(self.cx, self.right, &slots, &mut charge).await?;
                    self.found = Some((rows, charge));
                }
                let (right, _) = self.found.as_ref().expect("found above");
                let candidate = |i: usize| (i, right[i].as_slice());
                let candidates = (right.len(), &candidate as &dyn Fn(usize) -> _);
                if self
                    .joiner
                    .row(row, &mut place, candidates, &self.slots, &mut |_| {})?
                {
                    self.found = None;
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
