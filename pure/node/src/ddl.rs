//! Schema changes: the first shard of node 1 runs them one at a time.
//!
//! A change is a list of steps. A command makes the next catalog version, which is journaled and
//! goes to all shards. The next step begins when all have acknowledged the version, so that work
//! over existing rows finds no transaction planned before. The commands of `undo` undo a change
//! that fails.
//!
//! | step | waits for |
//! |---|---|
//! | command | the record being durable on node 1, every shard's `CatalogAck` |
//! | fill | its transactions, one batch each, which give way to clients (rule R21) |
//!
//! **Nodes that are down.** A new change is refused while a node is down, or while the disk of any
//! is full, because every node journals each version of the catalog. When a node goes down while
//! a change runs, no statement waits for it:
//!
//! | what is still to come | then |
//! |---|---|
//! | work over rows, or another step while a database is closed | it is undone and fails |
//! | commands only | its records have decided: it is carried out |
//! | the opening under a protocol that moves rows, unknown there | two_phase again; it fails |
//!
//! A node that is up but does not reach another node that is up may never be through with a
//! database that closes. It says so ([`Ddl::on_stuck`]), and the change is undone.
//!
//! A node takes the newest catalog when it comes back, and no other change begins before. A change
//! may leave it out: a closed database admits no transaction on a node before that node knows of
//! the opening. Rows that move need homes that know it, hence the third line.
//!
//! **Cancel** ([`Ddl::cancel`]) takes a change out of the queue, or undoes it as long as it is not
//! decided. Afterwards cancel has no effect: the answer, which then waits for no node that is down,
//! is what was done.

mod blocked;
mod filling;
mod locks;
mod quiet;

use crate::fill::Work;
use crate::message::DdlWork;
use crate::txns::place::{Place, Tries};
use base::full_name::beside;
use base::{IndexId, NodeId, ShardId, SqlError, SqlState, TableId, Time};
use catalog::{Asker, Catalog, ChangeId, Closing, Command, ProtocolKind, Stage};
use exec::fill::{Copied, FillPosition};
pub(crate) use locks::ASKED_US;
use locks::{Asking, locks_need_all_nodes};
use plan::Fill;
pub(crate) use quiet::QUIESCE_US;
use quiet::Quiet;
use rights::By;
use session::ConnId;
use session::message::{LockAsk, TxnHandle};
use session::undone::{needs_all_nodes, parted};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Origin of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A session of this shard.
    Session(ConnId),
    /// Another shard, with its number for the answer.
    Shard(ShardId, u64),
    /// A start: what a crash left unfinished is undone.
    Restart,
    /// A session or shard that was told already that the outcome is unknown.
    Told,
}

/// The next action for the running change.
#[derive(Debug)]
pub(crate) enum Action {
    /// Take this catalog into use, journal it and send it to all other shards.
    Publish(Arc<Catalog>),
    /// Start one batch of this work as a transaction and report its handle by [`Ddl::filling`].
    Fill {
        database: String,
        work: Box<Work>,
        /// Where the batch begins.
        position: Option<FillPosition>,
        place: Place,
    },
    /// Tell all shards that the catalog of this version changes these tables (none: that it does
    /// not come). The change goes on when they have answered ([`Ddl::on_quiesced`]).
    Quiesce { version: u64, tables: Vec<TableId> },
    /// Ask all shards who is in the way of this request for locks; `None`: it is over.
    AskLocks { number: u64, lock: Option<LockAsk> },
    /// Roll this batch back.
    EndBatch(TxnHandle),
    /// Answer.
    Answer(Origin, Answered),
}

/// What the shard that orders schema changes knows of the nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes<'a> {
    pub(crate) now: Time,
    /// [`crate::pace::Pace::rest_us`]
    pub(crate) rest_us: u64,
    /// Shards of nodes to which no connection stands.
    pub(crate) down: &'a [ShardId],
    /// The node has just started: shards that were not seen yet are waited for.
    pub(crate) starting: bool,
    /// Nodes without room on their disks.
    pub(crate) full: &'a BTreeSet<NodeId>,
}

#[derive(Debug)]
enum Step {
    Command(Box<Command>),
    Fill(Fill),
}

