//! Goes through a program: one question at a time, each with one answer.

use crate::program::{
    Condition, Declared, FOUND, FragmentNo, Handlers, Into, Level, LoopNo, Op, Place, Program,
    Read, Target,
};
use base::{Datum, SqlError, SqlState, Type};
use std::sync::Arc;

/// Names and types of columns.
pub type Columns = Arc<[(String, Type)]>;

/// A variable as a statement reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// What stands in front of its name.
    pub qualifier: Option<String>,
    /// Its name; empty for `$n` of an EXECUTE.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its value.
    pub value: Datum,
}

/// What the machine wants.
#[derive(Clone, PartialEq, Debug)]
pub enum Ask {
    /// Run a fragment, and answer [`Answer::Ran`].
    Run(Run),
    /// Run the text of an EXECUTE.
    RunText(String, Run),
    /// The row of this number, from 0, of a loop: [`Answer::Row`].
    Row(LoopNo, u64),
    /// Set the savepoint of this number.
    Savepoint(usize),
    /// Release it, and those behind it.
    Release(usize),
    /// Go back to it, and release it.
    RollBackTo(usize),
    /// Tell the client.
    Tell(Level, SqlError),
    /// It has failed.
    Fail(SqlError),
    /// It has ended.
    Done,
}

/// A statement to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Its number; of an EXECUTE that of its text.
    pub fragment: FragmentNo,
    /// What its names mean.
    pub params: Vec<Param>,
    /// The error in place of that of a name which is not found.
    pub missing: Option<SqlError>,
    /// What becomes of its rows.
    pub rows: Rows,
}

/// What becomes of the rows of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// It must give none, unless it is the text of an EXECUTE.
    None,
    /// They are dropped.
    Dropped,
    /// The first one is wanted.
    First,
    /// They are kept for a loop.
    Loop(LoopNo),
}

/// The answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// What was asked for has been done. The first answer.
    Done,
    /// A statement has run.
    Ran {
        /// Its columns.
        columns: Columns,
        /// Its first row.
        first: Option<Vec<Datum>>,
        /// Rows that it gave or changed.
        count: u64,
        /// Whether it is a query or changes rows.
        counts: bool,
        /// Whether it changes rows.
        writes: bool,
    },
    /// The row of a loop; `None`: there are no more.
    Row(Option<Vec<Datum>>),
    /// An error, and whether the transaction can go on from a savepoint.
    Failed(SqlError, bool),
}

/// Values between types.
pub trait Host {
    /// A value of `from` as one of `to`, as an assignment gives it.
    ///
    /// # Errors
    /// What reading the value in the other type raises.
    fn convert(&self, value: Datum, from: Type, to: Type) -> Result<Datum, SqlError>;
    /// A value as its type writes it.
    ///
    /// # Errors
    /// XX000 for a value of a type that is gone.
    fn text(&self, value: &Datum, ty: Type) -> Result<String, SqlError>;
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Slot {
    Scalar(Type, Datum),
    /// `None`: nothing was assigned. Rows of a relation have their columns from the beginning.
    Record {
        columns: Option<Columns>,
        values: Vec<Datum>,
        fixed: bool,
    },
}

/// A block with handlers that is entered.
pub(crate) struct Frame {
    pub(crate) handlers: usize,
    pub(crate) level: usize,
}

/// A handler that runs.
pub(crate) struct Handling {
    pub(crate) level: usize,
    pub(crate) error: SqlError,
}

#[derive(Default)]
pub(crate) struct Counter {
    pub(crate) next: i64,
    pub(crate) last: i64,
    pub(crate) step: i64,
    pub(crate) turned: bool,
    pub(crate) over: bool,
}

#[derive(Default)]
pub(crate) struct RowLoop {
    pub(crate) columns: Option<Columns>,
    pub(crate) next: u64,
}

/// For what the machine waits.
pub(crate) enum Waits {
    Nothing,
    Value,
    Ran(Option<Into>),
    Opened(LoopNo),
    Row(LoopNo),
    RolledBack {
        to: Place,
        handlers: usize,
        level: usize,
        error: SqlError,
    },
}

/// The machine.
pub struct Machine {
    pub(crate) program: Arc<Program>,
    pub(crate) at: Place,
    pub(crate) slots: Vec<Slot>,
    pub(crate) values: Vec<(Type, Datum)>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) handling: Vec<Handling>,
    pub(crate) counters: Vec<Counter>,
    pub(crate) loops: Vec<RowLoop>,
    pub(crate) row_count: u64,
    pub(crate) waits: Waits,
}

