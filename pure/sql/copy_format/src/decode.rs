//! COPY data to rows of fields, from chunks that are cut anywhere.
//!
//! A row is found in two passes: [`scan`] finds where its line ends, which can resume when more
//! data arrives, then its fields are split. Both touch every byte once.

mod binary;
mod fields;
mod scan;

use super::{at_line, at_text, malformed};
use base::{SqlError, SqlState};
use fields::Span;
use parse::copy::{CopyOptions, Format, Header};
use scan::{LineEnd, Scan};

/// Reads rows from chunks of COPY data.
///
/// Call [`Decoder::push`] for each chunk, then [`Decoder::next_row`] until it answers `None`; after
/// the last chunk call [`Decoder::end`] and drain the rows once more. After an error the decoder
/// must not be used again.
pub struct Decoder {
    options: CopyOptions,
    table: String,
    columns: Vec<Target>,
    /// Data not yet given out starts at `start`.
    buffer: Vec<u8>,
    start: usize,
    /// No more chunks will come.
    at_end: bool,
    /// The end marker was read: what follows is ignored (an error in binary).
    finished: bool,
    /// The header line or binary header is still to come.
    header_due: bool,
    scan: Scan,
    /// Lines (binary: rows) read so far.
    line: u64,
    scratch: Vec<u8>,
    spans: Vec<Span>,
}

/// A column that fields are for.
struct Target {
    name: String,
    force_not_null: bool,
    force_null: bool,
}

/// One row: its fields in the order of the columns, lent until the next call of the decoder.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    /// Line of the data, from 1 (binary: row).
    pub line: u64,
    buffer: &'a [u8],
    scratch: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Fields<'a> {
    /// Number of fields; as many as the decoder has columns.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the row has no fields (a table without columns).
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes of all fields.
    pub fn size_bytes(&self) -> usize {
        let size = |span: &Span| match span {
            Span::Null => 0,
            Span::Line(start, end) | Span::Scratch(start, end) => end - start,
        };
        self.spans.iter().map(size).sum()
    }

    /// The bytes of field `index`, from 0, after escapes; `None` is NULL.
    pub fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        match self.spans[index] {
            Span::Null => None,
            Span::Line(start, end) => Some(&self.buffer[start..end]),
            Span::Scratch(start, end) => Some(&self.scratch[start..end]),
        }
    }

    /// The text of field `index`; `None` is NULL.
    ///
    /// # Errors
    /// 22021 if it is not UTF-8 or holds a zero byte.
    pub fn text(&self, index: usize) -> Result<Option<&'a str>, SqlError> {
        let Some(bytes) = self.bytes(index) else {
            return Ok(None);
        };
        let at = match core::str::from_utf8(bytes) {
            Ok(text) if !bytes.contains(&0) => return Ok(Some(text)),
            Ok(_) => bytes.iter().position(|&byte| byte == 0).unwrap_or(0),
            Err(error) => error.valid_up_to(),
        };
        // The bytes of the broken character: up to four, as PostgreSQL lists them.
        let length = match bytes[at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        let listed: Vec<String> = bytes[at..]
            .iter()
            .take(length)
            .map(|byte| format!("0x{byte:02x}"))
            .collect();
        let message = format!(
            "invalid byte sequence for encoding \"UTF8\": {}",
            listed.join(" ")
        );
        Err(SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            message,
        ))
    }
}

impl Decoder {
    /// A decoder of rows of `table` with values for these columns, in the order of the statement.
    pub fn new(
        options: CopyOptions,
        table: &str,
        columns: impl IntoIterator<Item = String>,
    ) -> Decoder {
        let target = |name: String| Target {
            force_not_null: options.force_not_null.contains(&name),
            force_null: options.force_null.contains(&name),
            name,
        };
        let columns = columns.into_iter().map(target).collect();
        let header_due = options.format == Format::Binary || options.header != Header::No;
        Decoder {
            table: table.to_owned(),
            columns,
            buffer: Vec::new(),
            start: 0,
            at_end: false,
            finished: false,
            header_due,
            scan: Scan::default(),
            line: 0,
            scratch: Vec::new(),
            spans: Vec::new(),
            options,
        }
    }

    /// Whether the data is expected as text (format code 0 of CopyInResponse) or binary (1).
    pub fn is_binary(&self) -> bool {
        self.options.format == Format::Binary
    }

