//! Clients that send without reading: the node stops reading from them, its memory stays small, the
//! others are served, and nothing is lost.

use crate::support::{Cluster, number, rows};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What a client may get rid of while nobody looks at it: the buffers of two sockets and the bounds
/// of the node, with room.
const TAKEN_BYTES_MAX: usize = 24 << 20;
/// What that may cost the node in memory, the results under way included.
const GROWTH_KIB_MAX: i64 = 64 << 10;
/// A socket that takes nothing for so long is full.
const STUCK: Duration = Duration::from_secs(2);

/// A connection of bare messages.
struct Wire {
    stream: TcpStream,
    /// What is still to be sent.
    unsent: Vec<u8>,
    sent: usize,
    /// Bytes of a message whose end has not come yet.
    begun: Vec<u8>,
}

impl Wire {
    fn connect(cluster: &Cluster) -> Wire {
        let mut stream = TcpStream::connect(cluster.file.nodes[0].sql).unwrap();
        let mut startup = 196_608_u32.to_be_bytes().to_vec();
        startup.extend_from_slice(b"user\0trellis\0database\0postgres\0\0");
        let length = (startup.len() as u32 + 4).to_be_bytes();
        stream.write_all(&[&length[..], &startup].concat()).unwrap();
        let mut wire = Wire {
            stream,
            unsent: Vec::new(),
            sent: 0,
            begun: Vec::new(),
        };
        wire.stream.set_nonblocking(true).unwrap();
        wire.read_until(|tag, _| tag == b'Z');
        wire
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        self.unsent.push(tag);
        let length = body.len() as u32 + 4;
        self.unsent.extend_from_slice(&length.to_be_bytes());
        self.unsent.extend_from_slice(body);
    }

    fn query(&mut self, sql: &str) {
        self.message(b'Q', &[sql.as_bytes(), b"\0"].concat());
    }

    /// Begins a transaction, which is older than those that begin later.
    fn begin(&mut self) {
        for sql in ["BEGIN", "SELECT count(*) FROM u"] {
            self.query(sql);
            self.read_until(|tag, _| tag == b'Z');
        }
    }

