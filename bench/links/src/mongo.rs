//! A client of MongoDB: commands and their replies (OP_MSG).
//!
//! What the server refuses is [`LinkError::Server`] with its number as SQLSTATE behind `MG`:
//! `MG11000` is a key that is there already. A write that was done, and not written as safely as it
//! was asked for, is `MGWC`.

use crate::answers::ServerError;
use crate::bson::{Bson, Doc};
use crate::link::{LinkError, reach, ready};
use crate::stream::Stream;
use crate::url::{Endpoint, Target};
use std::time::Duration;

/// The largest message that is accepted, in bytes: that of the protocol.
const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// The head of a message, in bytes.
const HEAD_BYTES: usize = 16;
/// The number of the message with commands and replies.
const OP_MSG: u32 = 2013;
/// The version of the protocol in which OP_MSG has come.
const WIRE_VERSION: i64 = 6;
/// Flag of a message that ends with four bytes of a checksum.
const HAS_CHECKSUM: u32 = 1;

/// One connection to a server.
#[derive(Debug)]
pub struct Mongo {
    /// Its bytes.
    pub stream: Stream,
    database: String,
    requests: u32,
}

impl Mongo {
    /// Connects. `timeout` bounds every wait. Without a database in the target it is `test`.
    ///
    /// # Errors
    /// No server, or one without OP_MSG; or the target has a password: accounts are not known here.
    pub fn connect(
        endpoint: &Endpoint,
        target: &Target,
        timeout: Option<Duration>,
    ) -> Result<Mongo, LinkError> {
        if target.password.is_some() {
            return Err(LinkError::Protocol(
                "MongoDB is spoken to without a password",
            ));
        }
        let stream = reach(endpoint, timeout)?;
        stream.set_timeout(timeout)?;
        let database = match target.database.as_str() {
            "" => "test",
            name => name,
        };
        let mut mongo = Mongo {
            stream,
            database: database.to_owned(),
            requests: 0,
        };
        let hello = ready(mongo.command(Doc::new().with("hello", 1)))?;
        match hello.int("maxWireVersion") {
            Some(version) if version >= WIRE_VERSION => Ok(mongo),
            _ => Err(LinkError::Protocol("a server of MongoDB before 3.6")),
        }
    }

    /// Product and release of the server.
    ///
    /// # Errors
    /// As for [`Mongo::command`].
    pub async fn version(&mut self) -> Result<String, LinkError> {
        let info = self.command(Doc::new().with("buildInfo", 1)).await?;
        let own = info.text("version").unwrap_or("of an unknown version");
        let ferret = info
            .doc("ferretdb")
            .and_then(|ferret| ferret.text("version"));
        Ok(match ferret.or(info.text("ferretdbVersion")) {
            Some(version) => format!("FerretDB {}", version.trim_start_matches('v')),
            None => format!("MongoDB {own}"),
        })
    }

