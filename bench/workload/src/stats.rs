//! Small exact statistics: binomial intervals, and `ln` and `sqrt` for a crate without std.
//!
//! The float functions are written with basic IEEE operations only, so they give the same bits on
//! every machine; a platform's own library would not.

use alloc::vec::Vec;

/// The square root of `x >= 0`, by Newton's method, to the last bits of a double.
pub fn sqrt(x: f64) -> f64 {
    assert!(x >= 0.0, "no real root of a negative number");
    if x == 0.0 {
        return 0.0;
    }
    // Halving the exponent gives a guess within a factor of two of the root.
    let mut guess = f64::from_bits((x.to_bits() >> 1) + (1023u64 << 51));
    for _ in 0..6 {
        guess = 0.5 * (guess + x / guess);
    }
    guess
}

/// The natural logarithm of a normal `x > 0`, relative error below 1e-15.
pub fn ln(x: f64) -> f64 {
    assert!(
        x.is_normal() && x > 0.0,
        "logarithm of a number that is not positive"
    );
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    // ln(m) = 2 atanh((m - 1) / (m + 1)); the argument stays below 1/3.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut power = t;
    let mut sum = 0.0;
    let mut k = 1.0;
    while k < 36.0 {
        sum += power / k;
        power *= square;
        k += 2.0;
    }
    2.0 * sum + exponent as f64 * core::f64::consts::LN_2
}

/// Below this the exponential function is nearer to 0 than to any other double.
const EXP_X_MIN: f64 = -745.2;
/// Above this it is larger than any double.
const EXP_X_MAX: f64 = 709.8;

/// The exponential function, relative error below 1e-14 for `x` from -700 to 700. It is 0 below
/// -745.2 and infinite above 709.8.
pub fn exp(x: f64) -> f64 {
    if x < EXP_X_MIN {
        return 0.0;
    }
    if x > EXP_X_MAX {
        return f64::INFINITY;
    }
    // A whole number of halvings or doublings, at most 1,076, and a small rest.
    let halves = x / core::f64::consts::LN_2;
    let doublings = (halves + if halves < 0.0 { -0.5 } else { 0.5 }) as i32;
    let rest = x - f64::from(doublings) * core::f64::consts::LN_2;
    let mut term = 1.0;
    let mut sum = 1.0;
    let mut k = 1.0;
    while k < 22.0 {
        term *= rest / k;
        sum += term;
        k += 1.0;
    }
    let step = if doublings < 0 { 0.5 } else { 2.0 };
    (0..doublings.unsigned_abs()).fold(sum, |product, _| product * step)
}

