//! Servers that are killed under load: no acknowledged update is lost, and what became of each
//! commit without an answer is found out.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use servers::{Kind, Server};
use std::time::{Duration, Instant};
use stores::crash::{Aftermath, under_load};

/// Kills the server under load, and starts it again.
fn crash(server: &mut Server, database: &str, mapping: Option<&str>) -> Aftermath {
    let (url, began) = (server.url(database), Instant::now());
    let aftermath = under_load(&url, mapping, || {
        server.kill().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        server.restart().unwrap();
    });
    let aftermath = aftermath.unwrap_or_else(|failure| panic!("{url} {mapping:?}: {failure}"));
    let took = began.elapsed().as_millis();
    println!("{url} {mapping:?}: {aftermath:?}, {took} ms");
    aftermath
}

fn survives(kind: Kind, arguments: &[&str], database: &str, mappings: &[&str]) {
    for mapping in mappings {
        let Some(mut server) = peer::start(kind, arguments) else {
            return;
        };
        let findings = crash(&mut server, database, Some(mapping)).findings();
        assert!(findings.is_empty(), "{mapping}: {}", findings.join("\n"));
    }
}

#[test]
fn postgresql_keeps_what_it_acknowledged() {
    let mappings = ["tables", "tables-lock", "packed", "packed-lock"];
    survives(Kind::Postgres, &[], "postgres", &mappings);
}

#[test]
fn mariadb_keeps_what_it_acknowledged() {
    let mappings = ["tables-lock", "packed", "packed-lock"];
    survives(Kind::MariaDb, &[], "test", &mappings);
}

#[test]
fn redis_keeps_what_it_acknowledged() {
    let mappings = ["packed", "packed-lua", "rows"];
    survives(Kind::Redis, &[], "", &mappings);
}

#[test]
fn etcd_keeps_what_it_acknowledged() {
    survives(Kind::Etcd, &[], "", &["rows", "packed"]);
}

/// A negative control: a server that keeps nothing is found out.
#[test]
fn redis_without_a_file_loses_what_it_acknowledged() {
    let Some(mut server) = peer::start(Kind::Redis, &["--appendonly", "no"]) else {
        return;
    };
    let aftermath = crash(&mut server, "", None);
    assert_ne!(aftermath.acknowledged, aftermath.counts);
}
