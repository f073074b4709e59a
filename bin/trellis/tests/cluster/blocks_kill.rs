//! A node is killed under a session whose open block has changed the schema: all of that is undone.

use crate::support::{Cluster, READY_LIMIT, number, rows, wait_until};
use std::time::Duration;

/// The others notice and undo so soon, a busy machine included. Before the node is back: it is
/// started only then.
const UNDONE_WITHIN: Duration = Duration::from_secs(30);

#[test]
fn the_block_of_a_killed_node_leaves_the_schema_as_it_was() {
    let mut cluster = Cluster::start("blocks-kill", 3, 1);
    let begin = [
        "CREATE TABLE kept (a int PRIMARY KEY, b int)",
        "CREATE INDEX kept_b ON kept (b)",
        "INSERT INTO kept SELECT i, i % 7 FROM generate_series(1, 500) AS s(i)",
        "CREATE TABLE changed (a int PRIMARY KEY)",
        "INSERT INTO changed VALUES (1), (2)",
    ];
    cluster.create("shop", &begin);
    for victim in [2, 1] {
        let mut link = cluster.link(victim, "shop");
        for sql in [
            "BEGIN",
            "CREATE TABLE made (a int PRIMARY KEY)",
            "INSERT INTO made VALUES (1)",
            "ALTER TABLE changed ADD COLUMN c int DEFAULT 5",
            "DROP TABLE kept",
            "CREATE TABLE kept (other text)",
            "INSERT INTO kept VALUES ('x')",
        ] {
            link.command(sql).unwrap();
        }
        cluster.kill(victim);
        let mut other = cluster.link(3 - victim, "shop");
        wait_until("the schema is as before", UNDONE_WITHIN, || {
            number(
                &mut other,
                "SELECT count(*) FROM pg_class WHERE relname = 'made'",
            ) == 0
        });
        let columns = "SELECT column_name FROM information_schema.columns \
                       WHERE table_name IN ('kept', 'changed') ORDER BY table_name, column_name";
        let columns: Vec<String> = rows(&mut other, columns).concat();
        assert_eq!(columns, ["a", "a", "b"]);
        cluster.spawn(victim);
        cluster.wait_ready(victim);
        cluster.wait_connected();
        let mut link = cluster.link(victim, "shop");
        wait_until("rows answer", READY_LIMIT, || {
            link.command("SELECT count(*) FROM kept").is_ok()
        });
        assert_eq!(number(&mut link, "SELECT count(*) FROM kept"), 500);
        assert_eq!(
            number(&mut link, "SELECT count(*) FROM kept WHERE b = 3"),
            72
        );
        wait_until("it can be written", READY_LIMIT, || {
            link.command("UPDATE changed SET a = a").is_ok()
        });
    }
}
