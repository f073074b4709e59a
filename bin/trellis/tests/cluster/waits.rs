//! Limits that a client has set end its waits, wherever they are: in one call of a function, behind
//! a lock of a table, for rows of a node that stands still.

use crate::support::{Cluster, READY_LIMIT, number, rows, signal, sqlstate, wait_until};
use links::link::{Link, LinkError};
use links::raw::cancel;
use peer::again;
use std::time::{Duration, Instant};

const PROTOCOLS: [&str; 3] = ["two_phase", "leap", "formula"];
/// The others know by then that a node stands still.
const DETECTION: Duration = Duration::from_millis(1_000);
/// What a busy machine may add. Without its limit a wait would last longer.
const SLACK: Duration = Duration::from_secs(20);

/// How a statement ended, and how long it took.
fn timed(link: &mut Link, sql: &str) -> (String, Duration) {
    let begun = Instant::now();
    let said = match link.command(sql) {
        Ok(()) => "done".to_owned(),
        Err(LinkError::Server(error)) => error.sqlstate,
        Err(error) => panic!("{sql}: {error}"),
    };
    (said, begun.elapsed())
}

/// Fills a database with rows of all nodes.
fn fill(cluster: &Cluster, protocol: &str) {
    let table = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)";
    let rows = "INSERT INTO t SELECT g, 0 FROM generate_series(1, 12) g";
    cluster.create_as(protocol, protocol, &[table, rows]);
}

/// A session whose statements wait for 300 ms at most.
fn limited(cluster: &Cluster, at: usize, database: &str, setting: &str) -> Link {
    let mut link = cluster.link(at, database);
    link.command(&format!("SET {setting} = '300ms'")).unwrap();
    link
}

fn update(id: usize) -> String {
    format!("UPDATE t SET v = v + length(v::text) WHERE id = {id}")
}

/// Each row from nodes 1 and 3: none waits for longer than `most`. Returns how the waits ended.
fn update_all(cluster: &Cluster, database: &str, setting: &str, most: Duration) -> Vec<String> {
    let ends = std::thread::scope(|scope| {
        let waits: Vec<_> = (1..=12)
            .map(|id| {
                let mut link = limited(cluster, if id % 2 == 0 { 0 } else { 2 }, database, setting);
                scope.spawn(move || {
                    link.command("BEGIN").unwrap();
                    let ended = timed(&mut link, &update(id));
                    link.command("ROLLBACK").unwrap();
                    ended
                })
            })
            .collect();
        let ends = waits.into_iter().map(|wait| wait.join().unwrap());
        ends.collect::<Vec<_>>()
    });
    for (said, waited) in &ends {
        assert!(
            *waited < most,
            "{database}, {setting}: {said} after {waited:?}"
        );
    }
    ends.into_iter().map(|(said, _)| said).collect()
}

#[test]
fn limits_end_waits_for_rows_of_a_node_that_is_busy_or_stands_still() {
    let cluster = Cluster::start("waits", 3, 1);
    for protocol in PROTOCOLS {
        fill(&cluster, protocol);
        let mut holder = cluster.link(1, protocol);
        holder.command("BEGIN").unwrap();
        holder.command("UPDATE t SET v = length(v::text)").unwrap();
        for (setting, state) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
            let most = Duration::from_millis(300) + SLACK;
            let ends = update_all(&cluster, protocol, setting, most);
            assert!(
                ends.iter().all(|said| said == state),
                "{protocol}: {ends:?}"
            );
        }
        // The node stands still, and nobody knows it yet.
        for setting in ["lock_timeout", "statement_timeout"] {
            signal(cluster.pid(1), "STOP");
            let most = Duration::from_millis(300) + DETECTION + SLACK;
            let ends = update_all(&cluster, protocol, setting, most);
            signal(cluster.pid(1), "CONT");
            let known = ["55P03", "57014", "40001", "done"];
            assert!(
                ends.iter().all(|said| known.contains(&&**said)),
                "{protocol}: {ends:?}"
            );
            cluster.wait_connected();
        }
        let _ = holder.command("ROLLBACK");
        let mut link = cluster.link(0, protocol);
        wait_until("rows can be used again", READY_LIMIT, || {
            link.command("UPDATE t SET v = v + length(v::text)").is_ok()
        });
    }
}

