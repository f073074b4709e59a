//! What a session makes for itself: tables, views and sequences that go with it.
//!
//! They are objects of the catalog in a schema of the session (docs/adr/0034-temporary-tables.md).
//! The session knows what a commit does with each, and takes away what a rollback undoes:
//!
//! | at | what goes |
//! |---|---|
//! | COMMIT | rows written to tables with ON COMMIT DELETE ROWS, in the same transaction |
//! | behind COMMIT | tables with ON COMMIT DROP, before the client is told |
//! | ROLLBACK, ROLLBACK TO, an error outside of a block | what was made since |
//! | DROP TABLE in a block | the name at once, the table at the block's end |
//! | the end of the session | everything (`node`, `machine::sweep`) |

use super::ddl::DdlWait;
use super::run::Start;
use super::{Activity, Block, Session, SessionCx};
use crate::message::DdlCall;
use base::full_name::{own, schema_of, temporary_of};
use base::{Position, SqlError, SqlState};
use catalog::{Command, Database, SchemaChange, Table, TableAction, mark, quoted, temporary_name};
use parse::{OnCommit, Statement};
use plan::{DdlPlan, Plan};
use rights::ObjectKind;
use std::sync::Arc;
use wire::{Reply, Severity, Tag};

/// What a session has made for itself.
#[derive(Default)]
pub(super) struct Temporary {
    relations: Vec<Relation>,
    /// Full name of the relation that a schema change makes, and what a commit does with it.
    making: Option<(String, OnCommit)>,
    /// Numbers of relations that are to go.
    doomed: Vec<u32>,
    /// Numbers of those that could not be taken away: they go with the next.
    kept: Vec<u32>,
    /// Numbers of tables that get another name now and go at the end of the block: a block that has
    /// used a table does not outlive it.
    hiding: Vec<u32>,
    hidden: Vec<u32>,
    /// The statement that begins when they are gone.
    resumes: Option<Start>,
}

struct Relation {
    /// Its number.
    id: u32,
    on_commit: OnCommit,
    /// Number of savepoints that were open when the present block or query string made it; `None`:
    /// an earlier one did.
    made: Option<usize>,
    /// The open transaction has written to it.
    written: bool,
}

/// What follows when relations are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    /// The end of a command, with its tag.
    Complete,
    /// The end of the query string or pipeline.
    EndBatch,
    /// The statement that waits.
    Resume,
    /// What the changes of a block are followed by.
    Changes,
}

impl Temporary {
    fn has(&self, id: u32) -> bool {
        self.relations.iter().any(|relation| relation.id == id)
    }

    /// Takes what the block, or its part behind `savepoints` open ones, has made.
    fn doom_made(&mut self, savepoints: usize) {
        let is_new = |relation: &mut Relation| relation.made.is_some_and(|made| made >= savepoints);
        let gone = self.relations.extract_if(.., is_new);
        self.doomed.extend(gone.map(|relation| relation.id));
        if savepoints == 0 {
            self.doomed.append(&mut self.hidden);
        }
    }

    /// The transaction has been committed.
    fn settle(&mut self) {
        for relation in &mut self.relations {
            (relation.made, relation.written) = (None, false);
        }
        let drops = |relation: &mut Relation| relation.on_commit == OnCommit::Drop;
        let gone = self.relations.extract_if(.., drops);
        self.doomed.extend(gone.map(|relation| relation.id));
        self.doomed.append(&mut self.hidden);
    }
}

/// Gives tables other names, by which nobody asks for them.
fn hiding(database: &Database, ids: &[u32]) -> Vec<Command> {
    let tables = database.tables.values();
    let tables = tables.filter(|table| ids.contains(&table.id.0));
    let rename = |table: &Arc<Table>| Command::AlterTable {
        database: database.name.clone(),
        table: table.name.clone(),
        actions: vec![TableAction::RenameTable {
            to: format!("pg_dropped_{}", table.id.0),
        }],
    };
    tables.map(rename).collect()
}

