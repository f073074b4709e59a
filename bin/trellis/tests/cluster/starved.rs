//! Nodes that live and get no CPU for a moment: clients of the others see no error.

use crate::support::{Cluster, signal};
use links::link::{Link, LinkError};
use peer::again;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROWS: usize = 40;
/// Threads that take CPU from the nodes.
const BUSY: usize = 16;
/// Longer than it takes to notice a silent node (0.8 s), shorter than statements are tried again.
const STOPPED: Duration = Duration::from_millis(900);
/// Statements that may be given up: each was tried for half a second, and a machine with more to do
/// than this test may keep a node away for some of these. Without patience it would be thousands.
const GIVEN_UP_MAX: u64 = 16;

fn cluster(name: &str, protocol: &str) -> Cluster {
    let cluster = Cluster::start(name, 3, 2);
    let table = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)";
    cluster.create_as(protocol, "shop", &[table]);
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0)")).collect();
    let insert = format!("INSERT INTO t VALUES {}", rows.join(", "));
    cluster.link(0, "shop").command(&insert).unwrap();
    cluster
}

/// Statements by how they ended.
#[derive(Debug, Default)]
struct Seen {
    known: u64,
    /// The answer to a commit was lost with the connection.
    unknown: u64,
    /// 40001 after some time.
    given_up: u64,
}

/// Reads and changes one row after the other until told to stop. Another end of a statement than
/// those of [`Seen`] is a failure.
fn use_rows(mut link: Link, first: usize, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    for turn in first.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = turn % ROWS;
        let sql = match turn % 3 {
            0 => format!("UPDATE t SET v = v + 1 WHERE id = {id}"),
            _ => format!("SELECT v FROM t WHERE id = {id}"),
        };
        match link.command(&sql) {
            Ok(()) => seen.known += 1,
            Err(LinkError::Server(error)) if error.sqlstate == "08007" => seen.unknown += 1,
            Err(LinkError::Server(error)) if error.sqlstate == "40001" => seen.given_up += 1,
            Err(error) => panic!("{sql}: {error}"),
        }
    }
    seen
}

/// Runs clients at the first two nodes while `work` goes on.
fn beside(cluster: &Cluster, work: impl FnOnce()) -> Seen {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let clients: Vec<_> = (0..4)
            .map(|at| {
                let link = cluster.link(at % 2, "shop");
                scope.spawn(move || use_rows(link, at * 7, stop))
            })
            .collect();
        work();
        stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for seen in clients.into_iter().map(|client| client.join().unwrap()) {
            all.known += seen.known;
            all.unknown += seen.unknown;
            all.given_up += seen.given_up;
        }
        all
    })
}

fn burn(lasting: Duration) {
    let until = Instant::now() + lasting;
    std::thread::scope(|scope| {
        for _ in 0..BUSY {
            scope.spawn(|| {
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            });
        }
    });
}

#[test]
fn a_busy_machine_makes_no_node_silent() {
    let cluster = cluster("busy", "two_phase");
    let attempt = || {
        let before = [0, 1, 2].map(|at| cluster.said(at).len());
        let seen = beside(&cluster, || burn(Duration::from_secs(3)));
        let said = [0, 1, 2].map(|at| cluster.said(at).split_off(before[at]));
        (seen, said.concat())
    };
    // Nothing is said of a machine that is taken away as a whole.
    let is_calm = |(seen, said): &(Seen, String)| {
        let is_known = seen.unknown == 0 && seen.given_up == 0;
        seen.known > 0 && is_known && !said.contains("node is silent")
    };
    let told = again(attempt, is_calm);
    assert!(is_calm(&told), "{told:?}");
}

#[test]
fn statements_wait_for_a_node_that_stands_still_for_a_moment() {
    for protocol in ["two_phase", "leap"] {
        let cluster = cluster("still", protocol);
        let attempt = || {
            beside(&cluster, || {
                signal(cluster.pid(2), "STOP");
                std::thread::sleep(STOPPED);
                signal(cluster.pid(2), "CONT");
                // Whatever waits has its answer by then.
                std::thread::sleep(Duration::from_millis(1_500));
            })
        };
        // What had been sent when the node stopped: one statement per client. A moment that the
        // machine makes longer is another one.
        let is_waited_for =
            |seen: &Seen| seen.known > 50 && seen.unknown <= 4 && seen.given_up <= GIVEN_UP_MAX;
        let seen = again(attempt, is_waited_for);
        assert!(is_waited_for(&seen), "{protocol}: {seen:?}");
    }
}