impl From<Command> for Step {
    fn from(command: Command) -> Step {
        Step::Command(Box::new(command))
    }
}

#[derive(Debug)]
enum Waiting {
    Nothing,
    /// Acknowledgements of this version by these shards. The shard that orders the changes
    /// acknowledges when its own record is durable.
    Acks {
        version: u64,
        missing: BTreeSet<ShardId>,
    },
    /// Quiet tables of the next command.
    Quiet(Quiet),
    /// A batch of a fill.
    Batch {
        fill: Fill,
        handle: Option<TxnHandle>,
        tries: Tries,
        /// When it begins, unless it has.
        begins: Time,
    },
}

#[derive(Debug)]
struct Change {
    origin: Origin,
    id: ChangeId,
    database: String,
    steps: VecDeque<Step>,
    undo: Vec<Command>,
    /// Number of commands that were applied; 0: there is nothing to undo.
    applied: u32,
    notices: Vec<String>,
    failure: Option<SqlError>,
    reserved: Vec<IndexId>,
    position: Option<FillPosition>,
    /// When the last batch ended, behind which there is a rest.
    rests_from: Option<Time>,
    waiting: Waiting,
    /// The database that has got a protocol under which rows move. It may be opened under that when
    /// every node knows.
    to_moving: Option<String>,
    /// A batch to roll back.
    unwanted: Option<TxnHandle>,
    /// Catalog version whose tables were quiesced last; `MAX`: no more are.
    quiesced: u64,
    /// Shards are to be told that the version does not come.
    unquiesce: bool,
    /// It locks tables: every shard must know before the client is told.
    locks: bool,
    /// Who asks, and for how many of the next commands its rights count.
    asker: Asker,
    asked: usize,
}

/// A change that has not begun.
#[derive(Debug)]
struct Queued {
    origin: Origin,
    database: String,
    work: DdlWork,
    /// When it fails unless the blocks that stand in its way have ended; set with the first.
    until: Option<Time>,
    /// The session whose block stands in its way, by the catalog of a version.
    checked: Option<(u64, Option<i32>)>,
    /// It locks tables, and waits for others.
    asking: Asking,
}

/// The queue of schema changes; used on the first shard of node 1 only.
#[derive(Default, Debug)]
pub(crate) struct Ddl {
    queue: VecDeque<Queued>,
    current: Option<Change>,
    /// A change whose end is decided by others; the catalog will tell it.
    abandoned: Option<(Origin, ChangeId)>,
    /// Last number of a change of a session of this shard.
    numbers: u64,
    /// Number of the last request for locks that shards were asked about, behind the first.
    lock_numbers: u64,
    /// Version of the catalog by which requests for locks were looked at; `None`: something has
    /// changed since.
    locks_seen: Option<u64>,
    /// The request that the running change carries out; 0: none.
    locking: u64,
    /// Requests that are over, of which shards are to be told.
    passed: Vec<u64>,
    /// Answers that other shards have not acknowledged, by shard and number.
    untold: BTreeMap<(ShardId, u64), Answered>,
}

/// Outcome of a change that closes something, by a catalog; `None`: it is still closed.
pub(crate) fn end_of(change: ChangeId, catalog: &Catalog) -> Option<Answered> {
    let closing = catalog.closing.filter(|closing| closing.change == change);
    match closing.map(|closing| closing.stage) {
        Some(Stage::Undecided | Stage::Decided) => None,
        Some(Stage::Done) => Some(Ok(Vec::new())),
        Some(Stage::Undone) => Some(Err(undone())),
        None => Some(Err(unknown())),
    }
}

/// The answer where the outcome of a change is unknown.
pub(crate) fn unknown() -> SqlError {
    let text = "node 1 was lost while the schema change was under way";
    SqlError::new(SqlState::TXN_UNKNOWN, text)
        .hint("Check whether the change has happened before you run the statement again.")
}

fn undecided() -> SqlError {
    let text = "too few nodes can be reached to decide what becomes of the schema change";
    SqlError::new(SqlState::TXN_UNKNOWN, text)
        .detail("What the change has closed is opened when enough nodes are back.")
        .hint("Check whether the change has happened before you run the statement again.")
}

