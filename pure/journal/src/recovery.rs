//! Recovery: what the records after the checkpoints mean.
//!
//! Every record from [`ReplayStart`]'s oldest position on goes, in order, to [`Replay::on_record`].
//! Committed writes come out at once, in an order in which they can be applied (with
//! `store::Store::redo`). Then [`Replay::finish`] judges what is left by the table in
//! [`crate::verdict`].
//!
//! Each shard has its own start position, because checkpoints of shards begin at different times: a
//! record at or below its shard's start is in the checkpoint already and is passed over. Chunks are
//! kept in any case, because the record that names them may come after the start. So the journal is
//! truncated no further than the oldest chunk of an unfinished transaction.

use crate::checkpoint::{CheckpointTables, Owed, Prepared, Unfolded};
use crate::fault::Fault;
use crate::fold_order::{FoldOrder, Repeated};
use crate::ownership::{Held, Holding, Otag, Ownership, Shipment, Shipped};
use crate::reader::Entry;
use crate::record::{Record, ShardWrites, Writes};
use crate::verdict::{Evidence, Heard, Verdict, judge};
use crate::vote::Vote;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{Key, NodeId, Planted, Position, ShardId, Ts, TxnId, is_planted};
use store::Write;

/// What the manifest and the checkpoint files say: the starting point of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayStart {
    /// The node that recovers.
    pub node: NodeId,
    /// Start position and tables of each shard's checkpoint. A shard without one starts at 0.
    pub shards: Vec<(ShardId, Position, CheckpointTables)>,
    /// Incarnation when the checkpoint was made; 0 without one.
    pub incarnation: u32,
    /// Clock bound when the checkpoint was made.
    pub clock_bound: Ts,
    /// Version of the catalog in the manifest; 0 without one.
    pub catalog_version: u64,
}

/// Committed writes of one transaction to one shard.
#[derive(Clone, PartialEq, Debug)]
pub struct Redo {
    /// Shard that holds the keys.
    pub shard: ShardId,
    /// Commit timestamp of the writes.
    pub commit_ts: Ts,
    /// Whether it may come behind formulas that have committed above it (rule A7). Then it comes
    /// once.
    pub any_order: bool,
    /// The writes.
    pub writes: Writes,
}

/// What a node knows after recovery, besides its rows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recovery {
    /// Incarnation of the last life; the new one takes the next number.
    pub incarnation: u32,
    /// Clocks start above this timestamp.
    pub clock_floor: Ts,
    /// Largest view seen.
    pub view: u64,
    /// The newest encoded catalog with its version; empty if the manifest has the newest.
    pub catalog: Vec<(u64, Vec<u8>)>,
    /// The newest vote, if no newer catalog has come after it.
    pub vote: Option<Vote>,
    /// Committed writes, to be applied in this order (only from [`recover`]).
    pub redo: Vec<Redo>,
    /// Promises whose outcome another node knows: the shard locks their keys and asks.
    pub held: Vec<Prepared>,
    /// Decisions that some participant has not acknowledged: the shard tells them again.
    pub owed: Vec<Owed>,
    /// Committed formulas on rows of promises in `held` that may commit below them.
    pub unfolded: Vec<Unfolded>,
    /// What each shard knows of ownership: the tables of its checkpoint, with `held` as of the end
    /// of the journal.
    pub ownership: Vec<(ShardId, Ownership)>,
    /// Records of outcomes that follow from this journal, to be appended right after `NodeStart`.
    pub settled: Vec<Record>,
}

