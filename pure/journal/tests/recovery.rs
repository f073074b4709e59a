//! Recovery: every row of the decision table, and journals cut at every record.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base::{IndexId, Key, NodeId, Position, Prng, ShardId, Slot, Ts, TxnId};
use journal::verdict::Heard;
use journal::{
    Away, Ballot, CheckpointTables, Entry, Evidence, Fault, Held, Holding, Otag, Owed, Ownership,
    Prepared, Record, Recovery, Redo, ReplayStart, Shipment, Shipped, Verdict, Vote, Writes, judge,
    recover,
};
use store::{Formula, Write};

const HERE: ShardId = ShardId(0);
const ALSO_HERE: ShardId = ShardId(1);
const AWAY: ShardId = ShardId(16);

fn txn(coordinator: ShardId, number: u64) -> TxnId {
    TxnId {
        shard: coordinator,
        incarnation: 1,
        counter: 2 * number,
    }
}

fn writes(n: u8) -> Writes {
    let key = Key {
        index: IndexId(1),
        slot: Slot(0),
        bytes: vec![n],
    };
    vec![(key, Write::Put(vec![n, n]))]
}

/// Gives each record the next position: 10, 20, 30 ...
fn entries(records: &[Record]) -> Vec<Entry> {
    let at = |i: usize| Position(10 * (i as u64 + 1));
    records
        .iter()
        .enumerate()
        .map(|(i, r)| Entry {
            end: at(i),
            record: r.clone(),
        })
        .collect()
}

fn run(records: &[Record]) -> Result<Recovery, Fault> {
    recover(
        ReplayStart {
            node: NodeId(1),
            ..ReplayStart::default()
        },
        entries(records),
    )
}

fn prepare(txn: TxnId, shard: ShardId, n: u8, chunks: u32) -> Record {
    Record::Prepare {
        txn,
        attempt: 1,
        shard,
        prepare_ts: Ts(50),
        coordinator: txn.shard,
        participants: vec![],
        writes: writes(n),
        chunks,
    }
}

fn prepared(txn: TxnId, shard: ShardId, n: u8) -> Prepared {
    Prepared {
        txn,
        attempt: 1,
        shard,
        prepare_ts: Ts(50),
        coordinator: txn.shard,
        participants: vec![],
        writes: writes(n),
    }
}

fn decision(txn: TxnId, commit_ts: u64) -> Record {
    Record::Decision {
        txn,
        commit_ts: Ts(commit_ts),
        participants: vec![HERE],
        writes: vec![],
        chunks: vec![],
    }
}

fn resolved(txn: TxnId, shard: ShardId, commit_ts: Option<u64>) -> Record {
    Record::Resolved {
        txn,
        shard,
        commit_ts: commit_ts.map(Ts),
    }
}

fn redo(shard: ShardId, commit_ts: u64, n: u8) -> Redo {
    Redo {
        shard,
        commit_ts: Ts(commit_ts),
        any_order: false,
        writes: writes(n),
    }
}

