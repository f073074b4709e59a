//! Carries instructions out.

use crate::blocks::{codes, is_state};
use crate::machine::{
    Ask, Counter, Frame, Host, Machine, Param, Rows, Run, Slot, Waits, no_handler, null_bound,
    state,
};
use crate::program::{FOUND, Fact, Level, Op, Place, Raise, RaiseOption, Source, Target};
use base::{Datum, SqlError, SqlState, Type};

impl Counter {
    /// The number of the next turn.
    fn turn(&mut self) -> Option<i64> {
        let past = match self.step < 0 {
            true => self.next < self.last,
            false => self.next > self.last,
        };
        if self.over || past {
            return None;
        }
        self.turned = true;
        let number = self.next;
        self.next += self.step;
        self.over = i32::try_from(self.next).is_err();
        Some(number)
    }
}

impl Machine {
    fn value(&mut self, at: usize) -> (Type, Datum) {
        core::mem::replace(&mut self.values[at], (Type::Text, Datum::Null))
    }

    /// Carries an instruction out, whose values are there.
    pub(crate) fn perform(&mut self, op: &Op, host: &dyn Host) -> Result<Option<Ask>, SqlError> {
        match op {
            Op::Run(fragment, into) => {
                let rows = if into.is_some() {
                    Rows::First
                } else {
                    Rows::None
                };
                self.waits = Waits::Ran(into.clone());
                return Ok(Some(Ask::Run(self.run_of(*fragment, rows))));
            }
            Op::Perform(fragment) => {
                self.waits = Waits::Ran(None);
                return Ok(Some(Ask::Run(self.run_of(*fragment, Rows::Dropped))));
            }
            Op::Execute(source, into) => {
                let rows = if into.is_some() {
                    Rows::First
                } else {
                    Rows::None
                };
                let ask = self.source(source, rows, host)?;
                self.waits = Waits::Ran(into.clone());
                return Ok(Some(ask));
            }
            Op::Open(of, source) => {
                let ask = self.source(source, Rows::Loop(*of), host)?;
                self.waits = Waits::Opened(*of);
                return Ok(Some(ask));
            }
            Op::NextRow { of, .. } => {
                self.waits = Waits::Row(*of);
                return Ok(Some(Ask::Row(*of, self.loops[*of].next)));
            }
            Op::Raise(raise) => {
                let error = self.raised(raise, host)?;
                if raise.level == Level::Exception {
                    return Err(error);
                }
                self.at += 1;
                return Ok(Some(Ask::Tell(raise.level, error)));
            }
            Op::RaiseAgain => {
                let handling = self.handling.last();
                let what = "RAISE without parameters";
                return Err(handling.ok_or_else(|| no_handler(what))?.error.clone());
            }
            Op::NoCase => {
                return Err(SqlError::new(state("20000"), "case not found")
                    .hint("CASE statement is missing ELSE part."));
            }
            Op::Return => return Ok(Some(Ask::Done)),
            Op::Enter { .. } | Op::Leave | Op::Unwind(_) | Op::Handled => {
                return Ok(self.blocks(op));
            }
            _ => {}
        }
        self.at = self.next(op, host)?;
        Ok(None)
    }

    /// Enters and leaves blocks with handlers.
    fn blocks(&mut self, op: &Op) -> Option<Ask> {
        self.at += 1;
        match op {
            Op::Enter { handlers, level } => {
                let number = self.frames.len();
                self.frames.push(Frame {
                    handlers: *handlers,
                    level: *level,
                });
                Some(Ask::Savepoint(number))
            }
            Op::Leave => {
                self.frames.pop();
                Some(Ask::Release(self.frames.len()))
            }
            Op::Unwind(level) => {
                self.handling.retain(|handling| handling.level <= *level);
                let kept = self.frames.iter();
                let kept = kept.filter(|frame| frame.level <= *level).count();
                let left = kept < self.frames.len();
                self.frames.truncate(kept);
                left.then_some(Ask::Release(kept))
            }
            _ => {
                self.handling.pop();
                None
            }
        }
    }

