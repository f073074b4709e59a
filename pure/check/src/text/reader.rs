//! From text to a history.

use super::form::{Cursor, Form, ReadError, Wrong};
use super::{Format, edn, json};
use crate::history::{History, Op, Outcome, Txn};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Reads a history.
///
/// `Err` names the line and what is wrong; the history so far is dropped. Transactions are in the
/// order of their ends, those that never ended last.
pub fn read(text: &str, format: Format) -> Result<History, ReadError> {
    let mut reader = Reader::default();
    let mut cursor = Cursor::new(text);
    let each = |line, form| reader.on_operation(line, &form);
    match format {
        Format::Edn => edn::each(&mut cursor, each)?,
        Format::Json => json::each(&mut cursor, each)?,
    }
    reader.finish()
}

/// When something happened: by the clock if every operation has one, else by its place.
#[derive(Clone, Copy)]
struct Moment {
    time: Option<u64>,
    place: u64,
}

/// A transaction that has not ended.
struct Open {
    line: u32,
    invoked: Moment,
    ops: Vec<Op>,
}

struct Ended {
    process: u32,
    line: u32,
    invoked: Moment,
    completed: Option<Moment>,
    outcome: Outcome,
    ops: Vec<Op>,
}

#[derive(Default)]
struct Reader {
    open: BTreeMap<u32, Open>,
    ended: Vec<Ended>,
    count: u64,
    /// An operation had no time that can be used.
    timeless: bool,
    names: BTreeMap<String, u64>,
    lists: BTreeSet<u64>,
    registers: BTreeSet<u64>,
    any_append: bool,
    any_write: bool,
}

/// What `:type` says.
enum Type {
    Invoke,
    End(Outcome),
}

impl Reader {
    fn on_operation(&mut self, line: u32, form: &Form) -> Result<(), ReadError> {
        let at = |wrong| ReadError { line, wrong };
        if !matches!(form, Form::Map(_)) {
            return Err(at(Wrong::NotAnOperation));
        }
        let process = form.get("process").ok_or(at(Wrong::Field("process")))?;
        let is_txn = form
            .get("f")
            .and_then(Form::word)
            .is_none_or(|f| f == "txn");
        let Some(process) = process.int().filter(|_| is_txn) else {
            return Ok(());
        };
        let process = u32::try_from(process).map_err(|_| at(Wrong::Field("process")))?;
        let kind = form.get("type").and_then(Form::word);
        let kind = match kind.ok_or(at(Wrong::Field("type")))? {
            "invoke" => Type::Invoke,
            "ok" => Type::End(Outcome::Committed),
            "fail" => Type::End(Outcome::Aborted),
            "info" => Type::End(Outcome::Unknown),
            other => return Err(at(Wrong::UnknownType(other.to_string()))),
        };
        let time = form.get("time").and_then(Form::int);
        let moment = Moment {
            time: time.and_then(|time| u64::try_from(time).ok()),
            place: self.count,
        };
        self.count += 1;
        self.timeless |= moment.time.is_none();
        let value = form.get("value");
        match kind {
            Type::Invoke => {
                let ops = self.ops(line, value, false)?;
                let open = Open {
                    line,
                    invoked: moment,
                    ops,
                };
                match self.open.insert(process, open) {
                    None => Ok(()),
                    Some(_) => Err(at(Wrong::Overlap { process })),
                }
            }
            Type::End(outcome) => {
                let open = self.open.remove(&process);
                let open = open.ok_or(at(Wrong::NeverInvoked { process }))?;
                // An end without a value adds nothing to what was asked.
                let is_told = value.is_some_and(|value| *value != Form::Nil);
                let ops = match is_told || outcome == Outcome::Committed {
                    true => self.ops(line, value, outcome == Outcome::Committed)?,
                    false => open.ops,
                };
                self.ended.push(Ended {
                    process,
                    line,
                    invoked: open.invoked,
                    completed: Some(moment),
                    outcome,
                    ops,
                });
                Ok(())
            }
        }
    }

