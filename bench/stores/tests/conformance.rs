//! The conformance suite of entities on every store and in every mapping.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use entity::conformance::{Verdict, schema};
use servers::Kind;
use std::sync::Arc;
use std::time::Duration;
use stores::{Options, Store, conformance};

/// How PostgreSQL and MariaDB are started where transactions lock whole groups: the clients of a
/// check take turns in one thread, so who waits for a lock gives up soon, and tries again.
const IMPATIENT: [[&str; 2]; 2] = [
    ["-c", "lock_timeout=10ms"],
    [
        "--innodb-lock-wait-timeout=0",
        "--innodb-rollback-on-timeout=1",
    ],
];

/// Runs all checks in a mapping. All that apply must pass.
fn conforms(url: &str, mapping: &str, fold: bool, is_optimistic: bool) {
    let options = Options {
        mapping: Some(mapping.to_owned()),
        timeout: Duration::from_secs(60),
        fold,
    };
    let (description, verdicts) = conformance::judge(url, options, is_optimistic).unwrap();
    let mut failed = Vec::new();
    for (check, verdict) in verdicts {
        match verdict {
            Verdict::Passed => {}
            Verdict::Failed(why) => failed.push(format!("{check}: {why}")),
            Verdict::Skipped(why) => println!("{url} {mapping}: {check} skipped: {why}"),
        }
    }
    println!(
        "{} {mapping}, fold {fold}: {} failed",
        description.product,
        failed.len()
    );
    assert!(
        failed.is_empty(),
        "{url} {mapping}, fold {fold}:\n{}",
        failed.join("\n")
    );
}

#[test]
fn memory_conforms() {
    for fold in [true, false] {
        conforms("memory:", "rows", fold, true);
        conforms("memory:", "packed", fold, true);
    }
}

#[test]
fn postgresql_conforms() {
    if let Some(server) = peer::start(Kind::Postgres, &[]) {
        conforms(&server.url("postgres"), "tables", true, true);
        conforms(&server.url("postgres"), "tables-lock", true, false);
        for fold in [true, false] {
            conforms(&server.url("postgres"), "packed", fold, true);
        }
    }
    if let Some(server) = peer::start(Kind::Postgres, &IMPATIENT[0]) {
        for fold in [true, false] {
            conforms(&server.url("postgres"), "packed-lock", fold, false);
        }
    }
}

/// Databases that know nothing of each other, each with a part of the groups.
#[test]
fn routed_databases_conform() {
    let kinds = [
        (Kind::Postgres, "postgres", true),
        (Kind::MariaDb, "test", false),
    ];
    for ((kind, database, is_optimistic), impatient) in kinds.into_iter().zip(IMPATIENT) {
        let pair = |arguments: &[&str]| {
            let (one, two) = (peer::start(kind, arguments)?, peer::start(kind, arguments)?);
            let place = one.url("");
            let place = place.trim_end_matches('/');
            let url = format!("{place},{}/{database}?route=group", two.address());
            Some((url, [one, two]))
        };
        let (Some((url, _servers)), Some((locking, _others))) = (pair(&[]), pair(&impatient))
        else {
            return;
        };
        conforms(&url, "tables", true, is_optimistic);
        conforms(&url, "tables-lock", true, false);
        conforms(&url, "packed", true, true);
        conforms(&locking, "packed-lock", true, false);
    }
}

#[test]
fn mariadb_conforms() {
    if let Some(server) = peer::start(Kind::MariaDb, &[]) {
        conforms(&server.url("test"), "tables", true, false);
        conforms(&server.url("test"), "tables-lock", true, false);
        for fold in [true, false] {
            conforms(&server.url("test"), "packed", fold, true);
        }
    }
    if let Some(server) = peer::start(Kind::MariaDb, &IMPATIENT[1]) {
        for fold in [true, false] {
            conforms(&server.url("test"), "packed-lock", fold, false);
        }
    }
}

#[test]
fn redis_conforms() {
    let (Some(one), Some(two)) = (peer::start(Kind::Redis, &[]), peer::start(Kind::Redis, &[]))
    else {
        return;
    };
    let both = format!("redis://{},{}", one.address(), two.address());
    for mapping in ["packed", "packed-lua", "rows"] {
        conforms(&one.url(""), mapping, true, true);
        conforms(&one.url(""), mapping, false, true);
        conforms(&both, mapping, true, true);
    }
}

#[test]
fn etcd_conforms() {
    if let Some(server) = peer::start(Kind::Etcd, &[]) {
        for mapping in ["rows", "packed"] {
            conforms(&server.url(""), mapping, true, true);
            conforms(&server.url(""), mapping, false, true);
        }
    }
}

#[test]
fn a_route_is_for_databases_only() {
    let open = |url: &str| Store::open(url, Options::default(), Arc::new(schema()));
    let refused = open("redis://a,b?route=group").unwrap_err().to_string();
    assert!(refused.contains("route=group"), "{refused}");
    let refused = open("postgres://a,b/c?route=row").unwrap_err().to_string();
    assert!(refused.contains("route=row"), "{refused}");
    let refused = open("mongodb://me@a/b").unwrap_err().to_string();
    assert!(refused.contains("mongodb:// has no user"), "{refused}");
    assert!(open("mysql://a,b/c?route=group&ssl-mode=DISABLED").is_ok());
}