/// Commands that take relations away, with the steps of one catalog version each.
fn dropping(database: &Database, ids: &[u32]) -> Vec<Command> {
    let of = |wanted: ObjectKind| -> Vec<String> {
        let found = database.relations();
        let found = found.filter(|(_, kind, id)| ids.contains(id) && *kind == wanted);
        found.map(|(name, ..)| name.to_string()).collect()
    };
    let name = || database.name.clone();
    let (views, tables, sequences) = (
        of(ObjectKind::View),
        of(ObjectKind::Table),
        of(ObjectKind::Sequence),
    );
    let mut commands = Vec::new();
    if !tables.is_empty() {
        commands.push(Command::DropTable {
            database: name(),
            names: tables,
            if_exists: true,
            cascade: true,
        });
    }
    if !views.is_empty() {
        commands.push(Command::DropView {
            database: name(),
            names: views,
            if_exists: true,
            cascade: true,
        });
    }
    if !sequences.is_empty() {
        commands.push(Command::DropSequence {
            database: name(),
            names: sequences,
            if_exists: true,
            cascade: true,
        });
    }
    commands
}

impl Session {
    /// Whether the session has made something for itself, or is about to.
    pub fn has_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The schema for what the session makes for itself, if names are to be looked up there.
    pub(super) fn own_schema(&self) -> Option<u32> {
        self.has_temporary().then(|| temporary_of(self.pid))
    }

    /// A statement is about to be planned: one that makes something for the session looks names up
    /// in its schema.
    pub(super) fn note_temporary(&mut self, statement: &Statement) {
        if self.temporary.is_none() && statement.makes_temporary() {
            self.begin_temporary();
        }
    }

    pub(super) fn begin_temporary(&mut self) {
        self.temporary = Some(Box::default());
        self.acting.forget_path();
    }

    /// A schema change begins. The first that makes something for the session finds nothing that a
    /// session with the same backend number has left.
    pub(super) fn make_temporary(&mut self, cx: &SessionCx<'_>, plan: &mut DdlPlan) {
        let Some(made) = plan.temporary.clone() else {
            return;
        };
        let left = match self.database(cx) {
            Ok(database) => database.has_temporary(self.pid),
            Err(_) => false,
        };
        let temporary = self.temporary.get_or_insert_default();
        if left && temporary.is_untouched() {
            let database = self.database.to_string();
            plan.before.insert(0, drop_schema(database, self.pid));
        }
        temporary.making = Some(made);
        if let Some(txn) = &mut self.txn {
            txn.retryable = false;
        }
    }

    /// A schema change has ended well, or failed.
    pub(super) fn made_temporary(&mut self, cx: &SessionCx<'_>, done: bool) {
        let Some(temporary) = &mut self.temporary else {
            return;
        };
        let hiding = core::mem::take(&mut temporary.hiding);
        if done && !hiding.is_empty() {
            let is_hidden = |relation: &mut Relation| hiding.contains(&relation.id);
            temporary.relations.retain_mut(|it| !is_hidden(it));
            temporary.hidden.extend(hiding);
        }
        let Some((name, on_commit)) = temporary.making.take().filter(|_| done) else {
            return;
        };
        let found = cx.catalog.databases.get(&*self.database);
        let found = found.and_then(|database| database.relation(&name));
        if let Some((_, id)) = found.filter(|(_, id)| !temporary.has(*id)) {
            let made = Some(self.savepoints.len());
            temporary.relations.push(Relation {
                id,
                on_commit,
                made,
                written: false,
            });
        }
    }

    /// Notes to which tables with ON COMMIT DELETE ROWS a statement writes. Whether there are any.
    pub(super) fn note_emptied(&mut self, plan: &Plan) -> bool {
        let Some(temporary) = &mut self.temporary else {
            return false;
        };
        let emptied = |relation: &&mut Relation| relation.on_commit == OnCommit::Delete;
        for relation in temporary.relations.iter_mut().filter(emptied) {
            plan.each_written(&mut |table| relation.written |= table.0 == relation.id);
        }
        let mut relations = temporary.relations.iter();
        relations.any(|relation| relation.written)
    }

