//! Short ways to write histories down.

use check::{Demand, History, Judgement, Level, Op, Outcome, Txn, Verdict, check_with};

pub(crate) fn append(key: u64, value: u64) -> Op {
    Op::Append { key, value }
}

pub(crate) fn list(key: u64, values: &[u64]) -> Op {
    Op::ReadList {
        key,
        values: values.to_vec(),
    }
}

/// A committed transaction of its own process with its time.
pub(crate) fn at(process: u32, begin: u64, end: u64, ops: &[Op]) -> Txn {
    let mut txn = Txn::begin(process, begin);
    txn.ops = ops.to_vec();
    txn.end(Outcome::Committed, end);
    txn
}

/// Committed transactions that all overlap, each of its own process.
pub(crate) fn overlapping(txns: &[&[Op]]) -> History {
    let mut history = History::new();
    for (process, ops) in txns.iter().enumerate() {
        history.push(at(process as u32, 0, 100, ops));
    }
    history
}

pub(crate) fn judge(history: &History, level: Level) -> Verdict {
    check_with(history, level, &Demand::NONE)
}

/// Names of what the history shows that `level` forbids.
pub(crate) fn names(history: &History, level: Level) -> Vec<String> {
    let verdict = judge(history, level);
    let expected = match verdict.anomalies.is_empty() {
        true => Judgement::Pass,
        false => Judgement::Fail,
    };
    assert_eq!(verdict.judgement, expected);
    verdict.anomalies.iter().map(check::Anomaly::name).collect()
}

/// The levels that the history violates, as their places in `Level::ALL`.
pub(crate) fn violated(history: &History) -> Vec<Level> {
    let fails = |level: &Level| judge(history, *level).judgement == Judgement::Fail;
    Level::ALL.into_iter().filter(fails).collect()
}
