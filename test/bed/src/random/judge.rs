//! What must have been seen and left: the committed transactions one after the other.

use super::client::{Act, Client, Told};
use super::{Mix, Run};
use crate::{SLOTS, Subject, TABLE, TRAIL, programs};
use base::{Datum, Key, ShardId, Slot, Ts, TxnId};
use core::ops::ControlFlow;
use journal::Record;
use std::collections::BTreeMap;
use store::FormulaOp;
use txn::{Outcome, Read, Savepoint};

/// Rows of all shards.
type Rows = BTreeMap<(ShardId, Key), i64>;

/// A transaction that has committed: when, and whether it wrote.
type Committed<'a> = (Ts, bool, &'a Client);

/// What the committed transactions before the next one have left.
struct Replay {
    rows: Rows,
    versions: Vec<(Ts, Rows)>,
    /// As of the savepoints of the transaction that is replayed.
    saved: Vec<(u32, Rows)>,
}

impl Replay {
    fn at(&self, read: &Read) -> &Rows {
        match read {
            Read::Snapshot(snapshot) => {
                let mut versions = self.versions.iter().rev();
                let seen = versions.find(|(ts, _)| *ts <= snapshot.at);
                &seen.expect("the first is at zero").1
            }
            Read::Lock(_) | Read::LockRows { .. } | Read::TryLock { .. } => &self.rows,
        }
    }

    fn row(&mut self, shard: ShardId, key: &Key) -> &mut i64 {
        let row = self.rows.get_mut(&(shard, key.clone()));
        row.expect("accounts are there")
    }

    /// Does it, and says what it tells.
    fn apply(&mut self, shard: ShardId, act: &Act) -> Told {
        let place = |key: &Key| (shard, key.clone());
        let value = |value: Option<i64>| value.map_or(Told::Absent, Told::Value);
        match act {
            Act::Add { key, delta } => {
                let row = self.row(shard, key);
                *row += delta;
                Told::Value(*row)
            }
            Act::Formula { key, op, .. } => {
                let row = self.row(shard, key);
                *row = match (op, op.operand()) {
                    (FormulaOp::Add(_), Some(Datum::Int(operand))) => *row + operand,
                    (FormulaOp::Set(_), Some(Datum::Int(operand))) => *operand,
                    (FormulaOp::Max(_), Some(Datum::Int(operand))) => (*row).max(*operand),
                    (FormulaOp::Compute(value), None) => {
                        let value = value.value(&|_, _| Ok(Datum::Int(*row)));
                        value
                            .ok()
                            .and_then(|it| it.as_int())
                            .expect("it is a number")
                    }
                    other => panic!("nobody draws {other:?}"),
                };
                Told::Done
            }
            Act::Stock { key, amount } => {
                let row = self.row(shard, key);
                let refill = if *row >= amount + 10 { 0 } else { 91 };
                *row += refill - amount;
                Told::Done
            }
            Act::Get { key, read } => value(self.at(read).get(&place(key)).copied()),
            Act::Sum { read } => Told::Value(sum(self.at(read), shard)),
            Act::Insert { key, .. } if self.rows.contains_key(&place(key)) => Told::Exists,
            Act::Insert { key, value } => {
                self.rows.insert(place(key), *value);
                Told::Done
            }
            Act::Put { key } => {
                self.rows.insert(place(key), 1);
                Told::Done
            }
            Act::Remove { key } => match self.rows.remove(&place(key)) {
                // The row that goes is not returned.
                Some(_) => Told::Done,
                None => Told::Absent,
            },
            Act::Rows { keys } => {
                let insert = |key: &&Key| self.rows.insert(place(key), 1).is_some();
                Told::Exist(keys.iter().filter(insert).count() as i64)
            }
            Act::Save(Savepoint::Set { number, .. }) => {
                self.saved.push((*number, self.rows.clone()));
                Told::Done
            }
            Act::Save(Savepoint::Renew { .. }) => Told::Done,
            Act::Save(Savepoint::RollBackTo(to)) => {
                let saved = self.saved.iter().find(|(number, _)| number == to);
                self.rows = saved.expect("it was set").1.clone();
                Told::Done
            }
        }
    }
}

impl<P: Subject, M: Mix<P>> Run<P, M> {
    /// Commit timestamps of all transactions whose record survived.
    fn recorded(&self) -> BTreeMap<TxnId, Ts> {
        let mut recorded = BTreeMap::new();
        for node in self.world.nodes.values() {
            for (_, payload) in &node.disk.borrow().records {
                if let Record::Commit { txn, commit_ts, .. }
                | Record::Decision { txn, commit_ts, .. } =
                    Record::decode(payload).expect("own records decode")
                {
                    // What was handed to other shards has records there.
                    let before = recorded.insert(txn, commit_ts);
                    let same = before.is_none_or(|ts| ts == commit_ts);
                    assert!(same, "{txn} commits once");
                }
            }
        }
        recorded
    }

