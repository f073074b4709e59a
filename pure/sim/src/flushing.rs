//! The journal of a node in the world, and its checkpoints: what the server's flusher and main
//! thread do.

use crate::node_life::HOUSEKEEPING_NS;
use crate::queue::{Event, Life, NodeEvent};
use crate::world::World;
use base::{NodeId, Position, ShardId};
use node::{CheckpointPart, Input};
use storage::{Completion, Ended};

/// Longest pause between two pieces of a checkpoint.
const PIECE_PAUSE_NS: u64 = 2_000_000;

impl World {
    /// Asks for a flush of what has been appended.
    pub(crate) fn flush_soon(&mut self, node: usize) {
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        running.buffer.borrow_mut().hurry();
        if !running.flushing {
            self.begin_flush(node);
        }
    }

    fn begin_flush(&mut self, node: usize) {
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        let bytes = running.buffer.borrow_mut().take(Vec::new());
        if bytes.is_empty() {
            return;
        }
        let written = running.writer.write(&bytes);
        let life = running.life;
        running.flushing = true;
        if let Err(error) = written {
            return self.fatal(node, &error.to_string());
        }
        self.fall_mute(node);
        let power = self.nodes[node].power_at_flush.take();
        let after = match &mut self.costs {
            Some(costs) => costs.flush_ns(bytes.len()),
            None => {
                // Not both: such a flush would outlast all that heals.
                let slow = power.map_or(1, |(_, factor)| factor);
                let slow = slow.max(self.nodes[node].slow_disk);
                let median = self.plan.sync_us * 1_000 * slow;
                median / 2 + self.prng.below(median + 1)
            }
        };
        self.push(after, Event::Node(node, life, NodeEvent::FlushDone));
        if let Some((down_us, _)) = power {
            let after = self.prng.below(after);
            let event = NodeEvent::PowerCut { down_us };
            self.push(after, Event::Node(node, life, event));
        }
    }

    pub(crate) fn on_flush_done(&mut self, node: usize, life: Life) {
        let running = self.nodes[node].up();
        running.flushing = false;
        let durable = match running.writer.sync() {
            Ok(durable) => durable,
            Err(error) => return self.fatal(node, &error.to_string()),
        };
        running.durable.set(durable);
        self.trace.mix(durable.0);
        self.trace.say(self.now_ns, || {
            format!("n{} durable {}", node + 1, durable.0)
        });
        for shard in 0..usize::from(self.plan.shards) {
            self.input(node, shard, Input::Durable(durable));
            self.release(node, shard, durable);
        }
        if !self.lives(node, life) || !self.keep_room(node) {
            return;
        }
        self.complete_checkpoint(node, durable);
        let Some(running) = &self.nodes[node].running else {
            return;
        };
        if running.buffer.borrow().is_urgent() || running.is_holding() {
            self.flush_soon(node);
        }
    }

    /// Lets go what the journal has caught up with.
    pub(crate) fn release(&mut self, node: usize, shard: usize, durable: Position) {
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        let host = &mut running.shards[shard];
        let from_ns = self.now_ns.max(host.busy_until_ns);
        let mut speaking = Vec::new();
        for (id, conn) in &mut host.conns {
            conn.release(durable);
            if !conn.out.is_empty() {
                speaking.push(*id);
            }
        }
        let mut leaving = Vec::new();
        host.held.retain(|_, queue| {
            while queue
                .front()
                .is_some_and(|outgoing| outgoing.wait <= durable)
            {
                leaving.extend(queue.pop_front());
            }
            !queue.is_empty()
        });
        speaking
            .into_iter()
            .for_each(|id| self.speak(node, shard, id, from_ns));
        for outgoing in leaving {
            self.send(node, shard, outgoing, from_ns);
        }
    }

