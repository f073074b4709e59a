//! Statements that take long are in the log.

use crate::support::{Cluster, READY_LIMIT, wait_until};

#[test]
fn slow_statements_are_logged() {
    let mut cluster = Cluster::start("slow-log", 1, 2);
    let mut link = cluster.link(0, "postgres");
    link.command("SELECT pg_sleep(0.2)").unwrap();
    link.command("SET log_min_duration_statement = 100")
        .unwrap();
    link.command("SELECT pg_sleep(0.2), 'of a session'")
        .unwrap();
    link.command("SELECT 1, 'of a session'").unwrap();
    link.command("SET log_min_duration_statement = -1").unwrap();
    let long = format!("SELECT pg_sleep(0.2), '{}'", "x".repeat(100_000));
    let is_logged = |cluster: &Cluster, text: &str| cluster.said(0).contains(text);
    wait_until("the line", READY_LIMIT, || {
        is_logged(&cluster, "of a session")
    });
    cluster.reconfigure(|file| file.log_min_duration_ms = Some(150));
    let mut link = cluster.link(0, "postgres");
    link.command(&long).unwrap();
    link.command("SELECT 2; SELECT pg_sleep(0.2), 'of two'; SELECT 3")
        .unwrap();
    wait_until("the line", READY_LIMIT, || is_logged(&cluster, "of two"));
    let said = cluster.said(0);
    let mut of_sleepers = 0;
    for line in said.lines().filter(|line| line.contains("slow statement")) {
        // Another one is there only if it was slow, as on a machine that stood still.
        let ms = line
            .split(" ms=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        assert!(ms.unwrap().parse::<u64>().unwrap() >= 100, "{line}");
        of_sleepers += u32::from(line.contains("pg_sleep"));
    }
    assert_eq!(of_sleepers, 3, "{said}");
    assert!(said.len() < 50_000, "texts are cut off");
}
