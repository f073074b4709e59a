//! A step looks at fewer rows if the condition is much work for each row. A long list is not much
//! work.

use catalog::ProtocolKind;
use one_shard::World;

const ROWS: u64 = 500;

/// Runs a query that gives one row. Returns the units of all steps, and of the largest step.
fn units(world: &mut World, text: &str) -> (u64, u64) {
    let mut outcome = one_shard::Outcome::default();
    world.shard.take_step_units_max();
    world.say(1, text);
    let (mut sum, mut largest, mut over) = (0, 0, false);
    for _ in 0..1_000_000 {
        let units = world.shard.take_step_units_max();
        sum += units;
        largest = units.max(largest);
        let busy = world.shard.deadline().is_some_and(|at| at <= world.now);
        over |= world.take(1, &mut outcome);
        if over && !busy {
            assert_eq!(outcome.error, None, "{text:.80}");
            assert_eq!(outcome.rows, 1);
            return (sum, largest);
        }
        world.go_on(1);
    }
    panic!("the query does not end");
}

fn heavy_rows_are_few_in_a_step(protocol: ProtocolKind) {
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    let rows = format!("INSERT INTO t SELECT g, g FROM generate_series(1, {ROWS}) g");
    world.must(1, &rows);
    // 4,000 comparisons that become neither a key nor a list.
    let terms: Vec<String> = (0..2_000).map(|n| format!("v % 7 = {n} + 10")).collect();
    let heavy = format!("SELECT count(*) FROM t WHERE {}", terms.join(" OR "));
    let (sum, largest) = units(&mut world, &heavy);
    assert!(sum >= 50 * ROWS, "{sum} units for {ROWS} rows");
    assert!(largest <= 3_000, "{largest} units in a step");
    let list: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    for list in [
        format!("v IN ({})", list.join(", ")),
        format!("v = ANY ('{{{}}}'::int[])", list.join(",")),
        "v = ANY (ARRAY(SELECT g FROM generate_series(1, 20000) g))".to_owned(),
        "v <> ALL (ARRAY(SELECT g FROM generate_series(1, 20000) g))".to_owned(),
    ] {
        let text = format!("SELECT count(*) FROM t WHERE {list} OR id < 0");
        let (sum, _) = units(&mut world, &text);
        let shown: String = text.chars().take(60).collect();
        // Making the list counts too. Comparing item by item would be 150,000.
        assert!(sum <= 60_000, "{sum} units for {ROWS} rows: {shown}");
    }
    // A list that cannot be looked up counts with all its items.
    let text =
        "SELECT count(*) FROM t WHERE v > ALL (ARRAY(SELECT g FROM generate_series(1, 20000) g))";
    let (sum, largest) = units(&mut world, text);
    assert!(sum >= 200 * ROWS, "{sum} units for {ROWS} rows");
    assert!(largest <= 3_000, "{largest} units in a step");
}

#[test]
fn heavy_rows_are_few_in_a_step_of_two_phase() {
    heavy_rows_are_few_in_a_step(ProtocolKind::TwoPhase);
}

#[test]
fn heavy_rows_are_few_in_a_step_of_leap() {
    heavy_rows_are_few_in_a_step(ProtocolKind::Leap);
}
