//! Transactions whose coordinator is killed between the votes and its decision.

use crate::support::{Cluster, READY_LIMIT, try_rows, wait_until};
use links::link::Link;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROWS: usize = 60;
const CLIENTS: usize = 12;
/// Kills until one meets a transaction in that moment; with so many clients nearly each one does.
const TRIES: usize = 10;

/// Commits on rows of all nodes until told to stop, or until its node is gone.
fn write_everywhere(mut link: Link, first: usize, stop: &AtomicBool) {
    for turn in first.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        // In the order of the keys: no deadlocks.
        let mut ids: Vec<usize> = (0..6).map(|part| (turn * 7 + part * 11) % ROWS).collect();
        ids.sort_unstable();
        let updates = ids
            .iter()
            .map(|id| format!("UPDATE t SET v = v + 1 WHERE id = {id}; "));
        let text = format!("BEGIN; {}COMMIT", updates.collect::<String>());
        // After a conflict it goes on.
        if link.command(&text).is_err() && link.command("ROLLBACK").is_err() {
            return;
        }
    }
}

/// What nodes 2 and 3 say, once one of them knows of a transaction; `None` after two seconds.
fn doubts(cluster: &Cluster) -> Option<Vec<Vec<String>>> {
    let until = Instant::now() + Duration::from_secs(2);
    let mut links = [1, 2].map(|at| cluster.link(at, "shop"));
    while Instant::now() < until {
        let all: Vec<_> = links
            .iter_mut()
            .filter_map(|link| try_rows(link, "SHOW IN DOUBT").ok())
            .flatten()
            .collect();
        if !all.is_empty() {
            return Some(all);
        }
    }
    None
}

/// Runs clients of node 1, which coordinates for them, kills it, and asks the others.
fn killed_once(cluster: &mut Cluster) -> Option<Vec<Vec<String>>> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        for client in 0..CLIENTS {
            let link = cluster.link(0, "shop");
            scope.spawn(move || write_everywhere(link, client * 5, stop));
        }
        std::thread::sleep(Duration::from_millis(300));
        cluster.kill(0);
        let found = doubts(cluster);
        stop.store(true, Ordering::Relaxed);
        found
    })
}

#[test]
fn transactions_in_doubt_are_shown_until_their_coordinator_is_back() {
    let mut cluster = Cluster::start("indoubt", 3, 1);
    let table = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)";
    cluster.create("shop", &[table]);
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0)")).collect();
    let insert = format!("INSERT INTO t VALUES {}", rows.join(", "));
    cluster.link(0, "shop").command(&insert).unwrap();
    let mut found = None;
    for _ in 0..TRIES {
        cluster.wait_connected();
        found = killed_once(&mut cluster);
        cluster.spawn(0);
        cluster.wait_ready(0);
        if found.is_some() {
            break;
        }
    }
    let found = found.expect("a transaction was in doubt at one of the kills");
    for row in &found {
        let [shard, txn, state, coordinator, age_ms, rows, waiters] = row.as_slice() else {
            panic!("{row:?}");
        };
        assert!(["n2.0", "n3.0"].contains(&shard.as_str()), "{row:?}");
        assert!(!txn.is_empty(), "{row:?}");
        assert!(["promised", "voted"].contains(&state.as_str()), "{row:?}");
        assert_eq!(coordinator, "1", "{row:?}");
        let [age_ms, rows, waiters] = [age_ms, rows, waiters].map(|text| text.parse::<u64>());
        assert!(age_ms.unwrap() < 120_000, "{row:?}");
        let is_writer = state == "promised";
        assert_eq!(rows.unwrap() > 0, is_writer, "{row:?}");
        assert!(waiters.unwrap() < CLIENTS as u64, "{row:?}");
    }
    // The coordinator is back: what it has not decided is aborted, what it has is told.
    let mut link = cluster.link(1, "shop");
    wait_until("nothing is in doubt any more", READY_LIMIT, || {
        try_rows(&mut link, "SHOW IN DOUBT").is_ok_and(|rows| rows.is_empty())
    });
}
