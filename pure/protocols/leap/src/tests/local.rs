//! Transfers between healthy nodes: what moves, what it costs, which transactions wait or die.

use super::world::{TABLE, World, key, kind};
use crate::Settings;
use base::{Datum, NodeId, ShardId, Ts, TxnId, Type};
use bed::programs::{self, Test, program, row};
use local::Limits;
use txn::{
    AbortReason, ColumnFormula, Formula, FormulaOp, LockMode, MovingRows, NewRows, Op, OpError,
    OpReply, OpResult, Outcome, Protocol, Read,
};

/// What a server looks at while it runs: a broken invariant ends the process.
#[test]
#[should_panic(expected = "without its lock")]
fn a_write_without_its_lock_is_seen_in_what_is_open() {
    let mut world = World::new(2, 1);
    world.load(key("a0"), 1);
    let txn = world.begin(shard(1));
    world.submit(txn, add("a0", 1), false);
    let protocol = &mut world.shards.get_mut(&shard(1)).unwrap().protocol;
    assert!(protocol.validate_open(10), "all is well");
    assert!(!protocol.validate_open(0), "it would take too long");
    protocol.locks = txn::LockTable::new();
    protocol.validate_open(10);
}

/// An operation that is alone in its transaction takes no lock where none is in its way. It needs
/// one if its change goes into the journal in slices.
#[test]
fn a_large_change_alone_in_its_transaction_is_locked_while_it_is_installed() {
    let mut world = World::new(1, 1);
    world.load(key("a0"), 10);
    world.settings(Settings {
        limits: Limits {
            slice_units: 1,
            ..Limits::default()
        },
        ..Settings::default()
    });
    let change = || programs::compute(key("a0"), programs::digits_and(4));
    let mut answers = Vec::new();
    for _ in 0..3 {
        let txn = world.begin(shard(1));
        answers.push(world.submit(txn, change(), true));
        let locks = &world.shards[&shard(1)].protocol.locks;
        assert!(!locks.is_empty(), "it goes in slices");
    }
    world.settle();
    for id in answers {
        assert!(committed(&world.take_answer(id).expect("it ends")));
    }
    assert_eq!(world.value(&key("a0")), Some(5));
}

pub(crate) fn shard(node: u16) -> ShardId {
    ShardId::new(NodeId(node), 0)
}

pub(crate) fn add(name: &str, delta: i64) -> Op {
    Op::Modify {
        key: key(name),
        program: program(Test::Add(delta)),
    }
}

/// A blind change, which goes to its row.
pub(crate) fn bump(name: &str, delta: i64) -> Op {
    let change = ColumnFormula::new(0, Type::Int8, FormulaOp::Add(Datum::Int(delta)));
    Op::Formula {
        key: key(name),
        formula: Formula(vec![change.expect("integers add exactly")]),
    }
}

pub(crate) fn get(name: &str) -> Op {
    Op::Get {
        key: key(name),
        read: Read::Lock(LockMode::Shared),
        program: program(Test::Read),
    }
}

pub(crate) fn insert(name: &str, value: i64) -> Op {
    Op::Insert {
        key: key(name),
        row: row(value).into(),
    }
}

fn remove(name: &str) -> Op {
    Op::Modify {
        key: key(name),
        program: program(Test::Remove),
    }
}

pub(crate) fn number(reply: &OpReply) -> Option<i64> {
    let batch = match reply.result.as_ref().expect("it worked") {
        OpResult::Rows { batch, .. } => batch,
        OpResult::Modified { returning, .. } => returning,
        other => panic!("{other:?} has no rows"),
    };
    match batch.datums.first() {
        Some(Datum::Int(value)) => Some(*value),
        _ => None,
    }
}

/// Runs one operation as a transaction, everything delivered.
pub(crate) fn run(world: &mut World, at: u16, op: Op) -> (TxnId, OpReply) {
    let txn = world.begin(shard(at));
    let id = world.submit(txn, op, true);
    world.settle();
    let reply = world.take_answer(id).expect("everything is answered");
    (txn, reply)
}

pub(crate) fn committed(reply: &OpReply) -> bool {
    matches!(reply.outcome, Some(Outcome::Committed { .. }))
}

fn world() -> World {
    let mut world = World::new(3, 1);
    for name in ["a0", "b0", "a1", "a2"] {
        world.load(key(name), 10);
    }
    world
}

/// Messages between nodes, delays and forced writes of one transaction.
fn cost_of(world: &mut World, at: u16, op: Op) -> (u64, u32, u32, u32, u64) {
    let before = world.count(|c| c.messages);
    let (txn, reply) = run(world, at, op);
    assert!(committed(&reply), "{reply:?}");
    let cost = world.shards[&txn.shard].protocol.cost(txn).unwrap();
    let messages = world.count(|c| c.messages) - before;
    (
        messages,
        cost.messages_on_path,
        cost.messages_off_path,
        cost.delays,
        cost.forced_writes.into(),
    )
}

