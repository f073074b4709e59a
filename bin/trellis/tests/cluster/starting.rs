//! What a user reads when a cluster or node does not start as it should.

use crate::commands::{Running, stderr, trellis};
use crate::support::{Cluster, Folder, free_ports};
use std::fs;
use std::net::TcpListener;

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let folder = Folder::new("unwritable");
    let file = folder.path().join("file");
    fs::write(&file, "no directory").unwrap();
    for data in [file.clone(), file.join("below")] {
        let data = data.to_str().unwrap();
        let port = free_ports(1).to_string();
        let answer = trellis(&["start", "--data", data, "--port", &port]);
        assert!(!answer.status.success());
        let said = stderr(&answer);
        assert!(
            said.contains("cannot create") && said.contains(data),
            "{said}"
        );
    }
}

#[test]
fn an_older_format_is_refused_by_both_numbers() {
    let folder = Folder::new("format");
    let data = folder.path().join("cluster");
    let port = free_ports(1).to_string();
    drop(Running::start(&data, &["--port", &port]));
    let node = data.join("node-1");
    let mut changed = 0;
    for entry in fs::read_dir(&node).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if bytes.starts_with(b"TRLS") && bytes.len() > 12 {
            bytes[8] = 1;
            fs::write(&path, bytes).unwrap();
            changed += 1;
        }
    }
    assert!(changed > 0);
    let answer = trellis(&["start", "--data", data.to_str().unwrap()]);
    assert!(!answer.status.success());
    let said = stderr(&answer);
    assert!(
        said.contains("format version 1, but this release reads version"),
        "{said}"
    );
    assert!(
        said.contains("node 1 ended with exit code 1 while the cluster started"),
        "{said}"
    );
}

#[test]
fn a_node_says_which_port_is_taken_and_that_it_was_not_new() {
    let mut cluster = Cluster::start("starting", 1, 1);
    cluster.kill(0);
    let taken = TcpListener::bind(cluster.file.nodes[0].sql).unwrap();
    cluster.spawn(0);
    cluster.wait_ended(0);
    let said = cluster.said(0);
    let address = cluster.file.nodes[0].sql.to_string();
    assert!(said.contains(&address) && said.contains("in use"), "{said}");
    drop(taken);
    // Asked for as new, although it has data.
    assert!(!cluster.said(0).contains("--new was given"));
    cluster.forget_begun(0);
    cluster.spawn(0);
    cluster.wait_ready(0);
    let said = cluster.said(0);
    assert!(
        said.contains("--new was given, but there is data here"),
        "{said}"
    );
}
