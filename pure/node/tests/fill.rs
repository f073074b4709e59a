//! A schema change works over existing rows while clients run blocks (rule R21).

mod several_nodes;

use base::{NodeId, Position, ShardId, SqlState};
use catalog::ProtocolKind;
use node::Input;
use one_shard::{Outcome, World};
use std::collections::BTreeMap;

const PROTOCOLS: [ProtocolKind; 2] = [ProtocolKind::TwoPhase, ProtocolKind::Leap];
/// The client that changes the schema.
const CHANGER: u32 = 9;
const CHANGES: [&str; 2] = [
    "CREATE INDEX i ON t (v)",
    "ALTER TABLE t ALTER v TYPE text USING 'v' || v",
];
/// A block up to its end.
const BLOCK: [&str; 3] = [
    "BEGIN",
    "SELECT v FROM u WHERE id = 1",
    "UPDATE t SET w = w + 1 WHERE id = 7",
];

/// Clients whose statements may wait.
struct Bed {
    world: World,
    running: BTreeMap<u32, Outcome>,
    ended: BTreeMap<u32, Outcome>,
}

impl Bed {
    /// Two tables, and clients.
    fn new(protocol: ProtocolKind, rows: u32) -> Bed {
        let mut world = World::new(protocol);
        for conn in [1, 2, 3, CHANGER] {
            world.connect(conn);
        }
        world.must(1, "CREATE TABLE u (id int PRIMARY KEY, v int NOT NULL)");
        world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int, w int)");
        world.must(1, "INSERT INTO u SELECT g, 0 FROM generate_series(1, 3) g");
        let fill = format!("INSERT INTO t SELECT g, g, 0 FROM generate_series(1, {rows}) g");
        world.must(1, &fill);
        Bed {
            world,
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    fn say(&mut self, conn: u32, text: &str) {
        let before = self.running.insert(conn, Outcome::default());
        assert!(before.is_none(), "one statement at a time");
        self.world.say(conn, text);
        self.collect();
    }

    /// Lets some microseconds pass.
    fn step(&mut self, later_us: u64) {
        self.world.now = self.world.now.after(later_us);
        for input in [Input::Tick, Input::Durable(Position(1_000_000_000_000))] {
            self.world.step(input);
            self.collect();
        }
    }

    fn collect(&mut self) {
        for (conn, mut outcome) in std::mem::take(&mut self.running) {
            match self.world.take(conn, &mut outcome) {
                true => self.ended.insert(conn, outcome),
                false => self.running.insert(conn, outcome),
            };
        }
    }

    /// Why the statement of a client has failed, once it has ended.
    fn end(&mut self, conn: u32) -> Option<Result<(), SqlState>> {
        let error = self.ended.remove(&conn)?.error;
        Some(error.map_or(Ok(()), |error| Err(error.state())))
    }

    /// Waits for the end of a client's statement, for a second at most.
    fn wait(&mut self, conn: u32) -> Result<(), SqlState> {
        let until = self.world.now.after(1_000_000);
        loop {
            if let Some(end) = self.end(conn) {
                return end;
            }
            assert!(
                self.world.now < until,
                "the statement of {conn} does not end"
            );
            self.step(100);
        }
    }
}

fn beds() -> impl Iterator<Item = (ProtocolKind, &'static str)> {
    let each = |protocol| CHANGES.map(|change| (protocol, change));
    PROTOCOLS.into_iter().flat_map(each)
}

#[test]
fn a_block_waits_for_a_batch_of_a_schema_change() {
    for (protocol, change) in beds() {
        let mut steps = 0;
        loop {
            let mut bed = Bed::new(protocol, 300);
            bed.say(CHANGER, change);
            // A batch, or the rest behind it.
            (0..steps).for_each(|_| bed.step(500));
            let under_way = bed.running.contains_key(&CHANGER);
            for text in BLOCK.iter().chain(&["COMMIT"]) {
                bed.say(1, text);
                let end = bed.wait(1);
                assert_eq!(end, Ok(()), "{protocol:?}, after {steps} steps: {text}");
            }
            if !under_way {
                break;
            }
            assert_eq!(bed.wait(CHANGER), Ok(()), "{protocol:?}");
            steps += 1;
        }
        assert!(steps > 3, "{protocol:?}: the change takes {steps} steps");
    }
}

#[test]
fn clients_wait_for_the_rows_of_one_batch_only() {
    const ROWS: u32 = 16_000;
    for (protocol, change) in beds() {
        let mut bed = Bed::new(protocol, ROWS);
        bed.say(CHANGER, change);
        let (mut sent, mut waited) = (0, 0);
        while bed.running.contains_key(&CHANGER) {
            let id = sent * 7_919 % ROWS + 1;
            bed.say(1, &format!("UPDATE t SET w = w + 1 WHERE id = {id}"));
            bed.step(0);
            sent += 1;
            if bed.running.contains_key(&1) {
                waited += 1;
            }
            assert_eq!(bed.wait(1), Ok(()), "{protocol:?}: {change}");
        }
        assert!(sent > 10, "{protocol:?}: {sent} updates beside {change}");
        assert!(
            waited * 4 < sent,
            "{protocol:?}: {waited} of {sent} updates waited for {change}"
        );
    }
}

#[test]
fn a_change_rests_beside_clients_of_other_nodes() {
    const ROWS: u64 = 10_000;
    for protocol in PROTOCOLS {
        let took_us = [false, true].map(|beside| {
            let mut world = several_nodes::World::new(7, 3, protocol);
            let [changer, client] = [1, 3].map(|node| ShardId::new(NodeId(node), 1));
            for (shard, sql) in [
                (
                    changer,
                    "CREATE TABLE t (id int PRIMARY KEY, v int)".to_owned(),
                ),
                (
                    client,
                    format!("INSERT INTO t SELECT g, g FROM generate_series(1, {ROWS}) g"),
                ),
            ] {
                world.connect_client(shard);
                assert_eq!(world.run(shard, &sql), several_nodes::Told::Done, "{sql}");
            }
            // Nobody is heard any more.
            world.go_on(200_000);
            let began = world.now;
            world.ask_anew(changer, "CREATE INDEX i ON t (v)");
            while world.told(changer).is_none() {
                match beside {
                    true => drop(world.run(client, "SELECT v FROM t WHERE id = 7")),
                    false => world.step(),
                }
            }
            assert_eq!(world.told(changer), Some(several_nodes::Told::Done));
            world.now.since(began)
        });
        let [idle, beside] = took_us;
        let rests_us = ROWS / 64 * 1_000;
        assert!(
            beside > rests_us && idle < rests_us,
            "{protocol:?}: {took_us:?} us, without and beside a client"
        );
    }
}

#[test]
fn a_batch_that_always_meets_blocks_ends() {
    for (protocol, change) in beds() {
        // Three batches: before the second one, blocks that wait for the first get their locks.
        let mut bed = Bed::new(protocol, 3_000);
        // Number of statements that each client has sent.
        let mut clients = [1, 2, 3].map(|conn| (conn, 0));
        bed.say(CHANGER, change);
        let until = bed.world.now.after(5_000_000);
        // The client that got its locks last keeps them until another one has some, or has failed.
        let (mut keeps, mut blocks) = (None, 0);
        while bed.running.contains_key(&CHANGER) {
            assert!(
                bed.world.now < until,
                "{protocol:?}: beside {blocks} blocks"
            );
            for (conn, said) in &mut clients {
                match bed.end(*conn) {
                    Some(Ok(())) if *said == BLOCK.len() => keeps = Some(*conn),
                    Some(Ok(())) if *said > BLOCK.len() => (*said, blocks) = (0, blocks + 1),
                    Some(Err(state)) => {
                        assert_eq!(state, SqlState::SERIALIZATION);
                        (*said, keeps) = (BLOCK.len(), None);
                    }
                    _ => {}
                }
                let keeps = *said == BLOCK.len() && keeps == Some(*conn);
                if bed.running.contains_key(conn) || keeps {
                    continue;
                }
                let text = BLOCK.get(*said).unwrap_or(&"COMMIT");
                let ids = (0..8).map(|i| (i * 10 + *conn).to_string());
                let rows = format!("id IN ({})", ids.collect::<Vec<_>>().join(", "));
                bed.say(*conn, &text.replace("id = 7", &rows));
                *said += 1;
            }
            bed.step(200);
        }
        assert_eq!(bed.end(CHANGER), Some(Ok(())), "{protocol:?}");
        assert!(blocks > 100, "{protocol:?}: {blocks} blocks");
    }
}
