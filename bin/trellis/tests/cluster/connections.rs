//! What a node tells of its connections, and that it takes no more than its file allows.

use crate::support::{Cluster, READY_LIMIT, rows, sqlstate, wait_until};
use links::link::LinkError;
use peer::longer;
use std::time::Duration;

#[test]
fn a_node_tells_its_addresses_and_takes_as_many_clients_as_it_says() {
    let mut cluster = Cluster::start("connections", 1, 2);
    cluster.reconfigure(|file| file.connections = 3);
    let mut first = cluster.link(0, "postgres");
    let port = cluster.endpoint(0).port.to_string();
    let sql = "SELECT inet_server_port(), inet_server_addr(), inet_client_addr(), \
               inet_client_port() > 0, current_setting('port'), current_setting('max_connections')";
    let told = [port.as_str(), "127.0.0.1", "127.0.0.1", "t", &port, "3"];
    assert_eq!(rows(&mut first, sql), [told]);
    assert_eq!(rows(&mut first, "SHOW port"), [[port]]);
    assert_eq!(rows(&mut first, "SHOW max_connections"), [["3"]]);
    // The connections of the probes that waited for the node may still be closing.
    let mut others = Vec::new();
    wait_until("two more connections", READY_LIMIT, || {
        others.extend(cluster.try_link(0, "postgres").ok());
        others.len() == 2
    });
    let Err(LinkError::Server(refused)) = cluster.try_link(0, "postgres") else {
        panic!("there are three already");
    };
    assert_eq!(refused.sqlstate, "53300");
    others.pop();
    wait_until("a place that is free again", READY_LIMIT, || {
        cluster.try_link(0, "postgres").is_ok()
    });
    assert_eq!(
        rows(&mut first, "SELECT 1"),
        [["1"]],
        "those that are there go on"
    );
}

/// The shard is busy with rows for one client, who takes them as fast as they come.
#[test]
fn a_client_that_reads_without_end_leaves_time_for_others() {
    let cluster = Cluster::start("reader", 1, 1);
    let served_beside = |length: Duration| {
        let mut reader = cluster.link(0, "postgres");
        let limit = format!("SET statement_timeout = {}", length.as_millis());
        reader.command(&limit).unwrap();
        let reading = std::thread::spawn(move || {
            let without_end = "SELECT * FROM generate_series(1, 1000000000000)";
            sqlstate(&mut reader, without_end)
        });
        let mut served = 0;
        while !reading.is_finished() {
            let mut other = cluster.link(0, "postgres");
            rows(&mut other, "SELECT 1");
            served += u32::from(!reading.is_finished());
        }
        assert_eq!(reading.join().unwrap(), "57014");
        served
    };
    let first = Duration::from_secs(3);
    assert!(longer(first, served_beside, |served| *served > 0) > 0);
}