/// The replay of one journal.
#[derive(Debug, Default)]
pub struct Replay {
    node: NodeId,
    starts: BTreeMap<ShardId, Position>,
    last_catalog: u64,
    chunks: BTreeMap<(TxnId, ShardId), BTreeMap<u32, Writes>>,
    prepared: BTreeMap<(TxnId, ShardId), Prepared>,
    owed: BTreeMap<TxnId, Owed>,
    ended: BTreeSet<TxnId>,
    decided: BTreeMap<TxnId, Ts>,
    /// Transactions that a shard of this node had promised, and whose abort it was told.
    aborted: BTreeSet<TxnId>,
    held: BTreeMap<(ShardId, Key), (Otag, Holding)>,
    ownership: BTreeMap<ShardId, Ownership>,
    /// Formulas whose commit was not read yet.
    shipping: BTreeMap<TxnId, (ShardId, Vec<Shipment>)>,
    /// Formulas of committed transactions whose owners have not all acknowledged.
    shipped: BTreeMap<TxnId, (ShardId, Shipped)>,
    order: FoldOrder,
    repeated: Repeated,
    recovery: Recovery,
}

impl Replay {
    /// Begins with the state of the checkpoints.
    pub fn new(start: ReplayStart) -> Replay {
        let mut replay = Replay {
            node: start.node,
            last_catalog: start.catalog_version,
            recovery: Recovery {
                incarnation: start.incarnation,
                clock_floor: start.clock_bound,
                ..Recovery::default()
            },
            ..Replay::default()
        };
        for (shard, position, tables) in start.shards {
            replay.starts.insert(shard, position);
            let tables = tables.joined();
            for prepared in tables.prepared {
                replay.order.promise(&prepared);
                replay
                    .prepared
                    .insert((prepared.txn, prepared.shard), prepared);
            }
            for owed in tables.owed {
                replay.decided.insert(owed.txn, owed.commit_ts);
                replay.owed.insert(owed.txn, owed);
            }
            replay.order.late_at_start(tables.unfolded);
            let mut ownership = tables.ownership;
            for held in core::mem::take(&mut ownership.held) {
                let Held { key, otag, holding } = held;
                replay.held.insert((shard, key), (otag, holding));
            }
            for shipped in core::mem::take(&mut ownership.shipped) {
                replay.shipped.insert(shipped.txn, (shard, shipped));
            }
            replay.ownership.insert(shard, ownership);
        }
        replay
    }

    fn is_news(&self, shard: ShardId, end: Position) -> bool {
        self.starts.get(&shard).is_none_or(|start| end > *start)
    }

    /// Takes the next record. Calls `redo` with the writes that are committed by the record.
    ///
    /// Errors: the journal contradicts itself (the table's corrupt rows): do not start the node.
    pub fn on_record(&mut self, entry: Entry, redo: &mut dyn FnMut(Redo)) -> Result<(), Fault> {
        let Entry { end, record } = entry;
        self.order.begin(redo);
        match record {
            Record::NodeStart {
                incarnation,
                clock_bound,
                view,
            } => {
                self.recovery.incarnation = self.recovery.incarnation.max(incarnation);
                self.recovery.view = self.recovery.view.max(view);
                self.saw(clock_bound);
            }
            Record::ClockBound { ts } => self.saw(ts),
            Record::Commit {
                txn,
                commit_ts,
                writes,
                chunks,
            } => {
                self.saw(commit_ts);
                self.redo_all(end, txn, commit_ts, writes, &chunks, redo)?;
                self.on_shipment(end, txn, commit_ts);
            }
            Record::Shipped {
                shard,
                txn,
                formulas,
            } => {
                self.shipping.insert(txn, (shard, formulas));
            }
            Record::Delivered { txn } => drop(self.shipped.remove(&txn)),
            Record::Chunk {
                txn,
                shard,
                seq,
                writes,
            } => {
                self.chunks
                    .entry((txn, shard))
                    .or_default()
                    .insert(seq, writes);
            }
            prepare @ Record::Prepare { .. } => self.on_prepare(end, prepare)?,
            decision @ Record::Decision { .. } => self.on_decision(end, decision, redo)?,
            Record::Resolved {
                txn,
                shard,
                commit_ts,
            } => {
                self.saw(commit_ts.unwrap_or_default());
                if self.is_news(shard, end) {
                    self.on_resolved(txn, shard, commit_ts, redo)?;
                }
            }
            Record::End { txn } => {
                self.ended.insert(txn);
            }
            Record::Catalog { version, catalog } => self.on_catalog(version, catalog),
            Record::Vote(vote) => self.on_vote(vote),
            Record::CheckpointStart { .. } => {}
            acquired @ Record::Acquired { .. } => self.on_acquired(end, acquired, redo),
            released @ Record::Released { .. } => self.on_released(end, released),
        }
        Ok(())
    }

