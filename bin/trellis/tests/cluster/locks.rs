//! pg_locks tells who waits for a row and who holds it, on any node, also while a node is away.

use crate::support::{ANSWER_LIMIT, Cluster, READY_LIMIT, pid_of, rows, wait_until};
use links::link::Link;
use std::thread::JoinHandle;
use std::time::Instant;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL)";

/// Sessions that wait, each with the one that holds its row: the query of PostgreSQL's users.
const BLOCKED: &str = "SELECT blocked.pid, blocking.pid, blocked.mode, blocking.mode, \
    blocked.relation::regclass, blocked.waitstart <= now() + interval '1 minute', \
    a.application_name FROM pg_locks blocked JOIN pg_locks blocking \
    ON blocking.granted AND blocking.locktype = blocked.locktype \
    AND blocking.database IS NOT DISTINCT FROM blocked.database \
    AND blocking.relation IS NOT DISTINCT FROM blocked.relation \
    AND blocking.page = blocked.page AND blocking.tuple IS NOT DISTINCT FROM blocked.tuple \
    AND blocking.transactionid IS NOT DISTINCT FROM blocked.transactionid \
    AND blocking.pid <> blocked.pid \
    JOIN pg_stat_activity a ON a.pid = blocked.pid WHERE NOT blocked.granted";

/// A session of a node that waits for row 7, and its backend number.
fn waits(cluster: &Cluster, at: usize, database: &str) -> (String, JoinHandle<bool>) {
    let mut link = cluster.link(at, database);
    let pid = pid_of(&mut link);
    link.command("SET application_name = 'waits'").unwrap();
    let lock = "SELECT v FROM t WHERE id = 7 FOR UPDATE";
    let waiter = std::thread::spawn(move || link.command(lock).is_ok());
    (pid, waiter)
}

#[test]
fn who_waits_and_who_holds_is_told_on_every_node() {
    let mut cluster = Cluster::start("locks", 3, 1);
    for protocol in ["two_phase", "leap", "formula"] {
        cluster.create_as(protocol, protocol, &[TABLE]);
        let mut holds = cluster.link(0, protocol);
        holds
            .command("INSERT INTO t VALUES (6, ''), (7, '')")
            .unwrap();
        let holder = pid_of(&mut holds);
        let mut asks: Vec<Link> = (0..3).map(|at| cluster.link(at, protocol)).collect();
        assert!(rows(&mut asks[1], "SELECT * FROM pg_locks").is_empty());
        holds.command("BEGIN").unwrap();
        for id in [6, 7] {
            let change = format!("UPDATE t SET v = 'held' WHERE id = {id}");
            holds.command(&change).unwrap();
        }
        let (waiter, thread) = waits(&cluster, 0, protocol);
        // Such a change is a formula, where that is not yet a write of the row.
        let held = match protocol {
            "formula" => "RowExclusiveLock",
            _ => "AccessExclusiveLock",
        };
        for link in &mut asks {
            let expected = [
                waiter.as_str(),
                &holder,
                "AccessExclusiveLock",
                held,
                "t",
                "t",
                "waits",
            ];
            let mut told = Vec::new();
            wait_until("the pair is told", READY_LIMIT, || {
                told = rows(link, BLOCKED);
                !told.is_empty()
            });
            assert_eq!(told, [expected], "{protocol}");
            // Row 6 is held, and nothing waits for it.
            let counted = "SELECT count(*), count(waitstart), count(DISTINCT page) \
                FROM pg_locks WHERE locktype = 'tuple'";
            assert_eq!(rows(link, counted), [["2", "1", "1"]], "{protocol}");
        }
        holds.command("COMMIT").unwrap();
        assert!(thread.join().unwrap(), "{protocol}: it has waited");
        assert!(rows(&mut asks[2], "SELECT * FROM pg_locks").is_empty());
    }
    dead_node_is_left_out(&mut cluster);
}

/// Asks again and again while a node dies: each answer comes in time.
fn dead_node_is_left_out(cluster: &mut Cluster) {
    for protocol in ["two_phase", "leap", "formula"] {
        let mut link = cluster.link(0, protocol);
        let asking = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut answers = 0;
            // Four seconds, and longer where few answers come.
            while begun.elapsed().as_secs() < 4 || answers <= 10 && begun.elapsed() < READY_LIMIT {
                let asked = Instant::now();
                let answer = link.command("SELECT * FROM pg_locks");
                assert!(asked.elapsed() < ANSWER_LIMIT, "{answer:?}");
                answers += usize::from(answer.is_ok());
            }
            answers
        });
        std::thread::sleep(std::time::Duration::from_millis(300));
        cluster.kill(2);
        assert!(asking.join().unwrap() > 10, "{protocol}");
        cluster.start_all();
        cluster.wait_connected();
    }
}
