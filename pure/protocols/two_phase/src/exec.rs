//! Operations on single rows.

use crate::job::{Asker, Job, Stop};
use crate::part::{Part, Promise};
use crate::snapshot::{Kept, arrive, raise};
use crate::{Context, Settings, TwoPhase};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, Planted, Position, RowBatch, Ts, TxnId, is_planted};
use store::{Formula, Store, Write};
use txn::Installed;
use txn::bulk::Wanted;
use txn::increment::{Escrow, adds_only, claim_to_modify, claim_to_read};
use txn::lock::Item;
use txn::step::note_read;
use txn::{Bulks, LockMode, LockTable, Modified, Op, OpResult, Program, Read, Snapshot};

/// What an operation works with besides the context.
pub(crate) struct Hands<'a> {
    pub(crate) locks: &'a mut LockTable,
    /// The transaction's own state here, unless the operation needs none.
    pub(crate) part: Option<&'a mut Part>,
    /// What others have pending on the row of a formula.
    pub(crate) escrow: Option<Escrow>,
    pub(crate) promises: &'a BTreeMap<TxnId, Promise>,
    pub(crate) kept: &'a Kept,
    pub(crate) bulks: &'a Bulks,
    /// False only where a test plants the fault.
    pub(crate) seals: bool,
    pub(crate) installed: &'a Installed,
    pub(crate) settings: Settings,
}

/// A row as the transaction sees it.
pub(crate) struct Seen<'a> {
    pub(crate) row: Option<&'a [u8]>,
    pub(crate) ts: Ts,
    own: bool,
    /// The committed version that it rests on; zero if on none.
    base: Ts,
}

/// The version at `at`, under the transaction's own write.
pub(crate) fn see<'a>(
    part: Option<&'a Part>,
    store: &'a Store,
    key: &Key,
    at: Ts,
    folded: &'a mut Vec<u8>,
) -> Seen<'a> {
    let own = part
        .filter(|part| !part.writes.is_empty())
        .and_then(|part| part.writes.get(key));
    if let Some(write) = own {
        return own_row(write, store, key, at, folded);
    }
    match store.get(key, at) {
        Some(version) => Seen {
            row: Some(version.value),
            ts: version.commit_ts,
            own: false,
            base: version.commit_ts,
        },
        None => Seen {
            row: None,
            ts: Ts::ZERO,
            own: false,
            base: Ts::ZERO,
        },
    }
}

/// What an own write makes of its row. A formula is applied to the version at `at`, because others
/// may have committed theirs since; to the newest one if that snapshot is older than the formula.
pub(crate) fn own_row<'a>(
    write: &'a Write,
    store: &Store,
    key: &Key,
    at: Ts,
    folded: &'a mut Vec<u8>,
) -> Seen<'a> {
    let (row, base) = match write {
        Write::Insert(row) | Write::Put(row) => (Some(row.as_slice()), Ts::ZERO),
        Write::Delete => (None, Ts::ZERO),
        Write::Formula(formula) => {
            let of = |at| store.get(key, at);
            let mut fold = |value: &[u8]| {
                folded.clear();
                formula.fold(value, folded)
            };
            let base = match of(at) {
                Some(base) if fold(base.value).is_ok() => base.commit_ts,
                Some(_) | None => {
                    let newest = of(Ts::MAX).expect("a locked row with a formula is present");
                    fold(newest.value).expect("increments have their escrow, others their row");
                    newest.commit_ts
                }
            };
            (Some(folded.as_slice()), base)
        }
    };
    Seen {
        row,
        ts: Ts::ZERO,
        own: true,
        base,
    }
}

impl Seen<'_> {
    pub(crate) fn position(&self, installed: &Installed) -> Position {
        match (self.own, self.row) {
            (true, _) | (false, Some(_)) => installed.of(self.base),
            (false, None) => installed.all(),
        }
    }
}