    /// A statement that takes the rows of the next table away that loses them at the commit; the
    /// youngest first, for others may refer to its elders.
    pub(super) fn next_emptied(&mut self, cx: &SessionCx<'_>) -> Option<String> {
        let database = cx.catalog.databases.get(&*self.database)?;
        let relations = &mut self.temporary.as_mut()?.relations;
        loop {
            let relation = relations
                .iter_mut()
                .rev()
                .find(|relation| relation.written)?;
            relation.written = false;
            let mut tables = database.tables.values();
            if let Some(table) = tables.find(|table| table.id.0 == relation.id) {
                let (schema, name) = (mark(schema_of(&table.name)), own(&table.name));
                return Some(format!("DELETE FROM {schema}.{}", quoted(name)));
            }
        }
    }

    /// The transaction was rolled back outside of a block.
    pub(super) fn doom_made(&mut self, savepoints: usize) {
        if let Some(temporary) = &mut self.temporary {
            temporary.doom_made(savepoints);
            for relation in &mut temporary.relations {
                relation.written = false;
            }
        }
    }

    /// RELEASE leaves this many savepoints.
    pub(super) fn join_made(&mut self, savepoints: usize) {
        let relations = self.temporary.iter_mut().flat_map(|it| &mut it.relations);
        for made in relations.filter_map(|relation| relation.made.as_mut()) {
            *made = savepoints.min(*made);
        }
    }

    /// The transaction has been committed.
    pub(super) fn settle_temporary(&mut self) {
        if let Some(temporary) = &mut self.temporary {
            temporary.settle();
        }
    }

    /// Ends COMMIT and ROLLBACK when what goes with them is gone.
    pub(super) fn complete_gone(
        &mut self,
        cx: &mut SessionCx<'_>,
        tag: &'static str,
        wait: Position,
    ) {
        if !self.take_away(cx, (tag, wait), Then::Complete) {
            self.say(Reply::CommandComplete(Tag::Word(tag)), wait);
        }
    }

