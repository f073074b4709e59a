//! Replies and messages in one line each.

use base::{Position, ShardId};
use session::message::{ToTxn, TxnHandle};
use std::fmt::Write;
use wire::{Reply, Tag, TxnStatus};

/// A reply to the client; `@` is the position that it waits for.
pub(crate) fn reply(reply: &Reply, wait: Position) -> String {
    let text = match reply {
        Reply::Ready(TxnStatus::Idle) => "Ready idle".to_owned(),
        Reply::Ready(TxnStatus::InBlock) => "Ready in block".to_owned(),
        Reply::Ready(TxnStatus::Failed) => "Ready failed".to_owned(),
        Reply::RowDescription(columns, formats) => {
            let columns: Vec<String> = columns
                .iter()
                .map(|c| format!("{}:{}", c.name, c.ty.name()))
                .collect();
            format!("RowDescription {} {formats:?}", columns.join(" "))
        }
        Reply::ParameterDescription(types) => {
            let types: Vec<String> = types.iter().map(|ty| ty.name()).collect();
            format!("ParameterDescription [{}]", types.join(" "))
        }
        Reply::Rows(columns, _, batch) => {
            let rows = batch.iter().map(|row| {
                let values = row.iter().zip(columns.iter());
                let values = values.map(|(datum, column)| base::text::to_string(column.ty, datum));
                values.collect::<Vec<_>>().join(",")
            });
            format!("Rows {}", rows.collect::<Vec<_>>().join(";"))
        }
        Reply::CommandComplete(Tag::Count(word, count)) => format!("Complete {word} {count}"),
        Reply::CommandComplete(Tag::Insert(count)) => format!("Complete INSERT 0 {count}"),
        Reply::CommandComplete(Tag::Word(word)) => format!("Complete {word}"),
        Reply::CopyData(bytes) => format!("CopyData {:?}", String::from_utf8_lossy(bytes)),
        Reply::Error(severity, error) => {
            let fields = error.fields();
            let mut text = format!("{severity:?} {} {}", fields.state, fields.message);
            for (name, value) in [("detail", &fields.detail), ("hint", &fields.hint)] {
                if !value.is_empty() {
                    write!(text, " | {name}: {value}").expect("strings take everything");
                }
            }
            text
        }
        other => format!("{other:?}"),
    };
    match wait {
        Position(0) => format!("<- {text}\n"),
        Position(at) => format!("<- {text} @{at}\n"),
    }
}

/// A message to a coordinator.
pub(crate) fn to_txn(shard: ShardId, handle: TxnHandle, message: &ToTxn) -> String {
    let text = match message {
        ToTxn::Run(run) => {
            let mut text = format!("Run {}", run.statement);
            if let Some(begin) = &run.begin {
                write!(text, " begin {:?}", begin.isolation).expect("strings take everything");
                if begin.read_only {
                    text.push_str(" read only");
                }
                if begin.read_only && begin.asks_clocks {
                    text.push_str(" asks clocks");
                }
                if begin.attempt > 1 {
                    let ts = begin
                        .priority_ts
                        .expect("a later attempt keeps its timestamp");
                    write!(text, " attempt {} of {}", begin.attempt, ts.0).expect("always");
                }
                if begin.seen.0 > 0 {
                    write!(text, " seen {}", begin.seen.0).expect("strings take everything");
                }
            }
            if run.autocommit {
                text.push_str(" autocommit");
            }
            if let Some(deadline) = run.deadline {
                write!(text, " until {}", deadline.0).expect("strings take everything");
            }
            if !run.params.is_empty() {
                write!(text, " {:?}", run.params).expect("strings take everything");
            }
            if run.credit != 4 {
                write!(text, " credit {}", run.credit).expect("strings take everything");
            }
            if !run.facts.settings.is_empty() {
                write!(text, " {:?}", run.facts.settings).expect("strings take everything");
            }
            text
        }
        ToTxn::CopyData(number, data) => match data {
            Ok(Some(bytes)) => format!("CopyData {number} {:?}", String::from_utf8_lossy(bytes)),
            Ok(None) => format!("CopyData {number} end"),
            Err(error) => format!("CopyData {number} {error}"),
        },
        ToTxn::Cancel(error) => format!("Cancel {error}"),
        other => format!("{other:?}"),
    };
    format!("-> {shard} #{} {text}\n", handle.number)
}
