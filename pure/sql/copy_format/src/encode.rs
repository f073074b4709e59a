//! Rows to COPY data.

use super::BINARY_SIGNATURE;
use base::{Datum, Type};
use parse::copy::{CopyOptions, Format, Header};

/// Writes rows in a COPY format. One encoder serves one statement.
pub struct Encoder {
    options: CopyOptions,
    columns: Vec<Column>,
    /// Text of one value, reused.
    scratch: Vec<u8>,
}

struct Column {
    name: String,
    ty: Type,
    force_quote: bool,
}

impl Encoder {
    /// An encoder of rows with these (name, type) columns.
    pub fn new(options: CopyOptions, columns: impl IntoIterator<Item = (String, Type)>) -> Encoder {
        let column = |(name, ty): (String, Type)| {
            let force_quote = options.force_quote.contains(&name);
            Column {
                name,
                ty,
                force_quote,
            }
        };
        let columns = columns.into_iter().map(column).collect();
        Encoder {
            options,
            columns,
            scratch: Vec::new(),
        }
    }

    /// Whether the data is text (format code 0 of CopyOutResponse) or binary (1).
    pub fn is_binary(&self) -> bool {
        self.options.format == Format::Binary
    }

    /// Appends what comes before the first row: the header line, the binary signature, or nothing.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        if self.options.format == Format::Binary {
            out.extend_from_slice(BINARY_SIGNATURE);
            // No flags, no header extension.
            out.extend_from_slice(&[0; 8]);
            return;
        }
        if self.options.header == Header::No {
            return;
        }
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                out.push(self.options.delimiter);
            }
            let name = column.name.as_bytes();
            match self.options.format {
                Format::Csv => csv_value(&self.options, name, false, false, out),
                _ => text_value(self.options.delimiter, name, out),
            }
        }
        out.push(b'\n');
    }

    /// Appends one row. `row` has as many values as the encoder has columns.
    pub fn row(&mut self, row: &[Datum], out: &mut Vec<u8>) {
        assert_eq!(
            row.len(),
            self.columns.len(),
            "a row has one value per column"
        );
        match self.options.format {
            Format::Binary => self.binary_row(row, out),
            Format::Text | Format::Csv => self.line(row, out),
        }
    }

    /// Appends what comes after the last row.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.options.format == Format::Binary {
            out.extend_from_slice(&(-1i16).to_be_bytes());
        }
    }

    fn line(&mut self, row: &[Datum], out: &mut Vec<u8>) {
        let alone = row.len() == 1;
        for (index, (column, datum)) in self.columns.iter().zip(row).enumerate() {
            if index > 0 {
                out.push(self.options.delimiter);
            }
            if matches!(datum, Datum::Null) {
                out.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            self.scratch.clear();
            base::text::format(column.ty, datum, &mut self.scratch);
            match self.options.format {
                Format::Csv => {
                    csv_value(&self.options, &self.scratch, column.force_quote, alone, out);
                }
                _ => text_value(self.options.delimiter, &self.scratch, out),
            }
        }
        out.push(b'\n');
    }

    fn binary_row(&mut self, row: &[Datum], out: &mut Vec<u8>) {
        out.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for (column, datum) in self.columns.iter().zip(row) {
            if matches!(datum, Datum::Null) {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            base::wire::encode(column.ty, datum, out);
            let length = (out.len() - start - 4) as i32;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// Appends a value with the escapes of the text format.
fn text_value(delimiter: u8, value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    // Runs of ordinary bytes are copied whole.
    while let Some(at) = rest
        .iter()
        .position(|&b| b < b' ' || b == b'\\' || b == delimiter)
    {
        out.extend_from_slice(&rest[..at]);
        let byte = rest[at];
        let escape = match byte {
            0x08 => Some(b'b'),
            0x0c => Some(b'f'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            0x0b => Some(b'v'),
            b'\\' => Some(b'\\'),
            _ if byte == delimiter => Some(byte),
            _ => None,
        };
        match escape {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.push(byte),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends a CSV value, quoted where a reader would otherwise take it for something else.
/// `alone`: it is the only field of its line, where `\.` would end the data.
fn csv_value(options: &CopyOptions, value: &[u8], force: bool, alone: bool, out: &mut Vec<u8>) {
    let (delimiter, quote, escape) = (options.delimiter, options.quote, options.escape);
    let special = |&b: &u8| b == delimiter || b == quote || b == b'\n' || b == b'\r';
    let needed = force
        || value == options.null.as_bytes()
        || (alone && value == b"\\.")
        || value.iter().any(special);
    if !needed {
        out.extend_from_slice(value);
        return;
    }
    out.push(quote);
    for &byte in value {
        if byte == quote || byte == escape {
            out.push(escape);
        }
        out.push(byte);
    }
    out.push(quote);
}
