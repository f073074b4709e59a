//! CREATE TABLE ... AS and materialized views. A new table is made first, as every schema change
//! is, and then filled by an INSERT in a transaction. If that fails the table goes again, before
//! the client is told. REFRESH deletes the rows and fills the table in one transaction.
//!
//! A materialized view that may not be read yet is opened by a schema change behind the commit. In
//! a block that is done at once: others see a table of the block as an empty one.
//!
//! A block that has written to a table does itself what an index or a constraint of that table
//! needs of its rows: nobody else sees what it has written. See `own`.

use super::own::Change;
use super::plans::Prepared;
use super::run::Start;
use super::{Activity, Block, Session, SessionCx, errors};
use crate::preparing;
use crate::statements::Counting;
use base::{Position, SqlError, Tag, Time};
use bind::PlanCx;
use plan::{CreateAs, DdlPlan, Fill, Plan, Refresh};
use rights::{RoleId, Target};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use wire::Reply;

/// The tag of REFRESH.
const REFRESH: &str = "REFRESH MATERIALIZED VIEW";

/// What is done with rows once a schema change has been made.
#[derive(Clone)]
pub(super) enum Rows {
    /// Nothing.
    Keep,
    /// A statement that inserts them.
    Insert(Box<str>),
    /// What a schema change asks for.
    Work(Fill),
}

/// A table that is being made and filled.
pub(super) struct Filling {
    pub(super) rows: Rows,
    /// Full name of the materialized view that is filled.
    pub(super) stored: Option<String>,
    /// Takes the table away if it cannot be filled.
    pub(super) undo: Option<DdlPlan>,
    /// Lets others read it.
    pub(super) finish: Option<DdlPlan>,
    /// Nothing that belongs to the same transaction follows the statement.
    pub(super) last: bool,
    /// The tag of the statement, unless it counts rows.
    pub(super) tag: Option<&'static str>,
    /// As whom it is done, if not as the session's role.
    pub(super) owner: Option<RoleId>,
    /// When `statement_timeout` ends the statement, whatever its stage.
    pub(super) until: Option<Time>,
    pub(super) stage: Stage,
}

/// What bounds a schema change that is a stage of a statement.
pub(super) enum FillingLimit {
    /// What is left of the statement's time.
    Time(Option<Time>),
    /// Nothing: the statement has failed, and its table goes.
    Undoing,
}

pub(super) enum Stage {
    /// What the transaction has written goes to its shards, before a schema change of the tables.
    Writing(Box<Change>),
    /// The tables of the change are being locked.
    Locking(Box<DdlPlan>),
    /// The table is being made.
    Creating,
    /// Its rows are deleted.
    Emptying,
    /// The INSERT runs.
    Inserting,
    /// What the pass has written goes to its shards, before the commands behind it.
    Handing(Tag),
    /// It may be read from now on; the tag of the statement.
    Opening(Tag),
    /// It has failed, and the table is being dropped.
    Undoing(SqlError, Position),
}

impl Session {
    pub(super) fn create_as(&mut self, cx: &mut SessionCx<'_>, create: &CreateAs) {
        self.filling = Some(Box::new(Filling {
            rows: Rows::Insert(create.insert.clone()),
            stored: create.stored.clone(),
            undo: Some(create.undo.clone()),
            finish: create.finish.clone(),
            last: true,
            tag: None,
            owner: None,
            until: self.time_limit(cx.now),
            stage: Stage::Creating,
        }));
        self.ddl(cx, &create.create);
    }

    pub(super) fn refresh(&mut self, cx: &mut SessionCx<'_>, refresh: &Refresh, last: bool) {
        let Refresh {
            name,
            empty,
            insert,
            finish,
        } = refresh;
        if self.present_modes().read_only {
            return self.fail(cx, errors::read_only(REFRESH), Position(0));
        }
        // Its owner reads, whoever refreshes: a superuser shows the owner no rows that policies
        // hide from it.
        let table = self.database(cx).ok().and_then(|here| here.table(name));
        let owner = table.map(|table| cx.catalog.rights.owner(&Target::Relation(table.id.0)));
        self.filling = Some(Box::new(Filling {
            rows: Rows::Insert(insert.clone()),
            stored: Some(name.clone()),
            undo: None,
            finish: finish.clone(),
            last,
            tag: Some(REFRESH),
            owner,
            until: self.time_limit(cx.now),
            stage: Stage::Emptying,
        }));
        self.forget_role();
        self.know_role(cx);
        self.enter_implicit_block();
        self.start_own(cx, empty, false);
    }

    /// When `statement_timeout` ends a statement that begins now.
    pub(super) fn time_limit(&self, now: Time) -> Option<Time> {
        let timeout_us = self.settings.knobs.statement_timeout_us;
        (timeout_us > 0).then(|| self.timeout_from(now).after(timeout_us))
    }

