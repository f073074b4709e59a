//! The audit log tells of logins and changes, and limits of sessions hold on a node.

use crate::support::{Cluster, READY_LIMIT, connect_as, sqlstate, wait_until};
use links::link::LinkError;
use links::url::Endpoint;
use std::path::PathBuf;

fn log_of(cluster: &Cluster, node: usize) -> PathBuf {
    cluster
        .folder()
        .join(format!("node-{}/audit.log", node + 1))
}

fn lines(cluster: &Cluster, node: usize) -> Vec<String> {
    let text = std::fs::read_to_string(log_of(cluster, node)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The SQLSTATE with which a login fails.
fn refusal(address: &Endpoint, user: &str) -> String {
    match connect_as(address, user) {
        Err(LinkError::Server(error)) => error.sqlstate,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{user} was let in"),
    }
}

#[test]
fn logins_and_changes_are_in_the_audit_log() {
    let mut cluster = Cluster::start("audit", 1, 2);
    let mut link = cluster.link(0, "postgres");
    link.command("CREATE ROLE before LOGIN").unwrap();
    assert!(!log_of(&cluster, 0).exists(), "it is off");
    cluster.reconfigure(|file| file.audit_log_mib = Some(1));
    let mut link = cluster.link(0, "postgres");
    link.command("CREATE ROLE carl LOGIN PASSWORD 'open sesame'")
        .unwrap();
    link.command("CREATE TABLE t (a int PRIMARY KEY)").unwrap();
    link.command("GRANT SELECT ON t TO carl").unwrap();
    assert_eq!(sqlstate(&mut link, "DROP TABLE t, nothing"), "42P01");
    link.command("INSERT INTO t VALUES (1)").unwrap();
    link.command("ALTER ROLE carl NOLOGIN").unwrap();
    let address = cluster.endpoint(0);
    assert_eq!(refusal(&address, "carl"), "28000");
    let has = |kind: &str, part: &str| {
        let kind = format!("\"kind\":\"{kind}\"");
        let lines = lines(&cluster, 0);
        lines
            .iter()
            .any(|line| line.contains(&kind) && line.contains(part))
    };
    wait_until("the last line", READY_LIMIT, || has("login", "28000"));
    assert!(has("login", "\"ok\":true"));
    assert!(has("role", "CREATE ROLE carl LOGIN PASSWORD '***'"));
    assert!(has("ddl", "CREATE TABLE t"));
    assert!(has("grant", "GRANT SELECT ON t TO carl"));
    assert!(has("ddl", "\"ok\":false") && has("ddl", "42P01"));
    let all = lines(&cluster, 0).join("\n");
    assert!(!all.contains("sesame") && !all.contains("INSERT"), "{all}");
}

#[test]
fn a_role_has_as_many_sessions_as_its_limit_says() {
    let cluster = Cluster::start("session-limits", 1, 2);
    let mut link = cluster.link(0, "postgres");
    link.command("CREATE ROLE two LOGIN CONNECTION LIMIT 2")
        .unwrap();
    let address = cluster.endpoint(0);
    let first = connect_as(&address, "two").unwrap();
    let second = connect_as(&address, "two").unwrap();
    assert_eq!(refusal(&address, "two"), "53300");
    drop(first);
    wait_until("a place", READY_LIMIT, || {
        connect_as(&address, "two").is_ok()
    });
    drop(second);
    link.command("CREATE DATABASE small WITH CONNECTION LIMIT = 0")
        .unwrap();
    link.command("ALTER ROLE two CONNECTION LIMIT -1").unwrap();
    link.command("ALTER DATABASE postgres CONNECTION LIMIT 0")
        .unwrap();
    assert_eq!(refusal(&address, "two"), "53300");
    // Superusers have no limit.
    cluster.link(0, "small");
}
