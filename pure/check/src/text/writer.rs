//! From a history to text.

use super::Format;
use crate::history::{History, Op, Outcome, Txn};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// Writes a history, one operation per line, in the order of time.
///
/// What is read back is the same history, but for the order of transactions, for names of keys in
/// JSON (which has no keywords) and for the time at which an unknown outcome was given up.
/// `Err` only if `out` fails.
pub fn write(history: &History, format: Format, out: &mut impl Write) -> fmt::Result {
    if format == Format::Json {
        out.write_str("[\n")?;
    }
    let events = events(history);
    for (index, event) in events.iter().enumerate() {
        let mut line = Line {
            history,
            format,
            out,
        };
        line.event(index, event)?;
        let last = index + 1 == events.len();
        out.write_str(match format {
            Format::Json if !last => ",\n",
            Format::Edn | Format::Json => "\n",
        })?;
    }
    if format == Format::Json {
        out.write_str("]\n")?;
    }
    Ok(())
}

/// One line of the text. Sorts as the lines do: what ends at a time and began earlier comes before
/// what begins at that time, so that a process that does both is never in two transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: u64,
    begins_now: bool,
    process: u32,
    txn: usize,
    is_end: bool,
}

fn events(history: &History) -> Vec<Event> {
    let mut events = Vec::with_capacity(2 * history.txns.len());
    let mut last = 0;
    let mut by_process: BTreeMap<(u32, u64, usize), usize> = BTreeMap::new();
    for (index, txn) in history.txns.iter().enumerate() {
        last = last.max(txn.invoked).max(txn.completed.unwrap_or(0));
        by_process.insert((txn.process, txn.invoked, index), index);
    }
    let in_order: Vec<usize> = by_process.into_values().collect();
    for (place, index) in in_order.iter().enumerate() {
        let txn = &history.txns[*index];
        let next = in_order.get(place + 1).map(|next| &history.txns[*next]);
        let next = next.filter(|next| next.process == txn.process);
        let event = Event {
            time: txn.invoked,
            begins_now: true,
            process: txn.process,
            txn: *index,
            is_end: false,
        };
        events.push(event);
        let end = txn.completed.or(next.map(|next| next.invoked));
        if end.is_none() && txn.outcome == Outcome::Unknown {
            continue;
        }
        let time = end.unwrap_or(last);
        events.push(Event {
            time,
            begins_now: time == txn.invoked,
            is_end: true,
            ..event
        });
    }
    events.sort_unstable();
    events
}

struct Line<'a, W> {
    history: &'a History,
    format: Format,
    out: &'a mut W,
}