    /// What bounds the schema change that is the present stage of a statement that fills a table.
    pub(super) fn filling_limit(&self) -> Option<FillingLimit> {
        let filling = self.filling.as_ref()?;
        Some(match filling.stage {
            Stage::Undoing(..) => FillingLimit::Undoing,
            Stage::Writing(_)
            | Stage::Locking(_)
            | Stage::Creating
            | Stage::Emptying
            | Stage::Inserting
            | Stage::Handing(_)
            | Stage::Opening(_) => FillingLimit::Time(filling.until),
        })
    }

    /// Whether a failed statement takes its table away.
    pub(super) fn is_undoing(&self) -> bool {
        matches!(self.filling_limit(), Some(FillingLimit::Undoing))
    }

    fn start_rows(&mut self, cx: &mut SessionCx<'_>, rows: &Rows, last: bool) {
        match rows {
            Rows::Keep => {}
            Rows::Insert(text) => self.start_own(cx, text, last),
            Rows::Work(fill) => {
                let plan = Plan::fill(fill.clone(), cx.catalog.version);
                let start = self.own_plan(cx, plan);
                self.start_stage(cx, start, last);
            }
        }
    }

    /// The start of a plan without a text.
    pub(super) fn own_plan(&self, cx: &SessionCx<'_>, plan: Plan) -> Result<Start, SqlError> {
        let database = self.database(cx)?.id;
        Ok(started(Rc::new(Prepared {
            leftovers: None,
            text: "".into(),
            statement: None,
            declared: Box::default(),
            plan: Some(Arc::new(plan)),
            counted: 0,
            database,
            allowed: Cell::default(),
            counting: Counting::default(),
        })))
    }

    /// Starts a statement that changes the rows of what is being filled.
    fn start_own(&mut self, cx: &mut SessionCx<'_>, text: &str, last: bool) {
        let stored = self.filling.as_ref().and_then(|it| it.stored.clone());
        let start = match stored {
            None => self.own_statement(cx, text),
            Some(name) => self.stored_statement(cx, text, &name),
        };
        self.start_stage(cx, start, last);
    }

