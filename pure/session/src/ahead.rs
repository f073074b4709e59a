//! Long statements are parsed and planned beside the shard's thread, before their turn. The session
//! waits ([`Activity::Preparing`]) with the message, or the statement of a query string, still in
//! its place, and finds the result there when it handles it.

use super::plans::Prepared;
use super::portal::PortalState;
use super::{Activity, QueryString, Session, SessionCx, errors};
use crate::preparing::{self, Made, PlanResult, Planning, Preparation, PreparationResult, Work};
use base::{Position, SqlError, Time, Type};
use parse::session::SessionCommand;
use parse::{LONG_BYTES, Statement};
use plan::{Plan, PlanKind};
use std::sync::Arc;
use wire::ClientMessage;

/// Work done ahead for the present message or statement.
pub(super) struct Ahead {
    /// When the first work for it began.
    since: Time,
    /// Once this is dropped, the work under way is skipped.
    wanted: Arc<()>,
    /// Whether the node has memory for parsing this text (53200: it has not).
    weighed: Option<Result<Arc<str>, SqlError>>,
    parsed: Option<Result<Vec<Statement>, SqlError>>,
    /// Plans of the statement, and of the statement that it prepares or runs.
    planned: Vec<(Box<Planning>, PlanResult)>,
}

/// Work that the session waits for.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    number: u64,
    /// When `statement_timeout` ends the wait.
    pub(super) until: Option<Time>,
}

impl Session {
    /// Gives away work that is worth that. Returns whether the session waits for it.
    #[inline]
    pub(super) fn prepare_ahead(&mut self, cx: &mut SessionCx<'_>) -> bool {
        // Runs before every message, and nearly all are short.
        (self.has_long || self.inbox.bytes() >= LONG_BYTES) && self.give_away(cx)
    }

    #[cold]
    fn give_away(&mut self, cx: &mut SessionCx<'_>) -> bool {
        let Some(work) = self.next_work(cx) else {
            return false;
        };
        self.has_long = true;
        self.prepared_count += 1;
        let number = self.prepared_count;
        let ahead = self.ahead.get_or_insert_with(|| {
            Box::new(Ahead {
                since: cx.now,
                wanted: Arc::default(),
                weighed: None,
                parsed: None,
                planned: Vec::new(),
            })
        });
        let timeout_us = self.settings.knobs.statement_timeout_us;
        let until = (timeout_us > 0).then(|| ahead.since.after(timeout_us));
        let wanted = Arc::downgrade(&ahead.wanted);
        self.activity = Activity::Preparing(Awaited { number, until });
        cx.preparations.push(Preparation {
            conn: self.conn,
            number,
            barrier: cx.barrier,
            wanted,
            work,
        });
        true
    }

    /// The next work to give away; `None`: the next message is short, or all its work is done.
    fn next_work(&self, cx: &mut SessionCx<'_>) -> Option<Work> {
        if let Some(query) = &self.query {
            return self.planning_all(cx, query.next()?);
        }
        let front = self.inbox.front()?;
        if let ClientMessage::Query(text) = front
            && text.len() >= LONG_BYTES
        {
            return self.parsing(text);
        }
        if let ClientMessage::Parse { text, types, .. } = front
            && text.len() >= LONG_BYTES
            && !self.skipping
        {
            let parsed = self.ahead.as_ref().and_then(|ahead| ahead.parsed.as_ref());
            return match parsed {
                None => self.parsing(text),
                Some(Ok(statements)) if statements.len() == 1 => {
                    let database = self.database(cx).ok()?;
                    let declared = super::extended::declared_types(types, database).ok()?;
                    self.planning(cx, &statements[0], &declared)
                }
                Some(_) => None,
            };
        }
        if let ClientMessage::Bind { statement, .. } | ClientMessage::DescribeStatement(statement) =
            front
            && self.has_long
        {
            return self.planning_again(cx, self.find(statement).ok()?);
        }
        if let ClientMessage::Execute { portal, .. } = front
            && self.has_long
        {
            let portal = self.portal(portal)?;
            // An error spends the portal too: what is skipped finds none.
            if !matches!(portal.state, PortalState::Ready) {
                return None;
            }
            let prepared = &portal.prepared;
            let again = self.planning_again(cx, prepared);
            return again.or_else(|| self.planning_inner(cx, prepared.plan.as_ref()?));
        }
        None
    }

    /// The planning of a statement in a query string, then of one that it prepares or runs.
    fn planning_all(&self, cx: &SessionCx<'_>, statement: &Statement) -> Option<Work> {
        if statement.text().len() < LONG_BYTES {
            let name = statement.executed()?;
            return self.planning_again(cx, self.find(name).ok()?);
        }
        match self.plan_of(statement) {
            None => self.planning(cx, statement, &[]),
            Some(Ok(plan)) => self.planning_inner(cx, plan),
            Some(Err(_)) => None,
        }
    }

    /// The planning of the statement that PREPARE or EXECUTE names, which is planned as `plan`.
    fn planning_inner(&self, cx: &SessionCx<'_>, plan: &Plan) -> Option<Work> {
        if let PlanKind::Session(SessionCommand::Prepare {
            name,
            statement,
            types,
        }) = &plan.kind
            && statement.text().len() >= LONG_BYTES
            && !self.prepared.contains_key(name)
        {
            return self.planning(cx, statement, types);
        }
        if let PlanKind::Session(SessionCommand::Execute { name, .. }) = &plan.kind {
            return self.planning_again(cx, self.find(name).ok()?);
        }
        None
    }

