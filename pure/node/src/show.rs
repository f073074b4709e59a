//! SHOW STAGES, PLACEMENT, NODES, COUNTERS, SESSIONS, DATABASES and TABLES: asked of every shard,
//! put together here; and orders to single sessions, which go the same way.

use crate::message::ShowKind;
use base::{Datum, RowBatch, ShardId, Time};
use bind::rel::Signal;
use parse::show::Show;
use session::pid_shard;
use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;
use txn::OpError;

/// Rows of SHOW HOTTEST.
pub(crate) const HOTTEST_ROWS: usize = 20;

/// Microseconds after which shards that have not answered are asked again.
const ASK_AGAIN_US: u64 = 500_000;

struct Question {
    kind: ShowKind,
    database: String,
    missing: BTreeSet<ShardId>,
    rows: Vec<Vec<Datum>>,
}

/// Questions of this shard that are under way.
#[derive(Default)]
pub(crate) struct Shows {
    next_id: u64,
    questions: BTreeMap<u64, Question>,
    /// Shards that cannot answer now.
    pub(crate) unreachable: BTreeSet<ShardId>,
    /// When those that have not answered are asked again.
    pub(crate) again_at: Option<Time>,
    /// Questions to be sent: number, what, database, whom.
    pub(crate) to_ask: Vec<(u64, ShowKind, String, Vec<ShardId>)>,
}

impl Shows {
    /// Starts a question or tells its answer. Shards of nodes that are down are left out.
    pub(crate) fn poll(
        &mut self,
        what: Show,
        database: &str,
        shards: &[ShardId],
        here: ShardId,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<RowBatch, OpError>> {
        // Which nodes are connected is a fact of the asked shard.
        let whom = match what {
            Show::Nodes => core::slice::from_ref(&here),
            Show::Stages
            | Show::Placement
            | Show::Memory
            | Show::Counters
            | Show::Ownership
            | Show::Hottest
            | Show::Sessions
            | Show::InDoubt
            | Show::Activity
            | Show::Databases
            | Show::Tables
            | Show::Rows
            | Show::Sizes => shards,
        };
        self.ask(kind_of(what), database, whom, ticket)
    }

    /// Sends an order to a session, or tells whether there was one. Who cannot be reached has none.
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
        let kind = ShowKind::Signal { pid, terminate };
        let answer = self.ask(kind, "", &[shard], ticket);
        answer.map(|rows| rows.map(|rows| !rows.is_empty()))
    }

    fn ask(
        &mut self,
        kind: ShowKind,
        database: &str,
        shards: &[ShardId],
        ticket: &mut Option<u64>,
    ) -> Poll<Result<RowBatch, OpError>> {
        let Some(id) = *ticket else {
            self.next_id += 1;
            let up = shards
                .iter()
                .filter(|shard| !self.unreachable.contains(shard));
            let missing: BTreeSet<ShardId> = up.copied().collect();
            let ask = missing.iter().copied().collect();
            self.to_ask
                .push((self.next_id, kind, database.to_string(), ask));
            self.questions.insert(
                self.next_id,
                Question {
                    kind,
                    database: database.to_string(),
                    missing,
                    rows: Vec::new(),
                },
            );
            *ticket = Some(self.next_id);
            return Poll::Pending;
        };
        let question = self.questions.get(&id).expect("a ticket names a question");
        if question
            .missing
            .iter()
            .any(|shard| !self.unreachable.contains(shard))
        {
            return Poll::Pending;
        }
        let question = self.questions.remove(&id).expect("just seen");
        Poll::Ready(Ok(combine(question)))
    }

    /// Questions have been sent at `now`.
    pub(crate) fn sent(&mut self, now: Time) {
        self.again_at = Some(now.after(ASK_AGAIN_US));
    }

    /// Asks again, if it is time: question or answer may have been sent while a connection was not
    /// there. An order to a session is not repeated, because it might hit its next statement: its
    /// shard is taken not to have had the session. Whether something has changed.
    pub(crate) fn on_tick(&mut self, now: Time) -> bool {
        if self.again_at.is_none_or(|at| at > now) {
            return false;
        }
        self.again_at = None;
        for (id, question) in &mut self.questions {
            if matches!(question.kind, ShowKind::Signal { .. }) {
                question.missing.clear();
                continue;
            }
            let missing = question.missing.difference(&self.unreachable);
            let ask: Vec<ShardId> = missing.copied().collect();
            if !ask.is_empty() {
                self.to_ask
                    .push((*id, question.kind, question.database.clone(), ask));
            }
        }
        true
    }

    /// Takes a shard's part.
    pub(crate) fn on_rows(&mut self, id: u64, from: ShardId, rows: &RowBatch) {
        if let Some(question) = self.questions.get_mut(&id)
            && question.missing.remove(&from)
        {
            question.rows.extend(rows.iter().map(<[Datum]>::to_vec));
        }
    }
}

fn kind_of(what: Show) -> ShowKind {
    match what {
        Show::Stages => ShowKind::Stages,
        Show::Placement => ShowKind::Placement,
        Show::Nodes => ShowKind::Nodes,
        Show::Counters => ShowKind::Counters,
        Show::Sessions => ShowKind::Sessions,
        Show::Activity => ShowKind::Activity,
        Show::Databases => ShowKind::Databases,
        Show::Tables => ShowKind::Tables,
        Show::Sizes => ShowKind::Sizes,
        Show::Rows => ShowKind::Rows,
        Show::Memory => ShowKind::Memory,
        Show::Ownership => ShowKind::Ownership,
        Show::Hottest => ShowKind::Hottest,
        Show::InDoubt => ShowKind::InDoubt,
    }
}

fn combine(question: Question) -> RowBatch {
    let mut rows = question.rows;
    match question.kind {
        ShowKind::Counters => rows = sum_by_name(&rows),
        // The reader adds up what the shards have.
        ShowKind::Sizes | ShowKind::Rows | ShowKind::Signal { .. } => {}
        ShowKind::Databases | ShowKind::Tables => rows = sum_columns(rows, 4),
        ShowKind::Stages
        | ShowKind::Placement
        | ShowKind::Nodes
        | ShowKind::Sessions
        | ShowKind::Memory
        | ShowKind::InDoubt
        | ShowKind::Activity
        | ShowKind::Ownership => rows.sort_by(|a, b| compare_rows(a, b)),
        ShowKind::Hottest => {
            let moves = |row: &[Datum]| row.last().cloned().unwrap_or(Datum::Null);
            rows.sort_by(|a, b| moves(b).compare(&moves(a)).then_with(|| compare_rows(a, b)));
            rows.truncate(HOTTEST_ROWS);
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
