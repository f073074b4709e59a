//! Histories of a real PostgreSQL and a real MariaDB: anomalies at READ COMMITTED, none at
//! SERIALIZABLE.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

use check::{Judgement, Level};
use drive::histories::{self, HistoryOptions, HistoryReport};
use drive::report;
use links::view::Silent;
use peer::{Peer, longer};
use std::time::Duration;
use workload::history::Kind;
use workload::wire::Isolation;

/// A history that is long enough to be judged: on a busy machine less happens in the same time,
/// and where transactions deadlock.
fn recorded(url: &str, kind: Kind, isolation: Isolation) -> HistoryReport {
    let mut options = HistoryOptions::new(url, kind, isolation);
    options.runner.clients = 8;
    let run = |length| {
        options.runner.length = length;
        histories::run(&options, &mut Silent).unwrap()
    };
    longer(Duration::from_secs(2), run, |found| {
        found.verdict.judgement != Judgement::Inconclusive
    })
}

fn database(peer: &Peer) -> String {
    peer.psql("postgres", "CREATE DATABASE seen");
    peer.url("seen")
}

#[test]
fn serializable_shows_no_anomaly() {
    let Some(peer) = Peer::start() else { return };
    let url = database(&peer);
    for kind in Kind::ALL {
        let found = recorded(&url, kind, Isolation::Serializable);
        let table = report::table(&found.run);
        assert_eq!(
            found.verdict.judgement,
            Judgement::Pass,
            "{}: {}\n{table}",
            kind.name(),
            found.verdict
        );
        assert_eq!(found.verdict.level, Level::Serializable);
        assert!(found.run.passed(), "{table}");
        assert!(found.run.unknown() == 0, "{table}");
        let json = report::history_json(&found);
        assert_eq!(json["history"]["judgement"], "pass");
        assert!(json["new_order_per_min"].is_null());
    }
}

#[test]
fn weaker_levels_show_what_they_allow_and_nothing_else() {
    let Some(peer) = Peer::start() else { return };
    let url = database(&peer);
    let mut seen = std::collections::BTreeSet::new();
    for kind in Kind::ALL {
        let found = recorded(&url, kind, Isolation::ReadCommitted);
        let judgement = found.verdict.judgement;
        assert_eq!(
            judgement,
            Judgement::Pass,
            "{}: {}",
            kind.name(),
            found.verdict
        );
        if matches!(kind, Kind::ListAppend | Kind::Register) {
            // The same history does not pass for more than it is.
            let names = found.verdict.allowed.iter().map(check::Anomaly::name);
            seen.extend(names);
            let strict = check::check(&found.history, Level::Serializable);
            assert_eq!(strict.judgement, Judgement::Fail, "{}", kind.name());
            assert!(!strict.anomalies[0].story.is_empty());
        }
    }
    assert!(
        seen.contains("lost-update") || seen.contains("G-single"),
        "{seen:?}"
    );

    let snapshot = recorded(&url, Kind::Phantom, Isolation::RepeatableRead);
    assert_eq!(
        snapshot.verdict.judgement,
        Judgement::Pass,
        "{}",
        snapshot.verdict
    );
    let skewed = check::check(&snapshot.history, Level::Serializable);
    assert_eq!(
        skewed.judgement,
        Judgement::Fail,
        "snapshots skew writes: {skewed}"
    );
}

/// Its REPEATABLE READ reads a snapshot and writes over what is newer.
#[test]
fn mariadb_keeps_what_it_promises_and_no_more() {
    let Some(server) = peer::start(servers::Kind::MariaDb, &[]) else {
        return;
    };
    let url = server.url("test");
    for kind in Kind::ALL {
        let found = recorded(&url, kind, Isolation::Serializable);
        let verdict = &found.verdict;
        let name = kind.name();
        assert_eq!(verdict.judgement, Judgement::Pass, "{name}: {verdict}");
        assert_eq!(verdict.level, Level::Serializable);
        let table = report::table(&found.run);
        assert!(found.run.passed() && found.run.unknown() == 0, "{table}");
    }
    for (kind, isolation) in [
        (Kind::ListAppend, Isolation::RepeatableRead),
        (Kind::Bank, Isolation::RepeatableRead),
        (Kind::ListAppend, Isolation::ReadCommitted),
    ] {
        let found = recorded(&url, kind, isolation);
        let (verdict, name) = (&found.verdict, kind.name());
        assert_eq!(verdict.judgement, Judgement::Pass, "{name}: {verdict}");
        assert_eq!(verdict.level, Level::ReadCommitted);
        if kind == Kind::ListAppend {
            let snapshots = check::check(&found.history, Level::SnapshotIsolation);
            assert_eq!(snapshots.judgement, Judgement::Fail, "{verdict}");
        }
    }
}

#[test]
fn too_little_is_inconclusive() {
    let Some(peer) = Peer::start() else { return };
    let url = database(&peer);
    let mut options = HistoryOptions::new(&url, Kind::ListAppend, Isolation::Serializable);
    options.runner.clients = 1;
    options.runner.length = Duration::from_millis(200);
    let found = histories::run(&options, &mut Silent).unwrap();
    assert_eq!(found.verdict.judgement, Judgement::Inconclusive);
    assert!(!found.run.passed());
    let folder = std::env::temp_dir();
    for end in ["edn", "json"] {
        let path = folder.join(format!("trellis-history-{}.{end}", std::process::id()));
        histories::write(&path, &found.history).unwrap();
        let read = histories::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.txns.len(), found.history.txns.len(), "{end}");
        assert_eq!(read.op_count(), found.history.op_count(), "{end}");
    }
    assert!(histories::write(&folder.join("history"), &found.history).is_err());
    options.shape.keys = 1;
    assert!(
        histories::run(&options, &mut Silent).is_err(),
        "three tables need three keys"
    );
}
