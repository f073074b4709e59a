//! What a statement asks shards of other nodes for at once shares frames: under every protocol, at
//! every isolation level, with the answers that it had without.

mod several_nodes;

use base::{Datum, ShardId};
use catalog::ProtocolKind;
use several_nodes::{Told, World};

const HERE: ShardId = ShardId(0);
/// A shard of node 2, where leap leaves the rows that it has inserted.
const THERE: ShardId = ShardId(16);
const ROWS: i64 = 200;

fn world(protocol: ProtocolKind) -> World {
    let mut world = World::new(11, 3, protocol);
    world.connect_client(HERE);
    world.connect_client(THERE);
    let numbers = |values: &dyn Fn(i64) -> String| {
        let values: Vec<String> = (0..ROWS).map(values).collect();
        values.join(", ")
    };
    for sql in [
        "CREATE TABLE lines (o int, n int, item int, PRIMARY KEY (o, n))".to_owned(),
        "CREATE TABLE stock (item int PRIMARY KEY, quantity int)".to_owned(),
        "CREATE TABLE orders (o int PRIMARY KEY, item int REFERENCES stock)".to_owned(),
        format!(
            "INSERT INTO stock VALUES {}",
            numbers(&|i| format!("({i}, {})", i % 10))
        ),
        format!(
            "INSERT INTO lines VALUES {}",
            numbers(&|i| format!("(1, {i}, {i})"))
        ),
    ] {
        assert_eq!(world.run(THERE, &sql), Told::Done, "{sql}");
    }
    world.go_on(2_000_000);
    world
}

/// Runs statements of one transaction; the frames and messages between nodes that they took.
fn counted(world: &mut World, statements: &[&str]) -> (u64, u64) {
    let before = (world.frames, world.messages);
    for sql in statements {
        assert_eq!(world.run(HERE, sql), Told::Done, "{sql}");
    }
    (world.frames - before.0, world.messages - before.1)
}

const JOIN: &str = "SELECT count(*) FROM lines JOIN stock ON stock.item = lines.item \
                    WHERE lines.o = 1 AND stock.quantity < 5";

#[test]
fn a_join_by_keys_takes_few_frames() {
    for protocol in ProtocolKind::ALL {
        for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
            let mut world = world(protocol);
            let begin = format!("BEGIN ISOLATION LEVEL {level}");
            let (frames, messages) = counted(&mut world, &[&begin, JOIN, "COMMIT"]);
            assert!(messages > 250, "{protocol:?} {level}: {messages} messages");
            assert!(
                frames * 4 < messages,
                "{protocol:?} {level}: {frames} frames"
            );
            assert_eq!(world.value(HERE, JOIN), Ok(Datum::Int(ROWS / 2)));
        }
    }
}

#[test]
fn lists_of_keys_and_parents_share_frames() {
    let items: Vec<String> = (0..ROWS).map(|i| i.to_string()).collect();
    let select = format!(
        "SELECT count(*) FROM stock WHERE item IN ({})",
        items.join(", ")
    );
    let rows: Vec<String> = (0..ROWS).map(|i| format!("({i}, {i})")).collect();
    let insert = format!("INSERT INTO orders VALUES {}", rows.join(", "));
    for protocol in ProtocolKind::ALL {
        let mut world = world(protocol);
        for sql in [&select, &insert] {
            let (frames, messages) = counted(&mut world, &["BEGIN", sql, "COMMIT"]);
            let word = &sql[..6];
            assert!(
                frames * 2 < messages,
                "{protocol:?} {word}: {frames} frames"
            );
        }
        assert_eq!(world.value(HERE, &select), Ok(Datum::Int(ROWS)));
        let orders = "SELECT count(*) FROM orders JOIN stock ON stock.item = orders.item";
        assert_eq!(world.value(HERE, orders), Ok(Datum::Int(ROWS)));
    }
}

/// A window of a join grows as its rows are taken.
#[test]
fn a_join_for_one_row_asks_for_few() {
    let mut world = world(ProtocolKind::TwoPhase);
    let one = "SELECT quantity FROM lines JOIN stock ON stock.item = lines.item \
               WHERE lines.o = 1 LIMIT 1";
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
    let (_, messages) = counted(&mut world, &[begin, one, "COMMIT"]);
    assert!(messages < 80, "{messages} messages");
}
