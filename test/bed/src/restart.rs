//! Nodes that end and come back.

use crate::world::load;
use crate::{Subject, World};
use base::{Clock, NodeId, Position, ShardId, Ts};
use journal::reader::Entry;
use journal::{CheckpointTables, Record, Recovery, ReplayStart, recover};
use store::Store;

impl<P: Subject> World<P> {
    /// Stops a node: what was not durable is gone (but for `kept` records more).
    pub fn crash(&mut self, node: NodeId, kept: usize) {
        self.trace(|| format!("{node} crashes, {kept} more records kept"));
        let state = self.nodes.get_mut(&node).expect("a node");
        state.up = false;
        let durable = state.disk.borrow_mut().crash(kept);
        // What had left may still arrive.
        self.flights.retain(|flight| {
            let inner = flight.from.node() == node && flight.to.node() == node;
            !inner && (flight.from.node() != node || flight.wait <= durable)
        });
        self.answers.retain(|(txn, ..)| txn.shard.node() != node);
        for id in self.ids_of(node) {
            self.complete_checkpoint(id);
            self.shards.get_mut(&id).expect("a shard").next_checkpoint = None;
        }
    }

    fn recovered(&self, node: NodeId) -> Recovery {
        let disk = self.nodes[&node].disk.borrow();
        let entry = |(end, payload): &(Position, Vec<u8>)| Entry {
            end: *end,
            record: Record::decode(payload).expect("own records decode"),
        };
        let records: Vec<Entry> = disk.records.iter().map(entry).collect();
        let checkpoint = |id: &ShardId| {
            let checkpoint = &self.shards[id].checkpoint;
            (*id, checkpoint.start, checkpoint.tables.clone())
        };
        let start = ReplayStart {
            node,
            shards: self.ids_of(node).iter().map(checkpoint).collect(),
            ..ReplayStart::default()
        };
        recover(start, records).expect("the journal is whole")
    }

    /// Starts a node again from its journal and its checkpoints.
    pub fn restart(&mut self, node: NodeId) {
        let recovery = self.recovered(node);
        self.trace(|| format!("{node} restarts {:?}", recovery.ownership));
        let state = self.nodes.get_mut(&node).expect("a node");
        state.incarnation = recovery.incarnation + 1;
        state.up = true;
        self.start_record(node);
        for record in &recovery.settled {
            self.nodes[&node].disk.borrow_mut().push_record(record);
        }
        self.sync(node);
        let mut floor = recovery.clock_floor.max(Ts::from_time(self.now));
        if !self.keeps_bound {
            // What is said of clocks and their bounds leaves at once here, where a server holds it
            // back.
            let clocks = self.ids_of(node).into_iter();
            floor = clocks.fold(floor, |floor, id| floor.max(self.shards[&id].clock.last()));
            floor = floor.max(self.nodes[&node].told);
        }
        for id in self.ids_of(node) {
            let store = self.store_of(id, &recovery);
            let mut protocol = P::new(id);
            protocol.plant(self.fault);
            protocol.set(&self.settings);
            let shard = self.shards.get_mut(&id).expect("a shard");
            shard.protocol = protocol;
            shard.store = store;
            shard.clock = Clock::new(id, floor);
            shard.horizon = floor;
            let mut found = found(&recovery, id);
            self.call(id, |protocol, cx| {
                protocol.recover(cx, &mut found, &|_| true);
            });
            self.meet(id);
        }
    }

    fn store_of(&self, id: ShardId, recovery: &Recovery) -> Store {
        let mut store = Store::new();
        let checkpoint = &self.shards[&id].checkpoint;
        if checkpoint.end.is_none() {
            let initial = self.initial.iter().filter(|(shard, ..)| *shard == id);
            initial.for_each(|(_, key, value)| load(&mut store, key, *value));
        }
        checkpoint.load(&mut store);
        for redo in recovery.redo.iter().filter(|redo| redo.shard == id) {
            for (key, write) in &redo.writes {
                match redo.any_order {
                    true => store.redo_in_any_order(key, write, redo.commit_ts),
                    false => store.redo(key, write, redo.commit_ts),
                };
            }
        }
        store.end_redo();
        store
    }
}

/// What recovery found for one shard beyond its rows.
fn found(recovery: &Recovery, id: ShardId) -> CheckpointTables {
    let held = recovery.held.iter().filter(|held| held.shard == id);
    let owed = recovery.owed.iter().filter(|owed| owed.txn.shard == id);
    let unfolded = recovery.unfolded.iter().filter(|it| it.shard == id);
    let ownership = recovery.ownership.iter().find(|(shard, _)| *shard == id);
    CheckpointTables {
        prepared: held.cloned().collect(),
        owed: owed.cloned().collect(),
        unfolded: unfolded.cloned().collect(),
        ownership: ownership.map(|(_, it)| it.clone()).unwrap_or_default(),
        ..CheckpointTables::default()
    }
}
