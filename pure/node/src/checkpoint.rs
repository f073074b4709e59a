//! Writes a checkpoint of a shard while the shard works on, in pieces that the host asks for.
//!
//! The walk is fuzzy: each row appears as it is when the walk passes. The journal from the start
//! position on makes the rows consistent. So the host puts a checkpoint into use only when the
//! journal is durable to where it stood at the end of the walk.

use crate::core::Core;
use crate::input::CheckpointPart;
use base::{Position, Ts};
use journal::{CheckpointHeader, CheckpointTables, CheckpointWriter, Prepared, Record, Writes};
use std::sync::Arc;
use std::vec;
use store::CheckpointCursor;
use txn::JournalPort;

/// Largest number of rows that are away in one block.
const AWAY_MAX: usize = 1_000;
/// Why there is a writer.
const WRITING: &str = "an ended checkpoint is dropped";

/// A checkpoint under way.
pub(crate) struct CheckpointRun {
    writer: Option<CheckpointWriter>,
    header_bytes: Vec<u8>,
    tables: CheckpointTables,
    /// Slices of large promises that are not written yet.
    sliced: vec::IntoIter<(Prepared, Arc<Writes>)>,
    cursor: CheckpointCursor,
    start: Position,
    journal_from: Position,
    /// Bytes of rows that the host has asked for; `None`: it has got all of them.
    wanted: Option<usize>,
}

impl CheckpointRun {
    /// Notes the start in the journal and what the shard has promised and decided at this point.
    pub(crate) fn new(core: &mut Core, number: u64) -> CheckpointRun {
        let shard = core.config.shard;
        let mut record = Vec::new();
        Record::CheckpointStart { number, shard }.encode(&mut record);
        let start = core.journal.append(&record);
        let header = CheckpointHeader {
            cluster: core.config.cluster,
            shard,
            number,
            start,
            clock_floor: core.clock.last(),
        };
        let mut tables = core.protocols.checkpoint_begins();
        let sliced = core::mem::take(&mut tables.sliced).into_iter();
        let mut header_bytes = Vec::new();
        let writer = CheckpointWriter::new(header, &mut header_bytes);
        CheckpointRun {
            writer: Some(writer),
            header_bytes,
            tables,
            sliced,
            cursor: CheckpointCursor::default(),
            start,
            journal_from: core
                .journal
                .oldest_held()
                .map_or(start, |held| held.min(start)),
            wanted: None,
        }
    }

    /// The host asks for the next piece.
    pub(crate) fn want(&mut self, bytes: usize) {
        self.wanted = Some(bytes);
    }

    /// Writes the piece that the host wants, if it wants one. Returns true at the end.
    pub(crate) fn advance(
        &mut self,
        core: &mut Core,
        clock_bound: Ts,
        out: &mut Vec<CheckpointPart>,
    ) -> bool {
        let Some(budget) = self.wanted.take() else {
            return false;
        };
        let mut bytes = core::mem::take(&mut self.header_bytes);
        let writer = self.writer.as_mut().expect(WRITING);
        let walked = core
            .store
            .checkpoint_next(&mut self.cursor, budget, &mut |row| {
                writer.row(row, &mut bytes);
            });
        while walked
            && bytes.len() < budget
            && let Some((promise, writes)) = self.sliced.next()
        {
            writer.slice(&promise, &writes, &mut bytes);
        }
        let sliced = walked && self.sliced.as_slice().is_empty();
        let told = sliced && self.write_away(core, budget, &mut bytes);
        // A commit that another shard has journaled must be installed here before the end.
        let done = walked && told && core.protocols.checkpoint_may_end();
        if done {
            let writer = self.writer.take().expect("just used");
            writer.finish(&self.tables, &mut bytes);
        }
        out.push(CheckpointPart::Bytes(bytes));
        if done {
            out.push(CheckpointPart::End {
                start: self.start,
                journal_from: self.journal_from,
                catalog: core.catalog.clone(),
                clock_bound,
            });
        }
        done
    }

    /// Writes rows that are away, until the piece is full. Returns true when none is left.
    fn write_away(&mut self, core: &mut Core, budget: usize, bytes: &mut Vec<u8>) -> bool {
        let writer = self.writer.as_mut().expect(WRITING);
        while bytes.len() < budget {
            let Some(piece) = core.protocols.checkpoint_next(AWAY_MAX) else {
                return true;
            };
            core.counters.units += piece.rows() as u64;
            writer.away(&piece, bytes);
        }
        false
    }
}