/// Rolled back because an older transaction is in the way.
pub(crate) fn died(reply: &OpReply) -> bool {
    matches!(reply.result, Err(OpError::Aborted(AbortReason::Die { .. })))
}

/// The table of docs/protocols/leap.md: messages on + off the path, one-way delays, forced writes.
#[test]
fn transfers_cost_what_the_table_says() {
    let mut world = world();
    // At home, with no other owner.
    assert_eq!(cost_of(&mut world, 1, add("a0", 1)), (0, 0, 0, 0, 1));
    // R-PO: the home is the owner.
    assert_eq!(cost_of(&mut world, 2, add("a0", 1)), (4, 2, 2, 2, 1));
    // Already owned.
    assert_eq!(cost_of(&mut world, 2, add("a0", 1)), (0, 0, 0, 0, 1));
    // R-P-O: three nodes.
    assert_eq!(cost_of(&mut world, 3, add("a0", 1)), (6, 3, 3, 3, 1));
    // RP-O: the requester is the home.
    assert_eq!(cost_of(&mut world, 1, add("a0", 1)), (3, 2, 1, 2, 1));
    assert_eq!(world.value(&key("a0")), Some(15));
    let moves = world.shards[&shard(1)].protocol.moves();
    assert_eq!((moves.rp_o, moves.rows_away, moves.moved_out), (1, 0, 1));
    let moves = world.shards[&shard(3)].protocol.moves();
    assert_eq!((moves.r_p_o, moves.rows_here, moves.moved_in), (1, 0, 1));
    let moves = world.shards[&shard(2)].protocol.moves();
    assert_eq!((moves.r_po, moves.rows_here, moves.backups), (1, 0, 0));
    world.tick(300_000);
    world.settle();
    assert!(world.is_idle());
}

#[test]
fn point_operations_go_out_side_by_side() {
    let mut world = world();
    let txn = world.begin(shard(3));
    let first = world.submit(txn, add("a0", 1), false);
    let second = world.submit(txn, add("a1", 1), false);
    assert_eq!(world.flights.len(), 2, "both are asked for at once");
    world.settle();
    assert_eq!(number(&world.take_answer(first).unwrap()), Some(11));
    assert_eq!(number(&world.take_answer(second).unwrap()), Some(11));
    let commit = world.commit(txn);
    assert!(committed(&world.take_answer(commit).unwrap()));
    let cost = world.shards[&shard(3)].protocol.cost(txn).unwrap();
    assert_eq!(
        (cost.delays, cost.messages_on_path, cost.forced_writes),
        (2, 4, 1)
    );
    assert_eq!(world.owner(&key("a0")), shard(3));
    assert_eq!(world.owner(&key("a1")), shard(3));
}

#[test]
fn one_request_serves_all_who_wait_on_a_shard() {
    let mut world = world();
    let older = world.begin(shard(2));
    let younger = world.begin(shard(2));
    let first = world.submit(younger, get("a0"), false);
    let second = world.submit(older, get("a0"), false);
    assert_eq!(world.flights.len(), 1, "one request");
    world.settle();
    assert_eq!(number(&world.take_answer(first).unwrap()), Some(10));
    assert_eq!(number(&world.take_answer(second).unwrap()), Some(10));
}

#[test]
fn an_older_request_waits_and_a_younger_one_dies() {
    let mut world = world();
    let older = world.begin(shard(2));
    let holder = world.begin(shard(1));
    let held = world.submit(holder, add("a0", 5), false);
    world.settle();
    assert!(world.take_answer(held).unwrap().result.is_ok());
    let younger = world.begin(shard(3));
    world.submit(younger, add("b0", 1), false);
    world.settle();
    let waits = world.submit(older, add("a0", 1), false);
    let dies = world.submit(younger, add("a0", 1), false);
    world.settle();
    let reply = world.take_answer(dies).expect("wait-die");
    assert!(died(&reply), "{reply:?}");
    assert!(
        world.take_answer(waits).is_none(),
        "older waits for younger"
    );
    world.commit(holder);
    world.settle();
    assert_eq!(number(&world.take_answer(waits).unwrap()), Some(16));
    assert_eq!(world.owner(&key("a0")), shard(2));
}

