//! A history for each anomaly, and one close to it that is fine.

use crate::support::{append, at, judge, list, names, overlapping, violated};
use check::{Demand, Doubt, History, Judgement, Kind, Level, Op, Outcome, Txn, check, check_with};

fn write(key: u64, value: u64) -> Op {
    Op::Write { key, value }
}

fn read(key: u64, value: u64) -> Op {
    Op::Read {
        key,
        value: Some(value),
    }
}

fn absent(key: u64) -> Op {
    Op::Read { key, value: None }
}

fn lists(low: u64, high: u64, seen: &[(u64, &[u64])]) -> Op {
    Op::ReadLists {
        low,
        high,
        seen: seen.iter().map(|(k, v)| (*k, v.to_vec())).collect(),
    }
}

fn range(low: u64, high: u64, seen: &[(u64, u64)]) -> Op {
    Op::ReadRange {
        low,
        high,
        seen: seen.to_vec(),
    }
}

fn with_outcome(outcome: Outcome, ops: &[Op]) -> Txn {
    let mut txn = at(7, 0, 100, ops);
    txn.outcome = outcome;
    txn
}

/// Everything from this level up in the usual order.
fn from(level: Level) -> Vec<Level> {
    Level::ALL
        .into_iter()
        .filter(|other| *other >= level)
        .collect()
}

const SNAPSHOTS: [Level; 3] = [
    Level::SnapshotIsolation,
    Level::StrongSessionSnapshotIsolation,
    Level::StrongSnapshotIsolation,
];

/// Levels that keep real time.
const STRONG: [Level; 3] = [
    Level::StrongReadCommitted,
    Level::StrongSnapshotIsolation,
    Level::StrictSerializable,
];

const SERIALS: [Level; 3] = [
    Level::Serializable,
    Level::StrongSessionSerializable,
    Level::StrictSerializable,
];

#[test]
fn g0_writes_are_interleaved() {
    let end = [list(1, &[1, 2]), list(2, &[2, 1])];
    let history = overlapping(&[
        &[append(1, 1), append(2, 1)],
        &[append(1, 2), append(2, 2)],
        &end,
    ]);
    assert_eq!(names(&history, Level::ReadUncommitted), ["G0"]);
    assert_eq!(violated(&history), from(Level::ReadUncommitted));
    let same = [list(1, &[1, 2]), list(2, &[1, 2])];
    let history = overlapping(&[
        &[append(1, 1), append(2, 1)],
        &[append(1, 2), append(2, 2)],
        &same,
    ]);
    assert_eq!(violated(&history), []);
}

#[test]
fn g1a_reads_of_what_was_rolled_back() {
    let history = |outcome| {
        let mut history = overlapping(&[&[list(1, &[5])]]);
        history.push(with_outcome(outcome, &[append(1, 5)]));
        history
    };
    assert_eq!(
        names(&history(Outcome::Aborted), Level::ReadCommitted),
        ["G1a"]
    );
    assert_eq!(
        violated(&history(Outcome::Aborted)),
        from(Level::ReadCommitted)
    );
    // What was seen of an unknown transaction has committed.
    assert_eq!(violated(&history(Outcome::Unknown)), []);
    let mut registers = overlapping(&[&[read(1, 5)]]);
    registers.push(with_outcome(Outcome::Aborted, &[write(1, 5)]));
    assert_eq!(names(&registers, Level::ReadCommitted), ["G1a"]);
}

#[test]
fn g1b_reads_of_what_was_overwritten_at_once() {
    let history = overlapping(&[
        &[append(1, 5), append(1, 6)],
        &[list(1, &[5])],
        &[list(1, &[5, 6])],
    ]);
    assert!(names(&history, Level::ReadCommitted).contains(&"G1b".to_string()));
    assert_eq!(names(&history, Level::ReadUncommitted), [""; 0]);
    let history = overlapping(&[
        &[append(1, 5), append(1, 6)],
        &[list(1, &[])],
        &[list(1, &[5, 6])],
    ]);
    assert_eq!(violated(&history), []);
    let registers = overlapping(&[&[write(1, 5), write(1, 6)], &[read(1, 5)]]);
    assert_eq!(names(&registers, Level::ReadCommitted), ["G1b"]);
    let registers = overlapping(&[&[write(1, 5), write(1, 6)], &[read(1, 6)]]);
    assert_eq!(violated(&registers), []);
}

