//! Reads the bodies of messages whose frames are whole.

use crate::{ClientMessage, Format};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{SqlError, SqlState};

/// A message that cannot be read.
pub(crate) struct Bad {
    pub(crate) error: SqlError,
    /// The stream cannot be trusted any more.
    pub(crate) fatal: bool,
}

impl From<SqlError> for Bad {
    fn from(error: SqlError) -> Self {
        Bad {
            error,
            fatal: false,
        }
    }
}

fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// What is left of a body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| violation("insufficient data left in message"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, SqlError> {
        Ok(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, SqlError> {
        Ok(u16::from_be_bytes(
            self.bytes(2)?.try_into().expect("two bytes"),
        ))
    }

    fn u32(&mut self) -> Result<u32, SqlError> {
        Ok(u32::from_be_bytes(
            self.bytes(4)?.try_into().expect("four bytes"),
        ))
    }

    /// A text that ends with a zero byte.
    fn text(&mut self) -> Result<&'a str, SqlError> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| violation("invalid string in message"))?;
        let text = &self.0[..end];
        self.0 = &self.0[end + 1..];
        utf8(text)
    }

    fn formats(&mut self) -> Result<Vec<Format>, SqlError> {
        let count = usize::from(self.u16()?);
        // Checked before anything is reserved for it.
        let mut codes = Body(self.bytes(count * 2)?);
        (0..count).map(|_| format(codes.u16()?)).collect()
    }

    /// Values behind their number, each behind its length.
    fn values(&mut self, bad_length: &str) -> Result<Vec<Option<Vec<u8>>>, SqlError> {
        let count = usize::from(self.u16()?);
        // Each takes at least the four bytes of its length.
        if self.0.len() < count * 4 {
            return Err(violation("insufficient data left in message"));
        }
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.u32()? as i32;
            values.push(match length {
                -1 => None,
                0.. => Some(self.bytes(length as usize)?.to_vec()),
                _ => return Err(violation(bad_length)),
            });
        }
        Ok(values)
    }

    fn end(&self) -> Result<(), SqlError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(violation("invalid message format"))
        }
    }
}

fn format(code: u16) -> Result<Format, SqlError> {
    match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            format!("unsupported format code: {code}"),
        )),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    core::str::from_utf8(bytes).map_err(|error| {
        let mut message = "invalid byte sequence for encoding \"UTF8\":".to_owned();
        let bad = &bytes[error.valid_up_to()..];
        let length = error.error_len().unwrap_or(bad.len()).max(1);
        for byte in &bad[..length] {
            message.push_str(&format!(" 0x{byte:02x}"));
        }
        SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
    })
}

/// The parameters of a startup packet, behind its version.
pub(crate) fn startup(rest: &[u8]) -> Result<Vec<(String, String)>, SqlError> {
    let mut body = Body(rest);
    let mut parameters = Vec::new();
    loop {
        let name = body.text().map_err(layout)?;
        if name.is_empty() {
            break;
        }
        let value = body.text().map_err(layout)?;
        parameters.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    body.end().map_err(layout)?;
    Ok(parameters)
}

fn layout(error: SqlError) -> SqlError {
    if error.state() == SqlState::CHARACTER_NOT_IN_REPERTOIRE {
        return error;
    }
    violation("invalid startup packet layout: expected terminator as last byte")
}

/// Reads one tagged message.
pub(crate) fn message(tag: u8, bytes: &[u8]) -> Result<ClientMessage, Bad> {
    let mut body = Body(bytes);
    let message = match tag {
        b'Q' => ClientMessage::Query(body.text()?.to_owned()),
        b'P' => parse(&mut body)?,
        b'B' => bind(&mut body)?,
        b'D' | b'C' => about(tag, &mut body)?,
        b'E' => {
            let portal = body.text()?.to_owned();
            // A negative number means no limit, as 0 does.
            let rows_max = i32::try_from(i64::from(body.u32()? as i32))
                .unwrap_or(0)
                .max(0) as u32;
            ClientMessage::Execute { portal, rows_max }
        }
        b'S' => ClientMessage::Sync,
        b'H' => ClientMessage::Flush,
        b'd' => return Ok(ClientMessage::CopyData(bytes.to_vec())),
        b'c' => ClientMessage::CopyDone,
        b'f' => ClientMessage::CopyFail(body.text()?.to_owned()),
        b'X' => return Ok(ClientMessage::Terminate),
        b'F' => function_call(&mut body)?,
        _ => {
            let error = violation(format!("invalid frontend message type {tag}"));
            return Err(Bad { error, fatal: true });
        }
    };
    body.end()?;
    Ok(message)
}

/// A message of `length` bytes that has not been stored.
/// 53200: a message for which the node has no memory.
pub(crate) fn no_room(length: usize) -> SqlError {
    let message = format!("the memory of this node is used up: no room for {length} bytes");
    SqlError::new(SqlState::OUT_OF_MEMORY, message)
        .hint("Send less at a time, or raise the node's limit (SHOW MEMORY).")
}

pub(crate) fn too_large(tag: u8, length: usize) -> SqlError {
    let what = match tag {
        b'Q' | b'P' => "statement",
        b'B' => "set of parameters",
        b'd' => "piece of COPY data",
        _ => "message",
    };
    let limit = crate::MESSAGE_BYTES_MAX;
    let message = format!("{what} of {length} bytes is too large");
    SqlError::new(SqlState::PROGRAM_LIMIT, message)
        .detail(format!("A message may have at most {limit} bytes."))
        .hint("Use COPY, or several statements.")
}

fn parse(body: &mut Body<'_>) -> Result<ClientMessage, SqlError> {
    let name = body.text()?.to_owned();
    let text = body.text()?.to_owned();
    let count = usize::from(body.u16()?);
    let mut oids = Body(body.bytes(count * 4)?);
    let types: Result<Vec<u32>, SqlError> = (0..count).map(|_| oids.u32()).collect();
    Ok(ClientMessage::Parse {
        name,
        text,
        types: types?,
    })
}

fn bind(body: &mut Body<'_>) -> Result<ClientMessage, SqlError> {
    let portal = body.text()?.to_owned();
    let statement = body.text()?.to_owned();
    let formats = body.formats()?;
    let params = body.values("invalid parameter length in bind message")?;
    let result_formats = body.formats()?;
    Ok(ClientMessage::Bind {
        portal,
        statement,
        formats,
        params,
        result_formats,
    })
}

fn function_call(body: &mut Body<'_>) -> Result<ClientMessage, SqlError> {
    let function = body.u32()?;
    let formats = body.formats()?;
    let args = body.values("invalid argument size in function call message")?;
    if formats.len() > 1 && formats.len() != args.len() {
        let (formats, args) = (formats.len(), args.len());
        return Err(violation(format!(
            "function call message contains {formats} argument formats but {args} arguments"
        )));
    }
    Ok(ClientMessage::FunctionCall {
        function,
        formats,
        args,
        result_format: format(body.u16()?)?,
    })
}

fn about(tag: u8, body: &mut Body<'_>) -> Result<ClientMessage, SqlError> {
    let kind = body.u8()?;
    let name = body.text()?.to_owned();
    Ok(match (tag, kind) {
        (b'D', b'S') => ClientMessage::DescribeStatement(name),
        (b'D', b'P') => ClientMessage::DescribePortal(name),
        (b'C', b'S') => ClientMessage::CloseStatement(name),
        (b'C', b'P') => ClientMessage::ClosePortal(name),
        _ => {
            let what = if tag == b'D' { "DESCRIBE" } else { "CLOSE" };
            return Err(violation(format!("invalid {what} message subtype {kind}")));
        }
    })
}
