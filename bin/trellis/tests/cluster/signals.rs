//! Sessions that cancel and end one another, across shards and nodes, and what is told of them.

use crate::support::{Cluster, pid_of, rows, sqlstate, wait_running};
use links::link::Link;

fn ask(link: &mut Link, sql: &str) -> String {
    rows(link, sql)[0][0].clone()
}

#[test]
fn sessions_are_cancelled_and_ended_from_any_node() {
    let cluster = Cluster::start("signals", 2, 2);
    cluster.wait_connected();
    cluster.create("shop", &["CREATE TABLE t (id int PRIMARY KEY, v int)"]);
    cluster
        .link(0, "shop")
        .command("INSERT INTO t VALUES (1, 0)")
        .unwrap();
    // Every connection of a node is at another shard.
    for (victim_node, judge_node) in [(0, 0), (0, 1), (1, 0), (0, 1)] {
        let mut judge = cluster.link(judge_node, "shop");
        let mut victim = cluster.link(victim_node, "shop");
        let number = pid_of(&mut victim);
        let sleeper = std::thread::spawn(move || {
            let state = sqlstate(&mut victim, "SELECT pg_sleep(600)");
            assert_eq!(state, "57014");
            victim.command("SELECT 1").unwrap();
            victim.command("BEGIN").unwrap();
            victim
                .command("UPDATE t SET v = v + 1 WHERE id = 1")
                .unwrap();
            let victim = victim.postgres().unwrap();
            victim
                .send_message(b'Q', b"SELECT pg_sleep(601)\0")
                .unwrap();
            loop {
                let (tag, body) = victim.next_message().unwrap();
                if tag == b'E' {
                    return String::from_utf8_lossy(body).into_owned();
                }
            }
        });
        wait_running(&mut judge, &number, "pg_sleep(600)");
        let cancel = format!("SELECT pg_cancel_backend({number})");
        assert_eq!(ask(&mut judge, &cancel), "t");
        wait_running(&mut judge, &number, "pg_sleep(601)");
        let end = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = {number} AND \
             usename = 'trellis' AND datname = 'shop' AND xact_start <= now() AND client_port > 0"
        );
        assert_eq!(ask(&mut judge, &end), "t");
        let error = sleeper.join().unwrap();
        assert!(
            error.contains("FATAL") && error.contains("57P01"),
            "{error}"
        );
        assert_eq!(ask(&mut judge, &cancel), "f", "nobody has the number now");
        assert_eq!(ask(&mut judge, "SELECT v FROM t WHERE id = 1"), "0");
    }
    let mut link = cluster.link(0, "shop");
    for sql in [
        "SELECT pg_cancel_backend(0)",
        "SELECT pg_terminate_backend(-3)",
        "SELECT pg_terminate_backend(2000000000)",
    ] {
        assert_eq!(ask(&mut link, sql), "f", "{sql}");
    }
    assert_eq!(
        ask(&mut link, "SELECT pg_cancel_backend(NULL) IS NULL"),
        "t"
    );
    let own = "SELECT pg_cancel_backend(pg_backend_pid())";
    assert_eq!(sqlstate(&mut link, own), "57014");
}

#[test]
fn show_tells_of_sessions_databases_and_tables() {
    let cluster = Cluster::start("show", 2, 1);
    cluster.wait_connected();
    let tables = [
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "CREATE INDEX t_v ON t (v)",
        "CREATE TABLE r (id int PRIMARY KEY) WITH (replicated = true)",
        "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 100) g",
        "INSERT INTO r VALUES (1), (2)",
    ];
    cluster.create("shop", &tables);
    let mut other = cluster.link(1, "shop");
    other.command("SET application_name = 'other'").unwrap();
    other
        .command("BEGIN ISOLATION LEVEL READ COMMITTED")
        .unwrap();
    other.command("SELECT 5").unwrap();
    let mut link = cluster.link(0, "shop");
    let sessions = rows(&mut link, "SHOW SESSIONS");
    let of = |name: &str| sessions.iter().find(|row| row[3] == name).unwrap();
    let [
        _,
        node,
        client,
        _,
        user,
        database,
        protocol,
        isolation,
        state,
        txn_ms,
        statement_ms,
        text,
    ] = of("other").as_slice()
    else {
        panic!("SHOW SESSIONS has 12 columns");
    };
    assert!(client.starts_with("127.0.0.1:"), "{client}");
    assert_eq!(
        [node, user, database, protocol],
        ["2", "trellis", "shop", "two_phase"]
    );
    assert_eq!(
        [isolation, state],
        ["read committed", "idle in transaction"]
    );
    assert!(txn_ms.parse::<u64>().is_ok() && statement_ms.is_empty());
    assert_eq!(text, "SELECT 5");
    let shown = rows(&mut link, "SHOW TABLES");
    assert_eq!(shown[0][..5], ["r", "1", "1", "(replicated)", "2"]);
    assert_eq!(shown[1][..5], ["t", "2", "2", "id", "100"]);
    assert!(shown[1][5].parse::<u64>().unwrap() > 100);
    let shown = rows(&mut link, "SHOW DATABASES");
    let shop = shown.iter().find(|row| row[0] == "shop").unwrap();
    assert_eq!(
        shop[..6],
        ["shop", "two_phase", "interleaved", "2", "2", "102"]
    );
}
