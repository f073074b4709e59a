//! What a client does, and what it is told.

use crate::programs::{self, Test, program, row};
use crate::{TABLE, TRAIL};
use base::{Datum, Key, Position, ShardId, Ts, TxnId, Type};
use store::{FormulaOp, Write};
use txn::{NewRows, Op, OpId, OpResult, Outcome, Read, Savepoint};

/// An operation of a client.
#[derive(Clone, Debug)]
pub enum Act {
    /// Adds to a row that is there, and returns the sum.
    Add {
        /// Which row.
        key: Key,
        /// How much.
        delta: i64,
    },
    /// Changes the value without looking; alone it may go to its row.
    Formula {
        /// Which row.
        key: Key,
        /// How: adds, sets, takes the larger of two, or computes.
        op: FormulaOp,
        /// The result must be one: if not, the statement fails.
        ty: Type,
    },
    /// Takes from a value; adds 91 if less than 10 would be left. A formula in two cases.
    Stock {
        /// Which row.
        key: Key,
        /// How much.
        amount: i64,
    },
    /// Reads one row.
    Get {
        /// Which row.
        key: Key,
        /// How.
        read: Read,
    },
    /// Adds up the rows of [`TABLE`] on a shard.
    Sum {
        /// How they are read.
        read: Read,
    },
    /// Inserts a row that may be there.
    Insert {
        /// Which row.
        key: Key,
        /// Its value.
        value: i64,
    },
    /// Writes a new row without looking.
    Put {
        /// Which row.
        key: Key,
    },
    /// Removes a row that may be absent.
    Remove {
        /// Which row.
        key: Key,
    },
    /// Inserts many rows. Ascending, some of them perhaps twice or there already; one at least is
    /// new.
    Rows {
        /// Which rows.
        keys: Vec<Key>,
    },
    /// Sets a savepoint, or goes back to one, on all shards that may have writes.
    Save(Savepoint),
}

/// What an operation told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// A value.
    Value(i64),
    /// So many rows were there already.
    Exist(i64),
    /// The row is not there.
    Absent,
    /// The row is there already.
    Exists,
    /// Nothing but that it was done.
    Done,
}

/// An operation and where it is submitted.
#[derive(Clone, Debug)]
pub struct Step {
    /// To which shard.
    pub shard: ShardId,
    /// What.
    pub act: Act,
    /// The answer, if there was one.
    pub told: Option<Told>,
}

impl Step {
    /// A step without an answer.
    pub fn new(shard: ShardId, act: Act) -> Step {
        let told = None;
        Step { shard, act, told }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Commit,
    /// The commit rides on the last operation.
    Ride,
    Abort,
}

/// A transaction of a random run.
#[derive(Debug)]
pub struct Client {
    pub(super) txn: TxnId,
    pub(super) steps: Vec<Step>,
    pub(super) next: usize,
    /// Submits side by side.
    pub(super) parallel: bool,
    pub(super) ending: Ending,
    pub(super) pending: Vec<(OpId, Option<usize>)>,
    pub(super) wait: Position,
    /// How it ended, as far as the client knows.
    pub outcome: Option<Outcome>,
    /// Its answer waits for the disk.
    pub(super) held: bool,
    /// Its node has gone, so no answer will come.
    pub(super) lost: bool,
    /// A statement failed, so it must roll back.
    pub(super) failed: bool,
    /// Its snapshot must be raised to this before it reads again.
    pub(super) raise: Option<Ts>,
    /// Largest timestamp of the writers that had been answered when it began.
    pub(super) floor: Ts,
}

/// Most changes add; some set the value, make it no less than something, or compute it from itself.
pub(super) fn some_change(delta: i64, initial: i64) -> FormulaOp {
    match delta {
        _ if delta % 5 == 0 => FormulaOp::Set(Datum::Int(initial + delta)),
        _ if delta % 7 == 0 => FormulaOp::Max(Datum::Int(initial + delta)),
        _ if delta % 4 == 0 => {
            // About as large as at first.
            let more = initial - initial / 3 + delta;
            FormulaOp::Compute(match delta % 8 == 0 {
                true => programs::third_by_floats_and(more),
                false => programs::third_and(more),
            })
        }
        _ if delta % 6 == 0 => FormulaOp::Compute(programs::digits_and(initial + delta)),
        _ => FormulaOp::Add(Datum::Int(delta)),
    }
}

impl Act {
    pub(super) fn op(&self) -> Op {
        match self {
            Act::Add { key, delta } => Op::Modify {
                key: key.clone(),
                program: program(Test::Add(*delta)),
            },
            Act::Formula { key, op, ty } => programs::formula(key.clone(), *ty, op.clone()),
            Act::Stock { key, amount } => Op::Modify {
                key: key.clone(),
                program: programs::stocking(*amount),
            },
            Act::Get { key, read } => Op::Get {
                key: key.clone(),
                read: *read,
                program: program(Test::Read),
            },
            Act::Sum { read } => Op::Scan(programs::scan(*read, Test::Sum)),
            Act::Insert { key, value } => Op::Insert {
                key: key.clone(),
                row: row(*value).into(),
            },
            Act::Put { key } => Op::Write {
                key: key.clone(),
                write: Write::Put(row(1)),
            },
            Act::Remove { key } => Op::Modify {
                key: key.clone(),
                program: program(Test::Remove),
            },
            Act::Rows { keys } => {
                let mut rows = NewRows::new(TRAIL, 0);
                for key in keys {
                    rows.push(key.slot, &key.bytes, |out| out.extend_from_slice(&row(1)));
                }
                Op::InsertMany(rows)
            }
            Act::Save(savepoint) => Op::Savepoint(*savepoint),
        }
    }

