//! Formulas on replicated tables: they change each copy where it is.

use crate::support::{Cluster, number, patiently, rows};
use links::link::Link;

const CLIENTS: usize = 4;
const ROUNDS: usize = 30;

/// Changes by which all clients meet at the same rows.
const CHANGES: [&str; 4] = [
    "UPDATE r SET n = n + 1 WHERE id = 1",
    "UPDATE r SET n = CASE WHEN n >= 20 THEN n - 13 ELSE n + 17 END WHERE id = 2",
    "UPDATE r SET t = t || 'x', n = n + 1 WHERE id IN (2, 3)",
    "UPDATE r SET n = (n * 7 + 1) % 1009 WHERE id = 4 AND n <> 5",
];

fn change(link: &mut Link) {
    for _ in 0..ROUNDS {
        for sql in CHANGES {
            patiently(link, sql);
        }
    }
}

#[test]
fn copies_stay_equal_while_all_nodes_change_them() {
    for protocol in ["two_phase", "formula"] {
        let cluster = Cluster::start(&format!("copies_{protocol}"), 3, 2);
        let tables = [
            "CREATE TABLE r (id int PRIMARY KEY, n int, t text) WITH (replicated = true)",
            "INSERT INTO r VALUES (1, 0, ''), (2, 0, ''), (3, 0, ''), (4, 0, '')",
        ];
        cluster.create_as(protocol, "shop", &tables);
        std::thread::scope(|scope| {
            for at in 0..CLIENTS {
                let mut link = cluster.link(at % 3, "shop");
                scope.spawn(move || change(&mut link));
            }
        });
        let whole = (CLIENTS * ROUNDS) as i64;
        let all = "SELECT * FROM r ORDER BY id";
        let first = rows(&mut cluster.link(0, "shop"), all);
        for node in 0..3 {
            let mut link = cluster.link(node, "shop");
            assert_eq!(rows(&mut link, all), first, "{protocol}, node {node}");
            let sum = number(&mut link, "SELECT n FROM r WHERE id = 1");
            assert_eq!(sum, whole, "{protocol}, node {node}");
            let length = number(&mut link, "SELECT length(t) FROM r WHERE id = 3");
            assert_eq!(length, whole, "{protocol}, node {node}");
        }
    }
}
