//! Requests for locks of tables (LOCK TABLE): they wait in the queue of schema changes, beside the
//! others, until nobody is in their way (docs/adr/0044-table-locks-in-the-catalog.md).
//!
//! ```text
//! n1.0  asks every shard who uses the tables in a way that the mode excludes
//!       <── who does, and again whenever that changes; statements that come wait meanwhile
//!       all have answered "nobody", and no block in the catalog has such a lock:
//!       the lock goes into the catalog, as a schema change does; all shards acknowledge
//! ```
//!
//! The answers may be old when the catalog gets the lock. So the lock has the version of the
//! catalog: what was planned before it may not be written any more.
//!
//! Sessions that wait for each other are found here as far as all of them wait for locks of tables.
//! Where one of them waits for a row, or for a statement's turn, the others give up after a time.

use super::{Action, Ddl, Nodes, Queued};
use crate::message::DdlWork;
use base::{NodeId, ShardId, SqlError, SqlState, TableId, Time};
use catalog::{Catalog, Command, TableLock};
use session::errors::{circle_of_tables, could_not_lock};
use session::message::LockAsk;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Microseconds after which shards are asked again: they forget a request of which they hear no
/// more ([`ASKED_US`]).
const AGAIN_US: u64 = 3_000_000;

/// Microseconds after which a shard forgets a request.
pub(crate) const ASKED_US: u64 = 10_000_000;

/// Most requests that wait at a time: to find circles, each is compared with all others.
const WAITING_MAX: usize = 256;

/// Requests have numbers from here on, where there are no versions of the catalog.
const FIRST_NUMBER: u64 = 1 << 62;

/// A request for locks, while it waits.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Number of the request; 0: no shard was asked.
    number: u64,
    /// When it came, and when the shards were asked last.
    since: Time,
    asked: Time,
    /// Sessions in the way, by the shards that have answered.
    answers: BTreeMap<ShardId, Vec<i32>>,
    /// Nobody was in the way at the last look.
    free: bool,
}

/// What LOCK TABLE asks for.
struct Wanted<'a> {
    database: &'a str,
    session: i32,
    tables: &'a [TableId],
    mode: TableLock,
    within_us: Option<u64>,
}

impl DdlWork {
    fn wanted(&self) -> Option<Wanted<'_>> {
        self.before.iter().find_map(|command| {
            let Command::LockTables {
                database,
                session,
                tables,
                mode,
                fills: _,
                within_us,
            } = command
            else {
                return None;
            };
            Some(Wanted {
                database,
                session: *session,
                tables,
                mode: *mode,
                within_us: *within_us,
            })
        })
    }

    /// Whether it locks tables.
    pub(super) fn locks(&self) -> bool {
        self.wanted().is_some()
    }
}

impl Wanted<'_> {
    /// Whether both cannot have their locks at a time.
    fn excludes(&self, other: &Wanted<'_>) -> bool {
        self.database == other.database
            && self.mode.excludes(other.mode)
            && self.tables.iter().any(|table| other.tables.contains(table))
    }

    /// Sessions whose blocks have locked or changed the tables.
    fn holders(&self, catalog: &Catalog) -> Vec<i32> {
        let database = catalog.databases.get(self.database);
        database.map_or(Vec::new(), |database| {
            database.lock_holders(self.tables, self.mode, self.session)
        })
    }

    fn ask(&self) -> LockAsk {
        LockAsk {
            session: self.session,
            mode: self.mode,
            tables: self.tables.to_vec(),
        }
    }

    /// The error of a request that does not wait any longer.
    fn late(&self, catalog: &Catalog) -> SqlError {
        let database = catalog.databases.get(self.database);
        let mut tables = database.into_iter().flat_map(|it| it.tables.values());
        let table = tables.find(|table| self.tables.contains(&table.id));
        match self.within_us {
            Some(0) => could_not_lock(table.map_or("", |it| base::full_name::own(&it.name))),
            Some(_) | None => circle_of_tables(),
        }
    }
}

impl Asking {
    /// Sessions in the way on some shard.
    fn in_the_way(&self) -> impl Iterator<Item = i32> {
        self.answers.values().flatten().copied()
    }