impl TwoPhase {
    /// Runs a job's writes and operation as far as they go.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>, job: &mut Job) -> Result<OpResult, Stop> {
        let escrow = match &job.op {
            Some(Op::Formula { key, formula }) if adds_only(formula) => self.escrow(job.txn, key),
            _ => None,
        };
        let seals = self.seals();
        let mut hands = Hands {
            locks: &mut self.locks,
            part: self.parts.get_mut(&job.txn).map(|part| &mut **part),
            escrow,
            seals,
            promises: &self.promises,
            kept: &self.kept,
            bulks: &self.bulks,
            installed: &self.installed,
            settings: self.settings,
        };
        let found = hands.run(cx, job)?;
        if job.freezes()
            && found.allows_finish()
            && let Err(stop) = self.freeze(cx, job)
        {
            job.found = Some(found);
            return Err(stop);
        }
        Ok(found)
    }
}

impl Hands<'_> {
    pub(crate) fn run(&mut self, cx: &mut Context<'_>, job: &mut Job) -> Result<OpResult, Stop> {
        let asker = job.asker(cx.now);
        if job.options.serial && !job.stateless {
            asker.ask(self.locks, Item::Shard, LockMode::Exclusive)?;
        }
        let mut spent = 0;
        while let Some((key, _)) = job.writes.as_slice().first() {
            if spent >= self.settings.slice_units {
                return Err(Stop::Budget);
            }
            spent += 1;
            cx.check_schema(key.index, job.planned)?;
            asker.ask(self.locks, Item::of(key), LockMode::Exclusive)?;
            let (key, write) = job.writes.next().expect("just looked at");
            self.add(cx, job, key, write, false)?;
        }
        let found = match job.found.take() {
            Some(found) => found,
            None => self.run_taken(cx, job, &asker)?,
        };
        if job.commits()
            && found.allows_finish()
            && self.seals
            && let Err(stop) = self.seal(cx, job, &asker)
        {
            job.found = Some(found);
            return Err(stop);
        }
        Ok(found)
    }

    /// Takes the operation out, so that the job can be changed while it is read; puts it back if it
    /// has to wait.
    fn run_taken(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
    ) -> Result<OpResult, Stop> {
        let Some(mut op) = job.op.take() else {
            return Ok(OpResult::Done);
        };
        let result = self.run_op(cx, job, asker, &mut op);
        if matches!(result, Err(Stop::Lock | Stop::Promise | Stop::Budget)) {
            job.op = Some(op);
        }
        result
    }

    fn run_op(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        op: &mut Op,
    ) -> Result<OpResult, Stop> {
        if let Some(index) = op.index() {
            cx.check_schema(index, job.planned)?;
        }
        match op {
            Op::Clock(snapshot) => Ok(OpResult::Clock(arrive(cx, job, *snapshot))),
            Op::Get { key, read, program } => self.get(cx, job, asker, key, *read, program),
            Op::Modify { key, program } => self.modify(cx, job, asker, key, program),
            Op::Insert { key, row } => {
                self.insert_one(cx, job, asker, key, || core::mem::take(row).into_vec())
            }
            Op::InsertMany(rows) => self.insert_many(cx, job, asker, rows),
            Op::Formula { key, formula } => {
                let claim = self.formula_claim(cx, key, formula);
                asker.ask(self.locks, Item::of(key), claim)?;
                self.formula(cx, job, key, formula)
            }
            Op::Write { key, write } => {
                asker.ask(self.locks, Item::of(key), LockMode::Exclusive)?;
                self.add(cx, job, key.clone(), write.clone(), false)?;
                Ok(OpResult::Done)
            }
            Op::Scan(scan) => self.scan(cx, job, asker, scan),
        }
    }

    /// The timestamp at which a row is read: the snapshot's, unless that misses a version and may
    /// be moved to it.
    fn snapshot_of_row(
        &self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        snapshot: Snapshot,
    ) -> Result<Ts, Stop> {
        let bound = self.settle(cx, job, snapshot, Wanted::Row(key))?;
        if bound <= snapshot.at || is_planted(Planted::SnapshotNotRaised) {
            return Ok(snapshot.at);
        }
        let newer = cx.store.newer(key, snapshot.at, bound);
        match newer {
            None => Ok(snapshot.at),
            // Whoever promises to write the row now promises above its newest version.
            Some(newer) if snapshot.sole => Ok(newer),
            Some(_) => Err(raise(cx, bound)),
        }
    }

    fn get(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        key: &Key,
        read: Read,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        let program = program.live(cx.decode).map_err(base::SqlError::from)?;
        let mut batch = RowBatch::new(program.width());
        let mut folded = Vec::new();
        let at = match read {
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => {
                self.snapshot_of_row(cx, job, key, snapshot)?
            }
            Read::Lock(mode) => {
                cx.check_memory(1)?;
                asker.ask(self.locks, Item::of(key), claim_to_read(mode, &*program))?;
                if is_planted(Planted::SharedLockDropped)
                    && !self
                        .locks
                        .holds(job.txn, &Item::of(key), LockMode::Exclusive)
                {
                    self.locks.release_item(job.txn, &Item::of(key));
                }
                Ts::MAX
            }
        };
        let seen = see(self.part.as_deref(), cx.store, key, at, &mut folded);
        job.wait = job.wait.max(seen.position(self.installed));
        let mut version = seen.ts;
        let passed = match seen.row {
            Some(row) => program.point(row, &mut batch)?,
            None => false,
        };
        if let (Read::LockRows { mode, .. }, true) = (read, passed) {
            asker.ask(self.locks, Item::of(key), mode)?;
            batch = RowBatch::new(program.width());
            let seen = see(self.part.as_deref(), cx.store, key, Ts::MAX, &mut folded);
            job.wait = job.wait.max(seen.position(self.installed));
            version = seen.ts;
            if let Some(row) = seen.row {
                program.point(row, &mut batch)?;
            }
        }
        cx.counters.rows_read += 1;
        cx.note_read(job.txn, key, version);
        Ok(OpResult::Rows {
            batch,
            resume: None,
        })
    }

    fn modify(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        key: &Key,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        let program = program.live(cx.decode).map_err(base::SqlError::from)?;
        asker.ask(self.locks, Item::of(key), claim_to_modify(&*program))?;
        let mut returning = RowBatch::new(program.width());
        let mut folded = Vec::new();
        let seen = see(self.part.as_deref(), cx.store, key, Ts::MAX, &mut folded);
        job.wait = job.wait.max(seen.position(self.installed));
        note_read(&mut cx.history, job.txn, key, seen.ts);
        cx.counters.rows_read += 1;
        let Some(row) = seen.row else {
            return Ok(OpResult::Modified {
                found: false,
                written: false,
                returning,
            });
        };
        let write = match program.modify(row, &mut returning)? {
            Modified::Skipped => None,
            Modified::Put(row) => Some(match program.formula() {
                Some(formula) => Write::Formula(formula.clone()),
                None => Write::Put(row),
            }),
            Modified::Delete => Some(Write::Delete),
        };
        let written = write.is_some();
        if let Some(write) = write {
            self.add(cx, job, key.clone(), write, false)?;
        }
        Ok(OpResult::Modified {
            found: true,
            written,
            returning,
        })
    }

    fn formula(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        formula: &Formula,
    ) -> Result<OpResult, Stop> {
        let (mut folded, mut result) = (Vec::new(), Vec::new());
        let returning = RowBatch::new(0);
        let seen = see(self.part.as_deref(), cx.store, key, Ts::MAX, &mut folded);
        job.wait = job.wait.max(seen.position(self.installed));
        let Some(row) = seen.row else {
            return Ok(OpResult::Modified {
                found: false,
                written: false,
                returning,
            });
        };
        // The result is not kept, but it must lie inside the type before the statement is answered.
        formula.fold(row, &mut result)?;
        self.add(cx, job, key.clone(), Write::Formula(formula.clone()), false)?;
        Ok(OpResult::Modified {
            found: true,
            written: true,
            returning,
        })
    }

    /// `first`: the key has no write of this transaction yet.
    pub(crate) fn add(
        &mut self,
        cx: &mut Context<'_>,
        job: &Job,
        key: Key,
        write: Write,
        first: bool,
    ) -> Result<(), Stop> {
        if let Some(reason) = cx.journal.refusal(cx.shard, &write) {
            return Err(Stop::aborted(reason));
        }
        cx.note_write(job.txn, &key);
        let part = self
            .part
            .as_deref_mut()
            .expect("a transaction that writes has a part");
        part.note_plan(key.index, job.planned);
        part.add(cx.store, key, write, first, self.settings.txn_bytes_max)?;
        Ok(())
    }
}