#[test]
fn g1c_transactions_see_each_other() {
    let history = overlapping(&[
        &[append(1, 1), list(2, &[2])],
        &[append(2, 2), list(1, &[1])],
    ]);
    assert_eq!(names(&history, Level::ReadCommitted), ["G1c"]);
    assert_eq!(violated(&history), from(Level::ReadCommitted));
    let history = overlapping(&[
        &[append(1, 1), list(2, &[2])],
        &[append(2, 2), list(1, &[])],
    ]);
    assert_eq!(violated(&history), []);
    let registers = overlapping(&[&[write(1, 1), read(2, 2)], &[write(2, 2), read(1, 1)]]);
    assert_eq!(names(&registers, Level::ReadCommitted), ["G1c"]);
}

#[test]
fn lost_update_both_read_one_version() {
    let history = overlapping(&[
        &[list(1, &[]), append(1, 1)],
        &[list(1, &[]), append(1, 2)],
        &[list(1, &[1, 2])],
    ]);
    assert_eq!(names(&history, Level::SnapshotIsolation), ["lost-update"]);
    assert_eq!(violated(&history), from(Level::RepeatableRead));
    let history = overlapping(&[
        &[list(1, &[]), append(1, 1)],
        &[list(1, &[1]), append(1, 2)],
        &[list(1, &[1, 2])],
    ]);
    assert_eq!(violated(&history), []);
    let registers = overlapping(&[
        &[write(1, 9)],
        &[read(1, 9), write(1, 1)],
        &[read(1, 9), write(1, 2)],
    ]);
    assert_eq!(violated(&registers), from(Level::RepeatableRead));
    let registers = overlapping(&[
        &[write(1, 9)],
        &[read(1, 9), write(1, 1)],
        &[read(1, 1), write(1, 2)],
    ]);
    assert_eq!(violated(&registers), []);
    // Nobody read the list afterwards: both appends are somewhere behind the empty list.
    let unread = overlapping(&[&[list(1, &[]), append(1, 1)], &[list(1, &[]), append(1, 2)]]);
    assert_eq!(names(&unread, Level::SnapshotIsolation), ["lost-update"]);
}

#[test]
fn g_single_a_skewed_snapshot() {
    let history = overlapping(&[
        &[append(1, 1), append(2, 1)],
        &[list(1, &[]), list(2, &[1])],
        &[list(1, &[1])],
    ]);
    assert_eq!(names(&history, Level::SnapshotIsolation), ["G-single"]);
    assert_eq!(violated(&history), from(Level::RepeatableRead));
    let history = overlapping(&[
        &[append(1, 1), append(2, 1)],
        &[list(1, &[]), list(2, &[])],
        &[list(1, &[1])],
    ]);
    assert_eq!(violated(&history), []);
    // A read that does not repeat.
    let registers = overlapping(&[&[write(1, 1)], &[absent(1), read(1, 1)]]);
    assert!(names(&registers, Level::SnapshotIsolation).contains(&"G-single".to_string()));
    assert_eq!(violated(&registers), from(Level::RepeatableRead));
}

#[test]
fn g_nonadjacent_a_long_fork() {
    let fork = |second: &[u64]| {
        overlapping(&[
            &[append(1, 1)],
            &[append(2, 2)],
            &[list(1, &[1]), list(2, &[])],
            &[list(1, second), list(2, &[2])],
        ])
    };
    let forked = fork(&[]);
    assert_eq!(names(&forked, Level::SnapshotIsolation), ["G-nonadjacent"]);
    assert_eq!(violated(&forked), from(Level::RepeatableRead));
    assert_eq!(violated(&fork(&[1])), []);
}

