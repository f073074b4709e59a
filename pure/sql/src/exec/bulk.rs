//! Entries of many new rows: one operation per index and shard.

use super::Cx;
use super::step::table_index;
use super::write::{duplicate, too_big};
use crate::keys::{append_entry_row, append_key};
use crate::port::{ExecError, OpFuture};
use base::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use base::{Datum, Planted, ShardId, Slot, SqlError, is_planted};
use catalog::{Index, Table};
use core::ops::Range;
use txn::{NewRows, Op, OpResult};

/// Bytes of one operation, about: far below [`base::limits::FRAME_BYTES_MAX`] even with one more
/// row.
const BATCH_BYTES: usize = 4 << 20;

/// An error and the row that it is about, by its place among the rows; `None`: about none.
pub(super) struct RowError {
    pub(super) row: Option<usize>,
    pub(super) error: ExecError,
}

impl From<ExecError> for RowError {
    fn from(error: ExecError) -> RowError {
        RowError { row: None, error }
    }
}

/// The entry of one row in an index.
struct Entry {
    slot: Slot,
    /// The first bytes of the key, as a number that orders like them.
    head: u64,
    /// Where the key lies.
    key: Range<u32>,
    row: u32,
}

/// Inserts all entries of new rows of a table.
///
/// # Errors
/// 23505 for the first row that has an entry which exists, and what the protocol says.
pub(super) async fn insert(cx: &Cx<'_>, table: &Table, rows: &[&[Datum]]) -> Result<(), RowError> {
    let mut sent = Vec::new();
    for number in 0..=table.secondary.len() {
        send(cx, table, number, rows, &mut sent)?;
    }
    let present = settle(sent).await?;
    let Some((row, number)) = present.into_iter().min() else {
        return Ok(());
    };
    let error = duplicate(table, number, rows[row]).into();
    Err(RowError {
        row: Some(row),
        error,
    })
}

/// Inserts the entries of rows in one index. Gives the places of the rows whose entry existed,
/// ascending; the others have got theirs.
pub(super) async fn insert_entries(
    cx: &Cx<'_>,
    table: &Table,
    number: usize,
    rows: &[&[Datum]],
) -> Result<Vec<usize>, RowError> {
    let mut sent = Vec::new();
    send(cx, table, number, rows, &mut sent)?;
    let mut present: Vec<usize> = settle(sent)
        .await?
        .into_iter()
        .map(|(row, _)| row)
        .collect();
    present.sort_unstable();
    present.dedup();
    Ok(present)
}

/// An operation under way: the rows that its entries belong to, the number of their index.
type Sent<'a> = (Vec<u32>, usize, OpFuture<'a>);

/// Starts the operations for one index.
fn send<'a>(
    cx: &Cx<'a>,
    table: &Table,
    number: usize,
    rows: &[&[Datum]],
    sent: &mut Vec<Sent<'a>>,
) -> Result<(), RowError> {
    let index = table_index(table, number);
    let (entries, keys) = sorted_entries(table, index, rows)?;
    let mut batches = Batches {
        cx,
        number,
        replicated: table.replicated,
        open: Vec::new(),
        sent,
    };
    let mut homes = match table.replicated {
        true => cx.port.shards().to_vec(),
        false => Vec::new(),
    };
    let mut before = None;
    let size = entries.len() * 32;
    for entry in entries {
        if !table.replicated && before != Some(entry.slot) {
            let misplaced = number > 0 && is_planted(Planted::IndexMisplaced);
            homes.clear();
            homes.push(match misplaced {
                true => cx.port.here(),
                false => cx.port.home(entry.slot),
            });
            before = Some(entry.slot);
        }
        let row = rows[entry.row as usize];
        let batch = batches.open(homes[0], index, size);
        let key = &keys[entry.key.start as usize..entry.key.end as usize];
        let mut size_bytes = 0;
        batch.rows.push(entry.slot, key, |out| {
            let start = out.len();
            match number {
                0 => base::row::encode(row, out),
                _ => append_entry_row(table, row, out),
            }
            size_bytes = out.len() - start;
        });
        batch.numbers.push(entry.row);
        if size_bytes > ROW_BYTES_MAX {
            let error = too_big(&table.name, size_bytes);
            return Err(of_row(entry.row as usize, error));
        }
        if batch.rows.size_bytes() >= BATCH_BYTES {
            batches.close(&homes);
        }
    }
    batches.close_all(&homes);
    Ok(())
}