/// The decision table, written out a second time by its columns: every combination of evidence.
#[test]
fn every_row_of_the_table() {
    use Heard::{Abort, Commit, Nothing};
    // (heard, decided, coordinator here) for a whole promise.
    let promised = [
        (Nothing, false, false, Verdict::Hold),
        (Nothing, false, true, Verdict::PresumeAbort),
        (Nothing, true, false, Verdict::RedoDecided),
        (Nothing, true, true, Verdict::RedoDecided),
        (Commit, false, false, Verdict::Redo),
        (Commit, false, true, Verdict::Redo),
        (Commit, true, false, Verdict::Redo),
        (Commit, true, true, Verdict::Redo),
        (Abort, false, false, Verdict::Nothing),
        (Abort, false, true, Verdict::Nothing),
        (Abort, true, false, Verdict::CorruptContradiction),
        (Abort, true, true, Verdict::CorruptContradiction),
    ];
    let mut rows = 0;
    let named = promised.map(|row| (row, true));
    for ((heard, decided, coordinator_here, verdict), named) in
        promised.map(|row| (row, false)).into_iter().chain(named)
    {
        for (prepared, whole) in [(true, true), (true, false), (false, true), (false, false)] {
            let evidence = Evidence::Participant {
                prepared,
                whole,
                heard,
                decided,
                coordinator_here,
                named,
            };
            let expected = match (prepared, whole, heard) {
                // A commit that promises make may have been answered.
                (true, true, Nothing) if named && !decided => Verdict::Hold,
                (true, true, _) => verdict,
                (true, false, _) => Verdict::CorruptChunks,
                (false, _, Commit) => Verdict::CorruptOutcome,
                (false, _, Nothing | Abort) => Verdict::Nothing,
            };
            assert_eq!(judge(evidence), expected, "{evidence:?}");
            rows += 1;
        }
    }
    assert_eq!(rows, 96);
    assert_eq!(judge(Evidence::OneRecord { whole: true }), Verdict::Redo);
    assert_eq!(
        judge(Evidence::OneRecord { whole: false }),
        Verdict::CorruptChunks
    );
    for (decided, ended, verdict) in [
        (false, false, Verdict::Nothing),
        (false, true, Verdict::Nothing),
        (true, false, Verdict::Tell),
        (true, true, Verdict::Nothing),
    ] {
        assert_eq!(judge(Evidence::Coordinator { decided, ended }), verdict);
    }
}

#[test]
fn commit_in_one_record_is_redone_on_every_shard() {
    let txn = txn(HERE, 1);
    let commit = Record::Commit {
        txn,
        commit_ts: Ts(7),
        writes: vec![(HERE, writes(1)), (ALSO_HERE, writes(2))],
        chunks: vec![],
    };
    let recovery = run(&[commit]).unwrap();
    assert_eq!(recovery.redo, [redo(HERE, 7, 1), redo(ALSO_HERE, 7, 2)]);
    assert_eq!(recovery.clock_floor, Ts(7));
}

#[test]
fn prepared_without_outcome_is_held_with_its_keys() {
    let txn = txn(AWAY, 1);
    let recovery = run(&[prepare(txn, HERE, 3, 0)]).unwrap();
    assert_eq!(recovery.held, [prepared(txn, HERE, 3)]);
    assert_eq!(
        recovery.held[0].keys().collect::<Vec<_>>(),
        [&writes(3)[0].0]
    );
    assert_eq!((recovery.redo, recovery.settled), (vec![], vec![]));
}

#[test]
fn prepared_with_outcome_is_redone_or_dropped() {
    let txn = txn(AWAY, 1);
    let commit = run(&[prepare(txn, HERE, 3, 0), resolved(txn, HERE, Some(60))]).unwrap();
    assert_eq!(
        (commit.redo, commit.held),
        (vec![redo(HERE, 60, 3)], vec![])
    );
    let abort = run(&[prepare(txn, HERE, 3, 0), resolved(txn, HERE, None)]).unwrap();
    assert_eq!((abort.redo, abort.held), (vec![], vec![]));
    // A later attempt counts anew.
    let again = [
        prepare(txn, HERE, 3, 0),
        resolved(txn, HERE, None),
        prepare(txn, HERE, 4, 0),
        resolved(txn, HERE, Some(70)),
    ];
    assert_eq!(run(&again).unwrap().redo, [redo(HERE, 70, 4)]);
}