    fn on_catalog(&mut self, version: u64, catalog: Vec<u8>) {
        if version > self.last_catalog {
            self.last_catalog = version;
            self.recovery.catalog = Vec::from([(version, catalog)]);
            self.recovery.vote.take_if(|vote| vote.base < version);
        }
    }

    /// Votes on the successor of an older catalog are void.
    fn on_vote(&mut self, vote: Vote) {
        if vote.base >= self.last_catalog {
            self.recovery.vote = Some(vote);
        }
    }

    /// A row has left a shard.
    fn on_released(&mut self, end: Position, released: Record) {
        let Record::Released {
            shard,
            key,
            otag,
            to,
        } = released
        else {
            unreachable!("called for departures only")
        };
        if self.is_news(shard, end) {
            self.held
                .insert((shard, key), (otag, Holding::Released(to)));
        }
    }

    /// The transaction of formulas has committed, so they count.
    fn on_shipment(&mut self, end: Position, txn: TxnId, commit_ts: Ts) {
        if let Some((shard, formulas)) = self.shipping.remove(&txn)
            && self.is_news(shard, end)
        {
            let shipped = Shipped {
                txn,
                commit_ts,
                formulas,
            };
            self.shipped.insert(txn, (shard, shipped));
        }
    }

    /// The coordinator on this node has decided to commit.
    fn on_decision(
        &mut self,
        end: Position,
        decision: Record,
        redo: &mut dyn FnMut(Redo),
    ) -> Result<(), Fault> {
        let Record::Decision {
            txn,
            commit_ts,
            participants,
            writes,
            chunks,
        } = decision
        else {
            unreachable!("called for decisions only")
        };
        if self.aborted.contains(&txn) {
            return Err(Fault::Contradiction { txn });
        }
        self.saw(commit_ts);
        self.redo_all(end, txn, commit_ts, writes, &chunks, redo)?;
        let other = self.decided.insert(txn, commit_ts);
        if other.is_some_and(|other| other != commit_ts) {
            return Err(Fault::Contradiction { txn });
        }
        if self.is_news(txn.shard, end) {
            let owed = Owed {
                txn,
                commit_ts,
                participants,
            };
            self.owed.insert(txn, owed);
        }
        Ok(())
    }

    /// A row has come to a shard.
    fn on_acquired(&mut self, end: Position, acquired: Record, redo: &mut dyn FnMut(Redo)) {
        let Record::Acquired {
            shard,
            key,
            otag,
            from: _,
            at,
            version,
        } = acquired
        else {
            unreachable!("called for arrivals only")
        };
        self.saw(at);
        if !self.is_news(shard, end) {
            return;
        }
        self.held
            .insert((shard, key.clone()), (otag, Holding::Owned));
        // An absent row may still be in the store from an earlier time of ownership.
        let (commit_ts, write) = match version {
            Some((commit_ts, row)) => (commit_ts, Write::Put(row)),
            None => (at, Write::Delete),
        };
        let writes = Writes::from([(key, write)]);
        redo(Redo {
            shard,
            commit_ts,
            any_order: false,
            writes,
        });
    }

    fn on_prepare(&mut self, end: Position, prepare: Record) -> Result<(), Fault> {
        let Record::Prepare {
            txn,
            attempt,
            shard,
            prepare_ts,
            coordinator,
            participants,
            writes,
            chunks,
        } = prepare
        else {
            unreachable!("called for promises only")
        };
        self.saw(prepare_ts);
        let writes = self.assemble(txn, shard, writes, chunks);
        if self.is_news(shard, end) {
            let evidence = Evidence::Participant {
                prepared: true,
                whole: writes.is_some(),
                heard: Heard::Nothing,
                decided: false,
                coordinator_here: coordinator.node() == self.node,
                named: !participants.is_empty(),
            };
            let (Some(writes), false) = (writes, judge(evidence) == Verdict::CorruptChunks) else {
                return Err(Fault::MissingChunk { txn });
            };
            let prepared = Prepared {
                txn,
                attempt,
                shard,
                prepare_ts,
                coordinator,
                participants,
                writes,
            };
            self.order.promise(&prepared);
            self.prepared.insert((txn, shard), prepared);
        }
        Ok(())
    }

