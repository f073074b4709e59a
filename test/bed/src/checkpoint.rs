//! Checkpoints of shards.

use crate::{Subject, World};
use base::{Key, Position, ShardId, Ts};
use journal::{CheckpointTables, Record};
use store::{CheckpointCursor, CheckpointRow, Store};

/// Rows that are away, in one piece of a checkpoint.
const AWAY_MAX: usize = 2;

/// A newest version as a checkpoint has it.
type Row = (Key, Ts, Option<Vec<u8>>);

/// A checkpoint of one shard.
#[derive(Debug)]
pub(crate) struct Checkpoint<C> {
    pub(crate) start: Position,
    pub(crate) tables: CheckpointTables,
    /// Until all rows that are away are written.
    away: Option<C>,
    rows: Vec<Row>,
    /// It counts when the journal is durable to here; `None`: the rows were not written yet.
    pub(crate) end: Option<Position>,
}

impl<C> Default for Checkpoint<C> {
    fn default() -> Self {
        Checkpoint {
            start: Position(0),
            tables: CheckpointTables::default(),
            away: None,
            rows: Vec::new(),
            end: None,
        }
    }
}

impl<C> Checkpoint<C> {
    /// Puts its rows into an empty store.
    pub(crate) fn load(&self, store: &mut Store) {
        for (key, commit_ts, value) in &self.rows {
            store.load(CheckpointRow {
                index: key.index,
                slot: key.slot,
                key: &key.bytes,
                commit_ts: *commit_ts,
                value: value.as_deref(),
            });
        }
    }
}

impl<P: Subject> World<P> {
    /// Begins a checkpoint, or goes on with it: first rows that are away, then those here.
    pub fn checkpoint(&mut self, id: ShardId) {
        let disk = self.nodes[&id.node()].disk.clone();
        let shard = self.shards.get_mut(&id).expect("a shard");
        let Some(next) = &mut shard.next_checkpoint else {
            if !shard.protocol.checkpoint_may_begin() {
                self.checkpoints_wanted.insert(id);
                return;
            }
            let start = disk.borrow_mut().push_record(&Record::CheckpointStart {
                number: 1,
                shard: id,
            });
            let mut tables = CheckpointTables::default();
            let away = shard.protocol.checkpoint_begin(&mut tables);
            shard.next_checkpoint = Some(Checkpoint {
                start,
                tables: tables.joined(),
                away,
                ..Checkpoint::default()
            });
            return;
        };
        if let Some(away) = &mut next.away {
            match shard.protocol.checkpoint_next(away, AWAY_MAX) {
                Some(piece) => next.tables.ownership.append(piece),
                None => next.away = None,
            }
        } else if next.end.is_none() && shard.protocol.checkpoint_may_end() {
            let mut cursor = CheckpointCursor::default();
            let rows = &mut next.rows;
            let whole = shard
                .store
                .checkpoint_next(&mut cursor, usize::MAX, &mut |row| {
                    let key = Key::new(row.index, row.slot, row.key.to_vec());
                    rows.push((key, row.commit_ts, row.value.map(<[u8]>::to_vec)));
                });
            assert!(whole);
            next.end = Some(disk.borrow().end());
        }
    }

    /// Begins a checkpoint, or goes on with the one that has begun, to its end.
    pub fn whole_checkpoint(&mut self, id: ShardId) {
        self.checkpoint(id);
        let begun = |world: &Self| {
            let next = &world.shards[&id].next_checkpoint;
            next.as_ref().is_some_and(|next| next.end.is_none())
        };
        while begun(self) {
            self.checkpoint(id);
        }
    }

    pub(crate) fn complete_checkpoint(&mut self, id: ShardId) {
        let durable = self.nodes[&id.node()].disk.borrow().durable;
        let shard = self.shards.get_mut(&id).expect("a shard");
        let complete = |next: &mut Checkpoint<_>| next.end.is_some_and(|end| end <= durable);
        if let Some(checkpoint) = shard.next_checkpoint.take_if(complete) {
            shard.checkpoint = checkpoint;
            self.checkpoints += 1;
        }
    }
}