    /// The micro-operations of a transaction. `answered`: nil is an answer.
    fn ops(
        &mut self,
        line: u32,
        value: Option<&Form>,
        answered: bool,
    ) -> Result<Vec<Op>, ReadError> {
        let wrong = Wrong::Field("value");
        let list = value
            .and_then(Form::list)
            .ok_or(ReadError { line, wrong })?;
        let mut ops = Vec::with_capacity(list.len());
        for micro in list {
            match self.op(micro, answered) {
                Some(op) => ops.extend(op),
                None => {
                    let wrong = Wrong::BadMicroOp(brief(micro));
                    return Err(ReadError { line, wrong });
                }
            }
        }
        Ok(ops)
    }

    /// One micro-operation; `Some(None)` is a read without an answer, `None` none at all.
    fn op(&mut self, micro: &Form, answered: bool) -> Option<Option<Op>> {
        let (name, args) = micro.list()?.split_first()?;
        let op = match (name.word()?, args) {
            ("append", [key, value]) => {
                let key = self.key(key)?;
                self.lists.insert(key);
                self.any_append = true;
                Op::Append {
                    key,
                    value: natural(value)?,
                }
            }
            ("w", [key, value]) => {
                let key = self.key(key)?;
                self.registers.insert(key);
                self.any_write = true;
                Op::Write {
                    key,
                    value: natural(value)?,
                }
            }
            ("r", [_, Form::Nil]) if !answered => return Some(None),
            ("r", [key, seen]) => self.read(key, seen)?,
            ("delete", [key]) => {
                let key = self.key(key)?;
                self.registers.insert(key);
                Op::Delete { key }
            }
            ("add", [key, delta]) => Op::Add {
                key: self.key(key)?,
                delta: i64::try_from(delta.int()?).ok()?,
            },
            ("count" | "table", [.., Form::Nil])
            | ("range" | "lists" | "compare", [_, _, Form::Nil]) => {
                return (!answered).then_some(None);
            }
            ("count", [key, value]) => Op::ReadCounter {
                key: self.key(key)?,
                value: i64::try_from(value.int()?).ok()?,
            },
            ("compare", [key, bound, side]) => Op::Compare {
                key: self.key(key)?,
                bound: i64::try_from(bound.int()?).ok()?,
                at_least: match side.word()? {
                    "at-least" => true,
                    "below" => false,
                    _ => return None,
                },
            },
            (name, args) => self.read_many(name, args)?,
        };
        Some(Some(op))
    }

    /// A read of many keys by one statement, as it was answered.
    fn read_many(&mut self, name: &str, args: &[Form]) -> Option<Op> {
        Some(match (name, args) {
            ("table", [rows]) => Op::ReadTable {
                rows: rows_of(rows, |row| {
                    Some((self.key(&row[0])?, i64::try_from(row[1].int()?).ok()?))
                })?,
            },
            ("range", [low, high, rows]) => Op::ReadRange {
                low: natural(low)?,
                high: natural(high)?,
                seen: rows_of(rows, |row| {
                    let key = natural(&row[0])?;
                    self.registers.insert(key);
                    Some((key, natural(&row[1])?))
                })?,
            },
            ("lists", [low, high, rows]) => Op::ReadLists {
                low: natural(low)?,
                high: natural(high)?,
                seen: rows_of(rows, |row| {
                    let key = natural(&row[0])?;
                    self.lists.insert(key);
                    Some((key, naturals(&row[1])?))
                })?,
            },
            _ => return None,
        })
    }

    /// A read whose kind follows from what was seen; nil is a register for now.
    fn read(&mut self, key: &Form, seen: &Form) -> Option<Op> {
        let key = self.key(key)?;
        Some(match seen {
            Form::Nil => Op::Read { key, value: None },
            Form::List(_) => {
                self.lists.insert(key);
                Op::ReadList {
                    key,
                    values: naturals(seen)?,
                }
            }
            _ => {
                self.registers.insert(key);
                Op::Read {
                    key,
                    value: Some(natural(seen)?),
                }
            }
        })
    }

