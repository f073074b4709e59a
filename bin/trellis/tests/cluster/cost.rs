//! SHOW TRANSACTION COST tells what the last transaction of a session has cost, and SHOW PLACEMENT
//! which placement that was, under every protocol and while a node is away.

use crate::support::{ANSWER_LIMIT, Cluster, READY_LIMIT, patiently, rows, wait_until};
use links::answers::Answers;
use links::link::Link;
use std::time::Instant;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text NOT NULL)";

/// A key of each of three nodes.
fn keys(link: &mut Link) -> Vec<String> {
    let key = |node: u16| {
        let first = format!("SELECT min(id) FROM t WHERE trellis_node_of('t', id::text) = {node}");
        rows(link, &first)[0][0].clone()
    };
    (1..=3).map(key).collect()
}

/// The only row of SHOW TRANSACTION COST by column names.
fn cost(link: &mut Link) -> impl Fn(&str) -> String + use<> {
    let mut answers = Answers::new();
    link.query("SHOW TRANSACTION COST", &mut answers).unwrap();
    told(&answers, 0)
}

fn told(answers: &Answers, result: usize) -> impl Fn(&str) -> String + use<> {
    assert_eq!(answers.rows(result), 1);
    let names = [
        "outcome",
        "nodes_touched",
        "nodes",
        "shards",
        "messages",
        "messages_after",
        "messages_in_node",
        "message_bytes",
        "delays",
        "forced_writes",
        "rows_moved",
        "move_wait_us",
        "retries",
        "duration_us",
    ];
    assert_eq!(answers.columns(result), names.len());
    let cells = (0..names.len()).map(|at| answers.text(result, 0, at).to_string());
    let cells: Vec<String> = cells.collect();
    move |name| {
        let at = names.iter().position(|known| *known == name);
        cells[at.expect("a column")].clone()
    }
}

fn count(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("no number: {text:?}"))
}

#[test]
fn the_cost_of_the_last_transaction_is_told() {
    let mut cluster = Cluster::start("cost", 3, 1);
    for protocol in ["two_phase", "leap", "formula"] {
        let fill = "INSERT INTO t SELECT g, '' FROM generate_series(1, 100) g";
        cluster.create_as(protocol, protocol, &[TABLE, fill]);
        let mut link = cluster.link(0, protocol);
        assert!(
            rows(&mut link, "SHOW TRANSACTION COST").is_empty(),
            "{protocol}"
        );
        let keys = keys(&mut link);
        // Under leap the rows are where they were written last: that is at home from now on.
        for (at, key) in keys.iter().enumerate() {
            let change = format!("UPDATE t SET v = format('%s', v) WHERE id = {key}");
            for _ in 0..3 {
                patiently(&mut cluster.link(at, protocol), &change);
            }
        }
        far_and_near(&mut link, protocol, &keys);
        rolled_back(&mut link, &keys);
        versions_grow(&cluster, protocol, &keys);
    }
    for protocol in ["two_phase", "leap", "formula"] {
        a_node_dies(&mut cluster, protocol);
    }
}

/// A transaction of two nodes, and one of the session's node, in one query string with the SHOW.
fn far_and_near(link: &mut Link, protocol: &str, keys: &[String]) {
    let change = |key: &String| format!("UPDATE t SET v = v || 'x' WHERE id = {key}");
    let changes: Vec<String> = keys[..2].iter().map(change).collect();
    let all = format!(
        "BEGIN; {}; COMMIT; SHOW TRANSACTION COST",
        changes.join("; ")
    );
    let mut answers = Answers::new();
    link.query(&all, &mut answers).unwrap();
    let far = told(&answers, 4);
    assert_eq!(far("outcome"), "committed", "{protocol}");
    let moves_rows = protocol == "leap";
    assert_eq!(
        [far("nodes_touched"), far("nodes")],
        ["2", "2"],
        "{protocol}"
    );
    assert_eq!(far("retries"), "0", "{protocol}");
    assert!(
        count(&far("messages")) >= 2,
        "{protocol}: {}",
        far("messages")
    );
    assert!(count(&far("delays")) >= 2, "{protocol}");
    assert!(count(&far("forced_writes")) >= 1, "{protocol}");
    assert!(count(&far("duration_us")) > 0, "{protocol}");
    assert_eq!(
        far("message_bytes"),
        "",
        "{protocol}: they were not counted"
    );
    assert_eq!(far("rows_moved"), if moves_rows { "1" } else { "" });
    assert_eq!(far("move_wait_us").is_empty(), !moves_rows);
    // The second time the rows are here, under a protocol that moves them.
    link.command(&change(&keys[0])).unwrap();
    let near = cost(link);
    let named = [
        "outcome",
        "nodes_touched",
        "nodes",
        "shards",
        "messages",
        "message_bytes",
    ];
    assert_eq!(
        named.map(&near),
        ["committed", "1", "1", "1", "0", "0"],
        "{protocol}"
    );
    // It is no transaction itself, and may be asked in a block for the one before.
    link.command("BEGIN").unwrap();
    link.command(&change(&keys[2])).unwrap();
    assert_eq!(cost(link)("nodes_touched"), "1", "{protocol}");
    assert_eq!(cost(link)("duration_us"), near("duration_us"), "{protocol}");
    link.command("COMMIT").unwrap();
    assert!(count(&cost(link)("messages")) >= 2, "{protocol}");
    let explain = format!("EXPLAIN ANALYZE {}", change(&keys[2]));
    link.command(&explain).unwrap();
    assert_eq!(cost(link)("message_bytes") == "0", moves_rows, "{protocol}");
}