impl<W: Write> Line<'_, W> {
    fn event(&mut self, index: usize, event: &Event) -> fmt::Result {
        let txn = &self.history.txns[event.txn];
        let kind = match (event.is_end, txn.outcome) {
            (false, _) => "invoke",
            (true, Outcome::Committed) => "ok",
            (true, Outcome::Aborted) => "fail",
            (true, Outcome::Unknown) => "info",
        };
        let (process, time) = (event.process, event.time);
        match self.format {
            Format::Edn => write!(
                self.out,
                "{{:type :{kind}, :process {process}, :time {time}, :index {index}, \
                 :f :txn, :value ["
            )?,
            Format::Json => write!(
                self.out,
                "{{\"type\":\"{kind}\",\"process\":{process},\"time\":{time},\"index\":{index},\
                 \"f\":\"txn\",\"value\":["
            )?,
        }
        self.ops(txn, event.is_end)?;
        self.out.write_str("]}")
    }

    fn ops(&mut self, txn: &Txn, answered: bool) -> fmt::Result {
        self.each(&txn.ops, |line, op| {
            line.out.write_char('[')?;
            line.op(op, answered)?;
            line.out.write_char(']')
        })
    }

    fn op(&mut self, op: &Op, answered: bool) -> fmt::Result {
        match op {
            Op::Append { key, value } => {
                self.head("append", Some(*key))?;
                self.number(*value)
            }
            Op::Write { key, value } => {
                self.head("w", Some(*key))?;
                self.number(*value)
            }
            Op::Delete { key } => self.head("delete", Some(*key)),
            Op::Add { key, delta } => {
                self.head("add", Some(*key))?;
                self.number(*delta)
            }
            Op::ReadList { key, values } => {
                self.head("r", Some(*key))?;
                self.answer(answered, |line| line.list(values))
            }
            Op::Read { key, value } => {
                self.head("r", Some(*key))?;
                self.answer(answered && value.is_some(), |line| {
                    write!(line.out, "{}", value.unwrap_or(0))
                })
            }
            Op::ReadCounter { key, value } => {
                self.head("count", Some(*key))?;
                self.answer(answered, |line| write!(line.out, "{value}"))
            }
            Op::Compare {
                key,
                bound,
                at_least,
            } => self.compare(*key, *bound, answered.then_some(*at_least)),
            Op::ReadLists { low, high, seen } => {
                self.head("lists", None)?;
                self.number(*low)?;
                self.number(*high)?;
                self.answer(answered, |line| {
                    line.rows(seen, |line, (key, values)| {
                        write!(line.out, "{key}")?;
                        line.gap()?;
                        line.list(values)
                    })
                })
            }
            Op::ReadRange { low, high, seen } => {
                self.head("range", None)?;
                self.number(*low)?;
                self.number(*high)?;
                self.answer(answered, |line| {
                    line.rows(seen, |line, (key, value)| {
                        write!(line.out, "{key}")?;
                        line.number(*value)
                    })
                })
            }
            Op::ReadTable { rows } => {
                self.head("table", None)?;
                self.answer(answered, |line| {
                    line.rows(rows, |line, (key, value)| {
                        line.key(*key)?;
                        line.number(*value)
                    })
                })
            }
        }
    }

    /// `side`: at least the bound or below it; `None`: no answer yet.
    fn compare(&mut self, key: u64, bound: i64, side: Option<bool>) -> fmt::Result {
        self.head("compare", Some(key))?;
        self.number(bound)?;
        self.answer(side.is_some(), |line| match side {
            Some(true) => line.word("at-least"),
            Some(false) | None => line.word("below"),
        })
    }

    /// What separates the elements of a list.
    fn gap(&mut self) -> fmt::Result {
        self.out.write_char(match self.format {
            Format::Edn => ' ',
            Format::Json => ',',
        })
    }

    fn head(&mut self, name: &str, key: Option<u64>) -> fmt::Result {
        self.word(name)?;
        match key {
            None => Ok(()),
            Some(key) => {
                self.gap()?;
                self.key(key)
            }
        }
    }

    fn word(&mut self, word: &str) -> fmt::Result {
        match self.format {
            Format::Edn => write!(self.out, ":{word}"),
            Format::Json => write!(self.out, "\"{word}\""),
        }
    }

    fn key(&mut self, key: u64) -> fmt::Result {
        match (self.history.key_names.get(&key), self.format) {
            (None, _) => write!(self.out, "{key}"),
            (Some(name), Format::Json) if name.starts_with(':') => {
                write!(self.out, "{:?}", &name[1..])
            }
            (Some(name), Format::Edn | Format::Json) => self.out.write_str(name),
        }
    }

    fn number(&mut self, value: impl fmt::Display) -> fmt::Result {
        self.gap()?;
        write!(self.out, "{value}")
    }

    /// What was read, or nil.
    fn answer(
        &mut self,
        answered: bool,
        write: impl FnOnce(&mut Self) -> fmt::Result,
    ) -> fmt::Result {
        self.gap()?;
        match (answered, self.format) {
            (true, _) => write(self),
            (false, Format::Edn) => self.out.write_str("nil"),
            (false, Format::Json) => self.out.write_str("null"),
        }
    }

    fn list(&mut self, values: &[u64]) -> fmt::Result {
        self.out.write_char('[')?;
        self.each(values, |line, value| write!(line.out, "{value}"))?;
        self.out.write_char(']')
    }

    /// Writes elements with gaps between them.
    fn each<T>(
        &mut self,
        elements: &[T],
        mut each: impl FnMut(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        for (place, element) in elements.iter().enumerate() {
            if place > 0 {
                self.gap()?;
            }
            each(self, element)?;
        }
        Ok(())
    }

    fn rows<T>(
        &mut self,
        rows: &[T],
        mut each: impl FnMut(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        self.out.write_char('[')?;
        self.each(rows, |line, row| {
            line.out.write_char('[')?;
            each(line, row)?;
            line.out.write_char(']')
        })?;
        self.out.write_char(']')
    }
}
