//! Due times of an open-loop run, drawn before the run.

use crate::curve::Curve;
use crate::{stats::exponential, stream};
use alloc::vec::Vec;

/// The most arrivals that one run may hold (8 bytes each).
pub const ARRIVALS_MAX: usize = 200_000_000;

/// Poisson arrivals at `rate_per_s` for `length_us`: due times in microseconds from the start,
/// increasing. Same seed, rate and length, same arrivals.
///
/// Panics if the rate is not positive or the run would hold more than [`ARRIVALS_MAX`] arrivals.
pub fn poisson(seed: u64, rate_per_s: f64, length_us: u64) -> Vec<u64> {
    assert!(
        rate_per_s > 0.0 && rate_per_s.is_finite(),
        "a rate is positive"
    );
    let mean_us = 1e6 / rate_per_s;
    let expected = length_us as f64 / mean_us;
    assert!(
        expected < ARRIVALS_MAX as f64,
        "too many arrivals for one run"
    );
    let mut prng = stream(seed, &[0x6172_7269]);
    let mut due = Vec::with_capacity(expected as usize + 16);
    let mut at_us = 0.0;
    loop {
        at_us += exponential(&mut prng, mean_us);
        if at_us >= length_us as f64 {
            return due;
        }
        due.push(at_us as u64);
    }
}

/// Poisson arrivals whose rate per second is that of the curve at each moment, as [`poisson`]:
/// arrivals at its largest rate, of which each is kept with the share that the curve has then. For
/// `before_us` the rate is that of the curve's beginning, then `length_us` follow it.
///
/// Panics if the run would hold more than [`ARRIVALS_MAX`] arrivals at the largest rate.
pub fn along(seed: u64, curve: &Curve, before_us: u64, length_us: u64) -> Vec<u64> {
    let most = curve.most();
    let mut prng = stream(seed, &[0x6375_7276]);
    let mut due = poisson(seed, most, before_us + length_us);
    let second = |at_us: u64| at_us.saturating_sub(before_us) as f64 / 1e6;
    due.retain(|at_us| prng.unit() * most < curve.at(second(*at_us)));
    due
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::binomial_interval;

    /// Of a hundred seconds, one at most has a count that 99.9 % of Poisson counts do not have.
    #[test]
    fn the_seconds_of_a_curve_have_its_counts() {
        let mut outside = 0;
        let mut seconds = 0;
        for text in [
            "step:200@0,800@30,50@90",
            "ramp:50..1000@100",
            "sine:500,450,25",
            "gaussian:900,60,20",
        ] {
            let curve: Curve = text.parse().expect("a curve");
            let due = along(11, &curve, 0, 120_000_000);
            assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
            assert_eq!(due, along(11, &curve, 0, 120_000_000));
            let warm = along(11, &curve, 5_000_000, 115_000_000);
            let first = warm.iter().filter(|at| **at < 5_000_000).count() as f64;
            assert!((first - 5.0 * curve.at(0.0)).abs() < 5.0 + 20.0 * curve.at(0.0).sqrt());
            for second in 0..120u32 {
                let from = u64::from(second) * 1_000_000;
                let count = due
                    .iter()
                    .filter(|at| (from..from + 1_000_000).contains(*at));
                let parts =
                    (0..100).map(|part| curve.at(f64::from(second) + f64::from(part) / 100.0));
                let mean = parts.sum::<f64>() / 100.0;
                // Many that hardly ever come are as Poisson's.
                let (low, high) = binomial_interval(10_000_000, mean / 1e7, 0.999);
                outside += u32::from(!(low..=high).contains(&(count.count() as u64)));
                seconds += 1;
            }
        }
        assert!(100 * outside <= seconds, "{outside} of {seconds}");
    }

    #[test]
    fn arrivals_come_at_their_rate_in_order_and_again() {
        let due = poisson(3, 1000.0, 20_000_000);
        assert!((19_400..20_600).contains(&due.len()), "{}", due.len());
        assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(due, poisson(3, 1000.0, 20_000_000));
        assert_ne!(due, poisson(4, 1000.0, 20_000_000));
    }
}
