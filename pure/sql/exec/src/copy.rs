//! COPY FROM and TO.

use super::source::{collect, open};
use super::write::{Change, Changes, check_row, complete_row};
use super::{Charge, Cx, Slots, bulk, foreign, insert};
use base::text::SpanStyle;
use base::zone::Zone;
use base::{ArrayKind, Datum, SqlError, Type};
use catalog::Table;
use copy_format::{Decoder, Encoder, Fields, in_column, in_line};
use core::future::poll_fn;
use expr::resolve::enums;
use expr::zoned;
use parse::copy::Format;
use pg_catalog::output::{has_spans, in_style, in_zone, is_zoned};
use plan::step::{CopyFromPlan, CopyToPlan, Writer};
use txn::OpError;

/// Labels in an array.
const TEXTS: Type = Type::Array(ArrayKind::Text);
/// Rows that are written at a time: enough that some lie in each slot.
const COPY_ROWS: usize = 4096;
/// Bytes of fields beyond which no more rows are added to those.
const COPY_BYTES: usize = 1 << 20;
/// Bytes of a chunk to the client, about.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) async fn from(cx: &Cx<'_>, plan: &CopyFromPlan, slots: &Slots) -> Result<u64, OpError> {
    let table = &*plan.writers[0].table;
    let names = plan
        .columns
        .iter()
        .map(|column| table.column_at(*column).name.clone());
    let mut decoder = Decoder::new(plan.options.clone(), &table.name, names);
    let binary = plan.options.format == Format::Binary;
    let (zone, style) = (session_zone(cx, slots), session_style(cx, slots));
    let labels = |ty: Type, id: u32, value: Datum| read_label(cx, slots, (ty, id), value);
    let mut defaults: Option<Vec<Datum>> = None;
    let mut batch = Batch::default();
    let mut count = 0;
    let mut end = false;
    loop {
        // The fields are lent by the decoder, so they become a row before anything is awaited.
        let parsed = match decoder.next_row()? {
            Some(fields) => {
                let (line, size) = (fields.line, fields.size_bytes());
                Some((
                    line,
                    size,
                    parse_row(
                        table,
                        &plan.columns,
                        &fields,
                        (binary, zone.as_ref(), style),
                        &labels,
                    )?,
                ))
            }
            None => None,
        };
        if let Some((line, size, given)) = parsed {
            if defaults.is_none() || !plan.constant_defaults {
                let mut charge = Charge::new(cx.port);
                let rows = collect(cx, &plan.defaults, slots, &mut charge).await?;
                defaults = rows.get(0).cloned();
            }
            let defaults = defaults.as_deref();
            let defaults = defaults.expect("the source of defaults gives one row");
            let mut row = full_row(defaults, &plan.columns, given);
            insert::number_row(cx, table.rowid(), &mut row);
            complete_row(cx, &plan.writers[0], &mut row)
                .map_err(|error| in_line(error, &table.name, line))?;
            batch.push(line, size, row);
            if !batch.is_full() {
                continue;
            }
        } else if !end {
            let data = poll_fn(|_| cx.port.poll_copy_data()).await;
            let at_line = |error| in_line(error, &table.name, decoder.line() + 1);
            match data.map_err(at_line)? {
                Some(chunk) => decoder.push(chunk),
                None => {
                    decoder.end();
                    end = true;
                }
            }
            continue;
        }
        let full = batch.is_full();
        count += batch.write(cx, &plan.writers[0]).await?;
        if end && !full {
            return Ok(count);
        }
    }
}

/// A value of an enum type, or of an array of it, from the text of a label or of an array.
fn read_label(
    cx: &Cx<'_>,
    slots: &Slots,
    (ty, id): (Type, u32),
    value: Datum,
) -> Result<Datum, SqlError> {
    let value = match (ty.element(), value.as_str()) {
        (Some(_), Some(text)) => base::text::parse(TEXTS, text)?,
        _ => value,
    };
    let args = [value, Datum::Int(i64::from(id))];
    cx.env(slots).session.catalog_function(enums::READ, &args)
}

/// Reads labels of the enum type with an oid.
type Labels<'a> = dyn Fn(Type, u32, Datum) -> Result<Datum, SqlError> + 'a;

/// The given values in their columns, the rest by default.
fn full_row(defaults: &[Datum], columns: &[u16], given: Vec<Datum>) -> Vec<Datum> {
    let in_order = (0..).zip(columns).all(|(i, column)| i == *column);
    if in_order {
        let mut row = given;
        row.extend_from_slice(&defaults[row.len()..]);
        return row;
    }
    let mut row = defaults.to_vec();
    for (column, value) in columns.iter().zip(given) {
        row[usize::from(*column)] = value;
    }
    row
}

/// Rows that were read and are not written yet.
#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    lines: Vec<u64>,
    size_bytes: usize,
}

impl Batch {
    fn push(&mut self, line: u64, size_bytes: usize, row: Vec<Datum>) {
        self.lines.push(line);
        self.size_bytes += size_bytes;
        self.changes.push(Change {
            old: None,
            new: Some(row),
        });
    }

