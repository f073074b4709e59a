//! Reads that lock a row at once or not at all (NOWAIT, SKIP LOCKED). They go to the row, as
//! snapshot reads do, because its owner alone knows whether it is locked: a request that brings the
//! row here would wait for that lock.

use crate::job::{Job, Stop, Wait};
use crate::request::Standing;
use crate::{Cx, Leap};
use base::{Key, RowBatch, SqlError, Ts};
use local::ask::not_available;
use txn::lock::Item;
use txn::{LockMode, Op, OpError, OpResult, Program, Read};

impl Leap {
    /// The newest version of a row that passes and is locked.
    pub(crate) fn get_free(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        key: &Key,
        (mode, skips): (LockMode, bool),
        program: &Program,
    ) -> Result<OpResult, Stop> {
        match self.standing(key) {
            Standing::Mine => {}
            Standing::Elsewhere => return Err(Stop::Wait(Wait::Elsewhere)),
            Standing::Doubtful => return Err(Stop::Wait(Wait::Gate)),
        }
        let before = self.get(cx, job, key, Ts::MAX, program)?;
        if !matches!(&before, OpResult::Rows { batch, .. } if batch.rows > 0) {
            return Ok(before);
        }
        let item = Item::of(key);
        let held = self.locks.holds(job.txn, &item, mode);
        if !held && self.locks.in_the_way(job.txn, &item, mode).is_some() {
            let width = program.live(cx.decode).map_err(SqlError::from)?.width();
            return Ok(not_locked(skips, width)?);
        }
        // Copies that other shards read are called back; nothing else is in the way.
        self.take(cx, job, key, mode)?;
        self.get(cx, job, key, Ts::MAX, program)
    }

    /// The answer to an operation that locks a row at once or not at all, if its row is under way:
    /// to another transaction, which has locked it. `None`: it waits.
    pub(crate) fn answer_under_way(
        cx: &Cx<'_>,
        op: Option<&Op>,
    ) -> Option<Result<OpResult, OpError>> {
        let Some(Op::Get { read, program, .. }) = op else {
            return None;
        };
        let Read::TryLock { skips, .. } = read else {
            return None;
        };
        let width = program.live(cx.decode).map_err(SqlError::from);
        Some(match width {
            Ok(live) => not_locked(*skips, live.width()),
            Err(error) => Err(OpError::Sql(error)),
        })
    }
}

/// The answer about a row that another transaction has locked.
fn not_locked(skips: bool, width: usize) -> Result<OpResult, OpError> {
    match skips {
        true => Ok(OpResult::Rows {
            batch: RowBatch::new(width),
            resume: None,
        }),
        false => Err(OpError::Sql(not_available())),
    }
}
