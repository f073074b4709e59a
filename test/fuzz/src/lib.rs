//! Fuzzing of every decoder: whatever bytes come, none may panic, hang or lose its place.
//!
//! A [`Target`] is a function over bytes with a corpus of valid inputs. A seeded [`Mutator`] breaks
//! them; where a checksum would hide the decoder behind it, the target's `reseal` mends it in half
//! of the inputs. Same seed, same inputs. docs/fuzzing.md says how to run one target for long.
//!
//! Is not: guided by coverage, or a test of what a decoder answers; its own crate tests that.

pub mod corpus;
pub mod mutate;
pub mod reseal;
pub mod targets;

pub use mutate::Mutator;
pub use targets::{TARGETS, Target};

use base::Prng;
use std::time::{Duration, Instant};

/// How long one target runs: whichever end comes first.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Inputs.
    pub inputs: u64,
    /// Time.
    pub time: Duration,
}

/// What a run did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ran {
    /// Inputs that the target took.
    pub inputs: u64,
    /// The longest time for one input in microseconds.
    pub slowest_us: u128,
}

/// Feeds `target` with broken inputs until the budget is used up. The inputs follow from `seed`.
///
/// # Panics
/// When the target does; the input is printed as hex before.
pub fn run(target: &Target, seed: u64, budget: Budget) -> Ran {
    let mut prng = Prng::new(seed);
    let mut mutator = Mutator::new((target.corpus)(), prng.fork());
    let end = Instant::now() + budget.time;
    let mut ran = Ran {
        inputs: 0,
        slowest_us: 0,
    };
    for input in mutator.corpus().to_vec() {
        feed(target, &input, &mut ran);
    }
    while ran.inputs < budget.inputs && Instant::now() < end {
        let mut input = mutator.next_input();
        if let Some(reseal) = target.reseal
            && prng.below(2) == 0
        {
            reseal(&mut input);
        }
        feed(target, &input, &mut ran);
    }
    ran
}

fn feed(target: &Target, input: &[u8], ran: &mut Ran) {
    let culprit = Culprit {
        name: target.name,
        input,
    };
    let start = Instant::now();
    (target.decode)(input);
    drop(culprit);
    ran.slowest_us = ran.slowest_us.max(start.elapsed().as_micros());
    ran.inputs += 1;
}

/// Prints the input that was being decoded when a panic came by.
struct Culprit<'a> {
    name: &'a str,
    input: &'a [u8],
}

impl Drop for Culprit<'_> {
    #[expect(
        clippy::print_stderr,
        reason = "the input is what a person needs to repeat it"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex: String = self
                .input
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            eprintln!("{} fails on {hex}", self.name);
        }
    }
}
