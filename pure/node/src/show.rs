//! SHOW STAGES, PLACEMENT, NODES, COUNTERS and SESSIONS: asked of every shard, put together here.

use crate::message::ShowKind;
use base::{Datum, RowBatch, ShardId};
use sql::port::{ExecError, Show};
use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;

/// Rows of SHOW HOTTEST.
pub(crate) const HOTTEST_ROWS: usize = 20;

struct Question {
    kind: ShowKind,
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
    ) -> Poll<Result<RowBatch, ExecError>> {
        let Some(id) = *ticket else {
            self.next_id += 1;
            let kind = kind_of(what);
            let up = shards
                .iter()
                .filter(|shard| !self.unreachable.contains(shard));
            // Which nodes are connected is a fact of the asked shard.
            let missing: BTreeSet<ShardId> = match kind {
                ShowKind::Nodes => BTreeSet::from([here]),
                ShowKind::Stages
                | ShowKind::Placement
                | ShowKind::Counters
                | ShowKind::Sessions
                | ShowKind::Sizes
                | ShowKind::Memory
                | ShowKind::Ownership
                | ShowKind::InDoubt
                | ShowKind::Hottest => up.copied().collect(),
            };
            let ask = missing.iter().copied().collect();
            self.to_ask
                .push((self.next_id, kind, database.to_string(), ask));
            self.questions.insert(
                self.next_id,
                Question {
                    kind,
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
        Show::Sizes => ShowKind::Sizes,
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
        ShowKind::Sizes => {}
        ShowKind::Stages
        | ShowKind::Placement
        | ShowKind::Nodes
        | ShowKind::Sessions
        | ShowKind::Memory
        | ShowKind::InDoubt
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
        .map(|(name, sum)| vec![name, Datum::Int(sum)])
        .collect()
}

fn compare_rows(a: &[Datum], b: &[Datum]) -> std::cmp::Ordering {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(x, y)| x.compare(y))
        .find(|order| order.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}
