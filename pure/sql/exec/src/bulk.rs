//! Entries of many new rows: one operation per index and shard.

use super::write::{duplicate, too_big};
use super::{Cx, doubles};
use crate::keys::{append_entry_row, append_key};
use crate::port::OpFuture;
use base::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use base::{Datum, Planted, ShardId, Slot, SqlError, is_planted};
use catalog::{Index, Table};
use plan::step::table_index;
use txn::{NewRows, Op, OpError, OpResult};

/// Bytes of one operation, about: far below [`base::limits::FRAME_BYTES_MAX`] even with one more
/// row.
const BATCH_BYTES: usize = 4 << 20;

/// An error and the row that it is about, by its place among the rows; `None`: about none.
pub(super) struct RowError {
    pub(super) row: Option<usize>,
    pub(super) error: OpError,
}

impl From<OpError> for RowError {
    fn from(error: OpError) -> RowError {
        RowError { row: None, error }
    }
}

/// The entry of one row in an index, as a number that orders like (slot, first eight bytes of the
/// key, number of the row).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(slot: Slot, key: &[u8], row: u32) -> Entry {
        let mut head = [0; 8];
        let first = key.len().min(8);
        head[..first].copy_from_slice(&key[..first]);
        let (slot, head) = (u128::from(slot.0), u128::from(u64::from_be_bytes(head)));
        Entry(slot << 96 | head << 32 | u128::from(row))
    }
    fn slot(self) -> Slot {
        Slot((self.0 >> 96) as u16)
    }
    /// Slot and first bytes.
    fn head(self) -> u128 {
        self.0 >> 32
    }
    fn row(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The entries of rows in one index.
struct Entries {
    /// In the order of slots and keys.
    sorted: Vec<Entry>,
    /// All keys.
    bytes: Vec<u8>,
    /// Where the key of each row ends.
    ends: Vec<u32>,
}

impl Entries {
    fn new(table: &Table, index: &Index, rows: &[&[Datum]]) -> Result<Entries, RowError> {
        let mut entries = Entries {
            sorted: Vec::with_capacity(rows.len()),
            bytes: Vec::with_capacity(rows.len() * 16),
            ends: Vec::with_capacity(rows.len()),
        };
        for (number, row) in rows.iter().enumerate() {
            if index.id != table.primary.id && !index.has_entry(row) {
                entries.ends.push(entries.bytes.len() as u32);
                continue;
            }
            let start = entries.bytes.len();
            let slot = append_key(table, index, row, &mut entries.bytes);
            let key = &entries.bytes[start..];
            if key.len() > KEY_BYTES_MAX {
                let error = super::write::key_too_long(key.len(), &index.name);
                return Err(of_row(number, error));
            }
            entries.sorted.push(Entry::new(slot, key, number as u32));
            entries.ends.push(entries.bytes.len() as u32);
        }
        entries.sort();
        Ok(entries)
    }

    fn key(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[row] as usize]
    }

    /// Rows with one key stay in their order: the later one is the duplicate.
    fn sort(&mut self) {
        let mut sorted = core::mem::take(&mut self.sorted);
        sorted.sort_unstable();
        for same in sorted.chunk_by_mut(|a, b| a.head() == b.head()) {
            if same.len() > 1 {
                same.sort_by(|a, b| self.key(a.row()).cmp(self.key(b.row())));
            }
        }
        self.sorted = sorted;
    }
}

/// Inserts all entries of new rows of a table.
///
/// # Errors
/// 23505 for the first row that has an entry which exists, and what the protocol says.
pub(super) async fn insert(cx: &Cx<'_>, table: &Table, rows: &[&[Datum]]) -> Result<(), RowError> {
    insert_but(cx, table, None, rows).await
}

/// As [`insert`] for all indexes but this one.
pub(super) async fn insert_but(
    cx: &Cx<'_>,
    table: &Table,
    but: Option<usize>,
    rows: &[&[Datum]],
) -> Result<(), RowError> {
    let mut sent = Vec::new();
    let numbers = 0..=table.secondary.len();
    for number in numbers.filter(|number| Some(*number) != but) {
        send(cx, table, number, rows, &mut sent)?;
    }
    let mut present = settle(sent).await?;
    if present.is_empty() {
        return Ok(());
    }
    let fails = |(row, number): &&(usize, usize)| {
        !doubles::may_double(table_index(table, *number), rows[*row])
    };
    if let Some((row, number)) = present.iter().filter(fails).min() {
        let error = duplicate(table, *number, rows[*row]).into();
        return Err(RowError {
            row: Some(*row),
            error,
        });
    }
    // Each copy of an entry has answered.
    present.sort_unstable();
    present.dedup();
    let added = doubles::add(cx, table, &present, &|row| rows[row]).await;
    added.map_err(RowError::from)
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
    let entries = Entries::new(table, index, rows)?;
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
    let size = entries.bytes.len() + rows.len() * 32;
    for entry in &entries.sorted {
        let slot = entry.slot();
        if !table.replicated && before != Some(slot) {
            let misplaced = number > 0 && is_planted(Planted::IndexMisplaced);
            homes.clear();
            homes.push(match misplaced {
                true => cx.port.here(),
                false => cx.port.home(slot),
            });
            before = Some(slot);
        }
        let row = rows[entry.row()];
        let batch = batches.open(homes[0], index, size);
        let mut size_bytes = 0;
        batch.rows.push(slot, entries.key(entry.row()), |out| {
            let start = out.len();
            match number {
                0 => base::row::encode(row, out),
                _ => append_entry_row(table, row, out),
            }
            size_bytes = out.len() - start;
        });
        batch.numbers.push(entry.row() as u32);
        if size_bytes > ROW_BYTES_MAX {
            let error = too_big(&table.name, size_bytes);
            return Err(of_row(entry.row(), error));
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
