//! Rows of several mebibytes between nodes, and conditions that no message can carry.

use crate::support::{Cluster, rows_patiently, sqlstate};
use links::link::Link;

/// Together more than a message between nodes carries.
const ROWS: i64 = 10;
const ROW_BYTES: i64 = 2 << 20;

/// The only cell of a query. Without optimisation a row takes a good part of a second on its way,
/// and a busy machine may take a node that encodes for one that is away: then it is asked again.
fn number(link: &mut Link, sql: &str) -> i64 {
    rows_patiently(link, sql)[0][0].parse().unwrap()
}

/// A change that is too large for one step of the journal, of a row that another node has. Under
/// leap it is sent to the row, and must come back undone: it ended that node.
#[test]
fn a_large_change_of_a_row_elsewhere_commits() {
    let cluster = Cluster::start("large-change", 2, 1);
    for protocol in ["two_phase", "leap", "formula"] {
        let table = "CREATE TABLE t (id int PRIMARY KEY, x text)";
        cluster.create_as(protocol, protocol, &[table]);
        let mut links = [0, 1].map(|at| cluster.link(at, protocol));
        let insert = "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 8) g";
        links[0].command(insert).unwrap();
        for id in 1..=8 {
            for link in &mut links {
                let append = format!("UPDATE t SET x = x || repeat('y', 600000) WHERE id = {id}");
                link.command(&append).unwrap();
            }
            let set = format!(
                "UPDATE t SET x = x || '{}' WHERE id = {id}",
                "z".repeat(600_000)
            );
            links[id % 2].command(&set).unwrap();
        }
        let sum = number(&mut links[1], "SELECT sum(length(x)) FROM t");
        assert_eq!(sum, 8 * 1_800_001, "{protocol}");
    }
}

#[test]
fn large_rows_go_between_nodes_and_what_is_too_large_is_an_error() {
    let cluster = Cluster::start("large", 2, 1);
    for protocol in ["two_phase", "leap"] {
        let table = "CREATE TABLE t (id int PRIMARY KEY, x text)";
        cluster.create_as(protocol, protocol, &[table]);
        let (mut here, mut there) = (cluster.link(0, protocol), cluster.link(1, protocol));
        let insert = format!(
            "INSERT INTO t SELECT g, repeat('x', {ROW_BYTES}) FROM generate_series(1, {ROWS}) g"
        );
        rows_patiently(&mut here, &insert);
        let sum = "SELECT sum(length(x)) FROM t";
        assert_eq!(number(&mut there, sum), ROWS * ROW_BYTES);
        for link in [&mut here, &mut there] {
            let wide = "SELECT count(*) FROM t WHERE x < repeat('y', 19000000)";
            assert_eq!(sqlstate(link, wide), "54000", "{protocol}");
        }
        // They move under leap.
        rows_patiently(
            &mut there,
            "UPDATE t SET x = left(x, -1) WHERE id < 4 RETURNING id",
        );
        assert_eq!(number(&mut here, sum), ROWS * ROW_BYTES - 3);
    }
}