#[test]
fn prepared_by_a_coordinator_here_follows_its_decision() {
    let txn = txn(ALSO_HERE, 1);
    let decided = run(&[prepare(txn, HERE, 3, 0), decision(txn, 60)]).unwrap();
    assert_eq!(decided.redo, [redo(HERE, 60, 3)]);
    assert_eq!(decided.settled, [resolved(txn, HERE, Some(60))]);
    let owed = Owed {
        txn,
        commit_ts: Ts(60),
        participants: vec![HERE],
    };
    assert_eq!(decided.owed, [owed]);
    let undecided = run(&[prepare(txn, HERE, 3, 0)]).unwrap();
    assert_eq!(undecided.redo, []);
    assert_eq!(undecided.settled, [resolved(txn, HERE, None)]);
    // With the promises of others that it names, it may have been answered.
    let Record::Prepare {
        attempt,
        prepare_ts,
        writes,
        ..
    } = prepare(txn, HERE, 3, 0)
    else {
        unreachable!("it is a promise")
    };
    let named = Record::Prepare {
        txn,
        attempt,
        shard: HERE,
        prepare_ts,
        coordinator: txn.shard,
        participants: vec![HERE, AWAY],
        writes,
        chunks: 0,
    };
    let open = run(&[named]).unwrap();
    assert_eq!((open.settled, open.held.len()), (vec![], 1));
}

#[test]
fn settling_makes_the_next_recovery_agree() {
    let (a, b) = (txn(ALSO_HERE, 1), txn(ALSO_HERE, 2));
    let mut records = vec![
        prepare(a, HERE, 3, 0),
        decision(a, 60),
        prepare(b, HERE, 4, 0),
    ];
    let first = run(&records).unwrap();
    records.extend(first.settled.clone());
    records.push(Record::End { txn: a });
    let second = run(&records).unwrap();
    assert_eq!(second.redo, first.redo);
    assert_eq!(
        (second.settled, second.owed, second.held),
        (vec![], vec![], vec![])
    );
}

#[test]
fn decisions_are_owed_until_they_end() {
    let txn = txn(HERE, 1);
    assert_eq!(run(&[decision(txn, 60)]).unwrap().owed.len(), 1);
    assert_eq!(
        run(&[decision(txn, 60), Record::End { txn }]).unwrap().owed,
        []
    );
    let with_writes = Record::Decision {
        txn,
        commit_ts: Ts(60),
        participants: vec![AWAY],
        writes: vec![(HERE, writes(9))],
        chunks: vec![],
    };
    assert_eq!(run(&[with_writes]).unwrap().redo, [redo(HERE, 60, 9)]);
}

#[test]
fn contradictions_are_refused() {
    let (away, here) = (txn(AWAY, 1), txn(ALSO_HERE, 1));
    let orphan = run(&[resolved(away, HERE, Some(60))]);
    assert_eq!(
        orphan,
        Err(Fault::OutcomeWithoutPrepare {
            txn: away,
            shard: HERE
        })
    );
    assert!(
        run(&[resolved(away, HERE, None)]).is_ok(),
        "a refusal needs no promise"
    );
    let both = [
        prepare(here, HERE, 1, 0),
        decision(here, 60),
        resolved(here, HERE, None),
    ];
    assert_eq!(run(&both), Err(Fault::Contradiction { txn: here }));
    let late = [
        prepare(here, HERE, 1, 0),
        resolved(here, HERE, None),
        decision(here, 60),
    ];
    assert_eq!(run(&late), Err(Fault::Contradiction { txn: here }));
    let other = [
        prepare(here, HERE, 1, 0),
        decision(here, 60),
        resolved(here, HERE, Some(61)),
    ];
    assert_eq!(run(&other), Err(Fault::Contradiction { txn: here }));
    let twice = [decision(here, 60), decision(here, 61)];
    assert_eq!(run(&twice), Err(Fault::Contradiction { txn: here }));
}