    /// Whether readers of [`TABLE`] see it.
    pub(super) fn changes_sums(&self) -> bool {
        let (Act::Add { key, .. }
        | Act::Formula { key, .. }
        | Act::Stock { key, .. }
        | Act::Insert { key, .. }
        | Act::Put { key }
        | Act::Remove { key }) = self
        else {
            return false;
        };
        key.index == TABLE
    }

    /// Whether it wrote, if this is what it was told.
    fn wrote(&self, told: Option<Told>) -> bool {
        match self {
            Act::Add { .. }
            | Act::Formula { .. }
            | Act::Stock { .. }
            | Act::Put { .. }
            | Act::Rows { .. } => true,
            Act::Insert { .. } | Act::Remove { .. } => told == Some(Told::Done),
            Act::Get { .. } | Act::Sum { .. } | Act::Save(_) => false,
        }
    }
}

impl Client {
    /// The client gets no more answers.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.held = false;
        self.outcome = None;
    }

    /// Begins to read again at a later snapshot, or gives up if it has written.
    pub(super) fn read_again(&mut self, at: Ts) {
        self.raise = None;
        let begun = &self.steps[..self.next];
        let reads = |step: &Step| matches!(step.act, Act::Get { .. } | Act::Sum { .. });
        if !begun.iter().all(reads) {
            self.failed = true;
            return;
        }
        self.next = 0;
        for step in &mut self.steps {
            step.told = None;
            if let Act::Sum {
                read: Read::Snapshot(snapshot),
            } = &mut step.act
            {
                snapshot.at = snapshot.at.max(at);
            }
        }
    }

    /// Whether a record of it must be there if it has committed.
    pub(super) fn wrote(&self) -> bool {
        let mut kept = self.kept().into_iter();
        kept.any(|step| step.act.wrote(step.told)) && !self.undid()
    }

    /// It removed what it had inserted: perhaps nothing is left to record.
    pub(super) fn undid(&self) -> bool {
        let kept = self.kept();
        let any = |is: fn(&Act) -> bool| kept.iter().any(|step| is(&step.act));
        any(|act| matches!(act, Act::Insert { .. }))
            && any(|act| matches!(act, Act::Remove { .. }))
            && !any(|act| {
                !matches!(
                    act,
                    Act::Insert { .. }
                        | Act::Remove { .. }
                        | Act::Get { .. }
                        | Act::Sum { .. }
                        | Act::Save(_)
                )
            })
    }
}

impl Told {
    pub(super) fn of(act: &Act, result: &OpResult) -> Told {
        let batch = match result {
            OpResult::Rows { batch, .. } => batch,
            OpResult::Modified { found: false, .. } => return Told::Absent,
            OpResult::Modified { returning, .. } if returning.rows == 0 => return Told::Done,
            OpResult::Modified { returning, .. } => returning,
            OpResult::Done if matches!(act, Act::Rows { .. }) => return Told::Exist(0),
            OpResult::Done => return Told::Done,
            OpResult::Exists => return Told::Exists,
            OpResult::SomeExist(places) => return Told::Exist(places.len() as i64),
            OpResult::Clock(_) => panic!("nobody asks for clocks"),
        };
        match batch.datums.first() {
            Some(Datum::Int(value)) => Told::Value(*value),
            _ => Told::Absent,
        }
    }
}
