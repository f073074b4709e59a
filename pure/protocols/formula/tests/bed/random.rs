//! Random transactions over several nodes with loss, repetition, reordering and crashes, judged by
//! replay in the order of commit timestamps.

use super::world::Tested;
use bed::random::{Accounts, Flags, seeds};

#[test]
fn random_transactions_are_serializable_under_faults() {
    let seeds = seeds(400);
    let all = seeds.end - seeds.start;
    let (mut committed, mut overflows, mut went_back, mut repeated) = (0, 0, 0, 0);
    for seed in seeds {
        let run = bed::random::Run::<Tested, Accounts>::whole(seed, None);
        committed += run.committed();
        overflows += run.overflows;
        went_back += run.went_back();
        repeated += run.mix().repeated;
    }
    assert!(committed as u64 >= all, "most runs get something done");
    assert!(all < 100 || overflows > 0, "some meet the end of a range");
    assert!(
        all < 100 || went_back > 40,
        "{went_back} go back to savepoints"
    );
    assert!(
        all < 100 || repeated > 20,
        "{repeated} compute a value again and again"
    );
}

#[test]
fn rows_that_come_and_go_are_serializable_under_faults() {
    let mut committed = 0;
    let seeds = seeds(200);
    let all = seeds.end - seeds.start;
    for seed in seeds {
        committed += bed::random::Run::<Tested, Flags>::whole(seed, None).committed();
    }
    assert!(committed as u64 >= all, "most runs get something done");
}

/// Runs by the thousand have found faults with these.
#[test]
fn seeds_that_have_failed_are_serializable() {
    for seed in [500_276, 509_717, 609_407, 905_277] {
        bed::random::Run::<Tested, Accounts>::whole(seed, None);
    }
}
