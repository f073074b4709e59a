//! Messages of PostgreSQL's wire, version 3: a type, a length, a body.

use std::io::{self, BufReader, Read};
use std::net::TcpStream;

/// The largest message that is taken.
const BYTES_MAX: usize = 64 << 20;

/// A message with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn new(kind: u8, body: Vec<u8>) -> Message {
        Message { kind, body }
    }

    /// Reads the next message.
    pub(crate) fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Message> {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let body = read_body(stream)?;
        Ok(Message::new(kind[0], body))
    }

    /// Appends its bytes.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        out.push(self.kind);
        push_body(&self.body, out);
    }

    /// Prepares `sql` without a name. `types` is what follows the text: a count, and object ids.
    pub(crate) fn parse(sql: &str, types: &[u8]) -> Message {
        let mut body = vec![0];
        push_text(sql, &mut body);
        body.extend_from_slice(types);
        Message::new(b'P', body)
    }

    /// Binds the statement without a name. `params` is what follows the two names.
    pub(crate) fn bind(params: &[u8]) -> Message {
        let mut body = vec![0, 0];
        body.extend_from_slice(params);
        Message::new(b'B', body)
    }

    /// Executes the portal without a name, to its end.
    pub(crate) fn execute() -> Message {
        Message::new(b'E', vec![0; 5])
    }

    /// CommandComplete.
    pub(crate) fn complete(tag: &str) -> Message {
        let mut body = Vec::new();
        push_text(tag, &mut body);
        Message::new(b'C', body)
    }

    /// Statements as one query string.
    pub(crate) fn query(sql: &str) -> Message {
        let mut body = Vec::new();
        push_text(sql, &mut body);
        Message::new(b'Q', body)
    }
}

/// Reads a length and as many bytes, less the four of the length.
pub(crate) fn read_body(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if !(4..=BYTES_MAX).contains(&length) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "message length"));
    }
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// Appends a length and a body.
pub(crate) fn push_body(body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Cuts a text that ends with a zero byte off the front; what is no text is an empty one.
pub(crate) fn cut_text(bytes: &[u8]) -> (&str, &[u8]) {
    let end = bytes.iter().position(|&byte| byte == 0);
    let end = end.unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[..end]).unwrap_or("");
    (text, bytes.get(end + 1..).unwrap_or(&[]))
}

/// The parameters of a Bind whose two names are cut off, as they are; `None`: NULL.
pub(crate) fn params(rest: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let (formats, rest) = take_count(rest)?;
    let (count, mut rest) = take_count(rest.get(2 * formats..)?)?;
    let mut params = Vec::new();
    for _ in 0..count {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        params.push(match length {
            Some(length) => Some(after.get(..length)?),
            None => None,
        });
        rest = &after[length.unwrap_or(0)..];
    }
    Some(params)
}

fn take_count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<2>()?;
    Some((usize::from(u16::from_be_bytes(*count)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_broken_ones_are_none() {
        let rest = [0, 0, 0, 2, 0, 0, 0, 1, b'7', 255, 255, 255, 255, 0, 0];
        let seven: &[u8] = b"7";
        assert_eq!(params(&rest), Some(vec![Some(seven), None]));
        assert_eq!(params(&rest[..8]), None);
        assert_eq!(params(&[]), None);
    }

    #[test]
    fn texts_end_with_zero() {
        assert_eq!(cut_text(b"s1\0SELECT 1\0\0\0").0, "s1");
        assert_eq!(cut_text(b"open"), ("open", &[][..]));
    }
}
