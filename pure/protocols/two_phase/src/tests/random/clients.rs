//! What the clients of a random run do.

use super::super::programs::{Test, program};
use super::super::world::{self, TABLE, TRAIL, key};
use super::{Act, Client, EDGE, Ending, NAMES, Run, Step};
use base::{Datum, Key, KeyRange, Position, ShardId, Ts};
use store::{ColumnFormula, Formula, FormulaOp, Write};
use txn::{LockMode, NewRows, Op, OpResult, Outcome, Read, ScanOp, Slots, Snapshot};

impl Run {
    fn account(&mut self) -> Key {
        key(TABLE, NAMES[self.prng.below(NAMES.len() as u64) as usize])
    }

    /// Readers at home that write elsewhere, where their commit is entrusted, and whoever might see
    /// or change what they have read; all on one row of each shard.
    fn narrow_steps(&mut self, home: ShardId) -> Vec<Step> {
        let row = key(TABLE, NAMES[0]);
        let get = Act::Get { key: row.clone() };
        let add = Act::Add { key: row, delta: 1 };
        let shards = self.world.shards.keys().copied();
        let away: Vec<ShardId> = shards.filter(|s| s.node() != home.node()).collect();
        let mut acts = Vec::new();
        match self.prng.below(4) {
            0..=1 => {
                acts.push((home, get));
                let node = away[self.prng.below(away.len() as u64) as usize].node();
                let there = away.into_iter().filter(|shard| shard.node() == node);
                acts.extend(there.map(|shard| (shard, add.clone())));
            }
            2 => acts.push((home, add)),
            _ => {
                acts.push((self.pick_shard(), get.clone()));
                acts.push((self.pick_shard(), get));
            }
        }
        let step = |(shard, act)| Step {
            shard,
            act,
            seen: None,
        };
        acts.into_iter().map(step).collect()
    }

    fn rows_step(&mut self) -> Act {
        let mut keys = Vec::new();
        for _ in 0..2 + self.prng.below(12) {
            let number = match self.prng.below(6) {
                0 => self.prng.below(self.trails + 1),
                _ => {
                    self.trails += 1;
                    self.trails
                }
            };
            // By their first digits they lie in several slots, and are none of the other trails.
            let name = format!("{}{number:05}", 4 + number / 5 % 3);
            keys.push(key(TRAIL, &name));
        }
        self.trails += 1;
        keys.push(key(TRAIL, &format!("3{:05}", self.trails)));
        keys.sort();
        Act::Rows { keys }
    }

    pub(super) fn start_client(&mut self) {
        let coordinator = self.pick_shard();
        if !self.world.nodes[&coordinator.node()].up {
            return;
        }
        let txn = self.world.begin(coordinator);
        let mut steps = Vec::new();
        let kind = self.prng.below(6);
        if self.narrow {
            steps = self.narrow_steps(coordinator);
        } else if kind == 0 {
            let ts = self.world.call(coordinator, |_, cx| cx.clock.tick(cx.now));
            let read = Read::Snapshot(Snapshot::recent(ts, ts));
            for shard in self.world.shards.keys() {
                steps.push(Step {
                    shard: *shard,
                    act: Act::Sum { read },
                    seen: None,
                });
            }
        } else {
            for _ in 0..1 + self.prng.below(4) {
                let shard = self.pick_shard();
                let (key, delta) = (self.account(), self.prng.between(-9, 9));
                let hot = self.hot && self.prng.below(10) > 0;
                let act = match self.prng.below(10) {
                    0..=6 if hot => Act::Formula {
                        key: world::key(TABLE, NAMES[0]),
                        delta,
                    },
                    _ if hot => Act::Edge { delta: delta * 8 },
                    0..=3 => Act::Add { key, delta },
                    4 => Act::Formula { key, delta },
                    5..=6 => Act::Get { key },
                    7 => Act::Sum {
                        read: Read::Lock(LockMode::Shared),
                    },
                    9 if self.prng.below(2) == 0 => self.rows_step(),
                    other => {
                        self.trails += 1;
                        let name = format!("{:06}", self.trails);
                        Act::Trail {
                            key: world::key(TRAIL, &name),
                            insert: other == 8,
                        }
                    }
                };
                steps.push(Step {
                    shard,
                    act,
                    seen: None,
                });
            }
        }
        let ending = match self.prng.below(10) {
            0 => Ending::Abort,
            1..=4 => Ending::Ride,
            _ => Ending::Commit,
        };
        // Operations side by side have no order, so they must not meet.
        let apart = (1..steps.len()).all(|at| {
            steps[..at]
                .iter()
                .all(|before: &Step| before.shard != steps[at].shard)
        });
        self.clients.push(Client {
            txn,
            steps,
            next: 0,
            parallel: apart && self.prng.below(2) == 0,
            ending,
            pending: Vec::new(),
            wait: Position(0),
            outcome: None,
            held: false,
            lost: false,
            failed: false,
            raise: None,
            floor: self.answered(),
        });
    }

