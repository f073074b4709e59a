//! Checkpoint files: the rows of one shard, and its promises and decisions at the start position.
//!
//! ```text
//! header  | block | block | ... | footer block
//! block   kind u8 | length u32 | crc u32 over kind, length and payload | payload
//! rows    repeated: index u32 | slot u16 | key length u16 | commit_ts u64 | value length u32
//!                   (u32::MAX: tombstone) | key | value
//! ```
//!
//! All numbers are little-endian. Rows may be newer than the start position; replay from there
//! makes them consistent.

use crate::fault::{Fault, JournalError};
use crate::ownership::Ownership;
use crate::parse::Parser;
use crate::record::Writes;
use crate::segment::FORMAT_VERSION;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::codec;
use base::crc::{Crc32c, crc32c};
use base::{IndexId, Key, Position, SLOT_COUNT, ShardId, Slot, Ts, TxnId};
use serde::{Deserialize, Serialize};
use store::{CheckpointRow, Formula};

/// Bytes of the header.
pub const CHECKPOINT_HEADER_BYTES: usize = 56;
const MAGIC: [u8; 8] = *b"TRLSCKP\n";
/// A block of rows is closed when it has this many bytes.
const BLOCK_BYTES: usize = 256 << 10;
/// Larger blocks are refused, so that a wrong length does not make the reader keep bytes. Above the
/// largest prepared transaction.
const BLOCK_BYTES_MAX: usize = 256 << 20;
const BLOCK_FRAME_BYTES: usize = 9;
const TOMBSTONE: u32 = u32::MAX;

const ROWS: u8 = 1;
const PREPARED: u8 = 2;
const OWED: u8 = 3;
const FOOTER: u8 = 4;
/// A kind of block that is not counted in the footer: files without it are as in older releases.
const OWNERSHIP: u8 = 5;
/// As [`OWNERSHIP`], one block for each transaction, behind that one.
const SHIPPED: u8 = 6;
/// As [`OWNERSHIP`], one block for each formula.
const UNFOLDED: u8 = 7;

/// The first bytes of a checkpoint file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointHeader {
    /// Cluster that the node belongs to.
    pub cluster: u64,
    /// The shard whose rows these are.
    pub shard: ShardId,
    /// Number of the checkpoint; the shards of a node use the same.
    pub number: u64,
    /// End of the shard's `CheckpointStart` record: replay begins behind it.
    pub start: Position,
    /// Every timestamp in the file that was drawn before the start lies at or below this.
    pub clock_floor: Ts,
}

/// A promise of one shard: a prepared write set without an outcome.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Prepared {
    /// The transaction.
    pub txn: TxnId,
    /// Its attempt.
    pub attempt: u32,
    /// The participant.
    pub shard: ShardId,
    /// No commit timestamp below this is acceptable.
    pub prepare_ts: Ts,
    /// Shard that knows the outcome.
    pub coordinator: ShardId,
    /// As in [`crate::Record::Prepare`].
    pub participants: Vec<ShardId>,
    /// Writes of the participant.
    pub writes: Writes,
}

impl Prepared {
    /// The keys that stay locked until the outcome is known.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.writes.iter().map(|(key, _)| key)
    }
}

/// A decision to commit of which participants must still be told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owed {
    /// The transaction.
    pub txn: TxnId,
    /// Commit timestamp of its writes.
    pub commit_ts: Ts,
    /// Prepared participants.
    pub participants: Vec<ShardId>,
}

/// A formula of a committed transaction that is not in its row yet: a promise on the row may commit
/// below.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Unfolded {
    /// The transaction.
    pub txn: TxnId,
    /// Shard of the row.
    pub shard: ShardId,
    /// Commit timestamp of the transaction.
    pub commit_ts: Ts,
    /// The row.
    pub key: Key,
    /// The change.
    pub formula: Formula,
}

/// Promises and decisions of one shard at the start position of its checkpoint.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CheckpointTables {
    /// Promises without an outcome.
    pub prepared: Vec<Prepared>,
    /// Promises with many writes, slice by slice: each slice is the promise without writes, and
    /// some of its writes. A reader joins them.
    pub sliced: Vec<(Prepared, Arc<Writes>)>,
    /// Decisions without all acknowledgements.
    pub owed: Vec<Owed>,
    /// Committed formulas that are not in their rows.
    pub unfolded: Vec<Unfolded>,
    /// Rows away from the shard of their slot.
    pub ownership: Ownership,
}

