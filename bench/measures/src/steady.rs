//! From which second on a run was in its steady state.
//!
//! The beginning is cut off where the standard error of the mean of what is left is least (MSER:
//! White, "An effective truncation heuristic for bias reduction in simulation output", 1997). A
//! run is not steady if more than half of it would have to go, or if what is left still rises or
//! falls.

use workload::stats::sqrt;

/// Fewest seconds that are judged.
pub const SECONDS_MIN: usize = 10;
/// By how much of its mean the rate may change from the beginning to the end of the steady part,
/// if that is more than chance.
const DRIFT_MAX: f64 = 0.1;
/// Standard errors of a slope that are chance.
const CHANCE: f64 = 3.0;

/// What the seconds of a run say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steady {
    /// From this second on.
    From {
        /// Seconds that are cut off.
        second: usize,
        /// The mean of the others.
        mean: f64,
    },
    /// More than half would have to be cut off.
    Late,
    /// It changes to the end.
    Drifts {
        /// From the beginning to the end of what is left, in parts of the mean.
        change: f64,
    },
}

/// Judges counts by second; `None`: there are fewer than [`SECONDS_MIN`].
pub fn steady(counts: &[u64]) -> Option<Steady> {
    if counts.len() < SECONDS_MIN {
        return None;
    }
    let half = counts.len() / 2;
    let mut best = (0, f64::INFINITY);
    for cut in 0..=half {
        let left = &counts[cut..];
        let count = left.len() as f64;
        let error = sum_of_squares(left) / (count * count);
        // A later cut must be better by more than rounding.
        if error < best.1 * (1.0 - 1e-9) {
            best = (cut, error);
        }
    }
    let second = best.0;
    if second == half {
        return Some(Steady::Late);
    }
    let left = &counts[second..];
    let mean = mean_of(left);
    let (change, chance) = drift(left, mean);
    let is_drift = change.abs() > DRIFT_MAX && change.abs() > chance;
    Some(match is_drift {
        true => Steady::Drifts { change },
        false => Steady::From { second, mean },
    })
}

fn mean_of(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64 / counts.len() as f64
}

/// Of the distances from the mean.
fn sum_of_squares(counts: &[u64]) -> f64 {
    let mean = mean_of(counts);
    let squares = counts.iter().map(|count| *count as f64 - mean);
    squares.map(|away| away * away).sum()
}

/// The change along the line of least squares, and what of it may be chance, in parts of the mean.
fn drift(counts: &[u64], mean: f64) -> (f64, f64) {
    let count = counts.len() as f64;
    if mean <= 0.0 {
        return (0.0, 0.0);
    }
    let middle = (count - 1.0) / 2.0;
    let places = || (0..counts.len()).map(|at| at as f64 - middle);
    let width: f64 = places().map(|at| at * at).sum();
    let rises = places().zip(counts);
    let slope = rises.map(|(at, count)| at * *count as f64).sum::<f64>() / width;
    let rest = places().zip(counts);
    let rest = rest.map(|(at, count)| *count as f64 - mean - slope * at);
    let rest: f64 = rest.map(|away| away * away).sum();
    let error = sqrt(rest / (count - 2.0).max(1.0) / width);
    let whole = (count - 1.0) / mean;
    (slope * whole, CHANCE * error * whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use base::Prng;

    fn noisy(prng: &mut Prng, mean: u64) -> u64 {
        let noise = mean / 10;
        mean - noise / 2 + prng.below(noise.max(1))
    }

    /// Seconds that rise to a plateau are cut off, within two seconds of where they end.
    #[test]
    fn a_planted_warm_up_is_cut_off() {
        let mut good = 0;
        for seed in 0..200 {
            let mut prng = Prng::new(seed);
            let ramp = 4 + seed as usize % 12;
            let counts: Vec<u64> = (0..60)
                .map(|at| match at < ramp {
                    true => noisy(&mut prng, 1_000 * (at as u64 + 1) / (ramp as u64 + 1)),
                    false => noisy(&mut prng, 1_000),
                })
                .collect();
            if let Some(Steady::From { second, mean }) = steady(&counts) {
                let near = ramp.saturating_sub(2)..=ramp + 2;
                good += u32::from(near.contains(&second) && (970.0..1_030.0).contains(&mean));
            }
        }
        assert!(good >= 190, "{good} of 200");
    }

    #[test]
    fn a_run_that_is_steady_from_the_beginning_loses_little() {
        let mut lost = 0;
        for seed in 0..100 {
            let mut prng = Prng::new(seed);
            let counts: Vec<u64> = (0..60).map(|_| noisy(&mut prng, 500)).collect();
            match steady(&counts) {
                Some(Steady::From { second, .. }) => lost += usize::from(second > 20),
                Some(Steady::Late) => lost += 1,
                other => panic!("{seed}: {other:?}"),
            }
        }
        assert!(lost <= 10, "{lost} of 100");
    }

    #[test]
    fn what_never_settles_is_not_steady() {
        let jump = |second: u64| -> Vec<u64> {
            (0..40)
                .map(|at| if at < second { 100 } else { 1_000 })
                .collect()
        };
        assert_eq!(steady(&jump(20)), Some(Steady::Late));
        assert!(matches!(steady(&jump(25)), Some(Steady::Drifts { .. })));
        let falls: Vec<u64> = (0..60).map(|at| 1_000 - 5 * at).collect();
        assert!(!matches!(steady(&falls), Some(Steady::From { .. })));
        assert_eq!(steady(&[5; 9]), None);
        let still = Steady::From {
            second: 0,
            mean: 0.0,
        };
        assert_eq!(steady(&[0; 20]), Some(still));
    }
}