    /// Carries an instruction out that asks for nothing; which one is next.
    fn next(&mut self, op: &Op, host: &dyn Host) -> Result<Place, SqlError> {
        let mut next = self.at + 1;
        match op {
            Op::Reset(var) => match &mut self.slots[*var] {
                Slot::Scalar(_, value) => *value = Datum::Null,
                Slot::Record {
                    fixed: true,
                    values,
                    ..
                } => values.fill(Datum::Null),
                Slot::Record {
                    columns, values, ..
                } => {
                    *columns = None;
                    values.clear();
                }
            },
            Op::Assign(target, _) => {
                let (from, value) = self.value(0);
                self.assign(target, value, from, host)?;
            }
            Op::Jump(to) => next = *to,
            Op::Unless(_, to) => {
                let (from, value) = self.value(0);
                if host.convert(value, from, Type::Bool)? != Datum::Bool(true) {
                    next = *to;
                }
            }
            Op::Count { of, reverse, .. } => self.count(*of, *reverse, host)?,
            Op::NextNumber { of, var, end } => match self.counters[*of].turn() {
                Some(number) => {
                    self.slots[*var] = Slot::Scalar(Type::Int4, Datum::Int(number));
                }
                None => next = *end,
            },
            Op::LoopedNumbers(of) => {
                let turned = self.counters[*of].turned;
                self.slots[FOUND] = Slot::Scalar(Type::Bool, Datum::Bool(turned));
            }
            Op::LoopedRows(of) => {
                let turned = self.loops[*of].next > 0;
                self.slots[FOUND] = Slot::Scalar(Type::Bool, Datum::Bool(turned));
            }
            Op::Diagnostics(items) => self.diagnostics(items, host)?,
            other => unreachable!("{other:?} asks for something"),
        }
        Ok(next)
    }

    fn source(&mut self, source: &Source, rows: Rows, host: &dyn Host) -> Result<Ask, SqlError> {
        let (text, using) = match source {
            Source::Static(fragment) => return Ok(Ask::Run(self.run_of(*fragment, rows))),
            Source::Dynamic { text, using } => (*text, using.len()),
        };
        let (ty, value) = self.value(0);
        if value.is_null() {
            let message = "query string argument of EXECUTE is null";
            return Err(SqlError::new(state("22004"), message));
        }
        let sql = host.text(&value, ty)?;
        let params = (1..=using).map(|at| {
            let (ty, value) = self.value(at);
            Param {
                qualifier: None,
                name: String::new(),
                ty,
                value,
            }
        });
        let run = Run {
            fragment: text,
            params: params.collect(),
            missing: None,
            rows,
        };
        Ok(Ask::RunText(sql, run))
    }

    fn count(&mut self, of: usize, reverse: bool, host: &dyn Host) -> Result<(), SqlError> {
        let mut numbers = [0, 0, 1];
        for at in 0..self.values.len() {
            let (from, value) = self.value(at);
            let Datum::Int(number) = host.convert(value, from, Type::Int4)? else {
                return Err(null_bound(["lower bound", "upper bound", "BY value"][at]));
            };
            numbers[at] = number;
        }
        let [next, last, step] = numbers;
        if step <= 0 {
            let message = "BY value of FOR loop must be greater than zero";
            return Err(SqlError::new(state("22023"), message));
        }
        self.counters[of] = Counter {
            next,
            last,
            step: if reverse { -step } else { step },
            turned: false,
            over: false,
        };
        Ok(())
    }

    fn diagnostics(&mut self, items: &[(Target, Fact)], host: &dyn Host) -> Result<(), SqlError> {
        for (target, fact) in items {
            if *fact == Fact::RowCount {
                let count = Datum::Int(i64::try_from(self.row_count).unwrap_or(i64::MAX));
                self.assign(target, count, Type::Int8, host)?;
                continue;
            }
            let handling = self.handling.last();
            let error = &handling
                .ok_or_else(|| no_handler("GET STACKED DIAGNOSTICS"))?
                .error;
            let fields = error.fields();
            let state = error.state();
            let text: &str = match fact {
                Fact::RowCount | Fact::Nothing => "",
                Fact::State => state.as_str(),
                Fact::Message => &fields.message,
                Fact::Detail => &fields.detail,
                Fact::Hint => &fields.hint,
                Fact::Context => &fields.context,
                Fact::Column => &fields.column,
                Fact::Constraint => &fields.constraint,
                Fact::Table => &fields.table,
            };
            let text = Datum::Text(text.into());
            self.assign(target, text, Type::Text, host)?;
        }
        Ok(())
    }