    fn has_heard(&self, wanted: &Wanted<'_>, catalog: &Catalog) -> bool {
        let mut shards = catalog.placement.shards().iter();
        !wanted.mode.holds_off_writers() || shards.all(|shard| self.answers.contains_key(shard))
    }

    /// Whether the request waits no longer.
    fn is_late(&self, wanted: &Wanted<'_>, catalog: &Catalog, now: Time) -> bool {
        match wanted.within_us {
            None => false,
            Some(0) => !self.free && self.has_heard(wanted, catalog),
            Some(us) => self.since.after(us) <= now,
        }
    }
}

/// The last request of a circle. By session: the place of its request, and for whom it waits.
fn last_of_circle(waits: &BTreeMap<i32, (usize, BTreeSet<i32>)>) -> Option<usize> {
    let in_circle = |session: i32| {
        let mut seen = BTreeSet::new();
        let mut next = Vec::from([session]);
        while let Some(of) = next.pop() {
            for other in waits.get(&of).into_iter().flat_map(|(_, others)| others) {
                if *other == session {
                    return true;
                }
                if seen.insert(*other) {
                    next.push(*other);
                }
            }
        }
        false
    };
    let found = waits.iter().filter(|(session, _)| in_circle(**session));
    found.map(|(_, (at, _))| *at).max()
}

impl Ddl {
    /// A shard tells which sessions are in the way of a request.
    pub(crate) fn on_in_the_way(&mut self, from: ShardId, number: u64, sessions: Vec<i32>) {
        let mut queue = self.queue.iter_mut();
        let queued = queue.find(|it| it.asking.number == number && number > 0);
        if let Some(queued) = queued {
            queued.asking.answers.insert(from, sessions);
            self.locks_seen = None;
        } else if self.locking != number && !self.passed.contains(&number) {
            // The shard was not told, or was told late.
            self.passed.push(number);
        }
    }

    /// A node was lost, and perhaps with it what its shards were asked: its answers do not count.
    pub(crate) fn forget_answers(&mut self, node: NodeId) {
        for queued in &mut self.queue {
            queued.asking.answers.retain(|from, _| from.node() != node);
            queued.asking.asked = Time::default();
        }
        self.locks_seen = None;
    }

    /// The next thing to do for requests that wait: shards are asked or told of the end, requests
    /// are refused.
    pub(super) fn tend_locks(
        &mut self,
        catalog: &Arc<Catalog>,
        nodes: Nodes<'_>,
    ) -> Option<Action> {
        if let Some(number) = self.passed.pop() {
            let lock = None;
            return Some(Action::AskLocks { number, lock });
        }
        let waiting = self.queue.iter().filter(|queued| queued.work.locks());
        let waiting = waiting.count();
        if waiting == 0 {
            return None;
        }
        if let Some(asked) = self.ask_shards(nodes.now) {
            return Some(asked);
        }
        if let Some(at) = self.look_at_locks(catalog) {
            return self.answer_lock(at, circle_of_tables());
        }
        for at in 0..self.queue.len() {
            let error = match self.queue[at].work.wanted() {
                None => continue,
                Some(_) if !nodes.down.is_empty() && !nodes.starting => {
                    locks_need_all_nodes(nodes.down)
                }
                Some(_) if waiting > WAITING_MAX => too_many(),
                Some(wanted) if self.queue[at].asking.is_late(&wanted, catalog, nodes.now) => {
                    wanted.late(catalog)
                }
                Some(_) => continue,
            };
            return self.answer_lock(at, error);
        }
        None
    }

    /// Asks shards about a request that is new, or was asked about long ago.
    fn ask_shards(&mut self, now: Time) -> Option<Action> {
        for queued in &mut self.queue {
            let (Some(wanted), asking) = (queued.work.wanted(), &mut queued.asking) else {
                continue;
            };
            if asking.since == Time::default() {
                asking.since = now;
                self.locks_seen = None;
            }
            // What the weakest kept mode waits for is known by the catalog alone.
            let is_new = asking.number == 0;
            if wanted.mode.holds_off_writers() && (is_new || asking.asked.after(AGAIN_US) <= now) {
                if is_new {
                    self.lock_numbers += 1;
                    asking.number = FIRST_NUMBER + self.lock_numbers;
                }
                asking.asked = now;
                let (number, lock) = (asking.number, Some(wanted.ask()));
                return Some(Action::AskLocks { number, lock });
            }
        }
        None
    }

