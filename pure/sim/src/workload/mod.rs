//! What clients do to the cluster, and how the result is judged.

pub(crate) mod blame;
mod constraints;
mod ddl;
mod groups;
mod histories;
mod savepoints;
mod seats;
mod switch;
mod tpcc;
mod waits;
pub(crate) mod wire;

use crate::executor::{SimCx, Task};
use base::Prng;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// The judgement of one run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// Nothing wrong was seen, and enough was exercised to have seen it.
    Pass,
    /// Something that must not be; the text tells the story.
    Fail(String),
    /// Too little happened to judge; the text says what.
    Inconclusive(String),
}

/// Clients of one run. Its tasks are polled by the simulator, so it needs no thread-safety.
///
/// `setup` runs alone on a healthy cluster; then `clients()` tasks of `client` run under faults
/// until [`SimCx::stopping`]; then everything is healed and `finish` runs alone.
pub trait Workload {
    /// Makes and fills tables.
    ///
    /// # Errors
    /// A text; the run has failed.
    fn setup(self: Rc<Self>, cx: SimCx) -> Task<Result<(), String>>;

    /// One client, numbered from 0. It must return soon after [`SimCx::stopping`]; losing a
    /// connection and every SQL error that faults can cause is part of its life.
    fn client(self: Rc<Self>, cx: SimCx, client: u32) -> Task;

    /// Reads what is left and judges the run.
    fn finish(self: Rc<Self>, cx: SimCx) -> Task<Verdict>;
}

/// What a workload may know about the run before it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Nodes.
    pub nodes: u16,
    /// Shards per node.
    pub shards: u16,
    /// Clients.
    pub clients: u32,
    /// Length of the safety phase, virtual microseconds.
    pub run_us: u64,
    /// Whether the clocks of all nodes are the same, always.
    pub clocks_agree: bool,
}

/// A workload that can be chosen by name.
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// One sentence for people.
    pub about: &'static str,
    /// Draws one from random numbers.
    pub make: fn(&mut Prng, Scale) -> Rc<dyn Workload>,
}

/// All workloads, in the order in which `all` runs them.
pub const ALL: &[Entry] = &[
    histories::LIST_APPEND,
    histories::REGISTER,
    histories::PHANTOM,
    histories::BANK,
    histories::RING,
    histories::COUNTER,
    histories::HOT_COUNTER,
    groups::ENTRY,
    ddl::ENTRY,
    switch::ENTRY,
    tpcc::ENTRY,
    waits::ENTRY,
    waits::SWITCHING,
    histories::STOCK,
    histories::HOT_PAIR,
    savepoints::ENTRY,
    seats::ENTRY,
];

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}