pub(crate) fn state(code: &str) -> SqlState {
    let mut bytes = *b"P0001";
    if let Ok(code) = code.as_bytes().try_into() {
        bytes = code;
    }
    SqlState(bytes)
}

pub(crate) fn null_bound(which: &str) -> SqlError {
    let message = format!("{which} of FOR loop cannot be null");
    SqlError::new(state("22004"), message)
}

pub(crate) fn no_handler(what: &str) -> SqlError {
    let message = format!("{what} cannot be used outside an exception handler");
    SqlError::new(state("0Z002"), message)
}

impl Condition {
    fn takes(&self, error: &SqlError) -> bool {
        let code = error.state();
        let code = code.as_str();
        match self {
            Condition::Others => !matches!(code, "57014" | "P0004"),
            Condition::State(state) => state == code,
            Condition::Class(class) => code.starts_with(class.as_str()),
        }
    }
}

impl Machine {
    /// A machine before the first instruction. `types`: of each variable the type, or columns.
    pub fn new(program: Arc<Program>, types: &[Result<Type, Option<Columns>>]) -> Machine {
        let slots = types.iter().map(|ty| match ty {
            Ok(ty) => Slot::Scalar(*ty, Datum::Null),
            Err(columns) => Slot::Record {
                values: vec![Datum::Null; columns.as_ref().map_or(0, |it| it.len())],
                fixed: columns.is_some(),
                columns: columns.clone(),
            },
        });
        let mut slots: Vec<Slot> = slots.collect();
        slots[FOUND] = Slot::Scalar(Type::Bool, Datum::Bool(false));
        let counters = (0..program.counts).map(|_| Counter::default()).collect();
        let loops = (0..program.loops).map(|_| RowLoop::default()).collect();
        Machine {
            program,
            at: 0,
            slots,
            values: Vec::new(),
            frames: Vec::new(),
            handling: Vec::new(),
            counters,
            loops,
            row_count: 0,
            waits: Waits::Nothing,
        }
    }

    /// Its program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Takes an answer, and goes on to the next question. `None`: it has gone through `limit`
    /// instructions, and is to be asked again with [`Answer::Done`].
    pub fn go_on(&mut self, answer: Answer, limit: u32, host: &dyn Host) -> Option<Ask> {
        if let Err(asked) = self.answered(answer, host) {
            return Some(asked);
        }
        for _ in 0..limit {
            let program = self.program.clone();
            let op = &program.ops[self.at];
            let needed = op.values();
            if let Some(fragment) = needed.get(self.values.len()) {
                self.waits = Waits::Value;
                return Some(Ask::Run(self.run_of(*fragment, Rows::First)));
            }
            match self.perform(op, host) {
                Ok(None) => self.values.clear(),
                Ok(Some(ask)) => {
                    self.values.clear();
                    return Some(ask);
                }
                Err(error) => return Some(self.fails(error, true)),
            }
        }
        None
    }

    fn answered(&mut self, answer: Answer, host: &dyn Host) -> Result<(), Ask> {
        let waits = core::mem::replace(&mut self.waits, Waits::Nothing);
        let done = match (waits, answer) {
            (_, Answer::Failed(error, can_catch)) => return Err(self.fails(error, can_catch)),
            (
                Waits::Value,
                Answer::Ran {
                    columns,
                    first,
                    count,
                    ..
                },
            ) => self.take_value(&columns, first, count),
            (Waits::Ran(into), ran @ Answer::Ran { .. }) => {
                let taken = self.take_ran(into, ran, host);
                self.at += usize::from(taken.is_ok());
                taken
            }
            (Waits::Opened(of), Answer::Ran { columns, count, .. }) => {
                self.row_count = count;
                self.loops[of] = RowLoop {
                    columns: Some(columns),
                    next: 0,
                };
                self.at += 1;
                Ok(())
            }
            (Waits::Row(of), Answer::Row(row)) => self.take_row(of, row, host),
            (
                Waits::RolledBack {
                    to,
                    handlers,
                    level,
                    error,
                },
                _,
            ) => {
                let Handlers { state, message, .. } = &self.program.handlers[handlers];
                let (state, message) = (*state, *message);
                let text = |text: &str| Slot::Scalar(Type::Text, Datum::Text(text.into()));
                self.slots[state] = text(error.state().as_str());
                self.slots[message] = text(&error.fields().message);
                self.handling.push(Handling { level, error });
                self.at = to;
                Ok(())
            }
            _ => Ok(()),
        };
        done.map_err(|error| self.fails(error, true))
    }

