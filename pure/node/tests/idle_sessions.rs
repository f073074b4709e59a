//! A shard whose clients fall silent: their sessions end, and the shard wants no tick after that.

use base::{NodeId, Position, ShardId, Time, Ts};
use catalog::{Placement, ProtocolKind};
use journal::Ownership;
use node::{ClientMessage, ConnId, Effects, Input, Reply, Shard, ShardConfig, ShardRecovered};
use std::sync::Arc;
use store::Store;
use txn::JournalPort;

const SECOND_US: u64 = 1_000_000;

/// A journal in which everything is durable at once.
struct Port(u64);

impl JournalPort for Port {
    fn append(&mut self, _: &[u8]) -> Position {
        self.0 += 1;
        Position(self.0)
    }

    fn durable(&self) -> Position {
        Position(self.0)
    }
}

struct World {
    shard: Shard,
    now: Time,
}

impl World {
    fn new() -> World {
        let config = ShardConfig {
            shard: ShardId(0),
            nodes: vec![(NodeId(1), String::new())],
            shards_per_node: 1,
            incarnation: 1,
            cluster: 1,
            seed: 1,
            stopwatch: || 0,
            barrier: node::barrier::let_through,
        };
        let recovered = ShardRecovered {
            store: Store::new(),
            catalog: Arc::default(),
            clock_floor: Ts(1),
            clock_bound: Ts(1),
            in_doubt: two_phase::InDoubt::default(),
            ownership: Ownership::default(),
        };
        let mut shard = Shard::new(config, Box::new(Port(0)), recovered);
        shard.bootstrap(Placement::new(1, 1), ProtocolKind::TwoPhase);
        let now = Time(1_800_000_000_000_000);
        let mut world = World { shard, now };
        world.step(Input::Durable(Position(1_000)));
        world
    }

    /// States of the errors that clients are told, and the connections that end.
    fn step(&mut self, input: Input) -> Vec<(u32, String)> {
        let mut out = Effects::default();
        self.shard.step(self.now, input, &mut out);
        let told = out
            .replies
            .into_iter()
            .filter_map(|(conn, reply, _)| match reply {
                Reply::Error(_, error) => Some((conn.0, error.state().to_string())),
                Reply::Close => Some((conn.0, "close".to_owned())),
                _ => None,
            });
        told.collect()
    }

    fn say(&mut self, conn: u32, text: &str) -> Vec<(u32, String)> {
        let message = ClientMessage::Query(text.to_owned());
        self.step(Input::Client {
            conn: ConnId(conn),
            message,
        })
    }

    fn connect(&mut self, conn: u32, options: &str) {
        let conn = ConnId(conn);
        self.step(Input::Connect {
            conn,
            secret: 0,
            link: Box::default(),
        });
        let parameters = [
            ("user", "ada"),
            ("database", "postgres"),
            ("options", options),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let message = ClientMessage::Startup {
            parameters: parameters.to_vec(),
        };
        assert_eq!(self.step(Input::Client { conn, message }), []);
    }
}

#[test]
fn silent_sessions_end_and_want_no_tick_after_that() {
    let mut world = World::new();
    world.connect(1, "-c idle_in_transaction_session_timeout=1s");
    world.connect(2, "-c idle_session_timeout=2s");
    world.connect(3, "");
    assert_eq!(world.say(1, "begin"), []);
    let mut ended = Vec::new();
    for _ in 0..100 {
        let Some(at) = world.shard.deadline() else {
            break;
        };
        world.now = world.now.max(at);
        ended.extend(world.step(Input::Tick));
    }
    let expected = [(1, "25P03"), (1, "close"), (2, "57P05"), (2, "close")];
    assert_eq!(ended, expected.map(|(conn, what)| (conn, what.to_owned())));
    assert_eq!(world.shard.deadline(), None, "nobody wants to be woken");
    // The one without a limit lives, and the shard still answers.
    world.now = world.now.after(3_600 * SECOND_US);
    assert_eq!(world.say(3, "nonsense"), [(3, "42601".to_owned())]);
}