#[test]
fn g2_item_write_skew() {
    let skew = overlapping(&[
        &[list(1, &[]), append(2, 1)],
        &[list(2, &[]), append(1, 2)],
        &[list(1, &[2]), list(2, &[1])],
    ]);
    assert_eq!(names(&skew, Level::Serializable), ["G2-item"]);
    let allowed = judge(&skew, Level::SnapshotIsolation).allowed;
    assert_eq!(allowed[0].kind, Kind::G2Item);
    let mut expected = vec![Level::RepeatableRead];
    expected.extend(SERIALS);
    assert_eq!(violated(&skew), expected);
    let fine = overlapping(&[
        &[list(1, &[]), append(2, 1)],
        &[list(2, &[1]), append(1, 2)],
        &[list(1, &[2]), list(2, &[1])],
    ]);
    assert_eq!(violated(&fine), []);
    let registers = overlapping(&[&[absent(1), write(2, 1)], &[absent(2), write(1, 2)]]);
    assert_eq!(names(&registers, Level::Serializable), ["G2-item"]);
    assert_eq!(violated(&registers), expected);
}

#[test]
fn g2_phantoms() {
    // Each looks for rows, finds none, and inserts one where the other looked.
    let skew = overlapping(&[
        &[lists(1, 4, &[]), append(6, 1)],
        &[lists(5, 9, &[]), append(2, 1)],
        &[list(2, &[1]), list(6, &[1])],
    ]);
    assert_eq!(names(&skew, Level::Serializable), ["G2"]);
    // PL-2.99 says nothing of predicates.
    assert_eq!(violated(&skew), SERIALS);
    let fine = overlapping(&[
        &[lists(1, 4, &[]), append(6, 1)],
        &[lists(5, 9, &[(6, &[1])]), append(2, 1)],
        &[list(2, &[1]), list(6, &[1])],
    ]);
    assert_eq!(violated(&fine), []);
    let registers = overlapping(&[
        &[range(1, 4, &[]), write(6, 1)],
        &[range(5, 9, &[]), write(2, 1)],
    ]);
    assert_eq!(names(&registers, Level::Serializable), ["G2"]);
    assert_eq!(violated(&registers), SERIALS);
    // A range and the row itself, read at different times: skewed, with one anti-dependency.
    let single = overlapping(&[&[write(2, 1), write(6, 1)], &[range(1, 4, &[]), read(6, 1)]]);
    assert_eq!(names(&single, Level::SnapshotIsolation), ["G-single"]);
    assert_eq!(violated(&single), [&SNAPSHOTS[..], &SERIALS].concat());
}

#[test]
fn deleted_registers_prove_only_what_is_certain() {
    // Absent may be before the write or behind the delete.
    let history = overlapping(&[
        &[write(1, 1), write(2, 1)],
        &[Op::Delete { key: 1 }],
        &[absent(1), read(2, 1)],
    ]);
    assert_eq!(violated(&history), []);
    let both = overlapping(&[
        &[write(1, 1)],
        &[read(1, 1), Op::Delete { key: 1 }],
        &[read(1, 1), Op::Delete { key: 1 }],
    ]);
    assert_eq!(names(&both, Level::SnapshotIsolation), ["lost-update"]);
}

#[test]
fn internal_own_writes_must_be_seen() {
    for ops in [
        &[append(1, 1), list(1, &[])][..],
        &[append(1, 1), append(1, 2), list(1, &[2, 1])],
        &[list(1, &[1]), append(1, 1)],
        &[write(1, 1), absent(1)],
        &[read(1, 1), write(1, 1)],
        &[write(1, 1), Op::Delete { key: 1 }, read(1, 1)],
    ] {
        let history = overlapping(&[ops]);
        assert!(
            names(&history, Level::ReadCommitted).contains(&"internal".to_string()),
            "{ops:?}"
        );
    }
    for ops in [
        &[append(1, 1), list(1, &[1])][..],
        &[list(1, &[]), append(1, 1), list(1, &[1])],
        &[write(1, 1), write(1, 2), read(1, 2)],
        &[write(1, 1), Op::Delete { key: 1 }, absent(1)],
    ] {
        assert_eq!(violated(&overlapping(&[ops])), [], "{ops:?}");
    }
}

