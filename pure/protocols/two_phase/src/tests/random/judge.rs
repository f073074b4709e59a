//! What must have been seen and left: the committed transactions one after the other.

use super::super::world::{TABLE, TRAIL, key};
use super::{Act, Client, EDGE, Run, initial};
use base::{Key, ShardId, Slot, Ts, TxnId};
use journal::Record;
use std::collections::BTreeMap;
use txn::{Outcome, Read};

impl Run {
    /// Commit timestamps of all transactions whose record survived.
    fn recorded(&self) -> BTreeMap<TxnId, Ts> {
        let mut recorded = BTreeMap::new();
        for node in self.world.nodes.values() {
            for (_, payload) in &node.disk.borrow().records {
                match Record::decode(payload).expect("own records decode") {
                    Record::Commit { txn, commit_ts, .. }
                    | Record::Decision { txn, commit_ts, .. } => {
                        let before = recorded.insert(txn, commit_ts);
                        assert!(before.is_none_or(|before| before == commit_ts));
                    }
                    _ => {}
                }
            }
        }
        recorded
    }

    pub(super) fn check(&self) {
        let recorded = self.recorded();
        let mut committed: Vec<(Ts, bool, &Client)> = Vec::new();
        for client in &self.clients {
            let writes = client.steps.iter().any(|step| match step.act {
                Act::Add { .. }
                | Act::Formula { .. }
                | Act::Edge { .. }
                | Act::Trail { .. }
                | Act::Rows { .. } => true,
                Act::Get { .. } | Act::Sum { .. } => false,
            });
            let record = recorded.get(&client.txn).copied();
            let who = || format!("seed {}: {client:?}", self.seed);
            match (&client.outcome, record) {
                (Some(Outcome::Committed { commit_ts }), record) => {
                    assert_eq!(record.is_some(), writes, "{}", who());
                    assert!(
                        record.is_none_or(|record| record == *commit_ts),
                        "{}",
                        who()
                    );
                    committed.push((*commit_ts, writes, client));
                }
                (Some(Outcome::Aborted(_)), Some(_)) => panic!("aborted, {}", who()),
                (Some(Outcome::Aborted(_)) | None | Some(Outcome::Unknown), None) => {}
                (Some(Outcome::Unknown) | None, Some(commit_ts)) => {
                    committed.push((commit_ts, true, client));
                }
            }
        }
        // Writers in the order of their timestamps; readers after all writers up to theirs.
        committed.sort_by_key(|(ts, writes, _)| (*ts, !*writes));
        self.replay(&committed);
    }

    #[expect(clippy::print_stdout, reason = "SEED=n asks for it")]
    fn tell(&self, committed: &[(Ts, bool, &Client)]) {
        committed
            .iter()
            .for_each(|(ts, _, client)| println!("{ts} {client:?}"));
        self.world
            .history
            .iter()
            .for_each(|event| println!("{event:?}"));
    }

    fn replay(&self, committed: &[(Ts, bool, &Client)]) {
        let mut rows: BTreeMap<(ShardId, Key), i64> = BTreeMap::new();
        for shard in self.world.shards.keys() {
            for (key, value) in initial() {
                rows.insert((*shard, key), value);
            }
        }
        if std::env::var("SEED").is_ok() {
            self.tell(committed);
        }
        let mut versions = vec![(Ts::ZERO, rows.clone())];
        for (ts, _, client) in committed {
            for step in &client.steps {
                let at = |key: &Key| (step.shard, key.clone());
                let expected = match &step.act {
                    Act::Add { key, delta } => {
                        let value = rows.get_mut(&at(key)).expect("an account");
                        *value += delta;
                        Some(*value)
                    }
                    Act::Formula { key, delta } => {
                        *rows.get_mut(&at(key)).expect("an account") += delta;
                        None
                    }
                    Act::Edge { delta } => {
                        let edge = rows.get_mut(&at(&key(TABLE, EDGE))).expect("it is there");
                        *edge += delta;
                        assert!(i16::try_from(*edge).is_ok(), "seed {}: {edge}", self.seed);
                        None
                    }
                    Act::Get { key } => rows.get(&at(key)).copied(),
                    Act::Sum {
                        read: Read::Snapshot(snapshot),
                    } => {
                        assert!(
                            client.floor <= snapshot.at,
                            "seed {}: {client:?}",
                            self.seed
                        );
                        let seen = versions.iter().rev().find(|(ts, _)| *ts <= snapshot.at);
                        Some(sum(&seen.expect("the first is at zero").1, step.shard))
                    }
                    Act::Sum { .. } => Some(sum(&rows, step.shard)),
                    Act::Trail { key, .. } => {
                        rows.insert(at(key), 1);
                        None
                    }
                    Act::Rows { keys } => {
                        let insert = |key: &&Key| rows.insert(at(key), 1).is_some();
                        Some(keys.iter().filter(insert).count() as i64)
                    }
                };
                if step.seen.is_some() {
                    assert_eq!(
                        step.seen, expected,
                        "seed {}: {step:?} of {} at {ts}",
                        self.seed, client.txn
                    );
                }
            }
            versions.push((*ts, rows.clone()));
        }
        for (shard, state) in &self.world.shards {
            let mut found = 0;
            for index in [TABLE, TRAIL] {
                for slot in 0..7 {
                    let all = store::Window::all();
                    let _ =
                        state
                            .store
                            .scan_next(index, Slot(slot), all, Ts::MAX, &mut |k, row, _| {
                                found += 1;
                                let key = Key::new(index, Slot(slot), k.to_vec());
                                let value = super::super::programs::value(row);
                                let expected = rows.get(&(*shard, key.clone()));
                                let seed = self.seed;
                                assert_eq!(
                                    expected,
                                    Some(&value),
                                    "seed {seed}: {key:?} on {shard}"
                                );
                                core::ops::ControlFlow::Continue(())
                            });
                }
            }
            for (at, key) in rows.keys().filter(|(other, _)| other == shard) {
                assert!(
                    self.world.value(*at, key).is_some(),
                    "seed {}: {key:?} on {at}",
                    self.seed
                );
            }
            let expected = rows.keys().filter(|(other, _)| other == shard).count();
            assert_eq!(found, expected, "seed {}: rows of {shard}", self.seed);
        }
    }
}

fn sum(rows: &BTreeMap<(ShardId, Key), i64>, shard: ShardId) -> i64 {
    let mine = rows
        .iter()
        .filter(|((at, key), _)| *at == shard && key.index == TABLE);
    mine.map(|(_, value)| value).sum()
}
