//! A line of text or CSV split into fields.

use super::Decoder;
use crate::search::find;
use crate::{at_text, malformed};
use base::SqlError;

/// Where the bytes of a field are: bounds in the line's buffer or, after escapes were resolved, in
/// the scratch buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Span {
    Null,
    Line(usize, usize),
    Scratch(usize, usize),
}

impl Decoder {
    /// Splits `buffer[start..end]` at delimiters that no backslash precedes.
    pub(super) fn split_text(&mut self, start: usize, end: usize) {
        let delimiter = self.options.delimiter;
        let mut field = start;
        loop {
            // Up to the delimiter, or to the first backslash on the way.
            let rest = &self.buffer[field..end];
            let stop = find(rest, [delimiter, b'\\']);
            let field_end = match stop {
                Some(at) if rest[at] == b'\\' => self.escaped_field(field, field + at, end),
                _ => {
                    let field_end = stop.map_or(end, |at| field + at);
                    let null = self.buffer[field..field_end] == *self.options.null.as_bytes();
                    self.spans.push(match null {
                        true => Span::Null,
                        false => Span::Line(field, field_end),
                    });
                    field_end
                }
            };
            if field_end == end {
                return;
            }
            field = field_end + 1;
        }
    }

    /// Reads the field from `field`, whose first backslash is at `at`, into the scratch buffer;
    /// gives the position of its delimiter or `end`.
    fn escaped_field(&mut self, field: usize, mut at: usize, end: usize) -> usize {
        let scratch = self.scratch.len();
        self.scratch.extend_from_slice(&self.buffer[field..at]);
        while at < end && self.buffer[at] != self.options.delimiter {
            let byte = self.buffer[at];
            at += 1;
            if byte != b'\\' || at == end {
                self.scratch.push(byte);
                continue;
            }
            let (value, length) = unescape(&self.buffer[at..end]);
            self.scratch.push(value);
            at += length;
        }
        // The NULL string is compared before escapes are resolved.
        if self.buffer[field..at] == *self.options.null.as_bytes() {
            self.scratch.truncate(scratch);
            self.spans.push(Span::Null);
        } else {
            self.spans.push(Span::Scratch(scratch, self.scratch.len()));
        }
        at
    }

    /// Splits `buffer[start..end]` at delimiters outside of quotes.
    pub(super) fn split_csv(&mut self, start: usize, end: usize) -> Result<(), SqlError> {
        let (delimiter, quote) = (self.options.delimiter, self.options.quote);
        let mut field = start;
        loop {
            let rest = &self.buffer[field..end];
            let stop = find(rest, [delimiter, quote]);
            let (field_end, span, quoted) = match stop {
                Some(at) if rest[at] == quote => {
                    let scratch = self.scratch.len();
                    let Some(field_end) = self.quoted_field(field, end) else {
                        let place = at_text(&self.table, self.line, &self.buffer[start..end]);
                        return Err(malformed("unterminated CSV quoted field", place));
                    };
                    (field_end, Span::Scratch(scratch, self.scratch.len()), true)
                }
                _ => {
                    let field_end = stop.map_or(end, |at| field + at);
                    (field_end, Span::Line(field, field_end), false)
                }
            };
            let span = self.null_or(span, quoted);
            self.spans.push(span);
            if field_end == end {
                return Ok(());
            }
            field = field_end + 1;
        }
    }

    /// Reads a field with quotes into the scratch buffer; gives the position of its delimiter or
    /// `end`, or `None` if a quote is not closed.
    fn quoted_field(&mut self, mut at: usize, end: usize) -> Option<usize> {
        let (delimiter, quote, escape) = (
            self.options.delimiter,
            self.options.quote,
            self.options.escape,
        );
        let mut in_quote = false;
        while at < end {
            let byte = self.buffer[at];
            if !in_quote && byte == delimiter {
                return Some(at);
            }
            at += 1;
            if in_quote && byte == escape {
                let next = self.buffer[at..end].first().copied();
                if let Some(next) = next.filter(|&next| next == escape || next == quote) {
                    self.scratch.push(next);
                    at += 1;
                    continue;
                }
            }
            if byte == quote {
                in_quote = !in_quote;
            } else {
                self.scratch.push(byte);
            }
        }
        (!in_quote).then_some(end)
    }

    /// NULL in place of the next field if its content says so.
    fn null_or(&self, span: Span, quoted: bool) -> Span {
        let content = match span {
            Span::Null => return span,
            Span::Line(start, end) => &self.buffer[start..end],
            Span::Scratch(start, end) => &self.scratch[start..end],
        };
        if content != self.options.null.as_bytes() {
            return span;
        }
        let target = self.columns.get(self.spans.len());
        let null = match quoted {
            true => target.is_some_and(|target| target.force_null),
            false => !target.is_some_and(|target| target.force_not_null),
        };
        if null { Span::Null } else { span }
    }
}

/// The byte that stands for what follows a backslash, and how many bytes that is. `rest` is not
/// empty.
fn unescape(rest: &[u8]) -> (u8, usize) {
    let simple = match rest[0] {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'0'..=b'7' => return digits(rest, 8, 3),
        b'x' if rest.get(1).is_some_and(u8::is_ascii_hexdigit) => {
            let (value, length) = digits(&rest[1..], 16, 2);
            return (value, length + 1);
        }
        other => other,
    };
    (simple, 1)
}

/// Reads up to `most` digits; larger values wrap to a byte, as in PostgreSQL.
fn digits(rest: &[u8], radix: u32, most: usize) -> (u8, usize) {
    let mut value = 0;
    let mut length = 0;
    for digit in rest
        .iter()
        .take(most)
        .map_while(|&byte| char::from(byte).to_digit(radix))
    {
        value = value * radix + digit;
        length += 1;
    }
    (value as u8, length)
}
