//! A local cluster whose nodes die: the others go on, and the dead one is started again.

use crate::local::{Local, stop};
use crate::support::{READY_LIMIT, STOP_LIMIT, number, signal, wait_child, wait_until};

#[test]
fn a_dead_node_is_started_again_while_the_others_go_on() {
    let mut local = Local::start("supervised");
    let mut link = local.link(1, "postgres").unwrap();
    link.command("CREATE TABLE t (id int PRIMARY KEY)").unwrap();
    for id in 0..60 {
        link.command(&format!("INSERT INTO t VALUES ({id})"))
            .unwrap();
    }
    for (round, (name, said)) in [
        ("KILL", "node 2 was killed by signal 9 (SIGKILL"),
        ("ABRT", "node 2 was ended by signal 6 (SIGABRT)"),
    ]
    .iter()
    .enumerate()
    {
        let before = local.pid(2);
        signal(before, name);
        wait_until("the death is told", READY_LIMIT, || local.says(said));
        // Rows of other nodes are there all the time.
        let served = (0..12).filter(|id| {
            let read = format!("SELECT id FROM t WHERE id = {id}");
            link.command(&read).is_ok()
        });
        assert!(served.count() >= 4, "two of three nodes serve");
        wait_until("the node is back", READY_LIMIT, || {
            local.said().matches("node 2 answers again").count() > round
        });
        assert_ne!(local.pid(2), before);
        let mut back = local.link(2, "postgres").unwrap();
        wait_until("all rows answer", READY_LIMIT, || {
            back.command("SELECT * FROM t").is_ok()
        });
        assert_eq!(number(&mut back, "SELECT count(*) FROM t"), 60);
    }
    stop(&local.data());
    assert!(wait_child(&mut local.child, STOP_LIMIT).success());
}

#[test]
fn a_node_that_dies_again_and_again_is_given_up_loudly() {
    let mut local = Local::start("givenup");
    // It cannot come back: something else has its directory.
    let data = local.data().join("node-3");
    signal(local.pid(3), "KILL");
    std::fs::rename(&data, local.data().join("elsewhere")).unwrap();
    std::fs::write(&data, "no directory").unwrap();
    wait_until("it is given up", READY_LIMIT, || local.says("GIVEN UP"));
    let said = local.said();
    assert_eq!(
        said.matches("node 3 ended with exit code 1").count(),
        4,
        "{said}"
    );
    let reason = "trellis: node 3 | trellis: cannot create";
    assert!(said.contains(reason), "{said}");
    for node in [1, 2] {
        let mut link = local.link(node, "postgres").unwrap();
        link.command("SELECT 1").unwrap();
    }
    stop(&local.data());
    let status = wait_child(&mut local.child, STOP_LIMIT);
    assert!(!status.success(), "a node was given up");
    assert!(local.says("given up: node 3"));
}

#[test]
fn a_cluster_is_stopped_while_a_node_waits_for_its_start() {
    let mut local = Local::start("stopwaiting");
    for round in 1..=3 {
        signal(local.pid(1), "KILL");
        let told = "node 1 is started again in";
        wait_until("the death is told", READY_LIMIT, || {
            local.said().matches(told).count() == round
        });
        if round < 3 {
            wait_until("the node is back", READY_LIMIT, || {
                local.said().matches("node 1 answers again").count() == round
            });
        }
    }
    // The pause is a second by now.
    stop(&local.data());
    assert!(wait_child(&mut local.child, STOP_LIMIT).success());
    assert!(local.link(1, "postgres").is_none());
    assert_eq!(local.said().matches("node 1 answers again").count(), 2);
}
