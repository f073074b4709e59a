//! Nodes are killed under LOCK TABLE: under one that has the lock, one that waits for it, and
//! node 1, which has the queue.

use crate::support::{Cluster, READY_LIMIT, number, wait_until};
use links::link::{Link, LinkError};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

/// The others go on so soon behind a kill, a busy machine included. Without that they would wait
/// for the killed node, which is started only then.
const FREE_WITHIN: Duration = Duration::from_secs(30);

const PROTOCOLS: [&str; 3] = ["two_phase", "leap", "formula"];

/// A statement that runs beside the test.
struct Beside(Receiver<(Link, Result<(), LinkError>)>);

impl Beside {
    fn run(mut link: Link, sql: &'static str) -> Beside {
        let (told, answers) = channel();
        std::thread::spawn(move || {
            let result = link.command(sql).map(|_| ());
            let _ = told.send((link, result));
        });
        Beside(answers)
    }

    fn waits_for(&self, time: Duration) {
        std::thread::sleep(time);
        match self.0.try_recv() {
            Err(TryRecvError::Empty) => {}
            Err(error) => panic!("the statement was given up: {error}"),
            Ok((_, result)) => panic!("the statement has ended: {result:?}"),
        }
    }

    fn ends(&self) -> (Link, Result<(), LinkError>) {
        self.0.recv_timeout(FREE_WITHIN).expect("it ends in time")
    }
}

fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::start(name, 3, 1);
    for protocol in PROTOCOLS {
        let begin = [
            "CREATE TABLE t (a int PRIMARY KEY, b int)",
            "INSERT INTO t SELECT i, 0 FROM generate_series(1, 30) AS s(i)",
        ];
        cluster.create_as(protocol, protocol, &begin);
    }
    cluster
}

/// Waits until so many locks of tables in these modes are held or waited for.
fn wait_locks(cluster: &Cluster, at: usize, database: &str, modes: &str, count: i64) {
    let mut link = cluster.link(at, database);
    let locks =
        format!("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND mode IN ({modes})");
    wait_until("the locks are told", READY_LIMIT, || {
        number(&mut link, &locks) == count
    });
}

fn back(cluster: &mut Cluster, victim: usize) {
    cluster.spawn(victim);
    cluster.wait_ready(victim);
    cluster.wait_connected();
}

fn writes(cluster: &Cluster, database: &str) {
    let mut link = cluster.link(1, database);
    wait_until("the table can be locked and written", READY_LIMIT, || {
        let all = ["BEGIN", "LOCK TABLE t", "UPDATE t SET b = b + 1", "COMMIT"];
        let done = all.iter().all(|sql| link.command(sql).is_ok());
        if !done {
            let _ = link.command("ROLLBACK");
        }
        done
    });
    assert_eq!(number(&mut link, "SELECT count(DISTINCT b) FROM t"), 1);
}

#[test]
fn a_killed_holder_lets_others_go_on() {
    let mut cluster = cluster("table-locks-holder");
    for database in PROTOCOLS {
        let mut holder = cluster.link(2, database);
        for sql in [
            "BEGIN",
            "LOCK TABLE t IN EXCLUSIVE MODE",
            "UPDATE t SET b = 5 WHERE a = 1",
        ] {
            holder.command(sql).unwrap();
        }
        let reader = Beside::run(
            cluster.link(0, database),
            "SELECT b FROM t WHERE a = 2 FOR SHARE",
        );
        reader.waits_for(Duration::from_secs(4));
        let modes = "'ExclusiveLock', 'RowShareLock'";
        wait_locks(&cluster, 0, database, modes, 2);
        cluster.kill(2);
        // The row may be on the killed node: then the statement fails, and does not wait.
        let _ = reader.ends();
        back(&mut cluster, 2);
        writes(&cluster, database);
    }
}

#[test]
fn a_killed_waiter_is_forgotten() {
    let mut cluster = cluster("table-locks-waiter");
    for database in PROTOCOLS {
        let mut writer = cluster.link(0, database);
        writer.command("BEGIN").unwrap();
        writer
            .command("LOCK TABLE t IN ROW EXCLUSIVE MODE")
            .unwrap();
        let mut link = cluster.link(2, database);
        link.command("BEGIN").unwrap();
        let waiter = Beside::run(link, "LOCK TABLE t IN SHARE MODE");
        waiter.waits_for(Duration::from_secs(1));
        cluster.kill(2);
        let (_, result) = waiter.ends();
        assert!(result.is_err());
        writer.command("COMMIT").unwrap();
        back(&mut cluster, 2);
        writes(&cluster, database);
    }
}

#[test]
fn locks_outlast_node_1() {
    let mut cluster = cluster("table-locks-home");
    for database in PROTOCOLS {
        let mut holder = cluster.link(1, database);
        holder.command("BEGIN").unwrap();
        holder
            .command("LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE")
            .unwrap();
        let mut link = cluster.link(2, database);
        link.command("BEGIN").unwrap();
        let waiter = Beside::run(link, "LOCK TABLE t IN SHARE MODE");
        wait_locks(&cluster, 1, database, "'ShareLock'", 1);
        waiter.waits_for(Duration::from_secs(1));
        let writer = Beside::run(cluster.link(2, database), "UPDATE t SET b = b WHERE a = 3");
        cluster.kill(0);
        let (_, result) = waiter.ends();
        assert!(result.is_err(), "its request was lost with node 1");
        back(&mut cluster, 0);
        writer.waits_for(Duration::from_secs(1));
        // Node 1 has not taken the lock away: nobody has died who had it.
        holder.command("COMMIT").unwrap();
        let (_, result) = writer.ends();
        assert!(result.is_ok(), "{result:?}");
        writes(&cluster, database);
    }
}