    /// The error goes to the handler that takes it, or is that of the program.
    fn fails(&mut self, error: SqlError, can_catch: bool) -> Ask {
        self.values.clear();
        let error = self.placed(error);
        let mut found = None;
        if can_catch {
            for (number, frame) in self.frames.iter().enumerate().rev() {
                let arms = &self.program.handlers[frame.handlers].arms;
                let takes = |conditions: &[Condition]| conditions.iter().any(|it| it.takes(&error));
                if let Some(arm) = arms.iter().find(|arm| takes(&arm.conditions)) {
                    found = Some((number, frame.handlers, frame.level, arm.to));
                    break;
                }
            }
        }
        let Some((number, handlers, level, to)) = found else {
            return Ask::Fail(error);
        };
        self.frames.truncate(number);
        self.handling.retain(|handling| handling.level < level);
        self.waits = Waits::RolledBack {
            to,
            handlers,
            level,
            error,
        };
        Ask::RollBackTo(number)
    }

    /// The error with its place.
    fn placed(&self, error: SqlError) -> SqlError {
        let (op, line) = (&self.program.ops[self.at], self.program.lines[self.at]);
        let place = format!(
            "PL/pgSQL function inline_code_block line {line} at {}",
            op.title()
        );
        let before = &error.fields().context;
        let context = match before.as_str() {
            "" => place,
            before => format!("{before}\n{place}"),
        };
        error.context(context).at(0)
    }

    pub(crate) fn run_of(&self, fragment: FragmentNo, rows: Rows) -> Run {
        let (mut params, mut missing) = (Vec::new(), None);
        for read in &self.program.fragments[fragment].reads {
            match self.param(read) {
                Ok(Some(param)) => params.push(param),
                Ok(None) => {}
                Err(error) => missing = Some(error),
            }
        }
        Run {
            fragment,
            params,
            missing,
            rows,
        }
    }

    fn param(&self, read: &Read) -> Result<Option<Param>, SqlError> {
        let param = |ty: Type, value: &Datum| {
            Ok(Some(Param {
                qualifier: read.qualifier.clone(),
                name: read.name.clone(),
                ty,
                value: value.clone(),
            }))
        };
        match &self.slots[read.var] {
            Slot::Scalar(ty, value) => param(*ty, value),
            Slot::Record { .. } if read.is_whole => {
                Err(crate::unsupported("a whole record as a value").hint("Name its fields."))
            }
            Slot::Record {
                columns, values, ..
            } => {
                let name = &self.program.variables[read.var].name;
                let columns = columns.as_ref().ok_or_else(|| unassigned(name))?;
                let at = columns.iter().position(|(column, _)| *column == read.name);
                let at = at.ok_or_else(|| no_field(name, &read.name))?;
                param(columns[at].1, &values[at])
            }
        }
    }

