//! Every decoder takes a bounded number of broken inputs; a planted bug must be found.
//!
//! `FUZZ_SECONDS` and `FUZZ_SEED` in the environment make a longer run with other inputs.

use fuzz::targets::PLANTED;
use fuzz::{Budget, TARGETS, run};
use std::time::Duration;

/// Inputs of one target, unless its time is over before.
const INPUTS: u64 = 200_000;
/// Time of one target in seconds.
const SECONDS: u64 = 12;
/// Fewer inputs than this in that time mean that a decoder is too slow, or that nothing ran.
const INPUTS_MIN: u64 = 2_000;
/// The stack of a shard's thread.
const STACK_BYTES: usize = 8 << 20;
/// No short input may take longer, on a busy machine and without optimisation.
const SLOWEST_US_MAX: u128 = 3_000_000;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
}

fn survives(name: &str) {
    let target = TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("a target of that name");
    let seconds = setting("FUZZ_SECONDS");
    let budget = Budget {
        inputs: seconds.map_or(INPUTS, |_| u64::MAX),
        time: Duration::from_secs(seconds.unwrap_or(SECONDS)),
    };
    let seed = setting("FUZZ_SEED").unwrap_or(1);
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let ran = thread.spawn(move || run(target, seed, budget));
    let ran = ran.expect("a thread can be started").join();
    let ran = ran.expect("the target takes every input");
    assert!(ran.inputs >= INPUTS_MIN, "{name}: {ran:?}");
    assert!(ran.slowest_us <= SLOWEST_US_MAX, "{name}: {ran:?}");
}

#[test]
fn wire_messages() {
    survives("wire");
}

#[test]
fn logins() {
    survives("login");
}

#[test]
fn messages_of_workers() {
    survives("workers");
}

#[test]
fn node_frames() {
    survives("frames");
}

#[test]
fn journal_records() {
    survives("record");
}

#[test]
fn journal_segments() {
    survives("segment");
}

#[test]
fn checkpoint_files() {
    survives("checkpoint");
}

#[test]
fn manifests() {
    survives("manifest");
}

#[test]
fn sql_text() {
    survives("sql");
}

#[test]
fn json_text() {
    survives("json");
}

#[test]
fn row_programs() {
    survives("program");
}

#[test]
fn histories() {
    survives("history");
}

#[test]
#[should_panic(expected = "range end index")]
fn a_planted_bug_is_found() {
    run(
        &PLANTED,
        1,
        Budget {
            inputs: 10_000,
            time: Duration::from_secs(60),
        },
    );
}

/// Mending what is whole changes nothing, so mended inputs are as close to valid as can be. The
/// last input of a corpus is whole; others may be payloads without their frames.
#[test]
fn whole_inputs_need_no_mending() {
    let mut mended = 0;
    for target in TARGETS {
        let Some(reseal) = target.reseal else {
            continue;
        };
        let whole = (target.corpus)().pop().expect("a corpus has inputs");
        let mut input = whole.clone();
        reseal(&mut input);
        assert_eq!(input, whole, "{}", target.name);
        *input.last_mut().expect("inputs have bytes") ^= 1;
        let broken = input.clone();
        reseal(&mut input);
        assert_ne!(input, broken, "{} has a checksum to mend", target.name);
        mended += 1;
    }
    assert_eq!(mended, 4);
}
