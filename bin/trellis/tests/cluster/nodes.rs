//! SQL over all nodes: what one node writes the others see, and transactions span them.

use crate::support::{Cluster, READY_LIMIT, number, rows, sqlstate, try_rows, wait_until};
use links::link::Link;
use std::time::{Duration, Instant};

#[test]
fn every_node_sees_what_another_wrote() {
    let cluster = Cluster::start("nodes", 3, 2);
    cluster.create(
        "shop",
        &["CREATE TABLE t (id int PRIMARY KEY, who text, n int)"],
    );
    let mut links: Vec<_> = (0..3).map(|at| cluster.link(at, "shop")).collect();
    for id in 0..60 {
        let insert = format!("INSERT INTO t VALUES ({id}, 'w{}', {id})", id % 7);
        links[id % 3].command(&insert).unwrap();
        let read = format!("SELECT n FROM t WHERE id = {id}");
        assert_eq!(number(&mut links[(id + 1) % 3], &read), id as i64);
    }
    for link in &mut links {
        assert_eq!(number(link, "SELECT count(*) FROM t"), 60);
        assert_eq!(
            number(link, "SELECT sum(n) FROM t WHERE n >= 50"),
            (50..60).sum::<i64>()
        );
        let top = rows(link, "SELECT id FROM t ORDER BY n DESC LIMIT 3");
        assert_eq!(top, [["59"], ["58"], ["57"]]);
        let groups = rows(
            link,
            "SELECT who, count(*) FROM t GROUP BY who ORDER BY who LIMIT 2",
        );
        assert_eq!(groups, [["w0", "9"], ["w1", "9"]]);
        let join = "SELECT count(*) FROM t a JOIN t b ON a.id = b.n WHERE a.who = 'w3'";
        assert_eq!(number(link, join), 9);
    }
    links[1]
        .command("UPDATE t SET n = n + 1000 WHERE id < 30")
        .unwrap();
    assert_eq!(
        number(&mut links[2], "SELECT count(*) FROM t WHERE n >= 1000"),
        30
    );
    links[2].command("DELETE FROM t WHERE n < 1000").unwrap();
    assert_eq!(number(&mut links[0], "SELECT count(*) FROM t"), 30);
}

/// The commit of a single statement is in the hands of the node that has its row. One that waits
/// there for a lock and times out has not committed, and says so.
#[test]
fn a_statement_that_times_out_at_another_node_is_cancelled() {
    let cluster = Cluster::start("cancelled", 3, 1);
    for protocol in ["two_phase", "formula", "leap"] {
        let create = format!("CREATE DATABASE {protocol} WITH (protocol = '{protocol}')");
        cluster.link(0, "postgres").command(&create).unwrap();
        let mut links: Vec<_> = (0..3).map(|at| cluster.link(at, protocol)).collect();
        for sql in [
            "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)",
            "INSERT INTO t SELECT id, 0 FROM generate_series(1, 12) id",
        ] {
            links[0].command(sql).unwrap();
        }
        links[1].command("BEGIN").unwrap();
        rows(&mut links[1], "SELECT * FROM t FOR UPDATE");
        links[0].command("SET statement_timeout = 50").unwrap();
        for id in 1..=12 {
            let update = format!("UPDATE t SET n = n + 1 WHERE id = {id} RETURNING n");
            assert_eq!(
                sqlstate(&mut links[0], &update),
                "57014",
                "{protocol}: {id}"
            );
        }
        links[1].command("ROLLBACK").unwrap();
        assert_eq!(number(&mut links[2], "SELECT sum(n) FROM t"), 0);
    }
}

#[test]
fn a_transaction_over_nodes_happens_as_a_whole_or_not_at_all() {
    let cluster = Cluster::start("atomic", 3, 1);
    cluster.create(
        "shop",
        &["CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)"],
    );
    let (mut writer, mut reader) = (cluster.link(0, "shop"), cluster.link(1, "shop"));
    let values: Vec<String> = (0..30).map(|id| format!("({id}, 0)")).collect();
    writer
        .command(&format!("INSERT INTO t VALUES {}", values.join(", ")))
        .unwrap();
    writer.command("BEGIN").unwrap();
    writer.command("UPDATE t SET n = 1").unwrap();
    let failed = sqlstate(&mut writer, "INSERT INTO t VALUES (7, 7)");
    assert_eq!(failed, "23505");
    assert_eq!(sqlstate(&mut writer, "SELECT 1"), "25P02");
    writer.command("COMMIT").unwrap();
    assert_eq!(number(&mut reader, "SELECT sum(n) FROM t"), 0);
    writer.command("BEGIN").unwrap();
    writer.command("UPDATE t SET n = 2").unwrap();
    writer.command("ROLLBACK").unwrap();
    assert_eq!(number(&mut reader, "SELECT sum(n) FROM t"), 0);
    writer.command("BEGIN").unwrap();
    for id in 0..30 {
        writer
            .command(&format!("UPDATE t SET n = 3 WHERE id = {id}"))
            .unwrap();
    }
    writer.command("COMMIT").unwrap();
    assert_eq!(number(&mut reader, "SELECT sum(n) FROM t"), 90);
}

