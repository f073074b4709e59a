//! Errors of every class with PostgreSQL's SQLSTATE; the session goes on after each.

use crate::support::{Cluster, number, sqlstate};

const SCHEMA: &[&str] = &[
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE t (id int PRIMARY KEY, small smallint, name varchar(3), n int CHECK (n > 0), \
     must int NOT NULL DEFAULT 1, other int UNIQUE, parent int REFERENCES parent)",
    "INSERT INTO parent VALUES (1)",
    "INSERT INTO t (id, other) VALUES (1, 1), (2, 2)",
];

const CASES: &[(&str, &str)] = &[
    // Data exceptions.
    ("22012", "SELECT 1 / 0"),
    ("22012", "SELECT 1.5 % 0"),
    ("22003", "SELECT 2147483647 + 1"),
    ("22003", "SELECT 9223372036854775807 + 1"),
    ("22003", "INSERT INTO t (id, small) VALUES (9, 40000)"),
    ("22003", "SELECT 99999999999::int"),
    ("22P02", "SELECT 'x'::int"),
    ("22P02", "INSERT INTO t (id) VALUES ('nine')"),
    ("22P02", "SELECT 'no'::uuid"),
    ("22001", "INSERT INTO t (id, name) VALUES (9, 'four')"),
    ("22007", "SELECT 'yesterweek'::date"),
    ("22008", "SELECT '2023-02-30'::date"),
    ("21000", "SELECT (SELECT id FROM t)"),
    // Constraints.
    ("23505", "INSERT INTO t (id) VALUES (1)"),
    ("23505", "INSERT INTO t (id, other) VALUES (9, 1)"),
    ("23505", "UPDATE t SET other = 2 WHERE id = 1"),
    ("23502", "INSERT INTO t (id, must) VALUES (9, NULL)"),
    ("23502", "INSERT INTO t (name) VALUES ('a')"),
    ("23514", "INSERT INTO t (id, n) VALUES (9, 0)"),
    ("23503", "INSERT INTO t (id, parent) VALUES (9, 77)"),
    // Names and types.
    ("42P01", "SELECT * FROM nothing"),
    ("42P01", "INSERT INTO nothing VALUES (1)"),
    ("42P01", "DROP TABLE nothing"),
    ("42703", "SELECT nothing FROM t"),
    ("42703", "UPDATE t SET nothing = 1"),
    ("42702", "SELECT id FROM t a, t b"),
    ("42883", "SELECT nothing(1)"),
    ("42883", "SELECT 'a'::text + 1"),
    ("42804", "SELECT id FROM t WHERE 5"),
    ("42803", "SELECT id, count(*) FROM t GROUP BY name"),
    ("42704", "SELECT 1::nothing"),
    ("42P07", "CREATE TABLE t (id int PRIMARY KEY)"),
    ("42701", "CREATE TABLE u (id int PRIMARY KEY, id int)"),
    ("42P04", "CREATE DATABASE postgres"),
    ("42601", "SELEC 1"),
    ("42601", "SELECT 1 FROM t WHERE"),
    ("42601", "SELECT FROM WHERE"),
    ("42601", "INSERT INTO order VALUES (1)"),
    ("42601", "UPDATE t SET"),
    ("42601", "INSERT INTO t (id, n) VALUES (9)"),
    // What does not exist yet or here.
    ("0A000", "DO $$ BEGIN COMMIT; END $$"),
    ("3D000", "DROP DATABASE nothing"),
    ("26000", "EXECUTE nothing"),
    ("42704", "SHOW nothing"),
    ("22023", "SET statement_timeout = 'often'"),
];

fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::start(name, 1, 2);
    cluster.create("shop", SCHEMA);
    cluster
}

#[test]
fn every_class_has_its_sqlstate_and_the_session_goes_on() {
    let cluster = cluster("errors");
    let mut link = cluster.link(0, "shop");
    let mut wrong = Vec::new();
    for (expected, sql) in CASES {
        let found = match link.command(sql) {
            Err(links::link::LinkError::Server(error)) => error.sqlstate,
            Err(error) => panic!("{sql}: {error}"),
            Ok(()) => "no error".into(),
        };
        if found != *expected {
            wrong.push(format!("{sql}: {found}, not {expected}"));
        }
        assert_eq!(number(&mut link, "SELECT 7"), 7, "after {sql}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), 2);
}

#[test]
fn a_failed_block_takes_nothing_but_its_end() {
    let cluster = cluster("block");
    let mut link = cluster.link(0, "shop");
    for (expected, sql) in CASES.iter().filter(|case| case.0.starts_with("22")) {
        link.command("BEGIN").unwrap();
        link.command("INSERT INTO t (id) VALUES (50)").unwrap();
        assert_eq!(sqlstate(&mut link, sql), *expected, "{sql}");
        assert_eq!(sqlstate(&mut link, "SELECT 1"), "25P02");
        link.command("COMMIT").unwrap();
    }
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), 2);
    link.command("BEGIN READ ONLY").unwrap();
    assert_eq!(sqlstate(&mut link, "DELETE FROM t"), "25006");
    link.command("ROLLBACK").unwrap();
    link.command("BEGIN").unwrap();
    assert_eq!(sqlstate(&mut link, "CREATE DATABASE other"), "25001");
    link.command("ROLLBACK").unwrap();
    assert_eq!(number(&mut link, "SELECT 1"), 1);
}

#[test]
fn deep_and_huge_statements_are_refused() {
    let cluster = cluster("deep");
    let mut link = cluster.link(0, "shop");
    for depth in [1_000, 100_000] {
        let deep = format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(sqlstate(&mut link, &deep), "54001", "{depth} parentheses");
    }
    let minus = format!("SELECT {} 1", "- ".repeat(100_000));
    assert_eq!(sqlstate(&mut link, &minus), "54001");
    let many: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
    let list = format!("SELECT count(*) FROM t WHERE id IN ({})", many.join(","));
    assert_eq!(number(&mut link, &list), 2);
    let huge = format!("SELECT '{}'", "x".repeat(9 << 20));
    assert!(["54000", "54001", "53400"].contains(&sqlstate(&mut link, &huge).as_str()));
    assert_eq!(number(&mut link, "SELECT 1"), 1);
}

#[test]
fn an_unknown_database_or_user_name_is_told_at_the_start() {
    let cluster = cluster("login");
    let error = cluster.try_link(0, "nothing").unwrap_err().to_string();
    assert!(error.contains("3D000"), "{error}");
    assert_eq!(number(&mut cluster.link(0, "postgres"), "SELECT 1"), 1);
}