#[test]
fn chunks_join_their_record() {
    let (one, two) = (txn(HERE, 1), txn(AWAY, 2));
    let chunk = |txn, shard, seq, n| Record::Chunk {
        txn,
        shard,
        seq,
        writes: writes(n),
    };
    let records = [
        // Of an attempt that was given up.
        chunk(one, HERE, 0, 90),
        chunk(one, HERE, 1, 91),
        chunk(one, HERE, 2, 92),
        chunk(one, HERE, 0, 1),
        chunk(two, HERE, 0, 5),
        chunk(one, HERE, 1, 2),
        chunk(one, ALSO_HERE, 0, 3),
        Record::Commit {
            txn: one,
            commit_ts: Ts(7),
            writes: vec![(HERE, writes(9))],
            chunks: vec![(HERE, 2), (ALSO_HERE, 1)],
        },
        prepare(two, HERE, 6, 1),
    ];
    let recovery = run(&records).unwrap();
    let all = |parts: &[u8]| parts.iter().flat_map(|n| writes(*n)).collect::<Writes>();
    // Piece by piece, so that not all of it is in memory twice.
    let pieces = [9, 1, 2].map(|n| redo(HERE, 7, n));
    assert_eq!(recovery.redo[..3], pieces);
    assert_eq!(recovery.redo[3..], [redo(ALSO_HERE, 7, 3)]);
    assert_eq!(recovery.held[0].writes, all(&[6, 5]));
    let without = |skip: usize| {
        let rest = records.iter().enumerate().filter(|(i, _)| *i != skip);
        run(&rest.map(|(_, record)| record.clone()).collect::<Vec<_>>())
    };
    assert_eq!(without(6), Err(Fault::MissingChunk { txn: one }));
    assert_eq!(without(4), Err(Fault::MissingChunk { txn: two }));
    // Without their record, chunks promise nothing.
    assert_eq!(run(&records[..7]).unwrap().redo, []);
}

#[test]
fn records_before_a_shards_start_are_in_its_checkpoint() {
    let (a, b, c) = (txn(HERE, 1), txn(AWAY, 2), txn(AWAY, 3));
    let commit = |n: u8, ts| Record::Commit {
        txn: a,
        commit_ts: Ts(ts),
        writes: vec![(HERE, writes(n)), (ALSO_HERE, writes(n))],
        chunks: vec![],
    };
    let records = [
        commit(1, 10),
        prepare(b, HERE, 2, 0),
        decision(a, 60),
        Record::CheckpointStart {
            number: 1,
            shard: HERE,
        },
        commit(3, 30),
        resolved(b, HERE, Some(40)),
        resolved(c, HERE, Some(50)),
    ];
    let tables = CheckpointTables {
        prepared: vec![prepared(b, HERE, 2), prepared(c, HERE, 4)],
        owed: vec![],
        ..CheckpointTables::default()
    };
    let start = ReplayStart {
        node: NodeId(1),
        shards: vec![
            (HERE, Position(40), tables),
            (ALSO_HERE, Position(5), Default::default()),
        ],
        incarnation: 4,
        clock_bound: Ts(1000),
        catalog_version: 0,
    };
    let recovery = recover(start, entries(&records)).unwrap();
    let expected = [
        redo(ALSO_HERE, 10, 1),
        redo(HERE, 30, 3),
        redo(ALSO_HERE, 30, 3),
        redo(HERE, 40, 2),
        redo(HERE, 50, 4),
    ];
    assert_eq!(recovery.redo, expected);
    // The decision was ended or is in the checkpoint's table; else it would be told again.
    assert_eq!(recovery.owed, []);
    assert_eq!((recovery.incarnation, recovery.clock_floor), (4, Ts(1000)));
}

#[test]
fn incarnation_clock_and_catalog_are_the_largest_seen() {
    let catalog = |version| Record::Catalog {
        version,
        catalog: vec![version as u8],
    };
    let start = |incarnation, bound| Record::NodeStart {
        incarnation,
        clock_bound: Ts(bound),
        view: 1,
    };
    let records = [
        start(1, 100),
        catalog(1),
        Record::ClockBound { ts: Ts(200) },
        start(2, 150),
    ];
    let recovery = run(&records).unwrap();
    assert_eq!(
        (recovery.incarnation, recovery.clock_floor, recovery.view),
        (2, Ts(200), 1)
    );
    assert_eq!(recovery.catalog, [(1, vec![1])]);
    let begin = ReplayStart {
        node: NodeId(1),
        catalog_version: 2,
        ..ReplayStart::default()
    };
    let recovery = recover(begin, entries(&[catalog(1), catalog(2), catalog(4)])).unwrap();
    assert_eq!(recovery.catalog, [(4, vec![4])]);
    let begin = ReplayStart {
        node: NodeId(1),
        catalog_version: 9,
        ..ReplayStart::default()
    };
    assert_eq!(recover(begin, entries(&[catalog(8)])).unwrap().catalog, []);
}

