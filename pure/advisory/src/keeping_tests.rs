//! Nodes that come and go, and the locks of their sessions.

use crate::{Answer, Ask, Asker, Effect, Keeping, LOCKS_END_US, LockKey, Mode, Together};
use base::{DatabaseId, NodeId, ShardId, Time, TxnId};

/// The tens of a backend number are the node of its session.
fn shard_of(session: i32) -> Option<ShardId> {
    Some(ShardId::new(NodeId(session as u16 / 10), 0))
}

fn lock(keeping: &mut Keeping, session: i32, number: u64, started: Option<Time>) {
    let asker = Asker {
        shard: shard_of(session).expect("every session has a shard"),
        number,
        session,
        txn: TxnId::default(),
    };
    let ask = Ask::Lock {
        key: LockKey {
            database: DatabaseId(1),
            high: 0,
            low: 7,
            pair: false,
        },
        mode: Mode::Exclusive,
        of_txn: false,
        waits: true,
    };
    keeping.ask(Time(0), started, (asker, ask, 0));
}

/// The numbers of the requests that were granted since the last call.
fn granted(keeping: &mut Keeping) -> Vec<u64> {
    let effects = core::mem::take(&mut keeping.effects);
    let grants = effects.into_iter().filter_map(|effect| match effect {
        Effect::Send(
            _,
            Together::Answer {
                number,
                answer: Answer::Yes,
            },
        ) => Some(number),
        _ => None,
    });
    grants.collect()
}

#[test]
fn locks_of_a_lost_node_are_free_after_a_while() {
    let mut keeping = Keeping::new(shard_of);
    lock(&mut keeping, 21, 1, None);
    lock(&mut keeping, 31, 2, None);
    assert_eq!(granted(&mut keeping), [1]);
    keeping.peer_down(Time(5), NodeId(2));
    keeping.on_tick(Time(LOCKS_END_US));
    assert_eq!(granted(&mut keeping), []);
    keeping.on_tick(Time(LOCKS_END_US + 5));
    assert_eq!(granted(&mut keeping), [2]);
}

#[test]
fn locks_of_a_former_life_are_free_at_once() {
    let mut keeping = Keeping::new(shard_of);
    keeping.peer_up(NodeId(2), 1);
    lock(&mut keeping, 21, 1, None);
    lock(&mut keeping, 31, 2, None);
    keeping.peer_down(Time(5), NodeId(2));
    keeping.peer_up(NodeId(2), 1);
    assert_eq!(granted(&mut keeping), [1]);
    keeping.peer_up(NodeId(2), 2);
    assert_eq!(granted(&mut keeping), [2]);
}

#[test]
fn a_keeper_that_has_started_waits_for_the_other_nodes() {
    let mut keeping = Keeping::new(shard_of);
    lock(&mut keeping, 21, 1, Some(Time(0)));
    assert_eq!(granted(&mut keeping), []);
    assert!(keeping.deadline().is_some());
    keeping.admit_early(Time(1));
    assert_eq!(granted(&mut keeping), [1]);
}

#[test]
fn sessions_end_that_have_lost_their_keeper() {
    let mut keeping = Keeping::new(shard_of);
    let keeper = ShardId::new(NodeId(3), 0);
    keeping.peer_up(NodeId(3), 1);
    keeping.note_holder(keeper, 11, true, true);
    keeping.note_holder(keeper, 12, true, true);
    keeping.note_holder(keeper, 12, false, true);
    keeping.peer_up(NodeId(3), 2);
    let effects = core::mem::take(&mut keeping.effects);
    assert!(matches!(
        effects.into_iter().collect::<Vec<_>>()[..],
        [Effect::EndSession(11)]
    ));
}
