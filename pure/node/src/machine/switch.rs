//! A shard's part in a change of a database's protocol.
//!
//! The change is four versions of the catalog. A shard acknowledges each when it is through with
//! what the version asks for:
//!
//! | version | no new transactions, and | acknowledged when |
//! |---|---|---|
//! | draining | those that are open may end, for a while | none is open here |
//! | gathering | rows come home | all are, and no write is under way |
//! | opening | | every node will know the new protocol, whatever happens |
//! | open | new transactions under the new protocol | at once |
//!
//! A transaction that is refused or ended by this gets 40001, like after any schema change.
//!
//! A shard without a connection to a node can wait for ever for what only that node has: a row, or
//! the outcome of a transaction. It tells the shard that orders schema changes, which undoes the
//! change ([`crate::ddl::Ddl::on_stuck`]).

use super::Shard;
use crate::message::{Message, WireMessage};
use crate::port::StatementPort;
use crate::txns::place::Place;
use base::{Key, NodeId, Position, ShardId, Tag, Time};
use catalog::{Catalog, Database, Switching};
use exec::port::OpFuture;
use exec::{Port, Running};
use session::message::TxnHandle;
use std::rc::Rc;
use std::sync::Arc;
use txn::{JournalPort, LockMode, Op, Read};

/// Microseconds for which open transactions may go on.
const DRAIN_US: u64 = 1_000_000;
/// Microseconds between two checks whether a shard is through.
const LOOK_US: u64 = 5_000;
/// Microseconds without a connection to some node after which a shard that is not through says so.
/// Longer than a reconnect takes (0.1 s).
const STUCK_US: u64 = 300_000;
/// Number of rows that one transaction brings home.
const GATHER_ROWS: usize = 500;

/// What a shard must do before it may acknowledge the catalog in use.
#[derive(Default)]
pub(super) struct Switch {
    /// Whether databases change their protocol and this shard is not through.
    is_open: bool,
    /// Whether the shard that orders schema changes waits for this one.
    owed: bool,
    /// When open transactions are ended.
    drain_by: Option<Time>,
    look_at: Option<Time>,
    gathering: Option<TxnHandle>,
    /// When a node was first missing while this shard was not through.
    stuck_since: Option<Time>,
    /// On the shard that orders schema changes: when the database was closed.
    pub(super) closed_at: Option<Time>,
}

impl Switch {
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether there is work to do.
    pub(super) fn wants_look(&self) -> bool {
        self.is_open || self.look_at.is_some()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.look_at
    }
}

impl Shard {
    /// A newer catalog is in use.
    pub(super) fn begin_switch(&mut self) {
        let core = self.core.borrow();
        let mut databases = core.catalog.databases.values();
        self.switch.is_open = databases.any(|database| database.switching.is_some());
        self.switch.drain_by = self.switch.is_open.then(|| core.now.after(DRAIN_US));
        self.switch.look_at = None;
        self.switch.stuck_since = None;
        drop(core);
        self.register_advances();
    }

    /// Acknowledges the catalog in use, now or when this shard is through with it.
    pub(super) fn acknowledge(&mut self) {
        if self.switch.is_open {
            self.switch.owed = true;
            return;
        }
        if self.commits_beside_locks() {
            self.quiescing.locks.owed = true;
            return;
        }
        let mut core = self.core.borrow_mut();
        let version = core.catalog.version;
        let ack = Message::Wire(WireMessage::CatalogAck { version });
        core.send(ShardId(0), ack, self.catalog_position);
    }

    /// Checks whether this shard is through. Returns true if it has begun something.
    pub(super) fn tend_switch(&mut self) -> bool {
        if !self.switch.wants_look() {
            return false;
        }
        let (catalog, now) = {
            let core = self.core.borrow();
            (core.catalog.clone(), core.now)
        };
        if !self.switch.is_open {
            return self.gather_late(&catalog, now);
        }
        let databases = catalog.databases.values();
        for database in databases.filter(|database| database.switching.is_some()) {
            if self.is_through(database) {
                continue;
            }
            if self.switch.look_at.is_some_and(|at| at > now) {
                return false;
            }
            self.switch.look_at = Some(now.after(LOOK_US));
            let told = self.tell_stuck(catalog.version, now);
            return self.go_on(database, now) || told;
        }
        self.switch.is_open = false;
        let mut databases = catalog.databases.values();
        let gathers = databases.any(|database| database.switching == Some(Switching::Gathering));
        self.switch.look_at = gathers.then(|| now.after(LOOK_US));
        if core::mem::take(&mut self.switch.owed) {
            self.acknowledge();
        }
        let durable = self.core.borrow().journal.durable();
        self.catalog_durable(durable);
        true
    }

