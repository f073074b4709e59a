//! Judges what clients saw: histories of transactions, isolation levels, anomalies told as stories.
//!
//! ```text
//! history --> ledger --> lists, registers, counters --> graph --> tangles --> verdict
//!             (keys,     (what was seen directly;        (ww, wr, rw,  (cycles,
//!              writers)   who comes before whom)          session, time)  stories)
//! ```
//!
//! [`check`] judges lists, registers and counters, which may occur in one history; [`check_floor`]
//! also asks that counters are never below a value. [`check_bank`] and [`check_ring`] judge reads
//! of whole tables. Which level forbids what is in [`level`], the format of files in [`text`].
//!
//! Rules that everything here keeps:
//!
//! * *Sound*: an anomaly is reported only if no execution of the level explains what was seen,
//!   given what a recorder promises ([`history`]).
//! * *Complete for lists* whose final state was read: if a level's definition is violated, it is
//!   reported. Registers and counters show less, so less is found.
//! * A pass means that enough was exercised ([`Demand`]); what is less is inconclusive.
//! * Time is linear in operations, edges and the length of the lists that were read (and n log n
//!   for sorting); nothing depends on hash order, clocks or chance.
//!
//! This is the approach of Elle (Kingsbury and Alvaro, VLDB 2020) with Adya's graphs; real time is
//! kept in linear space by joints (see `graph`).
//!
//! It is not a search for a serial order: where values leave the order of versions open, nothing is
//! guessed.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod counters;
mod cycles;
mod floor;
mod found;
mod graph;
pub mod history;
mod ledger;
pub mod level;
mod lists;
mod order;
mod registers;
mod story;
mod tables;
pub mod text;
mod timed;
pub mod verdict;

pub use history::{History, Op, Outcome, Txn};
pub use level::{Basis, Kind, Level};
pub use tables::{Bank, Ring, check_bank, check_ring};
pub use verdict::{Anomaly, Demand, Doubt, Exercised, Judgement, Verdict};

use found::Found;
use graph::GraphBuilder;
use ledger::Ledger;

/// Judges the lists, registers and counters of a history, with the usual [`Demand`].
pub fn check(history: &History, level: Level) -> Verdict {
    check_with(history, level, &Demand::default())
}

/// Judges the lists, registers and counters of a history.
///
/// Anomalies that `level` allows are in [`Verdict::allowed`], so one call tells everything.
/// Time is linear, see the crate; memory is some 100 bytes per operation beside the history.
pub fn check_with(history: &History, level: Level, demand: &Demand) -> Verdict {
    judge(history, level, demand, None)
}

/// The same of a history whose counters never are below `least`, because whatever lowers one looks
/// first whether enough is left.
///
/// Reads below it are anomalies ([`Kind::BelowLeast`]); so are counters that were below it for
/// certain, by what had been acknowledged, although nobody read them.
pub fn check_floor(history: &History, least: i64, level: Level, demand: &Demand) -> Verdict {
    judge(history, level, demand, Some(least))
}

fn judge(history: &History, level: Level, demand: &Demand, least: Option<i64>) -> Verdict {
    let ledger = Ledger::new(history);
    let mut builder = GraphBuilder::new(history.txns.len());
    let mut found = Found::default();
    lists::judge(&ledger, &mut builder, &mut found);
    registers::judge(&ledger, &mut builder, &mut found);
    counters::judge(&ledger, &mut builder, &mut found);
    if let Some(least) = least {
        floor::judge(&ledger, least, &mut found);
    }
    order::link_sessions(&ledger, &mut builder);
    order::link_real_time(&ledger, &mut builder);
    let graph = builder.build();
    cycles::judge(&ledger, &graph, &mut found);
    let exercised = order::exercised(&ledger);
    let mut doubts = exercised.doubts(demand);
    doubts.extend_from_slice(&ledger.doubts);
    Verdict::new(level, found.into_anomalies(), doubts, exercised)
}