#[test]
fn values_come_from_somewhere_and_once() {
    let history = overlapping(&[&[append(1, 1)], &[list(1, &[1, 8])]]);
    assert_eq!(names(&history, Level::ReadCommitted), ["unwritten-value"]);
    let history = overlapping(&[&[read(1, 8)]]);
    assert_eq!(names(&history, Level::ReadCommitted), ["unwritten-value"]);
    let history = overlapping(&[&[append(1, 1)], &[list(1, &[1, 1])]]);
    assert!(names(&history, Level::ReadCommitted).contains(&"duplicate-element".to_string()));
}

#[test]
fn reads_of_a_list_must_agree() {
    let reads = |first: &[u64], second: &[u64]| {
        overlapping(&[
            &[append(1, 1)],
            &[append(1, 2)],
            &[append(1, 3)],
            &[list(1, first)],
            &[list(1, second)],
        ])
    };
    let history = reads(&[1, 2, 3], &[2, 1]);
    assert_eq!(
        names(&history, Level::ReadCommitted),
        ["incompatible-order"]
    );
    assert_eq!(violated(&history), from(Level::ReadCommitted));
    assert_eq!(violated(&reads(&[1, 2, 3], &[1, 2])), []);
    // An acknowledged append that was seen and is gone.
    let history = reads(&[1, 2], &[1, 3]);
    assert_eq!(
        names(&history, Level::ReadCommitted),
        ["incompatible-order"]
    );
}

#[test]
fn a_lost_append_needs_real_time() {
    let history = |begin| {
        let mut history = History::new();
        history.push(at(1, 0, 10, &[append(1, 1)]));
        history.push(at(2, begin, 30, &[list(1, &[])]));
        history
    };
    let strict = names(&history(11), Level::StrictSerializable);
    assert_eq!(
        strict,
        [
            "G-single-realtime",
            "stale-read-realtime",
            "lost-append-realtime"
        ]
    );
    assert_eq!(violated(&history(11)), STRONG);
    // It began before the append was acknowledged.
    assert_eq!(violated(&history(10)), []);
}

#[test]
fn statements_see_what_was_acknowledged_and_may_see_more() {
    let level = Level::StrongReadCommitted;
    // Each statement of the reader may see another moment, if none is older than its begin.
    let history = |before: &[u64], behind: &[u64]| {
        let mut history = History::new();
        history.push(at(1, 0, 10, &[append(1, 1), append(2, 1)]));
        history.push(at(2, 20, 60, &[append(1, 2), append(2, 2)]));
        history.push(at(3, 20, 60, &[list(1, before), list(2, behind)]));
        history.push(at(4, 70, 80, &[list(1, &[1, 2]), list(2, &[1, 2])]));
        history
    };
    assert_eq!(names(&history(&[1], &[1, 2]), level), [""; 0]);
    assert_eq!(names(&history(&[1], &[1]), level), [""; 0]);
    assert_eq!(
        names(&history(&[], &[1, 2]), level)[0],
        "stale-read-realtime"
    );
    // Who began behind a reader that had seen it must see it, too.
    let mut relayed = history(&[1], &[1, 2]);
    relayed.txns[1].completed = Some(100);
    relayed.txns[3].ops = vec![list(1, &[1]), list(2, &[1, 2])];
    relayed.push(at(5, 110, 120, &[list(1, &[1, 2]), list(2, &[1, 2])]));
    assert_eq!(names(&relayed, level)[0], "stale-read-realtime");
    assert_eq!(names(&relayed, Level::ReadCommitted), [""; 0]);
}

