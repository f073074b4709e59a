//! SHOW TRANSACTION COST: what the transaction that ended last in this session has cost.

use super::Session;
use crate::message::EndCost;
use base::{Datum, RowBatch, Time};
use parse::show::Show;
use txn::{Outcome, TxnCost};

/// A transaction that has ended.
#[derive(Debug)]
pub(super) struct LastTxn {
    outcome: &'static str,
    /// `None`: its coordinator has not told it.
    cost: Option<EndCost>,
    /// How often the server has run it again.
    retries: u32,
    /// From the begin of its first attempt to its outcome.
    duration_us: u64,
}

impl Session {
    /// The coordinator has told the outcome of the transaction.
    pub(super) fn note_end(&mut self, now: Time, outcome: &Outcome, cost: Option<EndCost>) {
        let outcome = match outcome {
            Outcome::Committed { .. } => "committed",
            Outcome::Aborted(_) => "rolled back",
            Outcome::Unknown => "unknown",
        };
        self.note_last(now, outcome, cost);
    }

    /// The transaction ends without a word of what it has cost.
    pub(super) fn note_rollback(&mut self, now: Time) {
        self.note_last(now, "rolled back", None);
    }

    fn note_last(&mut self, now: Time, outcome: &'static str, cost: Option<EndCost>) {
        let last = LastTxn {
            outcome,
            cost,
            retries: self.restarts,
            duration_us: now.since(self.txn_since),
        };
        match &mut self.last_txn {
            Some(place) => **place = last,
            None => self.last_txn = Some(Box::new(last)),
        }
    }

    /// The row of SHOW TRANSACTION COST; none before the first transaction has ended.
    pub(super) fn transaction_cost(&self) -> RowBatch {
        let mut rows = RowBatch::new(Show::TransactionCost.columns().len());
        if let Some(last) = &self.last_txn {
            rows.push(last.row());
        }
        rows
    }
}

impl LastTxn {
    fn row(&self) -> Vec<Datum> {
        let mut row = vec![Datum::from(self.outcome)];
        match &self.cost {
            Some(end) => row.extend(end_cost(end)),
            None => row.extend(core::iter::repeat_n(Datum::Null, 11)),
        }
        row.extend([u64::from(self.retries), self.duration_us].map(int));
        row
    }
}

/// `nodes_touched` to `move_wait_us`.
fn end_cost(end: &EndCost) -> [Datum; 11] {
    let EndCost {
        cost,
        nodes_touched,
        moves_rows,
    } = *end;
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
    } = cost;
    // Bytes are counted where EXPLAIN ANALYZE began the transaction; else they are 0.
    let counted = message_bytes > 0 || (messages_on_path == 0 && messages_off_path == 0);
    let small = |count: u32| int(u64::from(count));
    let only = |is_there: bool, count: u64| if is_there { int(count) } else { Datum::Null };
    [
        small(nodes_touched),
        small(nodes),
        small(shards),
        small(messages_on_path),
        small(messages_off_path),
        small(messages_in_node),
        only(counted, message_bytes),
        small(delays),
        small(forced_writes),
        only(moves_rows, u64::from(rows_moved)),
        only(moves_rows, move_wait_us),
    ]
}

fn int(count: u64) -> Datum {
    Datum::Int(count as i64)
}
