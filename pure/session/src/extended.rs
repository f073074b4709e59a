//! The extended query protocol: Parse, Bind, Describe, Execute, Close, Sync.

use super::lists::Noted;
use super::plans::Prepared;
use super::portal::{Portal, PortalState, check_counts, decode_params};
use super::run::{Ending, Start};
use super::{Block, Session, SessionCx, copy, errors};
use base::{OutColumn, Position, RowBatch, SqlError, SqlState, Type};
use catalog::Database;
use parse::LONG_BYTES;
use parse::session::SessionCommand;
use plan::PlanKind;
use std::rc::Rc;
use std::sync::Arc;
use wire::{ClientMessage, Format, Reply, Tag};

/// The parts of a Bind message.
pub(super) struct Bind {
    pub(super) portal: String,
    pub(super) statement: String,
    pub(super) formats: Vec<Format>,
    pub(super) params: Vec<Option<Vec<u8>>>,
    pub(super) result_formats: Vec<Format>,
}

impl Session {
    /// Whether the next message decides how this one is handled: outside of a block, Execute
    /// commits by itself if Sync follows, and in a block if COMMIT does.
    pub(super) fn waits_for_next(&self, message: &ClientMessage) -> bool {
        let ClientMessage::Execute { portal, rows_max } = message else {
            return false;
        };
        let is_open = match self.block {
            Block::Failed => false,
            Block::Explicit => *rows_max == 0 && self.commits_behind(1).is_none(),
            Block::None | Block::Implicit => self.inbox.len() == 1,
        };
        if !is_open {
            return false;
        }
        // COPY FROM asks its client for data before any other message.
        let plan = self
            .portal(portal)
            .and_then(|portal| portal.prepared.plan.as_ref());
        plan.is_some_and(|plan| {
            let runs = self.block != Block::Explicit || matches!(plan.kind, PlanKind::Run(_));
            runs && !copy::is_copy_from(plan)
        })
    }

