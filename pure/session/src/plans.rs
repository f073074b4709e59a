//! Parsed and planned statements, and the cache of them that the sessions of a shard share.

use crate::kept::Kept;
use crate::preparing::Leftovers;
use crate::shapes::Shapes;
use crate::statements::{Counting, Statements};
use crate::statistics::Statistics;
use base::lookup::FixedHasher;
use base::{DatabaseId, Type};
use parse::Statement;
use plan::Plan;
use rights::{RoleId, Viewer};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use wire::Format;

/// What of a session a plan is made for.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Site {
    /// Time zone and style of intervals, as plans have them.
    pub(crate) zone: Box<str>,
    /// The schemas in which names are looked up.
    pub(crate) path: Rc<[u32]>,
    /// Whose policies concern the rows.
    pub(crate) viewer: Viewer,
}

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
    /// The catalog version by which a role has what the plan needs, and the role.
    pub(crate) allowed: Cell<Option<(u64, RoleId)>>,
    /// Its counters.
    pub(crate) counting: Counting,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(leftovers) = self.leftovers.take() {
            leftovers.add(Box::new((self.statement.take(), self.plan.take())));
        }
    }
}

impl Prepared {
    /// Whether the plan may be used with catalog `version` by a session at `site`.
    pub(crate) fn is_fresh(&self, version: u64, site: &Site) -> bool {
        self.plan.as_ref().is_none_or(|plan| {
            plan.catalog_version == version
                && plan.zone == site.zone
                && *plan.path == *site.path
                && plan.viewer == site.viewer
        })
    }

    /// Whether the row counts of the plan are still right, if they matter.
    pub(crate) fn is_counted(&self, statistics: &Statistics) -> bool {
        let by_rows = self.plan.as_ref().is_some_and(|plan| plan.by_rows);
        !by_rows || self.counted == statistics.version(self.database)
    }

    /// The text for others to see: nobody sees a password.
    pub(crate) fn shown(&self) -> &str {
        match self.statement.as_ref().map(Statement::has_password) {
            Some(true) => "(a statement with a password)",
            _ => &self.text,
        }
    }

    /// For what it was planned.
    fn site(&self) -> Site {
        let plan = self.plan.as_ref();
        plan.map_or_else(Site::default, |plan| Site {
            zone: plan.zone.clone(),
            path: (*plan.path).into(),
            viewer: plan.viewer,
        })
    }
}

/// Plans shared by the sessions of one shard.
pub struct PlanCache {
    kept: Kept<Rc<Prepared>>,
    /// Statements whose literals are parameters.
    pub(crate) shapes: Shapes,
    /// What statements have cost.
    pub statements: Statements,
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
        PlanCache {
            kept: Kept::new(entries_max),
            shapes: Shapes::new(entries_max),
            statements: Statements::new(crate::STATEMENTS_MAX),
            planned: 0,
            text: Arc::from([]),
            binary: Arc::from([Format::Binary]),
        }
    }

    /// An empty cache for one of `shards` shards of a node, which share the room for counts.
    pub fn of_shard(shards: u16) -> PlanCache {
        let entries_max = crate::STATEMENTS_MAX / usize::from(shards.max(1));
        PlanCache {
            statements: Statements::new(entries_max),
            ..PlanCache::default()
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
        self.kept.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.kept.len() == 0
    }

    /// The statement of this text if its plan is of catalog `version`, for a session at `site`.
    pub(crate) fn get(
        &mut self,
        database: DatabaseId,
        text: &str,
        declared: &[Type],
        (version, site): (u64, &Site),
    ) -> Option<Rc<Prepared>> {
        let hash = hash_of(database, text, declared, site);
        let found = self.kept.get(hash, |found| {
            found.database == database
                && &*found.text == text
                && *found.declared == *declared
                && found.is_fresh(version, site)
        })?;
        Some(found.clone())
    }

    /// Whether a statement would be kept if it was planned now: it was asked for before.
    pub(crate) fn admits(
        &mut self,
        database: DatabaseId,
        text: &str,
        declared: &[Type],
        site: &Site,
    ) -> bool {
        self.kept.admits(hash_of(database, text, declared, site))
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
            &prepared.site(),
        );
        if self.kept.admits(hash) {
            self.kept.put(hash, prepared.clone());
        }
    }
}

fn hash_of(database: DatabaseId, text: &str, declared: &[Type], site: &Site) -> u64 {
    let mut hasher = FixedHasher::default();
    hasher.write_u32(database.0);
    hasher.write(text.as_bytes());
    declared.hash(&mut hasher);
    site.hash(&mut hasher);
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
            allowed: Cell::default(),
            counting: Counting::default(),
        })
    }

    #[test]
    fn texts_enter_when_seen_again_and_used_ones_stay() {
        let mut cache = PlanCache::new(4);
        let get = |cache: &mut PlanCache, text: &str| {
            let here = Site::default();
            cache.get(DatabaseId(1), text, &[], (1, &here)).is_some()
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
        let here = Site::default();
        assert!(cache.get(DatabaseId(2), "hot", &[], (1, &here)).is_none());
        let elsewhere = Site {
            zone: "Europe/Berlin".into(),
            ..Site::default()
        };
        let other_path = Site {
            path: Rc::from([7]),
            ..Site::default()
        };
        for site in [elsewhere, other_path] {
            assert!(cache.get(DatabaseId(1), "hot", &[], (1, &site)).is_none());
        }
        assert!(
            cache
                .get(DatabaseId(1), "hot", &[Type::Int4], (1, &here))
                .is_none()
        );
    }
}
