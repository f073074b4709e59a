//! Cursors by DECLARE. A cursor takes all rows when it is declared: later changes of its own
//! transaction do not show in it, as in PostgreSQL, and it can be read in any direction. The rows
//! of all cursors of a session count against its `statement_memory`. A cursor WITH HOLD stays when
//! its transaction commits, until CLOSE or the end of the session.

use super::run::Start;
use super::{Block, Session, SessionCx, errors};
use crate::message::{StatementNo, ToTxn};
use base::{Datum, OutColumn, Position, RowBatch, SqlError, SqlState, Time};
use expr::rows::datums_heap_bytes;
use parse::session::{Declaration, Direction};
use plan::PlanKind;
use std::sync::Arc;
use wire::{Format, Reply, Tag};

/// A cursor whose rows are coming.
pub(super) struct Declaring {
    name: String,
    backward: bool,
    holds: bool,
    /// The text of DECLARE.
    text: Arc<str>,
    rows: Gathered,
    /// The last of the positions that its rows wait for.
    wait: Position,
}

impl Declaring {
    /// The statement runs from its beginning, perhaps again.
    pub(super) fn forget(&mut self) {
        self.rows = Gathered::default();
        self.wait = Position(0);
    }
}

/// A statement's rows are kept by this name, to be read forward.
pub(super) fn keeping(name: String) -> Box<Declaring> {
    Box::new(Declaring {
        name,
        backward: false,
        holds: false,
        text: Arc::from(""),
        rows: Gathered::default(),
        wait: Position(0),
    })
}

/// A cursor between its DECLARE and its end: that of its transaction, unless it is WITH HOLD.
pub(super) struct DeclaredCursor {
    columns: Arc<[OutColumn]>,
    backward: bool,
    holds: bool,
    /// The text of DECLARE.
    text: Arc<str>,
    /// When it was declared.
    since: Time,
    /// Its transaction has committed, so that no other takes it away.
    kept: bool,
    rows: Gathered,
    /// Number of the present row, from 1; 0: before the first; one more than there are: behind the
    /// last.
    at: u64,
}

impl DeclaredCursor {
    /// Its text, whether it is WITH HOLD, whether it can be read backward, and since when it is.
    pub(super) fn told(&self) -> (&str, bool, bool, Time) {
        (&self.text, self.holds, self.backward, self.since)
    }
}

/// Rows in the order of their coming.
#[derive(Default)]
struct Gathered {
    /// Batches, none of them empty, each with the number of rows up to its end.
    batches: Vec<(u64, RowBatch)>,
    bytes: i64,
}

impl Gathered {
    fn count(&self) -> u64 {
        self.batches.last().map_or(0, |(end, _)| *end)
    }

    fn push(&mut self, batch: RowBatch) {
        if batch.is_empty() {
            return;
        }
        self.bytes += batch_bytes(&batch);
        let end = self.count() + u64::from(batch.rows);
        self.batches.push((end, batch));
    }

    /// Adds row `number`, from 1, which there must be, to `out`.
    fn copy(&self, number: u64, out: &mut RowBatch) {
        let found = self.batches.partition_point(|(end, _)| *end < number);
        let (end, batch) = &self.batches[found];
        let (width, back) = (batch.width as usize, (end - number) as usize);
        let first = (batch.rows as usize - 1 - back) * width;
        out.push(batch.datums[first..first + width].iter().cloned());
    }
}

fn batch_bytes(batch: &RowBatch) -> i64 {
    let values = batch.datums.capacity() * size_of::<Datum>() + size_of::<(u64, RowBatch)>();
    i64::try_from(values + datums_heap_bytes(&batch.datums)).unwrap_or(i64::MAX)
}

/// The rows that a movement meets, in their order, and where it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Movement {
    first: u64,
    count: u64,
    forward: bool,
    at: u64,
}

impl Movement {
    /// To one row, or beyond an end.
    fn to(row: i128, rows: u64) -> Movement {
        let at = row.clamp(0, i128::from(rows) + 1) as u64;
        Movement {
            first: at,
            count: u64::from(at > 0 && at <= rows),
            forward: true,
            at,
        }
    }

