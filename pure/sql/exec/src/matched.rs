//! INTERSECT and EXCEPT: the rows of the left side that the right one has, or has not.

use super::filter::retain;
use super::long::Long;
use super::source::{Rows, Source, open};
use super::{Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use bind::rel::Matching;
use expr::hashed::Groups;
use plan::step::{Step, StepOp};
use txn::OpError;

pub(super) struct MatchRows<'a> {
    cx: &'a Cx<'a>,
    matching: Matching,
    left: Source<'a>,
    /// The right side until it has been read.
    right: Option<Source<'a>>,
    /// For each row of the right side how many are left to match; of EXCEPT without ALL, for rows
    /// that were given, too.
    counts: Long<'a, Groups<u64>>,
    charge: Charge<'a>,
}

impl<'a> MatchRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> MatchRows<'a> {
        let StepOp::Match {
            matching,
            left,
            right,
        } = &step.op
        else {
            unreachable!("opened for INTERSECT or EXCEPT");
        };
        MatchRows {
            cx,
            matching: *matching,
            left: open(cx, left, slots),
            right: Some(open(cx, right, slots)),
            counts: Long::new(cx.port, Groups::of_width(step.width as usize, 1)),
            charge: Charge::new(cx.port),
        }
    }

    /// The group of a row, which starts with this count; `None`: it was there before.
    fn enter(&mut self, row: &[Datum], count: u64) -> Result<Option<usize>, SqlError> {
        let (group, grown) = self.counts.enter_copy(row, || [count]);
        if grown == 0 {
            return Ok(Some(group));
        }
        self.charge.add(grown)?;
        Ok(None)
    }

    async fn read_right(&mut self, mut right: Source<'a>) -> Result<(), OpError> {
        while let Some(batch) = right.next().await? {
            for row in batch.iter() {
                if let Some(group) = self.enter(row, 1)? {
                    self.counts.states(group)[0] += 1;
                }
            }
            self.cx.breathe(batch.rows as usize).await;
        }
        Ok(())
    }

    /// Whether a row of the left side is one of the result.
    fn keeps(&mut self, row: &[Datum]) -> Result<bool, SqlError> {
        let Matching { except, all } = self.matching;
        if except && !all {
            // Equal rows behind it are not given again.
            return Ok(self.enter(row, 1)?.is_none());
        }
        let Some(group) = self.counts.find(row) else {
            return Ok(except);
        };
        let count = &mut self.counts.states(group)[0];
        if *count == 0 {
            return Ok(except);
        }
        *count = if all { *count - 1 } else { 0 };
        Ok(!except)
    }
}

impl Rows for MatchRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if let Some(right) = self.right.take() {
            self.read_right(right).await?;
        }
        while let Some(mut batch) = self.left.next().await? {
            let rows = batch.rows as usize;
            retain(&mut batch, |row| self.keeps(row))?;
            self.cx.breathe(rows).await;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}
