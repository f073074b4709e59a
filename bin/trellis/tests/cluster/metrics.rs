//! What nodes tell to a system that watches them.

use crate::local::Local;
use crate::support::{READY_LIMIT, free_ports, patiently, wait_until};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(READY_LIMIT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: node\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Samples by name and labels.
fn samples(port: u16) -> BTreeMap<String, f64> {
    let answer = get(port, "/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
        (name.to_owned(), value)
    });
    let found: Vec<(String, f64)> = samples.collect();
    let by_name: BTreeMap<String, f64> = found.iter().cloned().collect();
    assert_eq!(found.len(), by_name.len(), "a sample is there twice");
    by_name
}

/// The sum of the samples that have all these parts in their names.
fn sum(samples: &BTreeMap<String, f64>, parts: &[&str]) -> f64 {
    let has = |name: &&String| parts.iter().all(|part| name.contains(part));
    let names: Vec<_> = samples.keys().filter(has).collect();
    names.iter().map(|name| samples[*name]).sum()
}

#[test]
fn nodes_tell_what_they_count() {
    let port = free_ports(3);
    let local = Local::start_with("metrics", &["--metrics", &format!("127.0.0.1:{port}")]);
    let before = samples(port);
    for name in ["trellis_up{", "trellis_connections_max", "trellis_shard_up"] {
        assert!(sum(&before, &[name]) > 0.0, "{name}");
    }
    let connected = ["trellis_node_connected"];
    wait_until("the others are connected", READY_LIMIT, || {
        sum(&samples(port), &connected) == 2.0
    });
    // A system that asks and does not read.
    let mut slow = TcpStream::connect(("127.0.0.1", port + 1)).unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    for protocol in ["leap", "two_phase", "formula"] {
        let mut link = local.link(1, "postgres").unwrap();
        let create = format!("CREATE DATABASE d_{protocol} WITH (protocol = '{protocol}')");
        link.command(&create).unwrap();
        let mut link = local.link(2, &format!("d_{protocol}")).unwrap();
        link.command("CREATE TABLE t (id int PRIMARY KEY, v int)")
            .unwrap();
        patiently(
            &mut link,
            "INSERT INTO t SELECT g, 0 FROM generate_series(1, 50) g",
        );
        for _ in 0..10 {
            patiently(&mut link, "UPDATE t SET v = v + 1 WHERE id < 20");
        }
        link.command("BEGIN; UPDATE t SET v = 0 WHERE id = 1; ROLLBACK")
            .unwrap();
    }
    let until = Instant::now() + READY_LIMIT;
    loop {
        // A page is handed out for a second.
        let now: Vec<_> = (0..3).map(|node| samples(port + node)).collect();
        let of_all = |parts: &[&str]| now.iter().map(|one| sum(one, parts)).sum::<f64>();
        let done = ["leap", "two_phase", "formula"].iter().all(|protocol| {
            let database = format!("database=\"d_{protocol}\",protocol=\"{protocol}\"");
            let ended = "trellis_transactions_total";
            of_all(&[ended, &database, "committed"]) >= 11.0
                && of_all(&[ended, &database, "aborted"]) >= 1.0
                && of_all(&["trellis_transaction_seconds_count", &database]) >= 11.0
                && of_all(&["trellis_transaction_seconds_bucket", &database, "+Inf"]) >= 11.0
                && of_all(&["trellis_database_rows", &database]) == 50.0
        });
        let counted = of_all(&["trellis_messages_total"]) > 0.0
            && of_all(&["trellis_journal_durable_bytes"]) > 0.0
            && of_all(&["trellis_stage_items_total", "execute"]) > 0.0;
        if done && counted {
            break;
        }
        assert!(Instant::now() < until, "{:?}", now[1]);
        std::thread::sleep(Duration::from_millis(300));
    }
    assert!(get(port, "/").starts_with("HTTP/1.1 404 "));
    drop(slow);
}
