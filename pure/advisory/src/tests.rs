//! Sessions that lock numbers, step by step.

use crate::{Answer, Ask, Asker, Call, LockKey, Locks, Mode};
use base::{DatabaseId, ShardId, Time, TxnId};

const HERE: ShardId = ShardId(0);

fn key(low: u32) -> LockKey {
    LockKey {
        database: DatabaseId(1),
        high: 0,
        low,
        pair: false,
    }
}

fn txn(n: u64) -> TxnId {
    TxnId {
        shard: HERE,
        incarnation: 1,
        counter: n,
    }
}

#[derive(Default)]
struct World {
    locks: Locks,
    number: u64,
}

impl World {
    fn ask(&mut self, session: i32, ask: Ask) -> u64 {
        self.ask_until(session, ask, 0)
    }

    fn ask_until(&mut self, session: i32, ask: Ask, timeout_us: u64) -> u64 {
        self.number += 1;
        let asker = Asker {
            shard: HERE,
            number: self.number,
            session,
            txn: txn(session as u64),
        };
        self.locks.ask(asker, ask, timeout_us, Time(0));
        self.number
    }

    fn lock(&mut self, session: i32, low: u32, mode: Mode) -> u64 {
        self.ask(session, lock(low, mode, false, true))
    }

    /// Answers since the last call, by session.
    fn answers(&mut self) -> Vec<(i32, Answer)> {
        let answers = self.locks.take_answers();
        answers
            .into_iter()
            .map(|(asker, answer)| (asker.session, answer))
            .collect()
    }
}

fn lock(low: u32, mode: Mode, of_txn: bool, waits: bool) -> Ask {
    Ask::Lock {
        key: key(low),
        mode,
        of_txn,
        waits,
    }
}

fn unlock(low: u32, mode: Mode) -> Ask {
    Ask::Unlock {
        key: key(low),
        mode,
    }
}

#[test]
fn a_lock_is_given_back_as_often_as_it_was_taken() {
    let mut w = World::default();
    w.lock(1, 7, Mode::Exclusive);
    w.lock(1, 7, Mode::Exclusive);
    w.lock(2, 7, Mode::Exclusive);
    assert_eq!(w.answers(), [(1, Answer::Yes), (1, Answer::Yes)]);
    w.ask(1, unlock(7, Mode::Exclusive));
    assert_eq!(w.answers(), [(1, Answer::Yes)]);
    w.ask(1, unlock(7, Mode::Exclusive));
    assert_eq!(w.answers(), [(1, Answer::Yes), (2, Answer::Yes)]);
    w.ask(1, unlock(7, Mode::Exclusive));
    assert_eq!(w.answers(), [(1, Answer::No)]);
    w.locks.end_session(2);
    w.locks.take_news();
    assert!(w.locks.is_idle());
}

#[test]
fn shared_locks_go_together_and_nobody_overtakes_the_queue() {
    let mut w = World::default();
    w.lock(1, 7, Mode::Share);
    w.lock(2, 7, Mode::Exclusive);
    w.lock(3, 7, Mode::Share);
    w.ask(4, lock(7, Mode::Share, false, false));
    assert_eq!(w.answers(), [(1, Answer::Yes), (4, Answer::No)]);
    w.locks.end_session(1);
    assert_eq!(w.answers(), [(2, Answer::Yes)]);
    w.ask(2, Ask::UnlockAll);
    assert_eq!(w.answers(), [(3, Answer::Yes), (2, Answer::Yes)]);
}

#[test]
fn one_who_holds_the_lock_goes_before_those_who_wait_for_it() {
    let mut w = World::default();
    w.lock(1, 7, Mode::Share);
    w.lock(2, 7, Mode::Exclusive);
    w.lock(1, 7, Mode::Exclusive);
    assert_eq!(w.answers(), [(1, Answer::Yes), (1, Answer::Yes)]);
}

#[test]
fn a_circle_of_waits_is_a_deadlock_for_the_last() {
    let mut w = World::default();
    w.lock(1, 1, Mode::Exclusive);
    w.lock(2, 2, Mode::Exclusive);
    w.lock(3, 3, Mode::Exclusive);
    w.lock(1, 2, Mode::Exclusive);
    w.lock(2, 3, Mode::Exclusive);
    w.answers();
    w.lock(3, 1, Mode::Exclusive);
    let answers = w.answers();
    let [(3, Answer::Deadlock(detail))] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    assert_eq!(
        detail,
        "Process 3 waits for ExclusiveLock on advisory lock [1,0,1,1]; blocked by process 1.\n\
         Process 1 waits for ExclusiveLock on advisory lock [1,0,2,1]; blocked by process 2.\n\
         Process 2 waits for ExclusiveLock on advisory lock [1,0,3,1]; blocked by process 3."
    );
    // The others go on when it has gone.
    w.locks.end_session(3);
    assert_eq!(w.answers(), [(2, Answer::Yes)]);
}

