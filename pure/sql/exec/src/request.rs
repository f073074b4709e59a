//! Keys and ranges that an access names for one row of values, and the operations for them.

use super::Cx;
use crate::keys::key_capacity;
use crate::port::OpFuture;
use base::key::{encode_datum, prefix_end, slot_of};
use base::{Datum, Key, KeyRange, Planted, ShardId, Slot, SqlError, SqlState, Type, is_planted};
use catalog::{Index, Table};
use expr::{Columns, Env, eval};
use plan::step::{Access, Bound, KeyPart, Scan, SlotPart};
use txn::{Op, Program, Read, ScanOp, Slots};

/// Most key combinations of `IN` lists.
const COMBINATIONS_MAX: usize = 100_000;

/// One key or range to be read.
pub(super) struct Target {
    /// Encoded prefix; the whole key if the access is a point.
    pub(super) bytes: Vec<u8>,
    pub(super) slot: Option<Slot>,
    range: Option<KeyRange>,
}

/// A value as it stands in keys of a column of type `ty`.
fn key_value(ty: Type, value: Datum) -> Datum {
    match (ty, value) {
        // Stored values have no padding.
        (Type::Char(_), Datum::Text(text)) if text.ends_with(' ') => {
            Datum::Text(text.trim_end_matches(' ').into())
        }
        (_, value) => value,
    }
}

/// How many keys lists of these sizes name together.
///
/// # Errors
/// 54000 beyond [`COMBINATIONS_MAX`].
fn combinations(sizes: &[usize]) -> Result<usize, SqlError> {
    let count = sizes
        .iter()
        .fold(1usize, |count, size| count.saturating_mul(*size));
    if count > COMBINATIONS_MAX {
        let message = "too many key combinations in IN lists";
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
    }
    Ok(count)
}

/// The next choice of one value out of each list; the last list turns fastest.
fn advance(choice: &mut [usize], sizes: &[usize]) {
    for (place, size) in choice.iter_mut().zip(sizes).rev() {
        *place += 1;
        if *place < *size {
            break;
        }
        *place = 0;
    }
}

