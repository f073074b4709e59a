//! Anomalies as stories: which transactions, what each did and saw, and why that cannot be.

use crate::graph::Dependency;
use crate::history::{Op, Outcome};
use crate::ledger::{Access, Ledger, Longest, Use};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// So many elements of a list are shown, from its end.
const ELEMENTS_MAX: usize = 10;
/// So many operations of a transaction are shown.
const OPS_MAX: usize = 12;

/// One step of a cycle: why `to` comes after `from`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// What leads there, with the key: one, or an anti-dependency and a dependency.
    pub(crate) by: Vec<(Dependency, u32)>,
}

/// The name of a key as people wrote it.
pub(crate) fn key_name(ledger: &Ledger<'_>, key: u32) -> String {
    real_name(ledger, ledger.real_key(key))
}

/// The same of a key of the history.
fn real_name(ledger: &Ledger<'_>, key: u64) -> String {
    let named = ledger.history.key_names.get(&key);
    named.cloned().unwrap_or_else(|| key.to_string())
}

/// What happened to `key`, and what each of `txns` did with it.
fn told(ledger: &Ledger<'_>, what: String, txns: &[u32], key: u32) -> String {
    let mut story = what;
    for txn in txns {
        push_txn(ledger, &mut story, *txn, &[key]);
    }
    story
}

/// A value that a transaction saw and that should not be there.
pub(crate) fn element(ledger: &Ledger<'_>, reader: u32, key: u32, value: u64, why: &str) -> String {
    let name = key_name(ledger, key);
    let what = format!("T{reader} saw value {value} of key {name}, which {why}");
    let writer = ledger.writer(key, value).map(|written| written.txn);
    let txns: Vec<u32> = writer.into_iter().chain([reader]).collect();
    told(ledger, what, &txns, key)
}

/// A read that contradicts its own transaction.
pub(crate) fn own_read(ledger: &Ledger<'_>, txn: u32, key: u32, why: &str) -> String {
    let what = format!("in T{txn}, key {} {why}", key_name(ledger, key));
    told(ledger, what, &[txn], key)
}

/// Two transactions that saw the same version and both wrote.
pub(crate) fn lost_update(ledger: &Ledger<'_>, a: u32, b: u32, key: u32) -> String {
    let name = key_name(ledger, key);
    let what = format!("T{a} and T{b} saw the same version of key {name}, and both wrote it");
    told(ledger, what, &[a, b], key)
}

/// A counter was seen between what a transaction read and what it made of it.
pub(crate) fn between(ledger: &Ledger<'_>, adder: u32, reader: u32, key: u32) -> String {
    let name = key_name(ledger, key);
    let what = format!(
        "T{reader} saw counter {name} between what T{adder} saw and what T{adder} made of it"
    );
    told(ledger, what, &[adder, reader], key)
}

/// Two reads of a list of which neither is a beginning of the other.
pub(crate) fn incompatible(
    ledger: &Ledger<'_>,
    key: u32,
    longest: Longest<'_>,
    reader: u32,
    values: &[u64],
) -> String {
    let pairs = longest.values.iter().zip(values);
    let same = pairs.take_while(|(a, b)| a == b).count();
    let what = format!(
        "T{} and T{reader} saw key {} in states that differ in element {}: {} and {}",
        longest.reader,
        key_name(ledger, key),
        same + 1,
        list_around(longest.values, same),
        list_around(values, same),
    );
    told(ledger, what, &[longest.reader, reader], key)
}

/// An acknowledged append that is gone.
pub(crate) fn lost_append(ledger: &Ledger<'_>, txn: u32, reader: u32, key: u32) -> String {
    let what = format!(
        "T{txn} appended to key {} and was acknowledged, T{reader} began afterwards, and no \
         read of the key shows it",
        key_name(ledger, key)
    );
    told(ledger, what, &[txn, reader], key)
}

/// A counter that no set of increments explains. `bounds`: what others put it between.
pub(crate) fn wrong_sum(
    ledger: &Ledger<'_>,
    txn: u32,
    key: u32,
    (low, high): (i128, i128),
) -> String {
    let what = format!(
        "no set of increments that T{txn} may have seen makes what it saw of counter {}; those \
         of others put it between {low} and {high}",
        key_name(ledger, key)
    );
    told(ledger, what, &[txn], key)
}

/// The side of its bound on which a comparison found a counter.
fn side(at_least: bool) -> &'static str {
    match at_least {
        true => "at least",
        false => "below",
    }
}

/// A comparison whose side no set of increments explains. `bound`: what it means for the increments
/// of others; `bounds`: what they put the counter between.
pub(crate) fn wrong_comparison(
    ledger: &Ledger<'_>,
    txn: u32,
    key: u32,
    (bound, at_least): (i128, bool),
    (low, high): (i128, i128),
) -> String {
    let what = format!(
        "T{txn} found counter {} {} {bound} without its own increments; those of others put it \
         between {low} and {high}",
        key_name(ledger, key),
        side(at_least)
    );
    told(ledger, what, &[txn], key)
}