    pub(super) fn check(&self) {
        let recorded = self.recorded();
        let mut committed: Vec<Committed<'_>> = Vec::new();
        for client in &self.clients {
            let (wrote, record) = (client.wrote(), recorded.get(&client.txn).copied());
            let who = || format!("seed {}: {client:?}", self.seed);
            match (&client.outcome, record) {
                (Some(Outcome::Committed { commit_ts }), record) => {
                    assert!(record.is_none_or(|ts| ts == *commit_ts), "{}", who());
                    assert!(record.is_some() || !wrote, "{}", who());
                    let free = P::MOVES_ROWS || client.undid() || client.went_back();
                    assert!(free || record.is_none() || wrote, "{}", who());
                    committed.push((*commit_ts, wrote, client));
                }
                (Some(Outcome::Aborted(_)), Some(_)) => panic!("aborted, {}", who()),
                (Some(Outcome::Aborted(_)) | None, None) => {}
                (None, Some(commit_ts)) => committed.push((commit_ts, true, client)),
                // In the hands of another shard, which has committed it or not.
                (Some(Outcome::Unknown), record) => {
                    assert!(P::may_be_unknown(client.steps.len()), "{}", who());
                    committed.extend(record.map(|commit_ts| (commit_ts, true, client)));
                }
            }
        }
        // Writers in the order of their timestamps; readers after all writers up to theirs.
        committed.sort_by_key(|(ts, writes, _)| (*ts, !*writes));
        self.replay(&committed);
    }

    #[expect(clippy::print_stdout, reason = "SEED=n asks for it")]
    fn tell(&self, committed: &[Committed<'_>]) {
        let history = &self.world.history;
        committed
            .iter()
            .for_each(|(ts, _, client)| println!("{ts} {client:?}"));
        history.iter().for_each(|event| println!("{event:?}"));
    }

    fn replay(&self, committed: &[Committed<'_>]) {
        if self.world.traced {
            self.tell(committed);
        }
        let initial = self.world.initial.iter();
        let rows: Rows = initial
            .map(|(shard, key, value)| ((*shard, key.clone()), *value))
            .collect();
        let mut replay = Replay {
            versions: vec![(Ts::ZERO, rows.clone())],
            rows,
            saved: Vec::new(),
        };
        let seed = self.seed;
        for (ts, _, client) in committed {
            replay.saved.clear();
            for step in &client.steps {
                if let Act::Sum {
                    read: Read::Snapshot(snapshot),
                } = &step.act
                {
                    assert!(client.floor <= snapshot.at, "seed {seed}: {client:?}");
                }
                let expected = replay.apply(step.shard, &step.act);
                let told = step.told.unwrap_or(expected);
                assert!(
                    told == expected,
                    "seed {seed}: {step:?} of {} at {ts}, not {expected:?}",
                    client.txn
                );
                if let Act::Formula { key, ty, .. } = &step.act {
                    let sum = *replay.row(step.shard, key);
                    let fits = *ty != base::Type::Int2 || i16::try_from(sum).is_ok();
                    assert!(fits, "seed {seed}: {sum}");
                }
            }
            replay.versions.push((*ts, replay.rows.clone()));
        }
        match P::MOVES_ROWS {
            true => self.check_watched(&replay.rows),
            false => self.check_stores(&replay.rows),
        }
    }

    /// Each row has one owner, which has its value.
    fn check_watched(&self, rows: &Rows) {
        for key in &self.profile.watched {
            let owners = self.world.owners(key);
            let (seed, states) = (self.seed, || self.world.states());
            assert_eq!(owners.len(), 1, "seed {seed}: {key:?}\n{}", states());
            let expected = rows.get(&(self.world.home(key), key.clone())).copied();
            assert_eq!(self.world.value(key), expected, "seed {seed}: {key:?}");
        }
    }

    /// The stores hold all rows and no others.
    fn check_stores(&self, rows: &Rows) {
        let mut found = Rows::new();
        for (shard, state) in &self.world.shards {
            for (index, slot) in [TABLE, TRAIL]
                .into_iter()
                .flat_map(|index| (0..SLOTS).map(move |slot| (index, Slot(slot))))
            {
                let mut note = |bytes: &[u8], row: &[u8], _| {
                    let key = Key::new(index, slot, bytes.to_vec());
                    found.insert((*shard, key), programs::value(row));
                    ControlFlow::Continue(())
                };
                let all = store::Window::all();
                let _ = state.store.scan_next(index, slot, all, Ts::MAX, &mut note);
            }
        }
        assert_eq!(&found, rows, "seed {}", self.seed);
    }
}

fn sum(rows: &Rows, shard: ShardId) -> i64 {
    let mine = rows
        .iter()
        .filter(|((at, key), _)| *at == shard && key.index == TABLE);
    mine.map(|(_, value)| value).sum()
}