#[test]
fn a_vote_holds_until_a_newer_catalog() {
    let catalog = |version| Record::Catalog {
        version,
        catalog: vec![version as u8],
    };
    let vote = |base, round| Vote {
        base,
        promised: Ballot {
            round,
            node: NodeId(2),
        },
        accepted: None,
    };
    let voted = |base, round| Record::Vote(vote(base, round));
    let last = |records: &[Record]| run(records).unwrap().vote;
    let first = [catalog(1), voted(1, 1)];
    assert_eq!(last(&first), Some(vote(1, 1)));
    // The newest vote counts, also one that a checkpoint has journaled again.
    let again = [catalog(1), voted(1, 1), voted(1, 7), voted(1, 7)];
    assert_eq!(last(&again), Some(vote(1, 7)));
    assert_eq!(last(&[catalog(1), voted(1, 7), catalog(2)]), None);
    assert_eq!(last(&[catalog(2), voted(1, 7)]), None);
    let next = [catalog(1), voted(1, 7), catalog(2), voted(2, 1)];
    assert_eq!(last(&next), Some(vote(2, 1)));
}

/// Cutting a journal after any record gives exactly what was committed by then.
#[test]
fn every_prefix_recovers_what_it_decided() {
    for seed in 0..50 {
        let mut prng = Prng::new(seed);
        let mut records = Vec::new();
        // (record number by which it is committed, number of the write)
        let mut committed: Vec<(usize, u8)> = Vec::new();
        let mut open: Vec<(TxnId, u8)> = Vec::new();
        for n in 0..40u8 {
            match prng.below(3) {
                0 => {
                    let writes = vec![(HERE, writes(n))];
                    let txn = txn(HERE, u64::from(n));
                    let commit_ts = Ts(100 + u64::from(n));
                    records.push(Record::Commit {
                        txn,
                        commit_ts,
                        writes,
                        chunks: vec![],
                    });
                    committed.push((records.len(), n));
                }
                1 => {
                    let txn = txn(AWAY, u64::from(n));
                    records.push(prepare(txn, HERE, n, 0));
                    open.push((txn, n));
                }
                _ if !open.is_empty() => {
                    let (txn, which) = open.swap_remove(prng.below(open.len() as u64) as usize);
                    let commit = prng.below(2) == 0;
                    let ts = commit.then_some(100 + u64::from(n));
                    records.push(resolved(txn, HERE, ts));
                    if commit {
                        committed.push((records.len(), which));
                    }
                }
                _ => {}
            }
        }
        for cut in 0..=records.len() {
            let recovery = run(&records[..cut]).unwrap();
            let found: Vec<u8> = recovery
                .redo
                .iter()
                .map(|redo| redo.writes[0].0.bytes[0])
                .collect();
            let due = committed.iter().filter(|(at, _)| *at <= cut);
            assert_eq!(
                found,
                due.map(|(_, n)| *n).collect::<Vec<_>>(),
                "seed {seed} cut {cut}"
            );
        }
    }
}