#[test]
fn two_readers_who_want_to_write_are_a_deadlock() {
    let mut w = World::default();
    w.lock(1, 7, Mode::Share);
    w.lock(2, 7, Mode::Share);
    w.lock(1, 7, Mode::Exclusive);
    w.answers();
    w.lock(2, 7, Mode::Exclusive);
    assert!(matches!(w.answers()[..], [(2, Answer::Deadlock(_))]));
}

#[test]
fn locks_of_a_transaction_end_with_it() {
    let mut w = World::default();
    w.ask(1, lock(7, Mode::Exclusive, true, true));
    w.ask(1, lock(7, Mode::Exclusive, false, true));
    w.ask(1, unlock(7, Mode::Exclusive));
    w.ask(1, unlock(7, Mode::Exclusive));
    let yes = || (1, Answer::Yes);
    assert_eq!(w.answers(), [yes(), yes(), yes(), (1, Answer::No)]);
    w.lock(2, 7, Mode::Exclusive);
    assert_eq!(w.answers(), []);
    w.locks.end_txn(1, txn(1), false);
    assert_eq!(w.answers(), [(2, Answer::Yes)]);
}

#[test]
fn a_transaction_that_runs_again_has_taken_nothing() {
    let mut w = World::default();
    w.lock(1, 7, Mode::Exclusive);
    w.locks.end_txn(1, txn(1), false);
    w.lock(1, 7, Mode::Exclusive);
    w.lock(1, 8, Mode::Exclusive);
    w.locks.end_txn(1, txn(1), true);
    w.answers();
    w.ask(2, lock(8, Mode::Exclusive, false, false));
    w.ask(2, lock(7, Mode::Exclusive, false, false));
    assert_eq!(w.answers(), [(2, Answer::Yes), (2, Answer::No)]);
}

#[test]
fn a_wait_ends_in_time_or_when_its_statement_ends() {
    let mut w = World::default();
    w.lock(1, 7, Mode::Exclusive);
    w.ask_until(2, lock(7, Mode::Exclusive, false, true), 500);
    let third = w.lock(3, 7, Mode::Exclusive);
    w.answers();
    assert_eq!(w.locks.deadline(), Some(Time(500)));
    w.locks.expire(Time(500));
    assert_eq!(w.answers(), [(2, Answer::TimedOut)]);
    w.locks.withdraw(3, HERE, third);
    w.locks.end_session(1);
    assert_eq!(w.answers(), []);
    w.locks.take_news();
    assert!(w.locks.is_idle());
}

#[test]
fn a_grant_that_nobody_has_heard_of_is_taken_back() {
    let mut w = World::default();
    w.lock(1, 7, Mode::Exclusive);
    let heard = w.lock(1, 7, Mode::Exclusive);
    w.locks.withdraw(1, HERE, heard);
    w.ask(1, unlock(7, Mode::Exclusive));
    w.ask(1, unlock(7, Mode::Exclusive));
    assert_eq!(w.answers()[2..], [(1, Answer::Yes), (1, Answer::No)]);
}

#[test]
fn functions_have_the_names_of_postgresql() {
    let named = |name| Call::named(name).expect("a function");
    assert_eq!(
        named("pg_try_advisory_xact_lock_shared"),
        Call::Lock {
            mode: Mode::Share,
            of_txn: true,
            waits: false
        }
    );
    assert!(named("pg_advisory_unlock_shared").tells());
    for name in [
        "pg_try_advisory_unlock",
        "pg_advisory",
        "advisory_lock",
        "pg_advisory_lock_all",
    ] {
        assert_eq!(Call::named(name), None, "{name}");
    }
    let ask = named("pg_advisory_unlock").ask(DatabaseId(1), &[-1]);
    let key = LockKey {
        high: u32::MAX,
        ..key(u32::MAX)
    };
    assert_eq!(
        ask,
        Some(Ask::Unlock {
            key,
            mode: Mode::Exclusive
        })
    );
}
