//! A book as a history of registers, which promises that no value is written twice.
//!
//! Counters are no unique values: an attempt that was rolled back has written the same version as
//! the one that came after it, and where an update was lost two have. So a version has one owner:
//!
//! * Of those that wrote it and may have committed there is one: it is the owner, and reads of the
//!   version are reads of what it wrote. What others wrote, who were rolled back, is left out.
//! * There are several. Each wrote a version of its own, and who reads one of them may have read
//!   any: such reads are left out. What remains is that all have overwritten the same version.
//! * All were rolled back: whoever reads the version has read one of those. Where somebody of whom
//!   the book does not know may have written it, too, the read is left out.
//!
//! The smallest version of an item that was read and never written is the one before the run, if no
//! smaller one was written. Other versions that nobody wrote are left out where the book has gaps,
//! and told where it has none.
//!
//! The last order of a customer is written without being read. Its versions are in the order of
//! D_NEXT_O_ID, so who writes one is given the one before it as read.

use crate::book::{Attempt, Book};
use crate::item::{Item, Kind};
use crate::sighting::Access;
use alloc::format;
use alloc::vec::Vec;
use check::{History, Op, Outcome, Txn};

/// Who wrote a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The only one that may have committed, by its number.
    One(u32, Outcome),
    /// Several may have committed.
    Several,
    /// All were rolled back; the first of them.
    RolledBack(u32),
}

/// A version that was written.
#[derive(Clone, Copy, Debug)]
struct Written {
    item: Item,
    version: u64,
    owner: Owner,
}

/// Values from here on are no versions.
const FRESH: u64 = 1 << 62;

struct Registers {
    /// By item and version.
    written: Vec<Written>,
    /// Versions before the run, by item.
    initial: Vec<(Item, u64)>,
    /// Versions that nobody wrote are left out.
    has_gaps: bool,
    /// The time from which on such may have been written.
    gaps_from: u64,
    fresh: u64,
}

/// The history of a book.
pub(crate) fn history(book: Book) -> History {
    let written = written(&book);
    let mut registers = Registers {
        initial: initial(&book, &written),
        written,
        has_gaps: book.has_gaps(),
        gaps_from: book.gaps_from(),
        fresh: FRESH,
    };
    let mut history = History::new();
    let mut before = Txn::begin(0, 0);
    before.ops = registers.initial.iter().map(write).collect();
    before.end(Outcome::Committed, 0);
    history.push(before);
    for (number, (attempt, seen)) in (0..).zip(book.attempts()) {
        let mut txn = Txn::begin(attempt.process, attempt.invoked);
        txn.ops = registers.ops(number, attempt, seen);
        match attempt.outcome {
            Outcome::Unknown => {}
            outcome => txn.end(outcome, attempt.completed),
        }
        history.push(txn);
    }
    history
}

fn write((item, version): &(Item, u64)) -> Op {
    Op::Write {
        key: item.key(),
        value: *version,
    }
}

/// All versions that were written, with their owners.
fn written(book: &Book) -> Vec<Written> {
    let mut all: Vec<(Item, u64, u32)> = Vec::new();
    let outcome = |number: u32| book.attempts[number as usize].0.outcome;
    for (number, (_, seen)) in (0..).zip(book.attempts()) {
        let writes = seen.iter().filter(|access| access.is_write());
        all.extend(writes.map(|access| (access.item(), access.version, number)));
    }
    all.sort_unstable();
    all.dedup();
    let same = |a: &(Item, u64, u32), b: &(Item, u64, u32)| (a.0, a.1) == (b.0, b.1);
    let groups = all.chunk_by(same).map(|group| {
        let (item, version, first) = group[0];
        let numbers = group.iter().map(|(_, _, number)| *number);
        let mut kept = numbers.filter(|number| outcome(*number) != Outcome::Aborted);
        let owner = match (kept.next(), kept.next()) {
            (Some(number), None) => Owner::One(number, outcome(number)),
            (Some(_), Some(_)) => Owner::Several,
            (None, _) => Owner::RolledBack(first),
        };
        Written {
            item,
            version,
            owner,
        }
    });
    groups.collect()
}

fn find(written: &[Written], item: Item, version: u64) -> Result<usize, usize> {
    written.binary_search_by_key(&(item, version), |it| (it.item, it.version))
}