    fn take_value(
        &mut self,
        columns: &Columns,
        first: Option<Vec<Datum>>,
        count: u64,
    ) -> Result<(), SqlError> {
        if columns.len() != 1 {
            let many = columns.len();
            let ending = if many == 1 { "" } else { "s" };
            let message = format!("query returned {many} column{ending}");
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        if count > 1 {
            let message = "query returned more than one row";
            return Err(SqlError::new(state("21000"), message));
        }
        let value = first.and_then(|row| row.into_iter().next());
        self.values
            .push((columns[0].1, value.unwrap_or(Datum::Null)));
        Ok(())
    }

    fn take_ran(
        &mut self,
        into: Option<Into>,
        ran: Answer,
        host: &dyn Host,
    ) -> Result<(), SqlError> {
        let Answer::Ran {
            columns,
            first,
            count,
            counts,
            writes,
        } = ran
        else {
            return Ok(());
        };
        self.row_count = count;
        let dynamic = matches!(self.program.ops[self.at], Op::Execute(..));
        if counts && !dynamic {
            self.slots[FOUND] = Slot::Scalar(Type::Bool, Datum::Bool(count > 0));
        }
        let Some(into) = into else {
            return Ok(());
        };
        if into.strict && count == 0 {
            return Err(SqlError::new(state("P0002"), "query returned no rows"));
        }
        if (into.strict || writes) && count > 1 {
            let message = "query returned more than one row";
            let hint = "Make sure the query returns a single row, or use LIMIT 1.";
            return Err(SqlError::new(state("P0003"), message).hint(hint));
        }
        let row = first.unwrap_or_else(|| vec![Datum::Null; columns.len()]);
        self.assign_row(&into.targets, &columns, row, host)
    }

    fn take_row(
        &mut self,
        of: LoopNo,
        row: Option<Vec<Datum>>,
        host: &dyn Host,
    ) -> Result<(), SqlError> {
        let program = self.program.clone();
        let Op::NextRow { targets, end, .. } = &program.ops[self.at] else {
            return Ok(());
        };
        let columns = self.loops[of].columns.clone().unwrap_or_default();
        match row {
            Some(row) => {
                self.loops[of].next += 1;
                self.assign_row(targets, &columns, row, host)?;
                self.at += 1;
            }
            None => self.at = *end,
        }
        Ok(())
    }

    fn assign_row(
        &mut self,
        targets: &[Target],
        columns: &Columns,
        row: Vec<Datum>,
        host: &dyn Host,
    ) -> Result<(), SqlError> {
        if let [Target::Variable(var)] = targets
            && let Slot::Record {
                columns: known,
                values,
                fixed,
            } = &mut self.slots[*var]
        {
            if !*fixed {
                *known = Some(columns.clone());
                *values = row;
                return Ok(());
            }
            let known = known.clone().unwrap_or_default();
            let mut given = row.into_iter().zip(columns.iter());
            let mut converted = Vec::with_capacity(known.len());
            for (_, to) in known.iter() {
                converted.push(match given.next() {
                    Some((value, (_, from))) => host.convert(value, *from, *to)?,
                    None => Datum::Null,
                });
            }
            *values = converted;
            return Ok(());
        }
        let mut given = row.into_iter().zip(columns.iter());
        for target in targets {
            match given.next() {
                Some((value, (_, from))) => self.assign(target, value, *from, host)?,
                None => self.assign(target, Datum::Null, Type::Text, host)?,
            }
        }
        Ok(())
    }

    pub(crate) fn assign(
        &mut self,
        target: &Target,
        value: Datum,
        from: Type,
        host: &dyn Host,
    ) -> Result<(), SqlError> {
        let variables = &self.program.variables;
        match target {
            Target::Variable(var) => {
                let Slot::Scalar(ty, place) = &mut self.slots[*var] else {
                    return Err(crate::unsupported("an assignment to a whole record"));
                };
                let variable = &variables[*var];
                if value.is_null() && variable.not_null {
                    let message = format!(
                        "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                        variable.name
                    );
                    return Err(SqlError::new(state("22004"), message));
                }
                *place = host.convert(value, from, *ty)?;
            }
            Target::Field(var, field) => {
                let name = &variables[*var].name;
                let Slot::Record {
                    columns, values, ..
                } = &mut self.slots[*var]
                else {
                    return Err(no_field(name, field));
                };
                let columns = columns.as_ref().ok_or_else(|| unassigned(name))?;
                let at = columns.iter().position(|(column, _)| column == field);
                let at = at.ok_or_else(|| no_field(name, field))?;
                values[at] = host.convert(value, from, columns[at].1)?;
            }
        }
        Ok(())
    }
}

fn unassigned(name: &str) -> SqlError {
    let message = format!("record \"{name}\" is not assigned yet");
    SqlError::new(state("55000"), message)
        .detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}

fn no_field(name: &str, field: &str) -> SqlError {
    let message = format!("record \"{name}\" has no field \"{field}\"");
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

/// The type that a variable has without the catalog.
pub fn own_type(declared: &Declared) -> Option<Type> {
    match declared {
        Declared::Integer => Some(Type::Int4),
        Declared::Text => Some(Type::Text),
        Declared::Boolean => Some(Type::Bool),
        Declared::Named(_)
        | Declared::Column(_)
        | Declared::Like(_)
        | Declared::Record
        | Declared::Row(_) => None,
    }
}