    /// Keeps zeros ahead of the journal; whether the node still lives.
    fn keep_room(&mut self, node: usize) -> bool {
        let running = self.nodes[node].up();
        match running.writer.fill_ahead() {
            Ok(room) => {
                if std::mem::replace(&mut running.full, !room) == room {
                    self.trace
                        .say(self.now_ns, || format!("n{} room {room}", node + 1));
                    for shard in 0..usize::from(self.plan.shards) {
                        self.input(node, shard, Input::DiskFull(!room));
                    }
                }
                true
            }
            Err(error) => {
                self.fatal(node, &error.to_string());
                false
            }
        }
    }

    pub(crate) fn on_housekeeping(&mut self, node: usize, life: Life) {
        self.push(
            HOUSEKEEPING_NS,
            Event::Node(node, life, NodeEvent::Housekeeping),
        );
        let running = self.nodes[node].up();
        let end = running.buffer.borrow().end();
        // A fault that waits for a checkpoint brings it about.
        let wanted = self.nodes[node].power_at_checkpoint.is_some();
        let running = self.nodes[node].up();
        let due = wanted || running.checkpointer.journal_bytes(end) > self.plan.checkpoint_bytes;
        if due && !running.checkpointer.is_running() {
            let begun = running.checkpointer.begin(end);
            if self.power_if_dead(node) {
                return;
            }
            if let Ok(number) = begun {
                for shard in 0..usize::from(self.plan.shards) {
                    self.input(node, shard, Input::Checkpoint { number });
                    self.ask_piece(node, shard);
                }
            }
        }
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        if !running.flushing {
            self.begin_flush(node);
        }
        let Some(running) = &self.nodes[node].running else {
            return;
        };
        if !running.flushing {
            self.keep_room(node);
        }
    }

    pub(crate) fn on_checkpoint_part(&mut self, node: usize, shard: usize, part: CheckpointPart) {
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        match part {
            CheckpointPart::Bytes(bytes) => {
                // The checkpointer gives up a checkpoint that finds no room.
                let _ = running.checkpointer.on_bytes(shard as u16, &bytes);
            }
            CheckpointPart::End {
                start,
                journal_from,
                catalog,
                clock_bound,
            } => {
                running.checkpointer.note(&catalog, clock_bound);
                let id = ShardId::new(NodeId(node as u16 + 1), shard as u16);
                if running.checkpointer.on_end(id, start, journal_from) == Ended::Whole {
                    let end = running.buffer.borrow().end();
                    running.checkpoint_wait = Some(end);
                    let durable = running.durable.get();
                    self.flush_soon(node);
                    self.complete_checkpoint(node, durable);
                }
            }
        }
        self.power_if_dead(node);
    }

    /// Asks a shard for the next piece of its checkpoint, in a while.
    pub(crate) fn ask_piece(&mut self, node: usize, shard: usize) {
        let Some(running) = &self.nodes[node].running else {
            return;
        };
        let life = running.life;
        let after = self.prng.below(PIECE_PAUSE_NS);
        let event = NodeEvent::CheckpointPiece { shard };
        self.push(after, Event::Node(node, life, event));
    }

    pub(crate) fn on_piece(&mut self, node: usize, shard: usize) {
        let bytes = 1 << self.prng.between(6, 15);
        self.input(node, shard, Input::CheckpointPiece { bytes });
    }

    fn complete_checkpoint(&mut self, node: usize, durable: Position) {
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        if running
            .checkpoint_wait
            .take_if(|wait| *wait <= durable)
            .is_none()
        {
            return;
        }
        let completed = running.checkpointer.complete();
        if self.power_if_dead(node) {
            return;
        }
        match completed {
            Ok(Completion::InUse(number)) => {
                self.checkpoints += 1;
                self.trace
                    .say(self.now_ns, || format!("n{} checkpoint {number}", node + 1));
                if let Some(down_us) = self.nodes[node].power_at_checkpoint.take() {
                    self.cut_power(node, down_us);
                }
            }
            Ok(Completion::GivenUp(_)) => {}
            Err(error) => self.fatal(node, &error.to_string()),
        }
    }
}
