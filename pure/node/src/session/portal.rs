//! Portals: statements with their parameters, and the rows that a limited Execute has left over.

use super::plans::Prepared;
use super::run::{Start, Step};
use super::{Activity, Session, SessionCx};
use crate::client::Format;
use crate::message::{Done, StatementNo, ToTxn};
use base::{Datum, Position, RowBatch, SqlError, SqlState, Type};
use sql::port::Params;
use std::collections::VecDeque;
use std::sync::Arc;

/// A statement ready to run.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) params: Params,
    pub(super) formats: Arc<[Format]>,
    /// Set while it is suspended.
    pub(super) cursor: Option<Box<Cursor>>,
    /// It has run to its end.
    pub(super) finished: bool,
}

/// What a suspended statement has already given.
pub(super) struct Cursor {
    /// Number of the statement at the coordinator.
    pub(super) number: StatementNo,
    /// Rows in order with what they wait for.
    pub(super) buffer: VecDeque<(RowBatch, Position)>,
    /// Batches taken out since the coordinator was last given credit.
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

    /// The next rows, at most `rows_max` (not 0); `None` if there are none at present.
    pub(super) fn take(&mut self, rows_max: u32) -> Option<(RowBatch, Position)> {
        let (front, wait) = self.buffer.front_mut()?;
        if front.rows <= rows_max {
            self.consumed += 1;
            return self.buffer.pop_front();
        }
        let datums = front
            .datums
            .drain(..front.width as usize * rows_max as usize)
            .collect();
        front.rows -= rows_max;
        Some((
            RowBatch {
                width: front.width,
                rows: rows_max,
                datums,
            },
            *wait,
        ))
    }
}

impl Session {
    pub(super) fn portal(&self, name: &str) -> Option<&Portal> {
        match name {
            "" => self.unnamed_portal.as_ref(),
            _ => self.portals.get(name),
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
        let mut cursors = portals.filter_map(|portal| portal.cursor.as_deref_mut());
        cursors.find(|cursor| cursor.number == number)
    }

    /// All portals end with their transaction.
    pub(super) fn close_portals(&mut self) {
        self.unnamed_portal = None;
        self.portals.clear();
    }

    /// Ends the statement of a portal that is closed while it is suspended.
    pub(super) fn drop_portal(&mut self, cx: &mut SessionCx<'_>, portal: Portal) {
        if let Some(cursor) = portal.cursor
            && cursor.done.is_none()
            && self.txn.as_ref().is_some_and(|txn| !txn.gone)
        {
            self.tell(cx, ToTxn::Close(cursor.number));
        }
    }

    /// Goes on with a suspended portal.
    pub(super) fn resume(&mut self, cx: &mut SessionCx<'_>, portal: Portal, start: Start) {
        if let Some((error, wait)) = self.txn.as_mut().and_then(|txn| txn.broken.take()) {
            self.fail(cx, error, wait);
            return;
        }
        let number = portal
            .cursor
            .as_ref()
            .expect("a suspended portal has a cursor")
            .number;
        let plan = portal
            .prepared
            .plan
            .clone()
            .expect("an empty statement does not suspend");
        let step = Step::resumed(
            portal,
            plan,
            start,
            number,
            self.facts.clone(),
            self.held.len(),
        );
        self.push_step(step);
        self.activity = Activity::Running;
        self.serve(cx);
    }
}

impl Step {
    fn resumed(
        portal: Portal,
        plan: Arc<sql::plan::Plan>,
        start: Start,
        number: StatementNo,
        facts: Arc<crate::message::SessionFacts>,
        mark: usize,
    ) -> Step {
        Step {
            prepared: portal.prepared,
            plan,
            params: portal.params,
            formats: portal.formats,
            describe: false,
            rows_max: start.rows_max,
            rows: 0,
            spent: 0,
            autocommit: false,
            number,
            facts,
            deadline: None,
            portal: start.portal,
            copy: super::copy::CopyState::None,
            copy_bytes: 0,
            cursor: portal.cursor,
            mark,
            said: 0,
            before: 0,
        }
    }
}

/// Reads the parameters of a Bind message; `read` reads those in text form.
///
/// # Errors
/// 08P01 if counts do not fit, 22021 for text that is not UTF-8, and what the value forms raise.
pub(super) fn decode_params(
    name: &str,
    types: &[Type],
    formats: &[Format],
    values: &[Option<Vec<u8>>],
    read: &dyn Fn(Type, &str) -> Result<Datum, SqlError>,
) -> Result<Params, SqlError> {
    if formats.len() > 1 && formats.len() != values.len() {
        let message = format!(
            "bind message has {} parameter formats but {} parameters",
            formats.len(),
            values.len()
        );
        return Err(super::errors::protocol(message));
    }
    if values.len() != types.len() {
        let message = format!(
            "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
            values.len(),
            types.len()
        );
        return Err(super::errors::protocol(message));
    }
    let mut failed = None;
    // An exact iterator fills the shared slice with one allocation.
    let params = values.iter().enumerate().map(|(i, value)| {
        let format = formats.get(if formats.len() == 1 { 0 } else { i }).copied();
        let Some(bytes) = value else {
            return Datum::Null;
        };
        let datum = match format.unwrap_or(Format::Text) {
            Format::Binary => base::wire::decode(types[i], bytes),
            Format::Text => decode_text(types[i], bytes, read),
        };
        datum.unwrap_or_else(|error| {
            failed.get_or_insert(error);
            Datum::Null
        })
    });
    let params: Params = params.collect();
    failed.map_or(Ok(params), Err)
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
