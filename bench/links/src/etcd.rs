//! A client of etcd: transactions and ranges over its JSON gateway (HTTP/1.1, etcd 3.4 and later).
//!
//! Everything is one request, `POST /v3/kv/txn`: conditions on keys, then puts, deletions and reads
//! that happen together. Keys and values travel in base64.
//!
//! What the server refuses is [`LinkError::Server`] with the gRPC status as SQLSTATE: `ET003` is an
//! invalid argument, `ET008` an exhausted limit, `ET014` that no leader answered in time.

use crate::answers::ServerError;
use crate::link::{LinkError, reach};
use crate::stream::Stream;
use crate::url::{Endpoint, Target};
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// The largest answer that is accepted, in bytes.
const BODY_BYTES_MAX: usize = 256 << 20;
/// The longest head of an answer, and the longest line of its chunks, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Lines behind the chunks of an answer.
const TRAILERS_MAX: usize = 100;
/// Where a number should be.
const NUMBER: LinkError = LinkError::Protocol("a number of etcd");

/// One connection to an etcd server.
#[derive(Debug)]
pub struct Etcd {
    /// Its bytes.
    pub stream: Stream,
    host: String,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The revision of the store at which it was written last, from 1.
    pub revision: i64,
}

/// What a transaction has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether the conditions held: then it has happened.
    pub is_done: bool,
    /// The revision of the store then.
    pub revision: i64,
    /// What each operation found, in their order: of puts and deletions nothing.
    pub found: Vec<Vec<Pair>>,
}

/// A transaction that is being put together.
#[derive(Clone, Debug, Default)]
pub struct Txn {
    compare: String,
    success: String,
}