    /// The result of planning this statement; `None`: there is none.
    fn plan_of(&self, statement: &Statement) -> Option<&PlanResult> {
        let planned = &self.ahead.as_ref()?.planned;
        let found = planned
            .iter()
            .find(|(planning, _)| planning.statement.is(statement));
        found.map(|(_, plan)| plan)
    }

    fn parsing(&self, text: &str) -> Option<Work> {
        if self.skipping {
            return None;
        }
        match &self.ahead {
            None => Some(Work::Weigh(text.into())),
            Some(ahead) if ahead.parsed.is_some() => None,
            Some(ahead) => match ahead.weighed.as_ref()? {
                Ok(text) => Some(Work::Parse(text.clone())),
                // Without room for it the statement is refused in its turn.
                Err(_) => None,
            },
        }
    }

    fn planning(
        &self,
        cx: &SessionCx<'_>,
        statement: &Statement,
        declared: &[Type],
    ) -> Option<Work> {
        if self.plan_of(statement).is_some() {
            return None;
        }
        let database = self.database(cx).ok()?;
        let site = self.site(cx);
        Some(Work::Plan(Box::new(Planning {
            statement: statement.clone(),
            catalog: cx.catalog.clone(),
            database: database.clone(),
            declared: declared.into(),
            zone: site.zone,
            path: (*site.path).into(),
            viewer: site.viewer,
            rows: cx.statistics.all(database.id),
            values: cx.statistics.all_values(database.id),
        })))
    }

    /// The planning of a prepared statement whose plan is outdated.
    fn planning_again(&self, cx: &SessionCx<'_>, prepared: &Prepared) -> Option<Work> {
        let statement = prepared.statement.as_ref();
        let statement = statement.filter(|statement| statement.text().len() >= LONG_BYTES)?;
        if self.skipping || self.is_usable(cx, prepared) {
            return None;
        }
        self.planning(cx, statement, &prepared.declared)
    }

    /// The result of work that was given away.
    pub fn on_prepared(&mut self, cx: &mut SessionCx<'_>, result: PreparationResult) {
        let number = match &self.activity {
            Activity::Preparing(awaited) => awaited.number,
            Activity::Idle
            | Activity::Running
            | Activity::Ending
            | Activity::Backoff(_)
            | Activity::Quiesced(_)
            | Activity::Ddl(_) => 0,
        };
        // A result for another work, or for none: the statement was cancelled.
        if number != result.number {
            cx.leftovers.add(Box::new(result));
            return;
        }
        self.activity = Activity::Idle;
        let ahead = self.ahead.as_mut().expect("it was begun with the work");
        match result.made {
            Made::Weighed(text, bytes) => {
                let fits = (cx.claim_memory)(bytes);
                let error = || preparing::no_room(cx.here);
                ahead.weighed = Some(fits.then_some(text).ok_or_else(error));
            }
            Made::Parsed(parsed) => ahead.parsed = Some(parsed),
            Made::Planned(planning, plan) => ahead.planned.push((planning, plan)),
        }
        self.pump(cx);
    }

    /// Work ahead, done or under way, is not needed any more.
    pub(super) fn forget_ahead(&mut self, cx: &SessionCx<'_>) {
        if let Some(ahead) = self.ahead.take() {
            let Ahead {
                since: _,
                wanted,
                weighed,
                parsed,
                planned,
            } = *ahead;
            // Work that did not begin is skipped.
            drop(wanted);
            cx.leftovers.add(Box::new((weighed, parsed, planned)));
        }
    }

    /// The statements parsed from the text of the present message.
    pub(super) fn take_parsed(&mut self) -> Option<Result<Vec<Statement>, SqlError>> {
        let ahead = self.ahead.as_mut()?;
        match ahead.weighed.take() {
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(_)) | None => ahead.parsed.take(),
        }
    }

    /// The plan made ahead for this statement, unless it is outdated.
    pub(super) fn take_planned(
        &mut self,
        cx: &SessionCx<'_>,
        statement: &Statement,
        declared: &[Type],
    ) -> Option<PlanResult> {
        let site = self.site(cx);
        let planned = &mut self.ahead.as_mut()?.planned;
        let found = planned.iter().position(|(planning, _)| {
            planning.statement.is(statement)
                && planning.catalog.version == cx.catalog.version
                && *planning.declared == *declared
                && planning.zone == site.zone
                && *planning.path == *site.path
                && planning.viewer == site.viewer
        });
        found.map(|at| planned.swap_remove(at).1)
    }

    /// Time from which `statement_timeout` counts for the statement that starts now.
    pub(super) fn timeout_from(&self, now: Time) -> Time {
        self.ahead.as_ref().map_or(now, |ahead| ahead.since)
    }

    /// The statement that is being prepared fails; its work is dropped.
    pub(super) fn fail_preparing(&mut self, cx: &mut SessionCx<'_>, error: SqlError) {
        self.activity = Activity::Idle;
        self.forget_ahead(cx);
        if self.query.is_none()
            && let Some(ClientMessage::Query(_)) = self.inbox.pop()
        {
            self.query = Some(QueryString::default());
        }
        self.fail(cx, error, Position(0));
    }

    /// The deadline of the work has come.
    pub(super) fn on_preparing_tick(&mut self, cx: &mut SessionCx<'_>, until: Option<Time>) {
        if until.is_some_and(|at| at <= cx.now) {
            self.fail_preparing(cx, errors::statement_timeout());
        }
    }
}
