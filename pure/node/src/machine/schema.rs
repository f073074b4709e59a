//! A shard's part in schema changes: it asks for one, runs them (first shard of node 1), and takes
//! the new catalog into use.
//!
//! ```text
//! n1.0 journals it ──durable──> n1.1, n1.2, ...       and acknowledges
//!                  ──durable──> n2.0 journals it ──durable──> n2.1, n2.2, ...
//!                               and acknowledges              and acknowledge, all to n1.0
//! ```
//!
//! Only a node's first shard uses a catalog that the node could still lose, and it sends nothing
//! before the record is durable. So no row of a new table is in a journal before the table: a node
//! that restarts drops rows of key spaces that it does not know.

use super::Shard;
use super::sweep::NO_SESSION;
use crate::config::CATALOG_NODE;
use crate::ddl::{Action, Answered, Nodes, Origin};
use crate::message::{DdlWork, Message, WireMessage};
use crate::pace::Pace;
use base::{Position, ShardId, SqlError, SqlState, Time};
use catalog::{Asker, BlockChange, Catalog, ProtocolKind, Switching};
use plan::DdlPlan;
use session::message::{DdlCall, DdlStop, ToTxn};
use session::{ConnId, end_block};
use std::sync::Arc;
use txn::JournalPort;

/// A request to undo the changes of a session's block, for which nobody waits.
fn undoing(database: String, session: i32) -> (ConnId, String, Box<DdlPlan>, Asker) {
    let plan = end_block(database.clone(), session, BlockChange::RollBack);
    (NO_SESSION, database, Box::new(plan), Asker::default())
}

/// Microseconds after the start of its node in which a schema change waits for other nodes.
const STARTING_US: u64 = 5_000_000;

impl Shard {
    /// Takes a newer catalog into use. Returns whether it was newer. The first shard of each node
    /// journals it: see [`Shard::catalog_floor`].
    pub(super) fn use_catalog(&mut self, mut catalog: Arc<Catalog>) -> bool {
        let mut core = self.core.borrow_mut();
        if catalog.version <= core.catalog.version {
            return false;
        }
        // Nobody else has one that has just come from another node.
        if let Some(new) = Arc::get_mut(&mut catalog) {
            new.share(&core.catalog);
        }
        if core.config.shard.index() == 0 {
            let mut record = Vec::new();
            let version = catalog.version;
            let mut known = core::mem::take(&mut core.encoded);
            let catalog = catalog.encoded(&mut known);
            core.encoded = known;
            journal::Record::Catalog { version, catalog }.encode(&mut record);
            self.catalog_position = core.journal.append(&record);
        }
        core.set_catalog(catalog);
        let version = core.catalog.version;
        drop(core);
        self.quiescing.pass(version);
        self.begin_switch();
        self.look_for_left();
        true
    }

    /// Position for which all effects of this shard wait: the record of the catalog in use.
    pub(super) fn catalog_floor(&self, durable: Position) -> Position {
        if self.catalog_position > durable {
            self.catalog_position
        } else {
            Position(0)
        }
    }

    /// A catalog has come: from node 1 to the first shard of a node, from there to the others.
    pub(super) fn on_catalog(&mut self, catalog: Arc<Catalog>) {
        let (here, shards) = {
            let core = self.core.borrow();
            (core.config.shard, core.config.shards_per_node)
        };
        if here == ShardId(0) {
            self.on_catalog_of_others(catalog);
            return;
        }
        self.use_catalog(catalog);
        self.answer_lost();
        self.take_kept();
        if here.index() == 0 {
            // Even if it is known already: the acknowledgement of another shard may be lost.
            (1..shards).for_each(|index| self.send_catalog(ShardId::new(here.node(), index)));
        }
        self.acknowledge();
    }

    /// Sends the catalog in use, if this node cannot lose it any more.
    pub(super) fn send_catalog(&mut self, to: ShardId) {
        let mut core = self.core.borrow_mut();
        if core.catalog.version > 0 {
            let message = Message::Wire(WireMessage::Catalog(core.catalog.clone()));
            core.send(to, message, self.catalog_position);
        }
    }