    fn saw(&mut self, ts: Ts) {
        self.recovery.clock_floor = self.recovery.clock_floor.max(ts);
    }

    /// The writes with their chunks; `None`: a chunk is missing. Chunks with larger numbers are of
    /// an attempt that was given up.
    fn assemble(
        &mut self,
        txn: TxnId,
        shard: ShardId,
        mut writes: Writes,
        count: u32,
    ) -> Option<Writes> {
        let mut chunks = self.chunks.remove(&(txn, shard)).unwrap_or_default();
        for seq in 0..count {
            writes.extend(chunks.remove(&seq)?);
        }
        Some(writes)
    }

    /// Emits the writes of a record that decides and carries the writes itself.
    fn redo_all(
        &mut self,
        end: Position,
        txn: TxnId,
        commit_ts: Ts,
        mut writes: ShardWrites,
        chunks: &[(ShardId, u32)],
        redo: &mut dyn FnMut(Redo),
    ) -> Result<(), Fault> {
        for (shard, _) in chunks {
            if !writes.iter().any(|(other, _)| other == shard) {
                writes.push((*shard, Writes::new()));
            }
        }
        for (shard, writes) in writes {
            let count = chunks
                .iter()
                .find(|(other, _)| *other == shard)
                .map_or(0, |(_, n)| *n);
            let mut rest = self.chunks.remove(&(txn, shard)).unwrap_or_default();
            if !self.is_news(shard, end) || self.repeated.has(txn, shard, commit_ts) {
                continue;
            }
            let whole = (0..count).all(|seq| rest.contains_key(&seq));
            if judge(Evidence::OneRecord { whole }) != Verdict::Redo {
                return Err(Fault::MissingChunk { txn });
            }
            // One after the other, so that memory of chunks is freed while that of rows is taken.
            let chunks = (0..count).filter_map(|seq| rest.remove(&seq));
            let pieces = core::iter::once(writes).chain(chunks);
            for writes in pieces.filter(|writes| !writes.is_empty()) {
                let committed = Redo {
                    shard,
                    commit_ts,
                    any_order: txn.is_odd(),
                    writes,
                };
                self.order.redo(txn, committed, redo);
            }
        }
        Ok(())
    }

    fn evidence(&self, txn: TxnId, prepared: Option<&Prepared>, heard: Heard) -> Evidence {
        let coordinator = prepared.map_or(txn.shard, |prepared| prepared.coordinator);
        Evidence::Participant {
            prepared: prepared.is_some(),
            // A promise with missing chunks was refused when it was read.
            whole: true,
            heard,
            decided: self.decided.contains_key(&txn),
            coordinator_here: coordinator.node() == self.node,
            named: prepared.is_some_and(|prepared| !prepared.participants.is_empty()),
        }
    }