    /// Gives the decoder the next chunk.
    pub fn push(&mut self, chunk: Vec<u8>) {
        assert!(!self.at_end, "no chunk follows the end of the data");
        if self.finished && !self.is_binary() {
            return;
        }
        if self.start == self.buffer.len() {
            self.buffer = chunk;
            self.start = 0;
            return;
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(&chunk);
    }

    /// Tells that the last chunk was pushed.
    pub fn end(&mut self) {
        self.at_end = true;
    }

    /// Lines (binary: rows) read so far, header included.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bytes that wait for the rest of their row, for memory accounting.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The next row, or `None` when more data is needed or all was read.
    ///
    /// # Errors
    /// 22P04 for malformed data, with the place as detail.
    pub fn next_row(&mut self) -> Result<Option<Fields<'_>>, SqlError> {
        let found = match self.options.format {
            Format::Binary => self.next_binary()?,
            Format::Text | Format::Csv => self.next_line()?,
        };
        Ok(found.then_some(Fields {
            line: self.line,
            buffer: &self.buffer,
            scratch: &self.scratch,
            spans: &self.spans,
        }))
    }

    /// Reads the next line into `spans`; `false`: there is none yet.
    fn next_line(&mut self) -> Result<bool, SqlError> {
        while let Some((start, end)) = self.take_line()? {
            if core::mem::take(&mut self.header_due) {
                self.check_header(start, end)?;
                continue;
            }
            self.split(start, end)?;
            self.check_count(start, end)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Bounds of the next line in the buffer, without its end; consumes it.
    fn take_line(&mut self) -> Result<Option<(usize, usize)>, SqlError> {
        if self.finished {
            self.start = self.buffer.len();
            return Ok(None);
        }
        let start = self.start;
        let rest = &self.buffer[start..];
        let found = match self.options.format {
            Format::Csv => {
                self.scan
                    .csv_line(rest, self.at_end, self.options.quote, self.options.escape)
            }
            _ => self.scan.text_line(rest, self.at_end),
        };
        let found = found.map_err(|problem| {
            let csv = self.options.format == Format::Csv;
            let place = at_line(&self.table, self.line + 1);
            malformed(problem.message(csv), place).hint(problem.hint(csv))
        })?;
        match found {
            LineEnd::NeedMore => Ok(None),
            LineEnd::Line {
                length,
                consumed,
                inner_lines,
            } => {
                self.start += consumed;
                self.line += 1 + inner_lines;
                Ok(Some((start, start + length)))
            }
            LineEnd::EndMarker { length } => {
                self.finished = true;
                self.start = self.buffer.len();
                if length == 0 {
                    return Ok(None);
                }
                self.line += 1;
                Ok(Some((start, start + length)))
            }
        }
    }

    /// Splits the line into `spans` and `scratch`.
    fn split(&mut self, start: usize, end: usize) -> Result<(), SqlError> {
        self.spans.clear();
        self.scratch.clear();
        if self.columns.is_empty() && start == end {
            return Ok(());
        }
        match self.options.format {
            Format::Csv => self.split_csv(start, end),
            _ => {
                self.split_text(start, end);
                Ok(())
            }
        }
    }

    fn check_header(&mut self, start: usize, end: usize) -> Result<(), SqlError> {
        if self.options.header != Header::Match {
            return Ok(());
        }
        self.split(start, end)?;
        let place = at_line(&self.table, self.line);
        let (found, expected) = (self.spans.len(), self.columns.len());
        if found != expected {
            let message =
                format!("wrong number of fields in header line: got {found}, expected {expected}");
            return Err(malformed(message, place));
        }
        let fields = Fields {
            line: self.line,
            buffer: &self.buffer,
            scratch: &self.scratch,
            spans: &self.spans,
        };
        for (index, column) in self.columns.iter().enumerate() {
            let (number, name) = (index + 1, &column.name);
            let got = match fields.bytes(index) {
                Some(bytes) if bytes == name.as_bytes() => continue,
                Some(bytes) => format!("got \"{}\"", String::from_utf8_lossy(bytes)),
                None => format!("got null value (\"{}\")", self.options.null),
            };
            let message = format!(
                "column name mismatch in header line field {number}: {got}, expected \"{name}\""
            );
            return Err(malformed(message, place));
        }
        Ok(())
    }

    fn check_count(&self, start: usize, end: usize) -> Result<(), SqlError> {
        let place = || at_text(&self.table, self.line, &self.buffer[start..end]);
        if let Some(missing) = self.columns.get(self.spans.len()) {
            let message = format!("missing data for column \"{}\"", missing.name);
            return Err(malformed(message, place()));
        }
        if self.spans.len() > self.columns.len() {
            return Err(malformed("extra data after last expected column", place()));
        }
        Ok(())
    }
}
