//! Readers whose clients fall silent, on another node than the writers that wait for them.

use crate::support::{Cluster, number, sqlstate};
use std::time::{Duration, Instant};

#[test]
fn an_idle_reader_gives_way_to_a_writer_of_another_node() {
    let cluster = Cluster::start("give-way", 2, 1);
    for protocol in ["two_phase", "leap"] {
        let table = "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)";
        let fill = "INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g";
        cluster.create_as(protocol, protocol, &[table, fill]);
        let (mut reader, mut writer) = (cluster.link(0, protocol), cluster.link(1, protocol));
        // Rows of both nodes.
        for id in 1..=4 {
            let read = format!("SELECT v FROM t WHERE id = {id}");
            reader.command("BEGIN").unwrap();
            assert_eq!(number(&mut reader, &read), 0);
            let begun = Instant::now();
            let update = format!("UPDATE t SET v = length(format('%s', v)) WHERE id = {id}");
            writer.command(&update).unwrap();
            let waited = begun.elapsed();
            // If the reader did not give way, it would not end.
            assert!(waited < Duration::from_secs(25), "{protocol}: {waited:?}");
            if id % 2 == 0 {
                reader.command("COMMIT").unwrap();
            } else {
                assert_eq!(sqlstate(&mut reader, &read), "40001", "{protocol}");
                reader.command("ROLLBACK").unwrap();
            }
            assert_eq!(number(&mut reader, &read), 1);
        }
    }
}
