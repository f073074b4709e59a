//! Due times of an open-loop run, drawn before the run.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_their_rate_in_order_and_again() {
        let due = poisson(3, 1000.0, 20_000_000);
        assert!((19_400..20_600).contains(&due.len()), "{}", due.len());
        assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(due, poisson(3, 1000.0, 20_000_000));
        assert_ne!(due, poisson(4, 1000.0, 20_000_000));
    }
}
