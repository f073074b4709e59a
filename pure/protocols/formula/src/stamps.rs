//! What transactions have read on one shard, and whose reads are guarded.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, Planted, Ts, TxnId, is_planted};
use two_phase::Rows;
use two_phase::control::{Control, Guard, Kind, RangeRead};
use txn::Columns;
use txn::increment::Folding;

/// Columns of one row that were read, as of a timestamp.
#[derive(Debug)]
struct RowNote {
    key: Key,
    columns: Columns,
    at: Ts,
}

/// Columns of the rows of a range.
#[derive(Debug)]
struct RangeNote {
    read: RangeRead,
    columns: Columns,
    at: Ts,
}

/// What one transaction has read here.
#[derive(Debug, Default)]
struct Notes {
    rows: Vec<RowNote>,
    ranges: Vec<RangeNote>,
    /// `None`: there is no vote yet.
    guard: Option<Guard>,
}

/// Row notes of all votes by key: who has read which columns.
type Guards = BTreeMap<Key, Vec<(TxnId, Columns)>>;

/// The timestamps of one shard. See the crate's documentation.
///
/// A guard ends with its transaction. By then the clock of the shard is past the commit, and every
/// later timestamp lies above the clock: so no read timestamp is kept for a row (ADR 0017).
#[derive(Debug, Default)]
pub struct Stamps {
    notes: BTreeMap<TxnId, Notes>,
    guards: Guards,
    /// Voters with range notes.
    ranged: Vec<TxnId>,
    /// Number of voters.
    voters: usize,
}

impl Stamps {
    fn of(&mut self, txn: TxnId) -> &mut Notes {
        self.notes.entry(txn).or_default()
    }

    /// Takes the guards of a transaction away.
    fn lift(&mut self, txn: TxnId, notes: &Notes) {
        if notes.guard.is_none() {
            return;
        }
        for note in &notes.rows {
            if let Some(row) = self.guards.get_mut(&note.key) {
                row.retain(|(other, ..)| *other != txn);
                if row.is_empty() {
                    self.guards.remove(&note.key);
                }
            }
        }
        self.ranged.retain(|other| *other != txn);
        self.voters -= 1;
    }
}

impl Control for Stamps {
    const JUDGES: bool = true;
    const FOLDING: Folding = Folding::InOrder;

    fn name(kind: Kind) -> &'static str {
        match kind {
            Kind::Read => "formula.read",
            Kind::Request => "formula.request",
            Kind::Prepare => "formula.prepare",
            Kind::Commit => "formula.commit",
            Kind::Reply => "formula.reply",
            Kind::Decide => "formula.decide",
            Kind::Ack => "formula.ack",
            Kind::Gather => "formula.gather",
            Kind::Poll => "formula.poll",
            Kind::Other => "formula.other",
        }
    }

    fn note_row(&mut self, txn: TxnId, key: &Key, columns: Columns, at: Ts) {
        let key = key.clone();
        self.of(txn).rows.push(RowNote { key, columns, at });
    }

    fn note_range(&mut self, txn: TxnId, read: RangeRead, columns: Columns, at: Ts) {
        self.of(txn).ranges.push(RangeNote { read, columns, at });
    }

    fn has_read(&self, txn: TxnId) -> bool {
        !self.notes.is_empty() && self.notes.contains_key(&txn)
    }

    fn judge(&self, txn: TxnId, rows: &Rows<'_>) -> Option<Key> {
        if is_planted(Planted::FormulaReadsNotJudged) {
            return None;
        }
        let notes = self.notes.get(&txn)?;
        let changed = |note: &&RowNote| rows.row_changed(&note.key, note.columns, note.at);
        if let Some(note) = notes.rows.iter().find(changed) {
            return Some(note.key.clone());
        }
        if is_planted(Planted::FormulaRangesNotJudged) {
            return None;
        }
        let mut ranges = notes.ranges.iter();
        ranges.find_map(|note| rows.range_changed(&note.read, note.columns, note.at))
    }

    fn guard(&mut self, guard: Guard) {
        let txn = guard.by.txn;
        let Some(mut notes) = self.notes.remove(&txn) else {
            return;
        };
        self.lift(txn, &notes);
        notes.guard = Some(guard);
        for note in &notes.rows {
            let guard = (txn, note.columns);
            match self.guards.get_mut(&note.key) {
                Some(row) => row.push(guard),
                None => drop(self.guards.insert(note.key.clone(), alloc::vec![guard])),
            }
        }
        if !notes.ranges.is_empty() {
            self.ranged.push(txn);
        }
        self.voters += 1;
        self.notes.insert(txn, notes);
    }

    fn each_guard(&self, txn: TxnId, key: &Key, columns: Columns, f: &mut dyn FnMut(Guard)) {
        if is_planted(Planted::FormulaGuardsIgnored) {
            return;
        }
        // Whoever reads no column has read that the row is there, or not.
        let meets = |read: Columns| columns == Columns::ALL || read.intersects(columns);
        let mut give = |other: &TxnId| {
            f(self.notes[other].guard.expect("it has voted"));
        };
        let row = self.guards.get(key).into_iter().flatten();
        let row = row.filter(|(other, read)| *other != txn && meets(*read));
        row.for_each(|(other, _)| give(other));
        for other in self.ranged.iter().filter(|other| **other != txn) {
            let mut ranges = self.notes[other].ranges.iter();
            if ranges.any(|note| note.read.has(key) && meets(note.columns)) {
                give(other);
            }
        }
    }

    fn each_voter(&self, txn: TxnId, f: &mut dyn FnMut(Guard)) {
        let guards = self.notes.values().filter_map(|notes| notes.guard);
        guards.filter(|guard| guard.by.txn != txn).for_each(f);
    }

    fn has_guards(&self) -> bool {
        self.voters > 0
    }

    fn forget(&mut self, txn: TxnId) -> bool {
        if self.notes.is_empty() {
            return false;
        }
        let Some(notes) = self.notes.remove(&txn) else {
            return false;
        };
        self.lift(txn, &notes);
        notes.guard.is_some()
    }

    fn forget_below(&mut self, txn: TxnId, at: Ts) {
        if let Some(notes) = self.notes.get_mut(&txn) {
            notes.rows.retain(|note| note.at >= at);
            notes.ranges.retain(|note| note.at >= at);
        }
    }

    fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }
}
