//! The simple query protocol: a string of statements, one transaction unless it says otherwise.

use super::plans::Prepared;
use super::run::{Ending, Start};
use super::{Block, Session, SessionCx, errors};
use crate::barrier::behind;
use crate::preparing;
use crate::statements::Counting;
use base::{Position, SqlError, SqlState, Type};
use bind::PlanCx;
use exec::port::Params;
use parse::{LONG_BYTES, Statement};
use plan::Plan;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use wire::Reply;

/// A query string under way.
#[derive(Default)]
pub(super) struct QueryString {
    /// The only statement of the string, if the plan cache has it, and the values of its literals.
    ready: Option<(Rc<Prepared>, Params)>,
    /// Statements that were not started yet.
    rest: VecDeque<Statement>,
    /// Whether the string has more than one statement.
    many: bool,
}

impl Session {
    pub(super) fn on_query(&mut self, cx: &mut SessionCx<'_>, text: String) {
        self.unnamed = None;
        self.since = cx.now;
        self.has_long |= text.len() >= LONG_BYTES;
        let mut query = QueryString::default();
        self.sent = None;
        if let Some(prepared) = self.cached(cx, &text, &[]) {
            query.ready = Some((prepared, no_params()));
        } else if let Some(shaped) = self.shaped(cx, &text) {
            query.ready = Some(shaped);
            self.sent = Some(text);
        } else {
            match self.parse(cx, &text) {
                // The unnamed portal stays, as in PostgreSQL.
                Ok(statements) if statements.is_empty() => {
                    self.say(Reply::EmptyQuery, Position(0));
                }
                Ok(statements) => {
                    query.many = statements.len() > 1;
                    query.rest = statements.into();
                }
                Err(error) => {
                    self.query = Some(query);
                    self.fail(cx, error, Position(0));
                    return;
                }
            }
        }
        if (query.ready.is_some() || !query.rest.is_empty())
            && let Some(portal) = self.unnamed_portal.take()
        {
            self.drop_portal(cx, portal);
        }
        self.query = Some(query);
    }

