//! What the bed needs of a protocol beyond its contract.

use base::{Prng, ShardId};
use core::fmt::Debug;
use txn::Protocol;

/// A protocol under test.
pub trait Subject: Protocol + Sized {
    /// What tests set before a run; every life of every shard gets it.
    type Settings: Clone + Default;
    /// A rule that tests break, to see that they would notice.
    type Fault: Copy + PartialEq + Debug;

    /// Whether rows leave the shard of their slot. If not, all rows of a store are compared with
    /// those that must be there, and only transactions that wrote have a record.
    const MOVES_ROWS: bool = false;
    /// Whether the clocks of a node stay below a durable bound, which its next life starts above.
    /// If not, a restarted node starts at its time, and snapshots of that moment can be read.
    const BOUNDS_CLOCKS: bool = true;

    /// Whether runs in which commits are entrusted let clocks pass their bounds.
    const PASSES_BOUNDS: bool = true;

    /// Whether its transactions have odd ids.
    const ODD_IDS: bool = false;

    /// The shards that have rows, of all: slots are spread over them in turn.
    fn homes(shards: &[ShardId]) -> Vec<ShardId> {
        shards.to_vec()
    }

    /// The protocol on a shard.
    fn new(shard: ShardId) -> Self;

    /// Changes the settings.
    fn set(&mut self, settings: &Self::Settings);

    /// The settings of the random run `seed`. Of what it draws, whether most changes are blind, the
    /// clients are told.
    fn draw(seed: u64, prng: &mut Prng, fault: Option<Self::Fault>) -> (Self::Settings, bool) {
        let _ = (seed, prng, fault);
        (Self::Settings::default(), false)
    }

    /// Sets what a golden script calls `name`.
    fn set_named(settings: &mut Self::Settings, name: &str, value: u64) {
        let _ = settings;
        panic!("there is no setting {name} to be {value}");
    }

    /// Breaks a rule, or none, from here on.
    fn plant(&mut self, fault: Option<Self::Fault>);

    /// Whether a client may not know the outcome of a transaction of this many operations.
    fn may_be_unknown(operations: usize) -> bool {
        let _ = operations;
        true
    }

    /// A message in a line of a trace.
    fn describe(message: &Self::Message) -> String;
}