    /// Largest timestamp of the transactions that wrote rows which readers add up, and whose
    /// clients know that they have committed.
    fn answered(&self) -> Ts {
        let writes = |client: &Client| client.steps.iter().any(|step| step.act.changes_sums());
        let answered = self.clients.iter().filter(|c| !c.held && writes(c));
        let committed = answered.filter_map(|client| match client.outcome {
            Some(Outcome::Committed { commit_ts }) => Some(commit_ts),
            _ => None,
        });
        committed.max().unwrap_or_default()
    }
}

pub(crate) fn add_formula(key: Key, ty: base::Type, delta: i64) -> Op {
    let op = FormulaOp::Add(Datum::Int(delta));
    let change = ColumnFormula::new(0, ty, op).expect("integers add exactly");
    let formula = Formula(vec![change]);
    Op::Formula { key, formula }
}

pub(super) fn op_of(act: &Act) -> Op {
    match act {
        Act::Add { key, delta } => Op::Modify {
            key: key.clone(),
            program: program(Test::Add(*delta)),
        },
        Act::Formula { key, delta } => add_formula(key.clone(), base::Type::Int8, *delta),
        Act::Edge { delta } => add_formula(key(TABLE, EDGE), base::Type::Int2, *delta),
        Act::Get { key } => Op::Get {
            key: key.clone(),
            read: Read::Lock(LockMode::Shared),
            program: program(Test::Read),
        },
        Act::Sum { read } => Op::Scan(ScanOp {
            index: TABLE,
            slots: Slots::All,
            range: KeyRange::all(),
            reverse: false,
            read: *read,
            program: program(Test::Sum),
            row_limit: u64::MAX,
            batch_rows: u32::MAX,
            after: None,
        }),
        Act::Trail { key, insert: true } => Op::Insert {
            key: key.clone(),
            row: super::super::programs::row(1).into(),
        },
        Act::Trail { key, insert: false } => Op::Write {
            key: key.clone(),
            write: Write::Put(super::super::programs::row(1)),
        },
        Act::Rows { keys } => {
            let mut rows = NewRows::new(TRAIL, 0);
            for key in keys {
                let row = super::super::programs::row(1);
                rows.push(key.slot, &key.bytes, |out| out.extend_from_slice(&row));
            }
            Op::InsertMany(rows)
        }
    }
}

pub(super) fn seen(result: &OpResult) -> Option<i64> {
    let batch = match result {
        OpResult::Rows { batch, .. } => batch,
        OpResult::Modified {
            returning, found, ..
        } => {
            assert!(found, "accounts are there");
            returning
        }
        OpResult::Done => return None,
        OpResult::Exists => panic!("trails are new"),
        OpResult::Clock(_) | OpResult::SomeExist(_) => panic!("nobody asks for that"),
    };
    match batch.datums.first() {
        Some(Datum::Int(value)) => Some(*value),
        _ => None,
    }
}