    /// Starts the next statement of the query string, or ends it.
    pub(super) fn next_statement(&mut self, cx: &mut SessionCx<'_>) {
        let query = self
            .query
            .as_mut()
            .expect("the caller has seen a query string");
        let many = query.many;
        let ready = match (query.ready.take(), query.rest.pop_front()) {
            (Some(ready), _) => Ok(ready),
            (None, Some(statement)) => self.planned(cx, statement).map(|it| (it, no_params())),
            (None, None) if self.block == Block::Implicit => {
                return self.end_txn(cx, Ending::Batch);
            }
            (None, None) => return self.end_batch(cx, Position(0)),
        };
        match ready {
            Ok((prepared, params)) => {
                let last = self
                    .query
                    .as_ref()
                    .is_none_or(|query| query.rest.is_empty());
                let start = Start {
                    prepared,
                    params,
                    formats: cx.plans.text.clone(),
                    describe: true,
                    rows_max: 0,
                    portal: None,
                    last,
                    many,
                    declares: None,
                    until: None,
                };
                self.start(cx, start);
            }
            Err(_) if self.block == Block::Failed => {
                self.fail(cx, errors::in_failed_block(), Position(0));
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    /// Plans a statement of a query string, which has no parameters.
    fn planned(
        &mut self,
        cx: &mut SessionCx<'_>,
        statement: Statement,
    ) -> Result<Rc<Prepared>, SqlError> {
        let plan = self.plan(cx, &statement, &[])?;
        if !plan.params.is_empty() {
            return Err(SqlError::new(
                SqlState::UNDEFINED_PARAMETER,
                "there is no parameter $1",
            ));
        }
        self.remember(cx, statement, &[], plan)
    }

    /// Parses and plans one statement for later use; an empty text counts as one.
    ///
    /// # Errors
    /// 42601 for several statements in one text, and what parsing and planning raise.
    pub(super) fn prepare(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
        declared: &[Type],
    ) -> Result<Rc<Prepared>, SqlError> {
        if let Some(found) = self.cached(cx, text, declared) {
            return Ok(found);
        }
        let mut statements = self.parse(cx, text)?;
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let Some(statement) = statements.pop() else {
            let database = self.database(cx)?.id;
            let declared = declared.into();
            return Ok(Rc::new(Prepared {
                leftovers: None,
                text: text.into(),
                statement: None,
                declared,
                plan: None,
                counted: 0,
                database,
                allowed: std::cell::Cell::default(),
                counting: Counting::default(),
            }));
        };
        let plan = self.plan(cx, &statement, declared)?;
        self.remember(cx, statement, declared, plan)
    }

    /// Plans a statement for later use, unless it is planned for the present catalog.
    ///
    /// # Errors
    /// Those of planning.
    pub(super) fn prepare_statement(
        &mut self,
        cx: &mut SessionCx<'_>,
        statement: &Statement,
        declared: &[Type],
    ) -> Result<Rc<Prepared>, SqlError> {
        if let Some(found) = self.cached(cx, statement.text(), declared) {
            return Ok(found);
        }
        let plan = self.plan(cx, statement, declared)?;
        self.remember(cx, statement.clone(), declared, plan)
    }

    /// The same statement, planned for the present catalog.
    ///
    /// # Errors
    /// Those of planning.
    pub(super) fn refreshed(
        &mut self,
        cx: &mut SessionCx<'_>,
        old: &Rc<Prepared>,
    ) -> Result<Rc<Prepared>, SqlError> {
        match &old.statement {
            Some(statement) => self.prepare_statement(cx, statement, &old.declared),
            None => Ok(old.clone()),
        }
    }

    /// Parses a text, unless that was done ahead, if the node has memory for the result (53200).
    pub(super) fn parse(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
    ) -> Result<Vec<Statement>, SqlError> {
        if let Some(parsed) = self.take_parsed() {
            return parsed;
        }
        if text.len() >= LONG_BYTES && !(cx.claim_memory)(parse::memory_bytes(text)) {
            return Err(preparing::no_room(cx.here));
        }
        behind(cx.barrier, text, || parse::parse(text))
    }

    pub(super) fn cached(
        &self,
        cx: &mut SessionCx<'_>,
        text: &str,
        declared: &[Type],
    ) -> Option<Rc<Prepared>> {
        let database = self.database(cx).ok()?.id;
        let site = self.site(cx);
        let made = (cx.catalog.version, &site);
        let found = cx.plans.get(database, text, declared, made)?;
        found.is_counted(cx.statistics).then_some(found)
    }

    pub(super) fn plan(
        &mut self,
        cx: &mut SessionCx<'_>,
        statement: &Statement,
        declared: &[Type],
    ) -> Result<Arc<Plan>, SqlError> {
        cx.plans.count_planned();
        self.note_temporary(statement);
        let database = self.database(cx)?;
        let id = database.id;
        let plan = match self.take_planned(cx, statement, declared) {
            Some(plan) => plan?,
            None => {
                let statistics = &*cx.statistics;
                let site = self.site(cx);
                let plan_cx = PlanCx {
                    catalog: cx.catalog,
                    database,
                    param_types: declared,
                    param_names: &[],
                    zone: &site.zone,
                    path: &site.path,
                    viewer: site.viewer,
                    rows: &|table| statistics.rows(id, table),
                    values: &|table| statistics.values(id, table),
                    paths: Default::default(),
                };
                preparing::plan(cx.barrier, statement, &plan_cx)?
            }
        };
        if plan.by_rows {
            cx.statistics.want(id, &self.database, cx.now);
        }
        Ok(plan)
    }

    fn remember(
        &self,
        cx: &mut SessionCx<'_>,
        statement: Statement,
        declared: &[Type],
        plan: Arc<Plan>,
    ) -> Result<Rc<Prepared>, SqlError> {
        let is_long = statement.text().len() >= LONG_BYTES;
        let prepared = Rc::new(Prepared {
            leftovers: is_long.then(|| cx.leftovers.clone()),
            text: statement.text().into(),
            statement: Some(statement),
            declared: declared.into(),
            plan: Some(plan),
            counted: cx.statistics.version(self.database(cx)?.id),
            database: self.database(cx)?.id,
            allowed: std::cell::Cell::default(),
            counting: Counting::default(),
        });
        cx.plans.offer(&prepared);
        Ok(prepared)
    }
}

impl QueryString {
    /// The next statement, if it is not planned yet.
    pub(super) fn next(&self) -> Option<&Statement> {
        self.rest.front().filter(|_| self.ready.is_none())
    }
}

/// No parameters. Allocates nothing: the standard library shares one empty slice.
fn no_params() -> Params {
    Arc::default()
}
