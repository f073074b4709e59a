//! Joins: key lookups per left row, hash tables, dependent right sides.

use super::calls::bound;
use super::scan::lookups;
use super::source::{Rows, Source, collect, open};
use super::step::{Scan, Step, StepOp};
use super::{BATCH_ROWS, Charge, Cx, Local, Slots, WINDOW};
use crate::bind::rel::{Binds, JoinKind};
use crate::expr::{Columns, Expr, eval, eval_bool};
use crate::port::ExecError;
use crate::rows::GroupKey;
use base::{Datum, RowBatch, SqlError};
use std::collections::BTreeMap;

/// Rows joined so far and where they go.
struct Joiner<'a> {
    cx: &'a Cx<'a>,
    kind: JoinKind,
    filter: Option<&'a Expr>,
    right_width: usize,
    out: RowBatch,
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
        }
    }

    fn passes(&self, pair: &[Datum], slots: &[Datum]) -> Result<bool, SqlError> {
        match self.filter {
            None => Ok(true),
            Some(filter) => Ok(eval_bool(filter, &pair, &self.cx.env(slots))? == Some(true)),
        }
    }

    /// Joins one left row with its candidates; `matched` hears of right rows that fit.
    fn row<'r>(
        &mut self,
        left: &[Datum],
        right: impl Iterator<Item = (usize, &'r [Datum])>,
        slots: &[Datum],
        matched: &mut dyn FnMut(usize),
    ) -> Result<(), SqlError> {
        let mut any = false;
        let mut pair = Vec::with_capacity(left.len() + self.right_width);
        for (number, right) in right {
            pair.clear();
            pair.extend_from_slice(left);
            pair.extend_from_slice(right);
            if !self.passes(&pair, slots)? {
                continue;
            }
            any = true;
            match self.kind {
                JoinKind::Semi | JoinKind::Anti => break,
                _ => {
                    matched(number);
                    self.out.datums.append(&mut pair);
                    self.out.rows += 1;
                }
            }
        }
        match self.kind {
            JoinKind::Semi if any => self.out.push(left.iter().cloned()),
            JoinKind::Anti if !any => self.out.push(left.iter().cloned()),
            JoinKind::Left | JoinKind::Full if !any => {
                let nulls = core::iter::repeat_n(Datum::Null, self.right_width);
                self.out.push(left.iter().cloned().chain(nulls));
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self) -> RowBatch {
        let width = self.out.width as usize;
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
        }
    }

    async fn pull(&mut self) -> Result<Option<RowBatch>, ExecError> {
        loop {
            let (batch, at) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.left.next().await? {
                    Some(batch) => (batch, 0),
                    None => return Ok(None),
                },
            };
            let end = (batch.rows as usize).min(at + WINDOW);
            let rows: Vec<&[Datum]> = (at..end).map(|i| batch.row(i)).collect();
            let outer: Vec<&dyn Columns> = rows.iter().map(|row| row as &dyn Columns).collect();
            let found = lookups(self.cx, self.step, self.scan, &outer, &self.slots).await?;
            let mut work = rows.len();
            for (row, found) in rows.iter().zip(&found) {
                work += found.rows as usize;
                let right = found.iter().enumerate();
                self.joiner.row(row, right, &self.slots, &mut |_| {})?;
            }
            if end < batch.rows as usize {
                self.rest = Some((batch, end));
            }
            self.cx.breathe(work).await;
            if self.joiner.out.rows > 0 {
                return Ok(Some(self.joiner.take()));
            }
        }
    }
}

impl Rows for LookupRows<'_> {
    fn next(&mut self) -> Local<'_, Result<Option<RowBatch>, ExecError>> {
        Box::pin(self.pull())
    }
}

/// Rough size of an entry beside its key, in bytes.
const KEY_BYTES: usize = 64;

/// The right side in memory, by its keys.
pub(super) struct HashRows<'a> {
    cx: &'a Cx<'a>,
    left: Source<'a>,
    right: &'a Step,
    keys: &'a [(Expr, Expr)],
    joiner: Joiner<'a>,
    left_width: usize,
    slots: Slots,
    built: Option<Built>,
    rest: Option<(RowBatch, usize)>,
    /// The left side has ended; unmatched right rows of a full join follow.
    ended: bool,
    charge: Charge<'a>,
}

