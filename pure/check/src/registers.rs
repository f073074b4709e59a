//! What reads of registers prove.
//!
//! A register shows only its last write, so the order of its versions is known in part. Certain is:
//!
//! * the initial state comes before every write, if no transaction deletes the register;
//! * a transaction that reads a version and writes the register comes behind that version, and no
//!   other transaction may have read the same version and written too;
//! * where real time or the order of a session is to be kept: the order that they give to writes.
//!
//! Everything else is left open, so what is reported did happen.

use crate::found::{Found, Name};
use crate::graph::{Dependency, GraphBuilder};
use crate::history::Outcome;
use crate::ledger::{Access, Ledger};
use crate::level::{Basis, Kind};
use crate::story;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use base::LookupMap;
use core::ops::Range;

/// Edges around a transaction that reads and writes one key are drawn one by one up to here.
const DIRECT_MAX: usize = 16;

/// Adds what registers prove to the graph, and what they show directly to `found`.
pub(crate) fn judge(ledger: &Ledger<'_>, graph: &mut GraphBuilder, found: &mut Found) {
    let mut judge = Judge {
        ledger,
        graph,
        found,
        writers: vec![Vec::new(); ledger.key_count()],
        sightings: Vec::new(),
        overwriters: LookupMap::new(),
    };
    for txn in ledger.members() {
        judge.note_txn(txn);
    }
    judge.link_overwriters();
    judge.link_initial();
    judge.link_sessions();
    judge.link_real_time();
}

/// A transaction saw a version that it had not written itself.
#[derive(Clone, Copy)]
struct Sighting {
    txn: u32,
    key: u32,
    value: Option<u64>,
    range: bool,
}

impl Sighting {
    fn rw(&self) -> Dependency {
        match self.range {
            true => Dependency::RwRange,
            false => Dependency::Rw,
        }
    }
}

struct Judge<'a, 'h> {
    ledger: &'a Ledger<'h>,
    graph: &'a mut GraphBuilder,
    found: &'a mut Found,
    /// The committed writers of each register, ascending, each once.
    writers: Vec<Vec<u32>>,
    sightings: Vec<Sighting>,
    /// Who read a version first and wrote its key too.
    overwriters: LookupMap<(u32, Option<u64>), u32>,
}

impl Judge<'_, '_> {
    /// Checks the reads of one transaction and takes down what it saw and wrote.
    fn note_txn(&mut self, txn: u32) {
        let ledger = self.ledger;
        let mut own: BTreeMap<u32, Option<u64>> = BTreeMap::new();
        let mut seen: BTreeMap<u32, Sighting> = BTreeMap::new();
        let begin = self.sightings.len();
        ledger.each_access(txn, |access| match access {
            Access::Write { key, value } => {
                own.insert(key, value);
                let register = &mut self.writers[key as usize];
                if register.last() != Some(&txn) {
                    register.push(txn);
                }
            }
            Access::Read { key, value, range } => {
                if let Some(written) = own.get(&key) {
                    self.judge_own(txn, key, *written == value);
                    return;
                }
                let sighting = Sighting {
                    txn,
                    key,
                    value,
                    range,
                };
                if self.judge_source(&sighting) {
                    self.judge_repeat(seen.entry(key).or_insert(sighting), &sighting);
                    self.sightings.push(sighting);
                }
            }
            _ => {}
        });
        for place in begin..self.sightings.len() {
            let sighting = self.sightings[place];
            if own.contains_key(&sighting.key) {
                self.note_overwrite(&sighting);
            }
        }
    }

    fn judge_own(&mut self, txn: u32, key: u32, same: bool) {
        let ledger = self.ledger;
        let name = Name::plain(Kind::Internal);
        if !same {
            self.found.note(name, &[txn], || {
                let why = "did not show what the transaction had written before";
                story::own_read(ledger, txn, key, why)
            });
        }
    }

