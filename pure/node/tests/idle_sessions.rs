//! A shard whose clients fall silent: their sessions end, and the shard wants no tick after that.

use catalog::ProtocolKind;
use node::Input;
use one_shard::World;
use wire::Reply;

const SECOND_US: u64 = 1_000_000;

/// States of the errors that clients were told in the last step, and the connections that ended.
fn told(world: &World) -> Vec<(u32, String)> {
    let told = world
        .replies
        .iter()
        .filter_map(|(conn, reply)| match reply {
            Reply::Error(_, error) => Some((conn.0, error.state().to_string())),
            Reply::Close => Some((conn.0, "close".to_owned())),
            _ => None,
        });
    told.collect()
}

#[test]
fn silent_sessions_end_and_want_no_tick_after_that() {
    let mut world = World::new(ProtocolKind::TwoPhase);
    world.connect_with(1, "-c idle_in_transaction_session_timeout=1s");
    world.connect_with(2, "-c idle_session_timeout=2s");
    world.connect(3);
    world.say(1, "begin");
    assert_eq!(told(&world), []);
    let mut ended = Vec::new();
    for _ in 0..100 {
        let Some(at) = world.shard.deadline() else {
            break;
        };
        world.now = world.now.max(at);
        world.step(Input::Tick);
        ended.extend(told(&world));
    }
    let expected = [(1, "25P03"), (1, "close"), (2, "57P05"), (2, "close")];
    assert_eq!(ended, expected.map(|(conn, what)| (conn, what.to_owned())));
    assert_eq!(world.shard.deadline(), None, "no session wants to be woken");
    // The session without a limit lives, and the shard still answers.
    world.now = world.now.after(3_600 * SECOND_US);
    world.say(3, "nonsense");
    assert_eq!(told(&world), [(3, "42601".to_owned())]);
}