    /// Notes which requests are free, if anything has changed. The last request of a circle of
    /// sessions that wait for each other, if there is one.
    fn look_at_locks(&mut self, catalog: &Catalog) -> Option<usize> {
        if self.locks_seen == Some(catalog.version) {
            return None;
        }
        self.locks_seen = Some(catalog.version);
        let mut waits = BTreeMap::new();
        for at in 0..self.queue.len() {
            let Some(session) = self.queue[at].work.wanted().map(|wanted| wanted.session) else {
                continue;
            };
            let blockers = self.blockers(at, catalog);
            self.queue[at].asking.free = blockers.is_empty();
            waits.insert(session, (at, blockers));
        }
        let found = last_of_circle(&waits);
        if found.is_some() {
            // There may be another one.
            self.locks_seen = None;
        }
        found
    }

    fn answer_lock(&mut self, at: usize, error: SqlError) -> Option<Action> {
        let queued = self.queue.remove(at)?;
        self.forget_asking(&queued);
        Some(Action::Answer(queued.origin, Err(error)))
    }

    /// The shards need not hold statements back for the request any more.
    pub(super) fn forget_asking(&mut self, queued: &Queued) {
        self.pass(&queued.asking);
        self.locks_seen = None;
    }

    pub(super) fn pass(&mut self, asking: &Asking) {
        if asking.number > 0 {
            self.passed.push(asking.number);
        }
    }

    /// Sessions for which the request waits, earlier ones in the queue included.
    fn blockers(&self, at: usize, catalog: &Catalog) -> BTreeSet<i32> {
        let Some(wanted) = self.queue[at].work.wanted() else {
            return BTreeSet::new();
        };
        let mut found: BTreeSet<i32> = wanted.holders(catalog).into_iter().collect();
        found.extend(self.queue[at].asking.in_the_way());
        let earlier = self.queue.iter().take(at);
        let earlier = earlier.filter_map(|queued| queued.work.wanted());
        found.extend(
            earlier
                .filter(|other| other.excludes(&wanted))
                .map(|other| other.session),
        );
        found.remove(&wanted.session);
        found
    }

    /// Whether a request can be carried out, as of the last look.
    pub(super) fn is_free(&self, at: usize, catalog: &Catalog) -> bool {
        let queued = &self.queue[at];
        queued.work.wanted().is_some_and(|wanted| {
            self.locks_seen == Some(catalog.version)
                && queued.asking.free
                && queued.asking.has_heard(&wanted, catalog)
        })
    }

    /// When a request is refused, or shards are asked again.
    pub(super) fn locks_until(&self) -> Option<Time> {
        let waiting = self.queue.iter().filter(|it| it.work.locks());
        let times = waiting.flat_map(|queued| {
            let (wanted, asking) = (queued.work.wanted(), &queued.asking);
            let within = wanted
                .and_then(|wanted| wanted.within_us)
                .filter(|us| *us > 0);
            let again = (asking.number > 0).then(|| asking.asked.after(AGAIN_US));
            within
                .map(|us| asking.since.after(us))
                .into_iter()
                .chain(again)
        });
        times.min()
    }

    /// Whether shards are to be told that requests are over.
    pub(super) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    /// The request that begins.
    pub(super) fn begin_lock(&mut self, asking: &Asking) {
        self.locking = asking.number;
    }

    /// The change is over: whoever waits for the tables finds the lock in the catalog.
    pub(super) fn end_lock(&mut self) {
        let number = core::mem::take(&mut self.locking);
        if number > 0 {
            self.passed.push(number);
        }
    }
}

/// A lock must be known everywhere.
pub(super) fn locks_need_all_nodes(down: &[ShardId]) -> SqlError {
    let error = session::undone::needs_all_nodes(down);
    SqlError::new(SqlState::OBJECT_NOT_READY, error.fields().message.clone())
        .detail("LOCK TABLE needs every node of the cluster. No table was locked.")
        .hint("Run the transaction again when all nodes are back.")
}

fn too_many() -> SqlError {
    let message = "too many sessions wait for locks of tables";
    SqlError::new(SqlState::OUT_OF_MEMORY, message)
        .detail(format!("At most {WAITING_MAX} can wait in a cluster."))
        .hint("Run the transaction again later.")
}
