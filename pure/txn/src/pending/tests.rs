//! The order of formulas, against a list of all formulas ever held.

use super::*;
use alloc::collections::BTreeSet;
use base::{Datum, NodeId, Prng, ShardId, Type};
use store::{ColumnFormula, FormulaOp};

fn txn(counter: u64) -> TxnId {
    TxnId {
        shard: ShardId::new(NodeId(1), 0),
        incarnation: 1,
        counter,
    }
}

/// Adds 1 to column `column`.
fn adds(column: u16) -> Formula {
    let op = FormulaOp::Add(Datum::Int(1));
    Formula(Vec::from([ColumnFormula {
        column,
        ty: Type::Int8,
        op,
    }]))
}

/// A transaction as a list keeps it.
#[derive(Default)]
struct Listed {
    low: u64,
    /// Commit timestamp, drawn by its coordinator; the rows are told later.
    drawn: Option<u64>,
    decided: Option<u64>,
    /// Formulas that are not applied: row, number of additions, whether withdrawn.
    rows: Vec<(u8, usize, bool)>,
}

/// All that was held, as a list.
#[derive(Default)]
struct Model {
    txns: BTreeMap<u64, Listed>,
    /// What was applied to each row, in order.
    applied: BTreeMap<u8, Vec<u64>>,
}

impl Model {
    fn on(&self, row: u8) -> impl Iterator<Item = (u64, &Listed, bool)> {
        let txns = self.txns.iter();
        txns.filter_map(move |(txn, listed)| {
            let held = listed.rows.iter().find(|(other, ..)| *other == row)?;
            Some((*txn, listed, held.2))
        })
    }

    /// The smallest decided formula, unless an undecided one may come below it.
    fn next(&self, row: u8) -> Next {
        let first = self
            .on(row)
            .filter_map(|(txn, listed, _)| Some((listed.decided?, txn)));
        let Some((commit_ts, first)) = first.min() else {
            return Next::Undecided;
        };
        let mut below = self.on(row).filter(|(_, listed, withdrawn)| {
            !withdrawn && listed.decided.is_none() && listed.low < commit_ts
        });
        match below.next() {
            Some(_) => Next::Waits,
            None => Next::Apply(txn(first), Ts(commit_ts)),
        }
    }
}

struct Both {
    pendings: Pendings<u8, u64>,
    model: Model,
    /// The largest timestamp drawn so far: lows and decisions lie above.
    clock: u64,
}

impl Both {
    fn hold(&mut self, counter: u64, row: u8) {
        self.clock += 1;
        let low = self.clock;
        let listed = self.model.txns.entry(counter).or_default();
        if listed.drawn.is_some() {
            return;
        }
        listed.low = low;
        match listed.rows.iter_mut().find(|(other, ..)| *other == row) {
            Some(held) => held.1 += 1,
            None => listed.rows.push((row, 1, false)),
        }
        let note = || counter;
        self.pendings
            .hold(txn(counter), &row, adds(row.into()), Ts(low), note);
    }

    /// The coordinator draws a timestamp: no more formulas come for the transaction.
    fn draw(&mut self, counter: u64) {
        self.clock += 1;
        let commit_ts = self.clock;
        if let Some(listed) = self.model.txns.get_mut(&counter) {
            listed.drawn.get_or_insert(commit_ts);
        }
    }

    /// The rows are told the decision. Withdrawn formulas have left before.
    fn decide(&mut self, counter: u64) {
        let Some(listed) = self.model.txns.get_mut(&counter) else {
            assert!(self.pendings.decide(txn(counter), Ts(1)).is_empty());
            return;
        };
        let Some(commit_ts) = listed.drawn.filter(|_| listed.decided.is_none()) else {
            return;
        };
        let withdrawn = |(row, _, withdrawn): &(u8, usize, bool)| withdrawn.then_some(*row);
        let left: Vec<u8> = listed.rows.iter().filter_map(withdrawn).collect();
        for row in left {
            assert!(self.pendings.take(txn(counter), &row).is_some());
        }
        listed.rows.retain(|(.., withdrawn)| !withdrawn);
        if listed.rows.is_empty() {
            assert_eq!(self.pendings.end(txn(counter)), Some(counter));
            self.model.txns.remove(&counter);
            return;
        }
        listed.decided = Some(commit_ts);
        let rows = self.pendings.decide(txn(counter), Ts(commit_ts));
        assert!(rows.iter().eq(listed.rows.iter().map(|(row, ..)| row)));
        assert!(self.pendings.decide(txn(counter), Ts(1)).is_empty());
    }

