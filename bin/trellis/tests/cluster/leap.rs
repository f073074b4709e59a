//! Databases whose rows move to the transactions, beside others in one cluster.

use crate::bank::{self, Clients, TOTAL};
use crate::support::{Cluster, READY_LIMIT, number, patiently, rows, sqlstate};
use std::time::{Duration, Instant};

/// Rows that are away from home, and rows that came from elsewhere, over all shards, once nothing
/// moves any more.
fn away_and_here(cluster: &Cluster) -> (i64, i64) {
    let until = Instant::now() + READY_LIMIT;
    loop {
        let shown = rows(&mut cluster.link(0, "shop"), "SHOW OWNERSHIP");
        let sum = |column: usize| {
            let cells = shown.iter().map(|row| row[column].parse::<i64>().unwrap());
            cells.sum::<i64>()
        };
        let (away, here, backups) = (sum(1), sum(2), sum(3));
        if shown.len() == 3 && away == here && backups == 0 {
            return (away, here);
        }
        assert!(
            Instant::now() < until,
            "rows do not come to rest: {shown:?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn rows_move_to_the_node_that_writes_them_and_stay_there() {
    let mut cluster = Cluster::start("leap", 3, 1);
    cluster.create_as(
        "leap",
        "shop",
        &[
            "CREATE TABLE item (id int PRIMARY KEY, name text, stock int NOT NULL)",
            "CREATE INDEX item_name ON item (name)",
            "CREATE TABLE note (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text)",
        ],
    );
    let mut first = cluster.link(0, "shop");
    assert_eq!(rows(&mut first, "SHOW protocol"), [["leap"]]);
    for id in 1..=30 {
        let insert = format!("INSERT INTO item VALUES ({id}, 'item {id}', 10)");
        patiently(&mut first, &insert);
    }
    let mut second = cluster.link(1, "shop");
    for _ in 0..3 {
        // Statements of several operations: they are not sent to the rows.
        second.command("BEGIN").unwrap();
        second
            .command("UPDATE item SET stock = stock + 1 WHERE id = 7")
            .unwrap();
        second
            .command("UPDATE item SET name = 'x' WHERE id = 8")
            .unwrap();
        second.command("COMMIT").unwrap();
    }
    patiently(&mut second, "INSERT INTO note (text) VALUES ('a')");
    let before = away_and_here(&cluster);
    assert!(
        before.0 > 20,
        "rows are where they were written: {before:?}"
    );
    let hot = rows(&mut first, "SHOW HOTTEST");
    assert!(hot.iter().any(|row| row[0] == "item"), "{hot:?}");

    // The whole cluster stops, once in good order and once not: every row is where it was.
    for kill in [false, true] {
        // Reads of a busy machine, tried again, may have moved one since the last stop.
        let before = away_and_here(&cluster);
        if kill {
            (0..3).for_each(|at| cluster.kill(at));
        } else {
            cluster.stop_all();
        }
        cluster.start_all();
        assert_eq!(away_and_here(&cluster), before, "killed: {kill}");
        for at in 0..3 {
            let mut link = cluster.link(at, "shop");
            assert_eq!(number(&mut link, "SELECT count(*) FROM item"), 30);
            assert_eq!(number(&mut link, "SELECT stock FROM item WHERE id = 7"), 13);
            let found = rows(&mut link, "SELECT id FROM item WHERE name = 'x'");
            assert_eq!(found, [["8"]]);
        }
    }
    drop_everything(&cluster);
}

/// What is dropped has no owners.
fn drop_everything(cluster: &Cluster) {
    let mut link = cluster.link(2, "shop");
    patiently(&mut link, "CREATE INDEX item_stock ON item (stock)");
    assert_eq!(
        rows(&mut link, "SELECT id FROM item WHERE stock = 13"),
        [["7"]]
    );
    patiently(&mut link, "TRUNCATE item");
    assert_eq!(number(&mut link, "SELECT count(*) FROM item"), 0);
    patiently(&mut link, "DROP TABLE item");
    patiently(&mut link, "DROP TABLE note");
    assert_eq!(away_and_here(cluster), (0, 0));
}

#[test]
fn protocols_live_side_by_side() {
    let cluster = Cluster::start("beside", 2, 2);
    let tables = ["CREATE TABLE t (id int PRIMARY KEY, v int) WITH (replicated = true)"];
    cluster.create_as("leap", "moving", &tables);
    cluster.create("fixed", &tables);
    for at in 0..2 {
        for database in ["moving", "fixed"] {
            let mut link = cluster.link(at, database);
            for id in 0..20 {
                let insert = format!("INSERT INTO t VALUES ({}, 0)", 100 * at + id);
                patiently(&mut link, &insert);
            }
        }
    }
    for (database, protocol) in [("moving", "leap"), ("fixed", "two_phase")] {
        let mut link = cluster.link(1, database);
        assert_eq!(rows(&mut link, "SHOW protocol"), [[protocol]]);
        assert_eq!(number(&mut link, "SELECT count(*) FROM t"), 40);
    }
    let mut link = cluster.link(0, "fixed");
    let serial = "CREATE DATABASE s WITH (protocol = 'leap', execution = 'serial')";
    let refused = link.command(serial);
    assert!(refused.is_err_and(|error| error.to_string().contains("0A000")));
}

#[test]
fn a_database_changes_its_protocol_under_load() {
    let cluster = Cluster::start("switch", 3, 2);
    bank::open(&cluster);
    let clients = Clients::start(&cluster, 6);
    let mut idle = cluster.link(2, bank::DATABASE);
    for round in 0..4 {
        clients.wait_progress(60);
        // A transaction that nobody goes on with does not keep the database from changing.
        patiently(&mut idle, "BEGIN");
        let opened = idle.command("UPDATE account SET balance = balance WHERE id = 1");
        let protocol = ["leap", "two_phase"][round % 2];
        let mut link = cluster.link(round % 3, "postgres");
        let alter = format!("ALTER DATABASE bank SET (protocol = '{protocol}')");
        link.command(&alter)
            .unwrap_or_else(|error| panic!("{alter}: {error}"));
        for at in 0..3 {
            let mut link = cluster.link(at, bank::DATABASE);
            assert_eq!(rows(&mut link, "SHOW protocol"), [[protocol]]);
            assert_eq!(bank::total(&mut link), TOTAL, "round {round}");
        }
        if opened.is_ok() {
            assert_eq!(sqlstate(&mut idle, "SELECT 1 FROM account"), "40001");
        }
        idle.command("ROLLBACK").unwrap();
    }
    clients.wait_progress(60);
    let ledger = clients.finish();
    bank::verify(&cluster, &ledger);
    // Rows that are to stay at home do.
    for row in rows(&mut idle, "SHOW OWNERSHIP") {
        assert_eq!(row[1..4], ["0", "0", "0"], "{row:?}");
    }
}

/// The clocks of nodes where nothing happens run ahead of what they have promised not to draw again
/// (1 s): they answer all the same.
#[test]
fn a_transaction_that_has_read_elsewhere_may_think_before_it_commits() {
    let cluster = Cluster::start("leap-think", 3, 1);
    let table = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)";
    let fill = "INSERT INTO t SELECT g, 0 FROM generate_series(1, 60) g";
    cluster.create_as("leap", "shop", &[table, fill]);
    let mut link = cluster.link(0, "shop");
    for turn in 1..=2 {
        link.command("BEGIN").unwrap();
        assert_eq!(number(&mut link, "SELECT sum(v) FROM t WHERE id <= 60"), 0);
        std::thread::sleep(Duration::from_millis(1_600));
        let insert = format!("INSERT INTO t VALUES ({}, 0)", 100 + turn);
        link.command(&insert).unwrap();
        link.command("COMMIT").unwrap();
    }
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), 62);
}
