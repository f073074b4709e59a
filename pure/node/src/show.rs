//! SHOW: questions to shards, whose answers are put together here. Orders to single sessions go the
//! same way.

use crate::message::Question;
use base::{Datum, RowBatch, ShardId, SqlError, SqlState, Time};
use bind::rel::Signal;
use catalog::Sequence;
use parse::show::{Combine, Show};
use session::pid_shard;
use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;
use txn::OpError;

/// Microseconds after which shards that have not answered are asked again.
const ASK_AGAIN_US: u64 = 500_000;

/// A question that some shards have not answered.
struct Asked {
    question: Question,
    missing: BTreeSet<ShardId>,
    rows: Vec<Vec<Datum>>,
}

/// Open questions of this shard.
#[derive(Default)]
pub(crate) struct Shows {
    next_id: u64,
    asked: BTreeMap<u64, Asked>,
    /// Shards that cannot be reached now.
    pub(crate) unreachable: BTreeSet<ShardId>,
    /// When shards that have not answered are asked again.
    pub(crate) again_at: Option<Time>,
    /// Requests for advisory locks.
    pub(crate) advisory: advisory::Asks,
    /// Questions to be sent: number, question, receivers.
    pub(crate) to_ask: Vec<(u64, Question, Vec<ShardId>)>,
}

