//! COPY FROM and TO.

use super::source::{collect, open};
use super::step::{CopyFromPlan, CopyToPlan};
use super::write::{Change, apply};
use super::{Charge, Cx, Slots, insert};
use crate::copy::{Decoder, Encoder, Fields, Format, in_column, in_line};
use crate::port::ExecError;
use base::{Datum, SqlError, Type};
use catalog::Table;
use core::future::poll_fn;

/// Rows that are written at a time.
const COPY_ROWS: usize = 500;
/// Bytes of a chunk to the client, about.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) async fn from(
    cx: &Cx<'_>,
    plan: &CopyFromPlan,
    slots: &Slots,
) -> Result<u64, ExecError> {
    let table = &*plan.writers[0].table;
    let names = plan
        .columns
        .iter()
        .map(|column| table.column_at(*column).name.clone());
    let mut decoder = Decoder::new(plan.options.clone(), &table.name, names);
    let binary = plan.options.format == Format::Binary;
    let mut defaults: Option<Vec<Datum>> = None;
    let mut charge = Charge::new(cx.port);
    let mut changes: Vec<Change> = Vec::with_capacity(COPY_ROWS);
    let (mut count, mut first_line, mut last_line) = (0, 0, 0);
    let mut end = false;
    loop {
        // The fields are lent by the decoder, so they become a row before anything is awaited.
        let parsed = match decoder.next_row()? {
            Some(fields) => {
                let line = fields.line;
                Some((line, parse_row(table, &plan.columns, &fields, binary)?))
            }
            None => None,
        };
        if let Some((line, given)) = parsed {
            if defaults.is_none() || !plan.constant_defaults {
                let rows = collect(cx, &plan.defaults, slots, &mut charge).await?;
                defaults = rows.into_iter().next();
            }
            let mut row = defaults
                .clone()
                .expect("the source of defaults gives one row");
            for (column, value) in plan.columns.iter().zip(given) {
                row[usize::from(*column)] = value;
            }
            insert::number_row(cx, table.rowid(), &mut row);
            if changes.is_empty() {
                first_line = line;
            }
            last_line = line;
            changes.push(Change {
                old: None,
                new: Some(row),
            });
            if changes.len() < COPY_ROWS {
                continue;
            }
        } else if !end {
            match poll_fn(|_| cx.port.poll_copy_data()).await? {
                Some(chunk) => decoder.push(chunk),
                None => {
                    decoder.end();
                    end = true;
                }
            }
            continue;
        }
        // A batch is full, or everything has been read.
        let applied = apply(cx, &plan.writers, 0, &changes, slots).await;
        applied.map_err(|error| placed(error, table, first_line, last_line))?;
        count += changes.len() as u64;
        cx.breathe(changes.len()).await;
        let full = changes.len() >= COPY_ROWS;
        changes.clear();
        if end && !full {
            return Ok(count);
        }
    }
}

/// An error of a batch names its line if the batch is one row.
fn placed(error: ExecError, table: &Table, first: u64, last: u64) -> ExecError {
    match error {
        ExecError::Sql(error) if first == last => {
            ExecError::Sql(in_line(error, &table.name, first))
        }
        other => other,
    }
}

fn parse_row(
    table: &Table,
    columns: &[u16],
    fields: &Fields<'_>,
    binary: bool,
) -> Result<Vec<Datum>, SqlError> {
    let mut row = Vec::with_capacity(columns.len());
    for (i, column) in columns.iter().enumerate() {
        let described = table.column_at(*column);
        let value = field(described.ty, fields, i, binary).map_err(|error| {
            in_column(
                error,
                &table.name,
                fields.line,
                &described.name,
                fields.bytes(i),
            )
        })?;
        row.push(value);
    }
    Ok(row)
}

fn field(ty: Type, fields: &Fields<'_>, i: usize, binary: bool) -> Result<Datum, SqlError> {
    let value = if binary {
        match fields.bytes(i) {
            None => return Ok(Datum::Null),
            Some(bytes) => base::wire::decode(ty.without_modifiers(), bytes)?,
        }
    } else {
        match fields.text(i)? {
            None => return Ok(Datum::Null),
            Some(text) => base::text::parse(ty.without_modifiers(), text)?,
        }
    };
    base::text::fit(ty, value)
}

pub(super) async fn to(cx: &Cx<'_>, plan: &CopyToPlan, slots: &Slots) -> Result<u64, ExecError> {
    let mut encoder = Encoder::new(plan.options.clone(), plan.columns.iter().cloned());
    let mut out = Vec::new();
    // What goes before the rows travels with the first of them, as in PostgreSQL.
    let mut first = true;
    let mut source = open(cx, &plan.query, slots);
    let mut count = 0;
    while let Some(batch) = source.next().await? {
        for row in batch.iter() {
            part(&mut out, |out| {
                if core::mem::take(&mut first) {
                    encoder.start(out);
                }
                encoder.row(row, out);
            });
            count += 1;
            if out.len() >= CHUNK_BYTES {
                send(cx, core::mem::take(&mut out)).await;
            }
        }
    }
    part(&mut out, |out| {
        if first {
            encoder.start(out);
        }
        encoder.finish(out);
    });
    if !out.is_empty() {
        send(cx, out).await;
    }
    Ok(count)
}

/// Appends what `write` gives behind its length (u32, little-endian); nothing if it gives nothing.
fn part(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = out.len() - start - 4;
    if length == 0 {
        out.truncate(start);
    } else {
        out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    }
}

async fn send(cx: &Cx<'_>, bytes: Vec<u8>) {
    let mut bytes = Some(bytes);
    poll_fn(|_| cx.port.poll_emit_copy(&mut bytes)).await;
}