#[test]
fn schema_changes_by_any_node_reach_all() {
    let cluster = Cluster::start("schema", 3, 1);
    cluster.create("shop", &[]);
    let mut links: Vec<_> = (0..3).map(|at| cluster.link(at, "shop")).collect();
    for round in 0..6 {
        let (maker, user) = (round % 3, (round + 1) % 3);
        links[maker]
            .command(&format!(
                "CREATE TABLE t{round} (id int PRIMARY KEY, n int)"
            ))
            .unwrap();
        let insert = format!("INSERT INTO t{round} VALUES (1, {round})");
        // A node hears of a new table soon, not at once.
        wait_until("the table is known", READY_LIMIT, || {
            links[user].command(&insert).is_ok()
        });
        links[maker]
            .command(&format!("CREATE INDEX ON t{round} (n)"))
            .unwrap();
        let read = format!("SELECT n FROM t{round} WHERE n = {round}");
        assert_eq!(number(&mut links[user], &read), round as i64);
    }
    links[2].command("DROP TABLE t0").unwrap();
    wait_until("the table is gone", READY_LIMIT, || {
        let error = links[1].command("SELECT * FROM t0");
        error.is_err_and(|error| error.to_string().contains("42P01"))
    });
}

#[test]
fn the_cluster_tells_of_itself() {
    let mut cluster = Cluster::start("show", 3, 2);
    cluster.create("shop", &["CREATE TABLE t (id int PRIMARY KEY)"]);
    cluster.wait_connected();
    let mut link = cluster.link(1, "shop");
    for id in 0..90 {
        link.command(&format!("INSERT INTO t VALUES ({id})"))
            .unwrap();
    }
    let placed = rows(&mut link, "SHOW PLACEMENT");
    let rows_of_t = placed.iter().filter(|row| row[0] == "t");
    assert_eq!(
        rows_of_t
            .map(|row| row[4].parse::<i64>().unwrap())
            .sum::<i64>(),
        90
    );
    let shards = placed
        .iter()
        .filter(|row| row[0] == "t" && row[4] != "0")
        .count();
    assert!(
        shards >= 5,
        "90 rows lie on {shards} of 6 shards: {placed:?}"
    );
    assert!(!rows(&mut link, "SHOW STAGES").is_empty());
    counters_are_told(&mut link);
    sizes_are_told(&mut link);
    reads_tell_what_they_touched(&mut link);
    cluster.kill(2);
    wait_until("node 1 notices", READY_LIMIT, || {
        let nodes = rows(&mut link, "SHOW NODES");
        nodes.len() == 3 && nodes.iter().any(|row| row[0] == "3" && row[3] == "down")
    });
    let refused = insert_twelve(&mut link, 1_000);
    // A node that has not seen the other one since its own start knows it, too.
    cluster.kill(1);
    cluster.spawn(1);
    cluster.wait_ready(1);
    wait_until("node 2 knows the table", READY_LIMIT, || {
        let link = cluster.try_link(1, "shop");
        link.is_ok_and(|mut link| try_rows(&mut link, "SELECT * FROM t LIMIT 0").is_ok())
    });
    let mut link = cluster.link(1, "shop");
    let refused = refused + insert_twelve(&mut link, 2_000);
    // Rows of the node that is down cannot be asked for; the others can.
    let mut here = 0;
    let mut away = 0;
    link.command("SET statement_timeout = '2s'").unwrap();
    for id in 0..12 {
        match link.command(&format!("SELECT * FROM t WHERE id = {id}")) {
            Ok(()) => here += 1,
            Err(_) => away += 1,
        }
    }
    assert!(here > 0 && away > 0, "{here} rows answered, {away} did not");
    cluster.start_all();
    let mut link = cluster.link(1, "shop");
    wait_until("all rows answer", READY_LIMIT, || {
        link.command("SELECT * FROM t").is_ok()
    });
    let kept = "SELECT count(*) FROM t WHERE id < 1000";
    assert_eq!(number(&mut link, kept), 90);
    let added = "SELECT count(*) FROM t WHERE id >= 1000";
    assert_eq!(
        number(&mut link, added),
        24 - refused,
        "refused means not done"
    );
}