    fn on_resolved(
        &mut self,
        txn: TxnId,
        shard: ShardId,
        commit_ts: Option<Ts>,
        redo: &mut dyn FnMut(Redo),
    ) -> Result<(), Fault> {
        let prepared = self.prepared.remove(&(txn, shard));
        if let Some(prepared) = &prepared {
            self.order.end(prepared);
        }
        let freed = prepared
            .as_ref()
            .map(|prepared| self.order.rows_of(prepared));
        let heard = if commit_ts.is_some() {
            Heard::Commit
        } else {
            Heard::Abort
        };
        let verdict = judge(self.evidence(txn, prepared.as_ref(), heard));
        match (verdict, prepared, commit_ts) {
            (Verdict::Redo, Some(prepared), Some(commit_ts)) => {
                if self
                    .decided
                    .get(&txn)
                    .is_some_and(|decided| *decided != commit_ts)
                {
                    return Err(Fault::Contradiction { txn });
                }
                let committed = Redo {
                    shard,
                    commit_ts,
                    any_order: txn.is_odd(),
                    writes: prepared.writes,
                };
                self.order.redo(txn, committed, redo);
                self.order.release(shard, freed, redo);
                Ok(())
            }
            (Verdict::Nothing, Some(_), None) => {
                // A decision to commit that comes later contradicts the abort all the same.
                self.aborted.insert(txn);
                self.order.release(shard, freed, redo);
                Ok(())
            }
            (Verdict::Nothing, ..) => Ok(()),
            (Verdict::CorruptContradiction, ..) => Err(Fault::Contradiction { txn }),
            _ => Err(Fault::OutcomeWithoutPrepare { txn, shard }),
        }
    }

    /// Judges what the journal left open. Calls `redo` with promises that are thereby committed.
    pub fn finish(mut self, redo: &mut dyn FnMut(Redo)) -> Recovery {
        self.order.begin(redo);
        for ((txn, shard), prepared) in core::mem::take(&mut self.prepared) {
            let settled = |commit_ts| Record::Resolved {
                txn,
                shard,
                commit_ts,
            };
            match judge(self.evidence(txn, Some(&prepared), Heard::Nothing)) {
                Verdict::RedoDecided => {
                    let commit_ts = self.decided[&txn];
                    self.order.end(&prepared);
                    let freed = Some(self.order.rows_of(&prepared));
                    let committed = Redo {
                        shard,
                        commit_ts,
                        any_order: txn.is_odd(),
                        writes: prepared.writes,
                    };
                    self.order.redo(txn, committed, redo);
                    self.order.release(shard, freed, redo);
                    self.recovery.settled.push(settled(Some(commit_ts)));
                }
                Verdict::PresumeAbort => {
                    self.order.end(&prepared);
                    let freed = Some(self.order.rows_of(&prepared));
                    self.order.release(shard, freed, redo);
                    self.recovery.settled.push(settled(None));
                }
                Verdict::Hold => self.recovery.held.push(prepared),
                other @ (Verdict::Redo
                | Verdict::Nothing
                | Verdict::Tell
                | Verdict::CorruptOutcome
                | Verdict::CorruptChunks
                | Verdict::CorruptContradiction) => {
                    unreachable!("an open promise is never judged {other:?}")
                }
            }
        }
        for (txn, owed) in core::mem::take(&mut self.owed) {
            let ended = self.ended.contains(&txn) || is_planted(Planted::DecisionLost);
            if judge(Evidence::Coordinator {
                decided: true,
                ended,
            }) == Verdict::Tell
            {
                self.recovery.owed.push(owed);
            }
        }
        for ((shard, key), (otag, holding)) in core::mem::take(&mut self.held) {
            let ownership = self.ownership.entry(shard).or_default();
            ownership.held.push(Held { key, otag, holding });
        }
        for (shard, shipped) in core::mem::take(&mut self.shipped).into_values() {
            let ownership = self.ownership.entry(shard).or_default();
            ownership.shipped.push(shipped);
        }
        self.recovery.unfolded = core::mem::take(&mut self.order).into_late();
        self.recovery.ownership = core::mem::take(&mut self.ownership).into_iter().collect();
        self.recovery
    }
}

/// Replays all `records` and collects the committed writes in memory: for tests and simulation.
/// A server feeds a [`Replay`] segment by segment instead.
pub fn recover(
    start: ReplayStart,
    records: impl IntoIterator<Item = Entry>,
) -> Result<Recovery, Fault> {
    let mut replay = Replay::new(start);
    let mut all = Vec::new();
    for entry in records {
        replay.on_record(entry, &mut |redo| all.push(redo))?;
    }
    let mut recovery = replay.finish(&mut |redo| all.push(redo));
    recovery.redo = all;
    Ok(recovery)
}
