//! Random transactions with loss, repetition, outages and crashes; every row has one owner.

use crate::{Leap, Moves};
use base::Planted;
use bed::programs::{self, Test};
use bed::random::{Flags, seeds};
use txn::{MovingRows, Op, Read};

type Run = bed::random::Run<Leap, Flags>;

pub(crate) fn sum_op(read: Read) -> Op {
    Op::Scan(programs::scan(read, Test::Sum))
}

#[test]
fn random_transactions_are_serializable_under_faults() {
    let seeds = seeds(400);
    let all = seeds.end - seeds.start;
    let (mut committed, mut checkpoints, mut went_back) = (0, 0, 0);
    let mut moves = Moves::default();
    for seed in seeds {
        let run = Run::whole(seed, None);
        committed += run.committed() as u64;
        went_back += run.went_back();
        checkpoints += run.world.checkpoints;
        for shard in run.world.shards.values() {
            moves.add(&shard.protocol.moves());
        }
    }
    assert!(committed >= all, "most runs get something done");
    assert!(
        all < 100 || went_back > 40,
        "{went_back} go back to savepoints"
    );
    assert!(
        all < 100 || (moves.moved_in > all && checkpoints > all),
        "rows move"
    );
    assert!(
        all < 100 || moves.copied.min(moves.entrusted).min(moves.shipped) > all / 2,
        "{} copies, {} entrusted, {} shipped",
        moves.copied,
        moves.entrusted,
        moves.shipped
    );
}

/// Runs by the thousand have found faults with these.
#[test]
fn seeds_that_have_failed_are_serializable() {
    for seed in [1_078, 20_001, 83_289, 100_904, 203_958, 300_165, 607_726] {
        Run::whole(seed, None);
    }
}

/// Random runs notice the printed rules too: those that break within few seeds.
#[test]
fn runs_by_the_printed_rules_fail() {
    for rule in [
        Planted::LeapDuplicateAccepted,
        Planted::LeapBackupByTimeout,
        Planted::LeapHomeServesAtOnce,
        Planted::LeapOwnerServesAtOnce,
        Planted::LeapAbsentNotOwned,
        Planted::LeapGapsNotLocked,
        Planted::LeapArrivalNotLogged,
        Planted::LeapVersionNotDurable,
        Planted::LeapFormulaLost,
        Planted::LeapFormulaTwice,
        Planted::LeapClaimsOfOnePart,
        Planted::LeapServesHalfResolved,
    ] {
        let broken = |seed| Run::notices(seed, rule);
        assert!((0..300).any(broken), "the runs do not see {rule:?}");
    }
}
