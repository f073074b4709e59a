//! Parsed and planned statements, and the cache of them that the sessions of a shard share.
//!
//! The cache has two bounds: a number of statements, replaced by second chance, and a doorkeeper: a
//! text enters only when it is seen again, so that statements full of literals stay out.

use crate::preparing::Leftovers;
use crate::statistics::Statistics;
use base::lookup::FixedHasher;
use base::{DatabaseId, LookupMap, Type};
use parse::Statement;
use plan::Plan;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use wire::Format;

/// One statement with its plan.
pub(crate) struct Prepared {
    /// Text of the statement.
    pub(crate) text: Box<str>,
    /// `None`: the text is empty.
    pub(crate) statement: Option<Statement>,
    /// Parameter types that the client declared.
    pub(crate) declared: Box<[Type]>,
    /// `None`: the text is empty.
    pub(crate) plan: Option<Arc<Plan>>,
    /// Row counts for which it was planned ([`Statistics::version`]).
    pub(crate) counted: u64,
    /// Database for which it was planned.
    pub(crate) database: DatabaseId,
    /// Where a long statement leaves its parts to be freed.
    pub(crate) leftovers: Option<Leftovers>,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(leftovers) = self.leftovers.take() {
            leftovers.add(Box::new((self.statement.take(), self.plan.take())));
        }
    }
}

impl Prepared {
    /// Whether the plan may be used with catalog `version` by a session in `zone`.
    pub(crate) fn is_fresh(&self, version: u64, zone: &str) -> bool {
        self.plan
            .as_ref()
            .is_none_or(|plan| plan.catalog_version == version && *plan.zone == *zone)
    }

    /// Whether the row counts of the plan are still right, if they matter.
    pub(crate) fn is_counted(&self, statistics: &Statistics) -> bool {
        let by_rows = self.plan.as_ref().is_some_and(|plan| plan.by_rows);
        !by_rows || self.counted == statistics.version(self.database)
    }

    /// Time zone for which it was planned.
    fn zone(&self) -> &str {
        self.plan.as_ref().map_or("", |plan| &plan.zone)
    }
}

struct Entry {
    hash: u64,
    prepared: Rc<Prepared>,
    /// Used since the hand last passed.
    used: bool,
}

/// Plans shared by the sessions of one shard.
pub struct PlanCache {
    entries: Vec<Entry>,
    index: LookupMap<u64, u32>,
    hand: usize,
    entries_max: usize,
    /// Hashes of texts seen once, a ring.
    seen: Vec<u64>,
    seen_set: LookupMap<u64, ()>,
    seen_hand: usize,
    planned: u64,
    /// Every column in text form.
    pub(crate) text: Arc<[Format]>,
    /// Every column in binary form.
    pub(crate) binary: Arc<[Format]>,
}

/// Number of statements that a shard keeps. Programs have hundreds; a plan takes some kilobytes.
const ENTRIES_MAX: usize = 2048;

impl Default for PlanCache {
    fn default() -> Self {
        PlanCache::new(ENTRIES_MAX)
    }
}

impl PlanCache {
    /// An empty cache for `entries_max` statements, at least one.
    pub fn new(entries_max: usize) -> PlanCache {
        assert!(entries_max > 0, "a cache holds something");
        PlanCache {
            entries: Vec::new(),
            index: LookupMap::new(),
            hand: 0,
            entries_max,
            seen: Vec::new(),
            seen_set: LookupMap::new(),
            seen_hand: 0,
            planned: 0,
            text: Arc::from([]),
            binary: Arc::from([Format::Binary]),
        }
    }

    /// Number of statements planned so far by the sessions of the shard.
    pub fn planned(&self) -> u64 {
        self.planned
    }

    pub(crate) fn count_planned(&mut self) {
        self.planned += 1;
    }