#[test]
fn sessions_see_their_own_past() {
    let history = |process| {
        let mut history = History::new();
        history.push(at(1, 0, 10, &[append(1, 1)]));
        history.push(at(process, 20, 30, &[list(1, &[])]));
        history
    };
    let own = history(1);
    let session = names(&own, Level::StrongSessionSerializable);
    assert_eq!(session, ["G-single-session", "stale-read-session"]);
    assert_eq!(
        violated(&own),
        [&STRONG[..1], &SNAPSHOTS[1..], &SERIALS[1..]].concat()
    );
    assert_eq!(
        names(&history(2), Level::StrongSessionSerializable),
        [""; 0]
    );
}

/// The second writer begins when the first has ended, and a reader sees the second one alone.
#[test]
fn loose_transactions_are_ordered_by_the_time_of_others_only() {
    let history = |reader_begins, loose: &[u32]| {
        let mut history = History::new();
        history.push(at(1, 0, 10, &[append(1, 1)]));
        history.push(at(2, 20, 30, &[append(2, 1)]));
        history.push(at(3, reader_begins, 40, &[list(2, &[1]), list(1, &[])]));
        history.loose = loose.iter().copied().collect();
        history
    };
    let strict = Level::StrictSerializable;
    assert_eq!(names(&history(5, &[]), strict), ["G-single-realtime"]);
    assert_eq!(names(&history(5, &[0, 1]), strict), [""; 0]);
    assert_eq!(names(&history(5, &[0]), strict), ["G-single-realtime"]);
    let missed = names(&history(15, &[0, 1]), strict);
    assert_eq!(missed[..2], ["G-single-realtime", "stale-read-realtime"]);
    let mut early = history(5, &[0, 1]);
    // Seen by a reader that had ended before it began.
    early.txns[2].completed = Some(19);
    assert_eq!(names(&early, strict)[0], "G1c-realtime");
}

#[test]
fn registers_go_by_the_order_of_time_where_it_counts() {
    // 1, then 2, then a read of 1: stale. Nobody read both, so only time says so.
    let stale = |process| {
        let mut history = History::new();
        history.push(at(1, 0, 10, &[write(1, 1)]));
        history.push(at(process, 20, 30, &[write(1, 2)]));
        history.push(at(3, 40, 50, &[read(1, 1)]));
        history
    };
    assert_eq!(violated(&stale(2)), STRONG);
    let mut session = stale(1);
    session.txns[2].process = 1;
    assert_eq!(
        violated(&session),
        [&STRONG[..1], &SNAPSHOTS[1..], &SERIALS[1..]].concat()
    );
    let mut fresh = stale(2);
    fresh.txns[2].ops = vec![read(1, 2)];
    assert_eq!(violated(&fresh), []);
    let mut overlap = stale(2);
    overlap.txns[2].invoked = 5;
    assert_eq!(violated(&overlap), []);
}

#[test]
fn unknown_outcomes_neither_lose_nor_win() {
    // An unknown append may be there or not, and may commit late.
    let mut history = History::new();
    let mut unknown = Txn::begin(1, 0);
    unknown.ops = vec![append(1, 1), append(2, 1)];
    unknown.completed = Some(5);
    history.push(unknown);
    history.push(at(2, 10, 20, &[list(1, &[]), list(2, &[])]));
    assert_eq!(violated(&history), []);
    history.push(at(2, 30, 40, &[list(1, &[1]), list(2, &[1])]));
    assert_eq!(violated(&history), []);
    // Half of it is a skew all the same.
    history.push(at(2, 50, 60, &[list(1, &[1]), list(2, &[])]));
    assert!(violated(&history).contains(&Level::SnapshotIsolation));
}