    fn is_full(&self) -> bool {
        self.changes.len() >= COPY_ROWS || self.size_bytes >= COPY_BYTES
    }

    /// Writes the rows and empties the batch; gives their number.
    ///
    /// # Errors
    /// Those of a row name its line. What is wrong with a row itself is found first.
    async fn write(&mut self, cx: &Cx<'_>, writer: &Writer) -> Result<u64, OpError> {
        let table = &*writer.table;
        let rows: Vec<&[Datum]> = self
            .changes
            .iter()
            .filter_map(|change| change.new.as_deref())
            .collect();
        for (row, line) in rows.iter().zip(&self.lines) {
            check_row(cx, writer, row).map_err(|error| in_line(error, &table.name, *line))?;
        }
        bulk::insert(cx, table, &rows).await.map_err(|failed| {
            match (failed.row, failed.error) {
                (Some(row), OpError::Sql(error)) => {
                    OpError::Sql(in_line(error, &table.name, self.lines[row]))
                }
                (_, error) => error,
            }
        })?;
        foreign::check_parents(cx, writer, Changes::few(&self.changes)).await?;
        let count = self.changes.len();
        cx.breathe(count).await;
        self.changes.clear();
        self.lines.clear();
        self.size_bytes = 0;
        Ok(count as u64)
    }
}

fn parse_row(
    table: &Table,
    columns: &[u16],
    fields: &Fields<'_>,
    form: (bool, Option<&Zone>, SpanStyle),
    labels: &Labels<'_>,
) -> Result<Vec<Datum>, SqlError> {
    let mut row = Vec::with_capacity(table.columns.len());
    for (i, column) in columns.iter().enumerate() {
        let described = table.column_at(*column);
        let value = field(described.ty, fields, i, form, labels).map_err(|error| {
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

fn field(
    ty: Type,
    fields: &Fields<'_>,
    i: usize,
    (binary, zone, style): (bool, Option<&Zone>, SpanStyle),
    labels: &Labels<'_>,
) -> Result<Datum, SqlError> {
    if let Some(id) = ty.user_id() {
        let written = match (binary, fields.bytes(i)) {
            (_, None) => return Ok(Datum::Null),
            (true, Some(bytes)) if ty.element().is_some() => base::wire::decode_texts(bytes, id)?,
            (true, Some(bytes)) => base::wire::decode(Type::Text, bytes)?,
            (false, Some(_)) => fields.text(i)?.map_or(Datum::Null, Datum::from),
        };
        return labels(ty, id, written);
    }
    let value = if binary {
        match fields.bytes(i) {
            None => return Ok(Datum::Null),
            Some(bytes) => base::wire::decode(ty.without_modifiers(), bytes)?,
        }
    } else {
        match fields.text(i)? {
            None => return Ok(Datum::Null),
            Some(text) if style.reads(ty) => style.parse(ty.without_modifiers(), text)?,
            Some(text) => match zone {
                Some(zone) => base::text::parse_in(zone, ty.without_modifiers(), text)?,
                None => base::text::parse(ty.without_modifiers(), text)?,
            },
        }
    };
    base::text::fit(ty, value)
}

pub(super) async fn to(cx: &Cx<'_>, plan: &CopyToPlan, slots: &Slots) -> Result<u64, OpError> {
    let mut encoder = Encoder::new(plan.options.clone(), plan.columns.iter().cloned());
    let mut out = Vec::new();
    // What goes before the rows travels with the first of them, as in PostgreSQL.
    let mut first = true;
    let mut source = open(cx, &plan.query, slots);
    let (zone, style) = match plan.options.format {
        Format::Binary => (None, SpanStyle::Postgres),
        Format::Text | Format::Csv => (session_zone(cx, slots), session_style(cx, slots)),
    };
    let types: Vec<_> = plan.columns.iter().map(|(_, ty)| *ty).collect();
    let mut count = 0;
    while let Some(batch) = source.next().await? {
        let mut batch = batch;
        let mut show = |of: &dyn Fn(Type) -> bool, change: &dyn Fn(&mut Datum)| {
            for (at, _) in types.iter().enumerate().filter(|(_, ty)| of(**ty)) {
                let values = batch.datums.iter_mut().skip(at).step_by(types.len());
                values.for_each(change);
            }
        };
        if let Some(zone) = &zone {
            show(&is_zoned, &|value| in_zone(zone, value));
        }
        if style != SpanStyle::Postgres {
            show(&has_spans, &|value| in_style(style, value));
        }
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

/// The session's time zone; `None` is UTC.
fn session_zone(cx: &Cx<'_>, slots: &Slots) -> Option<Zone> {
    let setting = cx.env(slots).session.setting("timezone");
    Zone::named(zoned::of_setting(setting.as_deref()))
}

/// The session's style of intervals.
fn session_style(cx: &Cx<'_>, slots: &Slots) -> SpanStyle {
    let setting = cx.env(slots).session.setting("intervalstyle");
    setting
        .as_deref()
        .map_or_else(SpanStyle::default, SpanStyle::named)
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