impl Txn {
    /// Only if the key was written last at this revision; 0: only if it is not there.
    pub fn if_revision(&mut self, key: &[u8], revision: i64) {
        begin(
            &mut self.compare,
            r#"{"target":"MOD","result":"EQUAL","key":""#,
        );
        push_base64(key, &mut self.compare);
        let _ = write!(self.compare, r#"","mod_revision":"{revision}"}}"#);
    }

    /// Only if no key from `from` and before `to` was written after this revision. One that was
    /// deleted since is not noticed.
    pub fn if_none_since(&mut self, from: &[u8], to: &[u8], revision: i64) {
        begin(
            &mut self.compare,
            r#"{"target":"MOD","result":"LESS","key":""#,
        );
        push_base64(from, &mut self.compare);
        self.compare.push_str(r#"","range_end":""#);
        push_base64(to, &mut self.compare);
        let _ = write!(
            self.compare,
            r#"","mod_revision":"{}"}}"#,
            revision.saturating_add(1)
        );
    }

    /// Writes a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        begin(&mut self.success, r#"{"request_put":{"key":""#);
        push_base64(key, &mut self.success);
        self.success.push_str(r#"","value":""#);
        push_base64(value, &mut self.success);
        self.success.push_str(r#""}}"#);
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: &[u8]) {
        begin(&mut self.success, r#"{"request_delete_range":{"key":""#);
        push_base64(key, &mut self.success);
        self.success.push_str(r#""}}"#);
    }

    /// Deletes all keys from `from` and before `to`.
    pub fn delete_range(&mut self, from: &[u8], to: &[u8]) {
        begin(&mut self.success, r#"{"request_delete_range":{"key":""#);
        push_base64(from, &mut self.success);
        self.success.push_str(r#"","range_end":""#);
        push_base64(to, &mut self.success);
        self.success.push_str(r#""}}"#);
    }

    /// Reads a key as it was at a revision; 0: as it is.
    pub fn get(&mut self, key: &[u8], revision: i64) {
        push_range(key, None, (revision, 0), &mut self.success);
    }

    /// Reads all keys from `from` and before `to`, in their order; the revision as for
    /// [`Txn::get`].
    pub fn get_range(&mut self, from: &[u8], to: &[u8], revision: i64) {
        push_range(from, Some(to), (revision, 0), &mut self.success);
    }

    /// The same, of the first `limit` keys; 0: of all.
    pub fn get_page(&mut self, from: &[u8], to: &[u8], revision: i64, limit: usize) {
        push_range(from, Some(to), (revision, limit), &mut self.success);
    }
}

fn begin(list: &mut String, words: &str) {
    if !list.is_empty() {
        list.push(',');
    }
    list.push_str(words);
}

fn push_range(from: &[u8], to: Option<&[u8]>, (revision, limit): (i64, usize), list: &mut String) {
    begin(list, r#"{"request_range":{"key":""#);
    push_base64(from, list);
    if let Some(to) = to {
        list.push_str(r#"","range_end":""#);
        push_base64(to, list);
    }
    let _ = write!(list, r#"","revision":"{revision}","limit":"{limit}"}}}}"#);
}

/// The first key behind all keys with this prefix; of `0xff`s, and of nothing, one behind all keys.
pub fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    // etcd takes a zero byte for the end of all keys.
    vec![0]
}

impl Etcd {
    /// Connects. `timeout` bounds every wait.
    ///
    /// # Errors
    /// No server; or the target has a password: accounts of etcd are not known here.
    pub fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
    ) -> Result<Etcd, LinkError> {
        if target.password.is_some() {
            return Err(LinkError::Protocol("etcd is spoken to without a password"));
        }
        let stream = reach(endpoint, timeout)?;
        stream.set_timeout(timeout)?;
        Ok(Etcd {
            stream,
            host: endpoint.to_string(),
        })
    }

    /// The release of the server.
    ///
    /// # Errors
    /// As for [`Etcd::run`].
    pub async fn version(&mut self) -> Result<String, LinkError> {
        let request = format!("GET /version HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream.out.extend_from_slice(request.as_bytes());
        self.stream.flush().await?;
        let answer = self.answer().await?;
        let version = answer["etcdserver"].as_str();
        Ok(version.unwrap_or("of an unknown version").to_owned())
    }

    /// Runs a transaction and leaves `txn` empty.
    ///
    /// # Errors
    /// The connection broke, or the server refuses the transaction. Whether it happened is not
    /// known after the former, nor after `ET014`, `ET004`, `ET002` and `ET001`.
    pub async fn run(&mut self, txn: &mut Txn) -> Result<Reply, LinkError> {
        let Txn { compare, success } = std::mem::take(txn);
        let body = format!(r#"{{"compare":[{compare}],"success":[{success}]}}"#);
        let head = format!(
            "POST /v3/kv/txn HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        self.stream.out.extend_from_slice(head.as_bytes());
        self.stream.out.extend_from_slice(body.as_bytes());
        self.stream.flush().await?;
        reply_of(&self.answer().await?)
    }

    /// Waits for the answer of a request.
    async fn answer(&mut self) -> Result<Value, LinkError> {
        let head = self.line_until(b"\r\n\r\n").await?;
        let head = Head::of(&head)?;
        let body = match head.length {
            Some(length) => self.taken(length).await?,
            None => self.chunks().await?,
        };
        let body: Value = serde_json::from_slice(&body)
            .map_err(|_| LinkError::Protocol("an answer of etcd that is no JSON"))?;
        if head.status == 200 {
            return Ok(body);
        }
        let code = body["code"].as_u64().unwrap_or(2);
        let message = body["message"].as_str().or(body["error"].as_str());
        let text = message.unwrap_or("without a message");
        Err(LinkError::Server(ServerError {
            sqlstate: format!("ET{code:03}"),
            message: text.to_owned(),
        }))
    }

    /// A body in chunks, with what may follow them.
    async fn chunks(&mut self) -> Result<Vec<u8>, LinkError> {
        let mut body = Vec::new();
        loop {
            let line = self.line_until(b"\r\n").await?;
            let text = std::str::from_utf8(&line).unwrap_or("");
            let digits = text.split([';', '\r']).next().unwrap_or("").trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| NUMBER)?;
            if size == 0 {
                for _ in 0..TRAILERS_MAX {
                    if self.line_until(b"\r\n").await? == b"\r\n" {
                        return Ok(body);
                    }
                }
                return Err(LinkError::Protocol("an answer of etcd does not end"));
            }
            if size > BODY_BYTES_MAX - body.len() {
                return Err(LinkError::Protocol("an answer of etcd is too large"));
            }
            let part = self.taken(size + 2).await?;
            body.extend_from_slice(&part[..size]);
        }
    }

    async fn taken(&mut self, length: usize) -> Result<Vec<u8>, LinkError> {
        self.stream.fill(length).await?;
        let place = self.stream.take(length);
        Ok(self.stream.bytes(place).to_vec())
    }

    /// Bytes up to these, with them.
    async fn line_until(&mut self, end: &[u8]) -> Result<Vec<u8>, LinkError> {
        let mut wanted = end.len();
        loop {
            self.stream.fill(wanted).await?;
            let unread = self.stream.unread();
            let found = unread.windows(end.len()).position(|part| part == end);
            if let Some(at) = found {
                return self.taken(at + end.len()).await;
            }
            if unread.len() > HEAD_BYTES_MAX {
                return Err(LinkError::Protocol("a head of etcd is too long"));
            }
            wanted = unread.len() + 1;
        }
    }
}

/// What the head of an answer says.
struct Head {
    status: u16,
    /// Bytes of the body; `None`: in chunks.
    length: Option<usize>,
}

impl Head {
    fn of(bytes: &[u8]) -> Result<Head, LinkError> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or("");
        let status = first.strip_prefix("HTTP/1.").and_then(|it| it.get(2..5));
        let status = status.and_then(|it| it.parse().ok());
        let status = status.ok_or(LinkError::Protocol("it does not speak HTTP"))?;
        let (mut length, mut is_chunked) = (None, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let bytes = value.parse().map_err(|_| NUMBER)?;
                if bytes > BODY_BYTES_MAX {
                    return Err(LinkError::Protocol("an answer of etcd is too large"));
                }
                length = Some(bytes);
            }
            is_chunked |= name.eq_ignore_ascii_case("transfer-encoding")
                && value.eq_ignore_ascii_case("chunked");
        }
        match is_chunked || length.is_some() {
            true => Ok(Head {
                status,
                length: length.filter(|_| !is_chunked),
            }),
            false => Err(LinkError::Protocol("an answer of etcd without a length")),
        }
    }
}

fn reply_of(answer: &Value) -> Result<Reply, LinkError> {
    // What is absent is false, zero or empty.
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for response in list(&answer["responses"]) {
        let pairs = list(&response["response_range"]["kvs"]);
        let pairs: Result<Vec<Pair>, LinkError> = pairs.iter().map(pair_of).collect();
        found.push(pairs?);
    }
    Ok(Reply {
        is_done: answer["succeeded"].as_bool().unwrap_or(false),
        revision: number_of(&answer["header"]["revision"])?,
        found,
    })
}

fn pair_of(value: &Value) -> Result<Pair, LinkError> {
    let bytes = |value: &Value| of_base64(value.as_str().unwrap_or(""));
    let pair = (bytes(&value["key"]), bytes(&value["value"]));
    let (Some(key), Some(value_bytes)) = pair else {
        return Err(LinkError::Protocol("a text of etcd that is no base64"));
    };
    Ok(Pair {
        key,
        value: value_bytes,
        revision: number_of(&value["mod_revision"])?,
    })
}

/// Numbers of eight bytes are texts in JSON.
fn number_of(value: &Value) -> Result<i64, LinkError> {
    let number = value.as_str().and_then(|text| text.parse().ok());
    number.or(value.as_i64()).ok_or(NUMBER)
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the bytes in base64 (RFC 4648, section 4).
fn push_base64(bytes: &[u8], out: &mut String) {
    for part in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=part.len()].copy_from_slice(part);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            match place <= part.len() {
                true => out.push(char::from(DIGITS[(word >> (18 - 6 * place)) as usize & 63])),
                false => out.push('='),
            }
        }
    }
}

/// The bytes of a text in base64; `None`: it is none.
fn of_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut word, mut bits) = (0u32, 0);
    for digit in digits.bytes() {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = word << 6 | u32::from(six);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::ready;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    /// What comes of an answer before the server closes the connection.
    fn read(bytes: &str) -> Result<Reply, LinkError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        listener
            .accept()
            .unwrap()
            .0
            .write_all(bytes.as_bytes())
            .unwrap();
        let mut etcd = Etcd {
            stream: Stream::new(near),
            host: String::new(),
        };
        ready(etcd.answer()).and_then(|answer| reply_of(&answer))
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = String::new();
            push_base64(bytes.as_bytes(), &mut out);
            assert_eq!((out.as_str(), of_base64(text)), (text, Some(bytes.into())));
        }
        let all: Vec<u8> = (0..=255).collect();
        let mut out = String::new();
        push_base64(&all, &mut out);
        assert_eq!(of_base64(&out), Some(all));
        for bad in ["Z", "Zg=", "Zg===", "Z*==", "===="] {
            assert_eq!(of_base64(bad), None, "{bad}");
        }
    }

    #[test]
    fn answers_are_read_whole_and_in_chunks() {
        let body = r#"{"header":{"revision":"7"},"succeeded":true,"responses":[{"response_put":{}},
            {"response_range":{"kvs":[{"key":"YQ==","mod_revision":"5","value":"Yg=="}]}}]}"#;
        let whole = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = read(&whole).unwrap();
        let pair = Pair {
            key: b"a".to_vec(),
            value: b"b".to_vec(),
            revision: 5,
        };
        let wanted = Reply {
            is_done: true,
            revision: 7,
            found: vec![vec![], vec![pair]],
        };
        assert_eq!(reply, wanted);
        let (one, two) = body.split_at(30);
        let chunks = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1e\r\n{one}\r\n{:x};a=b\r\n\
             {two}\r\n0\r\nTrailer: x\r\n\r\n",
            two.len()
        );
        assert_eq!(read(&chunks).unwrap(), wanted);
    }

    #[test]
    fn bad_answers_are_errors() {
        let refused = r#"{"error":"no","message":"not so","code":3}"#;
        let refused = format!("HTTP/1.1 400 Bad\r\nContent-Length: 42\r\n\r\n{refused}");
        let Err(LinkError::Server(error)) = read(&refused) else {
            panic!("it is accepted");
        };
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("ET003", "not so")
        );
        for bad in [
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
        ] {
            assert!(matches!(read(bad), Err(LinkError::Protocol(_))), "{bad}");
        }
        assert!(matches!(read("HTTP/1.1 2"), Err(LinkError::Io(..))));
        let endless = "a".repeat(100_000);
        assert!(matches!(read(&endless), Err(LinkError::Protocol(_))));
    }

    #[test]
    fn a_prefix_ends_behind_its_keys() {
        assert_eq!(end_of(b"ab"), b"ac");
        assert_eq!(end_of(b"a\xff"), b"b");
        assert_eq!(end_of(b"\xff\xff"), b"\0");
    }
}