    /// What a RAISE says.
    fn raised(&mut self, raise: &Raise, host: &dyn Host) -> Result<SqlError, SqlError> {
        let mut texts = Vec::new();
        for at in 0..self.values.len() {
            let (ty, value) = self.value(at);
            texts.push(match value.is_null() {
                true => None,
                false => Some(host.text(&value, ty)?),
            });
        }
        let options = texts.split_off(raise.args.len());
        let mut said = Said {
            message: raise.parts.as_ref().map(|parts| filled(parts, &texts)),
            condition: raise.condition.clone(),
            rest: Vec::new(),
        };
        for ((option, _), text) in raise.options.iter().zip(options) {
            let Some(text) = text else {
                let message = "RAISE statement option cannot be null";
                return Err(SqlError::new(state("22004"), message));
            };
            said.take(*option, text)?;
        }
        Ok(said.error(raise.level))
    }
}

/// A format with texts at its marks.
fn filled(parts: &[String], texts: &[Option<String>]) -> String {
    let mut message = parts[0].clone();
    for (text, part) in texts.iter().zip(&parts[1..]) {
        message.push_str(text.as_deref().unwrap_or("<NULL>"));
        message.push_str(part);
    }
    message
}

/// What a RAISE has said so far.
struct Said {
    message: Option<String>,
    /// Its code and name.
    condition: Option<(String, String)>,
    rest: Vec<(RaiseOption, String)>,
}

impl Said {
    fn has(&self, option: RaiseOption) -> Option<&'static str> {
        let said = |option| self.rest.iter().any(|(it, _)| *it == option);
        match option {
            RaiseOption::Message if self.message.is_some() => Some("MESSAGE"),
            RaiseOption::State if self.condition.is_some() => Some("ERRCODE"),
            RaiseOption::Detail if said(option) => Some("DETAIL"),
            RaiseOption::Hint if said(option) => Some("HINT"),
            RaiseOption::Column if said(option) => Some("COLUMN"),
            RaiseOption::Constraint if said(option) => Some("CONSTRAINT"),
            RaiseOption::Table if said(option) => Some("TABLE"),
            _ => None,
        }
    }

    /// # Errors
    /// 42601 for what was said already, 42704 for a condition that does not exist.
    fn take(&mut self, option: RaiseOption, text: String) -> Result<(), SqlError> {
        if let Some(name) = self.has(option) {
            let message = format!("RAISE option already specified: {name}");
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        match option {
            RaiseOption::Message => self.message = Some(text),
            RaiseOption::State if is_state(&text) => self.condition = Some((text.clone(), text)),
            RaiseOption::State => {
                let code = codes(&text)?[0];
                self.condition = Some((code.to_owned(), text));
            }
            _ => self.rest.push((option, text)),
        }
        Ok(())
    }

    fn error(self, level: Level) -> SqlError {
        let default = match level {
            Level::Exception => "P0001",
            Level::Warning => "01000",
            Level::Debug | Level::Log | Level::Info | Level::Notice => "00000",
        };
        let condition = self.condition.filter(|(code, _)| code != "00000");
        let (code, name) = condition.unwrap_or_else(|| (default.into(), default.into()));
        let mut error = SqlError::new(state(&code), self.message.unwrap_or(name));
        for (option, text) in self.rest {
            error = match option {
                RaiseOption::Detail => error.detail(text),
                RaiseOption::Hint => error.hint(text),
                RaiseOption::Column => error.column(text),
                RaiseOption::Constraint => error.constraint(text),
                RaiseOption::Table => error.table(text),
                RaiseOption::Message | RaiseOption::State | RaiseOption::Untold => error,
            };
        }
        error
    }
}