impl CheckpointTables {
    /// Takes out promises, decisions and formulas of transactions with odd ids, or of the others.
    #[must_use]
    pub fn take_of(&mut self, odd: bool) -> CheckpointTables {
        fn part<T>(all: &mut Vec<T>, wanted: impl Fn(&T) -> bool) -> Vec<T> {
            let (wanted, rest) = core::mem::take(all).into_iter().partition(wanted);
            *all = rest;
            wanted
        }
        CheckpointTables {
            prepared: part(&mut self.prepared, |it| it.txn.is_odd() == odd),
            sliced: part(&mut self.sliced, |(it, _)| it.txn.is_odd() == odd),
            owed: part(&mut self.owed, |it| it.txn.is_odd() == odd),
            unfolded: part(&mut self.unfolded, |it| it.txn.is_odd() == odd),
            ownership: Ownership::default(),
        }
    }

    /// The tables with every promise in one piece.
    #[must_use]
    pub fn joined(mut self) -> CheckpointTables {
        for (promise, writes) in core::mem::take(&mut self.sliced) {
            self.take_slice(Prepared {
                writes: writes.to_vec(),
                ..promise
            });
        }
        self
    }

    /// Adds a promise, or the next slice of the last one.
    fn take_slice(&mut self, slice: Prepared) {
        match self.prepared.last_mut() {
            Some(last) if (last.txn, last.shard) == (slice.txn, slice.shard) => {
                last.writes.extend(slice.writes);
            }
            Some(_) | None => self.prepared.push(slice),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Footer {
    rows: u64,
    blocks: u64,
    prepared: u64,
    owed: u64,
    /// Checksums of all blocks, combined in order.
    chain: u32,
}

/// File name of a shard's part of checkpoint `number`.
pub fn checkpoint_name(number: u64, shard: ShardId) -> String {
    format!("checkpoint-{number:016x}-{:04}.ckp", shard.0)
}

/// Whether a file is a part of a checkpoint by its name.
pub fn is_checkpoint_name(name: &str) -> bool {
    name.starts_with("checkpoint-") && name.ends_with(".ckp")
}

/// Encodes a checkpoint piece by piece. The caller may take bytes out of `out` at any time.
#[derive(Debug, Default)]
pub struct CheckpointWriter {
    block: Vec<u8>,
    footer: Footer,
}

impl CheckpointWriter {
    /// Begins a file: appends its header to `out`.
    pub fn new(header: CheckpointHeader, out: &mut Vec<u8>) -> CheckpointWriter {
        let from = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&u32::from(header.shard.0).to_le_bytes());
        out.extend_from_slice(&header.cluster.to_le_bytes());
        out.extend_from_slice(&header.number.to_le_bytes());
        out.extend_from_slice(&header.start.0.to_le_bytes());
        out.extend_from_slice(&header.clock_floor.0.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let crc = crc32c(&out[from..]);
        out.extend_from_slice(&crc.to_le_bytes());
        CheckpointWriter::default()
    }

    /// Adds one row; a block that is full goes to `out`.
    pub fn row(&mut self, row: CheckpointRow<'_>, out: &mut Vec<u8>) {
        let key_len = u16::try_from(row.key.len()).expect("keys are limited to 4 KiB");
        let value = row.value.unwrap_or_default();
        let value_len = match row.value {
            Some(value) => u32::try_from(value.len()).expect("rows are limited to a record"),
            None => TOMBSTONE,
        };
        let block = &mut self.block;
        block.extend_from_slice(&row.index.0.to_le_bytes());
        block.extend_from_slice(&row.slot.0.to_le_bytes());
        block.extend_from_slice(&key_len.to_le_bytes());
        block.extend_from_slice(&row.commit_ts.0.to_le_bytes());
        block.extend_from_slice(&value_len.to_le_bytes());
        block.extend_from_slice(row.key);
        block.extend_from_slice(value);
        self.footer.rows += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.close(ROWS, out);
        }
    }

    /// Adds a slice of a promise, behind all rows. Slices of one promise follow each other, in the
    /// order of their keys.
    pub fn slice(&mut self, promise: &Prepared, writes: &Writes, out: &mut Vec<u8>) {
        if !self.block.is_empty() {
            self.close(ROWS, out);
        }
        let slice = Prepared {
            writes: writes.clone(),
            ..promise.clone()
        };
        codec::encode(&slice, &mut self.block);
        self.footer.prepared += 1;
        self.close(PREPARED, out);
    }

    /// Adds some of the rows that are away from the shard of their slot, behind all rows; the rest
    /// of the ownership comes at the end. A reader gets the [`Ownership::append`] of all pieces.
    pub fn away(&mut self, piece: &Ownership, out: &mut Vec<u8>) {
        if !self.block.is_empty() {
            self.close(ROWS, out);
        }
        codec::encode(piece, &mut self.block);
        self.close(OWNERSHIP, out);
    }

    /// Ends the file: appends the rest, `tables` and the footer to `out`.
    pub fn finish(mut self, tables: &CheckpointTables, out: &mut Vec<u8>) {
        if !self.block.is_empty() {
            self.close(ROWS, out);
        }
        for (promise, writes) in &tables.sliced {
            self.slice(promise, writes, out);
        }
        for prepared in &tables.prepared {
            codec::encode(prepared, &mut self.block);
            self.footer.prepared += 1;
            self.close(PREPARED, out);
        }
        for owed in &tables.owed {
            codec::encode(owed, &mut self.block);
            self.footer.owed += 1;
            self.close(OWED, out);
        }
        if !tables.ownership.is_empty() {
            self.away(&tables.ownership, out);
        }
        for shipped in &tables.ownership.shipped {
            codec::encode(shipped, &mut self.block);
            self.close(SHIPPED, out);
        }
        for unfolded in &tables.unfolded {
            codec::encode(unfolded, &mut self.block);
            self.close(UNFOLDED, out);
        }
        codec::encode(&self.footer, &mut self.block);
        self.close(FOOTER, out);
    }

    fn close(&mut self, kind: u8, out: &mut Vec<u8>) {
        assert!(
            self.block.len() <= BLOCK_BYTES_MAX,
            "no row or promise comes near the limit"
        );
        let len = (self.block.len() as u32).to_le_bytes();
        let crc = block_crc(kind, len, &self.block);
        out.push(kind);
        out.extend_from_slice(&len);
        out.extend_from_slice(&crc.to_le_bytes());
        out.append(&mut self.block);
        self.footer.add_block(crc);
    }
}

impl Footer {
    fn add_block(&mut self, crc: u32) {
        self.blocks += 1;
        self.chain = self.chain.rotate_left(1) ^ crc;
    }
}

fn block_crc(kind: u8, len: [u8; 4], payload: &[u8]) -> u32 {
    let mut crc = Crc32c::new();
    crc.update(&[kind]);
    crc.update(&len);
    crc.update(payload);
    crc.finish()
}

/// Decodes a checkpoint piece by piece. Rows are given out before the footer is read, so they count
/// only once [`CheckpointReader::finish`] has succeeded.
#[derive(Debug)]
pub struct CheckpointReader {
    file: String,
    header: Option<CheckpointHeader>,
    /// Bytes that were pushed but not yet decoded; they begin at `offset`.
    pending: Vec<u8>,
    offset: u64,
    seen: Footer,
    tables: CheckpointTables,
    ended: bool,
}

impl CheckpointReader {
    /// A reader of the file named `file` (for error messages).
    pub fn new(file: &str) -> CheckpointReader {
        CheckpointReader {
            file: file.into(),
            header: None,
            pending: Vec::new(),
            offset: 0,
            seen: Footer::default(),
            tables: CheckpointTables::default(),
            ended: false,
        }
    }

    /// Takes the next bytes of the file, in pieces of any size; calls `f` for each whole row.
    pub fn push(
        &mut self,
        bytes: &[u8],
        f: &mut dyn FnMut(CheckpointRow<'_>),
    ) -> Result<(), JournalError> {
        self.pending.extend_from_slice(bytes);
        let pending = core::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        loop {
            let len = self
                .take_part(rest, f)
                .map_err(|fault| JournalError::new(&self.file, self.offset, fault))?;
            if len == 0 {
                break;
            }
            self.offset += len as u64;
            rest = &rest[len..];
        }
        self.pending = rest.to_vec();
        Ok(())
    }

    /// Ends the file. Errors: the file is not complete, or its footer does not match.
    pub fn finish(self) -> Result<(CheckpointHeader, CheckpointTables), JournalError> {
        let whole = self.ended && self.pending.is_empty();
        match self.header {
            Some(header) if whole => Ok((header, self.tables)),
            _ => Err(JournalError::new(&self.file, self.offset, Fault::Truncated)),
        }
    }

    /// Decodes the header or one block; returns its length, 0 if more bytes are needed.
    fn take_part(
        &mut self,
        bytes: &[u8],
        f: &mut dyn FnMut(CheckpointRow<'_>),
    ) -> Result<usize, Fault> {
        if self.ended && !bytes.is_empty() {
            return Err(Fault::Trailing);
        }
        if self.header.is_none() {
            if bytes.len() < CHECKPOINT_HEADER_BYTES {
                return Ok(0);
            }
            self.header = Some(decode_header(&bytes[..CHECKPOINT_HEADER_BYTES])?);
            return Ok(CHECKPOINT_HEADER_BYTES);
        }
        if bytes.len() < BLOCK_FRAME_BYTES {
            return Ok(0);
        }
        let mut fields = Parser(bytes);
        let [kind] = fields.array()?;
        let len_bytes = fields.array::<4>()?;
        let len = u32::from_le_bytes(len_bytes) as usize;
        let crc = fields.u32()?;
        if !(ROWS..=UNFOLDED).contains(&kind) || len == 0 || len > BLOCK_BYTES_MAX {
            return Err(Fault::Length(len as u64));
        }
        let Ok(payload) = fields.bytes(len) else {
            return Ok(0);
        };
        if block_crc(kind, len_bytes, payload) != crc {
            return Err(Fault::Checksum);
        }
        self.take_block(kind, payload, f)?;
        self.seen.add_block(crc);
        Ok(BLOCK_FRAME_BYTES + len)
    }

    fn take_block(
        &mut self,
        kind: u8,
        payload: &[u8],
        f: &mut dyn FnMut(CheckpointRow<'_>),
    ) -> Result<(), Fault> {
        match kind {
            ROWS => {
                let mut fields = Parser(payload);
                while !fields.0.is_empty() {
                    f(decode_row(&mut fields)?);
                    self.seen.rows += 1;
                }
            }
            PREPARED => {
                let slice = codec::decode(payload).map_err(Fault::Content)?;
                self.tables.take_slice(slice);
                self.seen.prepared += 1;
            }
            OWED => {
                self.tables
                    .owed
                    .push(codec::decode(payload).map_err(Fault::Content)?);
                self.seen.owed += 1;
            }
            OWNERSHIP => {
                let piece = codec::decode(payload).map_err(Fault::Content)?;
                self.tables.ownership.append(piece);
            }
            SHIPPED => {
                let shipped = codec::decode(payload).map_err(Fault::Content)?;
                self.tables.ownership.shipped.push(shipped);
            }
            UNFOLDED => {
                let unfolded = codec::decode(payload).map_err(Fault::Content)?;
                self.tables.unfolded.push(unfolded);
            }
            _ => {
                let footer: Footer = codec::decode(payload).map_err(Fault::Content)?;
                if footer != self.seen {
                    return Err(Fault::Count);
                }
                self.ended = true;
            }
        }
        Ok(())
    }
}

fn decode_header(bytes: &[u8]) -> Result<CheckpointHeader, Fault> {
    let mut fields = Parser(bytes);
    if fields.array()? != MAGIC {
        return Err(Fault::Magic);
    }
    let version = fields.u32()?;
    if version != FORMAT_VERSION {
        return Err(Fault::Version(version));
    }
    let shard = fields.u32()?;
    let header = CheckpointHeader {
        cluster: fields.u64()?,
        shard: ShardId(u16::try_from(shard).map_err(|_| Fault::Length(u64::from(shard)))?),
        number: fields.u64()?,
        start: Position(fields.u64()?),
        clock_floor: Ts(fields.u64()?),
    };
    fields.u32()?;
    if fields.u32()? != crc32c(&bytes[..CHECKPOINT_HEADER_BYTES - 4]) {
        return Err(Fault::Checksum);
    }
    Ok(header)
}

fn decode_row<'a>(fields: &mut Parser<'a>) -> Result<CheckpointRow<'a>, Fault> {
    let index = IndexId(fields.u32()?);
    let slot = Slot(fields.u16()?);
    if slot.0 >= SLOT_COUNT {
        return Err(Fault::Order("a slot"));
    }
    let key_len = fields.u16()?;
    let commit_ts = Ts(fields.u64()?);
    let value_len = fields.u32()?;
    let key = fields.bytes(usize::from(key_len))?;
    let value = match value_len {
        TOMBSTONE => None,
        len => Some(fields.bytes(len as usize)?),
    };
    Ok(CheckpointRow {
        index,
        slot,
        key,
        commit_ts,
        value,
    })
}

impl CheckpointHeader {
    /// Checks that the file with this header is the one that a manifest names: that of `shard`, in
    /// the checkpoint `number` of `cluster`, which begins at `start`.
    ///
    /// # Errors
    /// [`Fault::Foreign`] names what it belongs to another one of.
    pub fn check(
        &self,
        cluster: u64,
        shard: ShardId,
        (number, start): (u64, Position),
    ) -> Result<(), Fault> {
        let other = match () {
            () if self.cluster != cluster => "cluster",
            () if self.shard.node() != shard.node() => "node",
            () if self.shard != shard => "shard",
            () if (self.number, self.start) != (number, start) => "checkpoint",
            () => return Ok(()),
        };
        Err(Fault::Foreign(other))
    }
}
