//! Schema changes over existing rows: more of them than one batch takes, on several shards.

use crate::support::{Cluster, number, rows, sqlstate};
use std::time::Duration;

/// Well above the rows of one batch on each of four shards.
const ROWS: i64 = 36_000;

#[test]
fn a_primary_key_and_an_index_come_to_a_table_with_rows() {
    let mut cluster = Cluster::start("schema", 2, 2);
    let mut link = cluster.link(0, "postgres");
    let run = [
        "CREATE TABLE t (a int NOT NULL, b int NOT NULL, c text)".to_string(),
        format!("INSERT INTO t SELECT i, i % 7, 'x' || i FROM generate_series(1, {ROWS}) AS s(i)"),
    ];
    for statement in &run {
        link.command(statement).unwrap();
    }
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), ROWS);
    link.command("ALTER TABLE t ADD PRIMARY KEY (a)").unwrap();
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), ROWS);
    assert_eq!(
        number(&mut link, "SELECT sum(a) FROM t"),
        ROWS * (ROWS + 1) / 2
    );
    link.command("CREATE INDEX t_b ON t (b)").unwrap();
    let by_index =
        (0..7).map(|b| number(&mut link, &format!("SELECT count(*) FROM t WHERE b = {b}")));
    assert_eq!(by_index.sum::<i64>(), ROWS);
    assert_eq!(
        number(&mut link, "SELECT b FROM t WHERE a = 8999"),
        8_999 % 7
    );
    assert_eq!(
        sqlstate(&mut link, "CREATE UNIQUE INDEX t_u ON t (b)"),
        "23505"
    );
    // The failed index has left nothing behind.
    link.command("INSERT INTO t VALUES (0, 0, NULL)").unwrap();
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), ROWS + 1);
    link.close();
    cluster.stop_all();
    cluster.start_all();
    let mut link = cluster.link(1, "postgres");
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), ROWS + 1);
    assert_eq!(
        number(&mut link, "SELECT count(*) FROM t WHERE b = 3"),
        (ROWS - 3) / 7 + 1
    );
    link.close();
}

/// A block on node 2 that has written, and one that is about to, beside an index that node 1 makes.
#[test]
fn a_schema_change_waits_for_blocks_that_have_written() {
    let cluster = Cluster::start("schema-waits", 2, 1);
    for protocol in ["two_phase", "leap"] {
        let table = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)";
        let fill = "INSERT INTO t SELECT g, g FROM generate_series(1, 20) g";
        cluster.create_as(protocol, protocol, &[table, fill]);
        let (mut wrote, mut late) = (cluster.link(1, protocol), cluster.link(1, protocol));
        for link in [&mut wrote, &mut late] {
            link.command("BEGIN").unwrap();
            assert_eq!(number(link, "SELECT v FROM t WHERE id = 3"), 3);
        }
        wrote.command("UPDATE t SET v = 90 WHERE id = 4").unwrap();
        let (change, second) = std::thread::scope(|scope| {
            let change = scope.spawn(|| {
                let mut link = cluster.link(0, protocol);
                link.command("CREATE INDEX t_v ON t (v)").map(drop)
            });
            // The change is on its way, and waits for the block.
            std::thread::sleep(Duration::from_millis(300));
            assert!(!change.is_finished(), "{protocol}: the block is open");
            let second = scope.spawn(|| {
                late.command("UPDATE t SET v = 91 WHERE id = 5").unwrap();
                late.command("COMMIT").map(drop)
            });
            wrote.command("UPDATE t SET v = 92 WHERE id = 6").unwrap();
            wrote.command("COMMIT").unwrap();
            let end = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap();
            (end(change), end(second))
        });
        change.unwrap();
        second.unwrap();
        let indexed = "SELECT count(*) FROM t WHERE v >= 90 AND v <= 92";
        assert_eq!(number(&mut cluster.link(1, protocol), indexed), 3);
    }
}

/// What the functions say of keys is where SHOW PLACEMENT counts their rows.
#[test]
fn functions_tell_where_a_key_lives() {
    let cluster = Cluster::start("shard-of", 2, 2);
    let table = "CREATE TABLE t (a int, b text, v int, PRIMARY KEY (a, b)) PARTITION BY (a, b)";
    let fill = "INSERT INTO t SELECT g, 'x' || g, 0 FROM generate_series(1, 400) g";
    cluster.create_as("two_phase", "shop", &[table, fill]);
    let mut link = cluster.link(1, "shop");
    let told = "SELECT trellis_shard_of('t', a::text, b), count(*), \
                min(trellis_node_of('t', a::text, b)) FROM t GROUP BY 1 ORDER BY 1";
    let told = rows(&mut link, told);
    let mut placed: Vec<Vec<String>> = rows(&mut link, "SHOW PLACEMENT");
    placed.sort();
    let placed = placed.iter().map(|row| (row[2].clone(), row[4].clone()));
    let placed: Vec<(String, String)> = placed.collect();
    let shards: Vec<(String, String)> = told
        .iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    assert_eq!(shards, placed, "four shards have rows");
    for row in &told {
        assert!(row[0].starts_with(&format!("n{}.", row[2])), "{row:?}");
    }
    let wrong = [
        ("SELECT trellis_shard_of('t', '1')", "22023"),
        ("SELECT trellis_node_of('t', 'x', 'y')", "22P02"),
        ("SELECT trellis_node_of('nothing', '1')", "42P01"),
    ];
    for (sql, state) in wrong {
        assert_eq!(sqlstate(&mut link, sql), state, "{sql}");
    }
}