    /// Applies what can be applied on a row.
    fn apply(&mut self, row: u8) {
        loop {
            let next = self.pendings.next(&row);
            assert_eq!(next, self.model.next(row));
            let Next::Apply(id, commit_ts) = next else {
                return;
            };
            let counter = id.counter;
            let listed = self.model.txns.get_mut(&counter).expect("it was held");
            let at = listed.rows.iter().position(|(other, ..)| *other == row);
            let (_, times, _) = listed.rows.remove(at.expect("it has a formula"));
            let left = listed.rows.len();
            let formula = self.pendings.take(id, &row).expect("it is the next");
            let sum = FormulaOp::Add(Datum::Int(times as i64));
            assert_eq!(formula.0[0].op, sum, "all of its formulas, in one");
            self.model.applied.entry(row).or_default().push(commit_ts.0);
            assert_eq!(self.pendings.end(id), (left == 0).then_some(counter));
            if left == 0 {
                self.model.txns.remove(&counter);
            }
        }
    }

    fn drop_txn(&mut self, counter: u64) {
        let open = self.pendings.decided(txn(counter)).is_none();
        if open && self.pendings.knows(txn(counter)) {
            let listed = self.model.txns.remove(&counter).expect("it is known");
            let rows = self.pendings.drop_txn(txn(counter));
            assert!(rows.iter().eq(listed.rows.iter().map(|(row, ..)| row)));
        }
    }

    fn withdraw(&mut self, counter: u64, row: u8) {
        let listed = self.model.txns.get_mut(&counter);
        let open = listed.filter(|listed| listed.drawn.is_none());
        let held = open.and_then(|l| l.rows.iter_mut().find(|(other, ..)| *other == row));
        let Some(held) = held else {
            return;
        };
        held.2 = true;
        assert!(self.pendings.withdraw(txn(counter), &row));
    }

    fn raise(&mut self, counter: u64) {
        self.clock += 1;
        let low = self.clock;
        if let Some(listed) = self.model.txns.get_mut(&counter)
            && listed.drawn.is_none()
        {
            self.pendings.raise(txn(counter), Ts(low));
            listed.low = low;
        }
    }

    fn check(&self) {
        for row in 0..3 {
            let here: BTreeSet<u64> = self.model.on(row).map(|(txn, ..)| txn).collect();
            let on_row = self.pendings.on(&row).iter();
            let held: BTreeSet<u64> = on_row.map(|pending| pending.txn.counter).collect();
            assert_eq!(held, here);
            assert_eq!(self.pendings.has(&row), !here.is_empty());
        }
        let open = self.model.txns.iter().filter(|(_, l)| l.decided.is_none());
        let open = open.map(|(counter, _)| *counter);
        assert!(self.pendings.undecided().map(|(_, note)| *note).eq(open));
        for (id, until) in self.pendings.awaited() {
            assert!(self.pendings.decided(id).is_none());
            assert!(self.pendings.low(id).is_some_and(|low| low < until));
        }
        for timestamps in self.model.applied.values() {
            assert!(timestamps.is_sorted(), "versions ascend on every row");
        }
    }
}

#[test]
fn versions_ascend_whoever_decides_first() {
    for seed in 0..300 {
        let mut prng = Prng::new(seed);
        let mut both = Both {
            pendings: Pendings::default(),
            model: Model::default(),
            clock: 0,
        };
        for _ in 0..200 {
            let (counter, row) = (prng.below(6), prng.below(3) as u8);
            match prng.below(8) {
                0 | 1 => both.hold(counter, row),
                2 => both.draw(counter),
                3 | 4 => both.decide(counter),
                5 => both.drop_txn(counter),
                6 => both.raise(counter),
                _ if prng.below(4) == 0 => both.withdraw(counter, row),
                _ => {}
            }
            (0..3).for_each(|row| both.apply(row));
            both.check();
        }
        for counter in 0..6 {
            both.drop_txn(counter);
        }
        (0..3).for_each(|row| both.apply(row));
        assert!(both.pendings.is_empty(), "nothing waits for what is over");
    }
}