    /// Checks where a value comes from and draws its edge. Whether the read can be used further.
    fn judge_source(&mut self, sighting: &Sighting) -> bool {
        let ledger = self.ledger;
        let Sighting { txn, key, .. } = *sighting;
        let Some(value) = sighting.value else {
            return true;
        };
        let Some(written) = ledger.writer(key, value) else {
            let name = Name::plain(Kind::Unwritten);
            self.found.note(name, &[txn], || {
                story::element(ledger, txn, key, value, "was never written")
            });
            return false;
        };
        if written.txn == txn {
            let name = Name::plain(Kind::Internal);
            self.found.note(name, &[txn], || {
                let why = "showed what the transaction wrote only later";
                story::own_read(ledger, txn, key, why)
            });
            return false;
        }
        if ledger.outcome(written.txn) == Outcome::Aborted {
            let name = Name::plain(Kind::G1a);
            self.found.note(name, &[written.txn, txn], || {
                let why = "was written by a transaction that was rolled back";
                story::element(ledger, txn, key, value, why)
            });
            return false;
        }
        if !written.last {
            let name = Name::plain(Kind::G1b);
            self.found.note(name, &[written.txn, txn], || {
                let why = "is not the last that its transaction wrote";
                story::element(ledger, txn, key, value, why)
            });
        }
        self.graph.edge(written.txn, txn, Dependency::Wr, key);
        true
    }

    /// Two versions of one key in one transaction: one of them is older than the other.
    fn judge_repeat(&mut self, before: &Sighting, now: &Sighting) {
        let ledger = self.ledger;
        if before.value != now.value {
            let name = Name {
                predicate: now.range || before.range,
                ..Name::plain(Kind::GSingle)
            };
            self.found.note(name, &[now.txn], || {
                let why = "was read twice, with different results";
                story::own_read(ledger, now.txn, now.key, why)
            });
        }
    }

    fn note_overwrite(&mut self, sighting: &Sighting) {
        let ledger = self.ledger;
        let Sighting { txn, key, .. } = *sighting;
        if sighting.value.is_none() && ledger.deleted(key) {
            return;
        }
        let version = (key, sighting.value);
        let first = *self.overwriters.get_or_insert_with(version, || txn);
        if first != txn {
            let name = Name {
                predicate: sighting.range,
                ..Name::plain(Kind::LostUpdate)
            };
            self.found.note(name, &[first, txn], || {
                story::lost_update(ledger, first, txn, key)
            });
        }
    }

    /// Edges to who overwrote the version that was read.
    fn link_overwriters(&mut self) {
        for sighting in &self.sightings {
            let version = (sighting.key, sighting.value);
            let Some(next) = self.overwriters.get(&version) else {
                continue;
            };
            self.graph
                .edge(sighting.txn, *next, sighting.rw(), sighting.key);
            if sighting.txn == *next
                && let Some(value) = sighting.value
                && let Some(written) = self.ledger.writer(sighting.key, value)
            {
                self.graph
                    .edge(written.txn, *next, Dependency::Ww, sighting.key);
            }
        }
    }

    /// Edges from who saw the initial state to all who wrote.
    fn link_initial(&mut self) {
        let mut joints: LookupMap<u32, u32> = LookupMap::new();
        for sighting in &self.sightings {
            let (txn, key) = (sighting.txn, sighting.key);
            let writers = &self.writers[key as usize];
            if sighting.value.is_some() || writers.is_empty() || self.ledger.deleted(key) {
                continue;
            }
            if writers.binary_search(&txn).is_err() {
                let joint = *joints.get_or_insert_with(key, || {
                    let joint = self.graph.joint();
                    for writer in writers {
                        self.graph.glue(joint, *writer);
                    }
                    joint
                });
                self.graph.edge(txn, joint, sighting.rw(), key);
            } else if self.overwriters.get(&(key, None)) == Some(&txn) {
                // At most one of this kind per key has not lost an update.
                for writer in writers {
                    self.graph.edge(txn, *writer, sighting.rw(), key);
                }
            }
        }
    }