/// A counter that was read below the least that it may hold.
pub(crate) fn read_below(
    ledger: &Ledger<'_>,
    txn: u32,
    key: u32,
    value: i64,
    least: i64,
) -> String {
    let name = key_name(ledger, key);
    let what = format!("T{txn} saw counter {name} at {value}, which is never below {least}");
    told(ledger, what, &[txn], key)
}

/// A counter whose acknowledged increments put it below the least that it may hold. `txns`: whose
/// end made it certain.
pub(crate) fn sum_below(ledger: &Ledger<'_>, txn: u32, key: u32, most: i128, least: i64) -> String {
    let what = format!(
        "when T{txn} had ended, counter {} was at {most} or less, and it is never below {least}",
        key_name(ledger, key)
    );
    told(ledger, what, &[txn], key)
}

/// A cycle: each transaction comes before the next, and the last before the first.
pub(crate) fn cycle(ledger: &Ledger<'_>, steps: &[Step]) -> String {
    let mut story = String::new();
    for step in steps {
        story.push_str(&format!("T{} -{}-> ", step.from, arrow(step)));
    }
    story.push_str(&format!("T{}", steps[0].from));
    let mut keys: Vec<u32> = steps
        .iter()
        .flat_map(|step| step.by.iter().map(|(_, key)| *key))
        .filter(|key| (*key as usize) < ledger.key_count())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let mut named: Vec<u32> = Vec::new();
    for step in steps {
        if !named.contains(&step.from) {
            named.push(step.from);
            push_txn(ledger, &mut story, step.from, &keys);
        }
    }
    for step in steps {
        story.push_str(&format!(
            "\n  T{} before T{}: {}",
            step.from,
            step.to,
            because(ledger, step)
        ));
    }
    story.push_str(&format!(
        "\n  so T{} would come before itself",
        steps[0].from
    ));
    story
}

fn arrow(step: &Step) -> String {
    let names: Vec<&str> = step
        .by
        .iter()
        .map(|(dependency, _)| match dependency {
            Dependency::Ww => "ww",
            Dependency::Wr => "wr",
            Dependency::Rw => "rw",
            Dependency::RwRange => "rw(range)",
            Dependency::Session => "session",
            Dependency::RealTime => "time",
            Dependency::Glue => "",
        })
        .collect();
    names.join("+")
}

/// Why one transaction of a cycle comes after the one before it.
fn because(ledger: &Ledger<'_>, step: &Step) -> String {
    let Step { from, to, by } = step;
    let (dependency, key) = by[0];
    let name = |key: u32| key_name(ledger, key);
    let is_counter = (key as usize) < ledger.key_count() && ledger.use_of(key) == Use::Counter;
    match dependency {
        Dependency::Session => format!(
            "T{to} is a later transaction of process {}",
            ledger.history.txns[*to as usize].process
        ),
        Dependency::RealTime => format!(
            "T{from} had ended at {} when T{to} began at {}",
            ledger.committed_by(*from).unwrap_or(0),
            ledger.history.txns[*to as usize].invoked
        ),
        Dependency::Ww => format!(
            "T{from} wrote {} to key {}, T{to} wrote {} after it",
            written(ledger, *from, key),
            name(key),
            written(ledger, *to, key)
        ),
        Dependency::Wr if is_counter => format!(
            "T{to} saw counter {} at {}, which cannot be without the {} of T{from}",
            name(key),
            seen(ledger, *to, key),
            written(ledger, *from, key)
        ),
        Dependency::Wr => format!(
            "T{to} saw key {} at {}, which T{from} wrote or wrote to",
            name(key),
            seen(ledger, *to, key)
        ),
        Dependency::Rw if by.len() > 1 => format!(
            "T{from} saw counter {} at {}, T{to} saw it at {}, and it moves one way only",
            name(key),
            seen(ledger, *from, key),
            seen(ledger, *to, key)
        ),
        Dependency::Rw => format!(
            "T{from} saw key {} at {}, without the {} of T{to}",
            name(key),
            seen(ledger, *from, key),
            written(ledger, *to, key)
        ),
        Dependency::RwRange => format!(
            "T{from} read a range with key {} and saw it at {}, without the {} of T{to}",
            name(key),
            seen(ledger, *from, key),
            written(ledger, *to, key)
        ),
        Dependency::Glue => String::new(),
    }
}

/// What `txn` wrote to `key`.
fn written(ledger: &Ledger<'_>, txn: u32, key: u32) -> String {
    let mut values: Vec<String> = Vec::new();
    ledger.each_access(txn, |access| match access {
        Access::Append { key: k, value } if k == key => values.push(value.to_string()),
        Access::Write {
            key: k,
            value: Some(value),
        } if k == key => values.push(value.to_string()),
        Access::Write {
            key: k,
            value: None,
        } if k == key => values.push("a delete".to_string()),
        Access::Add { key: k, delta } if k == key => values.push(format!("{delta:+}")),
        _ => {}
    });
    values.join(", ")
}