/// The versions before the run.
fn initial(book: &Book, written: &[Written]) -> Vec<(Item, u64)> {
    let mut all: Vec<(Item, u64)> = Vec::new();
    for (attempt, seen) in book.attempts() {
        if attempt.outcome == Outcome::Aborted {
            continue;
        }
        let reads = seen.iter().filter(|access| !access.is_write());
        let reads = reads.map(|access| (access.item(), access.version));
        all.extend(reads.filter(|(item, version)| find(written, *item, *version).is_err()));
        // The same few items are read again and again.
        if all.len() > 1 << 20 {
            least(&mut all);
        }
    }
    least(&mut all);
    all.retain(|(item, version)| {
        let begin = written.partition_point(|it| it.item < *item);
        let of_item = written[begin..].iter();
        let mut smaller = of_item.take_while(|it| it.item == *item && it.version < *version);
        smaller.all(|it| matches!(it.owner, Owner::RolledBack(_)))
    });
    all
}

/// The smallest version of each item.
fn least(all: &mut Vec<(Item, u64)>) {
    all.sort_unstable();
    all.dedup_by_key(|(item, _)| *item);
}

impl Registers {
    /// What an attempt did, as operations on registers.
    fn ops(&mut self, number: u32, attempt: &Attempt, seen: &[Access]) -> Vec<Op> {
        let outcome = attempt.outcome;
        let knows_all = attempt.completed < self.gaps_from;
        let mut ops = Vec::with_capacity(seen.len());
        for (at, access) in seen.iter().enumerate() {
            match access.is_write() {
                false if outcome == Outcome::Aborted => {}
                false => ops.extend(self.read(*access, knows_all)),
                // Another statement of the same attempt gave the same version.
                true if seen[..at].contains(access) => {}
                true => self.write(number, outcome, *access, &mut ops),
            }
        }
        ops
    }

    fn before_run(&self, item: Item) -> Option<u64> {
        let place = self.initial.binary_search_by_key(&item, |(item, _)| *item);
        place.ok().map(|place| self.initial[place].1)
    }

    /// `knows_all`: it was read before there were versions of which the book does not know.
    fn read(&self, access: Access, knows_all: bool) -> Option<Op> {
        let (item, version) = (access.item(), access.version);
        let is_told = match find(&self.written, item, version) {
            Ok(place) => match self.written[place].owner {
                Owner::One(..) => true,
                Owner::Several => false,
                Owner::RolledBack(_) => knows_all,
            },
            Err(_) => self.before_run(item) == Some(version) || !self.has_gaps,
        };
        is_told.then_some(Op::Read {
            key: item.key(),
            value: Some(version),
        })
    }

    fn write(&mut self, number: u32, outcome: Outcome, access: Access, ops: &mut Vec<Op>) {
        let (item, version) = (access.item(), access.version);
        let place = find(&self.written, item, version).expect("it was written");
        let value = match self.written[place].owner {
            Owner::One(owner, _) | Owner::RolledBack(owner) if owner == number => version,
            _ if outcome == Outcome::Aborted => return,
            _ => {
                self.fresh += 1;
                self.fresh
            }
        };
        if value == version && item.kind() == Some(Kind::LastOrder) {
            ops.extend(self.order_before(place));
        }
        ops.push(Op::Write {
            key: item.key(),
            value,
        });
    }

    /// The last order of a customer before the one at `place`, as read.
    fn order_before(&self, place: usize) -> Option<Op> {
        let Written { item, version, .. } = self.written[place];
        let of_item = self.written[..place].iter().rev();
        let mut of_item = of_item.take_while(|it| it.item == item);
        let before = of_item.find(|it| !matches!(it.owner, Owner::RolledBack(_)));
        let value = match before.map(|it| (it.version, it.owner)) {
            Some((version, Owner::One(_, Outcome::Committed))) => Some(version),
            Some(_) => None,
            None => self.before_run(item).filter(|before| *before < version),
        };
        value.map(|value| Op::Read {
            key: item.key(),
            value: Some(value),
        })
    }
}

/// Gives all keys of a history of TPC-C's own the names of their rows.
pub fn name_keys(history: &mut History) {
    let txns = 0..history.txns.len();
    name_keys_of(history, txns);
}

/// The same for keys that these transactions have touched.
pub(crate) fn name_keys_of(history: &mut History, txns: impl Iterator<Item = usize>) {
    let History {
        txns: all,
        key_names,
        ..
    } = history;
    for op in txns.filter(|txn| *txn > 0).flat_map(|txn| &all[txn].ops) {
        if let Op::Read { key, .. } | Op::Write { key, .. } = op {
            key_names
                .entry(*key)
                .or_insert_with(|| format!(":{}", Item::from_key(*key).name()));
        }
    }
}

#[cfg(test)]
mod tests;
