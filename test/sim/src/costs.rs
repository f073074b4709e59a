//! What things take when the question is speed. Runs that look for faults let steps take no time.

use base::ShardId;
use node::Input;

/// Times of a modelled machine, in virtual nanoseconds.
pub trait CostModel {
    /// How long the shard's core is busy with a step. Its effects appear when it is over.
    fn step_ns(&mut self, shard: ShardId, input: &Input) -> u64;

    /// How long a frame of so many bytes takes from node to node (indices from 0), queueing behind
    /// others included. `now_ns` is when it is handed over.
    fn link_ns(&mut self, now_ns: u64, from: usize, to: usize, bytes: usize) -> u64;

    /// How long a message takes between two shards of a node.
    fn local_ns(&mut self) -> u64;

    /// How long a flush of so many bytes takes.
    fn flush_ns(&mut self, node: usize, bytes: usize) -> u64;

    /// How long something takes between a client and a node.
    fn client_ns(&mut self) -> u64;
}