/// What `txn` saw in `key`, when it read it more than once: each time.
fn seen(ledger: &Ledger<'_>, txn: u32, key: u32) -> String {
    let mut states: Vec<String> = Vec::new();
    ledger.each_access(txn, |access| match access {
        Access::ReadList { key: k, values, .. } if k == key => {
            states.push(list_around(values, values.len()));
        }
        Access::Read { key: k, value, .. } if k == key => states.push(value_text(value)),
        Access::ReadCounter { key: k, value } if k == key => states.push(value.to_string()),
        _ => {}
    });
    states.dedup();
    states.join(" and then ")
}

fn value_text(value: Option<u64>) -> String {
    value.map_or_else(|| "nothing".to_string(), |value| value.to_string())
}

/// A list, cut to some elements up to and just behind `place`.
fn list_around(values: &[u64], place: usize) -> String {
    let end = values.len().min(place + 3);
    let begin = end.saturating_sub(ELEMENTS_MAX);
    let mut text = String::from("[");
    if begin > 0 {
        text.push_str(&format!("({begin} more) "));
    }
    let shown: Vec<String> = values[begin..end].iter().map(u64::to_string).collect();
    text.push_str(&shown.join(" "));
    if end < values.len() {
        text.push_str(&format!(" ({} more)", values.len() - end));
    }
    text.push(']');
    text
}

/// One line about a transaction: who, when, how it ended, what it did on `keys` (dense ones).
fn push_txn(ledger: &Ledger<'_>, story: &mut String, txn: u32, keys: &[u32]) {
    let recorded = &ledger.history.txns[txn as usize];
    let outcome = match (recorded.outcome, ledger.is_committed(txn)) {
        (Outcome::Committed, _) => "committed",
        (Outcome::Aborted, _) => "rolled back",
        (Outcome::Unknown, true) => "outcome unknown, but it was seen",
        (Outcome::Unknown, false) => "outcome unknown",
    };
    let end = match recorded.completed {
        Some(end) => end.to_string(),
        None => "?".to_string(),
    };
    story.push_str(&format!(
        "\n  T{txn} (process {}, {} to {end}, {outcome}):",
        recorded.process, recorded.invoked
    ));
    let real: Vec<u64> = keys.iter().map(|key| ledger.real_key(*key)).collect();
    let about = recorded.ops.iter().filter(|op| concerns(op, &real));
    let mut count = 0;
    for op in about {
        count += 1;
        if count <= OPS_MAX {
            story.push_str(if count == 1 { " " } else { "; " });
            story.push_str(&op_text(ledger, op));
        }
    }
    if count > OPS_MAX {
        story.push_str(&format!("; and {} more", count - OPS_MAX));
    }
}

fn concerns(op: &Op, keys: &[u64]) -> bool {
    match op {
        Op::Append { key, .. }
        | Op::ReadList { key, .. }
        | Op::Write { key, .. }
        | Op::Delete { key }
        | Op::Read { key, .. }
        | Op::Add { key, .. }
        | Op::ReadCounter { key, .. }
        | Op::Compare { key, .. } => keys.contains(key),
        Op::ReadLists { low, high, .. } | Op::ReadRange { low, high, .. } => {
            keys.iter().any(|key| low <= key && key <= high)
        }
        Op::ReadTable { .. } => false,
    }
}

fn op_text(ledger: &Ledger<'_>, op: &Op) -> String {
    let name = |key: &u64| real_name(ledger, *key);
    match op {
        Op::Append { key, value } => format!("append {value} to {}", name(key)),
        Op::ReadList { key, values } => {
            format!("read {} = {}", name(key), list_around(values, values.len()))
        }
        Op::Write { key, value } => format!("write {} = {value}", name(key)),
        Op::Delete { key } => format!("delete {}", name(key)),
        Op::Read { key, value } => format!("read {} = {}", name(key), value_text(*value)),
        Op::Add { key, delta } => format!("add {delta:+} to {}", name(key)),
        Op::ReadCounter { key, value } => format!("read {} = {value}", name(key)),
        Op::Compare {
            key,
            bound,
            at_least,
        } => format!("found {} {} {bound}", name(key), side(*at_least)),
        Op::ReadLists { low, high, seen } => {
            let rows = seen.iter().take(ELEMENTS_MAX);
            let rows: Vec<String> = rows
                .map(|(key, list)| format!("{} = {}", name(key), list_around(list, list.len())))
                .collect();
            range_text(*low, *high, &rows, seen.len())
        }
        Op::ReadRange { low, high, seen } => {
            let rows = seen.iter().take(ELEMENTS_MAX);
            let rows: Vec<String> = rows
                .map(|(key, value)| format!("{} = {value}", name(key)))
                .collect();
            range_text(*low, *high, &rows, seen.len())
        }
        Op::ReadTable { rows } => format!("read the table of {} rows", rows.len()),
    }
}

fn range_text(low: u64, high: u64, rows: &[String], count: usize) -> String {
    let mut text = format!("read {low} to {high}: {}", rows.join(", "));
    if rows.is_empty() {
        text.push_str("nothing");
    }
    if count > rows.len() {
        text.push_str(&format!(" and {} more", count - rows.len()));
    }
    text
}
