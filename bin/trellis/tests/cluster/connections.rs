//! What a node tells of its connections, and that it takes no more than its file allows.

use crate::support::{Cluster, connect, rows, sqlstate, try_rows, wait_until};
use links::link::LinkError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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
    wait_until("two more connections", Duration::from_secs(20), || {
        others.extend(cluster.try_link(0, "postgres").ok());
        others.len() == 2
    });
    let Err(LinkError::Server(refused)) = cluster.try_link(0, "postgres") else {
        panic!("there are three already");
    };
    assert_eq!(refused.sqlstate, "53300");
    others.pop();
    wait_until(
        "a place that is free again",
        Duration::from_secs(20),
        || cluster.try_link(0, "postgres").is_ok(),
    );
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
    let mut reader = cluster.link(0, "postgres");
    reader.command("SET statement_timeout = '3s'").unwrap();
    let reading = std::thread::spawn(move || {
        let without_end = "SELECT * FROM generate_series(1, 1000000000000)";
        sqlstate(&mut reader, without_end)
    });
    let served = Arc::new(AtomicU32::new(0));
    let (address, count) = (cluster.endpoint(0), served.clone());
    let address = format!("{}:{}", address.host, address.port)
        .parse()
        .unwrap();
    std::thread::spawn(move || {
        // Until the cluster is gone.
        while let Ok(mut other) = connect(address, "postgres")
            && try_rows(&mut other, "SELECT 1").is_ok()
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    wait_until("the reader's timeout", Duration::from_secs(60), || {
        reading.is_finished()
    });
    assert_eq!(reading.join().unwrap(), "57014");
    assert!(served.load(Ordering::Relaxed) > 0);
}