    /// The number of a key. What is no plain number gets one of its own, from the top down.
    fn key(&mut self, form: &Form) -> Option<u64> {
        let name = match form {
            Form::Int(number) => match u64::try_from(*number).ok().filter(|n| n >> 63 == 0) {
                Some(number) => return Some(number),
                None => number.to_string(),
            },
            Form::Word(word) => format!(":{word}"),
            Form::Text(text) => format!("{text:?}"),
            Form::Nil | Form::Bool | Form::Other | Form::List(_) | Form::Map(_) => return None,
        };
        let next = u64::MAX - self.names.len() as u64;
        Some(*self.names.entry(name).or_insert(next))
    }

    fn finish(mut self) -> Result<History, ReadError> {
        for (process, open) in core::mem::take(&mut self.open) {
            self.ended.push(Ended {
                process,
                line: open.line,
                invoked: open.invoked,
                completed: None,
                outcome: Outcome::Unknown,
                ops: open.ops,
            });
        }
        let mut history = History::new();
        // Those of one process come in their order.
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for ended in core::mem::take(&mut self.ended) {
            let when = |moment: Moment| match moment.time {
                Some(time) if !self.timeless => time,
                _ => moment.place,
            };
            let mut txn = Txn::begin(ended.process, when(ended.invoked));
            txn.outcome = ended.outcome;
            txn.completed = ended.completed.map(when);
            let process = ended.process;
            let before = last.get(&process).copied().unwrap_or(0);
            let end = txn.completed.unwrap_or(txn.invoked);
            if txn.invoked < before || end < txn.invoked {
                return Err(ReadError {
                    line: ended.line,
                    wrong: Wrong::TimeRunsBack { process },
                });
            }
            last.insert(process, end);
            txn.ops = ended.ops;
            for op in &mut txn.ops {
                self.settle_kind(op);
            }
            history.push(txn);
        }
        let names = self.names.into_iter().map(|(name, key)| (key, name));
        history.key_names = names.collect();
        Ok(history)
    }

    /// Nil from a key that is a list is an empty list.
    fn settle_kind(&self, op: &mut Op) {
        if let Op::Read { key, value: None } = *op {
            let only_lists = self.any_append && !self.any_write;
            if self.lists.contains(&key) || only_lists && !self.registers.contains(&key) {
                *op = Op::ReadList {
                    key,
                    values: Vec::new(),
                };
            }
        }
    }
}

fn natural(form: &Form) -> Option<u64> {
    u64::try_from(form.int()?).ok()
}

fn naturals(form: &Form) -> Option<Vec<u64>> {
    form.list()?.iter().map(natural).collect()
}

/// Pairs, each made into something by `each`.
fn rows_of<T>(form: &Form, mut each: impl FnMut(&[Form]) -> Option<T>) -> Option<Vec<T>> {
    let pair = |row: &Form| each(row.list().filter(|row| row.len() == 2)?);
    form.list()?.iter().map(pair).collect()
}

/// A short text of what was found where a micro-operation should be.
fn brief(form: &Form) -> String {
    let mut text = String::new();
    push_brief(form, &mut text);
    text.chars().take(80).collect()
}

fn push_brief(form: &Form, text: &mut String) {
    match form {
        Form::Nil => text.push_str("nil"),
        Form::Bool => text.push_str("a truth value"),
        Form::Int(value) => text.push_str(&value.to_string()),
        Form::Text(value) => text.push_str(&format!("{value:?}")),
        Form::Word(word) => text.push_str(&format!(":{word}")),
        Form::Other => text.push('?'),
        Form::Map(_) => text.push_str("{...}"),
        Form::List(list) => {
            text.push('[');
            for (place, form) in list.iter().take(8).enumerate() {
                if place > 0 {
                    text.push(' ');
                }
                push_brief(form, text);
            }
            text.push(']');
        }
    }
}
