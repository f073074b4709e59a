//! A journal in memory.

use base::Position;
use std::cell::RefCell;
use std::rc::Rc;
use txn::JournalPort;

/// A node's journal: what is behind `durable` may be lost by a crash.
#[derive(Default, Debug)]
pub struct Disk {
    /// Encoded records, each with the position of its end.
    pub records: Vec<(Position, Vec<u8>)>,
    /// Everything up to here survives a crash.
    pub durable: Position,
    /// There is no room for new writes.
    pub is_full: bool,
    /// There is no memory for new rows.
    pub is_memory_full: bool,
    /// Bytes that are not durable beyond which large commits wait; `None`: no limit.
    pub backlog_max: Option<u64>,
}

impl Disk {
    /// The end of the last record.
    pub fn end(&self) -> Position {
        self.records.last().map_or(Position(0), |(end, _)| *end)
    }

    /// Everything becomes durable.
    pub fn sync(&mut self) -> Position {
        self.durable = self.end();
        self.durable
    }

    pub(crate) fn push(&mut self, payload: &[u8]) -> Position {
        let end = Position(self.end().0 + payload.len() as u64 + 8);
        self.records.push((end, payload.to_vec()));
        end
    }

    pub(crate) fn push_record(&mut self, record: &journal::Record) -> Position {
        let mut payload = Vec::new();
        record.encode(&mut payload);
        self.push(&payload)
    }

    /// What was not durable is gone, but for `kept` records more. Returns what was durable.
    pub(crate) fn crash(&mut self, kept: usize) -> Position {
        let durable = self.durable;
        let whole = self.records.iter().filter(|(end, _)| *end <= durable);
        let whole = whole.count();
        self.records.truncate(whole + kept);
        self.durable = self.end();
        durable
    }
}

/// The journal of a node as its shards see it.
pub(crate) struct Port(pub(crate) Rc<RefCell<Disk>>);

impl JournalPort for Port {
    fn append(&mut self, payload: &[u8]) -> Position {
        self.0.borrow_mut().push(payload)
    }
    fn durable(&self) -> Position {
        self.0.borrow().durable
    }
    fn is_full(&self) -> bool {
        self.0.borrow().is_full
    }
    fn is_memory_full(&self) -> bool {
        self.0.borrow().is_memory_full
    }
    fn is_behind(&self) -> bool {
        let disk = self.0.borrow();
        let backlog = disk.end().0 - disk.durable.0;
        disk.backlog_max.is_some_and(|most| backlog > most)
    }
}
