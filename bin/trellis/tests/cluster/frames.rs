//! Rubbish on the ports: malformed, oversized and cut frames, unknown versions. The connection that
//! sent it ends or gets an error; everybody else goes on.

use crate::support::{Cluster, number, rows, wait_until};
use base::Prng;
use base::codec;
use base::crc::crc32c;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Reads until the other side closes. A reset counts: the other side closed with our bytes unread.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    match stream.read_to_end(&mut got) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "still open"),
    }
    got
}

/// A message of the SQL port: tag, length, body.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn startup(version: u32, parameters: &[u8]) -> Vec<u8> {
    let mut bytes = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(parameters);
    bytes
}

const V3: u32 = 3 << 16;
const LOGIN: &[u8] = b"user\0trellis\0database\0postgres\0\0";

/// Reads messages until one with `tag`; its body.
fn read_until(stream: &mut TcpStream, tag: u8) -> Vec<u8> {
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).unwrap();
        let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).unwrap();
        if header[0] == tag {
            return body;
        }
    }
}

fn log_in(address: SocketAddr) -> TcpStream {
    let mut stream = open(address);
    stream.write_all(&startup(V3, LOGIN)).unwrap();
    read_until(&mut stream, b'Z');
    stream
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sessions(cluster: &Cluster) -> usize {
    rows(&mut cluster.link(0, "postgres"), "SHOW SESSIONS").len()
}

#[test]
fn rubbish_before_the_login_ends_its_connection_only() {
    let mut cluster = Cluster::start("startup", 1, 2);
    let address = cluster.file.nodes[0].sql;
    let mut bystander = cluster.link(0, "postgres");
    let too_long = 1_000_000_u32.to_be_bytes();
    let cases: &[(&[u8], &str)] = &[
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "08P01"),
        (&[0, 0, 0, 4], "08P01"),
        (&[0, 0, 0, 0, 0, 0, 0, 0], "08P01"),
        (&too_long, "08P01"),
        (&[0xff; 64], "08P01"),
        (&startup(2 << 16, LOGIN), "0A000"),
        (&startup(4 << 16, LOGIN), "0A000"),
        (&startup(V3, b"user\0trellis"), "08P01"),
        (
            &startup(V3, b"user\0trellis\0database\0nothing\0\0"),
            "3D000",
        ),
        (&startup(V3, b"database\0postgres\0\0"), "28000"),
    ];
    for (bytes, sqlstate) in cases {
        let mut stream = open(address);
        stream.write_all(bytes).unwrap();
        let answer = text(&read_to_end(&mut stream));
        assert!(
            answer.contains(&format!("C{sqlstate}\0")),
            "{:?}: {answer:?}",
            text(bytes)
        );
        assert!(answer.contains("SFATAL\0"), "{answer:?}");
    }
    assert_eq!(number(&mut bystander, "SELECT 1"), 1);
    cluster.assert_all_run();
}

#[test]
fn encryption_is_declined_and_newer_versions_are_negotiated() {
    let cluster = Cluster::start("negotiate", 1, 1);
    let address = cluster.file.nodes[0].sql;
    let mut stream = open(address);
    for request in [80_877_103_u32, 80_877_104] {
        stream.write_all(&startup(request, b"")).unwrap();
        let mut answer = [0];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"N");
    }
    stream.write_all(&startup(V3, LOGIN)).unwrap();
    assert_eq!(read_until(&mut stream, b'Z'), b"I");
    let mut stream = open(address);
    stream.write_all(&startup(V3 + 2, LOGIN)).unwrap();
    assert_eq!(read_until(&mut stream, b'v')[..4], [0, 3, 0, 0]);
    assert_eq!(read_until(&mut stream, b'Z'), b"I");
}

