//! Writes replies as bytes.

use crate::{Format, Reply, Severity, Tag, TxnStatus};
use alloc::vec::Vec;
use base::full_name::bare;
use base::{Datum, OutColumn, RowBatch, SqlError, Type};

/// Appends the wire form of `reply` to `out`. [`Reply::Close`] has none: it is for the host.
///
/// Cost: linear in the bytes written; allocates only when `out` grows.
pub fn encode(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::AuthenticationOk => frame(out, b'R', |out| u32(out, 0)),
        Reply::ParameterStatus(name, value) => frame(out, b'S', |out| {
            text(out, name);
            text(out, value);
        }),
        Reply::BackendKey { pid, secret } => frame(out, b'K', |out| {
            u32(out, *pid as u32);
            u32(out, *secret as u32);
        }),
        Reply::Ready(status) => out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status_byte(*status)]),
        Reply::RowDescription(columns, formats) => {
            frame(out, b'T', |out| row_description(out, columns, formats));
        }
        Reply::ParameterDescription(types) => frame(out, b't', |out| {
            u16(out, types.len());
            types.iter().for_each(|ty| u32(out, ty.oid()));
        }),
        Reply::NoData => empty(out, b'n'),
        Reply::Rows(columns, formats, batch) => rows(out, columns, formats, batch),
        Reply::FunctionResult(columns, formats, batch) => frame(out, b'V', |out| {
            let first = batch.iter().next().and_then(|row| row.first());
            let (datum, ty) = (first.unwrap_or(&Datum::Null), columns[0].ty);
            value(out, ty, format_of(formats, 0), datum);
        }),
        Reply::CommandComplete(tag) => frame(out, b'C', |out| command_tag(out, tag)),
        Reply::EmptyQuery => empty(out, b'I'),
        Reply::ParseComplete => empty(out, b'1'),
        Reply::BindComplete => empty(out, b'2'),
        Reply::CloseComplete => empty(out, b'3'),
        Reply::PortalSuspended => empty(out, b's'),
        Reply::CopyIn(columns, format) => {
            frame(out, b'G', |out| copy_columns(out, *columns, *format))
        }
        Reply::CopyOut(columns, format) => {
            frame(out, b'H', |out| copy_columns(out, *columns, *format))
        }
        Reply::CopyData(rows) => copy_rows(out, rows),
        Reply::CopyDone => empty(out, b'c'),
        Reply::Error(severity, error) => notice(out, *severity, error),
        Reply::Notification {
            pid,
            channel,
            payload,
        } => frame(out, b'A', |out| {
            u32(out, *pid as u32);
            text(out, channel);
            text(out, payload);
        }),
        Reply::Close => {}
    }
}

/// One message per row; see [`Reply::CopyData`].
fn copy_rows(out: &mut Vec<u8>, mut rows: &[u8]) {
    while let Some((length, rest)) = rows.split_first_chunk::<4>() {
        let (row, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        frame(out, b'd', |out| out.extend_from_slice(row));
        rows = rest;
    }
}

/// A message whose length is filled in behind its body.
fn frame(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    patch(out, start);
}

/// Writes the length of what lies behind `start`, its own four bytes included.
fn patch(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn empty(out: &mut Vec<u8>, tag: u8) {
    out.extend_from_slice(&[tag, 0, 0, 0, 4]);
}

fn u16(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&(value as u16).to_be_bytes());
}

fn u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// A text with its terminator; it is cut at a zero byte, which the protocol cannot carry.
fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}

fn status_byte(status: TxnStatus) -> u8 {
    match status {
        TxnStatus::Idle => b'I',
        TxnStatus::InBlock => b'T',
        TxnStatus::Failed => b'E',
    }
}

/// Form of column `i`: none given means text, one is for all.
fn format_of(formats: &[Format], i: usize) -> Format {
    match formats {
        [] => Format::Text,
        [one] => *one,
        many => many[i],
    }
}

fn row_description(out: &mut Vec<u8>, columns: &[OutColumn], formats: &[Format]) {
    u16(out, columns.len());
    for (i, column) in columns.iter().enumerate() {
        text(out, &column.name);
        u32(out, column.table);
        out.extend_from_slice(&column.attribute.to_be_bytes());
        u32(out, column.ty.oid());
        out.extend_from_slice(&column.ty.typlen().to_be_bytes());
        out.extend_from_slice(&column.ty.typmod().to_be_bytes());
        u16(out, usize::from(format_of(formats, i) == Format::Binary));
    }
}

fn rows(out: &mut Vec<u8>, columns: &[OutColumn], formats: &[Format], batch: &RowBatch) {
    assert_eq!(
        batch.width as usize,
        columns.len(),
        "rows have the columns that were announced"
    );
    for row in batch.iter() {
        frame(out, b'D', |out| {
            u16(out, row.len());
            for (i, datum) in row.iter().enumerate() {
                value(out, columns[i].ty, format_of(formats, i), datum);
            }
        });
    }
}

fn value(out: &mut Vec<u8>, ty: Type, format: Format, datum: &Datum) {
    if datum.is_null() {
        u32(out, u32::MAX);
        return;
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match format {
        Format::Text => base::text::format(ty, datum, out),
        Format::Binary => base::wire::encode(ty, datum, out),
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn command_tag(out: &mut Vec<u8>, tag: &Tag) {
    match tag {
        Tag::Word(word) => out.extend_from_slice(word.as_bytes()),
        Tag::Count(word, count) => {
            out.extend_from_slice(word.as_bytes());
            out.push(b' ');
            decimal(out, *count);
        }
        Tag::Insert(count) => {
            out.extend_from_slice(b"INSERT 0 ");
            decimal(out, *count);
        }
    }
    out.push(0);
}

fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Overall form and, the same, the form of each column.
fn copy_columns(out: &mut Vec<u8>, columns: u16, format: Format) {
    let code = u8::from(format == Format::Binary);
    out.push(code);
    u16(out, usize::from(columns));
    (0..columns).for_each(|_| u16(out, usize::from(code)));
}

fn notice(out: &mut Vec<u8>, severity: Severity, error: &SqlError) {
    let (tag, name) = match severity {
        Severity::Error => (b'E', "ERROR"),
        Severity::Fatal => (b'E', "FATAL"),
        Severity::Panic => (b'E', "PANIC"),
        Severity::Warning => (b'N', "WARNING"),
        Severity::Notice => (b'N', "NOTICE"),
        Severity::Info => (b'N', "INFO"),
    };
    let fields = error.fields();
    frame(out, tag, |out| {
        let mut field = |code: u8, value: &str| {
            if !value.is_empty() {
                out.push(code);
                text(out, &bare(value));
            }
        };
        field(b'S', name);
        field(b'V', name);
        field(b'C', fields.state.as_str());
        field(b'M', &fields.message);
        field(b'D', &fields.detail);
        field(b'H', &fields.hint);
        if fields.position > 0 {
            out.push(b'P');
            decimal(out, u64::from(fields.position));
            out.push(0);
        }
        let mut field = |code: u8, value: &str| {
            if !value.is_empty() {
                out.push(code);
                text(out, &bare(value));
            }
        };
        field(b'W', &fields.context);
        field(b's', &fields.schema);
        field(b't', &fields.table);
        field(b'c', &fields.column);
        field(b'd', &fields.data_type);
        field(b'n', &fields.constraint);
        out.push(0);
    });
}