    pub(super) fn ask_ddl(&mut self) -> bool {
        if self.ddl_wanted.is_empty() {
            return false;
        }
        let mut any = false;
        let calls = core::mem::take(&mut self.ddl_wanted);
        for call in calls {
            let (conn, database, plan, asker) = match call {
                DdlCall::Ask(conn, database, plan, asker) => (conn, database, plan, asker),
                DdlCall::Left(database, session) => {
                    self.sweep.wanted = true;
                    undoing(database, session)
                }
                DdlCall::Stop(conn, stop) => {
                    any = true;
                    self.stop_ddl(conn, stop);
                    continue;
                }
            };
            if self.awaits_catalog_node() {
                self.ddl_wanted
                    .push_back(DdlCall::Ask(conn, database, plan, asker));
                continue;
            }
            any = true;
            let plan = *plan;
            let work = DdlWork {
                before: plan.before,
                fill: plan.fill,
                after: plan.after,
                undo: plan.undo,
                asker,
            };
            if self.core.borrow().config.shard == ShardId(0) {
                self.ddl.request(Origin::Session(conn), database, work);
            } else if self.peers.contains_key(&CATALOG_NODE)
                || self.core.borrow().config.shard.node() == CATALOG_NODE
            {
                self.ddl_next += 1;
                let id = self.ddl_next;
                self.ddl_asked.insert(id, conn);
                let message = WireMessage::Ddl { id, database, work };
                self.core
                    .borrow_mut()
                    .send(ShardId(0), Message::Wire(message), Position(0));
            } else {
                let error = SqlError::new(SqlState::OBJECT_NOT_READY, "node 1 cannot be reached")
                    .detail("Schema changes go through node 1. Nothing was changed.")
                    .hint("Run the statement again when node 1 is back.");
                self.with_session(conn, |session, cx| session.on_ddl(cx, Err(error)));
            }
        }
        any
    }

    /// Whether this node has just started and has not met the one that orders schema changes.
    fn awaits_catalog_node(&self) -> bool {
        let core = self.core.borrow();
        core.config.shard.node() != CATALOG_NODE
            && !self.met.contains(&CATALOG_NODE)
            && self.is_starting(core.now)
    }

    /// Whether nodes that were not seen yet are still expected.
    pub(super) fn is_starting(&self, now: Time) -> bool {
        self.started.is_some_and(|at| now.since(at) < STARTING_US)
    }

    /// When schema changes wait for nodes that start no longer.
    pub(super) fn ddl_deadline(&self) -> Option<Time> {
        if self.ddl_wanted.is_empty() && !self.ddl.is_queueing() {
            return self.ddl.deadline();
        }
        let started = self.started.map(|at| at.after(STARTING_US));
        let until = started.into_iter().chain(self.ddl.deadline());
        let now = self.core.borrow().now;
        until.filter(|until| *until > now).min()
    }

    /// A session cancels its schema change.
    fn stop_ddl(&mut self, conn: ConnId, stop: DdlStop) {
        let unsent = |call: &DdlCall| matches!(call, DdlCall::Ask(of, ..) if *of == conn);
        let before = self.ddl_wanted.len();
        self.ddl_wanted.retain(|call| !unsent(call));
        if self.ddl_wanted.len() < before {
            self.with_session(conn, |session, cx| session.on_ddl(cx, Err(stop.error())));
        } else if self.core.borrow().config.shard == ShardId(0) {
            self.on_ddl_stop(Origin::Session(conn), stop);
        } else if let Some((id, _)) = self.ddl_asked.iter().find(|(_, of)| **of == conn) {
            let message = Message::Wire(WireMessage::DdlStop { id: *id, stop });
            self.core
                .borrow_mut()
                .send(ShardId(0), message, Position(0));
        }
    }

    /// A cancel, on the shard that orders schema changes.
    pub(super) fn on_ddl_stop(&mut self, by: Origin, stop: DdlStop) {
        if let Some(action) = self.ddl.cancel(by, stop) {
            self.act(action);
        }
    }

    pub(super) fn run_ddl(&mut self) -> bool {
        let mut any = false;
        while !self.ddl.is_idle() {
            let catalog = self.core.borrow().catalog.clone();
            let down: Vec<ShardId> = self.shows.borrow().unreachable.iter().copied().collect();
            let unseen = down.iter().all(|shard| !self.met.contains(&shard.node()));
            let (now, pace) = {
                let core = self.core.borrow();
                (core.now, Pace::of(&core))
            };
            let nodes = Nodes {
                now,
                rest_us: pace.rest_us,
                down: &down,
                starting: unseen && self.is_starting(now),
                full: &self.full_nodes,
            };
            let action = match self.awaits_register() {
                true => self.ddl.refuse(nodes),
                false => self.ddl.next(&catalog, nodes),
            };
            let Some(action) = action else {
                break;
            };
            any = true;
            self.act(action);
        }
        any
    }