/// Rows that came and went: the holders at the end, and what is redone.
#[test]
fn ownership_is_replayed_from_the_checkpoint_on() {
    let key = |n: u8| Key::new(IndexId(1), Slot(2), vec![n]);
    let otag = |grant| Otag {
        incarnation: 1,
        grant,
    };
    let acquired = |n: u8, grant, version| Record::Acquired {
        shard: HERE,
        key: key(n),
        otag: otag(grant),
        from: ShardId(33),
        at: Ts(grant * 10),
        version,
    };
    let released = |n: u8, grant| Record::Released {
        shard: HERE,
        key: key(n),
        otag: otag(grant),
        to: ShardId(33),
    };
    let records = [
        acquired(1, 1, Some((Ts(5), vec![7]))),
        acquired(2, 2, None),
        released(3, 3),
        released(1, 4),
        acquired(1, 5, Some((Ts(45), vec![8]))),
        acquired(4, 6, Some((Ts(6), vec![9]))),
        released(4, 7),
    ];
    let held = |n: u8, grant, holding| Held {
        key: key(n),
        otag: otag(grant),
        holding,
    };
    let away = Away {
        key: key(9),
        owner: ShardId(33),
        otag: otag(1),
    };
    let tables = CheckpointTables {
        ownership: Ownership {
            held: vec![held(3, 1, Holding::Owned), held(5, 1, Holding::Owned)],
            away: vec![away.clone()],
            open: vec![],
            next: otag(2),
            shipped: vec![],
        },
        ..CheckpointTables::default()
    };
    let start = ReplayStart {
        node: NodeId(1),
        // Replay begins behind the first record.
        shards: vec![(HERE, entries(&records)[0].end, tables)],
        ..ReplayStart::default()
    };
    let recovery = recover(start, entries(&records)).unwrap();
    let (shard, ownership) = &recovery.ownership[0];
    assert_eq!(*shard, HERE);
    let gone = Holding::Released(ShardId(33));
    assert_eq!(
        ownership.held,
        [
            held(1, 5, Holding::Owned),
            held(2, 2, Holding::Owned),
            held(3, 3, gone),
            held(4, 7, gone),
            held(5, 1, Holding::Owned),
        ]
    );
    assert_eq!(ownership.away, [away]);
    assert_eq!(ownership.next, otag(2));
    let redone: Vec<_> = recovery.redo.iter().map(|redo| redo.commit_ts).collect();
    assert_eq!(redone, [Ts(20), Ts(45), Ts(6)]);
    assert_eq!(recovery.redo[0].writes, [(key(2), Write::Delete)]);
    assert!(recovery.clock_floor >= Ts(60));
}

#[test]
fn shipped_formulas_are_owed_from_their_commit_until_they_are_delivered() {
    let shipment = Shipment {
        owner: AWAY,
        key: writes(1).remove(0).0,
        formula: Formula(vec![]),
    };
    let shipped = |counter| Record::Shipped {
        shard: HERE,
        txn: txn(HERE, counter),
        formulas: vec![shipment.clone()],
    };
    let commit = |counter| Record::Commit {
        txn: txn(HERE, counter),
        commit_ts: Ts(100 + counter),
        writes: vec![(HERE, writes(counter as u8))],
        chunks: vec![],
    };
    let delivered = |counter| Record::Delivered {
        txn: txn(HERE, counter),
    };
    // The first is delivered, the second owed; the third has not committed.
    let records = [
        shipped(1),
        commit(1),
        shipped(2),
        commit(2),
        delivered(1),
        shipped(3),
    ];
    let owed = |counter| Shipped {
        txn: txn(HERE, counter),
        commit_ts: Ts(100 + counter),
        formulas: vec![shipment.clone()],
    };
    let mut expected = Vec::new();
    for (count, owes) in [(1, None), (2, Some(1)), (4, Some(2)), (5, None)] {
        if count == 5 {
            expected.remove(0);
        }
        expected.extend(owes.map(owed));
        let ownership = run(&records[..count]).unwrap().ownership;
        let found = ownership.first().map_or(&[][..], |(_, own)| &own.shipped);
        assert_eq!(found, expected);
    }
    assert_eq!(run(&records).unwrap().ownership[0].1.shipped, [owed(2)]);
    // The checkpoint knows both transactions, and begins behind their commits.
    let ownership = Ownership {
        shipped: vec![owed(1), owed(2)],
        ..Ownership::default()
    };
    let tables = CheckpointTables {
        ownership,
        ..CheckpointTables::default()
    };
    let start = ReplayStart {
        node: NodeId(1),
        shards: vec![(HERE, Position(40), tables)],
        ..ReplayStart::default()
    };
    let recovery = recover(start, entries(&records)).unwrap();
    assert_eq!(recovery.ownership[0].1.shipped, [owed(2)]);
}