    /// Number of statements in the cache.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The statement of this text if its plan is of catalog `version`, for a session in `zone`.
    pub(crate) fn get(
        &mut self,
        database: DatabaseId,
        text: &str,
        declared: &[Type],
        (version, zone): (u64, &str),
    ) -> Option<Rc<Prepared>> {
        let hash = hash_of(database, text, declared, zone);
        let entry = &mut self.entries[*self.index.get(&hash)? as usize];
        let found = &entry.prepared;
        let same =
            found.database == database && &*found.text == text && *found.declared == *declared;
        if !same || !found.is_fresh(version, zone) {
            return None;
        }
        entry.used = true;
        Some(found.clone())
    }

    /// Notes a statement that was just planned; the cache keeps it from its second time on.
    pub(crate) fn offer(&mut self, prepared: &Rc<Prepared>) {
        // Long texts are bulk loads, not statements of a program.
        if prepared.text.len() >= parse::LONG_BYTES {
            return;
        }
        let hash = hash_of(
            prepared.database,
            &prepared.text,
            &prepared.declared,
            prepared.zone(),
        );
        if let Some(at) = self.index.get(&hash) {
            // An older catalog version of it, or another statement of equal hash.
            let at = *at as usize;
            self.entries[at] = Entry {
                hash,
                prepared: prepared.clone(),
                used: true,
            };
        } else if self.seen_set.contains(&hash) {
            self.insert(Entry {
                hash,
                prepared: prepared.clone(),
                used: false,
            });
        } else {
            self.remember(hash);
        }
    }

    fn insert(&mut self, entry: Entry) {
        if self.entries.len() < self.entries_max {
            self.index.insert(entry.hash, self.entries.len() as u32);
            self.entries.push(entry);
            return;
        }
        while core::mem::take(&mut self.entries[self.hand].used) {
            self.hand = (self.hand + 1) % self.entries_max;
        }
        self.index.remove(&self.entries[self.hand].hash);
        self.index.insert(entry.hash, self.hand as u32);
        self.entries[self.hand] = entry;
        self.hand = (self.hand + 1) % self.entries_max;
    }

    fn remember(&mut self, hash: u64) {
        if self.seen.len() < self.entries_max {
            self.seen.push(hash);
        } else {
            let old = core::mem::replace(&mut self.seen[self.seen_hand], hash);
            self.seen_set.remove(&old);
            self.seen_hand = (self.seen_hand + 1) % self.entries_max;
        }
        self.seen_set.insert(hash, ());
    }
}

fn hash_of(database: DatabaseId, text: &str, declared: &[Type], zone: &str) -> u64 {
    let mut hasher = FixedHasher::default();
    hasher.write_u32(database.0);
    hasher.write(text.as_bytes());
    declared.hash(&mut hasher);
    hasher.write(zone.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str) -> Rc<Prepared> {
        Rc::new(Prepared {
            leftovers: None,
            text: text.into(),
            statement: None,
            declared: Box::default(),
            plan: None,
            counted: 0,
            database: DatabaseId(1),
        })
    }

    #[test]
    fn texts_enter_when_seen_again_and_used_ones_stay() {
        let mut cache = PlanCache::new(4);
        let get = |cache: &mut PlanCache, text: &str| {
            cache.get(DatabaseId(1), text, &[], (1, "")).is_some()
        };
        cache.offer(&prepared("hot"));
        assert!(!get(&mut cache, "hot"), "seen once");
        cache.offer(&prepared("hot"));
        assert!(get(&mut cache, "hot"));
        for i in 0..100 {
            cache.offer(&prepared(&format!("select {i}")));
        }
        assert_eq!(cache.len(), 1, "texts that come once do not enter");
        for i in 0..100 {
            cache.offer(&prepared(&format!("twice {i}")));
            cache.offer(&prepared(&format!("twice {i}")));
            assert!(get(&mut cache, "hot"), "a used entry survives");
        }
        assert_eq!(cache.len(), 4);
        assert!(cache.get(DatabaseId(2), "hot", &[], (1, "")).is_none());
        let elsewhere = (1, "Europe/Berlin");
        assert!(cache.get(DatabaseId(1), "hot", &[], elsewhere).is_none());
        assert!(
            cache
                .get(DatabaseId(1), "hot", &[Type::Int4], (1, ""))
                .is_none()
        );
    }
}
