//! Runs that take real time. A machine may stand still for longer than a short run lasts: a disk
//! for some seconds, a process that gets no core. Nothing has happened in such a run then, which
//! says nothing about the program: it is made again.

use std::time::Duration;

/// How often a run is made at most.
const TRIES: u32 = 5;

/// Runs for `first`, and again, each time twice as long, until `is_enough` says so of the result;
/// five times at most. Returns the last result, whatever it is: the caller judges it.
pub fn longer<T>(
    first: Duration,
    mut run: impl FnMut(Duration) -> T,
    is_enough: impl Fn(&T) -> bool,
) -> T {
    let mut length = first;
    for _ in 1..TRIES {
        let found = run(length);
        if is_enough(&found) {
            return found;
        }
        length *= 2;
    }
    run(length)
}

/// Runs until `is_enough` says so of the result; five times at most. Returns the last result,
/// whatever it is: the caller judges it.
pub fn again<T>(mut run: impl FnMut() -> T, is_enough: impl Fn(&T) -> bool) -> T {
    longer(Duration::ZERO, |_| run(), is_enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_made_until_it_is_enough_and_five_times_at_most() {
        let seconds = Duration::from_secs;
        for (wanted, tries) in [(0, 1), (2, 2), (8, 4), (1_000, 5)] {
            let mut lengths = Vec::new();
            let run = |length: Duration| {
                lengths.push(length);
                length.as_secs()
            };
            let last = longer(seconds(1), run, |found| *found >= wanted);
            let all = [1, 2, 4, 8, 16].map(seconds);
            assert_eq!(lengths, all[..tries], "{wanted}");
            assert_eq!(seconds(last), all[tries - 1], "the last one is returned");
        }
        let mut count = 0;
        let run = || {
            count += 1;
            count
        };
        assert_eq!(again(run, |found| *found == 3), 3);
        assert!(!again(|| false, |found| *found));
    }
}