fn undone() -> SqlError {
    let text = "node 1 was lost while the schema change was under way";
    SqlError::new(SqlState::OBJECT_NOT_READY, text)
        .detail("The schema change has been undone.")
        .hint("Run the statement again when node 1 is back.")
}

/// Notices of a change, or why it did not happen.
pub(crate) type Answered = Result<Vec<String>, SqlError>;

/// Attempts of a fill's batch that conflicts with running transactions.
const BATCH_ATTEMPTS_MAX: u32 = 100;

impl Ddl {
    /// The queue after a start with this catalog.
    pub(crate) fn recovered(here: ShardId, incarnation: u32, catalog: &Catalog) -> Ddl {
        let mut ddl = Ddl {
            numbers: u64::from(incarnation) << 32,
            lock_numbers: u64::from(incarnation) << 28,
            ..Ddl::default()
        };
        if here == ShardId(0) {
            ddl.undo_unfinished(catalog);
        }
        ddl
    }

    /// Adds a change.
    pub(crate) fn request(&mut self, origin: Origin, database: String, work: DdlWork) {
        self.queue.push_back(Queued {
            origin,
            database,
            work,
            until: None,
            checked: None,
            asking: Asking::default(),
        });
    }

    /// Sends an answer to another shard, and keeps it in case the connection breaks.
    pub(crate) fn tell(&mut self, to: ShardId, id: u64, result: Answered) {
        self.untold.insert((to, id), result);
    }

    /// The shard has got its answer.
    pub(crate) fn on_heard(&mut self, from: ShardId, id: u64) {
        self.untold.remove(&(from, id));
    }

    /// Answers that shards of a node may not have got.
    pub(crate) fn untold(&self, node: NodeId) -> Vec<(ShardId, u64, Answered)> {
        let of_node = self.untold.iter().filter(|((to, _), _)| to.node() == node);
        let answers = of_node.map(|((to, id), result)| (*to, *id, result.clone()));
        answers.collect()
    }

    /// Requests what undoes the changes that a crash of node 1 has cut off: indexes that are still
    /// building are dropped, reserved key spaces given up. Closed databases are opened first
    /// ([`crate::register`]).
    pub(crate) fn undo_unfinished(&mut self, catalog: &Catalog) {
        if catalog.is_closed() {
            return;
        }
        let mut before = Vec::new();
        for (database, content) in &catalog.databases {
            for table in content.tables.values() {
                let building = table.secondary.iter().filter(|index| index.building);
                let names: Vec<String> = building
                    .map(|index| beside(&table.name, &index.name))
                    .collect();
                if !names.is_empty() {
                    let database = database.clone();
                    before.push(Command::DropIndex {
                        database,
                        names,
                        if_exists: true,
                    });
                }
                before.extend(table.unfinished_constraints(database));
            }
        }
        let reserved = catalog
            .reserved
            .iter()
            .map(|index| Command::Unreserve { index: *index });
        before.extend(reserved);
        if !before.is_empty() {
            let work = DdlWork {
                before,
                fill: None,
                after: Vec::new(),
                undo: Vec::new(),
                asker: Asker::default(),
            };
            self.request(Origin::Restart, String::new(), work);
        }
    }

    /// Whether changes wait to begin.
    pub(crate) fn is_queueing(&self) -> bool {
        self.current.is_none() && !self.queue.is_empty()
    }