fn of_row(row: usize, error: SqlError) -> RowError {
    RowError {
        row: Some(row),
        error: error.into(),
    }
}

/// The entries of rows in the order of their slots and keys, and the bytes of the keys.
fn sorted_entries(
    table: &Table,
    index: &Index,
    rows: &[&[Datum]],
) -> Result<(Vec<Entry>, Vec<u8>), RowError> {
    let mut keys = Vec::with_capacity(rows.len() * 16);
    let mut entries = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        let start = keys.len();
        let slot = append_key(table, index, row, &mut keys);
        let key = &keys[start..];
        if key.len() > KEY_BYTES_MAX {
            let error = super::write::key_too_long(key.len(), &index.name);
            return Err(of_row(number, error));
        }
        let mut head = [0; 8];
        let first = key.len().min(8);
        head[..first].copy_from_slice(&key[..first]);
        entries.push(Entry {
            slot,
            head: u64::from_be_bytes(head),
            key: start as u32..keys.len() as u32,
            row: number as u32,
        });
    }
    let bytes = |key: &Range<u32>| &keys[key.start as usize..key.end as usize];
    // Rows with one key stay in their order: the later one is the duplicate.
    entries.sort_unstable_by(|a, b| {
        let heads = (a.slot, a.head).cmp(&(b.slot, b.head));
        let keys = || bytes(&a.key).cmp(bytes(&b.key));
        heads.then_with(keys).then(a.row.cmp(&b.row))
    });
    Ok((entries, keys))
}

/// Rows for one shard.
struct Batch {
    to: ShardId,
    rows: NewRows,
    numbers: Vec<u32>,
}

/// The batches of one index.
struct Batches<'s, 'c, 'a> {
    cx: &'c Cx<'a>,
    number: usize,
    replicated: bool,
    /// Not sent yet; the last used one at the end.
    open: Vec<Batch>,
    sent: &'s mut Vec<Sent<'a>>,
}

impl Batches<'_, '_, '_> {
    /// The batch for a shard (for all of them if the table is replicated).
    fn open(&mut self, to: ShardId, index: &Index, size_bytes: usize) -> &mut Batch {
        let found = self.open.iter().position(|batch| batch.to == to);
        match found {
            Some(at) => {
                let last = self.open.len() - 1;
                self.open.swap(at, last);
            }
            None => self.open.push(Batch {
                to,
                rows: NewRows::new(index.id, size_bytes),
                numbers: Vec::new(),
            }),
        }
        self.open.last_mut().expect("just put there")
    }

    /// Sends the batch that was used last.
    fn close(&mut self, homes: &[ShardId]) {
        let Some(batch) = self.open.pop() else {
            return;
        };
        let (port, planned) = (self.cx.port, self.cx.planned);
        let mut start = |to, rows, numbers| {
            let op = Op::InsertMany(rows);
            let future = OpFuture::start(port, to, planned, op, false);
            self.sent.push((numbers, self.number, future));
        };
        if self.replicated {
            for to in homes {
                start(*to, batch.rows.clone(), batch.numbers.clone());
            }
        } else {
            start(batch.to, batch.rows, batch.numbers);
        }
    }

    fn close_all(&mut self, homes: &[ShardId]) {
        while !self.open.is_empty() {
            self.close(homes);
        }
    }
}

/// Waits for all operations; gives the rows whose entries existed, with the numbers of the indexes.
async fn settle(sent: Vec<Sent<'_>>) -> Result<Vec<(usize, usize)>, RowError> {
    let mut present = Vec::new();
    for (numbers, index, future) in sent {
        match future.await? {
            OpResult::SomeExist(places) => {
                let rows = places.iter().map(|place| numbers[*place as usize]);
                present.extend(rows.map(|row| (row as usize, index)));
            }
            OpResult::Done => {}
            other => panic!("rows were not inserted: {other:?}"),
        }
    }
    Ok(present)
}
