//! Node 1 dies, or stands still, at each moment of a schema change that closes a table or database.
//! The other nodes open it again within two seconds, and node 1 agrees when it is back. The client
//! is never told the contrary of what has happened.

mod several_nodes;

use base::{NodeId, ShardId, Type};
use catalog::{Catalog, ProtocolKind};
use several_nodes::{Told, World};
use std::collections::BTreeMap;

/// Microseconds after which the live nodes must have opened what was closed: the first of them acts
/// after 0.3 s, the next one, if the first cannot, after 0.7 s.
const OPEN_US: u64 = 2_000_000;
const ONE: NodeId = NodeId(1);
/// A row of the table that is changed.
const ROW: &str = "INSERT INTO t VALUES (1, 2)";

#[derive(Clone, Copy, PartialEq, Debug)]
enum Change {
    ToLeap,
    ToTwoPhase,
    PrimaryKey,
    DropKey,
    Retype,
    /// Of a key that another table refers to.
    RetypeReferred,
}

impl Change {
    fn sql(self) -> &'static str {
        match self {
            Change::ToLeap => "ALTER DATABASE postgres SET (protocol = 'leap')",
            Change::ToTwoPhase => "ALTER DATABASE postgres SET (protocol = 'two_phase')",
            Change::PrimaryKey => "ALTER TABLE t ADD PRIMARY KEY (a)",
            Change::DropKey => "ALTER TABLE t DROP CONSTRAINT t_pkey",
            Change::Retype => "ALTER TABLE t ALTER a TYPE text",
            Change::RetypeReferred => "ALTER TABLE t ALTER a TYPE bigint USING a + 0",
        }
    }

    /// What makes the tables before the change.
    fn tables(self) -> &'static [&'static str] {
        match self {
            Change::DropKey | Change::Retype => &["CREATE TABLE t (a int PRIMARY KEY, b int)", ROW],
            Change::RetypeReferred => &[
                "CREATE TABLE t (a int PRIMARY KEY, b int)",
                "CREATE TABLE k (a int PRIMARY KEY, p int REFERENCES t)",
                ROW,
                "INSERT INTO k VALUES (1, 1)",
            ],
            Change::ToLeap | Change::ToTwoPhase | Change::PrimaryKey => {
                &["CREATE TABLE t (a int, b int)", ROW]
            }
        }
    }

    /// Whether it can be made again.
    fn repeats(self) -> bool {
        !matches!(self, Change::PrimaryKey | Change::DropKey)
    }

    fn before(self) -> ProtocolKind {
        match self {
            Change::ToTwoPhase => ProtocolKind::Leap,
            Change::ToLeap
            | Change::PrimaryKey
            | Change::DropKey
            | Change::Retype
            | Change::RetypeReferred => ProtocolKind::TwoPhase,
        }
    }

    fn is_done(self, catalog: &Catalog) -> bool {
        let database = &catalog.databases["postgres"];
        match self {
            Change::ToLeap => database.protocol == ProtocolKind::Leap,
            Change::ToTwoPhase => database.protocol == ProtocolKind::TwoPhase,
            Change::PrimaryKey => database.tables["t"].primary_constraint.is_some(),
            Change::DropKey => database.tables["t"].primary_constraint.is_none(),
            Change::Retype => database.tables["t"].columns[0].ty == Type::Text,
            Change::RetypeReferred => database.tables["t"].columns[0].ty == Type::Int8,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Kill,
    Pause,
    /// Node 1 is dead for a moment only.
    Restart,
}

/// Sums over all runs of a kind.
#[derive(Default, Debug)]
struct Seen {
    /// By what kept something closed when node 1 went: number of runs.
    closed: BTreeMap<String, u32>,
    done: u32,
    undone: u32,
    unknown: u32,
}

/// Runs the change with node 1 gone after `steps` steps. Returns false if it ended before.
fn one(
    change: Change,
    fault: Fault,
    count: u16,
    asker: ShardId,
    after: u32,
    seen: &mut Seen,
) -> bool {
    let mut world = World::new(u64::from(after), count, change.before());
    let other = ShardId::new(NodeId(3), 1);
    [asker, other]
        .into_iter()
        .for_each(|shard| world.connect_client(shard));
    for sql in change.tables() {
        assert_eq!(world.run(asker, sql), Told::Done);
    }
    world
        .hosts
        .get_mut(&asker)
        .expect("a shard")
        .replies
        .clear();
    world.ask(asker, change.sql());
    for _ in 0..after {
        world.step();
    }
    if world.told(asker).is_some() {
        return false;
    }
    let live = world.catalog(ShardId::new(NodeId(2), 0));
    if live.is_closed() {
        let database = &live.databases["postgres"];
        let key = format!("{:?} {:?}", database.protocol, database.switching);
        *seen.closed.entry(key).or_default() += 1;
    }
    match fault {
        Fault::Kill | Fault::Restart => world.kill(ONE),
        Fault::Pause => world.pause(ONE),
    }
    if fault == Fault::Restart {
        let pause = world.prng.below(600_000);
        world.go_on(pause);
        world.restart(ONE);
    }
    world.go_on(OPEN_US);
    let opened = world.open_catalog();
    let told = world.told(asker);
    if fault != Fault::Restart {
        // Clients are let in again.
        let mine = "SELECT count(*) FROM pg_class WHERE false";
        assert_eq!(world.run(other, mine), Told::Done);
    }
    match fault {
        Fault::Kill => world.restart(ONE),
        Fault::Pause => world.resume(ONE),
        Fault::Restart => {}
    }
    world.go_on(OPEN_US);
    let last = world.open_catalog();
    assert!(!last.is_closed() && last.reserved.is_empty());
    let told = told.or_else(|| world.told(asker));
    let told = told.expect("the client is answered");
    let is_done = change.is_done(&last);
    match told {
        Told::Done => {
            assert!(is_done, "the client was told that the change is done");
            seen.done += 1;
        }
        Told::Failed(state) if state == "55000" => {
            assert!(!is_done, "the client was told that the change is undone");
            seen.undone += 1;
        }
        Told::Failed(state) => {
            assert_eq!(state, "08007");
            seen.unknown += 1;
        }
    }
    assert_eq!(change.is_done(&opened), is_done, "what was opened stays so");
    // Schema changes go on.
    let told = world.run(other, "CREATE TABLE u (a int)");
    assert_eq!(told, Told::Done);
    let told = world.run(other, change.sql());
    let is_new = !is_done || change.repeats();
    assert_eq!(told == Told::Done, is_new, "{told:?}");
    world.go_on(1_000_000);
    assert!(change.is_done(&world.open_catalog()));
    for host in world.hosts.values() {
        host.machine.validate();
        assert!(host.machine.is_idle(), "{} is not idle", host.machine.id());
    }
    true
}

fn all(change: Change, fault: Fault, count: u16, asker: ShardId) -> Seen {
    let mut seen = Seen::default();
    // Each run has another order of events: some end sooner.
    let mut ended = 0;
    let stride = if fault == Fault::Kill { 2 } else { 4 };
    for after in (0..).step_by(stride) {
        ended += u32::from(!one(change, fault, count, asker, after, &mut seen));
        if ended > 5 {
            break;
        }
    }
    seen
}

fn asker() -> ShardId {
    ShardId::new(NodeId(2), 1)
}

#[test]
fn the_others_open_a_database_that_was_on_its_way_to_leap() {
    let seen = all(Change::ToLeap, Fault::Kill, 3, asker());
    assert_eq!(seen.closed.len(), 3, "{seen:?}");
    assert!(seen.undone > 10 && seen.done > 0, "{seen:?}");
}

#[test]
fn the_others_open_a_database_that_was_on_its_way_to_two_phase() {
    let seen = all(Change::ToTwoPhase, Fault::Kill, 3, asker());
    assert_eq!(seen.closed.len(), 3, "{seen:?}");
    assert!(seen.undone > 10 && seen.done > 0, "{seen:?}");
}

#[test]
fn the_others_thaw_a_table_that_was_getting_a_primary_key() {
    let seen = all(Change::PrimaryKey, Fault::Kill, 3, asker());
    assert!(seen.undone > 10 && seen.done > 0, "{seen:?}");
}

#[test]
fn the_others_thaw_a_table_whose_primary_key_was_changing() {
    for change in [Change::DropKey, Change::Retype, Change::RetypeReferred] {
        let seen = all(change, Fault::Kill, 3, asker());
        assert!(seen.undone > 10 && seen.done > 0, "{change:?}: {seen:?}");
    }
}

/// The change of a key was planned while there was a table that refers to it.
#[test]
fn a_table_that_goes_while_a_change_of_its_parent_waits() {
    let clients = [1, 2, 3].map(|node| ShardId::new(NodeId(node), 1));
    let change = Change::RetypeReferred;
    for late in ["DROP TABLE k", "ALTER TABLE k RENAME TO l"] {
        for seed in 0..20 {
            let mut world = World::new(seed, 3, change.before());
            clients
                .iter()
                .for_each(|shard| world.connect_client(*shard));
            for sql in change.tables() {
                assert_eq!(world.run(clients[0], sql), Told::Done);
            }
            world.go_on(1_000_000);
            for host in world.hosts.values_mut() {
                host.replies.clear();
            }
            world.ask(clients[0], "CREATE INDEX ON t (b)");
            world.ask(clients[1], late);
            world.ask(clients[2], change.sql());
            world.go_on(3_000_000);
            let told = clients.map(|shard| world.told(shard).expect("each is answered"));
            assert_eq!(told[..2], [Told::Done, Told::Done]);
            let is_done = change.is_done(&world.open_catalog());
            assert_eq!(told[2] == Told::Done, is_done, "{:?}", told[2]);
            let insert = "INSERT INTO t VALUES (5, 6)";
            assert_eq!(world.run(clients[1], insert), Told::Done);
        }
    }
}

/// Two of three nodes are lost, and node 1 cannot know what they would have decided. Node 1 says
/// so, and goes on when one of them is back.
#[test]
fn without_a_majority_nobody_waits_for_ever() {
    let mut closed = 0;
    for after in (0..80).step_by(5) {
        let mut world = World::new(after, 3, ProtocolKind::TwoPhase);
        world.connect_client(ShardId(0));
        world.ask(ShardId(0), Change::ToLeap.sql());
        (0..after).for_each(|_| world.step());
        let is_closed = world.catalog(ShardId(0)).is_closed();
        if world.told(ShardId(0)).is_some() || !is_closed {
            continue;
        }
        [2, 3].into_iter().for_each(|node| world.kill(NodeId(node)));
        world.go_on(2 * OPEN_US);
        closed += u32::from(world.catalog(ShardId(0)).is_closed());
        let told = world.told(ShardId(0)).expect("the client is answered");
        assert!(matches!(told, Told::Failed(_)), "{told:?}");
        world.restart(NodeId(3));
        world.go_on(OPEN_US);
        let opened = world.open_catalog();
        if told == Told::Failed("55000".into()) {
            assert!(
                !Change::ToLeap.is_done(&opened),
                "the client was told that the change is undone"
            );
        }
        world.restart(NodeId(2));
        world.go_on(OPEN_US);
        assert!(world.hosts.values().all(|host| host.machine.is_idle()));
    }
    assert!(closed > 3, "{closed} runs stayed closed");
}

#[test]
fn node_1_awakes_and_agrees() {
    for change in [Change::ToLeap, Change::ToTwoPhase, Change::PrimaryKey] {
        let asker = if change == Change::ToLeap {
            ShardId(0)
        } else {
            asker()
        };
        let seen = all(change, Fault::Pause, 3, asker);
        assert!(seen.undone > 3, "{change:?}: {seen:?}");
    }
}

#[test]
fn node_1_comes_back_while_the_others_open_it() {
    for (change, count) in [
        (Change::ToLeap, 4),
        (Change::ToTwoPhase, 5),
        (Change::PrimaryKey, 3),
    ] {
        let seen = all(change, Fault::Restart, count, asker());
        assert!(seen.undone > 3, "{change:?}: {seen:?}");
    }
}

/// Node 1 cannot end its own change without a majority. Changes that queue behind it are told so.
#[test]
fn a_change_behind_one_that_nobody_can_end_is_refused() {
    let (first, second) = (ShardId::new(ONE, 0), ShardId::new(ONE, 1));
    for asked_before in [true, false] {
        let mut world = World::new(7, 3, ProtocolKind::TwoPhase);
        world.connect_client(first);
        world.connect_client(second);
        world.ask(first, Change::ToLeap.sql());
        while !world.catalog(first).is_closed() {
            world.step();
        }
        if asked_before {
            world.ask(second, "CREATE TABLE x (a int)");
        }
        let others = [NodeId(2), NodeId(3)];
        others.iter().for_each(|id| world.pause(*id));
        if !asked_before {
            world.go_on(OPEN_US);
            world.ask(second, "CREATE TABLE x (a int)");
        }
        world.go_on(OPEN_US);
        let refused = Told::Failed("55000".to_owned());
        assert_eq!(world.told(second), Some(refused), "{asked_before}");
        others.iter().for_each(|id| world.resume(*id));
        world.go_on(OPEN_US);
        assert!(
            !world.open_catalog().databases["postgres"]
                .tables
                .contains_key("x")
        );
    }
}