#[test]
fn a_statement_that_waits_again_for_a_locked_table_has_no_more_time() {
    let cluster = Cluster::start("waits-table", 1, 2);
    fill(&cluster, "two_phase");
    let mut holder = cluster.link(0, "two_phase");
    let mut other = cluster.link(0, "two_phase");
    other
        .command("CREATE TABLE u (id int PRIMARY KEY)")
        .unwrap();
    holder.command("BEGIN").unwrap();
    holder.command("LOCK TABLE t").unwrap();
    let mut waiting = cluster.link(0, "two_phase");
    waiting.command("SET statement_timeout = '1500ms'").unwrap();
    let waiter = std::thread::spawn(move || timed(&mut waiting, "INSERT INTO t VALUES (99, 0)"));
    // Changes of the catalog wake the one who waits. If each gave it all of its time again, it
    // would wait as long as they go on.
    let until = Instant::now() + SLACK;
    while !waiter.is_finished() {
        assert!(Instant::now() < until, "it waits on and on");
        std::thread::sleep(Duration::from_millis(400));
        for sql in ["BEGIN", "LOCK TABLE u", "COMMIT"] {
            other.command(sql).unwrap();
        }
    }
    let (said, _) = waiter.join().unwrap();
    assert_eq!(said, "57014");
    holder.command("COMMIT").unwrap();
}

/// An end comes so soon after the limit, unless the machine stands still.
const PROMPT: Duration = Duration::from_millis(2_300);
/// Some seconds of work in one call, more in a build without optimization.
const CALL: &str = "SELECT length(regexp_replace(repeat('ab', 4000000), '[a-c]', 'x', 'g'))";

#[test]
fn one_call_of_a_function_ends_in_time_and_by_a_cancel() {
    // One shard: what computes is also who accepts clients.
    for shards in [1, 2] {
        let cluster = Cluster::start("waits-call", 1, shards);
        let mut link = cluster.link(0, "postgres");
        link.command("SET statement_timeout = '300ms'").unwrap();
        let is_prompt = |(said, waited): &(String, Duration)| said == "57014" && *waited < PROMPT;
        let ended = again(|| timed(&mut link, CALL), is_prompt);
        assert!(is_prompt(&ended), "{ended:?}");
        link.command("SET statement_timeout = 0").unwrap();
        let key = link.postgres().unwrap().cancel_key().unwrap();
        let endpoint = cluster.endpoint(0);
        let cancelled = || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(300));
                    // The connection is closed when the call has ended.
                    let _ = cancel(&endpoint, key);
                });
                timed(&mut link, CALL)
            })
        };
        let ended = again(cancelled, is_prompt);
        assert!(is_prompt(&ended), "{ended:?}");
        // Nothing else is cancelled, and others are served.
        assert_eq!(number(&mut link, "SELECT 1"), 1);
        assert_eq!(number(&mut cluster.link(0, "postgres"), "SELECT 2"), 2);
    }
}

#[test]
fn a_node_that_stands_still_stops_no_login_and_no_view_of_the_cluster() {
    let cluster = Cluster::start("waits-views", 3, 1);
    fill(&cluster, "leap");
    signal(cluster.pid(1), "STOP");
    for turn in 0..2 {
        for at in [0, 2] {
            let begun = Instant::now();
            let mut link = cluster.link(at, "leap");
            for sql in [
                "SHOW NODES",
                "SELECT pid FROM pg_stat_activity",
                "SELECT locktype FROM pg_locks",
            ] {
                rows(&mut link, sql);
            }
            let waited = begun.elapsed();
            assert!(
                waited < DETECTION + SLACK,
                "turn {turn}, node {at}: {waited:?}"
            );
        }
    }
    let mut link = cluster.link(0, "leap");
    // It might write: so nobody locks a table meanwhile, and that is said at once.
    link.command("BEGIN").unwrap();
    assert_eq!(sqlstate(&mut link, "LOCK TABLE t"), "55000");
    link.command("ROLLBACK").unwrap();
    signal(cluster.pid(1), "CONT");
}