    /// Whether no change runs or waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none()
            && self.queue.is_empty()
            && self.abandoned.is_none()
            && !self.has_passed()
    }

    /// Whether a change is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.current.is_some()
    }

    /// Others decide how the running change ends. Returns the batch to roll back.
    pub(crate) fn abandon(&mut self) -> Option<TxnHandle> {
        let change = self.current.take()?;
        self.abandoned = Some((change.origin, change.id));
        self.end_lock();
        let running = match change.waiting {
            Waiting::Batch { handle, .. } => handle,
            Waiting::Nothing | Waiting::Acks { .. } | Waiting::Quiet(_) => None,
        };
        running.or(change.unwanted)
    }

    /// Too few nodes are left to decide how the change ends: its client is told.
    pub(crate) fn leave_open(&mut self) -> Option<Action> {
        let change = self.current.as_mut()?;
        let told = core::mem::replace(&mut change.origin, Origin::Told);
        (told != Origin::Told).then(|| Action::Answer(told, Err(undecided())))
    }

    /// The answer to a change that others have ended, if this catalog has it.
    pub(crate) fn end_abandoned(&mut self, catalog: &Catalog) -> Option<Action> {
        let (origin, change) = self.abandoned?;
        let result = end_of(change, catalog)?;
        self.abandoned = None;
        Some(Action::Answer(origin, result))
    }

    /// A shard has acknowledged versions up to `acked`; one that comes back may do so late.
    pub(crate) fn on_ack(&mut self, from: ShardId, acked: u64) {
        if let Some(change) = &mut self.current
            && let Waiting::Acks { version, missing } = &mut change.waiting
            && acked >= *version
        {
            missing.remove(&from);
        }
    }

    /// A shard cannot get through with a version: it has no connection to `node`, perhaps for long.
    /// A change that is not decided is undone.
    pub(crate) fn on_stuck(&mut self, from: ShardId, stuck: u64, node: NodeId) {
        if let Some(change) = &mut self.current
            && let Waiting::Acks { version, missing } = &change.waiting
            && *version == stuck
            && missing.contains(&from)
            && change.failure.is_none()
            && change.needs_everybody()
        {
            change.fail(parted(from.node(), node));
        }
    }

    fn id_of(&mut self, origin: Origin) -> ChangeId {
        match origin {
            Origin::Shard(by, number) => ChangeId { by, number },
            Origin::Session(_) | Origin::Restart | Origin::Told => {
                self.numbers += 1;
                ChangeId {
                    by: ShardId(0),
                    number: self.numbers,
                }
            }
        }
    }

    /// While what is closed waits for a decision: refuses a change that has not begun, as
    /// [`Ddl::next`] would.
    pub(crate) fn refuse(&mut self, nodes: Nodes<'_>) -> Option<Action> {
        if nodes.down.is_empty() || nodes.starting {
            return None;
        }
        let mut queue = self.queue.iter();
        let at = queue.position(|it| it.origin != Origin::Restart)?;
        let queued = self.queue.remove(at)?;
        self.forget_asking(&queued);
        Some(Action::Answer(
            queued.origin,
            Err(needs_all_nodes(nodes.down)),
        ))
    }

    /// The next action; `None`: the change waits.
    pub(crate) fn next(&mut self, catalog: &Arc<Catalog>, nodes: Nodes<'_>) -> Option<Action> {
        let down = nodes.down;
        if let Some(action) = self.tend_locks(catalog, nodes) {
            return Some(action);
        }
        if self.current.is_none() {
            let refused = self.begin(catalog, nodes);
            if self.current.is_none() {
                return refused;
            }
        }
        let change = self.current.as_mut().expect("just set");
        change.go_on_without(down);
        if let Some(batch) = change.unwanted.take() {
            return Some(Action::EndBatch(batch));
        }
        if core::mem::take(&mut change.unquiesce) {
            let (version, tables) = (change.quiesced, Vec::new());
            return Some(Action::Quiesce { version, tables });
        }
        match &change.waiting {
            Waiting::Nothing => {}
            Waiting::Acks { missing, .. } if missing.is_empty() => {
                change.waiting = Waiting::Nothing;
            }
            Waiting::Acks { .. } => return None,
            Waiting::Quiet(quiet) if quiet.is_over(nodes.now) => change.end_quiet(),
            Waiting::Quiet(_) => return None,
            Waiting::Batch {
                handle: None,
                fill,
                tries,
                begins,
            } if *begins <= nodes.now => {
                let (fill, place) = (fill.clone(), tries.place());
                return Some(change.batch(fill, place));
            }
            Waiting::Batch { .. } => return None,
        }
        match change.steps.pop_front() {
            Some(Step::Command(command)) => {
                if let Some(action) = change.quiesce(&command, catalog, nodes.now) {
                    change.steps.push_front(Step::Command(command));
                    return Some(action);
                }
                change.apply(&command, catalog)
            }
            Some(Step::Fill(fill)) => {
                let rested = change.rests_from.take();
                let rested = rested.map(|from| from.after(nodes.rest_us));
                let begins = rested.unwrap_or_default().max(nodes.now);
                change.waiting = Waiting::Batch {
                    fill: fill.clone(),
                    handle: None,
                    tries: Tries::default(),
                    begins,
                };
                let batch = || change.batch(fill, Tries::default().place());
                (begins == nodes.now).then(batch)
            }
            None => {
                let change = self.current.take().expect("just seen");
                self.end_lock();
                let result = change.failure.map_or(Ok(change.notices), Err);
                Some(Action::Answer(change.origin, result))
            }
        }
    }
}

