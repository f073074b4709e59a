//! Nodes killed in the middle of schema changes: the change ends soon, and what it answered holds.

use crate::support::{Cluster, READY_LIMIT, number, patiently, rows, wait_until};
use base::Prng;
use links::link::LinkError;
use std::time::{Duration, Instant};

/// Rows that a change goes through: several batches.
const ROWS: i64 = 6_000;
/// A schema change ends so soon after the kill, a busy machine included (on an idle one: 2 s). One
/// that waited for the killed node would not end.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// A change, what undoes it, and a query that says whether it is in force.
struct Change {
    begin: &'static str,
    undo: &'static str,
    holds: fn(&Cluster) -> bool,
}

fn finds(cluster: &Cluster, what: &str) -> bool {
    let mut link = cluster.link(0, "shop");
    number(&mut link, &format!("SELECT count(*) FROM {what}")) > 0
}

fn is_leap(cluster: &Cluster) -> bool {
    let databases = rows(&mut cluster.link(0, "shop"), "SHOW DATABASES");
    let shop = databases.iter().find(|row| row[0] == "shop").unwrap();
    shop.iter().any(|cell| cell == "leap")
}

const CHANGES: [Change; 5] = [
    Change {
        begin: "CREATE INDEX t_b ON t (b)",
        undo: "DROP INDEX IF EXISTS t_b",
        holds: |cluster| finds(cluster, "pg_class WHERE relname = 't_b'"),
    },
    Change {
        begin: "ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 7, ADD UNIQUE (a, c)",
        undo: "ALTER TABLE t DROP COLUMN IF EXISTS c",
        holds: |cluster| {
            finds(
                cluster,
                "information_schema.columns WHERE column_name = 'c'",
            )
        },
    },
    Change {
        begin: "ALTER TABLE t ALTER b TYPE text USING 'b' || b",
        undo: "DROP TABLE IF EXISTS t",
        holds: |cluster| {
            let column = "column_name = 'b' AND data_type = 'text'";
            let is_text = finds(
                cluster,
                &format!("information_schema.columns WHERE {column}"),
            );
            let is_old = finds(cluster, "t WHERE a > 0 AND b::text NOT LIKE 'b_'");
            assert_ne!(
                is_text, is_old,
                "the column of one type has values of the other"
            );
            is_text
        },
    },
    Change {
        begin: "ALTER TABLE t ADD CONSTRAINT t_key PRIMARY KEY (a)",
        undo: "DROP TABLE IF EXISTS t",
        holds: |cluster| finds(cluster, "pg_constraint WHERE conname = 't_key'"),
    },
    Change {
        begin: "ALTER DATABASE shop SET (protocol = 'leap')",
        undo: "ALTER DATABASE shop SET (protocol = 'two_phase')",
        holds: is_leap,
    },
];

fn make_table(cluster: &Cluster) {
    let mut link = cluster.link(0, "shop");
    patiently(&mut link, "DROP TABLE IF EXISTS t");
    patiently(&mut link, "CREATE TABLE t (a int NOT NULL, b int NOT NULL)");
    let fill = format!("INSERT INTO t SELECT i, i % 7 FROM generate_series(1, {ROWS}) AS s(i)");
    patiently(&mut link, &fill);
}

/// Begins a change through a node that lives, and kills another one after a while. `false`: the
/// machine stood still for so long that node 1, which lives, was taken for lost.
fn kill_inside(cluster: &mut Cluster, change: &Change, victim: usize, pause: Duration) -> bool {
    let what = format!("{}, node {} after {pause:?}", change.begin, victim + 1);
    let mut link = cluster.link((victim + 1) % 3, "shop");
    let begin = change.begin;
    let asked = std::thread::spawn(move || (link.command(begin), Instant::now()));
    std::thread::sleep(pause);
    cluster.kill(victim);
    let killed = Instant::now();
    let (answer, ended) = asked.join().unwrap();
    let took = ended.saturating_duration_since(killed);
    assert!(took < ENDS_WITHIN, "{what}: {took:?}");
    // The database is open for those who do not need the dead node, be it the one that orders
    // schema changes.
    let mut link = cluster.link((victim + 2) % 3, "shop");
    link.command("SET statement_timeout = '4s'").unwrap();
    let mut inserts = (0..24).map(|i| {
        let insert = format!("INSERT INTO t VALUES ({}, {i})", -i - 1);
        link.command(&insert).is_ok()
    });
    assert!(inserts.any(|done| done), "{what}: the database is closed");
    let took = killed.elapsed();
    assert!(took < 2 * ENDS_WITHIN, "{what}: open after {took:?}");
    cluster.spawn(victim);
    cluster.wait_ready(victim);
    cluster.wait_connected();
    let mut is_judged = true;
    match answer {
        Ok(()) => assert!((change.holds)(cluster), "{what}: done, and it is not"),
        // Node 1 orders the changes: what it has not closed anything for, only it can say.
        Err(LinkError::Server(error)) if error.sqlstate == "08007" => is_judged = victim == 0,
        Err(LinkError::Server(error)) => {
            assert!(
                matches!(&*error.sqlstate, "55000" | "40001"),
                "{what}: {error}"
            );
            assert!(!(change.holds)(cluster), "{what}: {error}, and it is done");
        }
        Err(error) => panic!("{what}: {error}"),
    }
    let mut link = cluster.link(victim, "shop");
    wait_until("rows answer", READY_LIMIT, || {
        link.command("SELECT count(*) FROM t WHERE a > 0").is_ok()
    });
    let kept = number(&mut link, "SELECT count(*) FROM t WHERE a > 0");
    assert_eq!(kept, ROWS, "{what}");
    // Changes go on: nothing is left half done.
    let undo = change.undo;
    wait_until("it is undone", READY_LIMIT, || {
        cluster.link(0, "shop").command(undo).is_ok()
    });
    is_judged
}

#[test]
fn nodes_killed_inside_schema_changes_leave_one_answer() {
    let mut cluster = Cluster::start("schema-kill", 3, 1);
    cluster.create("shop", &[]);
    let mut prng = Prng::new(11);
    for change in &CHANGES {
        for victim in [2, 1, 0] {
            let judged = (0..5).any(|_| {
                make_table(&cluster);
                let pause = Duration::from_millis(prng.below(120));
                kill_inside(&mut cluster, change, victim, pause)
            });
            let begin = change.begin;
            assert!(
                judged,
                "{begin}: node 1 was lost whenever another one was killed"
            );
        }
    }
}