    /// Has relations dropped that are to go. Whether there are any.
    pub(super) fn take_away(
        &mut self,
        cx: &mut SessionCx<'_>,
        (tag, wait): (&'static str, Position),
        then: Then,
    ) -> bool {
        let Some(temporary) = &mut self.temporary else {
            return false;
        };
        if temporary.doomed.is_empty() {
            return false;
        }
        temporary.doomed.append(&mut temporary.kept);
        let found = cx.catalog.databases.get(&*self.database);
        let before = found.map_or(Vec::new(), |found| dropping(found, &temporary.doomed));
        if before.is_empty() {
            temporary.doomed.clear();
            return false;
        }
        self.clean(cx, before, (tag, wait), then);
        true
    }

    /// Keeps ROLLBACK TO until what was made since is gone. `None`: it waits.
    pub(super) fn after_made(
        &mut self,
        cx: &mut SessionCx<'_>,
        savepoints: usize,
        start: Start,
    ) -> Option<Start> {
        self.doom_made(savepoints);
        let Some(temporary) = &mut self.temporary else {
            return Some(start);
        };
        let mut doomed = core::mem::take(&mut temporary.doomed);
        let found = cx.catalog.databases.get(&*self.database);
        let Some(database) = found.filter(|_| !doomed.is_empty()) else {
            return Some(start);
        };
        let mut before = hiding(database, &doomed);
        let is_table = |id: &mut u32| database.tables.values().any(|table| table.id.0 == *id);
        temporary.hidden.extend(doomed.extract_if(.., is_table));
        before.splice(0..0, dropping(database, &doomed));
        if before.is_empty() {
            return Some(start);
        }
        temporary.resumes = Some(start);
        self.clean(cx, before, ("ROLLBACK", Position(0)), Then::Resume);
        None
    }

    /// DROP TABLE in a block of tables that it may have used: they lose their names now, and go at
    /// its end. `None`: it is something else, or something depends on them.
    pub(super) fn hiding(&mut self, cx: &SessionCx<'_>, plan: &DdlPlan) -> Option<DdlPlan> {
        let [Command::DropTable { names, .. }] = plan.before.as_slice() else {
            return None;
        };
        let database = self.database(cx).ok()?.clone();
        let temporary = self.temporary.as_mut()?;
        let mut ids = Vec::new();
        for name in names {
            let table = database.tables.get(name)?;
            let free =
                table.referenced_by.is_empty() && database.views_using(name, None).is_empty();
            if !free || !temporary.has(table.id.0) || ids.contains(&table.id.0) {
                return None;
            }
            ids.push(table.id.0);
        }
        let before = hiding(&database, &ids);
        temporary.hiding = ids;
        Some(DdlPlan {
            before,
            ..plan.clone()
        })
    }

    /// Whether the schema change hides tables that go at the end of the block.
    pub(super) fn is_hiding(&self) -> bool {
        let temporary = self.temporary.as_ref();
        temporary.is_some_and(|temporary| !temporary.hiding.is_empty())
    }

    fn clean(
        &mut self,
        cx: &mut SessionCx<'_>,
        before: Vec<Command>,
        (tag, wait): (&'static str, Position),
        then: Then,
    ) {
        let plan = DdlPlan {
            tag,
            before,
            fill: None,
            after: Vec::new(),
            undo: Vec::new(),
            notices: Vec::new(),
            temporary: None,
        };
        let database = self.database.to_string();
        let ask = DdlCall::Ask(self.conn, database, Box::new(plan), self.asker(None));
        cx.ddl.push_back(ask);
        self.activity = Activity::Ddl(DdlWait::cleaning(tag, wait, then));
    }

    /// What was to go is gone, or could not be taken away: then it goes later.
    pub(super) fn cleaned(
        &mut self,
        cx: &mut SessionCx<'_>,
        result: Result<(), SqlError>,
        (tag, wait, then): (&'static str, Position, Then),
    ) {
        if then == Then::Changes {
            return self.changes_told(cx, result);
        }
        self.activity = Activity::Idle;
        let Some(temporary) = &mut self.temporary else {
            return;
        };
        let resumes = temporary.resumes.take();
        match result {
            Ok(()) => temporary.doomed.clear(),
            Err(error) => {
                temporary.kept.append(&mut temporary.doomed);
                let text = "temporary relations could not be dropped yet";
                let warning = SqlError::new(SqlState::WARNING, text);
                let detail = error.fields().message.clone();
                self.notice(Severity::Warning, warning.detail(detail));
            }
        }
        match (then, resumes) {
            (Then::Complete, _) => self.say(Reply::CommandComplete(Tag::Word(tag)), wait),
            (Then::EndBatch, _) => self.end_batch(cx, wait),
            (Then::Resume, Some(start)) => self.start(cx, start),
            (Then::Resume, None) | (Then::Changes, _) => {}
        }
    }

    /// Before the end of a query string or pipeline. Whether it waits for relations to go.
    pub(super) fn ends_later(&mut self, cx: &mut SessionCx<'_>, wait: Position) -> bool {
        if self.temporary.is_none() || matches!(self.block, Block::Explicit | Block::Failed) {
            return false;
        }
        self.settle_temporary();
        self.take_away(cx, ("", wait), Then::EndBatch)
    }

    /// DISCARD TEMP, and the last part of DISCARD ALL.
    pub(super) fn discard_temporary(&mut self, cx: &mut SessionCx<'_>, tag: &'static str) {
        let has = |database: &Database| database.has_temporary(self.pid);
        let found = self.database(cx).ok().filter(|database| has(database));
        let (Some(database), Some(temporary)) = (found, &mut self.temporary) else {
            return self.complete(Tag::Word(tag));
        };
        temporary.relations.clear();
        let before = vec![drop_schema(database.name.clone(), self.pid)];
        self.clean(cx, before, (tag, Position(0)), Then::Complete);
    }
}

impl Temporary {
    /// Whether the session has made nothing yet.
    fn is_untouched(&self) -> bool {
        self.relations.is_empty() && self.making.is_none() && self.doomed.is_empty()
    }
}

/// The command that takes the schema of a session away, with all that is in it.
pub fn drop_schema(database: String, pid: i32) -> Command {
    Command::Schema {
        database,
        change: SchemaChange::Drop {
            names: vec![temporary_name(pid)],
            if_exists: true,
            cascade: true,
        },
    }
}
