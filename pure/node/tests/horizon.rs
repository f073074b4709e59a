//! Versions that are kept for readers (rules R13 and R22): only those of the reader's database, and
//! only while the reader's node is connected, or was connected a short time ago.

mod several_nodes;

use base::{Datum, NodeId, ShardId};
use catalog::ProtocolKind;
use session::away::GONE_US;
use several_nodes::{Told, World};

const BOTH: [ProtocolKind; 2] = [ProtocolKind::TwoPhase, ProtocolKind::Leap];
/// Number of changes of one row while a reader is open.
const CHANGES: usize = 100;
/// Number of rows of each table.
const ROWS: usize = 8;

fn shard(node: u16, index: u16) -> ShardId {
    ShardId::new(NodeId(node), index)
}

/// Number of versions that all shards of a node keep.
fn versions(world: &World, node: u16) -> usize {
    let hosts = world.hosts.iter();
    let hosts = hosts.filter(|(shard, _)| shard.node() == NodeId(node));
    hosts.map(|(_, host)| host.machine.versions()).sum()
}

fn must(world: &mut World, at: ShardId, sql: &str) {
    assert_eq!(world.run(at, sql), Told::Done, "{sql}");
}

fn make_table(world: &mut World, at: ShardId) {
    must(world, at, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    let rows = format!("INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) g");
    must(world, at, &rows);
}

/// Changes each row of the list many times, and one row once more: by then the clocks have passed
/// the other changes.
fn change(world: &mut World, at: ShardId, rows: &[usize]) {
    for n in 0..CHANGES {
        for row in rows {
            let sql = format!("UPDATE t SET v = {} WHERE id = {row}", n + 1);
            must(world, at, &sql);
        }
    }
    world.go_on(500_000);
    let sql = format!("UPDATE t SET v = {CHANGES} WHERE id = {}", rows[0]);
    must(world, at, &sql);
    world.go_on(500_000);
}

fn begin_reader(world: &mut World, at: ShardId) {
    must(world, at, "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY");
    assert_eq!(
        world.value(at, "SELECT v FROM t WHERE id = 1"),
        Ok(Datum::Int(0))
    );
}

#[test]
fn a_long_reader_keeps_no_versions_of_other_databases() {
    for protocol in BOTH {
        let mut world = World::new(7, 1, protocol);
        let (mine, theirs) = (shard(1, 0), shard(1, 1));
        world.connect_client(mine);
        must(&mut world, mine, "CREATE DATABASE other");
        world.go_on(500_000);
        world.connect_client_to(theirs, "other");
        make_table(&mut world, mine);
        make_table(&mut world, theirs);
        let all: Vec<usize> = (1..=ROWS).collect();
        begin_reader(&mut world, mine);
        change(&mut world, theirs, &all);
        // As many versions again may wait for their removal.
        let kept = versions(&world, 1);
        assert!(kept <= 4 * ROWS, "{protocol:?}: {kept} versions");
        for row in all {
            let sql = format!("SELECT v FROM t WHERE id = {row}");
            assert_eq!(world.value(mine, &sql), Ok(Datum::Int(0)), "{protocol:?}");
        }
    }
}

#[test]
fn a_reader_keeps_the_versions_of_its_database() {
    for protocol in BOTH {
        let mut world = World::new(7, 1, protocol);
        let (reader, writer) = (shard(1, 0), shard(1, 1));
        world.connect_client(reader);
        world.connect_client(writer);
        make_table(&mut world, writer);
        begin_reader(&mut world, reader);
        change(&mut world, writer, &[1]);
        assert!(versions(&world, 1) >= CHANGES, "{protocol:?}");
        let read = world.value(reader, "SELECT v FROM t WHERE id = 1");
        assert_eq!(read, Ok(Datum::Int(0)), "{protocol:?}");
        must(&mut world, reader, "COMMIT");
        change(&mut world, writer, &[2]);
        let kept = versions(&world, 1);
        assert!(kept <= 4 * ROWS, "{protocol:?}: {kept} versions");
    }
}

/// Rows that are at home elsewhere than at node 3.
fn rows_elsewhere(world: &mut World, at: ShardId) -> Vec<usize> {
    let rows = 1..=ROWS;
    let rows = rows.filter(|row| {
        let sql = format!("SELECT trellis_node_of('t', '{row}')");
        world.value(at, &sql) != Ok(Datum::Int(3))
    });
    let rows: Vec<usize> = rows.collect();
    assert!(!rows.is_empty(), "nodes 1 and 2 have rows");
    rows
}

/// A node stands still with a reader open. The other nodes keep versions for the reader, but only
/// for a while. The reader knows nothing of that, and still reads no wrong version.
#[test]
fn a_gone_node_keeps_no_versions_and_its_reader_is_refused() {
    for protocol in BOTH {
        let mut world = World::new(11, 3, protocol);
        let (writer, reader) = (shard(1, 0), shard(3, 0));
        world.connect_client(writer);
        world.connect_client(reader);
        make_table(&mut world, writer);
        must(
            &mut world,
            reader,
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
        );
        let sum = world.value(reader, "SELECT sum(v)::int FROM t");
        assert_eq!(sum, Ok(Datum::Int(0)), "{protocol:?}");
        world.pause(NodeId(3));
        let rows = rows_elsewhere(&mut world, writer);
        change(&mut world, writer, &rows);
        let kept = versions(&world, 1) + versions(&world, 2);
        let all = rows.len() * CHANGES;
        assert!(kept >= all, "{protocol:?}: {kept} versions of {all}");
        world.go_on(GONE_US);
        // Much more is written than is kept, and nothing at all need be written.
        for _ in 0..2 {
            let kept = versions(&world, 1) + versions(&world, 2);
            assert!(kept <= 4 * ROWS, "{protocol:?}: {kept} versions");
            change(&mut world, writer, &rows);
        }
        world.resume(NodeId(3));
        world.go_on(1_000_000);
        let sql = format!("SELECT v FROM t WHERE id = {}", rows[0]);
        let read = world.value(reader, &sql);
        let Err(error) = &read else {
            panic!("{protocol:?}: {read:?}");
        };
        assert!(
            error.starts_with("40001") && error.contains("R13"),
            "{error}"
        );
        must(&mut world, reader, "ROLLBACK");
        let read = world.value(reader, &sql);
        assert_eq!(read, Ok(Datum::Int(CHANGES as i64)), "{protocol:?}");
        // The node is waited for again.
        must(
            &mut world,
            reader,
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
        );
        assert_eq!(world.value(reader, &sql), Ok(Datum::Int(CHANGES as i64)));
        must(
            &mut world,
            writer,
            &format!("UPDATE t SET v = 0 WHERE id = {}", rows[0]),
        );
        change(&mut world, writer, &rows);
        assert_eq!(world.value(reader, &sql), Ok(Datum::Int(CHANGES as i64)));
    }
}

/// A node that dies holds no versions back either. After its restart it takes part again.
#[test]
fn a_dead_node_keeps_no_versions() {
    for protocol in BOTH {
        let mut world = World::new(13, 3, protocol);
        let writer = shard(1, 0);
        world.connect_client(writer);
        make_table(&mut world, writer);
        world.kill(NodeId(3));
        let rows = rows_elsewhere(&mut world, writer);
        world.go_on(GONE_US);
        change(&mut world, writer, &rows);
        let kept = versions(&world, 1) + versions(&world, 2);
        assert!(kept <= 4 * ROWS, "{protocol:?}: {kept} versions");
        world.restart(NodeId(3));
        world.go_on(1_000_000);
        let reader = shard(3, 0);
        world.connect_client(reader);
        must(
            &mut world,
            reader,
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
        );
        let sql = format!("SELECT v FROM t WHERE id = {}", rows[0]);
        assert_eq!(world.value(reader, &sql), Ok(Datum::Int(CHANGES as i64)));
        change(&mut world, writer, &rows);
        assert_eq!(world.value(reader, &sql), Ok(Datum::Int(CHANGES as i64)));
    }
}
