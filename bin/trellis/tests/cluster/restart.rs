//! Nodes that are stopped in good order and started again.

use crate::bank::{self, Clients};
use crate::support::{Cluster, number, patiently, rows};
use std::collections::BTreeSet;

#[test]
fn a_cluster_stopped_by_sigterm_keeps_everything() {
    let mut cluster = Cluster::start("restart", 3, 2);
    cluster.create(
        "shop",
        &[
            "CREATE TABLE item (id int PRIMARY KEY, name text UNIQUE, price numeric(10,2), \
             added timestamp, picture bytea)",
            "CREATE INDEX item_price ON item (price)",
            "CREATE TABLE note (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text)",
            "CREATE TABLE gone (id int PRIMARY KEY)",
            "INSERT INTO item VALUES (1, 'ann''s', 1.50, '2024-02-29 12:00:00.25', '\\x00ff'), \
             (2, NULL, NULL, NULL, NULL), (3, 'Zoë', 99999999.99, '1999-01-01', '')",
            "UPDATE item SET price = price + 1 WHERE id = 1",
            "DELETE FROM item WHERE id = 2",
            "INSERT INTO note (text) VALUES ('a'), ('b'), ('c')",
            "DROP TABLE gone",
        ],
    );
    let query = "SELECT id, name, price, added, picture FROM item ORDER BY id";
    let before = rows(&mut cluster.link(1, "shop"), query);
    assert_eq!(
        before[0],
        ["1", "ann's", "2.50", "2024-02-29 12:00:00.25", "\\x00ff"]
    );
    for round in 1..=3 {
        cluster.stop_all();
        cluster.start_all();
        for at in 0..3 {
            let mut link = cluster.link(at, "shop");
            assert_eq!(rows(&mut link, query), before, "node {at}");
            let by_price = "SELECT id FROM item WHERE price > 3 ORDER BY price";
            assert_eq!(rows(&mut link, by_price), [["3"]]);
            let duplicate = link.command("INSERT INTO item VALUES (9, 'Zoë')");
            assert!(duplicate.is_err_and(|error| error.to_string().contains("23505")));
        }
        let mut link = cluster.link(round % 3, "shop");
        patiently(&mut link, "INSERT INTO note (text) VALUES ('more')");
        let ids = rows(&mut link, "SELECT id FROM note");
        let different: BTreeSet<_> = ids.iter().collect();
        assert_eq!(
            (ids.len(), different.len()),
            (3 + round, 3 + round),
            "{ids:?}"
        );
    }
}

#[test]
fn a_rolling_restart_under_load_loses_nothing() {
    let mut cluster = Cluster::start("rolling", 3, 1);
    bank::open(&cluster);
    let clients = Clients::start(&cluster, 4);
    for at in 0..3 {
        clients.wait_progress(40);
        cluster.stop(at);
        cluster.spawn(at);
        cluster.wait_ready(at);
    }
    clients.wait_progress(40);
    let ledger = clients.finish();
    bank::verify(&cluster, &ledger);
}

#[test]
fn incarnations_count_the_starts() {
    let mut cluster = Cluster::start("incarnation", 2, 1);
    cluster.wait_connected();
    let incarnation = |cluster: &Cluster| {
        let mut link = cluster.link(0, "postgres");
        let nodes = rows(&mut link, "SHOW NODES");
        nodes.iter().find(|row| row[0] == "2").unwrap()[2]
            .parse::<u32>()
            .unwrap()
    };
    let first = incarnation(&cluster);
    cluster.kill(1);
    cluster.start_all();
    cluster.wait_connected();
    assert_eq!(incarnation(&cluster), first + 1);
    cluster.stop(1);
    cluster.start_all();
    cluster.wait_connected();
    assert_eq!(incarnation(&cluster), first + 2);
    assert_eq!(number(&mut cluster.link(1, "postgres"), "SELECT 1"), 1);
}
