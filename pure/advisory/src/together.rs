//! What shards tell each other, and the requests of one of them.
//!
//! One shard keeps the advisory locks of a database, its *keeper*. A statement asks it from the
//! shard that coordinates its transaction; the keeper tells the session's shard when the session
//! comes to hold something, so that the end of the session reaches the keeper.

use crate::{Answer, Ask, Asker, Notification};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use base::{DatabaseId, ShardId, SqlError, SqlState, TxnId};
use core::task::Poll;
use serde::{Deserialize, Serialize};

/// What shards tell each other of sessions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Together {
    /// To the keeper: a statement asks. Answered by `Answer`, which may take long.
    Ask {
        /// Who asks.
        asker: Asker,
        /// For what.
        ask: Ask,
        /// Longest wait in microseconds; 0: no limit.
        timeout_us: u64,
    },
    /// From the keeper.
    Answer {
        /// Number of the request.
        number: u64,
        /// The answer.
        answer: Answer,
    },
    /// To the keeper: a statement has ended before its answer.
    Withdraw {
        /// Backend number of its session.
        session: i32,
        /// Number of the request.
        number: u64,
    },
    /// To the keeper: a transaction has ended that has asked.
    TxnEnded {
        /// Backend number of its session.
        session: i32,
        /// The transaction.
        txn: TxnId,
        /// Whether its protocol has rolled it back, so that the server may run it again.
        undone: bool,
    },
    /// From the keeper to the session's shard: the session has something there, or nothing more.
    Has {
        /// Backend number of the session.
        session: i32,
        /// Whether it has.
        any: bool,
    },
    /// To the keeper: there is no such session (any more).
    SessionEnded {
        /// Backend number of the session.
        session: i32,
    },
    /// To all shards: a transaction has committed that tells something.
    Notify {
        /// Database of the session.
        database: DatabaseId,
        /// Backend number of the session.
        pid: i32,
        /// What it tells.
        notifications: Vec<Notification>,
    },
}

/// The shard that keeps the advisory locks of a database.
#[must_use]
pub fn keeper(database: DatabaseId, shards: &[ShardId]) -> ShardId {
    shards[database.0 as usize % shards.len()]
}

/// Requests of the statements of this shard.
#[derive(Default, Debug)]
pub struct Asks {
    /// Number of the last request; begins with the life of the node.
    pub next: u64,
    open: BTreeMap<u64, (ShardId, i32, Option<Answer>)>,
    /// Messages to be sent.
    pub to_send: Vec<(ShardId, Together)>,
}

impl Asks {
    /// Asks, or takes the answer.
    ///
    /// # Errors
    /// 08006 if the keeper cannot be reached.
    pub fn poll(
        &mut self,
        keeper: ShardId,
        unreachable: &BTreeSet<ShardId>,
        (here, session, txn): (ShardId, i32, TxnId),
        (ask, timeout_us): (Ask, u64),
        ticket: &mut Option<u64>,
    ) -> Poll<Result<Answer, SqlError>> {
        if unreachable.contains(&keeper) {
            if let Some(number) = ticket.take() {
                self.withdraw(number);
            }
            return Poll::Ready(Err(cut_off(keeper)));
        }
        let Some(number) = *ticket else {
            self.next += 1;
            let asker = Asker {
                shard: here,
                number: self.next,
                session,
                txn,
            };
            let message = Together::Ask {
                asker,
                ask,
                timeout_us,
            };
            self.to_send.push((keeper, message));
            self.open.insert(self.next, (keeper, session, None));
            *ticket = Some(self.next);
            return Poll::Pending;
        };
        match self.open.get_mut(&number).and_then(|open| open.2.take()) {
            Some(answer) => {
                self.open.remove(&number);
                Poll::Ready(Ok(answer))
            }
            None => Poll::Pending,
        }
    }

    /// The keeper has answered.
    pub fn on_answer(&mut self, number: u64, answer: Answer) {
        if let Some(open) = self.open.get_mut(&number) {
            open.2 = Some(answer);
        }
    }

    /// The statement ends without the answer.
    pub fn withdraw(&mut self, number: u64) {
        if let Some((keeper, session, _)) = self.open.remove(&number) {
            let message = Together::Withdraw { session, number };
            self.to_send.push((keeper, message));
        }
    }
}

fn cut_off(keeper: ShardId) -> SqlError {
    let message = format!(
        "node {} keeps the advisory locks of the database and cannot be reached",
        keeper.node().0
    );
    SqlError::new(SqlState::CONNECTION_FAILURE, message)
}