    fn of(direction: Direction, at: u64, rows: u64) -> Movement {
        match direction {
            Direction::Forward(0) | Direction::Relative(0) => Movement::to(at.into(), rows),
            Direction::Relative(count) => Movement::to(i128::from(at) + i128::from(count), rows),
            Direction::Absolute(row) if row < 0 => {
                Movement::to(i128::from(rows) + 1 + i128::from(row), rows)
            }
            Direction::Absolute(row) => Movement::to(row.into(), rows),
            Direction::Forward(wanted) if wanted > 0 => {
                let count = rows.saturating_sub(at).min(wanted.unsigned_abs());
                let beyond = count < wanted.unsigned_abs();
                Movement {
                    first: at + 1,
                    count,
                    forward: true,
                    at: if beyond { rows + 1 } else { at + count },
                }
            }
            Direction::Forward(wanted) => {
                let count = at.saturating_sub(1).min(wanted.unsigned_abs());
                let beyond = count < wanted.unsigned_abs();
                Movement {
                    first: at.saturating_sub(1),
                    count,
                    forward: false,
                    at: if beyond { 0 } else { at - count },
                }
            }
        }
    }

    fn rows(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |i| match self.forward {
            true => self.first + i,
            false => self.first - i,
        })
    }
}

/// Whether the movement reads the query backward or again, which NO SCROLL forbids.
fn goes_back(direction: Direction, at: u64, rows: u64) -> bool {
    match direction {
        Direction::Forward(0) | Direction::Relative(0) => at > 0 && at <= rows,
        Direction::Forward(count) | Direction::Relative(count) => count < 0,
        Direction::Absolute(row) => row < 0 || (at > 0 && row.unsigned_abs() <= at),
    }
}