struct Built {
    rows: Vec<Vec<Datum>>,
    by_key: BTreeMap<GroupKey, Vec<usize>>,
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
            ended: false,
            charge: Charge::new(cx.port),
        }
    }

    async fn build(&mut self) -> Result<Built, ExecError> {
        let kind = self.joiner.kind;
        let only_keys = matches!(kind, JoinKind::Semi | JoinKind::Anti)
            && self.joiner.filter.is_none()
            && !self.keys.is_empty();
        if only_keys {
            return self.build_keys().await;
        }
        let rows = collect(self.cx, self.right, &self.slots, &mut self.charge).await?;
        let mut by_key: BTreeMap<GroupKey, Vec<usize>> = BTreeMap::new();
        for (i, row) in rows.iter().enumerate() {
            // NULL equals nothing.
            if let Some(key) = self.right_key(row)? {
                by_key.entry(key).or_default().push(i);
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
    async fn build_keys(&mut self) -> Result<Built, ExecError> {
        let mut by_key: BTreeMap<GroupKey, Vec<usize>> = BTreeMap::new();
        let mut source = open(self.cx, self.right, &self.slots);
        while let Some(batch) = source.next().await? {
            for row in batch.iter() {
                if let Some(key) = self.right_key(row)?
                    && !by_key.contains_key(&key)
                {
                    self.charge.add(key.bytes() + KEY_BYTES)?;
                    by_key.insert(key, vec![0]);
                }
            }
            self.cx.breathe(batch.rows as usize).await;
        }
        Ok(Built {
            rows: vec![Vec::new()],
            by_key,
            matched: vec![false],
        })
    }

    /// The keys of a right row; `None` if one of them is NULL.
    fn right_key(&self, row: &[Datum]) -> Result<Option<GroupKey>, SqlError> {
        let env = self.cx.env(&self.slots);
        let key = self.keys.iter().map(|(_, right)| eval(right, &row, &env));
        let key = GroupKey(key.collect::<Result<_, _>>()?);
        Ok((!key.0.iter().any(Datum::is_null)).then_some(key))
    }

    async fn pull(&mut self) -> Result<Option<RowBatch>, ExecError> {
        if self.built.is_none() {
            // Without left rows only a full join needs the right ones.
            match self.left.next().await? {
                Some(batch) => self.rest = Some((batch, 0)),
                None if self.joiner.kind != JoinKind::Full => return Ok(None),
                None => {}
            }
            self.built = Some(self.build().await?);
        }
        while !self.ended {
            let (batch, mut at) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.left.next().await? {
                    Some(batch) => (batch, 0),
                    None => {
                        self.ended = true;
                        break;
                    }
                },
            };
            let mut work = 0;
            while at < batch.rows as usize && (self.joiner.out.rows as usize) < BATCH_ROWS {
                work += 1 + self.probe(batch.row(at))?;
                at += 1;
                if work > BATCH_ROWS {
                    self.cx.breathe(work).await;
                    work = 0;
                }
            }
            self.cx.breathe(work).await;
            if at < batch.rows as usize {
                self.rest = Some((batch, at));
            }
            if self.joiner.out.rows > 0 {
                return Ok(Some(self.joiner.take()));
            }
        }
        let built = self.built.as_mut().expect("built above");
        if self.joiner.kind == JoinKind::Full {
            for (row, matched) in built.rows.iter().zip(&mut built.matched) {
                if !core::mem::replace(matched, true) {
                    let nulls = core::iter::repeat_n(Datum::Null, self.left_width);
                    self.joiner.out.push(nulls.chain(row.iter().cloned()));
                }
            }
        }
        let batch = self.joiner.take();
        Ok((batch.rows > 0).then_some(batch))
    }

    /// Joins one left row; returns the number of candidates.
    fn probe(&mut self, left: &[Datum]) -> Result<usize, SqlError> {
        let built = self.built.as_mut().expect("built before probing");
        let (rows, matched) = (&built.rows, &mut built.matched);
        let mut mark = |number: usize| matched[number] = true;
        if self.keys.is_empty() {
            let candidates = rows.iter().enumerate().map(|(i, row)| (i, row.as_slice()));
            self.joiner.row(left, candidates, &self.slots, &mut mark)?;
            return Ok(rows.len());
        }
        let env = self.cx.env(&self.slots);
        let key = self.keys.iter().map(|(key, _)| eval(key, &left, &env));
        let key = GroupKey(key.collect::<Result<_, _>>()?);
        let found = match key.0.iter().any(Datum::is_null) {
            true => None,
            false => built.by_key.get(&key),
        };
        let candidates = found
            .into_iter()
            .flatten()
            .map(|i| (*i, rows[*i].as_slice()));
        self.joiner.row(left, candidates, &self.slots, &mut mark)?;
        Ok(found.map_or(0, Vec::len))
    }
}

impl Rows for HashRows<'_> {
    fn next(&mut self) -> Local<'_, Result<Option<RowBatch>, ExecError>> {
        Box::pin(self.pull())
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
        }
    }

    async fn pull(&mut self) -> Result<Option<RowBatch>, ExecError> {
        while let Some(batch) = self.left.next().await? {
            for row in batch.iter() {
                let slots = bound(self.cx, self.binds, &row, &self.slots)?;
                let mut charge = Charge::new(self.cx.port);
                let rows = collect(self.cx, self.right, &slots, &mut charge).await?;
                let right = rows.iter().enumerate().map(|(i, row)| (i, row.as_slice()));
                self.joiner.row(row, right, &self.slots, &mut |_| {})?;
            }
            if self.joiner.out.rows > 0 {
                return Ok(Some(self.joiner.take()));
            }
        }
        Ok(None)
    }
}

impl Rows for LateralRows<'_> {
    fn next(&mut self) -> Local<'_, Result<Option<RowBatch>, ExecError>> {
        Box::pin(self.pull())
    }
}
