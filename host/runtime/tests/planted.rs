//! A bug in planning, planted: the client gets XX000, and session and node go on.
#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base::{NodeId, Planted, plant};
use runtime::{ClusterFile, NodeEntry, NodeOptions, NodeProcess};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

/// One client connection, in the simple protocol.
struct Client(TcpStream);

impl Client {
    fn connect(address: SocketAddr) -> Client {
        let mut client = Client(TcpStream::connect(address).unwrap());
        let mut startup = 196_608_u32.to_be_bytes().to_vec();
        startup.extend_from_slice(b"user\0ann\0database\0postgres\0\0");
        client.send(&startup);
        client.until_ready();
        client
    }

    /// Sends a length and the bytes behind it.
    fn send(&mut self, body: &[u8]) {
        let length = u32::try_from(body.len() + 4).unwrap();
        self.0.write_all(&length.to_be_bytes()).unwrap();
        self.0.write_all(body).unwrap();
    }

    fn query(&mut self, sql: &str) -> Vec<String> {
        self.0.write_all(b"Q").unwrap();
        self.send(format!("{sql}\0").as_bytes());
        self.until_ready()
    }

    /// Kind and content of every message up to ReadyForQuery.
    fn until_ready(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes(head[1..].try_into().unwrap());
            let mut body = vec![0; length as usize - 4];
            self.0.read_exact(&mut body).unwrap();
            if head[0] == b'Z' {
                return messages;
            }
            let kind = char::from(head[0]);
            messages.push(format!("{kind}{}", String::from_utf8_lossy(&body)));
        }
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

// One test: the switch is the process's.
#[test]
fn a_panic_in_planning_is_an_error_and_nothing_more() {
    let folder = std::env::temp_dir().join(format!("trellis-barrier-{}", std::process::id()));
    let node = NodeEntry {
        id: 1,
        sql: free_address(),
        peer: free_address(),
        data: PathBuf::from(&folder),
    };
    let address = node.sql;
    let cluster = ClusterFile {
        cluster: 7,
        connections: runtime::connections_default(),
        shards: 2,
        access: None,
        log_min_duration_ms: None,
        audit_log_mib: None,
        peers: None,
        nodes: vec![node],
    };
    runtime::end_on_panic();
    let process = NodeProcess::start(
        &cluster,
        NodeId(1),
        &NodeOptions {
            begin: true,
            memory: None,
            metrics: None,
        },
    )
    .unwrap();
    let shutdown = process.shutdown();
    let node = std::thread::spawn(move || process.run());
    let mut clients = [Client::connect(address), Client::connect(address)];
    let create = clients[0].query("CREATE TABLE t (id int PRIMARY KEY)");
    assert_eq!(create, ["CCREATE TABLE\0"]);
    for round in 0..4 {
        assert!(plant(Some(Planted::PlanPanics)));
        // A long statement is planned on a thread of its own.
        let blanks = " ".repeat([0, 16 << 10][round / 2]);
        let select = format!("SELECT id {blanks}FROM t WHERE id = 1");
        let failed = clients[round % 2].query(&select);
        assert!(plant(None));
        let [error] = &failed[..] else {
            panic!("one message: {failed:?}")
        };
        assert!(
            error.contains("CXX000\0Minternal error: planted ("),
            "{error}"
        );
        assert!(error.contains("session/src/preparing.rs:"), "{error}");
        for client in &mut clients {
            let answer = client.query("INSERT INTO t SELECT count(*) FROM t");
            assert_eq!(answer, ["CINSERT 0 1\0"]);
        }
    }
    let count = clients[1].query("SELECT count(*) FROM t");
    assert!(count[1].ends_with('8'), "{count:?}");
    drop(clients);
    shutdown.stop();
    node.join().unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
