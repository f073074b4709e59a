//! Operations on single rows, for a transaction that holds their locks or whose protocol has none.

use crate::load::Group;
use crate::seen::{Seen, see};
use crate::write_set::WriteSet;
use crate::written::Written;
use alloc::vec::Vec;
use base::{Key, Position, RowBatch, SqlError, Ts, TxnId};
use store::{Formula, Store, Write};
use txn::{Cx, Installed, Modified, OpError, OpResult, RowProgram};

/// The rows of this shard, for one transaction.
#[derive(Debug)]
pub struct Access<'a> {
    /// The transaction.
    pub txn: TxnId,
    /// Catalog version for which the operation was planned.
    pub planned: u64,
    /// Writes of the transaction on this shard; `None`: none, and the transaction only reads.
    pub written: Option<&'a mut Written>,
    /// Versions that are not durable.
    pub installed: &'a Installed,
    /// Bytes of keys and rows that the transaction may write here.
    pub bytes_max: usize,
    /// Largest position that an answer waits for; grows with each read.
    pub wait: &'a mut Position,
}

impl Access<'_> {
    /// Its writes.
    #[inline]
    pub fn writes(&self) -> Option<&WriteSet> {
        self.written.as_deref().map(Written::writes)
    }

    /// The row at `at`, as the transaction sees it.
    #[inline]
    pub fn see<'s>(
        &'s mut self,
        store: &'s Store,
        key: &Key,
        at: Ts,
        folded: &'s mut Vec<u8>,
    ) -> Seen<'s> {
        let writes = self.written.as_deref().map(Written::writes);
        let seen = see(writes, store, self.installed, key, at, folded);
        *self.wait = (*self.wait).max(seen.wait);
        seen
    }

    /// Gives the row at `at` to the program. Returns whether the row passed, and its version. The
    /// caller notes the read ([`Access::note_read`]).
    ///
    /// # Errors
    /// As [`RowProgram::point`].
    #[inline]
    pub fn point(
        &mut self,
        store: &Store,
        key: &Key,
        at: Ts,
        program: &dyn RowProgram,
        batch: &mut RowBatch,
    ) -> Result<(bool, Ts), SqlError> {
        let mut folded = Vec::new();
        let seen = self.see(store, key, at, &mut folded);
        let passed = match seen.row {
            Some(row) => program.point(row, batch)?,
            None => false,
        };
        Ok((passed, seen.version))
    }

    /// Counts the read of a row, and adds it to the history.
    #[inline]
    pub fn note_read<M>(&self, cx: &mut Cx<'_, M>, key: &Key, version: Ts) {
        cx.counters.rows_read += 1;
        cx.note_read(self.txn, key, version);
    }

    /// `Op::Get` of the row at `at`.
    ///
    /// # Errors
    /// As [`RowProgram::point`].
    #[inline]
    pub fn get<M>(
        &mut self,
        cx: &mut Cx<'_, M>,
        key: &Key,
        at: Ts,
        program: &dyn RowProgram,
    ) -> Result<OpResult, OpError> {
        let mut batch = RowBatch::new(program.width());
        let (_, version) = self
            .point(cx.store, key, at, program, &mut batch)
            .map_err(OpError::Sql)?;
        self.note_read(cx, key, version);
        Ok(OpResult::Rows {
            batch,
            resume: None,
        })
    }

    /// `Op::Modify` of the newest version.
    ///
    /// # Errors
    /// As [`RowProgram::modify`] and [`Access::write`].
    #[inline]
    pub fn modify<M>(
        &mut self,
        cx: &mut Cx<'_, M>,
        key: &Key,
        program: &dyn RowProgram,
    ) -> Result<OpResult, OpError> {
        let mut returning = RowBatch::new(program.width());
        let mut folded = Vec::new();
        let own = self.own_formula(key).cloned();
        let seen = self.see(cx.store, key, Ts::MAX, &mut folded);
        let version = seen.version;
        let mut modified = seen.row.map(|row| program.modify(row, &mut returning));
        if let Some(Ok(Modified::Formula(formula))) = &modified
            && formula.is_guarded()
            && base::is_planted(base::Planted::GuardBehindChange)
        {
            let mut changed = Vec::new();
            let row = seen.row.expect("a row was changed");
            formula.fold(row, &mut changed).map_err(OpError::Sql)?;
            modified = Some(program.modify(&changed, &mut RowBatch::new(program.width())));
        }
        if let (Some(row), Some(Ok(Modified::Formula(formula)))) = (seen.row, &modified)
            && outgrow(own.as_ref(), formula)
        {
            modified = Some(folded_onto(row, formula).map(Modified::Put));
        }
        // What the guards of a formula have found holds whichever version it comes upon.
        let holds = matches!(&modified, Some(Ok(Modified::Formula(formula)))
            if formula.is_guarded() && formula.commutes());
        if !holds {
            self.note_read(cx, key, version);
        }
        let Some(modified) = modified else {
            return Ok(OpResult::Modified {
                found: false,
                written: false,
                returning,
            });
        };
        let write = match modified.map_err(OpError::Sql)? {
            Modified::Skipped => None,
            Modified::Put(row) => Some(Write::Put(row)),
            Modified::Formula(formula) => Some(Write::Formula(formula)),
            Modified::Delete => Some(Write::Delete),
        };
        let written = write.is_some();
        if let Some(write) = write {
            self.write(cx, key.clone(), write, false)?;
        }
        Ok(OpResult::Modified {
            found: true,
            written,
            returning,
        })
    }

    /// `Op::Formula`.
    ///
    /// # Errors
    /// As [`Formula::fold`] and [`Access::write`].
    #[inline]
    pub fn formula<M>(
        &mut self,
        cx: &mut Cx<'_, M>,
        key: &Key,
        formula: &Formula,
    ) -> Result<OpResult, OpError> {
        let mut folded = Vec::new();
        let seen = self.see(cx.store, key, Ts::MAX, &mut folded);
        let (found, version) = (seen.row.is_some(), seen.version);
        if let Some(row) = seen.row {
            // The result must be in the type's range before the statement is answered.
            let result = folded_onto(row, formula).map_err(OpError::Sql)?;
            let write = match self.outgrows(key, formula) {
                true => {
                    self.note_read(cx, key, version);
                    Write::Put(result)
                }
                false => Write::Formula(formula.clone()),
            };
            self.write(cx, key.clone(), write, false)?;
        }
        Ok(OpResult::Modified {
            found,
            written: found,
            returning: RowBatch::new(0),
        })
    }

    /// Whether the transaction had better keep the row itself than `formula` beside what it has
    /// done to the row ([`Formula::outgrows`]).
    #[must_use]
    pub fn outgrows(&self, key: &Key, formula: &Formula) -> bool {
        outgrow(self.own_formula(key), formula)
    }

    fn own_formula(&self, key: &Key) -> Option<&Formula> {
        self.written.as_deref()?.get(key)?.formula()
    }

    /// `Op::Insert` of the row that `row` gives, if the key has none. `key` is given away then.
    /// `first`: the transaction has no write of this key yet.
    ///
    /// # Errors
    /// As [`Access::write`].
    #[inline]
    pub fn insert<M>(
        &mut self,
        cx: &mut Cx<'_, M>,
        key: &mut Key,
        row: impl FnOnce() -> Vec<u8>,
        first: bool,
    ) -> Result<OpResult, OpError> {
        let mut folded = Vec::new();
        let writes = self.writes().filter(|_| !first);
        let seen = see(writes, cx.store, self.installed, key, Ts::MAX, &mut folded);
        let (present, version, wait) = (seen.row.is_some(), seen.version, seen.wait);
        *self.wait = (*self.wait).max(wait);
        cx.note_read(self.txn, key, version);
        if present {
            return Ok(OpResult::Exists);
        }
        let bytes = core::mem::take(&mut key.bytes);
        let key = Key::new(key.index, key.slot, bytes);
        self.write(cx, key, Write::Insert(row()), first)?;
        Ok(OpResult::Done)
    }

    /// Adds a write. `first`: the transaction has no write of this key yet.
    ///
    /// # Errors
    /// [`txn::AbortReason::DiskFull`] and [`txn::AbortReason::MemoryFull`]; 53200 as
    /// [`Written::add`].
    #[inline]
    pub fn write<M>(
        &mut self,
        cx: &mut Cx<'_, M>,
        key: Key,
        write: Write,
        first: bool,
    ) -> Result<(), OpError> {
        if let Some(reason) = cx.journal.refusal(cx.shard, &write) {
            return Err(OpError::Aborted(reason));
        }
        cx.note_write(self.txn, &key);
        let written = self.written.as_deref_mut();
        let written = written.expect("a transaction that writes has a place for it");
        written.note_plan(key.index, self.planned);
        written
            .add(cx.store, key, write, first, self.bytes_max)
            .map_err(OpError::Sql)
    }

    /// Inserts new rows, ascending, none of which exists or was written before.
    ///
    /// # Errors
    /// 53200 as [`Written::add`].
    pub fn write_rows<M>(&mut self, cx: &mut Cx<'_, M>, group: &Group<'_>) -> Result<(), OpError> {
        let Group { index, slot, rows } = group;
        let written = self.written.as_deref_mut();
        let written = written.expect("a transaction that writes has a place for it");
        written.note_plan(*index, self.planned);
        written
            .add_rows(*index, *slot, rows, self.bytes_max)
            .map_err(OpError::Sql)?;
        // The rows may be absent because of deletions that are not durable.
        *self.wait = (*self.wait).max(self.installed.all());
        if cx.history.is_some() {
            for row in rows {
                let key = Key::new(*index, *slot, row.key.to_vec());
                cx.note_read(self.txn, &key, Ts::ZERO);
                cx.note_write(self.txn, &key);
            }
        }
        Ok(())
    }
}

/// Whether an own formula and a later one are better kept as a row.
fn outgrow(own: Option<&Formula>, later: &Formula) -> bool {
    own.is_some_and(|own| own.clone().then(later.clone()).outgrows(later))
}

/// The row with the changes of a formula.
fn folded_onto(row: &[u8], formula: &Formula) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(row.len());
    formula.fold(row, &mut out)?;
    Ok(out)
}
