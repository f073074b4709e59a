//! Calls in Thrift's binary protocol, in frames: what the gateway of HBase speaks.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | length of what follows |
//! | 4 | `0x8001`, zero, and the kind of message: 1 a call, 2 a reply, 3 that there is none |
//! | 4, then that many | the name of the method |
//! | 4 | a number by which reply and call belong together |
//! | rest | a struct: arguments, or as field 0 the result and as others what was thrown |
//!
//! A struct is fields, each with its type (1) and number (2), and a zero behind the last one.

use crate::answers::ServerError;
use crate::link::LinkError;
use crate::stream::Stream;

/// The largest reply that is accepted, in bytes.
const FRAME_BYTES_MAX: usize = 256 << 20;
/// Values within values, at most.
const DEPTH_MAX: usize = 32;
/// Where a reply ends too early.
const SHORT: LinkError = LinkError::Protocol("a reply of Thrift that is too short");

mod kind {
    //! Types of values.
    pub(super) const BOOL: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const DOUBLE: u8 = 4;
    pub(super) const I16: u8 = 6;
    pub(super) const I32: u8 = 8;
    pub(super) const I64: u8 = 10;
    pub(super) const BYTES: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
    pub(super) const MAP: u8 = 13;
    pub(super) const SET: u8 = 14;
    pub(super) const LIST: u8 = 15;
}

/// A value of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A truth, a byte, a number of two, four or eight bytes; of a double its bits.
    Number(i64),
    /// Bytes, or a text.
    Bytes(Vec<u8>),
    /// A list or a set, and of a map keys and values in turn.
    List(Vec<Value>),
    /// Fields with their numbers.
    Struct(Vec<(i16, Value)>),
}

impl Value {
    /// The field of a struct.
    pub fn field(&self, number: i16) -> Option<&Value> {
        let Value::Struct(fields) = self else {
            return None;
        };
        let found = fields.iter().find(|(own, _)| *own == number);
        found.map(|(_, value)| value)
    }

    /// What a list has; nothing of anything else.
    pub fn list(&self) -> &[Value] {
        match self {
            Value::List(list) => list,
            Value::Number(_) | Value::Bytes(_) | Value::Struct(_) => &[],
        }
    }

    /// Bytes; none of anything else.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Number(_) | Value::List(_) | Value::Struct(_) => None,
        }
    }

    /// A number; none of anything else.
    pub fn number(&self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Bytes(_) | Value::List(_) | Value::Struct(_) => None,
        }
    }
}

/// The arguments of a call, or a struct in them, that is being written.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<u8>);

