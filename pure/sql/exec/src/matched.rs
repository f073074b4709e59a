//! INTERSECT and EXCEPT: the rows of the left side that the right one has, or has not.

use super::filter::retain;
use super::long::Long;
use super::source::{Rows, Source, open};
use super::{Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use bind::rel::Matching;
use expr::rows::{GroupKey, entry_bytes};
use plan::step::{Step, StepOp};
use std::collections::BTreeMap;
use txn::OpError;

pub(super) struct MatchRows<'a> {
    cx: &'a Cx<'a>,
    matching: Matching,
    left: Source<'a>,
    /// The right side until it has been read.
    right: Option<Source<'a>>,
    /// For each row of the right side how many are left to match; without ALL, for rows that were
    /// given, too.
    counts: Long<'a, BTreeMap<GroupKey, u64>>,
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
            counts: Long::new(cx.port, BTreeMap::new()),
            charge: Charge::new(cx.port),
        }
    }

    fn add(&mut self, key: GroupKey, count: u64) -> Result<(), SqlError> {
        let size = key.bytes() + entry_bytes(size_of::<GroupKey>() + size_of::<u64>());
        self.charge.add(size)?;
        self.counts.insert(key, count);
        Ok(())
    }

    async fn read_right(&mut self, mut right: Source<'a>) -> Result<(), OpError> {
        while let Some(batch) = right.next().await? {
            for row in batch.iter() {
                let key = GroupKey(row.to_vec());
                match self.counts.get_mut(&key) {
                    Some(count) => *count += 1,
                    None => self.add(key, 1)?,
                }
            }
            self.cx.breathe(batch.rows as usize).await;
        }
        Ok(())
    }

    /// Whether a row of the left side is one of the result.
    fn keeps(&mut self, row: &[Datum]) -> Result<bool, SqlError> {
        let Matching { except, all } = self.matching;
        let key = GroupKey(row.to_vec());
        match (self.counts.get_mut(&key), except) {
            (None, false) => Ok(false),
            (None, true) => {
                if !all {
                    // Equal rows behind it are not given again.
                    self.add(key, 1)?;
                }
                Ok(true)
            }
            (Some(_), true) if !all => Ok(false),
            (Some(0), except) => Ok(except),
            (Some(count), except) => {
                *count = if all { *count - 1 } else { 0 };
                Ok(!except)
            }
        }
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
