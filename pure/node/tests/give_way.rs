//! Idle readers give way to writers, under each protocol.

use base::{SqlState, Time};
use catalog::ProtocolKind;
use node::Input;
use one_shard::{Outcome, World};

const SECOND_US: u64 = 1_000_000;

/// A table with two rows, and two clients.
fn world(protocol: ProtocolKind) -> World {
    let mut world = World::new(protocol);
    world.connect(1);
    world.connect(2);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)");
    world.must(1, "INSERT INTO t VALUES (1, 0), (2, 0)");
    world
}

/// Lets a statement go on from tick to tick for a limited time; `None`: the statement still waits.
fn wait(world: &mut World, conn: u32, limit_us: u64) -> Option<Outcome> {
    let mut outcome = Outcome::default();
    let until = world.now.after(limit_us);
    while !world.take(conn, &mut outcome) {
        let at = world.shard.deadline().unwrap_or(Time(u64::MAX));
        if at > until {
            return None;
        }
        world.now = world.now.max(at);
        world.step(Input::Tick);
    }
    Some(outcome)
}

/// One client runs `block` and falls silent; another client updates row 1. Returns after how many
/// microseconds the update goes through, and how the next statement of the idle client ends.
fn update_beside(protocol: ProtocolKind, block: &[&str], next: &str) -> (u64, Option<SqlState>) {
    let mut world = world(protocol);
    for sql in block {
        world.must(1, sql);
    }
    let began = world.now;
    world.say(2, "UPDATE t SET v = length(format('%s', v)) WHERE id = 1");
    let update = wait(&mut world, 2, 10 * SECOND_US);
    let update = update.expect("the reader gives way");
    assert_eq!(update.error, None);
    let waited_us = world.now.since(began);
    let end = world.run(1, next).error.map(|error| error.state());
    (waited_us, end)
}

const READ: [&str; 2] = ["BEGIN", "SELECT v FROM t WHERE id = 1"];

#[test]
fn an_idle_reader_gives_way_and_may_commit() {
    for protocol in [ProtocolKind::TwoPhase, ProtocolKind::Leap] {
        let (waited_us, end) = update_beside(protocol, &READ, "COMMIT");
        assert!(waited_us < SECOND_US, "{protocol:?}: {waited_us} us");
        assert_eq!(end, None, "{protocol:?}");
        let (_, end) = update_beside(protocol, &READ, "SELECT v FROM t WHERE id = 2");
        assert_eq!(end, Some(SqlState::SERIALIZATION), "{protocol:?}");
    }
}

#[test]
fn an_idle_reader_gives_way_to_a_writer_of_read_committed() {
    for protocol in [ProtocolKind::TwoPhase, ProtocolKind::Leap] {
        let mut world = world(protocol);
        world.must(2, "SET default_transaction_isolation = 'read committed'");
        READ.iter().for_each(|sql| drop(world.must(1, sql)));
        let began = world.now;
        world.say(2, "UPDATE t SET v = length(format('%s', v)) WHERE id = 1");
        let update = wait(&mut world, 2, 10 * SECOND_US);
        assert_eq!(update.expect("the reader gives way").error, None);
        let waited_us = world.now.since(began);
        assert!(waited_us < SECOND_US, "{protocol:?}: {waited_us} us");
    }
}

#[test]
fn one_that_has_written_is_rolled_back_after_a_second() {
    let wrote = [READ[0], READ[1], "UPDATE t SET v = 7 WHERE id = 2"];
    for protocol in [ProtocolKind::TwoPhase, ProtocolKind::Leap] {
        let (waited_us, end) = update_beside(protocol, &wrote, "COMMIT");
        let expected = SECOND_US..3 * SECOND_US;
        assert!(expected.contains(&waited_us), "{protocol:?}: {waited_us}");
        assert_eq!(end, Some(SqlState::SERIALIZATION), "{protocol:?}");
    }
}

#[test]
fn locks_that_were_asked_for_do_not_give_way() {
    for protocol in [ProtocolKind::TwoPhase, ProtocolKind::Leap] {
        let mut world = world(protocol);
        world.must(1, "BEGIN");
        world.must(1, "SELECT v FROM t WHERE id = 1 FOR SHARE");
        world.say(2, "UPDATE t SET v = 5 WHERE id = 1");
        assert!(wait(&mut world, 2, 60 * SECOND_US).is_none());
        world.must(1, "COMMIT");
        world.must(1, "SELECT v FROM t WHERE id = 1");
    }
}
