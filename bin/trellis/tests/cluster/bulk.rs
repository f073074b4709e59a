//! Statements with many rows, over several shards and nodes, under each protocol.

use crate::support::{Cluster, number, sqlstate};
use links::link::{Link, LinkError};

/// More than a COPY writes at a time.
const ROWS: i64 = 9_000;

/// Rows `from..to`, the last of them changed by `change`.
fn data(from: i64, to: i64, change: impl Fn(i64) -> String) -> Vec<u8> {
    let line = |n: i64| match n == to - 1 {
        true => change(n),
        false => format!("{n}\t{}\t1\n", n * 2),
    };
    (from..to).map(line).collect::<String>().into_bytes()
}

fn as_it_is(n: i64) -> String {
    format!("{n}\t{}\t1\n", n * 2)
}

fn copy(link: &mut Link, rows: &[u8]) -> Result<u64, String> {
    link.copy_in("COPY t FROM STDIN", rows)
        .map_err(|error| match error {
            LinkError::Server(error) => error.sqlstate,
            other => panic!("{other}"),
        })
}

fn check(protocol: &str) {
    let mut cluster = Cluster::start(&format!("bulk-{protocol}"), 2, 2);
    cluster.create_as(
        protocol,
        "load",
        &["CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c int CHECK (c > 0))"],
    );
    let mut link = cluster.link(0, "load");
    assert_eq!(
        copy(&mut link, &data(1, ROWS + 1, as_it_is)),
        Ok(ROWS as u64)
    );
    // The last row of each load is wrong, and none of the others stays.
    let more = |change: fn(i64) -> String| data(ROWS + 1, 2 * ROWS, change);
    let refused = |n: &str| Err(n.to_string());
    assert_eq!(
        copy(&mut link, &more(|n| format!("7\t{n}1\t1\n"))),
        refused("23505")
    );
    assert_eq!(
        copy(&mut link, &more(|n| format!("{n}\t14\t1\n"))),
        refused("23505")
    );
    assert_eq!(
        copy(&mut link, &more(|n| format!("{n}\t{}\t1\n", n * 2 - 2))),
        refused("23505")
    );
    assert_eq!(
        copy(&mut link, &more(|n| format!("{n}\t{n}\t0\n"))),
        refused("23514")
    );
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), ROWS);
    // Rolled back as a whole; and once more in the same transaction as it was removed.
    link.command("BEGIN").unwrap();
    assert!(copy(&mut link, &more(as_it_is)).is_ok());
    link.command("ROLLBACK").unwrap();
    link.command("BEGIN").unwrap();
    link.command("DELETE FROM t WHERE a > 8000").unwrap();
    assert!(copy(&mut link, &data(8_001, ROWS + 1, as_it_is)).is_ok());
    link.command("COMMIT").unwrap();
    let double = format!(
        "INSERT INTO t SELECT n, -n, 1 FROM generate_series({}, 500, -1) AS s(n)",
        ROWS + 700
    );
    assert_eq!(sqlstate(&mut link, &double), "23505");
    link.close();
    cluster.kill(0);
    cluster.kill(1);
    cluster.start_all();
    let mut link = cluster.link(1, "load");
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), ROWS);
    assert_eq!(number(&mut link, "SELECT sum(b) FROM t"), ROWS * (ROWS + 1));
    assert_eq!(number(&mut link, "SELECT a FROM t WHERE b = 17000"), 8_500);
    link.close();
}

#[test]
fn many_rows_are_written_or_none_under_two_phase() {
    check("two_phase");
}

#[test]
fn many_rows_are_written_or_none_under_leap() {
    check("leap");
}