impl Shows {
    /// Starts a question or returns its answer. Shards of nodes that are down are left out.
    pub(crate) fn poll(
        &mut self,
        what: Show,
        database: &str,
        shards: &[ShardId],
        here: ShardId,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<RowBatch, OpError>> {
        let whom = match what.combine() {
            Combine::OwnView | Combine::OwnSession => core::slice::from_ref(&here),
            Combine::Sorted
            | Combine::AsTheyCome
            | Combine::SumFrom(_)
            | Combine::ByName
            | Combine::Top(_) => shards,
        };
        let question = || Question::Show {
            what,
            database: database.to_string(),
        };
        self.ask(question, whom, ticket)
    }

    /// Sends an order to a session. Returns whether there is one; a shard that cannot be reached
    /// has none.
    pub(crate) fn poll_signal(
        &mut self,
        pid: i32,
        signal: Signal,
        shards: &[ShardId],
        ticket: &mut Option<u64>,
    ) -> Poll<Result<bool, OpError>> {
        let terminate = signal == Signal::Terminate;
        let shard = pid_shard(pid).filter(|shard| shards.contains(shard));
        let Some(shard) = shard else {
            return Poll::Ready(Ok(false));
        };
        let order = || Question::Signal { pid, terminate };
        let answer = self.ask(order, &[shard], ticket);
        answer.map(|rows| rows.map(|rows| !rows.is_empty()))
    }

    /// Makes all shards forget the numbers that they have drawn from a sequence.
    pub(crate) fn poll_forget(
        &mut self,
        sequence: &Sequence,
        shards: &[ShardId],
        ticket: &mut Option<u64>,
    ) -> Poll<Result<(), OpError>> {
        let order = || Question::Forget {
            sequence: sequence.id,
        };
        self.ask(order, shards, ticket).map(|rows| {
            if rows?.rows as usize == shards.len() {
                return Ok(());
            }
            let message = format!("sequence \"{}\" was not set on all nodes", sequence.name);
            Err(SqlError::new(SqlState::OBJECT_NOT_READY, message)
                .detail(
                    "A node that cannot be reached may still give out numbers that it has drawn.",
                )
                .hint("Call setval again when all nodes are back.")
                .into())
        })
    }

    fn ask(
        &mut self,
        question: impl FnOnce() -> Question,
        shards: &[ShardId],
        ticket: &mut Option<u64>,
    ) -> Poll<Result<RowBatch, OpError>> {
        let Some(id) = *ticket else {
            self.next_id += 1;
            let up = shards
                .iter()
                .filter(|shard| !self.unreachable.contains(shard));
            let asked = Asked {
                question: question(),
                missing: up.copied().collect(),
                rows: Vec::new(),
            };
            let whom = asked.missing.iter().copied().collect();
            self.to_ask
                .push((self.next_id, asked.question.clone(), whom));
            self.asked.insert(self.next_id, asked);
            *ticket = Some(self.next_id);
            return Poll::Pending;
        };
        let asked = self.asked.get(&id).expect("a ticket names a question");
        if asked
            .missing
            .iter()
            .any(|shard| !self.unreachable.contains(shard))
        {
            return Poll::Pending;
        }
        let asked = self.asked.remove(&id).expect("just seen");
        Poll::Ready(Ok(combine(asked)))
    }

    /// Whether there is no question and no request to be sent.
    pub(crate) fn has_nothing_to_send(&self) -> bool {
        self.to_ask.is_empty() && self.advisory.to_send.is_empty()
    }

    pub(crate) fn sent(&mut self, now: Time) {
        self.again_at = Some(now.after(ASK_AGAIN_US));
    }

    /// Asks again, if it is time: a message may have been sent while there was no connection. An
    /// order to a session is not repeated, because it might hit the next statement: its shard
    /// counts as without the session. Returns whether something has changed.
    pub(crate) fn on_tick(&mut self, now: Time) -> bool {
        if self.again_at.is_none_or(|at| at > now) {
            return false;
        }
        self.again_at = None;
        for (id, asked) in &mut self.asked {
            if matches!(asked.question, Question::Signal { .. }) {
                asked.missing.clear();
                continue;
            }
            let missing = asked.missing.difference(&self.unreachable);
            let ask: Vec<ShardId> = missing.copied().collect();
            if !ask.is_empty() {
                self.to_ask.push((*id, asked.question.clone(), ask));
            }
        }
        true
    }

    /// Takes a shard's part.
    pub(crate) fn on_rows(&mut self, id: u64, from: ShardId, rows: &RowBatch) {
        if let Some(asked) = self.asked.get_mut(&id)
            && asked.missing.remove(&from)
        {
            asked.rows.extend(rows.iter().map(<[Datum]>::to_vec));
        }
    }
}

fn combine(asked: Asked) -> RowBatch {
    let mut rows = asked.rows;
    let way = match asked.question {
        Question::Show { what, .. } => what.combine(),
        Question::Signal { .. } | Question::Forget { .. } => Combine::AsTheyCome,
    };
    match way {
        Combine::AsTheyCome => {}
        Combine::Sorted | Combine::OwnView | Combine::OwnSession => {
            rows.sort_by(|a, b| compare_rows(a, b))
        }
        Combine::SumFrom(first) => rows = sum_columns(rows, first),
        Combine::ByName => rows = sum_by_name(&rows),
        Combine::Top(count) => {
            let last = |row: &[Datum]| row.last().cloned().unwrap_or(Datum::Null);
            rows.sort_by(|a, b| last(b).compare(&last(a)).then_with(|| compare_rows(a, b)));
            rows.truncate(count);
        }
    }
    let width = rows.first().map_or(0, Vec::len);
    let mut batch = RowBatch::new(width);
    rows.into_iter().for_each(|row| batch.push(row));
    batch
}

/// Adds the values of equal names; names keep the order of the first shard.
fn sum_by_name(rows: &[Vec<Datum>]) -> Vec<Vec<Datum>> {
    let mut sums: Vec<(Datum, i64)> = Vec::new();
    for row in rows {
        let [name, Datum::Int(value)] = row.as_slice() else {
            unreachable!("a counter is a name and a number")
        };
        match sums.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += value,
            None => sums.push((name.clone(), *value)),
        }
    }
    sums.into_iter()
        .map(|(name, sum)| {
            let meaning = name.as_str().and_then(txn::Counters::meaning);
            let meaning = meaning.map_or(Datum::Null, crate::stages::text);
            vec![name, Datum::Int(sum), meaning]
        })
        .collect()
}

/// Adds up the columns from `first` on of rows that agree in those before; sorted by these.
fn sum_columns(mut rows: Vec<Vec<Datum>>, first: usize) -> Vec<Vec<Datum>> {
    rows.sort_by(|a, b| compare_rows(&a[..first], &b[..first]));
    let mut sums: Vec<Vec<Datum>> = Vec::new();
    for row in rows {
        match sums.last_mut().filter(|sum| sum[..first] == row[..first]) {
            Some(sum) => {
                for (sum, value) in sum[first..].iter_mut().zip(&row[first..]) {
                    if let (Datum::Int(sum), Datum::Int(value)) = (sum, value) {
                        *sum += value;
                    }
                }
            }
            None => sums.push(row),
        }
    }
    sums
}

fn compare_rows(a: &[Datum], b: &[Datum]) -> std::cmp::Ordering {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(x, y)| x.compare(y))
        .find(|order| order.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}
