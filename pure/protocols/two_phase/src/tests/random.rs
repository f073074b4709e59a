//! Random transactions over several nodes with loss, repetition, reordering and crashes.

use crate::{Fault, TwoPhase};
use bed::random::{Accounts, seeds};

type Run = bed::random::Run<TwoPhase, Accounts>;

#[test]
fn random_transactions_are_serializable_under_faults() {
    let seeds = seeds(400);
    let all = seeds.end - seeds.start;
    let (mut committed, mut overflows, mut went_back, mut raises) = (0, 0, 0, 0);
    for seed in seeds {
        let run = Run::whole(seed, None);
        committed += run.committed();
        overflows += run.overflows;
        went_back += run.went_back();
        raises += run.raises;
    }
    assert!(committed as u64 >= all, "most runs get something done");
    assert!(all < 100 || overflows > 0, "some meet the end of a range");
    assert!(
        all < 100 || went_back > 40,
        "{went_back} go back to savepoints"
    );
    assert!(all < 100 || raises > 0, "some snapshots are raised");
}

/// Runs by the thousand have found faults with these.
#[test]
fn seeds_that_have_failed_are_serializable() {
    for seed in [502_954, 507_397, 600_078, 602_819, 603_145] {
        Run::whole(seed, None);
    }
}

/// The runs above must notice when a rule is broken.
#[test]
fn runs_with_planted_faults_fail() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let fails = |fault| {
        // Where commits are entrusted is clear from the start.
        let apt = |seed| fault == Fault::NoSeal || Run::new(seed, None).mix().narrow;
        seeds(2_000).find(|seed| apt(*seed) && Run::notices(*seed, fault))
    };
    let faults = [Fault::NoSeal, Fault::ForgetsUnsettled, Fault::NoBound];
    let failed = faults.map(|fault| (fault, fails(fault)));
    std::panic::set_hook(quiet);
    assert!(failed.iter().all(|(_, seed)| seed.is_some()), "{failed:?}");
}