    /// This shard is not through: tells of a node to which it has had no connection for a while.
    /// Returns whether it has told.
    fn tell_stuck(&mut self, version: u64, now: Time) -> bool {
        let missing = {
            let shows = self.shows.borrow();
            shows.unreachable.first().map(|shard| shard.node())
        };
        let Some(missing) = missing else {
            self.switch.stuck_since = None;
            return false;
        };
        let since = *self.switch.stuck_since.get_or_insert(now);
        if now.since(since) < STUCK_US {
            return false;
        }
        // Told again after the same time: the message may be lost with its connection.
        self.switch.stuck_since = Some(now);
        let here = self.core.borrow().config.shard;
        if here == ShardId(0) {
            self.on_stuck(here, version, missing);
        } else {
            let message = Message::Wire(WireMessage::CatalogStuck { version, missing });
            let mut core = self.core.borrow_mut();
            core.send(ShardId(0), message, Position(0));
        }
        true
    }

    /// On the shard that orders schema changes: another shard cannot get through with a version.
    pub(super) fn on_stuck(&mut self, shard: ShardId, version: u64, missing: NodeId) {
        self.ddl.on_stuck(shard, version, missing);
    }

    /// A row that a transaction requested before its end may still leave. It comes back, and the
    /// shard to which it went does not acknowledge before that.
    fn gather_late(&mut self, catalog: &Catalog, now: Time) -> bool {
        if self.switch.look_at.is_some_and(|at| at > now) {
            return false;
        }
        self.switch.look_at = Some(now.after(LOOK_US));
        let databases = catalog.databases.values();
        let mut gathering =
            databases.filter(|database| database.switching == Some(Switching::Gathering));
        gathering.any(|database| self.go_on(database, now))
    }

    fn is_through(&self, database: &Database) -> bool {
        match database.switching {
            None | Some(Switching::Opening) => true,
            Some(Switching::Draining) => self.txns.open_in(database.id) == 0,
            Some(Switching::Gathering) => {
                let core = self.core.borrow();
                let indexes = database.key_spaces();
                core.protocols.is_quiet(database.protocol, &indexes)
            }
        }
    }

    /// Does what brings this shard nearer to the end.
    fn go_on(&mut self, database: &Arc<Database>, now: Time) -> bool {
        match database.switching {
            Some(Switching::Draining) => {
                if self.switch.drain_by.is_some_and(|at| at <= now) {
                    self.txns.end_all(database.id);
                }
                true
            }
            Some(Switching::Gathering) if self.switch.gathering.is_none() => {
                let protocol = database.protocol;
                let keys = {
                    let core = self.core.borrow();
                    let indexes = database.key_spaces().into_iter();
                    let moving = core.protocols.moving_of(protocol).into_iter();
                    let strayed = moving.flat_map(|rows| {
                        let indexes = indexes.clone();
                        indexes.flat_map(|index| rows.strayed(index, GATHER_ROWS))
                    });
                    strayed.take(GATHER_ROWS).collect::<Vec<Key>>()
                };
                if keys.is_empty() {
                    return false;
                }
                let (database, place) = (database.clone(), Place::USUAL);
                let spawned = self
                    .txns
                    .spawn(database, protocol, place, |port| gather(port, keys));
                self.switch.gathering = Some(spawned);
                true
            }
            Some(Switching::Gathering | Switching::Opening) | None => false,
        }
    }

    /// News of a transaction of the node. Returns true if it was the one that brings rows home.
    pub(super) fn gathered(&mut self, handle: TxnHandle) -> bool {
        if self.switch.gathering != Some(handle) {
            return false;
        }
        self.switch.gathering = None;
        true
    }
}

/// Brings rows home by locking them here.
fn gather(port: Rc<StatementPort>, keys: Vec<Key>) -> Running {
    Box::pin(async move {
        let planned = port.catalog().version;
        let ops: Vec<OpFuture<'_>> = keys
            .into_iter()
            .map(|key| {
                let to = port.home(key.slot);
                let op = Op::Get {
                    key,
                    read: Read::Lock(LockMode::Exclusive),
                    program: expr::program::whole_row(&[]),
                };
                OpFuture::start(&*port, to, planned, op, false)
            })
            .collect();
        for op in ops {
            op.await?;
        }
        Ok(Tag::Word("GATHER"))
    })
}