#[test]
fn too_little_is_inconclusive_and_an_anomaly_is_not() {
    let little = overlapping(&[&[append(1, 1)], &[list(1, &[1])]]);
    let verdict = check(&little, Level::Serializable);
    assert_eq!(verdict.judgement, Judgement::Inconclusive);
    assert_eq!(
        verdict.doubts[0],
        Doubt::FewCommitted {
            found: 2,
            demanded: Demand::default().committed
        }
    );
    assert!(verdict.to_string().contains("inconclusive"));
    let skew = overlapping(&[&[list(1, &[]), append(2, 1)], &[list(2, &[]), append(1, 2)]]);
    assert_eq!(check(&skew, Level::Serializable).judgement, Judgement::Fail);
    assert_eq!(
        check(&skew, Level::SnapshotIsolation).judgement,
        Judgement::Inconclusive
    );
    // A value that was written twice takes its key out of the evidence.
    let twice = overlapping(&[&[append(1, 1)], &[append(1, 1)], &[list(1, &[1, 1])]]);
    let verdict = check_with(&twice, Level::Serializable, &Demand::NONE);
    assert_eq!(verdict.judgement, Judgement::Inconclusive);
    assert_eq!(verdict.doubts, [Doubt::WrittenTwice { key: 1, value: 1 }]);
}

#[test]
fn what_was_exercised_is_counted() {
    let mut history = overlapping(&[&[append(1, 1)], &[list(1, &[1])], &[list(1, &[1])]]);
    history.push(at(9, 200, 300, &[append(1, 2), list(1, &[1, 2])]));
    history.push(with_outcome(Outcome::Aborted, &[append(1, 3)]));
    let exercised = judge(&history, Level::Serializable).exercised;
    assert_eq!((exercised.committed, exercised.aborted), (4, 1));
    assert_eq!(
        (exercised.writes, exercised.reads, exercised.keys),
        (3, 3, 1)
    );
    // Of six pairs, only that of the two readers has no write; the last one comes later.
    assert_eq!(exercised.conflicting_pairs, 5);
    assert_eq!(exercised.concurrent_pairs, 3);
    assert_eq!(exercised.concurrent_conflicts, 2);
}

#[test]
fn a_story_can_be_followed() {
    let mut history = overlapping(&[
        &[append(1, 1), append(2, 1)],
        &[list(1, &[]), list(2, &[1])],
    ]);
    history.push(at(5, 300, 400, &[list(1, &[1])]));
    history.key_names.insert(1, ":x".to_string());
    let verdict = judge(&history, Level::Serializable);
    assert_eq!(
        verdict.anomalies[0].story,
        "G-single: T0 -wr-> T1 -rw-> T0\n  \
         T0 (process 0, 0 to 100, committed): append 1 to :x; append 1 to 2\n  \
         T1 (process 1, 0 to 100, committed): read :x = []; read 2 = [1]\n  \
         T0 before T1: T1 saw key 2 at [1], which T0 wrote or wrote to\n  \
         T1 before T0: T1 saw key :x at [], without the 1 of T0\n  \
         so T0 would come before itself"
    );
    assert_eq!(verdict.anomalies[0].txns, [0, 1]);
}

#[test]
fn the_smallest_cycle_is_told() {
    // A chain of read-from edges closed by one anti-dependency, and a pair that closes sooner.
    let mut txns: Vec<Vec<Op>> = Vec::new();
    for link in 0..20u64 {
        txns.push(vec![list(link, &[1]), append(link + 1, 1)]);
    }
    txns[0] = vec![list(20, &[]), append(1, 1)];
    txns.push(vec![append(50, 1), append(51, 1)]);
    txns.push(vec![list(50, &[1]), list(51, &[])]);
    txns.push(vec![list(51, &[1]), list(20, &[1])]);
    let slices: Vec<&[Op]> = txns.iter().map(|ops| &ops[..]).collect();
    let verdict = judge(&overlapping(&slices), Level::SnapshotIsolation);
    assert_eq!(verdict.anomalies[0].name(), "G-single");
    assert_eq!(verdict.anomalies[0].txns.len(), 2);
}