impl Fields {
    fn head(&mut self, kind: u8, number: i16) {
        self.0.push(kind);
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    /// Bytes, or a text.
    pub fn bytes(&mut self, number: i16, value: &[u8]) {
        self.head(kind::BYTES, number);
        self.0
            .extend_from_slice(&(value.len() as u32).to_be_bytes());
        self.0.extend_from_slice(value);
    }

    /// A truth.
    pub fn truth(&mut self, number: i16, value: bool) {
        self.head(kind::BOOL, number);
        self.0.push(u8::from(value));
    }

    /// A number of four bytes, such as one of an enum.
    pub fn int(&mut self, number: i16, value: i32) {
        self.head(kind::I32, number);
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// A number of eight bytes.
    pub fn long(&mut self, number: i16, value: i64) {
        self.head(kind::I64, number);
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// A struct.
    pub fn fields(&mut self, number: i16, value: &Fields) {
        self.head(kind::STRUCT, number);
        self.0.extend_from_slice(&value.0);
        self.0.push(0);
    }

    /// A list of structs.
    pub fn list(&mut self, number: i16, values: &[Fields]) {
        self.head(kind::LIST, number);
        self.0.push(kind::STRUCT);
        self.0
            .extend_from_slice(&(values.len() as u32).to_be_bytes());
        for value in values {
            self.0.extend_from_slice(&value.0);
            self.0.push(0);
        }
    }
}

/// One connection.
#[derive(Debug)]
pub struct Thrift {
    /// Its bytes.
    pub stream: Stream,
    calls: u32,
}

impl Thrift {
    /// The protocol on a connection.
    pub fn new(stream: Stream) -> Thrift {
        Thrift { stream, calls: 0 }
    }

    /// Calls a method: what it returns is field 0 of the struct, what it throws are others.
    ///
    /// # Errors
    /// The connection broke. [`LinkError::Server`] with `TH` and the number of an exception of
    /// Thrift itself: such as `TH001`, that there is no such method.
    pub async fn call(&mut self, method: &str, arguments: &Fields) -> Result<Value, LinkError> {
        self.calls = self.calls.wrapping_add(1);
        let length = 4 + 4 + method.len() + 4 + arguments.0.len() + 1;
        let Some(length) = u32::try_from(length)
            .ok()
            .filter(|&it| it as usize <= FRAME_BYTES_MAX)
        else {
            return Err(LinkError::Server(ServerError {
                sqlstate: String::from("TH007"),
                message: String::from("a call of more than 256 MiB"),
            }));
        };
        let out = &mut self.stream.out;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[0x80, 1, 0, 1]);
        out.extend_from_slice(&(method.len() as u32).to_be_bytes());
        out.extend_from_slice(method.as_bytes());
        out.extend_from_slice(&self.calls.to_be_bytes());
        out.extend_from_slice(&arguments.0);
        out.push(0);
        self.stream.flush().await?;
        self.stream.fill(4).await?;
        let place = self.stream.take(4);
        let length = self.stream.bytes(place).try_into().map(u32::from_be_bytes);
        let length = length.map_or(usize::MAX, |length| length as usize);
        if length > FRAME_BYTES_MAX {
            return Err(LinkError::Protocol("a reply of Thrift without a frame"));
        }
        self.stream.fill(length).await?;
        let place = self.stream.take(length);
        reply_of(self.stream.bytes(place), self.calls)
    }
}

fn reply_of(bytes: &[u8], call: u32) -> Result<Value, LinkError> {
    let mut reader = Reader(bytes);
    let head = reader.array::<4>()?;
    reader.bytes()?;
    let number = u32::from_be_bytes(reader.array()?);
    if head[..3] != [0x80, 1, 0] || number != call {
        return Err(LinkError::Protocol(
            "a reply of Thrift that is none to the call",
        ));
    }
    let answer = reader.value(kind::STRUCT, 0)?;
    match head[3] {
        2 => Ok(answer),
        3 => {
            let code = answer.field(2).and_then(Value::number).unwrap_or(0);
            Err(LinkError::Server(ServerError {
                sqlstate: format!("TH{code:03}"),
                message: text_of(answer.field(1)),
            }))
        }
        _ => Err(LinkError::Protocol("a kind of reply of Thrift")),
    }
}

/// A text of a reply, for messages.
pub fn text_of(value: Option<&Value>) -> String {
    let bytes = value.and_then(Value::bytes);
    String::from_utf8_lossy(bytes.unwrap_or(b"without a message")).into_owned()
}

/// What is left of a reply.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], LinkError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn count(&mut self) -> Result<usize, LinkError> {
        let count = i32::from_be_bytes(self.array()?);
        usize::try_from(count).map_err(|_| LinkError::Protocol("a count of Thrift"))
    }

