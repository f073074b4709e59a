//! Portals: statements with their parameters, and the rows that a limited Execute has left over.

use super::plans::Prepared;
use super::run::{Start, Step};
use super::{Activity, Session, SessionCx};
use crate::message::{Done, StatementNo, ToTxn};
use base::{Datum, Position, RowBatch, SqlError, SqlState, Type};
use exec::port::Params;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use wire::{Format, Tag};

/// A statement ready to run.
pub(super) struct Portal {
    pub(super) prepared: Rc<Prepared>,
    pub(super) params: Params,
    pub(super) formats: Arc<[Format]>,
    pub(super) state: PortalState,
}

/// What another Execute of a portal does.
pub(super) enum PortalState {
    /// Runs it.
    Ready,
    /// Goes on with the statement at the coordinator.
    Suspended(Box<Cursor>),
    /// Gives more rows of a command of the session itself.
    Rest(Box<RowBatch>, Tag),
    /// The statement has ended: a portal with rows has none left, and answers this tag.
    Finished(Tag),
    /// Nothing: the statement runs now, cannot run twice, or its transaction has failed.
    Spent,
}

/// Rows that a suspended statement has given already.
pub(super) struct Cursor {
    /// Number of the statement at the coordinator.
    pub(super) number: StatementNo,
    /// Rows in order, with the positions that they wait for.
    pub(super) buffer: VecDeque<(RowBatch, Position)>,
    /// Number of batches taken since the coordinator last got credit.
    pub(super) consumed: u32,
    /// The statement has ended well.
    pub(super) done: Option<Box<Done>>,
}

impl Cursor {
    pub(super) fn new(number: StatementNo) -> Cursor {
        Cursor {
            number,
            buffer: VecDeque::new(),
            consumed: 0,
            done: None,
        }
    }

    /// The next rows, at most `rows_max` (not 0); `None`: there are none at present.
    pub(super) fn take(&mut self, rows_max: u32) -> Option<(RowBatch, Position)> {
        let (front, wait) = self.buffer.front_mut()?;
        if front.rows <= rows_max {
            self.consumed += 1;
            return self.buffer.pop_front();
        }
        Some((front.take_front(rows_max), *wait))
    }
}

impl Session {
    pub(super) fn portal(&self, name: &str) -> Option<&Portal> {
        match name {
            "" => self.unnamed_portal.as_ref(),
            _ => self.portals.get(name),
        }
    }

    pub(super) fn portal_mut(&mut self, name: &str) -> Option<&mut Portal> {
        match name {
            "" => self.unnamed_portal.as_mut(),
            _ => self.portals.get_mut(name),
        }
    }

    /// Sets what another Execute of the portal does, if there is a portal.
    pub(super) fn leave_portal(&mut self, name: Option<&str>, state: PortalState) {
        if let Some(portal) = name.and_then(|name| self.portal_mut(name)) {
            portal.state = state;
        }
    }

    pub(super) fn take_portal(&mut self, name: &str) -> Option<Portal> {
        match name {
            "" => self.unnamed_portal.take(),
            _ => self.portals.remove(name),
        }
    }

    pub(super) fn put_portal(&mut self, name: String, portal: Portal) {
        if name.is_empty() {
            self.unnamed_portal = Some(portal);
        } else {
            self.portals.insert(name, portal);
        }
    }

    /// The leftovers of a suspended statement.
    pub(super) fn cursor(&mut self, number: StatementNo) -> Option<&mut Cursor> {
        let portals = self
            .unnamed_portal
            .iter_mut()
            .chain(self.portals.values_mut());
        let mut cursors = portals.filter_map(|portal| match &mut portal.state {
            PortalState::Suspended(cursor) => Some(&mut **cursor),
            PortalState::Ready
            | PortalState::Rest(..)
            | PortalState::Finished(_)
            | PortalState::Spent => None,
        });
        cursors.find(|cursor| cursor.number == number)
    }

    /// All portals end with their transaction, and all cursors that it does not leave behind.
    pub(super) fn close_portals(&mut self) {
        self.unnamed_portal = None;
        self.portals.clear();
        self.end_cursors();
    }

    /// The block has failed: its portals stay until it ends, but do not run any more.
    pub(super) fn spend_portals(&mut self) {
        self.end_cursors();
        let portals = self
            .unnamed_portal
            .iter_mut()
            .chain(self.portals.values_mut());
        portals.for_each(|portal| portal.state = PortalState::Spent);
    }