impl Session {
    pub(super) fn declare(
        &mut self,
        cx: &mut SessionCx<'_>,
        declaration: &Declaration,
        start: Start,
    ) {
        let Declaration {
            name,
            backward,
            holds,
            statement,
        } = declaration;
        let prepared = self.prepare_statement(cx, statement, &[]);
        let checked = prepared.and_then(|prepared| {
            let plan = prepared.plan.as_ref();
            if !plan.is_some_and(|plan| matches!(plan.kind, PlanKind::Run(_))) {
                let message = "only queries can be declared as cursors";
                return Err(SqlError::new(SqlState::INVALID_CURSOR_DEFINITION, message));
            }
            self.check_declared(name, *holds)?;
            if *holds && plan.is_some_and(|plan| plan.locks) {
                let message = "DECLARE CURSOR WITH HOLD ... FOR UPDATE is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .detail("Holdable cursors must be READ ONLY."));
            }
            Ok(prepared)
        });
        match checked {
            Ok(prepared) => self.start(
                cx,
                Start {
                    prepared,
                    describe: false,
                    rows_max: 0,
                    portal: None,
                    declares: Some(Box::new(Declaring {
                        name: name.clone(),
                        backward: *backward,
                        holds: *holds,
                        text: statement.source().0.clone(),
                        rows: Gathered::default(),
                        wait: Position(0),
                    })),
                    ..start
                },
            ),
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    fn check_declared(&self, name: &str, holds: bool) -> Result<(), SqlError> {
        if self.block == Block::None && !holds {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(SqlError::new(SqlState::NO_ACTIVE_TXN, message));
        }
        if self.cursors.contains_key(name) || self.portals.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
        }
        Ok(())
    }

    /// Keeps rows of a cursor that is being declared.
    pub(super) fn gather(
        &mut self,
        cx: &mut SessionCx<'_>,
        number: StatementNo,
        batch: RowBatch,
        wait: Position,
    ) {
        let declaring = self.steps[self.at].declares.as_ref();
        let held = declaring.map_or(0, |declaring| declaring.rows.bytes);
        if let Err(error) = self.check_memory(held, batch_bytes(&batch)) {
            return self.fail(cx, error, wait);
        }
        if let Some(declaring) = &mut self.steps[self.at].declares {
            declaring.wait = declaring.wait.max(wait);
            declaring.rows.push(batch);
        }
        self.tell(cx, ToTxn::Credit(number, 1));
    }

    /// 53200 if the cursors, `held` and `bytes` more are too much.
    fn check_memory(&self, held: i64, bytes: i64) -> Result<(), SqlError> {
        const SETTING: &str = "statement_memory";
        let value = self.setting(SETTING);
        let kib = value.and_then(|value| pg_catalog::settings::integer(SETTING, &value));
        let limit = kib.expect("a setting that exists and was checked") * 1024;
        let held = self
            .cursors
            .values()
            .fold(held, |sum, cursor| sum.saturating_add(cursor.rows.bytes));
        if held.saturating_add(bytes) <= limit {
            return Ok(());
        }
        let detail = format!(
            "They hold {held} bytes and asked for {bytes} more; statement_memory allows {limit}."
        );
        let message = "the cursors of the session need too much memory";
        Err(SqlError::new(SqlState::OUT_OF_MEMORY, message)
            .detail(detail)
            .hint("Fetch fewer rows at once, close cursors, or raise statement_memory."))
    }

    /// The present step has ended well: if it is DECLARE, its cursor is there now. Returns the tag
    /// of the statement and the position that its answer waits for.
    pub(super) fn declared(&mut self, tag: Tag, wait: Position) -> (Tag, Position) {
        let step = &mut self.steps[self.at];
        let Some(declaring) = &mut step.declares else {
            return (tag, wait);
        };
        let wait = wait.max(declaring.wait);
        let cursor = DeclaredCursor {
            columns: step.plan.columns.clone(),
            backward: declaring.backward,
            holds: declaring.holds,
            text: declaring.text.clone(),
            since: self.statement_since,
            kept: false,
            rows: core::mem::take(&mut declaring.rows),
            at: 0,
        };
        self.cursors.insert(declaring.name.clone(), cursor);
        (Tag::Word("DECLARE CURSOR"), wait)
    }

    /// Number of rows that are kept by a name.
    pub(super) fn kept_rows(&self, name: &str) -> u64 {
        self.cursors
            .get(name)
            .map_or(0, |cursor| cursor.rows.count())
    }

    /// The row of a number, from 0, of those that are kept by a name.
    pub(super) fn kept_row(&self, name: &str, number: u64) -> Option<Vec<Datum>> {
        let cursor = self.cursors.get(name)?;
        if number >= cursor.rows.count() {
            return None;
        }
        let mut row = RowBatch::new(cursor.columns.len());
        cursor.rows.copy(number + 1, &mut row);
        Some(row.datums)
    }

    pub(super) fn forget_rows(&mut self, name: &str) {
        self.cursors.remove(name);
    }

    /// The columns of a cursor, if there is one of this name.
    pub(super) fn cursor_columns(&self, name: &str) -> Option<Arc<[OutColumn]>> {
        self.cursors.get(name).map(|cursor| cursor.columns.clone())
    }

    /// The transaction has committed: what was declared WITH HOLD in it stays.
    pub(super) fn hold_cursors(&mut self) {
        let cursors = self.cursors.values_mut();
        cursors.for_each(|cursor| cursor.kept |= cursor.holds);
    }

    /// The transaction has ended or failed: its cursors end, those of earlier ones stay.
    pub(super) fn end_cursors(&mut self) {
        self.cursors.retain(|_, cursor| cursor.kept);
    }

    pub(super) fn drop_cursor(&mut self, name: &str) {
        if self.cursors.remove(name).is_some() {
            self.keep_answers();
        }
    }

    /// What was read of a cursor cannot be taken back, so DECLARE cannot run again.
    fn keep_answers(&mut self) {
        if let Some(txn) = &mut self.txn {
            txn.retryable = false;
        }
    }

    /// FETCH, or MOVE if the last of `what` says so.
    pub(super) fn fetch(
        &mut self,
        cx: &mut SessionCx<'_>,
        (name, direction, moves): (&str, Direction, bool),
        start: &Start,
    ) {
        if let Some((error, wait)) = self.txn.as_mut().and_then(|txn| txn.broken.take()) {
            self.fail(cx, error, wait);
            return;
        }
        let result = if moves {
            let moved = self.movement(name, direction);
            moved.map(|movement| Tag::Count("MOVE", movement.count))
        } else {
            self.give_fetched(cx, name, direction, start)
        };
        match result {
            Ok(tag) => {
                self.keep_answers();
                self.complete(tag);
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    /// Moves the cursor.
    fn movement(&mut self, name: &str, direction: Direction) -> Result<Movement, SqlError> {
        let Some(cursor) = self.cursors.get_mut(name) else {
            return Err(match self.portals.contains_key(name) {
                true => SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "FETCH from a portal of the extended protocol is not supported",
                ),
                false => no_cursor(name),
            });
        };
        let rows = cursor.rows.count();
        if !cursor.backward && goes_back(direction, cursor.at, rows) {
            let message = "cursor can only scan forward";
            let error = SqlError::new(SqlState::OBJECT_NOT_READY, message);
            return Err(error.hint("Declare it with SCROLL option to enable backward scan."));
        }
        let movement = Movement::of(direction, cursor.at, rows);
        cursor.at = movement.at;
        Ok(movement)
    }

    fn give_fetched(
        &mut self,
        cx: &mut SessionCx<'_>,
        name: &str,
        direction: Direction,
        start: &Start,
    ) -> Result<Tag, SqlError> {
        let movement = self.movement(name, direction)?;
        let cursor = self.cursors.get(name).ok_or_else(|| no_cursor(name))?;
        let (columns, formats) = (cursor.columns.clone(), start.formats.clone());
        check_formats(&columns, &formats)?;
        if start.rows_max > 0 && movement.count > u64::from(start.rows_max) {
            let message = "FETCH of more rows than its Execute asks for is not supported";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let mut batch = RowBatch::new(columns.len());
        // The copies are dropped if they are too much; their number is known before.
        let average = cursor.rows.bytes / i64::try_from(cursor.rows.count()).unwrap_or(1).max(1);
        let count = i64::try_from(movement.count).unwrap_or(i64::MAX);
        self.check_memory(0, average.saturating_mul(count))?;
        movement
            .rows()
            .for_each(|row| cursor.rows.copy(row, &mut batch));
        self.put_names(cx, &columns, &formats, &mut batch)?;
        if start.describe {
            let description = Reply::RowDescription(columns.clone(), formats.clone());
            self.say(description, Position(0));
        }
        if !batch.is_empty() {
            self.say(Reply::Rows(columns, formats, batch), Position(0));
        }
        self.statement_rows |= movement.count;
        Ok(Tag::Count("FETCH", movement.count))
    }

    /// CLOSE; `None`: all.
    pub(super) fn close_cursors(
        &mut self,
        cx: &mut SessionCx<'_>,
        name: Option<&str>,
        start: &Start,
    ) -> Result<&'static str, SqlError> {
        let Some(name) = name else {
            let mut names: Vec<String> = self.cursors.keys().cloned().collect();
            names.extend(self.portals.keys().cloned());
            names.retain(|name| start.portal.as_ref() != Some(name));
            names.iter().for_each(|name| self.close_named(cx, name));
            return Ok("CLOSE CURSOR ALL");
        };
        if !self.cursors.contains_key(name) && !self.portals.contains_key(name) {
            return Err(no_cursor(name));
        }
        self.close_named(cx, name);
        Ok("CLOSE CURSOR")
    }

    pub(super) fn close_named(&mut self, cx: &mut SessionCx<'_>, name: &str) {
        self.drop_cursor(name);
        if let Some(portal) = self.portals.remove(name) {
            self.drop_portal(cx, portal);
        }
    }
}

/// 34000.
fn no_cursor(name: &str) -> SqlError {
    let message = format!("cursor \"{name}\" does not exist");
    SqlError::new(SqlState::INVALID_CURSOR_NAME, message)
}

/// The formats of a Bind before the cursor was declared, perhaps for other columns.
fn check_formats(columns: &[OutColumn], formats: &[Format]) -> Result<(), SqlError> {
    if formats.len() > 1 && formats.len() != columns.len() {
        return Err(errors::protocol(format!(
            "bind message has {} result formats but query has {} columns",
            formats.len(),
            columns.len()
        )));
    }
    let mut both = formats.iter().cycle().zip(columns);
    both.try_for_each(|(format, column)| match format {
        Format::Binary => pg_catalog::output::check_binary(column.ty),
        Format::Text => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn movements_end_beyond_the_rows() {
        let moved = |direction, at| {
            let movement = Movement::of(direction, at, 3);
            (movement.rows().collect::<Vec<_>>(), movement.at)
        };
        assert_eq!(moved(Direction::Forward(2), 0), (vec![1, 2], 2));
        assert_eq!(moved(Direction::Forward(2), 2), (vec![3], 4));
        assert_eq!(moved(Direction::Forward(1), 4), (vec![], 4));
        assert_eq!(moved(Direction::Forward(-2), 4), (vec![3, 2], 2));
        assert_eq!(moved(Direction::Forward(-i64::MAX), 2), (vec![1], 0));
        assert_eq!(moved(Direction::Forward(0), 2), (vec![2], 2));
        assert_eq!(moved(Direction::Relative(0), 4), (vec![], 4));
        assert_eq!(moved(Direction::Relative(-2), 4), (vec![2], 2));
        assert_eq!(moved(Direction::Absolute(-1), 0), (vec![3], 3));
        assert_eq!(moved(Direction::Absolute(-4), 1), (vec![], 0));
        assert_eq!(moved(Direction::Absolute(9), 1), (vec![], 4));
    }

    #[test]
    fn rows_are_found_in_their_batches() {
        let mut rows = Gathered::default();
        for numbers in [vec![1, 2], vec![], vec![3]] {
            let mut batch = RowBatch::new(1);
            numbers
                .into_iter()
                .for_each(|n| batch.push([Datum::Int(n)]));
            rows.push(batch);
        }
        let mut out = RowBatch::new(1);
        [3, 1, 2].iter().for_each(|row| rows.copy(*row, &mut out));
        assert_eq!(out.datums, [3, 1, 2].map(Datum::Int));
        assert_eq!(rows.count(), 3);
    }
}
