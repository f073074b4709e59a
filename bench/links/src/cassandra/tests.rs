//! Answers of a node, right ones and odd ones.

use super::*;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// A frame of an answer.
fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | VERSION, 0, 0, 0, kind];
    bytes.extend_from_slice(&(body.len() as u32).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// What comes of these bytes of a server, which closes the connection behind them.
fn read(bytes: &[u8]) -> Result<Rows, LinkError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // Half of the connection is closed, so that what is asked goes somewhere.
    let mut far = listener.accept().unwrap().0;
    far.write_all(bytes).unwrap();
    far.shutdown(std::net::Shutdown::Write).unwrap();
    let stream = Stream::new(near);
    ready(Cassandra { stream }.query("SELECT 1", Consistency::One))
}

/// Two columns of one table and two rows.
fn two_rows() -> Vec<u8> {
    let mut body = Vec::new();
    for number in [2i32, 1, 2] {
        body.extend_from_slice(&number.to_be_bytes());
    }
    for name in ["shop", "item"] {
        put_string(name, &mut body);
    }
    put_string("[applied]", &mut body);
    put_short(0x04, &mut body);
    put_string("tags", &mut body);
    // A map of texts to lists of a type of somebody's own.
    for code in [0x21, 0x0d, 0x20, 0x00] {
        put_short(code, &mut body);
    }
    put_string("a.b.C", &mut body);
    body.extend_from_slice(&2i32.to_be_bytes());
    for value in [Some(&[1u8][..]), None, Some(&[0]), Some(b"xy")] {
        put_bytes(value, &mut body);
    }
    body
}

#[test]
fn rows_are_read() {
    let rows = read(&frame(opcode::RESULT, &two_rows())).unwrap();
    assert_eq!(rows.columns, ["[applied]", "tags"]);
    assert_eq!(rows.is_applied(), Some(true));
    assert_eq!(rows.rows[0][1], None);
    assert_eq!(rows.rows[1], [Some(vec![0]), Some(b"xy".to_vec())]);
    for kind in [1i32, 3, 5] {
        let nothing = read(&frame(opcode::RESULT, &kind.to_be_bytes())).unwrap();
        assert_eq!((nothing.is_applied(), nothing.text()), (None, None));
    }
}

#[test]
fn what_comes_before_an_answer_is_passed_over() {
    let mut body = vec![0; 16];
    put_short(1, &mut body);
    put_string("too many tombstones", &mut body);
    put_short(1, &mut body);
    put_string("key", &mut body);
    put_bytes(None, &mut body);
    body.extend_from_slice(&two_rows());
    let mut bytes = frame(opcode::RESULT, &body);
    bytes[1] = 0x02 | 0x04 | 0x08;
    assert_eq!(read(&bytes).unwrap().rows.len(), 2);
}

#[test]
fn refusals_have_their_codes() {
    let mut body = 0x1100i32.to_be_bytes().to_vec();
    put_string("too late", &mut body);
    body.extend_from_slice(b"what else is said of it");
    let Err(LinkError::Server(error)) = read(&frame(opcode::ERROR, &body)) else {
        panic!("it is accepted");
    };
    assert_eq!(
        (error.sqlstate.as_str(), error.message.as_str()),
        ("CA1100", "too late")
    );
}

#[test]
fn bad_answers_are_errors() {
    assert!(matches!(read(b""), Err(LinkError::Io(..))));
    assert!(matches!(read(&[0x84, 0, 0]), Err(LinkError::Io(..))));
    let whole = two_rows();
    for length in 0..whole.len() {
        let cut = frame(opcode::RESULT, &whole[..length]);
        assert!(
            matches!(read(&cut), Err(LinkError::Protocol(_))),
            "{length}"
        );
    }
    let mut http = b"HTTP/1.1 400 Bad Request".to_vec();
    assert!(matches!(read(&http), Err(LinkError::Protocol(_))));
    http[0] = 0x84;
    assert!(matches!(read(&http), Err(LinkError::Protocol(_))));
    let mut deep = Vec::new();
    for number in [2i32, 1, 1] {
        deep.extend_from_slice(&number.to_be_bytes());
    }
    for name in ["k", "t", "c"] {
        put_string(name, &mut deep);
    }
    deep.extend_from_slice(&[0x00, 0x20].repeat(100_000));
    assert!(matches!(
        read(&frame(opcode::RESULT, &deep)),
        Err(LinkError::Protocol(_))
    ));
    // Four thousand millions of columns, of which there is none.
    for counts in [[2i32, 0, i32::MAX], [2, 4, i32::MAX], [2, 4, -1]] {
        let body: Vec<u8> = counts.iter().flat_map(|it| it.to_be_bytes()).collect();
        let body = [&body[..], &i32::MAX.to_be_bytes()].concat();
        let answer = read(&frame(opcode::RESULT, &body));
        assert!(matches!(answer, Err(LinkError::Protocol(_))), "{counts:?}");
    }
}

/// Bytes that are drawn, and right answers of which one byte is wrong, are rows or errors.
#[test]
fn odd_bytes_are_never_more_than_an_error() {
    let mut prng = base::Prng::new(5);
    let right = two_rows();
    for turn in 0..20_000 {
        let mut bytes = right.clone();
        match turn % 2 {
            0 => {
                let at = prng.below(bytes.len() as u64) as usize;
                bytes[at] = prng.next_u64() as u8;
            }
            _ => {
                let length = prng.below(64) as usize;
                bytes = (0..length).map(|_| prng.next_u64() as u8).collect();
            }
        }
        let _ = result_of(&bytes);
        let _ = error_of(&bytes);
        let _ = without_extras(turn as u8, &bytes);
        let _ = head_of(&bytes[..bytes.len().min(HEAD_BYTES)]);
    }
}
