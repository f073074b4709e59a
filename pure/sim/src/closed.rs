//! What is closed by schema changes: all agree on it, it is opened again although node 1 is dead or
//! cut off, and node 1 dies, or is cut off, while it is closed.
//!
//! * No two catalogs have one version. Not judged is the first shard of node 1, which may use one
//!   that its journal then loses.
//! * Where waits are judged ([`crate::waits`]): a node that reaches enough others does not stay
//!   closed for long by the same change, whoever else is dead.
//! * The fault `InChange` waits until something is closed at node 1.

use crate::plan::Kind;
use crate::queue::{Event, NodeEvent};
use crate::world::World;
use catalog::{Catalog, ChangeId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node may be closed for so long by one change while who reaches whom is known: open
/// transactions have one second to end, and others act for node 1 when they have missed it for 0.3
/// to 1.1 s.
const CLOSED_NS: u64 = 2_500_000_000;
/// A fault that waits for a change does not wait longer.
const WAIT_NS: u64 = 1_500_000_000;

/// An end of node 1, or a cut around it, that waits for a change.
struct InChange {
    steps: u64,
    down_us: u64,
    lives: bool,
    until_ns: u64,
}

/// What is known of catalogs.
#[derive(Default)]
pub(crate) struct Closed {
    /// Of each version.
    catalogs: BTreeMap<u64, Arc<Catalog>>,
    in_change: Option<InChange>,
    /// Which change keeps a node closed, and since when.
    since: BTreeMap<usize, (Option<ChangeId>, u64)>,
    /// Changes that others than node 1 have ended.
    pub(crate) taken_over: u64,
}

impl Closed {
    pub(crate) fn end_in_change(&mut self, steps: u64, down_us: u64, lives: bool, now_ns: u64) {
        let until_ns = now_ns + WAIT_NS.min(down_us * 500);
        self.in_change = Some(InChange {
            steps,
            down_us,
            lives,
            until_ns,
        });
    }

    pub(crate) fn heal(&mut self) {
        self.in_change = None;
    }

    /// Who reaches whom is not known.
    pub(crate) fn unsteady(&mut self) {
        self.since.clear();
    }
}

impl World {
    pub(crate) fn closed_after_step(&mut self, node: usize, shard: usize) {
        let running = self.nodes[node].running.as_ref();
        let running = running.expect("it has just made a step");
        let (life, machine) = (running.life, &running.shards[shard].machine);
        let catalog = machine.catalog();
        if (node, shard) != (0, 0) {
            let count = self.closed.catalogs.len();
            let known = self.closed.catalogs.entry(catalog.version);
            let known = known.or_insert_with(|| catalog.clone());
            if !Arc::ptr_eq(known, &catalog) && **known != *catalog {
                let text = format!(
                    "two catalogs have the version {}: {known:?} and {catalog:?}",
                    catalog.version
                );
                self.broken.get_or_insert(text);
            }
            let is_new = self.closed.catalogs.len() > count;
            let alone = self.nodes[0].running.is_none();
            self.closed.taken_over += u64::from(is_new && alone);
            return;
        }
        if self.closed.in_change.is_none() {
            return;
        }
        let late = |wait: &InChange| wait.until_ns < self.now_ns;
        if self.closed.in_change.as_ref().is_some_and(late) {
            self.closed.in_change = None;
        } else if let Some(wait) = self.closed.in_change.as_mut()
            && catalog.is_closed()
        {
            if wait.steps > 0 {
                wait.steps -= 1;
                return;
            }
            let (down_us, lives) = (wait.down_us, wait.lives);
            self.closed.in_change = None;
            if lives {
                *self.happened.entry(Kind::Cut).or_default() += 1;
                return self.cut_off(node, down_us);
            }
            let event = NodeEvent::PowerCut { down_us };
            self.push(0, Event::Node(node, life, event));
        }
    }

    /// Looks whether something is closed for too long.
    pub(crate) fn look_for_closed(&mut self) {
        for node in 0..self.nodes.len() {
            let change = match self.nodes[node].running.as_ref() {
                Some(running) if self.is_live(node) && self.reaches_enough(node) => {
                    let catalog = running.shards[0].machine.catalog();
                    let closing = catalog.closing.filter(|_| catalog.is_closed());
                    closing.map(|closing| closing.change)
                }
                Some(_) | None => None,
            };
            let now_ns = self.now_ns;
            let since = self.closed.since.entry(node).or_insert((change, now_ns));
            if since.0 != change || change.is_none() {
                *since = (change, now_ns);
            } else if now_ns - since.1 > CLOSED_NS {
                let text = format!(
                    "n{} is closed for {} ms by {change:?}",
                    node + 1,
                    (now_ns - since.1) / 1_000_000
                );
                self.broken.get_or_insert(text);
            }
        }
    }

    /// Whether a node and those that it reaches are a majority; node 1 counts twice among an even
    /// number.
    fn reaches_enough(&self, node: usize) -> bool {
        let count = self.nodes.len();
        let weight = |node: usize| 1 + usize::from(node == 0 && count.is_multiple_of(2));
        let reached = (0..count)
            .filter(|to| *to == node || (self.is_live(*to) && !self.is_cut_off(node, *to)));
        let all: usize = (0..count).map(weight).sum();
        reached.map(weight).sum::<usize>() * 2 > all
    }
}
