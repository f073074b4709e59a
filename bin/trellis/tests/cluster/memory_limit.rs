//! A node that reaches its limit of memory: writes are refused, reads and deletes go on, and it
//! starts again within the limit.

use crate::support::{Cluster, READY_LIMIT, number, rows, sqlstate, wait_until};
use links::link::Link;
use std::time::Duration;

const LIMIT_MIB: u64 = 300;
/// Rows of one COPY, of about a kilobyte each.
const BATCH: u64 = 4_000;
/// Rows of a small one.
const FEW: u64 = 100;

/// Bytes of memory that the system has counted for a process, at most so far.
fn peak_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().strip_suffix("kB").unwrap();
    kilobytes.trim().parse::<u64>().unwrap() << 10
}

/// Copies so many rows; their number or why it failed.
fn copy(link: &mut Link, first: u64, count: u64) -> Result<u64, String> {
    let body = "x".repeat(1_000);
    let lines: Vec<String> = (first..first + count)
        .map(|id| format!("{id}\t{body}\n"))
        .collect();
    let copied = link.copy_in("COPY t FROM STDIN", lines.concat().as_bytes());
    copied.map_err(|error| error.to_string())
}

/// The numbers of SHOW MEMORY's row for shard n1.0.
fn shown(link: &mut Link) -> Vec<u64> {
    let all = rows(link, "SHOW MEMORY");
    let row = all.iter().find(|row| row[0] == "n1.0").unwrap();
    row[1..].iter().map(|cell| cell.parse().unwrap()).collect()
}

#[test]
fn writes_stop_below_the_limit_and_the_node_starts_again_within_it() {
    let mut cluster = Cluster::start_with("memory", 1, 1, &["--memory", "300MB"]);
    cluster.create("shop", &["CREATE TABLE t (id int PRIMARY KEY, body text)"]);
    let mut link = cluster.link(0, "shop");
    let mut loaded = 0;
    let refused = loop {
        match copy(&mut link, loaded, BATCH) {
            Ok(count) => loaded += count,
            Err(error) => break error,
        }
        assert!(loaded < LIMIT_MIB * 1_024, "more rows than memory");
    };
    assert!(refused.contains("53200"), "{refused}");
    assert!(
        refused.contains("the memory of node n1 is full"),
        "{refused}"
    );
    assert!(loaded * 1_024 > 80 << 20, "only {loaded} rows");
    // What the refused batch has held goes back: there is room for some more rows, and then none.
    let mut refusals = 0;
    while refusals < 5 {
        match copy(&mut link, loaded, FEW) {
            Ok(count) => (loaded, refusals) = (loaded + count, 0),
            Err(_) => {
                refusals += 1;
                std::thread::sleep(Duration::from_millis(300));
            }
        }
        assert!(loaded < LIMIT_MIB * 1_024, "more rows than memory");
    }

    let count = "SELECT count(*) FROM t";
    assert_eq!(number(&mut link, count) as u64, loaded);
    assert_eq!(
        number(&mut link, "SELECT length(body) FROM t WHERE id = 7"),
        1_000
    );
    assert_eq!(
        sqlstate(&mut link, "UPDATE t SET body = 'y' WHERE id = 7"),
        "53200"
    );
    assert_eq!(
        sqlstate(&mut link, "INSERT INTO t VALUES (-1, 'y')"),
        "53200"
    );
    link.command("DELETE FROM t WHERE id = 7").unwrap();
    let memory = shown(&mut link);
    assert_eq!(memory[0], loaded - 1, "rows: {memory:?}");
    assert_eq!(memory[8], LIMIT_MIB << 20, "limit: {memory:?}");
    assert!(
        memory[6] > memory[2],
        "more in use than in rows: {memory:?}"
    );
    let peak = peak_bytes(cluster.pid(0));
    assert!(peak < LIMIT_MIB << 20, "peak of {} MiB", peak >> 20);

    for _ in 0..2 {
        cluster.kill(0);
        cluster.spawn(0);
        cluster.wait_ready(0);
        let peak = peak_bytes(cluster.pid(0));
        assert!(peak < LIMIT_MIB << 20, "recovery took {} MiB", peak >> 20);
        link = cluster.link(0, "shop");
        assert_eq!(number(&mut link, count) as u64, loaded - 1);
    }
    // A statement holds the rows that it deletes, and what others have deleted stays for a moment:
    // there is not much room.
    for part in 1..=16 {
        let delete = format!("DELETE FROM t WHERE id < {}", loaded / 32 * part);
        wait_until(&delete, READY_LIMIT, || link.command(&delete).is_ok());
    }
    wait_until("there is room again", READY_LIMIT, || {
        link.command("INSERT INTO t VALUES (-1, 'y')").is_ok()
    });
}