/// The sine, absolute error below 1e-12 for `x` from -1e4 to 1e4.
pub fn sine(x: f64) -> f64 {
    use core::f64::consts::TAU;
    let turns = (x / TAU + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    let rest = x - turns as f64 * TAU;
    let (mut term, mut sum, mut k) = (rest, rest, 2.0);
    while k < 32.0 {
        term *= -rest * rest / (k * (k + 1.0));
        sum += term;
        k += 2.0;
    }
    sum
}

/// A number with the negative exponential distribution of the given mean (> 0).
pub fn exponential(prng: &mut base::Prng, mean: f64) -> f64 {
    // unit() is in [0, 1), so the argument is in (0, 1].
    -mean * ln(1.0 - prng.unit())
}

/// The counts `low..=high` that a binomial variable of `trials` and probability `p` falls into with
/// at least `coverage`; each tail outside has at most half of the rest.
///
/// Exact: the probabilities are summed outwards from the mode, relative to the mode, until they no
/// longer count. Cost: about 20 standard deviations of terms.
pub fn binomial_interval(trials: u64, p: f64, coverage: f64) -> (u64, u64) {
    assert!(
        (0.0..=1.0).contains(&p) && (0.0..1.0).contains(&coverage),
        "a probability"
    );
    if p == 0.0 || trials == 0 {
        return (0, 0);
    }
    if p == 1.0 {
        return (trials, trials);
    }
    let odds = p / (1.0 - p);
    let mode = (((trials + 1) as f64 * p) as u64).min(trials);
    let mut below = Vec::new();
    let mut weight = 1.0;
    let mut k = mode;
    while k > 0 && weight > 1e-18 {
        weight *= k as f64 / ((trials - k + 1) as f64 * odds);
        k -= 1;
        below.push(weight);
    }
    let mut above = Vec::new();
    weight = 1.0;
    k = mode;
    while k < trials && weight > 1e-18 {
        weight *= (trials - k) as f64 * odds / (k + 1) as f64;
        k += 1;
        above.push(weight);
    }
    let total = 1.0 + below.iter().sum::<f64>() + above.iter().sum::<f64>();
    let allowed = total * (1.0 - coverage) / 2.0;
    (mode - kept(&below, allowed), mode + kept(&above, allowed))
}

/// How many entries of a decreasing tail stay when its far end of at most `allowed` is cut.
fn kept(tail: &[f64], allowed: f64) -> u64 {
    let mut cut = 0.0;
    let mut kept = tail.len();
    while kept > 0 && cut + tail[kept - 1] <= allowed {
        cut += tail[kept - 1];
        kept -= 1;
    }
    kept as u64
}

/// The chi-square statistic of `counts` against equal shares.
pub fn chi_square_uniform(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return 0.0;
    }
    let expected = total as f64 / counts.len() as f64;
    counts
        .iter()
        .map(|&c| (c as f64 - expected) * (c as f64 - expected) / expected)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_and_logarithms_agree_with_the_platform() {
        for x in [1e-9, 0.25, 0.5, 1.0, 2.0, 3.0, 10.0, 12345.678, 9e15] {
            assert!(
                (sqrt(x) - f64::sqrt(x)).abs() <= f64::sqrt(x) * 1e-15,
                "sqrt {x}"
            );
            assert!(
                (ln(x) - f64::ln(x)).abs() <= f64::ln(x).abs() * 2e-15 + 1e-16,
                "ln {x}"
            );
        }
        assert_eq!(sqrt(0.0), 0.0);
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut prng = base::Prng::new(1);
        let sum: f64 = (0..100_000).map(|_| exponential(&mut prng, 12.0)).sum();
        assert!(
            (sum / 100_000.0 - 12.0).abs() < 0.15,
            "mean {}",
            sum / 100_000.0
        );
    }

    #[test]
    fn binomial_interval_of_small_cases_is_exact() {
        // Ten fair coins: P(0) = P(10) = 1/1024, so 99.9 % needs 0..=10 and 99.8 % is 1..=9.
        assert_eq!(binomial_interval(10, 0.5, 0.999), (0, 10));
        assert_eq!(binomial_interval(10, 0.5, 0.998), (1, 9));
        assert_eq!(binomial_interval(0, 0.5, 0.999), (0, 0));
        assert_eq!(binomial_interval(7, 0.0, 0.999), (0, 0));
        assert_eq!(binomial_interval(7, 1.0, 0.999), (7, 7));
    }

    #[test]
    fn binomial_interval_of_large_cases_is_near_the_normal_one() {
        let (low, high) = binomial_interval(100_000, 0.01, 0.999);
        // Mean 1000, deviation 31.46, 3.29 deviations each way, skewed to the right.
        assert!((893..=900).contains(&low), "{low}");
        assert!((1103..=1110).contains(&high), "{high}");
    }

    #[test]
    fn binomial_interval_covers_what_it_promises() {
        let mut prng = base::Prng::new(7);
        let (low, high) = binomial_interval(1_000, 0.15, 0.999);
        let outside = (0..20_000)
            .filter(|_| {
                let hits = (0..1_000).filter(|_| prng.below(100) < 15).count() as u64;
                hits < low || hits > high
            })
            .count();
        assert!(
            outside <= 40,
            "{outside} of 20000 outside, 20 expected at most on average"
        );
    }

    #[test]
    fn chi_square_of_equal_counts_is_zero() {
        assert_eq!(chi_square_uniform(&[5, 5, 5]), 0.0);
        assert_eq!(chi_square_uniform(&[10, 0]), 10.0);
        assert_eq!(chi_square_uniform(&[0, 0]), 0.0);
    }

    #[test]
    fn exponential_function_and_sine_are_those_of_the_machine() {
        for step in -700..=700 {
            let x = f64::from(step);
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-12, "{x}");
            let x = x / 7.0;
            assert!((sine(x) - x.sin()).abs() < 1e-12, "{x}");
        }
    }

    #[test]
    fn exponential_function_of_large_numbers_is_nothing_or_infinite() {
        for x in [-1e300, f64::NEG_INFINITY, -1e9, -746.0] {
            assert_eq!(exp(x), 0.0, "{x}");
        }
        for x in [709.9, 1e9, 1e300, f64::INFINITY] {
            assert_eq!(exp(x), f64::INFINITY, "{x}");
        }
        for x in [-745.0, -740.0, -720.0, 709.5] {
            let error = (exp(x) - f64::exp(x)).abs();
            assert!(error <= f64::exp(x) * 1e-12 + 1e-323, "{x}");
        }
        assert!(exp(f64::NAN).is_nan());
    }
}