/// The keys or ranges of an access for a row; NULL in a key names nothing.
pub(super) fn targets(
    table: &Table,
    index: &Index,
    access: &Access,
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Vec<Target>, SqlError> {
    let column_type = |i: usize| table.columns[usize::from(index.columns[i].column)].ty;
    let parts = part_values(access, &column_type, row, env)?;
    let rows = row_values(access, &column_type, row, env)?;
    let has_rows = !access.rows.is_empty();
    let sizes = parts.iter().map(|part| match part {
        Values::Own(values) => values.len(),
        Values::Row(_) => 1,
    });
    let sizes: Vec<usize> = sizes.chain(has_rows.then_some(rows.len())).collect();
    let count = combinations(&sizes)?;
    let next = access.prefix.len();
    let Some((low, high)) = ends(access, &|i| column_type(next + i), row, env)? else {
        return Ok(Vec::new());
    };
    let slot_values = access
        .slot
        .as_ref()
        .map(|slot| fixed_values(slot, row, env));
    let slot_values = slot_values.transpose()?;
    let mut targets = Vec::with_capacity(count);
    let mut choice = vec![0usize; sizes.len()];
    for _ in 0..count {
        let value = |i: usize| match &parts[i] {
            Values::Own(values) => &values[choice[i]],
            Values::Row(place) => &rows[choice[parts.len()]][*place],
        };
        let mut bytes = Vec::with_capacity(key_capacity(index.columns.len()));
        for (i, key) in index.columns[..next].iter().enumerate() {
            encode_datum(&mut bytes, value(i), key.descending);
        }
        let slot = slot_values.as_ref().map(|values| {
            let mut bytes = Vec::with_capacity(key_capacity(values.len()));
            for part in values {
                let datum = match part {
                    Ok(place) => value(*place),
                    Err(datum) => datum,
                };
                encode_datum(&mut bytes, datum, false);
            }
            slot_of(&bytes)
        });
        let range = (!access.point).then(|| {
            let descending = index.columns.get(next).is_some_and(|key| key.descending);
            range(&bytes, low.as_ref(), high.as_ref(), descending)
        });
        targets.push(Target { bytes, slot, range });
        advance(&mut choice, &sizes);
    }
    if count > 1 {
        // A value that a list names twice is read once.
        targets.sort_by(|a, b| a.bytes.cmp(&b.bytes));
        targets.dedup_by(|a, b| a.bytes == b.bytes);
    }
    Ok(targets)
}

/// The lower and the upper end of a range.
type Ends = (Option<RowBound>, Option<RowBound>);

/// The ends of an access; `None` if no row lies between them.
fn ends(
    access: &Access,
    column_type: &dyn Fn(usize) -> Type,
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Option<Ends>, SqlError> {
    let end = |bound: &Bound| -> Result<RowBound, SqlError> {
        let (mut values, mut inclusive) = (Vec::new(), bound.inclusive);
        for (i, value) in bound.values.iter().enumerate() {
            let value = eval(value, row, env)?;
            if value.is_null() {
                // Rows that are equal up to here compare as unknown.
                inclusive = false;
                break;
            }
            values.push(key_value(column_type(i), value));
        }
        Ok(RowBound { values, inclusive })
    };
    let low = access.low.as_ref().map(end).transpose()?;
    let high = access.high.as_ref().map(end).transpose()?;
    let mut both = low.iter().chain(&high);
    let unknown = both.any(|end| end.values.is_empty());
    Ok((!unknown).then_some((low, high)))
}

/// The values that a column of the prefix may have.
enum Values {
    Own(Vec<Datum>),
    /// This place of each row.
    Row(usize),
}

/// End of a range with its values.
struct RowBound {
    values: Vec<Datum>,
    inclusive: bool,
}

/// The rows of values that belong together, without those that hold a NULL.
fn row_values(
    access: &Access,
    column_type: &dyn Fn(usize) -> Type,
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Vec<Vec<Datum>>, SqlError> {
    let mut types = Vec::new();
    for (i, part) in access.prefix.iter().enumerate() {
        if let KeyPart::Row(place) = part {
            types.push((*place, column_type(i)));
        }
    }
    let mut rows = Vec::with_capacity(access.rows.len());
    for values in &access.rows {
        let values = values.iter().map(|value| eval(value, row, env));
        let mut values = values.collect::<Result<Vec<_>, _>>()?;
        if types.iter().any(|(place, _)| values[*place].is_null()) {
            continue;
        }
        for (place, ty) in &types {
            values[*place] = key_value(*ty, core::mem::take(&mut values[*place]));
        }
        rows.push(values);
    }
    Ok(rows)
}

/// The values that each column of the prefix may have, without NULL.
fn part_values(
    access: &Access,
    column_type: &dyn Fn(usize) -> Type,
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Vec<Values>, SqlError> {
    let mut parts = Vec::with_capacity(access.prefix.len());
    for (i, part) in access.prefix.iter().enumerate() {
        let mut values = match part {
            KeyPart::One(value) => vec![eval(value, row, env)?],
            KeyPart::List(list) => {
                let values = list.iter().map(|value| eval(value, row, env));
                values.collect::<Result<_, _>>()?
            }
            KeyPart::Array(array) => eval(array, row, env)?.into_items().unwrap_or_default(),
            KeyPart::Row(place) => {
                parts.push(Values::Row(*place));
                continue;
            }
        };
        values.retain(|value| !value.is_null());
        for value in &mut values {
            *value = key_value(column_type(i), core::mem::take(value));
        }
        parts.push(Values::Own(values));
    }
    Ok(parts)
}

/// For each slot column its place in the prefix, or else its value.
fn fixed_values(
    slot: &[SlotPart],
    row: &dyn Columns,
    env: &Env<'_>,
) -> Result<Vec<Result<usize, Datum>>, SqlError> {
    let value = |part: &SlotPart| match part {
        SlotPart::Prefix(place) => Ok(Ok(*place)),
        SlotPart::Value(value) => eval(value, row, env).map(Err),
    };
    slot.iter().map(value).collect()
}

/// The keys with a prefix whose next columns lie between the bounds.
fn range(
    prefix: &[u8],
    low: Option<&RowBound>,
    high: Option<&RowBound>,
    descending: bool,
) -> KeyRange {
    let mut range = KeyRange::prefix(prefix);
    let encoded = |values: &[Datum]| {
        let mut bytes = prefix.to_vec();
        for value in values {
            encode_datum(&mut bytes, value, descending);
        }
        bytes
    };
    let (first, last) = if descending { (high, low) } else { (low, high) };
    if let Some(bound) = first {
        let bytes = encoded(&bound.values);
        if bound.inclusive {
            range.low = bytes;
        } else if let Some(end) = prefix_end(&bytes) {
            range.low = end;
        }
    }
    if let Some(bound) = last {
        let bytes = encoded(&bound.values);
        range.high = if bound.inclusive {
            prefix_end(&bytes)
        } else {
            Some(bytes)
        };
    }
    range
}

/// Starts reading one row.
pub(super) fn get<'a>(
    cx: &Cx<'a>,
    step: u32,
    table: &Table,
    key: Key,
    read: Read,
    program: Program,
) -> OpFuture<'a> {
    let to = if table.replicated {
        cx.port.here()
    } else {
        cx.port.home(key.slot)
    };
    cx.note_op(step, to);
    OpFuture::start(
        cx.port,
        to,
        cx.planned,
        Op::Get { key, read, program },
        false,
    )
}

/// The scans of a range target: one, or one per shard.
pub(super) fn scans(
    cx: &Cx<'_>,
    scan: &Scan,
    target: &Target,
    read: Read,
    program: &Program,
    limit: u64,
) -> Vec<(ShardId, ScanOp)> {
    let op = ScanOp {
        index: scan.index().id,
        slots: target.slot.map_or(Slots::All, Slots::One),
        range: target
            .range
            .clone()
            .unwrap_or_else(|| KeyRange::point(&target.bytes)),
        reverse: scan.access.reverse,
        read,
        program: program.clone(),
        row_limit: limit,
        batch_rows: limit.min(super::BATCH_ROWS as u64) as u32,
        after: None,
    };
    match target.slot {
        _ if scan.table.replicated => vec![(cx.port.here(), op)],
        Some(slot) => vec![(cx.port.home(slot), op)],
        None => cx
            .port
            .shards()
            .iter()
            .skip(usize::from(is_planted(Planted::ScanMissesShard)))
            .map(|shard| (*shard, op.clone()))
            .collect(),
    }
}

/// Starts a scan.
pub(super) fn start_scan<'a>(cx: &Cx<'a>, step: u32, to: ShardId, op: ScanOp) -> OpFuture<'a> {
    cx.note_op(step, to);
    OpFuture::start(cx.port, to, cx.planned, Op::Scan(op), false)
}
