//! What must have been seen and left: the committed transactions one after the other.

use super::super::world::key;
use super::{Act, Client, FLAGS, INITIAL, NAMES, Run, Told};
use base::{Key, Ts, TxnId};
use journal::Record;
use std::collections::BTreeMap;
use txn::{Outcome, Read};

impl Run {
    /// Commit timestamps of all transactions whose record survived.
    fn recorded(&self) -> BTreeMap<TxnId, Ts> {
        let mut recorded = BTreeMap::new();
        for node in self.world.nodes.values() {
            for (_, payload) in &node.disk.borrow().records {
                if let Record::Commit { txn, commit_ts, .. } =
                    Record::decode(payload).expect("own records decode")
                {
                    // What was shipped to owners has records there.
                    let before = recorded.insert(txn, commit_ts);
                    assert!(
                        before.is_none_or(|ts| ts == commit_ts),
                        "{txn} commits once"
                    );
                }
            }
        }
        recorded
    }

    pub(super) fn check(&self) {
        let recorded = self.recorded();
        let mut committed: Vec<(Ts, bool, &Client)> = Vec::new();
        for client in &self.clients {
            let record = recorded.get(&client.txn).copied();
            let who = || format!("seed {}: {client:?}", self.seed);
            match (&client.outcome, record) {
                (Some(Outcome::Committed { commit_ts }), record) => {
                    assert!(record.is_none_or(|ts| ts == *commit_ts), "{}", who());
                    assert!(record.is_some() || !client.wrote(), "{}", who());
                    committed.push((*commit_ts, client.wrote(), client));
                }
                (Some(Outcome::Aborted(_)), Some(_)) => panic!("aborted, {}", who()),
                (Some(Outcome::Aborted(_)) | None, None) => {}
                (None, Some(commit_ts)) => committed.push((commit_ts, true, client)),
                // In the hands of another shard, which has committed it or not.
                (Some(Outcome::Unknown), Some(commit_ts)) => {
                    assert!(client.entrusts(), "{}", who());
                    committed.push((commit_ts, true, client));
                }
                (Some(Outcome::Unknown), None) => assert!(client.entrusts(), "{}", who()),
            }
        }
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
        let mut rows: BTreeMap<Key, i64> = BTreeMap::new();
        for name in NAMES {
            rows.insert(key(name), INITIAL);
        }
        if self.world.traced {
            self.tell(committed);
        }
        let mut versions = vec![(Ts::ZERO, rows.clone())];
        for (ts, _, client) in committed {
            for step in &client.steps {
                let at = |snapshot: Ts| {
                    let seen = versions.iter().rev().find(|(ts, _)| *ts <= snapshot);
                    &seen.expect("the first is at zero").1
                };
                let expected = match &step.act {
                    Act::Add { name, delta } => {
                        let value = rows.get_mut(&key(name)).expect("an account");
                        *value += delta;
                        Told::Value(*value)
                    }
                    Act::Bump { name, delta } => {
                        *rows.get_mut(&key(name)).expect("an account") += delta;
                        Told::Done
                    }
                    Act::Get { name, read } => {
                        let rows = match read {
                            Read::Snapshot(snapshot) => at(snapshot.at),
                            Read::Lock(_) | Read::LockRows { .. } => &rows,
                        };
                        rows.get(&key(name))
                            .map_or(Told::Absent, |value| Told::Value(*value))
                    }
                    Act::Insert { name, value } => match rows.get(&key(name)) {
                        Some(_) => Told::Exists,
                        None => {
                            rows.insert(key(name), *value);
                            Told::Done
                        }
                    },
                    Act::Remove { name } => match rows.remove(&key(name)) {
                        Some(value) => Told::Value(value),
                        None => Told::Absent,
                    },
                    Act::Sum { at: home, read } => {
                        let rows = match read {
                            Read::Snapshot(snapshot) => at(snapshot.at),
                            Read::Lock(_) | Read::LockRows { .. } => &rows,
                        };
                        let mine = rows.iter().filter(|(key, _)| self.world.home(key) == *home);
                        Told::Value(mine.map(|(_, value)| value).sum())
                    }
                };
                if let Some(told) = step.told {
                    let same = match (told, expected) {
                        // The row that goes is not returned.
                        (Told::Done, Told::Value(_)) => matches!(step.act, Act::Remove { .. }),
                        (told, expected) => told == expected,
                    };
                    let (seed, txn) = (self.seed, client.txn);
                    assert!(
                        same,
                        "seed {seed}: {step:?} of {txn} at {ts}, not {expected:?}"
                    );
                }
            }
            versions.push((*ts, rows.clone()));
        }
        for name in NAMES.iter().chain(&FLAGS) {
            let owners = self.world.owners(&key(name));
            assert_eq!(
                owners.len(),
                1,
                "seed {}: {name}\n{}",
                self.seed,
                self.states()
            );
            let value = self.world.value(&key(name));
            let expected = rows.get(&key(name)).copied();
            assert_eq!(value, expected, "seed {}: {name}", self.seed);
        }
    }
}

impl Client {
    fn wrote(&self) -> bool {
        self.steps.iter().any(|step| match (&step.act, step.told) {
            (Act::Add { .. } | Act::Bump { .. }, _) => true,
            (Act::Insert { .. }, told) => told == Some(Told::Done),
            (Act::Remove { .. }, told) => told == Some(Told::Done),
            (Act::Get { .. } | Act::Sum { .. }, _) => false,
        }) && !self.undid()
    }

    /// It may have gone to its row.
    fn entrusts(&self) -> bool {
        self.steps.len() == 1
    }

    /// It removed what it had inserted: perhaps nothing is left to record.
    fn undid(&self) -> bool {
        let adds = self
            .steps
            .iter()
            .any(|step| matches!(step.act, Act::Add { .. } | Act::Bump { .. }));
        let inserts = self
            .steps
            .iter()
            .any(|step| matches!(step.act, Act::Insert { .. }));
        let removes = self
            .steps
            .iter()
            .any(|step| matches!(step.act, Act::Remove { .. }));
        !adds && inserts && removes
    }
}