impl Change {
    fn new(origin: Origin, id: ChangeId, database: String, work: DdlWork) -> Change {
        let (asked, locks) = (work.before.len(), work.locks());
        let mut steps: VecDeque<Step> = work.before.into_iter().map(Step::from).collect();
        if let Some(fill) = work.fill {
            let mut spaces = 0;
            for command in &work.after {
                if let Command::SetPrimaryKey { secondary, .. } = command {
                    spaces += 1 + secondary.len();
                }
            }
            let reserve = std::iter::repeat_with(|| Step::from(Command::Reserve));
            steps.extend(reserve.take(spaces));
            let stages = match fill {
                Fill::Stages(stages) => stages,
                fill @ (Fill::Index { .. }
                | Fill::Validate { .. }
                | Fill::PrimaryKey { .. }
                | Fill::Refers { .. }
                | Fill::Alter(_)
                | Fill::Decide(_)) => vec![fill.into()],
            };
            steps.extend(stages.into_iter().flat_map(|stage| {
                let commands = stage.commands.into_iter().map(Step::from);
                commands.chain(stage.fill.map(Step::Fill))
            }));
        }
        steps.extend(work.after.into_iter().map(Step::from));
        Change {
            origin,
            id,
            database,
            steps,
            undo: work.undo,
            applied: 0,
            notices: Vec::new(),
            failure: None,
            reserved: Vec::new(),
            position: None,
            rests_from: None,
            waiting: Waiting::Nothing,
            to_moving: None,
            unwanted: None,
            quiesced: 0,
            unquiesce: false,
            locks,
            asker: work.asker,
            asked,
        }
    }

    /// Whether a step runs or follows before which every node must be prepared: until then the
    /// change is not decided.
    fn needs_everybody(&self) -> bool {
        let fills = matches!(self.waiting, Waiting::Batch { .. });
        let closes = |command: &Command| {
            matches!(
                command,
                Command::Switch {
                    switching: Some(_),
                    ..
                } | Command::SetProtocol { .. }
            )
        };
        let mut steps = self.steps.iter();
        fills
            || self.locks
            || self.to_moving.is_some()
            || steps.any(|step| match step {
                Step::Fill(_) => true,
                Step::Command(command) => closes(command),
            })
    }

    /// Decides how the change goes on without nodes that are down and that it waits for.
    fn go_on_without(&mut self, down: &[ShardId]) {
        if down.is_empty() {
            return;
        }
        if self.failure.is_none() && self.needs_everybody() {
            let awaited = match &self.waiting {
                Waiting::Acks { missing, .. } => down.iter().any(|shard| missing.contains(shard)),
                Waiting::Batch { handle, .. } => handle.is_none(),
                Waiting::Nothing | Waiting::Quiet(_) => false,
            };
            if awaited {
                self.fail(match self.locks {
                    true => locks_need_all_nodes(down),
                    false => needs_all_nodes(down),
                });
            }
        }
        if self.failure.is_none() && self.is_untouched() {
            self.fail(needs_all_nodes(down));
        }
        if let Waiting::Acks { missing, .. } | Waiting::Quiet(Quiet { missing, .. }) =
            &mut self.waiting
        {
            missing.retain(|shard| !down.contains(shard));
        }
    }

