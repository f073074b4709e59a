//! Binary COPY data: a header, rows of length-prefixed values, a trailer.

use super::Decoder;
use super::fields::Span;
use crate::{BINARY_SIGNATURE, at_line, malformed};
use base::SqlError;

/// Bytes of signature, flags and length of the header's extension.
const HEADER_BYTES: usize = BINARY_SIGNATURE.len() + 8;

impl Decoder {
    /// Reads the next binary row into `spans`; `false`: there is none yet.
    pub(super) fn next_binary(&mut self) -> Result<bool, SqlError> {
        if self.header_due && !self.take_header()? {
            return Ok(false);
        }
        let rest = &self.buffer[self.start..];
        if self.finished {
            return match rest.is_empty() {
                true => Ok(false),
                false => Err(self.broken("received copy data after EOF marker")),
            };
        }
        let Some(count) = rest.first_chunk().map(|bytes| i16::from_be_bytes(*bytes)) else {
            // The trailer may be missing, but a row may not be cut.
            return self.need_more(rest.is_empty());
        };
        if count == -1 {
            self.finished = true;
            self.start += 2;
            return self.next_binary();
        }
        let expected = self.columns.len();
        if usize::try_from(count) != Ok(expected) {
            let message = format!("row field count is {count}, expected {expected}");
            return Err(self.broken(message));
        }
        self.spans.clear();
        let mut at = self.start + 2;
        for _ in 0..expected {
            let Some(bytes) = self.buffer[at..].first_chunk() else {
                return self.need_more(false);
            };
            let length = i32::from_be_bytes(*bytes);
            at += 4;
            if length == -1 {
                self.spans.push(Span::Null);
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                return Err(self.broken("invalid field size"));
            };
            if self.buffer.len() - at < length {
                return self.need_more(false);
            }
            self.spans.push(Span::Line(at, at + length));
            at += length;
        }
        self.start = at;
        self.line += 1;
        Ok(true)
    }

    /// Reads the header; `false`: it is not complete yet.
    fn take_header(&mut self) -> Result<bool, SqlError> {
        let rest = &self.buffer[self.start..];
        let known = rest.len().min(BINARY_SIGNATURE.len());
        if rest[..known] != BINARY_SIGNATURE[..known] || (self.at_end && known < 11) {
            return Err(self.broken("COPY file signature not recognized"));
        }
        if rest.len() < HEADER_BYTES {
            return match self.at_end {
                true => Err(self.broken("invalid COPY file header (missing flags)")),
                false => Ok(false),
            };
        }
        let number = |at: usize| {
            u32::from_be_bytes(
                *rest[at..]
                    .first_chunk()
                    .expect("the header's length was checked"),
            )
        };
        let (flags, extension) = (number(11), number(15) as usize);
        if flags & 1 << 16 != 0 {
            return Err(self.broken("invalid COPY file header (WITH OIDS)"));
        }
        if flags >> 16 != 0 {
            return Err(self.broken("unrecognized critical flags in COPY file header"));
        }
        if rest.len() - HEADER_BYTES < extension {
            return match self.at_end || extension > base::limits::FRAME_BYTES_MAX {
                true => Err(self.broken("invalid COPY file header (wrong length)")),
                false => Ok(false),
            };
        }
        self.start += HEADER_BYTES + extension;
        self.header_due = false;
        Ok(true)
    }

    /// The answer when the data stops here. `between_rows`: nothing of a row was read.
    fn need_more(&self, between_rows: bool) -> Result<bool, SqlError> {
        match self.at_end && !between_rows {
            true => Err(self.broken("unexpected EOF in COPY data")),
            false => Ok(false),
        }
    }

    fn broken(&self, message: impl Into<String>) -> SqlError {
        malformed(message, at_line(&self.table, self.line + 1))
    }
}
