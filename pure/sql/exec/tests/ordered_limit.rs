//! ORDER BY with LIMIT over rows of all shards: the first rows of every slot are enough, and the
//! result is that of sorting everything.

mod fake;

use base::{Datum, SLOT_COUNT};
use fake::Cluster;

/// Rows of a statement, and how many rows its scans have looked at.
fn run(cluster: &Cluster, text: &str, params: &[i64]) -> (Vec<Vec<String>>, u64) {
    let params: Vec<Datum> = params.iter().map(|value| Datum::Int(*value)).collect();
    let before = cluster.state.rows_read.get();
    let outcome = cluster
        .run_with(text, &params, "")
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    (outcome.rows, cluster.state.rows_read.get() - before)
}

fn table(rows: u32) -> Cluster {
    let cluster = Cluster::new();
    for text in [
        "CREATE TABLE o (a int, b int, c int, d text, e int NOT NULL, PRIMARY KEY (a, b))",
        "CREATE INDEX o_c ON o (c, d DESC)",
        "CREATE INDEX o_e ON o (e)",
        &format!(
            "INSERT INTO o SELECT i / 10, i % 10, nullif(i * 7919 % 1000, 13), 'd' || i % 7, \
             i * 31 % 5000 FROM generate_series(1, {rows}) i"
        ),
    ] {
        let done = cluster.run(text);
        done.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    cluster
}

/// Orders that an index has, each with conditions that it may stand beside, and the rows that may
/// be read beside one or two for each slot.
const ORDERS: [(&str, &str, u64); 15] = [
    ("true", "a, b", 60),
    ("true", "a", 60),
    ("true", "a DESC, b DESC", 60),
    ("a > 40", "a, b", 60),
    ("a BETWEEN 40 AND 90", "a DESC", 60),
    ("a > 40 AND c % 2 = 0", "a, b", 400),
    ("a = 17", "b DESC", 60),
    ("a = 17", "b", 60),
    ("a IN (17, 18, 19)", "b", 60),
    ("(a, b) > (50, 5)", "a", 60),
    ("true", "c", 60),
    ("true", "c DESC, d", 60),
    ("c > 500", "c, d DESC", 60),
    ("c = 77", "d DESC", 60),
    ("e > 100", "e", 100),
];

#[test]
fn first_rows_are_those_of_the_whole_order() {
    let cluster = table(1_500);
    for (condition, order, _) in ORDERS {
        // The other columns make the order one of all rows.
        let columns = order.replace(" DESC", "");
        let all = format!("SELECT {columns} FROM o WHERE {condition} ORDER BY {order}");
        let (all, _) = run(&cluster, &all, &[]);
        for (limit, offset) in [(1, 0), (5, 0), (3, 4), (0, 2), (40, 1_450), (2_000, 0)] {
            let text = format!(
                "SELECT {columns} FROM o WHERE {condition} ORDER BY {order} LIMIT $1 OFFSET $2"
            );
            let (rows, _) = run(&cluster, &text, &[limit, offset]);
            let wanted = all.iter().skip(offset as usize).take(limit as usize);
            let wanted: Vec<_> = wanted.cloned().collect();
            assert_eq!(rows, wanted, "{text} with {limit}, {offset}");
        }
    }
}

#[test]
fn what_is_read_does_not_grow_with_the_table() {
    let (small, large) = (table(6_000), table(12_000));
    for (condition, order, beside) in ORDERS {
        let text = format!("SELECT * FROM o WHERE {condition} ORDER BY {order} LIMIT 3 OFFSET 2");
        for cluster in [&small, &large] {
            let (rows, read) = run(cluster, &text, &[]);
            assert_eq!(rows.len(), 3, "{text}");
            // One round over the slots, or two where the first was not enough.
            let most = u64::from(SLOT_COUNT) + beside;
            assert!(read <= most, "{text}: {read} rows were read");
        }
    }
    let (rows, read) = run(&large, "SELECT max(e), 1 FROM o", &[]);
    assert_eq!(rows[0][0], "4999");
    assert!(read <= u64::from(SLOT_COUNT) + 60, "{read}");
    let (rows, read) = run(&large, "SELECT min(a) FROM o WHERE a > 3", &[]);
    assert_eq!(rows[0][0], "4");
    assert!(read <= u64::from(SLOT_COUNT) + 60, "{read}");
}

#[test]
fn an_order_that_no_index_has_is_sorted() {
    let cluster = table(1_500);
    for order in ["b", "a, b DESC", "c NULLS FIRST", "d", "a DESC, b", "c, d"] {
        let columns = order.replace(" DESC", "").replace(" NULLS FIRST", "");
        let text = format!("SELECT {columns} FROM o ORDER BY {order}");
        let (mut all, _) = run(&cluster, &text, &[]);
        let (rows, read) = run(&cluster, &format!("{text} LIMIT 7"), &[]);
        all.truncate(7);
        assert_eq!(rows, all, "{order}");
        assert_eq!(read, 1_500, "{order}");
    }
}

#[test]
fn a_list_of_values_behind_the_prefix_fixes_no_order() {
    let cluster = Cluster::new();
    for text in [
        "CREATE TABLE p (a int, b int, c int, PRIMARY KEY (a, b, c)) PARTITION BY (a)",
        "INSERT INTO p SELECT 1, b, c FROM generate_series(1, 5) b, generate_series(1, 3) c",
    ] {
        cluster.run(text).expect(text);
    }
    let text = "SELECT c, b FROM p WHERE a = 1 AND c IN (1, 3) ORDER BY c, b LIMIT 3";
    let (rows, _) = run(&cluster, text, &[]);
    let wanted = [["1", "1"], ["1", "2"], ["1", "3"]];
    assert_eq!(rows, wanted);
}