    /// From here on only commands that undo the change run.
    fn fail(&mut self, error: SqlError) {
        if self.failure.is_none() {
            let waiting = core::mem::replace(&mut self.waiting, Waiting::Nothing);
            match waiting {
                Waiting::Batch { handle, .. } => self.unwanted = handle,
                Waiting::Quiet(_) => self.unquiesce = true,
                Waiting::Nothing | Waiting::Acks { .. } => {}
            }
            self.failure = Some(error);
            self.steps.clear();
            self.asked = 0;
            if let Some(database) = self.to_moving.take() {
                let protocol = ProtocolKind::COMMON;
                let back = Command::SetProtocol { database, protocol };
                self.steps.push_back(Step::from(back));
            }
            if self.applied > 0 {
                self.steps
                    .extend(core::mem::take(&mut self.undo).into_iter().map(Step::from));
            }
            let reserved = core::mem::take(&mut self.reserved).into_iter();
            self.steps
                .extend(reserved.map(|index| Step::from(Command::Unreserve { index })));
        }
    }

    fn apply(&mut self, command: &Command, catalog: &Arc<Catalog>) -> Option<Action> {
        let mut asker = self.asker.clone();
        if self.asked == 0 {
            asker.by = By::default();
        }
        self.asked = self.asked.saturating_sub(1);
        match catalog.apply_for(command, &asker, &self.database) {
            Err(error) => {
                assert!(
                    self.failure.is_none(),
                    "what undoes a change cannot fail: {error}"
                );
                self.fail(error);
                Some(Action::Publish(catalog.clone()))
            }
            Ok((mut next, applied)) => {
                if let Some(notice) = applied.skipped {
                    self.notices.push(notice);
                    self.steps.clear();
                    return Some(Action::Publish(catalog.clone()));
                }
                if *command == Command::Reserve {
                    self.reserve(IndexId(applied.reserved));
                }
                self.notices.extend(applied.notices);
                self.applied += 1;
                self.to_moving = None;
                if let Command::SetProtocol { database, protocol } = command
                    && protocol.moves_rows()
                {
                    self.to_moving = Some(database.clone());
                }
                self.sign(catalog, &mut next);
                self.waiting = Waiting::Acks {
                    version: next.version,
                    missing: next.placement.shards().iter().copied().collect(),
                };
                Some(Action::Publish(Arc::new(next)))
            }
        }
    }

    /// Notes in the next catalog how far a change has come that closes something.
    fn sign(&self, before: &Catalog, next: &mut Catalog) {
        let stage = match (before.is_closed(), next.is_closed()) {
            (_, true) if self.failure.is_none() && !self.needs_everybody() => Stage::Decided,
            (_, true) => Stage::Undecided,
            (true, false) if self.failure.is_none() => Stage::Done,
            (true, false) => Stage::Undone,
            (false, false) => return,
        };
        let change = self.id;
        next.closing = Some(Closing { change, stage });
    }

    /// Reserves this key space for a new primary key, or for an index that is written with it.
    fn reserve(&mut self, id: IndexId) {
        self.reserved.push(id);
        for step in &mut self.steps {
            let Step::Command(command) = step else {
                continue;
            };
            if let Some(index) = command.unplaced() {
                index.id = id;
            }
        }
    }

    /// The copy of a table that the change makes.
    fn copied(&self, table: String) -> Copied {
        let target = self.steps.iter().find_map(|step| {
            let Step::Command(command) = step else {
                return None;
            };
            let Command::SetPrimaryKey {
                primary,
                secondary,
                columns,
                ..
            } = &**command
            else {
                return None;
            };
            Some((primary.clone(), secondary.clone(), columns.clone()))
        });
        let (primary, secondary, columns) = target.expect("a copy is followed by its use");
        Copied {
            table,
            primary,
            secondary,
            columns,
        }
    }

    fn batch(&self, fill: Fill, place: Place) -> Action {
        let work = match fill {
            Fill::Index { table, index } => Work::Index { table, index },
            Fill::Validate { table, constraint } => Work::Validate { table, constraint },
            Fill::Alter(fill) => Work::Alter(fill),
            Fill::Decide(marker) => Work::Decide(marker),
            Fill::PrimaryKey { table } => Work::PrimaryKey(self.copied(table)),
            Fill::Refers {
                table,
                child,
                constraint,
            } => Work::Refers {
                copy: self.copied(table),
                child,
                constraint,
            },
            Fill::Stages(_) => unreachable!("each is a step"),
        };
        Action::Fill {
            database: self.database.clone(),
            work: Box::new(work),
            position: self.position.clone(),
            place,
        }
    }
}

#[cfg(test)]
mod tests;