#[test]
fn rubbish_in_a_session_is_an_error_or_its_end() {
    let mut cluster = Cluster::start("session", 1, 2);
    let address = cluster.file.nodes[0].sql;
    // Out of step: the connection ends.
    let fatal: &[&[u8]] = &[
        b"\0\0\0\0\0\0\0\0",
        &[b'Q', 0xff, 0xff, 0xff, 0xff],
        &[b'Q', 0x7f, 0xff, 0xff, 0xff],
        &[b'Q', 0, 0, 0, 3],
        &message(b'?', b"what"),
    ];
    for bytes in fatal {
        let mut stream = log_in(address);
        stream.write_all(bytes).unwrap();
        let answer = text(&read_to_end(&mut stream));
        assert!(answer.contains("C08P01\0"), "{bytes:?}: {answer:?}");
    }
    // A whole message with wrong content: an error, and the session goes on after Sync.
    let wrong: &[Vec<u8>] = &[
        message(b'P', b"no end"),
        message(b'P', b"s\0SELECT 1\0\0\x09"),
        message(b'B', b"\0\0\0\x01"),
        message(b'B', b"\0nothing\0\0\0\0\0\0\0"),
        message(b'B', b"\0\0\0\0\0\x01\0\0\0\x10ab\0\0"),
        message(b'E', b"nothing\0\0\0\0\0"),
        message(b'D', b"Xnothing\0"),
        message(b'D', b"Snothing\0"),
        message(b'C', b"X\0"),
    ];
    let mut stream = log_in(address);
    for bytes in wrong {
        stream.write_all(bytes).unwrap();
        stream.write_all(&message(b'S', b"")).unwrap();
        let error = text(&read_until(&mut stream, b'E'));
        assert!(error.contains("SERROR\0"), "{bytes:?}: {error:?}");
        assert_eq!(read_until(&mut stream, b'Z'), b"I", "{bytes:?}");
    }
    stream.write_all(&message(b'Q', b"SELECT \xff\0")).unwrap();
    assert!(text(&read_until(&mut stream, b'E')).contains("C22021\0"));
    read_until(&mut stream, b'Z');
    stream.write_all(&message(b'Q', b"SELECT 42\0")).unwrap();
    assert!(text(&read_until(&mut stream, b'D')).contains("42"));
    cluster.assert_all_run();
}

#[test]
fn connections_that_come_to_nothing_leave_nothing() {
    let mut cluster = Cluster::start("nothing", 1, 2);
    let address = cluster.file.nodes[0].sql;
    let before = sessions(&cluster);
    let mut prng = Prng::new(3);
    for round in 0..300_u64 {
        let mut stream = open(address);
        match round % 5 {
            0 => {}
            1 => stream.write_all(&startup(V3, LOGIN)[..9]).unwrap(),
            2 => stream.write_all(&startup(V3, LOGIN)).unwrap(),
            3 => {
                let mut stream = log_in(address);
                let half = message(b'Q', b"SELECT 1\0");
                stream.write_all(&half[..half.len() / 2]).unwrap();
            }
            _ => {
                let length = 1 + prng.below(200);
                let noise: Vec<u8> = (0..length).map(|_| prng.next_u64() as u8).collect();
                // The server may have closed in the middle.
                let _ = stream.write_all(&noise);
            }
        }
    }
    wait_until("sessions are gone", LIMIT, || sessions(&cluster) <= before);
    cluster.assert_all_run();
}

/// A frame between nodes: length, checksum, payload.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&crc32c(payload).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

const MAGIC: u32 = 0x5452_4c53;

/// The payload of a hello: magic, version, cluster, node, incarnation, shards.
fn hello(magic: u32, version: u32, cluster: u64, shards: u16) -> Vec<u8> {
    codec::to_vec(&(magic, version, cluster, 2_u16, 99_u32, shards))
}

#[test]
fn rubbish_between_nodes_ends_its_connection_only() {
    let mut cluster = Cluster::start("peers", 2, 1);
    cluster.create("shop", &["CREATE TABLE t (id int PRIMARY KEY)"]);
    cluster.wait_connected();
    let number_of_cluster = cluster.file.cluster;
    let good = frame(&hello(MAGIC, 1, number_of_cluster, 1));
    let after = |bytes: &[u8]| [good.as_slice(), bytes].concat();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let mut link = cluster.link(1, "shop");
    let cases = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        vec![0xff; 4_000],
        damaged,
        frame(b""),
        frame(&hello(0x1234_5678, 1, number_of_cluster, 1)),
        frame(&hello(MAGIC, 2, number_of_cluster, 1)),
        frame(&hello(MAGIC, 1, number_of_cluster ^ 1, 1)),
        frame(&hello(MAGIC, 1, number_of_cluster, 2)),
        after(&[0xff; 64]),
        after(&frame(b"")),
        after(&frame(&[0x10, 0x00, 0xee, 0xee, 0xee])),
        after(&(64_u32 << 20).to_le_bytes().repeat(2)),
        after(&good),
    ];
    for (number_of_case, bytes) in cases.iter().enumerate() {
        let mut stream = open(cluster.file.nodes[0].peer);
        // The other side may close before it has read everything.
        let _ = stream.write_all(bytes);
        read_to_end(&mut stream);
        link.command(&format!(
            "INSERT INTO t VALUES ({number_of_case}), ({})",
            -1 - number_of_case as i64
        ))
        .unwrap();
    }
    // A frame that never ends, and a connection that says nothing, hold nobody up.
    let mut cut = open(cluster.file.nodes[0].peer);
    cut.write_all(&good[..good.len() - 1]).unwrap();
    let _silent = open(cluster.file.nodes[0].peer);
    assert_eq!(
        number(&mut link, "SELECT count(*) FROM t"),
        2 * cases.len() as i64
    );
    cluster.assert_all_run();
}
