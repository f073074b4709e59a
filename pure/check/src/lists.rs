//! What reads of append-only lists prove.
//!
//! A list that was read shows its whole past: the order of its elements is the order of its
//! versions. The longest state that a committed transaction saw is therefore the order of all
//! versions up to there, and every other read must be a beginning of it. An acknowledged append
//! that is in no read comes behind all that were read.

use crate::found::{Found, Name};
use crate::graph::{Dependency, GraphBuilder};
use crate::history::Outcome;
use crate::ledger::{Access, Appended, Ledger, Sight};
use crate::level::{Basis, Kind};
use crate::story;
use alloc::vec;
use alloc::vec::Vec;
use base::LookupMap;

/// The versions of one list.
struct Order {
    /// The committed writers of its elements, in order, with the place of the element.
    writers: Vec<(u32, u32)>,
    /// Committed appends that are in no read; empty if reads contradict each other.
    unseen: Vec<u32>,
    /// Stands for what comes behind the last version that was read.
    joint: Option<u32>,
    /// The transaction that read the last version and is itself one of `unseen`.
    tail_owner: Option<u32>,
    /// Reads contradict each other.
    broken: bool,
}

/// Adds what lists prove to the graph, and what they show directly to `found`.
pub(crate) fn judge(ledger: &Ledger<'_>, graph: &mut GraphBuilder, found: &mut Found) {
    Judge {
        ledger,
        graph,
        found,
        orders: Vec::new(),
        places: LookupMap::new(),
        first_readers: LookupMap::new(),
    }
    .run();
}

struct Judge<'a, 'h> {
    ledger: &'a Ledger<'h>,
    graph: &'a mut GraphBuilder,
    found: &'a mut Found,
    orders: Vec<Order>,
    /// Where a value is in the order of its list.
    places: LookupMap<(u32, u64), u32>,
    /// Who read a version (key and length) first and appended to the key too.
    first_readers: LookupMap<(u32, u32), u32>,
}

/// One read of a list by one transaction, cut to what is evidence.
#[derive(Clone, Copy)]
struct ListRead<'h> {
    txn: u32,
    key: u32,
    values: &'h [u64],
    range: bool,
}