    /// Edges from who read a write to the next write of the same process, for levels that keep the
    /// order of sessions.
    fn link_sessions(&mut self) {
        let ledger = self.ledger;
        let txns = &ledger.history.txns;
        let place = |txn: u32| (txns[txn as usize].process, txns[txn as usize].invoked, txn);
        let mut next: LookupMap<(u32, u32), u32> = LookupMap::new();
        for (key, writers) in self.writers.iter().enumerate() {
            let mut writers = writers.clone();
            writers.sort_by_key(|txn| place(*txn));
            for pair in writers.windows(2) {
                let ended = ledger.committed_by(pair[0]);
                if place(pair[0]).0 == place(pair[1]).0
                    && ended.is_some_and(|at| at <= place(pair[1]).1)
                {
                    next.insert((key as u32, pair[0]), pair[1]);
                }
            }
        }
        for sighting in &self.sightings {
            let key = sighting.key;
            if let Some(value) = sighting.value
                && let Some(written) = ledger.writer(key, value)
                && let Some(later) = next.get(&(key, written.txn))
            {
                let rw = sighting.rw();
                self.graph
                    .edge_on(Basis::Session, sighting.txn, *later, rw, key);
            }
        }
    }

    /// Edges from who read a write to all writes that began after it had ended, for levels that
    /// keep real time. One joint per write stands for itself and all that began later.
    fn link_real_time(&mut self) {
        let ledger = self.ledger;
        let begun = |txn: u32| ledger.history.txns[txn as usize].invoked;
        let mut by_key: Vec<u32> = (0..self.sightings.len() as u32).collect();
        by_key.sort_by_key(|place| self.sightings[*place as usize].key);
        for group in by_key
            .chunk_by(|a, b| self.sightings[*a as usize].key == self.sightings[*b as usize].key)
        {
            let key = self.sightings[group[0] as usize].key;
            let mut writers = self.writers[key as usize].clone();
            writers.sort_by_key(|txn| (begun(*txn), *txn));
            let mut joints: Vec<u32> = Vec::new();
            for place in group {
                let sighting = self.sightings[*place as usize];
                let Some(ended) = sighting
                    .value
                    .and_then(|value| ledger.writer(key, value))
                    .and_then(|written| ledger.committed_by(written.txn))
                else {
                    continue;
                };
                let first = writers.partition_point(|txn| begun(*txn) <= ended);
                if first == writers.len() {
                    continue;
                }
                if joints.is_empty() {
                    joints = chain(self.graph, &writers);
                }
                let (txn, rw) = (sighting.txn, sighting.rw());
                let own = writers.binary_search_by_key(&(begun(txn), txn), |w| (begun(*w), *w));
                let (direct, rest) = around(first, own.ok());
                for writer in &writers[direct] {
                    self.graph.edge_on(Basis::RealTime, txn, *writer, rw, key);
                }
                if let Some(joint) = joints.get(rest) {
                    self.graph.edge_on(Basis::RealTime, txn, *joint, rw, key);
                }
            }
        }
    }
}

/// One joint for each transaction, which leads to it and to all behind it.
pub(crate) fn chain(graph: &mut GraphBuilder, txns: &[u32]) -> Vec<u32> {
    let joints: Vec<u32> = txns.iter().map(|_| graph.joint()).collect();
    for (place, joint) in joints.iter().enumerate() {
        graph.glue(*joint, txns[place]);
        if let Some(next) = joints.get(place + 1) {
            graph.glue(*joint, *next);
        }
    }
    joints
}

/// How to reach the members of a chain from `first` on but for the one at `own`: which to reach
/// directly, and from where on by joints. What is too far in front of it is left out.
pub(crate) fn around(first: usize, own: Option<usize>) -> (Range<usize>, usize) {
    match own.filter(|own| first <= *own) {
        None => (first..first, first),
        Some(own) => (first..own.min(first + DIRECT_MAX), own + 1),
    }
}