    /// Sends what the socket takes; whether anything went out.
    fn write_some(&mut self) -> bool {
        let before = self.sent;
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("sending: {error}"),
            }
        }
        self.sent > before
    }

    /// Sends without reading, until the socket takes no more.
    fn write_until_stuck(&mut self) {
        let mut last = Instant::now();
        while self.sent < self.unsent.len() && last.elapsed() < STUCK {
            if self.write_some() {
                last = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Reads messages, and goes on sending, until `is_last` says so of one.
    fn read_until(&mut self, mut is_last: impl FnMut(u8, &[u8]) -> bool) {
        let mut buffer = vec![0; 256 << 10];
        let until = Instant::now() + Duration::from_secs(240);
        loop {
            self.write_some();
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("the node has closed the connection"),
                Ok(count) => self.begun.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    assert!(Instant::now() < until, "no more answers come");
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(error) => panic!("reading: {error}"),
            }
            let mut at = 0;
            while let Some(header) = self.begun.get(at..at + 5) {
                let length: [u8; 4] = header[1..].try_into().unwrap();
                let end = at + 1 + u32::from_be_bytes(length) as usize;
                let Some(body) = self.begun.get(at + 5..end) else {
                    break;
                };
                let tag = header[0];
                assert_ne!(tag, b'E', "{}", String::from_utf8_lossy(body));
                let last = is_last(tag, body);
                at = end;
                if last {
                    self.begun.drain(..at);
                    return;
                }
            }
            self.begun.drain(..at);
        }
    }
}

/// Memory of a node in KiB: what is resident.
fn resident_kib(cluster: &Cluster) -> i64 {
    let path = format!("/proc/{}/status", cluster.pid(0));
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// Others get their answers meanwhile, and do not wait for the one who does not read.
fn others_are_served(cluster: &Cluster) {
    for _ in 0..8 {
        let start = Instant::now();
        let mut link = cluster.link(0, "postgres");
        assert_eq!(number(&mut link, "SELECT count(*) FROM u"), 0);
        let elapsed = start.elapsed();
        assert!(elapsed < Duration::from_secs(20), "waited {elapsed:?}");
    }
}

#[test]
fn a_client_that_sends_without_reading_is_not_read_from() {
    let cluster = Cluster::start("pipeline", 1, 2);
    let mut link = cluster.link(0, "postgres");
    link.command("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL)")
        .unwrap();
    link.command("INSERT INTO t VALUES (1, 0)").unwrap();
    link.command("CREATE TABLE u (id int PRIMARY KEY)").unwrap();
    let before = resident_kib(&cluster);

    // The first statement waits for a lock (the older transaction waits), and 200 MB of others
    // behind it.
    let mut wire = Wire::connect(&cluster);
    wire.begin();
    link.command("BEGIN").unwrap();
    link.command("UPDATE t SET n = 1 WHERE id = 1").unwrap();
    let statements = 10_000;
    let select = format!("SELECT '{}'", "x".repeat(20_000));
    wire.query("SELECT n FROM t WHERE id = 1 FOR UPDATE");
    (0..statements).for_each(|_| wire.query(&select));
    assert!(wire.unsent.len() > 200_000_000);
    wire.write_until_stuck();
    assert!(wire.sent < TAKEN_BYTES_MAX, "the node read {}", wire.sent);
    let grown = resident_kib(&cluster) - before;
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB for what waits");
    others_are_served(&cluster);

    // The lock is gone: now nobody takes the results.
    let taken = wire.sent;
    link.command("COMMIT").unwrap();
    wire.write_until_stuck();
    let further = wire.sent - taken;
    assert!(further < TAKEN_BYTES_MAX, "the node read {further} more");
    let grown = resident_kib(&cluster) - before;
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB for unread results");
    others_are_served(&cluster);

    // They are all there, in order.
    let (mut results, mut ready) = (0, 0);
    wire.read_until(|tag, body| {
        if tag == b'D' {
            let length = if results == 0 { 1 } else { 20_000 };
            assert_eq!(body.len(), 2 + 4 + length);
            results += 1;
        }
        ready += usize::from(tag == b'Z');
        ready == statements + 1
    });
    assert_eq!((results, wire.sent), (statements + 1, wire.unsent.len()));
    let grown = resident_kib(&cluster) - before;
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB at the end");
}

#[test]
fn copy_data_waits_at_the_client_while_the_copy_waits() {
    let cluster = Cluster::start("pipeline-copy", 1, 2);
    let mut link = cluster.link(0, "postgres");
    link.command("CREATE TABLE t (id int PRIMARY KEY, body text)")
        .unwrap();
    link.command("CREATE TABLE u (id int PRIMARY KEY)").unwrap();
    let before = resident_kib(&cluster);
    let mut wire = Wire::connect(&cluster);
    wire.begin();
    link.command("BEGIN").unwrap();
    link.command("INSERT INTO t VALUES (1, '')").unwrap();
    wire.query("COPY t FROM STDIN");
    wire.read_until(|tag, _| tag == b'G');
    let body = "x".repeat(10_000);
    let lines = 5_000;
    for id in 1..=lines {
        wire.message(b'd', format!("{id}\t{body}\n").as_bytes());
    }
    wire.message(b'c', &[]);
    wire.write_until_stuck();
    assert!(wire.sent < TAKEN_BYTES_MAX, "the node read {}", wire.sent);
    let grown = resident_kib(&cluster) - before;
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB for what waits");
    link.command("ROLLBACK").unwrap();
    wire.read_until(|tag, _| tag == b'Z');
    wire.query("COMMIT");
    wire.read_until(|tag, _| tag == b'Z');
    let counted = rows(&mut link, "SELECT count(*), sum(length(body)) FROM t");
    assert_eq!(counted, [[lines.to_string(), (lines * 10_000).to_string()]]);
}

/// The budget of an idle connection: one that does nothing takes at most 32 KiB of its node,
/// one that has prepared and run a statement included. `TELL=1` prints the number.
#[test]
fn an_idle_connection_is_small() {
    let cluster = Cluster::start("idle", 1, 2);
    let mut link = cluster.link(0, "postgres");
    link.command("CREATE TABLE t (id int PRIMARY KEY, n int)")
        .unwrap();
    link.command("INSERT INTO t VALUES (1, 1)").unwrap();
    let open = |count: usize| -> Vec<Wire> {
        let mut wires: Vec<Wire> = (0..count).map(|_| Wire::connect(&cluster)).collect();
        for wire in &mut wires {
            wire.message(b'P', b"s\0SELECT * FROM t WHERE id = 1\0\0\0");
            wire.message(b'B', b"\0s\0\0\0\0\0\0\0");
            wire.message(b'E', b"\0\0\0\0\0");
            wire.message(b'S', b"");
            wire.read_until(|tag, _| tag == b'Z');
        }
        wires
    };
    // What the first connections bring with them is not counted.
    let _first = open(100);
    let before = resident_kib(&cluster);
    let count = 600;
    let _others = open(count);
    let each = (resident_kib(&cluster) - before) as f64 / count as f64;
    if std::env::var_os("TELL").is_some() {
        writeln!(std::io::stderr(), "{each:.1} KiB per idle connection").unwrap();
    }
    assert!(each < 32.0, "{each:.1} KiB per idle connection");
}
