//! What the test bed gives for free.

use crate::{Body, GlobalLock, Message};
use base::ShardId;
use bed::random::{Accounts, Flags, Mix, Run, seeds};
use bed::{Script, Subject};

impl Subject for GlobalLock {
    type Settings = ();
    type Fault = ();

    fn homes(shards: &[ShardId]) -> Vec<ShardId> {
        vec![shards[0]]
    }
    fn new(shard: ShardId) -> GlobalLock {
        GlobalLock::new(shard)
    }
    fn set(&mut self, (): &()) {}
    fn plant(&mut self, _: Option<()>) {}
    fn describe(message: &Message) -> String {
        let what = match &message.body {
            Body::Ask(id, work) if work.op.is_none() => format!("Ask {} commit", id.0),
            Body::Ask(id, work) if work.commits => format!("Ask {} and commit", id.0),
            Body::Ask(id, _) => format!("Ask {}", id.0),
            Body::Answer(id, ..) => format!("Answer {}", id.0),
            Body::Drop => "Drop".to_owned(),
            Body::Dropped => "Dropped".to_owned(),
            Body::Inquire => "Inquire".to_owned(),
        };
        format!("t{} {what}", message.txn.counter / 2)
    }
}

fn serializable<M: Mix<GlobalLock>>() {
    let seeds = seeds(400);
    let all = seeds.end - seeds.start;
    let committed = seeds.map(|seed| Run::<GlobalLock, M>::whole(seed, None).committed());
    let committed: usize = committed.sum();
    assert!(committed as u64 >= all, "most runs get something done");
}

#[test]
fn random_transactions_on_accounts_are_serializable() {
    serializable::<Accounts>();
}

#[test]
fn random_transactions_on_flags_are_serializable() {
    serializable::<Flags>();
}

#[test]
fn golden_scripts() {
    Script::<GlobalLock>::run_folder("testdata");
}