    /// Ends the statement of a portal that is closed while it is suspended.
    pub(super) fn drop_portal(&mut self, cx: &mut SessionCx<'_>, portal: Portal) {
        if let PortalState::Suspended(cursor) = portal.state
            && cursor.done.is_none()
            && self.txn.as_ref().is_some_and(|txn| !txn.gone)
        {
            self.tell(cx, ToTxn::Close(cursor.number));
        }
    }

    /// Goes on with a suspended portal.
    pub(super) fn resume(&mut self, cx: &mut SessionCx<'_>, cursor: Box<Cursor>, start: Start) {
        self.begin_statement(cx, start.prepared.clone());
        if let Some((error, wait)) = self.txn.as_mut().and_then(|txn| txn.broken.take()) {
            self.fail(cx, error, wait);
            return;
        }
        let step = Step::resumed(cursor, start, self.facts.clone(), self.held.len());
        self.push_step(step);
        self.activity = Activity::Running;
        self.serve(cx);
    }
}

impl Step {
    fn resumed(
        cursor: Box<Cursor>,
        start: Start,
        facts: Arc<crate::message::SessionFacts>,
        mark: usize,
    ) -> Step {
        let plan = start.prepared.plan.clone();
        Step {
            plan: plan.expect("an empty statement does not suspend"),
            prepared: start.prepared,
            params: start.params,
            formats: start.formats,
            describe: false,
            rows_max: start.rows_max,
            rows: 0,
            spent: 0,
            autocommit: false,
            number: cursor.number,
            facts,
            deadline: None,
            portal: start.portal,
            copy: super::copy::CopyState::None,
            copy_bytes: 0,
            declares: None,
            cursor: Some(cursor),
            mark,
            said: 0,
            before: 0,
            silent: false,
            quiet: false,
        }
    }
}

/// Checks the numbers in a Bind message for a statement with this many parameters.
///
/// # Errors
/// 08P01.
pub(super) fn check_counts(
    name: &str,
    wanted: usize,
    formats: &[Format],
    values: &[Option<Vec<u8>>],
) -> Result<(), SqlError> {
    if formats.len() > 1 && formats.len() != values.len() {
        let message = format!(
            "bind message has {} parameter formats but {} parameters",
            formats.len(),
            values.len()
        );
        return Err(super::errors::protocol(message));
    }
    if values.len() != wanted {
        let given = values.len();
        let message = format!(
            "bind message supplies {given} parameters, but prepared statement \"{name}\" requires \
             {wanted}"
        );
        return Err(super::errors::protocol(message));
    }
    Ok(())
}

/// Reads a binary parameter whose values the catalog knows.
type ReadBinary<'a> = dyn Fn(Type, &[u8]) -> Result<Datum, SqlError> + 'a;

/// Reads the parameters of a Bind message, whose counts were checked; `read` reads those in text
/// form.
///
/// # Errors
/// 22021 for text that is not UTF-8, and what the value forms raise.
pub(super) fn decode_params(
    portal: &str,
    types: &[Type],
    formats: &[Format],
    values: &[Option<Vec<u8>>],
    read: &dyn Fn(Type, &str) -> Result<Datum, SqlError>,
    read_binary: &ReadBinary<'_>,
) -> Result<Params, SqlError> {
    let mut failed = None;
    // An exact iterator fills the shared slice with one allocation.
    let params = values.iter().enumerate().map(|(i, value)| {
        let format = formats.get(if formats.len() == 1 { 0 } else { i }).copied();
        let Some(bytes) = value else {
            return Datum::Null;
        };
        let format = format.unwrap_or(Format::Text);
        let datum = match format {
            Format::Binary if types[i].user_id().is_some() => read_binary(types[i], bytes),
            Format::Binary => base::wire::decode(types[i], bytes),
            Format::Text => decode_text(types[i], bytes, read),
        };
        datum.unwrap_or_else(|error| {
            failed.get_or_insert_with(|| error.context(place(portal, i, format)));
            Datum::Null
        })
    });
    let params: Params = params.collect();
    failed.map_or(Ok(params), Err)
}

/// Names the parameter in an error. Values are not shown, because logs would keep them.
fn place(portal: &str, index: usize, format: Format) -> String {
    let portal = match portal {
        "" => "unnamed portal".to_owned(),
        _ => format!("portal \"{portal}\""),
    };
    let value = match format {
        Format::Text => " = '...'",
        Format::Binary => "",
    };
    format!("{portal} parameter ${}{value}", index + 1)
}

fn decode_text(
    ty: Type,
    bytes: &[u8],
    read: &dyn Fn(Type, &str) -> Result<Datum, SqlError>,
) -> Result<Datum, SqlError> {
    match core::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => read(ty, text),
        _ => {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            Err(SqlError::new(
                SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                message,
            ))
        }
    }
}
