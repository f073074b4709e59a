//! Heavy statements beside short ones. A step does one turn of one heavy statement, whatever their
//! number, and a point statement is answered in the step in which it comes.

use catalog::ProtocolKind;
use one_shard::{Outcome, World};

const HEAVY: u32 = 10;
const ROWS: u64 = 20_000;
/// Number of rows that a step may read while heavy statements run: a turn of a scan, and a turn of
/// a statement that reads its rows itself.
const STEP_ROWS_MAX: u64 = 2_100;

fn waits_for_one_turn(protocol: ProtocolKind, heavy: &str) {
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    let rows = format!("INSERT INTO t SELECT g, g % 100 FROM generate_series(1, {ROWS}) g");
    world.must(1, &rows);
    for conn in 2..2 + HEAVY {
        world.connect(conn);
        world.must(conn, "SET default_transaction_isolation = 'read committed'");
    }
    let mut running: Vec<u32> = (2..2 + HEAVY).collect();
    for conn in &running {
        world.say(*conn, heavy);
    }
    let (mut largest, mut points, mut ended) = (0, 0, Vec::new());
    for turn in 0..100_000 {
        if running.is_empty() {
            break;
        }
        let before = world.shard.counters().rows_read;
        for conn in running.clone() {
            let mut outcome = Outcome::default();
            // Buffers are empty: a statement waits only for other statements.
            if world.take(conn, &mut outcome) {
                assert_eq!(outcome.error, None, "{heavy}");
                running.retain(|other| *other != conn);
                ended.push((conn, turn));
            }
        }
        world.go_on(1);
        for conn in &running {
            world.drain(*conn);
        }
        largest = largest.max(world.shard.counters().rows_read - before);
        if turn % 7 == 0 && world.replies.is_empty() {
            world.say(1, "SELECT v FROM t WHERE id = 77");
            let mut outcome = Outcome::default();
            assert!(world.take(1, &mut outcome), "answered in its own step");
            assert_eq!((outcome.rows, outcome.error), (1, None));
            points += 1;
        }
    }
    assert!(running.is_empty(), "all end: {running:?}");
    assert!(
        largest <= STEP_ROWS_MAX,
        "{largest} rows in a step: {heavy}"
    );
    assert!(points > 10, "{points} point statements beside: {heavy}");
    // Statements take turns: those that began together end together.
    let (first, last) = (ended[0].1, ended[ended.len() - 1].1);
    assert!(last <= 2 * first + 40, "{ended:?}");
}

#[test]
fn a_point_statement_waits_for_one_turn_of_one_heavy_statement() {
    for protocol in [ProtocolKind::TwoPhase, ProtocolKind::Leap] {
        for heavy in [
            "SELECT count(*), sum(v) FROM t",
            "SELECT v, count(*) FROM t GROUP BY v",
            "SELECT count(*) FROM t a JOIN t b ON a.v = b.v WHERE b.id <= 5",
        ] {
            waits_for_one_turn(protocol, heavy);
        }
    }
}
