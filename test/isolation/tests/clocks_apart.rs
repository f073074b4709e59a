//! What clients of several nodes see when the clocks of the nodes differ.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use sim::plan::Wanted;
use sim::{Ask, Plan, SimConn, SimCx, SimError};
use std::collections::BTreeMap;

/// Ways of reading, each in a session of its own on each node.
const READS: [(&str, &str, &[&str]); 9] = [
    (
        "row RC",
        "read committed",
        &["select v from t where id = 1"],
    ),
    ("all rows RC", "read committed", &["select max(v) from t"]),
    ("row SER", "serializable", &["select v from t where id = 1"]),
    ("all rows SER", "serializable", &["select max(v) from t"]),
    (
        "row SER, read only",
        "serializable",
        &["begin read only", "select v from t where id = 1", "commit"],
    ),
    (
        "all rows SER, read only",
        "serializable",
        &[
            "begin read only",
            "select v from t where id = 2",
            "select max(v) from t",
            "commit",
        ],
    ),
    (
        "all rows SER, deferrable",
        "serializable",
        &[
            "begin read only, deferrable",
            "select v from t where id = 2",
            "select max(v) from t",
            "commit",
        ],
    ),
    (
        "row RC, by an expression",
        "read committed",
        &["select v from t where id = (select min(id) from t)"],
    ),
    (
        "row SER, block",
        "serializable",
        &["begin", "select v from t where id = 1", "commit"],
    ),
];

/// Runs the statements, a second time if a shard has refused what their snapshot misses: that one
/// asks all shards for their clocks first.
async fn read(conn: &mut SimConn, statements: &[&str]) -> i64 {
    match try_read(conn, statements).await {
        Ok(value) => value,
        Err(error) => {
            let only = statements.contains(&"begin read only");
            assert!(
                only && error.state().as_str() == "40001",
                "{statements:?}: {error}"
            );
            conn.query("rollback").await.unwrap();
            try_read(conn, statements).await.unwrap()
        }
    }
}

async fn try_read(conn: &mut SimConn, statements: &[&str]) -> Result<i64, SimError> {
    let mut value = None;
    for sql in statements {
        let answer = conn.query(sql).await?;
        value = value.max(answer.int(0, 0));
    }
    Ok(value.unwrap())
}

/// What a run has shown.
struct Found {
    /// Reads that missed a commit, by the way of reading.
    stale: BTreeMap<&'static str, u32>,
    /// Statements that began again at a later snapshot.
    restarts: i64,
}

/// A commit is answered, and then another client reads. Counts the reads that miss it.
async fn stale(cx: SimCx, protocol: &str) -> Found {
    let create = format!("create database d with (protocol = '{protocol}')");
    let mut first = cx.connect(1).await.unwrap();
    first.query(&create).await.unwrap();
    let database = ("database", "d");
    let mut writers = Vec::new();
    let mut readers = Vec::new();
    for node in 1..=cx.nodes() {
        writers.push(cx.connect_with(node, &[database]).await.unwrap());
        for (name, level, statements) in READS {
            let settings = [database, ("default_transaction_isolation", level)];
            let conn = cx.connect_with(node, &settings).await.unwrap();
            readers.push((name, statements, conn));
        }
    }
    let setup = [
        "create table t (id int primary key, v int)",
        "insert into t values (1, 0), (2, 0), (3, 0), (4, 0)",
    ];
    for sql in setup {
        writers[0].query(sql).await.unwrap();
    }
    let mut stale = BTreeMap::from(READS.map(|(name, ..)| (name, 0)));
    for round in 1..=40 {
        for (number, (name, statements, reader)) in readers.iter_mut().enumerate() {
            let value = round * 1_000 + number as i64;
            // All nodes forget what others have told about their clocks.
            cx.sleep(200_000).await;
            let writer = (round as usize + number) % writers.len();
            let sql = format!("update t set v = {value} where id = 1");
            writers[writer].query(&sql).await.unwrap();
            if read(reader, statements).await < value {
                *stale.get_mut(name).unwrap() += 1;
            }
        }
    }
    let counters = first.query("show counters").await.unwrap();
    let mut names = counters.rows.iter().map(|row| row[0].as_deref());
    let at = names.position(|name| name == Some("statement_restarts"));
    Found {
        stale,
        restarts: counters.int(at.unwrap(), 1).unwrap(),
    }
}

fn counts(skew_us: u64, protocol: &'static str) -> Found {
    let ask = Ask {
        nodes: Some(3),
        shards: Some(2),
        wanted: Wanted::Nothing,
        ..Ask::new("bank")
    };
    let plan = Plan {
        skew_us,
        ..Plan::draw(3, &ask)
    };
    sim::alone(&plan, |cx| Box::pin(stale(cx, protocol))).unwrap()
}

/// No way of reading misses a commit that another client was told of, whatever the clocks say.
fn misses_nothing(skew_us: u64) {
    for protocol in ["two_phase", "leap"] {
        let Found { stale, restarts } = counts(skew_us, protocol);
        assert_eq!(stale.len(), READS.len());
        assert!(
            stale.values().all(|count| *count == 0),
            "{protocol}: {stale:?}"
        );
        // Far longer than a message is under way: statements at slow clocks must begin again.
        assert!(skew_us < 20_000 || restarts > 0, "{protocol}");
    }
}

#[test]
fn clocks_that_agree_hide_no_commit() {
    misses_nothing(0);
}

#[test]
fn clocks_that_differ_a_little_hide_no_commit() {
    misses_nothing(300);
}

#[test]
fn clocks_far_apart_hide_no_commit() {
    misses_nothing(20_000);
}

#[test]
fn clocks_apart_by_more_than_any_message_takes_hide_no_commit() {
    misses_nothing(2_000_000);
}