    /// Does the next action of the queue of schema changes.
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Publish(catalog) => self.publish_step(catalog),
            Action::Fill {
                database,
                work,
                position,
                place,
            } => {
                let catalog = self.core.borrow().catalog.clone();
                let database = catalog.databases.get(&database);
                let database = database.expect("a change holds its database").clone();
                let next = self.fill_next.clone();
                let protocol = database.protocol;
                self.core.borrow_mut().ask_for_clients();
                let handle = self.txns.spawn(database, protocol, place, move |port| {
                    // Snapshots of rows that clients move may always miss a version.
                    let locks_table = protocol.moves_rows() && !place.gives_way();
                    port.locks_table.set(locks_table);
                    crate::fill::batch(port, *work, position, next)
                });
                self.ddl.filling(handle);
            }
            Action::Quiesce { version, tables } => self.quiesce(version, tables),
            Action::AskLocks { number, lock } => self.ask_locks(number, lock),
            Action::EndBatch(batch) => self.txns.on_session(batch, ToTxn::Rollback),
            Action::Answer(origin, result) => {
                let result = self.tell_pause(result);
                self.answer_ddl(origin, result);
            }
        }
    }

    /// Adds to the notices how long a database was closed.
    fn tell_pause(&mut self, result: Answered) -> Answered {
        let now = self.core.borrow().now;
        match self.switch.closed_at.take() {
            Some(began) => result.map(|mut notices| {
                let ms = now.since(began) as f64 / 1000.0;
                notices.push(format!("the database was closed for {ms:.1} ms"));
                notices
            }),
            None => result,
        }
    }

    fn answer_ddl(&mut self, origin: Origin, result: Answered) {
        match origin {
            Origin::Restart => {
                result.expect("what undoes a change cannot fail");
            }
            Origin::Told => {}
            Origin::Session(conn) => {
                self.with_session(conn, |session, cx| session.on_ddl(cx, result));
            }
            Origin::Shard(to, id) => {
                self.ddl.tell(to, id, result.clone());
                self.send_ddl_done(to, id, result);
            }
        }
    }

    /// Answers another shard's request for a schema change.
    pub(super) fn send_ddl_done(&mut self, to: ShardId, id: u64, result: Answered) {
        let message = Message::Wire(WireMessage::DdlDone { id, result });
        self.core.borrow_mut().send(to, message, Position(0));
    }

    /// The record of the newest catalog may have become durable.
    pub(super) fn catalog_durable(&mut self, durable: Position) {
        if let Some(version) = self.catalog_pending
            && self.catalog_position <= durable
            && !self.switch.is_open()
            && !self.defers_locks()
        {
            self.catalog_pending = None;
            self.ddl.on_ack(ShardId(0), version);
        }
    }

    pub(super) fn publish(&mut self, catalog: Arc<Catalog>) {
        if !self.use_catalog(catalog) {
            return;
        }
        let (catalog, here, now) = {
            let core = self.core.borrow();
            (core.catalog.clone(), core.config.shard, core.now)
        };
        self.catalog_pending = Some(catalog.version);
        let mut databases = catalog.databases.values();
        if databases.any(|database| database.switching == Some(Switching::Draining)) {
            self.switch.closed_at = Some(now);
        }
        for shard in catalog.placement.shards() {
            if *shard != here && (shard.node() == here.node() || shard.index() == 0) {
                self.send_catalog(*shard);
            }
        }
        self.take_kept();
        self.answer_lost();
    }

    /// Tells the shard that orders schema changes whether this node's disk is full.
    pub(super) fn tell_disk(&mut self) {
        let mut core = self.core.borrow_mut();
        let (here, full) = (core.config.shard, core.journal.full);
        if here == ShardId(0) {
            drop(core);
            self.note_disk(here, full);
        } else if here.index() == 0 {
            let message = Message::Wire(WireMessage::DiskFull(full));
            core.send(ShardId(0), message, Position(0));
        }
    }

    /// A node's first shard has told of its disk.
    pub(super) fn note_disk(&mut self, from: ShardId, full: bool) {
        if full {
            self.full_nodes.insert(from.node());
        } else {
            self.full_nodes.remove(&from.node());
        }
    }

    /// Makes the first catalog of a new cluster. Only on the first shard of node 1, before its
    /// first step, if no catalog was recovered. The database `postgres` runs `protocol`.
    pub fn bootstrap(&mut self, placement: catalog::Placement, protocol: ProtocolKind) {
        let empty = self.catalog();
        assert_eq!(empty.version, 0, "only an empty cluster is bootstrapped");
        let commands = [
            catalog::Command::Bootstrap(placement),
            catalog::Command::CreateDatabase {
                name: "postgres".into(),
                protocol,
                execution: catalog::Execution::Interleaved,
                if_not_exists: false,
            },
        ];
        let apply = |catalog: Catalog, command| {
            catalog
                .apply(&command)
                .expect("an empty catalog takes its first commands")
                .0
        };
        let first = commands.into_iter().fold((*empty).clone(), apply);
        self.publish(Arc::new(first));
    }
}