impl<'h> Judge<'_, 'h> {
    fn run(mut self) {
        self.order_versions();
        self.find_unseen();
        self.link_writes();
        for txn in self.ledger.members() {
            self.judge_txn(txn);
        }
        self.find_lost();
    }

    /// Takes the longest read of each list as the order of its versions.
    fn order_versions(&mut self) {
        for key in 0..self.ledger.key_count() as u32 {
            let longest = self.ledger.lists[key as usize];
            let mut writers = Vec::new();
            for (place, value) in longest.values.iter().enumerate() {
                let place = place as u32;
                if self.places.insert((key, *value), place).is_some() {
                    self.duplicate(longest.reader, key, *value);
                }
                self.judge_element(longest.reader, key, *value);
                if let Some(written) = self.ledger.writer(key, *value)
                    && self.ledger.is_committed(written.txn)
                {
                    writers.push((place, written.txn));
                }
            }
            self.orders.push(Order {
                writers,
                unseen: Vec::new(),
                joint: None,
                tail_owner: None,
                broken: false,
            });
        }
    }

    fn duplicate(&mut self, reader: u32, key: u32, value: u64) {
        let ledger = self.ledger;
        let Some(written) = ledger.writer(key, value) else {
            return;
        };
        let name = Name::plain(Kind::Duplicate);
        self.found.note(name, &[written.txn, reader], || {
            story::element(
                ledger,
                reader,
                key,
                value,
                "is there more than once, and was appended only once",
            )
        });
    }

    /// Checks where one element that a committed transaction saw comes from.
    fn judge_element(&mut self, reader: u32, key: u32, value: u64) {
        let ledger = self.ledger;
        match ledger.writer(key, value) {
            None => {
                let name = Name::plain(Kind::Unwritten);
                self.found.note(name, &[reader], || {
                    story::element(ledger, reader, key, value, "was never written")
                });
            }
            Some(written) if ledger.outcome(written.txn) == Outcome::Aborted => {
                let name = Name::plain(Kind::G1a);
                self.found.note(name, &[written.txn, reader], || {
                    let why = "was written by a transaction that was rolled back";
                    story::element(ledger, reader, key, value, why)
                });
            }
            Some(_) => {}
        }
    }

    /// Finds the committed appends that no read saw, and the reads that contradict the order.
    fn find_unseen(&mut self) {
        let ledger = self.ledger;
        let mut appended = Appended::new();
        for txn in ledger.members() {
            appended.clear();
            ledger.each_access(txn, |access| match access {
                Access::Append { key, value } => {
                    appended.entry(key).or_default().push(value);
                    if !self.places.contains(&(key, value)) {
                        let unseen = &mut self.orders[key as usize].unseen;
                        if unseen.last() != Some(&txn) {
                            unseen.push(txn);
                        }
                    }
                }
                Access::ReadList { key, values, .. } => {
                    let own = appended.get(&key).map_or(&[][..], |own| own);
                    let values = &values[..Sight::of(values, own).evidence(values)];
                    if !ledger.lists[key as usize].values.starts_with(values) {
                        self.orders[key as usize].broken = true;
                    }
                }
                _ => {}
            });
        }
        for order in &mut self.orders {
            if order.broken {
                order.unseen.clear();
            }
        }
    }

    /// Edges from each writer of a list to the next, and from the last to appends that no read saw.
    fn link_writes(&mut self) {
        for (key, order) in self.orders.iter_mut().enumerate() {
            let key = key as u32;
            for pair in order.writers.windows(2) {
                self.graph.edge(pair[0].1, pair[1].1, Dependency::Ww, key);
            }
            if order.unseen.is_empty() {
                continue;
            }
            let joint = self.graph.joint();
            order.joint = Some(joint);
            for txn in &order.unseen {
                self.graph.glue(joint, *txn);
            }
            // A transaction with a seen and an unseen append would come before itself.
            if let Some((_, last)) = order.writers.last() {
                if order.unseen.contains(last) {
                    for txn in order.unseen.iter().filter(|txn| *txn != last) {
                        self.graph.edge(*last, *txn, Dependency::Ww, key);
                    }
                } else {
                    self.graph.edge(*last, joint, Dependency::Ww, key);
                }
            }
        }
    }

    fn judge_txn(&mut self, txn: u32) {
        let ledger = self.ledger;
        let mut all = Appended::new();
        let mut reads = 0;
        ledger.each_access(txn, |access| match access {
            Access::Append { key, value } => all.entry(key).or_default().push(value),
            Access::ReadList { .. } => reads += 1,
            _ => {}
        });
        if reads == 0 {
            return;
        }
        let mut before = Appended::new();
        let mut versions: Vec<(u32, u32)> = Vec::new();
        ledger.each_access(txn, |access| match access {
            Access::Append { key, value } => before.entry(key).or_default().push(value),
            Access::ReadList { key, values, range } => {
                let own = before.get(&key).map_or(&[][..], |own| own);
                let sight = Sight::of(values, own);
                let read = ListRead {
                    txn,
                    key,
                    values: &values[..sight.evidence(values)],
                    range,
                };
                let own_all = all.get(&key).map_or(&[][..], |own| own);
                self.judge_own(&read, sight.own_seen, &own_all[own.len()..]);
                self.judge_read(&read);
                let version = (key, sight.others as u32);
                if !own_all.is_empty() && !versions.iter().any(|(other, _)| *other == key) {
                    self.judge_update(txn, version);
                }
                if !own_all.is_empty() {
                    versions.push(version);
                }
            }
            _ => {}
        });
    }

    /// Checks a read against what its own transaction did before and afterwards.
    fn judge_own(&mut self, read: &ListRead<'h>, own_seen: bool, later: &[u64]) {
        let ledger = self.ledger;
        let name = Name::plain(Kind::Internal);
        if !own_seen {
            self.found.note(name, &[read.txn], || {
                let why = "did not hold what the transaction had appended before, as it did";
                story::own_read(ledger, read.txn, read.key, why)
            });
        }
        if later.iter().any(|value| read.values.contains(value)) {
            self.found.note(name, &[read.txn], || {
                let why = "held what the transaction appended only later";
                story::own_read(ledger, read.txn, read.key, why)
            });
        }
    }

    /// Edges of one read: from whom it read, and who overwrote what it read.
    fn judge_read(&mut self, read: &ListRead<'h>) {
        let ledger = self.ledger;
        let (txn, key) = (read.txn, read.key);
        let longest = ledger.lists[key as usize];
        if let Some(last) = read.values.last() {
            self.judge_last(read, *last);
        }
        if !longest.values.starts_with(read.values) {
            for value in read.values {
                self.judge_element(txn, key, *value);
            }
            let name = Name::plain(Kind::IncompatibleOrder);
            self.found.note(name, &[longest.reader, txn], || {
                story::incompatible(ledger, key, longest, txn, read.values)
            });
            return;
        }
        let order = &self.orders[key as usize];
        let length = read.values.len() as u32;
        let split = order.writers.partition_point(|(place, _)| *place < length);
        let (seen, ahead) = order.writers.split_at(split);
        if let Some((_, writer)) = seen.last() {
            self.graph.edge(*writer, txn, Dependency::Wr, key);
        }
        let rw = match read.range {
            true => Dependency::RwRange,
            false => Dependency::Rw,
        };
        if let Some((_, writer)) = ahead.first() {
            self.graph.edge(txn, *writer, rw, key);
            return;
        }
        let Some(joint) = order.joint else {
            return;
        };
        if !order.unseen.contains_sorted(txn) {
            self.graph.edge(txn, joint, rw, key);
        } else if order.tail_owner.is_none_or(|owner| owner == txn) {
            // It read the last version and appended to it: it comes before all others that did. A
            // second one of this kind has lost an update and is told directly.
            for other in &order.unseen {
                self.graph.edge(txn, *other, rw, key);
            }
            self.orders[key as usize].tail_owner = Some(txn);
        }
    }

    /// The last element of a read must be the last that its writer appended.
    fn judge_last(&mut self, read: &ListRead<'h>, value: u64) {
        let ledger = self.ledger;
        let Some(written) = ledger.writer(read.key, value) else {
            return;
        };
        if written.txn == read.txn || written.last {
            return;
        }
        let name = Name::plain(Kind::G1b);
        self.found.note(name, &[written.txn, read.txn], || {
            let why = "is not the last that its transaction appended";
            story::element(ledger, read.txn, read.key, value, why)
        });
    }

    /// Two transactions that read the same version and both appended have lost an update.
    fn judge_update(&mut self, txn: u32, version: (u32, u32)) {
        let ledger = self.ledger;
        if self.orders[version.0 as usize].broken {
            return;
        }
        let first = *self.first_readers.get_or_insert_with(version, || txn);
        if first != txn {
            let name = Name::plain(Kind::LostUpdate);
            self.found.note(name, &[first, txn], || {
                story::lost_update(ledger, first, txn, version.0)
            });
        }
    }

    /// Acknowledged appends that no read holds, although one began afterwards.
    fn find_lost(&mut self) {
        let ledger = self.ledger;
        let mut last_reader: Vec<Option<u32>> = vec![None; ledger.key_count()];
        let begun = |txn: u32| ledger.history.txns[txn as usize].invoked;
        for txn in ledger.members() {
            ledger.each_access(txn, |access| {
                if let Access::ReadList { key, .. } = access {
                    let last = &mut last_reader[key as usize];
                    if last.is_none_or(|last| begun(last) < begun(txn)) {
                        *last = Some(txn);
                    }
                }
            });
        }
        for (key, order) in self.orders.iter().enumerate() {
            let Some(reader) = last_reader[key] else {
                continue;
            };
            for txn in &order.unseen {
                if ledger
                    .committed_by(*txn)
                    .is_some_and(|at| at < begun(reader))
                {
                    let name = Name {
                        basis: Basis::RealTime,
                        ..Name::plain(Kind::LostAppend)
                    };
                    self.found.note(name, &[*txn, reader], || {
                        story::lost_append(ledger, *txn, reader, key as u32)
                    });
                }
            }
        }
    }
}

/// Membership in the list of unseen appenders, which is ascending by construction.
trait ContainsSorted {
    fn contains_sorted(&self, txn: u32) -> bool;
}

impl ContainsSorted for Vec<u32> {
    fn contains_sorted(&self, txn: u32) -> bool {
        self.binary_search(&txn).is_ok()
    }
}