    /// Sends a command for the database and waits for its reply.
    ///
    /// # Errors
    /// The connection broke, or the server refuses the command, or a write in it.
    pub async fn command(&mut self, mut command: Doc) -> Result<Doc, LinkError> {
        command.push("$db", self.database.as_str());
        self.requests = self.requests.wrapping_add(1);
        let out = &mut self.stream.out;
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        for number in [self.requests, 0, OP_MSG, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.push(0);
        command.write(out);
        let length = (out.len() - at) as u32;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
        self.stream.flush().await?;
        self.answer().await
    }

    /// Waits for the reply to the last command.
    async fn answer(&mut self) -> Result<Doc, LinkError> {
        let reply = self.reply().await?;
        match refusal(&reply) {
            Some(error) => Err(LinkError::Server(error)),
            None => Ok(reply),
        }
    }

    async fn reply(&mut self) -> Result<Doc, LinkError> {
        self.stream.fill(HEAD_BYTES).await?;
        let head = self.stream.unread();
        let word = |at: usize| {
            let bytes = head[at..at + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        let (length, request, kind) = (word(0) as usize, word(8), word(12));
        if kind != OP_MSG || request != self.requests {
            return Err(LinkError::Protocol("a message of MongoDB of another kind"));
        }
        if !(HEAD_BYTES + 10..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(LinkError::Protocol("the length of a message of MongoDB"));
        }
        self.stream.fill(length).await?;
        let place = self.stream.take(length);
        let message = &self.stream.bytes(place)[HEAD_BYTES..];
        document_of(message).ok_or(LinkError::Protocol("a reply of MongoDB"))
    }
}

/// The document of a message behind its head.
fn document_of(message: &[u8]) -> Option<Doc> {
    let (flags, rest) = message.split_first_chunk::<4>()?;
    let mut sections = match u32::from_le_bytes(*flags) & HAS_CHECKSUM {
        0 => rest,
        _ => rest.split_last_chunk::<4>()?.0,
    };
    while let Some((kind, rest)) = sections.split_first() {
        let (section, rest) = rest.split_at_checked(Doc::length(rest)?)?;
        if *kind == 0 {
            return Doc::read(section);
        }
        sections = rest;
    }
    None
}

/// What a reply says was not done.
fn refusal(reply: &Doc) -> Option<ServerError> {
    let error = |doc: &Doc, text: Option<&str>| ServerError {
        sqlstate: format!("MG{}", doc.int("code").unwrap_or(0)),
        message: text.unwrap_or("without a message").to_owned(),
    };
    if reply.int("ok") != Some(1) {
        return Some(error(reply, reply.text("errmsg")));
    }
    if let Some(Bson::Doc(first)) = reply.list("writeErrors").and_then(<[Bson]>::first) {
        return Some(error(first, first.text("errmsg")));
    }
    let concern = reply.doc("writeConcernError")?;
    Some(ServerError {
        sqlstate: String::from("MGWC"),
        message: concern
            .text("errmsg")
            .unwrap_or("not written safely")
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// What comes of a reply before the server closes the connection.
    fn read(message: &[u8]) -> Result<Doc, LinkError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        listener.accept().unwrap().0.write_all(message).unwrap();
        let mut mongo = Mongo {
            stream: Stream::new(near),
            database: String::from("test"),
            requests: 1,
        };
        ready(mongo.answer())
    }

    fn message(flags: u32, kind: u32, doc: &Doc) -> Vec<u8> {
        let mut body = vec![0];
        doc.write(&mut body);
        if flags == HAS_CHECKSUM {
            body.extend_from_slice(&[9; 4]);
        }
        let mut message = Vec::new();
        for number in [body.len() as u32 + 20, 7, 1, kind, flags] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        message.extend_from_slice(&body);
        message
    }

    #[test]
    fn replies_and_refusals_are_read() {
        let fine = Doc::new().with("n", 1).with("ok", 1.0);
        assert_eq!(read(&message(0, OP_MSG, &fine)).unwrap(), fine);
        assert_eq!(read(&message(1, OP_MSG, &fine)).unwrap(), fine);
        let refused = Doc::new()
            .with("ok", 0.0)
            .with("code", 26)
            .with("errmsg", "no");
        let error = read(&message(0, OP_MSG, &refused)).unwrap_err();
        assert!(matches!(error, LinkError::Server(it) if it.sqlstate == "MG26"));
        let of_write = Doc::new().with("index", 0).with("code", 11000);
        let writes = Doc::new()
            .with("ok", 1.0)
            .with("writeErrors", vec![Bson::Doc(of_write)]);
        let error = read(&message(0, OP_MSG, &writes)).unwrap_err();
        assert!(matches!(error, LinkError::Server(it) if it.sqlstate == "MG11000"));
        let unsafely = Doc::new()
            .with("ok", 1.0)
            .with("writeConcernError", Doc::new().with("code", 64));
        let error = read(&message(0, OP_MSG, &unsafely)).unwrap_err();
        assert!(matches!(error, LinkError::Server(it) if it.sqlstate == "MGWC"));
    }

    #[test]
    fn bad_replies_are_errors() {
        let fine = Doc::new().with("ok", 1.0);
        assert!(matches!(
            read(&message(0, 1, &fine)),
            Err(LinkError::Protocol(_))
        ));
        let mut long = message(0, OP_MSG, &fine);
        long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(read(&long), Err(LinkError::Protocol(_))));
        let mut torn = message(0, OP_MSG, &fine);
        torn[21] = 200;
        assert!(matches!(read(&torn), Err(LinkError::Protocol(_))));
        assert!(matches!(read(b""), Err(LinkError::Io(..))));
    }
}