    pub(super) fn on_parse(
        &mut self,
        cx: &mut SessionCx<'_>,
        name: String,
        text: &str,
        types: &[u32],
    ) {
        self.has_long |= text.len() >= LONG_BYTES;
        if name.is_empty() {
            // Dropped even if the new one cannot be parsed.
            self.unnamed = None;
        }
        match self.parsed(cx, text, types) {
            Ok(_) if self.prepared.contains_key(&name) => {
                let message = format!("prepared statement \"{name}\" already exists");
                let error = SqlError::new(SqlState::DUPLICATE_STATEMENT, message);
                self.fail(cx, error, Position(0));
            }
            Ok(prepared) => {
                if name.is_empty() {
                    self.unnamed = Some(prepared);
                } else {
                    let (at, text) = (cx.now, None);
                    self.noted.insert(name.clone(), Noted { at, text });
                    self.prepared.insert(name, prepared);
                }
                self.say(Reply::ParseComplete, Position(0));
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    fn parsed(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
        types: &[u32],
    ) -> Result<Rc<Prepared>, SqlError> {
        let types = match self.database(cx) {
            Ok(database) => declared_types(types, database)?,
            // What is missing is told by what comes next.
            Err(_) => Vec::new(),
        };
        let prepared = self.prepare(cx, text, &types);
        match &prepared {
            Ok(found) if self.block == Block::Failed && !ends_block(found) => {
                Err(errors::in_failed_block())
            }
            Err(error) if self.block == Block::Failed && error.state() != SqlState::SYNTAX => {
                Err(errors::in_failed_block())
            }
            _ => prepared,
        }
    }

    pub(super) fn on_bind(&mut self, cx: &mut SessionCx<'_>, mut bind: Bind) {
        match self.bound(cx, &bind) {
            Ok(portal) => {
                let name = core::mem::take(&mut bind.portal);
                if name.is_empty()
                    && let Some(old) = self.unnamed_portal.take()
                {
                    self.drop_portal(cx, old);
                }
                self.put_portal(name, portal);
                self.say(Reply::BindComplete, Position(0));
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    fn bound(&mut self, cx: &mut SessionCx<'_>, bind: &Bind) -> Result<Portal, SqlError> {
        let prepared = self.find(&bind.statement)?.clone();
        let wanted = prepared.plan.as_ref().map_or(0, |plan| plan.params.len());
        check_counts(&bind.statement, wanted, &bind.formats, &bind.params)?;
        // An empty statement can be parsed in a failed block, but not bound.
        let is_empty = prepared.plan.is_none();
        if self.block == Block::Failed && (is_empty || !ends_block(&prepared)) {
            return Err(errors::in_failed_block());
        }
        if self.portals.contains_key(&*bind.portal) || self.cursors.contains_key(&*bind.portal) {
            let message = format!("cursor \"{}\" already exists", bind.portal);
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
        }
        let prepared = self.fresh(cx, &bind.statement, prepared)?;
        let types = prepared.plan.as_ref().map_or(&[][..], |plan| &plan.params);
        let decode = |ty, text: &str| self.read_text(cx, ty, text);
        let binary = |ty, bytes: &[u8]| self.read_binary(cx, ty, bytes);
        let (formats, values) = (&bind.formats, &bind.params);
        let params = decode_params(&bind.portal, types, formats, values, &decode, &binary)?;
        let formats = self.result_formats(cx, &prepared, &bind.result_formats)?;
        Ok(Portal {
            prepared,
            params,
            formats,
            state: PortalState::Ready,
        })
    }

    /// Whether the plan is of the present catalog, zone and row counts.
    pub(super) fn is_usable(&self, cx: &SessionCx<'_>, prepared: &Prepared) -> bool {
        prepared.is_fresh(cx.catalog.version, &self.site(cx)) && prepared.is_counted(cx.statistics)
    }

    /// `prepared`, or the same statement planned again if the catalog has changed.
    pub(super) fn fresh(
        &mut self,
        cx: &mut SessionCx<'_>,
        name: &str,
        prepared: Rc<Prepared>,
    ) -> Result<Rc<Prepared>, SqlError> {
        if self.is_usable(cx, &prepared) {
            return Ok(prepared);
        }
        let again = self.refreshed_alike(cx, &prepared)?;
        match name {
            "" => self.unnamed = Some(again.clone()),
            _ => {
                self.prepared.insert(name.to_owned(), again.clone());
            }
        }
        Ok(again)
    }

    /// The statement planned again, with the result that the client may know already.
    ///
    /// # Errors
    /// 0A000 if its columns are others now.
    pub(super) fn refreshed_alike(
        &mut self,
        cx: &mut SessionCx<'_>,
        prepared: &Rc<Prepared>,
    ) -> Result<Rc<Prepared>, SqlError> {
        let again = self.refreshed(cx, prepared)?;
        let types = |prepared: &Prepared| {
            let plan = prepared.plan.as_ref();
            plan.map(|plan| {
                plan.columns
                    .iter()
                    .map(|c| (c.name.clone(), c.ty))
                    .collect::<Vec<_>>()
            })
        };
        if types(&again) != types(prepared) {
            let message = "cached plan must not change result type";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(again)
    }

    fn result_formats(
        &self,
        cx: &SessionCx<'_>,
        prepared: &Prepared,
        asked: &[Format],
    ) -> Result<Arc<[Format]>, SqlError> {
        if asked.len() > 1 {
            let columns = self.columns_of(prepared).map_or(0, |columns| columns.len());
            if asked.len() != columns {
                return Err(errors::protocol(format!(
                    "bind message has {} result formats but query has {columns} columns",
                    asked.len()
                )));
            }
        }
        if asked.contains(&Format::Binary) {
            let columns = self.columns_of(prepared).unwrap_or_default();
            let mut formats = asked.iter().cycle().zip(columns.iter());
            formats.try_for_each(|(format, column)| match format {
                Format::Binary => pg_catalog::output::check_binary(column.ty),
                Format::Text => Ok(()),
            })?;
        }
        Ok(match asked {
            [] => cx.plans.text.clone(),
            asked if asked.iter().all(|format| *format == Format::Text) => cx.plans.text.clone(),
            asked if asked.iter().all(|format| *format == Format::Binary) => {
                cx.plans.binary.clone()
            }
            asked => asked.into(),
        })
    }

    /// The columns of the rows that a statement returns; `None` if it returns none.
    fn columns_of(&self, prepared: &Prepared) -> Option<Arc<[OutColumn]>> {
        let plan = prepared.plan.as_ref()?;
        if let PlanKind::Session(SessionCommand::Execute { name, .. }) = &plan.kind {
            return self
                .prepared
                .get(&**name)
                .and_then(|inner| self.columns_of(inner));
        }
        if let PlanKind::Session(SessionCommand::Fetch {
            name, moves: false, ..
        }) = &plan.kind
        {
            return self.cursor_columns(name);
        }
        plan.returns_rows.then(|| plan.columns.clone())
    }

    pub(super) fn on_describe_statement(&mut self, cx: &mut SessionCx<'_>, name: &str) {
        let found = self.find(name).cloned();
        match found.and_then(|prepared| self.fresh(cx, name, prepared)) {
            Ok(prepared) if self.may_not_describe(&prepared) => {
                self.fail(cx, errors::in_failed_block(), Position(0));
            }
            Ok(prepared) => {
                let params = prepared
                    .plan
                    .as_ref()
                    .map_or_else(Vec::new, |plan| plan.params.clone());
                self.say(Reply::ParameterDescription(params), Position(0));
                let formats = cx.plans.text.clone();
                self.describe_columns(&prepared, formats);
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    pub(super) fn on_describe_portal(&mut self, cx: &mut SessionCx<'_>, name: &str) {
        if let Some(columns) = self.cursor_columns(name) {
            let reply = Reply::RowDescription(columns, cx.plans.text.clone());
            return self.say(reply, Position(0));
        }
        let Some(portal) = self.portal(name) else {
            return self.fail(cx, errors::no_portal(name), Position(0));
        };
        let (prepared, formats) = (portal.prepared.clone(), portal.formats.clone());
        if self.may_not_describe(&prepared) {
            return self.fail(cx, errors::in_failed_block(), Position(0));
        }
        self.describe_columns(&prepared, formats);
    }

    /// Columns are not described in a failed block: their tables may be gone with it.
    fn may_not_describe(&self, prepared: &Prepared) -> bool {
        self.block == Block::Failed && self.columns_of(prepared).is_some()
    }

    fn describe_columns(&mut self, prepared: &Prepared, formats: Arc<[Format]>) {
        let reply = match self.columns_of(prepared) {
            Some(columns) => Reply::RowDescription(columns, formats),
            None => Reply::NoData,
        };
        self.say(reply, Position(0));
    }

    pub(super) fn on_execute(&mut self, cx: &mut SessionCx<'_>, name: String, rows_max: u32) {
        self.sent = None;
        let failed = self.block == Block::Failed;
        let Some(portal) = self.portal_mut(&name) else {
            return self.fail(cx, errors::no_portal(&name), Position(0));
        };
        if portal.prepared.plan.is_none() {
            return self.say(Reply::EmptyQuery, Position(0));
        }
        if failed && !ends_block(&portal.prepared) {
            return self.fail(cx, errors::in_failed_block(), Position(0));
        }
        let state = core::mem::replace(&mut portal.state, PortalState::Spent);
        let (prepared, params) = (portal.prepared.clone(), portal.params.clone());
        let formats = portal.formats.clone();
        let last = matches!(self.inbox.front(), Some(ClientMessage::Sync));
        let mut start = Start {
            prepared,
            params,
            formats,
            describe: false,
            rows_max,
            portal: Some(name),
            last,
            many: !last,
            declares: None,
            until: None,
        };
        match state {
            PortalState::Ready if !start.prepared.is_fresh(cx.catalog.version, &self.site(cx)) => {
                // The portal was bound before a schema change in the same pipeline or block.
                match self.refreshed_alike(cx, &start.prepared) {
                    Ok(prepared) => start.prepared = prepared,
                    Err(error) => return self.fail(cx, error, Position(0)),
                }
                self.start(cx, start);
            }
            PortalState::Ready => self.start(cx, start),
            PortalState::Suspended(cursor) => self.resume(cx, cursor, start),
            PortalState::Rest(rows, tag) => self.give_rows(&start, *rows, tag),
            PortalState::Finished(tag) => {
                self.complete(tag);
                self.leave_portal(start.portal.as_deref(), PortalState::Finished(tag));
            }
            PortalState::Spent => {
                let name = start.portal.unwrap_or_default();
                let message = format!("portal \"{name}\" cannot be run");
                let error = SqlError::new(SqlState::OBJECT_NOT_READY, message);
                self.fail(cx, error, Position(0));
            }
        }
    }

    /// Gives rows of a command of the session itself, as many as an Execute asks for.
    pub(super) fn give_rows(&mut self, start: &Start, mut rows: RowBatch, tag: Tag) {
        let plan = start.prepared.plan.as_ref();
        let columns = plan
            .expect("an empty statement has no rows")
            .columns
            .clone();
        let formats = start.formats.clone();
        if start.describe {
            let description = Reply::RowDescription(columns.clone(), formats.clone());
            self.say(description, Position(0));
        }
        let front = match start.rows_max {
            0 => rows.take_front(u32::MAX),
            rows_max => rows.take_front(rows_max),
        };
        let suspended = start.rows_max > 0 && front.rows == start.rows_max;
        self.statement_rows |= tag.count();
        if !front.is_empty() {
            self.say(Reply::Rows(columns, formats, front), Position(0));
        }
        let state = if suspended {
            self.say(Reply::PortalSuspended, Position(0));
            PortalState::Rest(Box::new(rows), tag)
        } else {
            self.complete(tag);
            PortalState::Finished(tag)
        };
        self.leave_portal(start.portal.as_deref(), state);
    }

    pub(super) fn on_close_statement(&mut self, name: &str) {
        match name {
            "" => self.unnamed = None,
            _ => {
                self.prepared.remove(name);
                self.noted.remove(name);
            }
        }
        self.say(Reply::CloseComplete, Position(0));
    }

    pub(super) fn on_close_portal(&mut self, cx: &mut SessionCx<'_>, name: &str) {
        if let Some(portal) = self.take_portal(name) {
            self.drop_portal(cx, portal);
        }
        self.drop_cursor(name);
        self.say(Reply::CloseComplete, Position(0));
    }

    pub(super) fn on_sync(&mut self, cx: &mut SessionCx<'_>) {
        self.skipping = false;
        match self.block {
            Block::Implicit => self.end_txn(cx, Ending::Sync),
            Block::None => {
                self.close_portals();
                self.end_batch(cx, Position(0));
            }
            Block::Explicit | Block::Failed => self.end_batch(cx, Position(0)),
        }
    }

    pub(super) fn find(&self, name: &str) -> Result<&Rc<Prepared>, SqlError> {
        let found = match name {
            "" => self.unnamed.as_ref(),
            _ => self.prepared.get(name),
        };
        found.ok_or_else(|| errors::no_statement(name))
    }
}

/// The types that a client declares by OID.
///
/// # Errors
/// 42704 for one that does not exist.
pub(super) fn declared_types(oids: &[u32], of: &Database) -> Result<Vec<Type>, SqlError> {
    oids.iter().map(|oid| declared(*oid, of)).collect()
}

fn declared(oid: u32, of: &Database) -> Result<Type, SqlError> {
    match oid {
        // 705 is `unknown`: drivers pass it for strings whose type the server infers.
        0 | 705 => Ok(Type::Unknown),
        _ => Type::from_oid(oid)
            .or_else(|| of.type_by_oid(oid))
            .ok_or_else(|| {
                let message = format!("type with OID {oid} does not exist");
                SqlError::new(SqlState::UNDEFINED_OBJECT, message)
            }),
    }
}

fn ends_block(prepared: &Prepared) -> bool {
    match prepared.plan.as_ref().map(|plan| &plan.kind) {
        None => true,
        Some(PlanKind::Session(command)) => super::block::ends_block(command),
        Some(_) => false,
    }
}

/// Whether a message is handled even after an error in the extended protocol.
pub(super) fn ends_skipping(message: &ClientMessage) -> bool {
    matches!(
        message,
        ClientMessage::Sync
            | ClientMessage::Terminate
            | ClientMessage::Malformed { fatal: true, .. }
    )
}