    fn bytes(&mut self) -> Result<&'a [u8], LinkError> {
        let length = self.count()?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn value(&mut self, of: u8, depth: usize) -> Result<Value, LinkError> {
        if depth == DEPTH_MAX {
            return Err(LinkError::Protocol("a reply of Thrift is too deep"));
        }
        Ok(match of {
            kind::BOOL | kind::BYTE => Value::Number(i64::from(i8::from_be_bytes(self.array()?))),
            kind::I16 => Value::Number(i64::from(i16::from_be_bytes(self.array()?))),
            kind::I32 => Value::Number(i64::from(i32::from_be_bytes(self.array()?))),
            kind::I64 | kind::DOUBLE => Value::Number(i64::from_be_bytes(self.array()?)),
            kind::BYTES => Value::Bytes(self.bytes()?.to_vec()),
            kind::STRUCT => {
                let mut fields = Vec::new();
                loop {
                    let [kind] = self.array()?;
                    if kind == 0 {
                        return Ok(Value::Struct(fields));
                    }
                    let number = i16::from_be_bytes(self.array()?);
                    fields.push((number, self.value(kind, depth + 1)?));
                }
            }
            kind::LIST | kind::SET => {
                let [kind] = self.array()?;
                // What is announced may be far more than there is: nothing is reserved. Every
                // value has a byte at least.
                let mut list = Vec::new();
                for _ in 0..self.count()? {
                    list.push(self.value(kind, depth + 1)?);
                }
                Value::List(list)
            }
            kind::MAP => {
                let [of_key, of_value] = self.array()?;
                let mut list = Vec::new();
                for _ in 0..self.count()? {
                    list.push(self.value(of_key, depth + 1)?);
                    list.push(self.value(of_value, depth + 1)?);
                }
                Value::List(list)
            }
            _ => return Err(LinkError::Protocol("a type of Thrift")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::ready;
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};

    /// A reply to the first call, with a frame.
    fn reply(kind: u8, fields: &Fields) -> Vec<u8> {
        let mut body = vec![0x80, 1, 0, kind];
        body.extend_from_slice(&3u32.to_be_bytes());
        body.extend_from_slice(b"get");
        body.extend_from_slice(&1u32.to_be_bytes());
        body.extend_from_slice(&fields.0);
        body.push(0);
        let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&body);
        bytes
    }

    /// What comes of these bytes of a server, which closes the connection behind them.
    fn read(bytes: &[u8]) -> Result<Value, LinkError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut far = listener.accept().unwrap().0;
        far.write_all(bytes).unwrap();
        far.shutdown(Shutdown::Write).unwrap();
        ready(Thrift::new(Stream::new(near)).call("get", &Fields::default()))
    }

    /// All types.
    fn fields() -> Fields {
        let mut inner = Fields::default();
        inner.bytes(1, b"row");
        inner.long(3, -5);
        let mut fields = Fields::default();
        fields.truth(1, true);
        fields.int(2, -7);
        fields.list(3, &[inner.clone(), Fields::default()]);
        fields.fields(0, &inner);
        fields.head(kind::MAP, 9);
        fields
            .0
            .extend_from_slice(&[kind::BYTE, kind::I16, 0, 0, 0, 1, 4, 1, 0]);
        fields.head(kind::DOUBLE, 10);
        fields.0.extend_from_slice(&[0; 8]);
        fields
    }

    #[test]
    fn replies_are_read() {
        let value = read(&reply(2, &fields())).unwrap();
        assert_eq!(value.field(1), Some(&Value::Number(1)));
        assert_eq!(value.field(2), Some(&Value::Number(-7)));
        let first = &value.field(3).unwrap().list()[0];
        assert_eq!(first.field(3), Some(&Value::Number(-5)));
        assert_eq!(value.field(0), Some(first));
        assert_eq!(first.field(1).unwrap().bytes(), Some(&b"row"[..]));
        let map = Value::List(vec![Value::Number(4), Value::Number(256)]);
        assert_eq!(value.field(9), Some(&map));
        assert_eq!((value.field(4), value.list().len()), (None, 0));
    }

    #[test]
    fn refusals_have_their_numbers() {
        let mut fields = Fields::default();
        fields.bytes(1, b"Invalid method name");
        fields.int(2, 1);
        let Err(LinkError::Server(error)) = read(&reply(3, &fields)) else {
            panic!("it is accepted");
        };
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("TH001", "Invalid method name")
        );
    }

    #[test]
    fn bad_replies_are_errors() {
        let right = reply(2, &fields());
        assert!(matches!(read(b""), Err(LinkError::Io(..))));
        assert!(matches!(read(&right[..9]), Err(LinkError::Io(..))));
        for length in 0..right.len() - 4 {
            let cut = &right[4..4 + length];
            assert!(matches!(reply_of(cut, 1), Err(LinkError::Protocol(_))));
        }
        assert!(matches!(
            reply_of(&right[4..], 2),
            Err(LinkError::Protocol(_))
        ));
        // What a server without frames sends.
        assert!(matches!(read(&right[4..]), Err(LinkError::Protocol(_))));
        assert!(matches!(read(b"HTTP/1.1 400"), Err(LinkError::Protocol(_))));
        let deep = Fields([kind::STRUCT, 0, 1].repeat(100_000));
        assert!(matches!(
            read(&reply(2, &deep)),
            Err(LinkError::Protocol(_))
        ));
        let mut long = Fields::default();
        long.head(kind::LIST, 1);
        long.0
            .extend_from_slice(&[kind::I64, 0x7f, 0xff, 0xff, 0xff]);
        assert!(matches!(
            read(&reply(2, &long)),
            Err(LinkError::Protocol(_))
        ));
    }

    /// Bytes that are drawn, and right replies of which one byte is wrong, are values or errors.
    #[test]
    fn odd_bytes_are_never_more_than_an_error() {
        let mut prng = base::Prng::new(6);
        let right = reply(2, &fields());
        for turn in 0..20_000 {
            let mut bytes = right[4..].to_vec();
            match turn % 2 {
                0 => {
                    let at = prng.below(bytes.len() as u64) as usize;
                    bytes[at] = prng.next_u64() as u8;
                }
                _ => {
                    // Behind a right head.
                    let length = prng.below(64) as usize;
                    bytes.truncate(15);
                    bytes.extend((0..length).map(|_| prng.next_u64() as u8));
                }
            }
            let _ = reply_of(&bytes, 1);
        }
    }
}