    /// Starts a stage of the statement that fills, which has what is left of that one's time.
    fn start_stage(&mut self, cx: &mut SessionCx<'_>, start: Result<Start, SqlError>, last: bool) {
        let until = self.filling.as_ref().and_then(|it| it.until);
        match start {
            Ok(start) => {
                let start = Start {
                    last,
                    until,
                    ..start
                };
                self.start_part(cx, start);
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    /// The schema change of a table that is being filled has ended. Whether that was all of it.
    pub(super) fn filled_ddl(
        &mut self,
        cx: &mut SessionCx<'_>,
        result: &Result<Vec<String>, SqlError>,
    ) -> bool {
        let Some(mut filling) = self.filling.take() else {
            return true;
        };
        match (filling.stage, result) {
            (Stage::Locking(change), Ok(_)) => {
                filling.stage = Stage::Creating;
                self.filling = Some(filling);
                self.activity = Activity::Idle;
                self.start_ddl(cx, &change);
                false
            }
            (Stage::Creating, Ok(notices)) => {
                if matches!(filling.rows, Rows::Keep) {
                    return true;
                }
                // A table of that name was there already.
                if notices
                    .iter()
                    .any(|text| text.ends_with("already exists, skipping"))
                {
                    return true;
                }
                filling.stage = Stage::Inserting;
                let rows = filling.rows.clone();
                self.filling = Some(filling);
                self.activity = Activity::Idle;
                self.start_rows(cx, &rows, true);
                false
            }
            (Stage::Opening(tag), Ok(_)) => {
                self.forget_role();
                self.activity = Activity::Idle;
                self.say(Reply::CommandComplete(tag), Position(0));
                false
            }
            (Stage::Undoing(error, wait), _) => {
                self.activity = Activity::Idle;
                self.fail(cx, error, wait);
                false
            }
            (
                Stage::Writing(_)
                | Stage::Locking(_)
                | Stage::Creating
                | Stage::Emptying
                | Stage::Inserting
                | Stage::Handing(_)
                | Stage::Opening(_),
                _,
            ) => {
                self.forget_role();
                true
            }
        }
    }

    /// A statement of the session's own.
    pub(super) fn own_statement(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
    ) -> Result<Start, SqlError> {
        let statements = parse::parse(text)?;
        let statement = statements.first().expect("the text is a statement");
        let prepared = self.prepare_statement(cx, statement, &[])?;
        Ok(started(prepared))
    }

    /// A statement that changes the rows of a materialized view, which only REFRESH may: planned
    /// as if it was a table, and for this time only.
    fn stored_statement(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
        name: &str,
    ) -> Result<Start, SqlError> {
        let statements = parse::parse(text)?;
        let statement = statements.first().expect("the text is a statement");
        let database = self.database(cx)?;
        let (id, mut open) = (database.id, database.clone());
        Arc::make_mut(&mut open).stored.remove(name);
        let statistics = &*cx.statistics;
        let site = self.site(cx);
        let plan_cx = PlanCx {
            catalog: cx.catalog,
            database: &open,
            param_types: &[],
            param_names: &[],
            zone: &site.zone,
            path: &site.path,
            viewer: site.viewer,
            rows: &|table| statistics.rows(id, table),
            values: &|table| statistics.values(id, table),
            paths: Default::default(),
        };
        let plan = preparing::plan(cx.barrier, statement, &plan_cx)?;
        Ok(started(Rc::new(Prepared {
            leftovers: None,
            text: statement.text().into(),
            statement: Some(statement.clone()),
            declared: Box::default(),
            plan: Some(plan),
            counted: cx.statistics.version(id),
            database: id,
            allowed: Cell::default(),
            counting: Counting::default(),
        })))
    }

    /// As whom rows are read that fill something.
    pub(super) fn filling_as(&self) -> Option<RoleId> {
        self.filling.as_ref()?.owner
    }

    /// Whether the client is not told of the end of the last step.
    pub(super) fn is_quiet(&self) -> bool {
        let stage = self.filling.as_ref().map(|filling| &filling.stage);
        matches!(
            stage,
            Some(Stage::Writing(_) | Stage::Emptying | Stage::Handing(_) | Stage::Opening(_))
        )
    }

    /// The tag of a statement that has ended well: of one that has filled a table, that of its
    /// query.
    pub(super) fn filled(&mut self, tag: Tag) -> Tag {
        let Some(filling) = &mut self.filling else {
            return tag;
        };
        let tag = match (filling.tag, tag) {
            (Some(word), _) => Tag::Word(word),
            (None, Tag::Insert(rows)) => Tag::Count("SELECT", rows),
            (None, tag) => tag,
        };
        match (&filling.stage, filling.finish.is_some()) {
            (Stage::Writing(_) | Stage::Emptying, _) => {}
            (Stage::Handing(tag), _) => filling.stage = Stage::Opening(*tag),
            (_, true) if matches!(filling.rows, Rows::Work(_)) => {
                filling.stage = Stage::Handing(tag);
            }
            (_, true) => filling.stage = Stage::Opening(tag),
            (_, false) => {
                self.filling = None;
                self.forget_role();
            }
        }
        tag
    }

    /// The last step has ended. Whether something follows before its statement has.
    pub(super) fn fills_on(&mut self, cx: &mut SessionCx<'_>) -> bool {
        let explicit = self.block == Block::Explicit;
        let Some(filling) = &mut self.filling else {
            return false;
        };
        match &filling.stage {
            Stage::Writing(_) => {
                self.start_own_change(cx);
                true
            }
            Stage::Emptying => {
                filling.stage = Stage::Inserting;
                let last = !explicit && (filling.last || filling.finish.is_some());
                let rows = filling.rows.clone();
                self.start_rows(cx, &rows, last);
                true
            }
            Stage::Handing(_) => {
                self.hand_over(cx);
                true
            }
            Stage::Opening(_) => {
                let finish = filling.finish.clone().expect("it opens something");
                self.start_ddl(cx, &finish);
                true
            }
            Stage::Locking(_) | Stage::Creating | Stage::Inserting | Stage::Undoing(..) => false,
        }
    }

    /// A statement fails. If it is one that fills a table, the table goes first; whether that has
    /// begun.
    pub(super) fn undo_filling(
        &mut self,
        cx: &mut SessionCx<'_>,
        error: &SqlError,
        wait: Position,
    ) -> bool {
        let Some(mut filling) = self.filling.take() else {
            return false;
        };
        self.forget_role();
        if matches!(self.block, Block::Explicit | Block::Failed) {
            // The table goes with the block.
            return false;
        }
        let (Stage::Inserting, Some(undo)) = (&filling.stage, filling.undo.take()) else {
            return false;
        };
        self.roll_back(cx);
        filling.stage = Stage::Undoing(error.clone(), wait);
        self.filling = Some(filling);
        self.start_ddl(cx, &undo);
        true
    }
}

/// The start of a statement of the session's own.
fn started(prepared: Rc<Prepared>) -> Start {
    Start {
        prepared,
        params: Arc::from([]),
        formats: Arc::from([]),
        describe: false,
        rows_max: 0,
        portal: None,
        last: true,
        many: false,
        declares: None,
        until: None,
    }
}
