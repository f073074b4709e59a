//! A crash at every step of a transfer, for each role: never two owners, never none, and nothing
//! that was answered is lost.

use super::local::{add, get, number, shard};
use super::world::{World, key};
use base::NodeId;
use txn::Outcome;

/// Which transfer.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// Node 1 asks node 2, which is home and owner.
    HomeOwns,
    /// Node 1 asks node 2, which is home; node 3 is the owner.
    ThreeNodes,
    /// Node 2 asks for its own row, which node 3 owns.
    HomeAsks,
}

fn requester(case: Case) -> u16 {
    match case {
        Case::HomeOwns | Case::ThreeNodes => 1,
        Case::HomeAsks => 2,
    }
}

/// Runs a transfer up to `steps` deliveries and flushes, crashes `victims`, and lets everything
/// come to rest. Returns whether the transfer had ended before.
fn run(case: Case, steps: usize, flushes: usize, victims: &[u16], kept: usize) -> bool {
    let who = || format!("{case:?} {steps} {flushes} {victims:?} {kept}");
    let mut world = World::new(4, 1);
    world.load(key("a1"), 10);
    let mut expected = 10;
    if !matches!(case, Case::HomeOwns) {
        let txn = world.begin(shard(3));
        world.submit(txn, add("a1", 5), true);
        world.settle();
        world.tick(300_000);
        world.settle();
        expected = 15;
    }
    let txn = world.begin(shard(requester(case)));
    let op = world.submit(txn, add("a1", 1), true);
    let mut ended = false;
    for step in 0..steps {
        if step % 3 == flushes {
            world.flush_all();
        }
        let leaves = world
            .flights
            .iter()
            .position(|flight| world.may_leave(flight));
        match leaves {
            Some(at) => {
                let flight = world.flights.remove(at);
                world.deliver(flight);
            }
            None => {
                ended = world.flights.is_empty();
                world.flush_all();
            }
        }
    }
    // The client hears of it only when the record is durable.
    let answered = world.answers.iter().any(|(_, id, reply)| {
        let disk = world.nodes[&NodeId(requester(case))].disk.borrow();
        let committed = matches!(reply.outcome, Some(Outcome::Committed { .. }));
        *id == op && committed && reply.wait <= disk.durable
    });
    for victim in victims {
        world.crash(NodeId(*victim), kept);
    }
    let owners = world.owners(&key("a1"));
    assert!(owners.len() <= 1, "{}: {owners:?}", who());
    for victim in victims {
        world.restart(NodeId(*victim));
        assert!(world.owners(&key("a1")).len() <= 1, "{}", who());
        world.announce(NodeId(*victim));
    }
    for _ in 0..30 {
        world.settle();
        world.tick(500_000);
    }
    world.settle();
    let states = || -> String {
        let shards = world.shards.iter();
        shards
            .map(|(id, shard)| format!("{id}:\n{}", shard.protocol))
            .collect()
    };
    assert_eq!(world.owners(&key("a1")).len(), 1, "{}\n{}", who(), states());
    let found = world.value(&key("a1")).expect("it is there");
    assert!(
        found == expected || found == expected + 1,
        "{}: {found}",
        who()
    );
    assert!(
        !answered || found == expected + 1,
        "{}: an answered commit is lost",
        who()
    );
    for at in [3, 1, 2, 4] {
        let txn = world.begin(shard(at));
        let read = world.submit(txn, get("a1"), true);
        world.settle();
        let reply = world
            .take_answer(read)
            .unwrap_or_else(|| panic!("{}", who()));
        assert_eq!(number(&reply), Some(found), "{}", who());
    }
    world.tick(500_000);
    world.settle();
    assert!(world.is_idle(), "{}\n", who());
    ended
}

#[test]
fn a_crash_at_every_step_of_a_transfer() {
    for case in [Case::HomeOwns, Case::ThreeNodes, Case::HomeAsks] {
        for victims in [
            &[1][..],
            &[2],
            &[3],
            &[1, 2],
            &[2, 3],
            &[1, 3],
            &[1, 2, 3, 4],
        ] {
            for (flushes, kept) in [(0, 0), (1, 0), (2, 1), (3, 0), (3, 2)] {
                let ended = (0..40).any(|steps| run(case, steps, flushes, victims, kept));
                assert!(ended, "{case:?} {victims:?}: the transfer ends");
            }
        }
    }
}