/// Section 4.1.3: the youngest request is dispatched first, so waiters are older than the holder.
#[test]
fn the_youngest_of_those_who_wait_at_home_is_next() {
    let mut world = World::new(5, 1);
    world.load(key("a0"), 10);
    let waiting = [shard(2), shard(3), shard(4)].map(|at| world.begin(at));
    let holder = world.begin(shard(5));
    world.submit(holder, add("a0", 1), false);
    world.settle();
    // Each of them may wait: the one whose request is on its way is the youngest.
    let asked = [2, 0, 1].map(|at| (at, world.submit(waiting[at], add("a0", 1), false)));
    world.settle();
    for (at, node, value) in [(2, 4, 12), (1, 3, 13), (0, 2, 14)] {
        let before = if at == 2 { holder } else { waiting[at + 1] };
        world.commit(before);
        world.settle();
        assert_eq!(world.owner(&key("a0")), shard(node));
        let op = asked.iter().find(|(which, _)| *which == at).unwrap().1;
        assert_eq!(number(&world.take_answer(op).unwrap()), Some(value));
        assert!(
            asked
                .iter()
                .all(|(which, op)| *which >= at || world.take_answer(*op).is_none())
        );
    }
}

#[test]
fn a_row_stays_with_its_transaction_and_an_aborted_one_keeps_the_row() {
    let mut world = world();
    let txn = world.begin(shard(2));
    world.submit(txn, add("a0", 5), false);
    world.settle();
    world.call(shard(2), |protocol, cx| protocol.abort(cx, txn));
    assert_eq!(world.owner(&key("a0")), shard(2));
    assert_eq!(world.value(&key("a0")), Some(10));
    let (_, reply) = run(&mut world, 1, get("a0"));
    assert_eq!(number(&reply), Some(10));
    assert_eq!(world.owner(&key("a0")), shard(1));
}

#[test]
fn absence_is_owned_like_a_row() {
    let mut world = world();
    let (_, reply) = run(&mut world, 2, insert("new0", 1));
    assert_eq!(reply.result, Ok(OpResult::Done));
    let (txn, reply) = run(&mut world, 3, insert("new0", 2));
    assert_eq!(reply.result, Ok(OpResult::Exists));
    world.call(shard(3), |protocol, cx| protocol.abort(cx, txn));
    let (_, reply) = run(&mut world, 2, remove("new0"));
    assert!(committed(&reply));
    assert_eq!(world.owner(&key("new0")), shard(2));
    assert_eq!(world.value(&key("new0")), None);
    let (_, reply) = run(&mut world, 1, insert("new0", 3));
    assert_eq!(reply.result, Ok(OpResult::Done));
    assert_eq!(world.value(&key("new0")), Some(3));
}

#[test]
fn a_version_leaves_only_when_its_record_is_durable() {
    let mut world = world();
    let writer = world.begin(shard(1));
    world.submit(writer, add("a0", 5), true);
    let reader = world.begin(shard(2));
    let read = world.submit(reader, get("a0"), true);
    let request = world.flights.remove(0);
    world.deliver(request);
    let response = world
        .flights
        .iter()
        .find(|flight| kind(flight) == "Response")
        .unwrap();
    assert!(
        !world.may_leave(response),
        "the commit of 15 is not durable"
    );
    world.settle();
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(15));
}

#[test]
fn many_new_rows_pay_a_delay_for_many() {
    let mut world = World::new(3, 1);
    let names: Vec<String> = (0..200).map(|number| format!("{number:03}0")).collect();
    let home = world.home(&key(&names[0]));
    assert_ne!(home, shard(2));
    // A transaction at the requester locks a row in the middle: that row is waited for in its turn.
    let other = world.begin(shard(2));
    world.submit(other, insert(&names[30], 7), false);
    world.settle();
    let mut rows = NewRows::new(TABLE, 0);
    for name in &names {
        let key = key(name);
        rows.push(key.slot, &key.bytes, |out| out.extend(row(1)));
    }
    let older = world.begin_as(shard(2), Some(Ts(1)));
    let id = world.submit_to(older, home, Op::InsertMany(rows), false);
    world.settle();
    assert!(world.take_answer(id).is_none(), "it waits for the other");
    let end = world.commit(other);
    world.settle();
    assert!(committed(
        &world.take_answer(end).expect("nothing is in its way")
    ));
    let reply = world.take_answer(id).expect("all rows have come");
    let Ok(OpResult::SomeExist(present)) = &reply.result else {
        panic!("{reply:?}");
    };
    assert_eq!(present[..], [30]);
    let cost = world.shards[&shard(2)].protocol.cost(older).unwrap();
    assert_eq!(cost.rows_moved, 199);
    assert!(cost.delays <= 2 * (200 / 64 + 3), "{} delays", cost.delays);
    let end = world.commit(older);
    world.settle();
    assert!(committed(&world.take_answer(end).expect("it ends")));
    assert_eq!(world.value(&key(&names[199])), Some(1));
    assert_eq!(world.value(&key(&names[30])), Some(7));
}