fn rolled_back(link: &mut Link, keys: &[String]) {
    link.command("BEGIN").unwrap();
    let delete = format!("DELETE FROM t WHERE id = {}", keys[1]);
    link.command(&delete).unwrap();
    link.command("ROLLBACK").unwrap();
    let told = cost(link);
    assert_eq!([told("outcome"), told("messages")], ["rolled back", ""]);
}

/// The versions of the table and of its owners at the home of a key, from another node.
fn versions(link: &mut Link, node: &str) -> (u64, String) {
    let placed = rows(link, "SHOW PLACEMENT");
    let of_node = |row: &&Vec<String>| row[1] == "t_pkey" && row[2] == format!("n{node}.0");
    let row = placed.iter().find(of_node).expect("each node has rows");
    (count(&row[6]), row[7].clone())
}

fn versions_grow(cluster: &Cluster, protocol: &str, keys: &[String]) {
    let (mut third, mut asks) = (cluster.link(2, protocol), cluster.link(1, protocol));
    let (table, owners) = versions(&mut asks, "2");
    let told = rows(&mut asks, "SELECT trellis_placement_version('t')");
    assert_eq!(told, [[table.to_string()]], "{protocol}");
    // A row of node 2 goes from node 1 to node 3.
    let change = format!("UPDATE t SET v = format('%s', v) WHERE id = {}", keys[1]);
    for _ in 0..3 {
        patiently(&mut third, &change);
    }
    let after = versions(&mut asks, "2");
    assert_eq!(after.0, table, "{protocol}: no schema change");
    match protocol {
        "leap" => assert!(count(&after.1) > count(&owners), "{owners} {after:?}"),
        _ => assert_eq!([owners, after.1], ["", ""], "{protocol}"),
    }
    asks.command("CREATE INDEX ON t (v)").unwrap();
    assert!(versions(&mut asks, "2").0 > table, "{protocol}");
}

/// A node dies in the middle of a transaction: its end is told, and the SHOWs answer.
fn a_node_dies(cluster: &mut Cluster, protocol: &str) {
    let mut link = cluster.link(0, protocol);
    let keys = keys(&mut link);
    link.command("BEGIN").unwrap();
    for key in &keys {
        let change = format!("UPDATE t SET v = v || 'z' WHERE id = {key}");
        link.command(&change).unwrap();
    }
    cluster.kill(2);
    let begun = Instant::now();
    let committed = link.command("COMMIT");
    let told = cost(&mut link);
    match &committed {
        Ok(()) => assert_eq!(told("outcome"), "committed", "{protocol}"),
        Err(_) => assert_ne!(told("outcome"), "committed", "{protocol}: {committed:?}"),
    }
    assert!(!rows(&mut link, "SHOW PLACEMENT").is_empty());
    assert!(begun.elapsed() < ANSWER_LIMIT, "{protocol}: {committed:?}");
    cluster.start_all();
    cluster.wait_connected();
    wait_until("the node takes part again", READY_LIMIT, || {
        let change = format!("UPDATE t SET v = 'back' WHERE id = {}", keys[2]);
        link.command(&change).is_ok()
    });
    assert_eq!(cost(&mut link)("outcome"), "committed", "{protocol}");
}
