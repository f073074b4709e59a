//! Rows of several mebibytes between nodes, and conditions that no message can carry.

use crate::support::{Cluster, number, sqlstate};

/// Of ten rows: more than a message between nodes carries.
const ROW_BYTES: i64 = 2 << 20;

#[test]
fn large_rows_go_between_nodes_and_what_is_too_large_is_an_error() {
    let cluster = Cluster::start("large", 2, 1);
    for protocol in ["two_phase", "leap"] {
        let table = "CREATE TABLE t (id int PRIMARY KEY, x text)";
        cluster.create_as(protocol, protocol, &[table]);
        let (mut here, mut there) = (cluster.link(0, protocol), cluster.link(1, protocol));
        let insert = format!(
            "INSERT INTO t SELECT g, repeat('x', {ROW_BYTES}) FROM generate_series(1, 10) g"
        );
        here.command(&insert).unwrap();
        let sum = "SELECT sum(length(x)) FROM t";
        assert_eq!(number(&mut there, sum), 10 * ROW_BYTES);
        // They move under leap.
        there
            .command("UPDATE t SET x = left(x, -1) WHERE id < 4")
            .unwrap();
        assert_eq!(number(&mut here, sum), 10 * ROW_BYTES - 3);
        for link in [&mut here, &mut there] {
            let wide = "SELECT count(*) FROM t WHERE x < repeat('y', 19000000)";
            assert_eq!(sqlstate(link, wide), "54000", "{protocol}");
            assert_eq!(number(link, "SELECT count(*) FROM t"), 10);
        }
    }
}
