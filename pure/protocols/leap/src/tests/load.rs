//! Many new rows in one operation, and what a transaction may write.

use super::local::{committed, insert, shard};
use super::world::{TABLE, World, key};
use crate::Settings;
use base::{ShardId, SqlState};
use bed::programs::row;
use local::Limits;
use txn::{NewRows, Op, OpError, OpResult};

fn names() -> Vec<String> {
    (0..60).map(|number| format!("{number:03}0")).collect()
}

fn insert_many(names: &[String]) -> Op {
    let mut rows = NewRows::new(TABLE, 0);
    for name in names {
        let key = key(name);
        rows.push(key.slot, &key.bytes, |out| out.extend(row(1)));
    }
    Op::InsertMany(rows)
}

fn load_at_home(world: &mut World, names: &[String]) -> (ShardId, OpResult) {
    let home = world.home(&key(&names[0]));
    let txn = world.begin(home);
    let id = world.submit_to(txn, home, insert_many(names), false);
    world.settle();
    let reply = world.take_answer(id).expect("nothing is in its way");
    let found = reply.result.expect("it worked");
    let locked = world.shards[&home].protocol.locks.len();
    let end = world.commit(txn);
    world.settle();
    assert!(committed(&world.take_answer(end).expect("it ends")));
    assert_eq!(world.value(&key(&names[7])), Some(1));
    let alone = matches!(found, OpResult::Done);
    assert_eq!(locked == 0, alone, "{locked} locks outside of runs");
    (home, found)
}

#[test]
fn new_rows_at_home_are_locked_and_written_in_runs() {
    let mut world = World::new(2, 1);
    let (home, found) = load_at_home(&mut world, &names());
    assert_eq!(found, OpResult::Done);
    assert!(world.shards[&home].protocol.locks.is_empty());
}

#[test]
fn a_row_that_is_away_is_found_among_many() {
    let mut world = World::new(2, 1);
    let (names, home) = (names(), world.home(&key(&names()[0])));
    let elsewhere = [shard(1), shard(2)].into_iter().find(|at| *at != home);
    let other = world.begin(elsewhere.expect("one of them"));
    let id = world.submit(other, insert(&names[30], 7), true);
    world.settle();
    assert!(committed(&world.take_answer(id).expect("it is free")));
    let (_, found) = load_at_home(&mut world, &names);
    assert_eq!(found, OpResult::SomeExist(vec![30]));
    assert_eq!(world.value(&key(&names[30])), Some(7));
}

#[test]
fn a_transaction_that_writes_too_much_is_told_the_limit() {
    let mut world = World::new(1, 1);
    world.settings(Settings {
        limits: Limits {
            txn_bytes_max: 100,
            ..Limits::default()
        },
        ..Settings::default()
    });
    let txn = world.begin(shard(1));
    let id = world.submit_to(txn, shard(1), insert_many(&names()), false);
    world.settle();
    let reply = world.take_answer(id).expect("nothing is in its way");
    let Err(OpError::Sql(error)) = reply.result else {
        panic!("{reply:?}");
    };
    assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
    let detail = "The limit is 100 bytes of keys and rows per shard.";
    assert_eq!(error.fields().detail, detail);
}
