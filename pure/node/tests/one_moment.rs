//! Statements outside of a block that only read. Such a statement reads one moment, and no writer
//! waits for it.

use base::Datum;
use catalog::ProtocolKind;
use one_shard::{Outcome, World};

const ROWS: i64 = 10_000;
const BOTH: [ProtocolKind; 2] = [ProtocolKind::TwoPhase, ProtocolKind::Leap];

/// A client's statement: its result so far, and whether it is over.
struct Running {
    conn: u32,
    outcome: Outcome,
    over: bool,
}

impl Running {
    fn start(world: &mut World, conn: u32, text: &str) -> Running {
        let outcome = Outcome::default();
        world.say(conn, text);
        Running {
            conn,
            outcome,
            over: false,
        }
    }

    /// Takes what the last step has answered. Call it once after each step.
    fn hear(&mut self, world: &mut World) {
        self.over |= world.take(self.conn, &mut self.outcome);
    }
}

/// A table whose rows have the value 1, and two clients.
fn world(protocol: ProtocolKind) -> World {
    let mut world = World::new(protocol);
    world.connect(1);
    world.connect(2);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    let rows = format!("INSERT INTO t SELECT g, 1 FROM generate_series(1, {ROWS}) g");
    world.must(1, &rows);
    world
}

/// Runs `query` and, meanwhile, an update, a deletion and an insertion of rows that the query has
/// not reached. Returns whether all three are answered while the query runs, and its result.
fn writes_beside(world: &mut World, query: &str) -> (bool, Outcome) {
    let mut read = Running::start(world, 1, query);
    read.hear(world);
    assert!(!read.over, "the query takes only one step: {query}");
    let mut beside = true;
    for write in [
        format!("UPDATE t SET v = v + 5 WHERE id = {ROWS}"),
        format!("DELETE FROM t WHERE id = {}", ROWS - 1),
        format!("INSERT INTO t VALUES ({}, 7)", ROWS + 1),
    ] {
        let mut write = Running::start(world, 2, &write);
        read.hear(world);
        write.hear(world);
        while !write.over {
            world.go_on(1);
            read.hear(world);
            write.hear(world);
        }
        assert_eq!(write.outcome.error, None);
        beside &= !read.over;
    }
    while !read.over {
        world.go_on(1);
        read.hear(world);
    }
    (beside, read.outcome)
}

#[test]
fn no_writer_waits_for_a_statement_that_only_reads() {
    for protocol in BOTH {
        for (query, last) in [
            ("SELECT sum(v) FROM t", ROWS),
            ("SELECT count(*) FROM t WHERE v = 1", ROWS),
            ("SELECT v, count(*)::int FROM t GROUP BY v", 1),
            ("SELECT id FROM t WHERE id > 5 ORDER BY id", ROWS),
            ("SELECT (SELECT sum(v) FROM t)", ROWS),
            ("SELECT count(*) FROM t a JOIN t b ON a.id = b.id", ROWS),
            ("SELECT DISTINCT v FROM t", 1),
        ] {
            let mut world = world(protocol);
            let (beside, outcome) = writes_beside(&mut world, query);
            assert_eq!(outcome.error, None, "{query}");
            let last = Datum::Int(last);
            assert_eq!((beside, outcome.last), (true, last), "{protocol:?} {query}");
        }
    }
}

#[test]
fn what_locks_or_acts_keeps_its_locks() {
    for protocol in BOTH {
        for query in [
            "SELECT sum(v) FROM (SELECT v FROM t FOR UPDATE) l",
            "SELECT sum(v) FROM (SELECT v FROM t FOR SHARE) l",
            "SELECT sum(nextval('s')) FROM t",
        ] {
            let mut world = world(protocol);
            world.must(1, "CREATE SEQUENCE s");
            let (beside, outcome) = writes_beside(&mut world, query);
            assert_eq!(
                (beside, outcome.error),
                (false, None),
                "{protocol:?} {query}"
            );
        }
    }
}

#[test]
fn statements_of_a_block_keep_their_locks() {
    for protocol in BOTH {
        let mut world = world(protocol);
        world.must(1, "BEGIN");
        let read = world.must(1, "SELECT sum(v) FROM t");
        assert_eq!(read.last, Datum::Int(ROWS));
        let mut write = Running::start(&mut world, 2, "UPDATE t SET v = 2 WHERE id = 1");
        write.hear(&mut world);
        assert!(!write.over, "{protocol:?}: a row that the block has read");
        world.must(1, "COMMIT");
        write.hear(&mut world);
        while !write.over {
            world.go_on(2);
            write.hear(&mut world);
        }
        assert_eq!(write.outcome.error, None);
    }
}
