//! Intents at timestamps, as the design of the formula protocol has them: a transaction that comes
//! to a row moves above the newest intent there, if nobody depends on its other intents, and waits
//! for those below.
//!
//! Whether somebody depends is known here at once. Nodes would have to ask each other.

use super::world::{Answer, Attempt, Discipline, Stamp, node as node_of};
use std::collections::BTreeMap;

/// Where a move leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Above all intents of the row, which also bound who need not move: the rule to the letter.
    Last,
    /// Above the one that has the row, as the newest of all. A later attempt has a later timestamp.
    ByTime,
    /// Just above the one that has the row, and among the others there by age, which an attempt
    /// keeps.
    ByAge,
}

pub(super) struct Intents {
    place: Place,
    /// By row: intents in order. The first has the row.
    rows: BTreeMap<u64, Vec<(Stamp, u64)>>,
    /// By row: the highest at which it was read.
    tops: BTreeMap<u64, Stamp>,
    stamps: BTreeMap<u64, Stamp>,
    highest: u64,
    /// A planted bug: it moves whoever depends on it.
    pub(super) moves_always: bool,
}

impl Intents {
    pub(super) fn new(place: Place) -> Intents {
        Intents {
            place,
            rows: BTreeMap::new(),
            tops: BTreeMap::new(),
            stamps: BTreeMap::new(),
            highest: 0,
            moves_always: false,
        }
    }

    /// The stamp above which an intent must be.
    fn bound(&self, row: u64) -> Stamp {
        let last = match self.place {
            Place::Last => self.rows.get(&row).and_then(|intents| intents.last()),
            Place::ByTime | Place::ByAge => None,
        };
        let top = self.tops.get(&row).copied().unwrap_or_default();
        last.map_or(top, |(stamp, _)| top.max(*stamp))
    }

    /// Whether others wait behind what the attempt has.
    fn has_dependents(&self, attempt: &Attempt) -> bool {
        attempt.rows[..attempt.has]
            .iter()
            .any(|row| self.rows[row].len() > 1)
    }

    fn move_to(&mut self, attempt: &Attempt, stamp: Stamp) {
        self.stamps.insert(attempt.id, stamp);
        for row in &attempt.rows[..attempt.has] {
            let intents = self.rows.get_mut(row).expect("it has the row");
            for (own, _) in intents.iter_mut().filter(|(_, id)| *id == attempt.id) {
                *own = stamp;
            }
            self.tops.insert(*row, stamp);
        }
    }
}

impl Discipline for Intents {
    fn ask(&mut self, attempt: &Attempt, _: &mut Vec<(u64, Answer)>) -> Answer {
        let row = attempt.rows[attempt.has];
        self.highest += 1;
        let fresh = (self.highest, attempt.first, attempt.id);
        let stamp = *self.stamps.entry(attempt.id).or_insert(match self.place {
            Place::Last | Place::ByTime => fresh,
            Place::ByAge => (0, attempt.first, attempt.id),
        });
        let bound = self.bound(row);
        if bound > stamp {
            if self.has_dependents(attempt) && !self.moves_always {
                self.stamps.remove(&attempt.id);
                return Answer::Dies;
            }
            let moved = match self.place {
                Place::Last | Place::ByTime => fresh,
                Place::ByAge => (bound.0 + 1, attempt.first, attempt.id),
            };
            self.move_to(attempt, moved);
        }
        let intents = self.rows.entry(row).or_default();
        intents.push((self.stamps[&attempt.id], attempt.id));
        intents.sort_unstable();
        if intents[0].1 != attempt.id {
            return Answer::Waits;
        }
        self.tops.insert(row, intents[0].0);
        Answer::Granted
    }

    fn release(&mut self, attempt: &Attempt, node: u64, told: &mut Vec<(u64, Answer)>) {
        for row in attempt.rows.iter().filter(|row| node_of(**row) == node) {
            let Some(intents) = self.rows.get_mut(row) else {
                continue;
            };
            let had = intents.first().is_some_and(|(_, id)| *id == attempt.id);
            intents.retain(|(_, id)| *id != attempt.id);
            match intents.first() {
                Some((stamp, next)) if had => {
                    self.tops.insert(*row, *stamp);
                    told.push((*next, Answer::Granted));
                }
                Some(_) => {}
                None => drop(self.rows.remove(row)),
            }
        }
    }

    fn stamp(&self, attempt: &Attempt) -> Option<Stamp> {
        Some(self.stamps[&attempt.id])
    }
}
