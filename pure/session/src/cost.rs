//! SHOW TRANSACTION COST: what the transaction that ended last in this session has cost.

use super::Session;
use crate::message::EndCost;
use base::{Datum, RowBatch, Time};
use parse::show::Show;
use txn::{Outcome, TxnCost};

/// The transaction of a session that ended last, and the places for costs.
///
/// Nothing is computed before a SHOW asks. Two places go to and fro: one has the cost of the last
/// transaction, the other is with the coordinator of the open one.
#[derive(Debug, Default)]
pub(super) struct LastTxn {
    /// `None`: no transaction has ended yet.
    how: Option<How>,
    /// What it has cost; `None`: its coordinator has not told that.
    cost: Option<Box<EndCost>>,
    retries: u32,
    /// When its first attempt began.
    begun: Time,
    /// When the session heard the outcome.
    ended: Time,
    /// A place that no coordinator has.
    free: Option<Box<EndCost>>,
    /// How often the server has run the open or last transaction again.
    pub(super) restarts: u32,
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug)]
enum How {
    Committed,
    RolledBack,
    Unknown,
}

impl Session {
    /// The coordinator has told the outcome of the transaction.
    pub(super) fn note_end(&mut self, now: Time, outcome: &Outcome, cost: Option<Box<EndCost>>) {
        let how = match outcome {
            Outcome::Committed { .. } => How::Committed,
            Outcome::Aborted(_) => How::RolledBack,
            Outcome::Unknown => How::Unknown,
        };
        self.last_txn.note(how, cost, (self.txn_since, now));
    }

    /// The transaction ends without a word of what it has cost.
    pub(super) fn note_rollback(&mut self, now: Time) {
        let times = (self.txn_since, now);
        self.last_txn.note(How::RolledBack, None, times);
    }

    /// The row of SHOW TRANSACTION COST; none before the first transaction has ended.
    pub(super) fn transaction_cost(&self) -> RowBatch {
        let mut rows = RowBatch::new(Show::TransactionCost.columns().len());
        if let Some(how) = self.last_txn.how {
            rows.push(self.last_txn.row(how));
        }
        rows
    }
}

impl LastTxn {
    /// A place for the cost of a transaction that begins.
    pub(super) fn place(&mut self) -> Box<EndCost> {
        self.free.take().unwrap_or_default()
    }

    fn note(&mut self, how: How, cost: Option<Box<EndCost>>, (begun, ended): (Time, Time)) {
        self.how = Some(how);
        self.retries = self.restarts;
        (self.begun, self.ended) = (begun, ended);
        if let Some(place) = core::mem::replace(&mut self.cost, cost) {
            self.free = Some(place);
        }
    }

    fn row(&self, how: How) -> Vec<Datum> {
        let how = match how {
            How::Committed => "committed",
            How::RolledBack => "rolled back",
            How::Unknown => "unknown",
        };
        let mut row = vec![Datum::from(how)];
        match &self.cost {
            Some(end) => row.extend(end_cost(end)),
            None => row.extend(core::iter::repeat_n(Datum::Null, 11)),
        }
        let duration = self.ended.since(self.begun);
        row.extend([u64::from(self.retries), duration].map(int));
        row
    }
}

/// `nodes_touched` to `move_wait_us`.
fn end_cost(end: &EndCost) -> [Datum; 11] {
    let EndCost {
        cost,
        nodes_touched,
        moves_rows,
    } = end;
    let TxnCost {
        shards,
        nodes,
        messages_on_path,
        messages_off_path,
        messages_in_node,
        message_bytes,
        delays,
        forced_writes,
        rows_moved,
        move_wait_us,
    } = *cost;
    // Bytes are counted where EXPLAIN ANALYZE began the transaction; else they are 0.
    let counted = message_bytes > 0 || (messages_on_path == 0 && messages_off_path == 0);
    let small = |count: u32| int(u64::from(count));
    let only = |is_there: bool, count: u64| if is_there { int(count) } else { Datum::Null };
    [
        small(*nodes_touched),
        small(nodes),
        small(shards),
        small(messages_on_path),
        small(messages_off_path),
        small(messages_in_node),
        only(counted, message_bytes),
        small(delays),
        small(forced_writes),
        only(*moves_rows, u64::from(rows_moved)),
        only(*moves_rows, move_wait_us),
    ]
}

fn int(count: u64) -> Datum {
    Datum::Int(count as i64)
}