/// The functions behind `\dt+`, `\di+` and `\l+` add up what all shards have.
fn sizes_are_told(link: &mut Link) {
    let bytes = |link: &mut Link, call: &str| number(link, &format!("SELECT {call}"));
    let before = bytes(link, "pg_table_size('t'::regclass)");
    assert!(before > 0);
    link.command("CREATE TABLE sized (id int PRIMARY KEY, body text)")
        .unwrap();
    link.command("CREATE INDEX ON sized (body)").unwrap();
    let body = "x".repeat(1_000);
    for id in 0..60 {
        link.command(&format!("INSERT INTO sized VALUES ({id}, '{body}')"))
            .unwrap();
    }
    let sizes = "SELECT pg_table_size(oid), pg_indexes_size(oid), pg_total_relation_size(oid) \
                 FROM pg_class WHERE relname = 'sized'";
    let found = rows(link, sizes);
    let found: Vec<i64> = found[0].iter().map(|cell| cell.parse().unwrap()).collect();
    assert!((60_000..200_000).contains(&found[0]), "{found:?}");
    assert!((60_000..200_000).contains(&found[1]), "{found:?}");
    assert_eq!(found[2], found[0] + found[1]);
    let database = bytes(link, "pg_database_size('shop')");
    assert_eq!(database, found[2] + before);
}

/// Each of six shards has all counters, whose sums SHOW COUNTERS tells.
fn counters_are_told(link: &mut Link) {
    let value = |row: &[String], at: usize| row[at].parse::<u64>().unwrap();
    let by_shard = rows(link, "SHOW SHARD COUNTERS");
    let sums = rows(link, "SHOW COUNTERS");
    assert_eq!(by_shard.len(), 6 * sums.len());
    let named = |name: &str| {
        let parts = by_shard.iter().filter(move |row| row[1] == name);
        parts.map(|row| value(row, 2)).sum::<u64>()
    };
    let written = sums.iter().find(|row| row[0] == "rows_written").unwrap();
    assert!(named("rows_written") >= 90, "{by_shard:?}");
    // Counters only grow.
    assert!(value(written, 1) >= named("rows_written"), "{written:?}");
}

/// EXPLAIN ANALYZE counts the shards and nodes of statements that only read, too.
fn reads_tell_what_they_touched(link: &mut Link) {
    let touched = |link: &mut Link, begin: &str, sql: &str| {
        link.command(begin).unwrap();
        let lines = rows(link, &format!("EXPLAIN ANALYZE {sql}"));
        link.command("COMMIT").unwrap();
        let line = lines
            .iter()
            .find(|line| line[0].starts_with("Transaction:"));
        line.unwrap()[0].clone()
    };
    for (begin, of_one) in [
        ("BEGIN", "shards=1 nodes=1"),
        ("BEGIN READ ONLY", "shards=1 nodes=1"),
        // These ask every shard for its clock first.
        ("BEGIN READ ONLY, DEFERRABLE", "shards=6 nodes=3"),
        (
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            "shards=6 nodes=3",
        ),
        ("BEGIN ISOLATION LEVEL READ COMMITTED", "shards=1 nodes=1"),
    ] {
        let all = touched(link, begin, "SELECT count(*) FROM t");
        assert!(all.contains("shards=6 nodes=3"), "{begin}: {all}");
        let one = touched(link, begin, "SELECT * FROM t WHERE id = 7");
        assert!(one.contains(of_one), "{begin}: {one}");
    }
    let lines = rows(link, "EXPLAIN ANALYZE SELECT count(*) FROM t");
    assert!(
        lines
            .iter()
            .any(|line| line[0].contains("shards=6 nodes=3")),
        "{lines:?}"
    );
}

/// Inserts twelve rows while a node is down; counts those that belong there. Nothing is sent to
/// it, so the outcome is known, and at once.
fn insert_twelve(link: &mut Link, first: i64) -> i64 {
    let mut refused = 0;
    for id in first..first + 12 {
        let start = Instant::now();
        match link.command(&format!("INSERT INTO t VALUES ({id})")) {
            Ok(()) => {}
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("40001"), "{error}");
            }
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(20), "answered after {took:?}");
    }
    assert!(refused > 0, "some of twelve rows belong there");
    refused
}
