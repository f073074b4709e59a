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
