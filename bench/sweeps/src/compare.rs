//! Which of two is faster, and by how much: from rounds of four runs each, A B B A.
//!
//! A machine that warms up or a database that grows changes all rates in the course of an hour. In
//! a round A B B A a steady change concerns both alike. Each round gives one ratio; their mean on
//! the logarithmic scale is the result, and how they differ tells how far it can be trusted.

/// Rates of one round, in the order in which they were measured: A, B, B, A.
pub type Round = [f64; 4];

/// What rounds say about B against A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The rate of B as a multiple of A's.
    pub ratio: f64,
    /// The ends of the interval that holds the true ratio in 95 of 100 cases.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// The smallest effect that these rounds could have seen, as a share: a true ratio that is
    /// closer to 1 would mostly not have been told apart from 1.
    pub smallest: f64,
    /// Rounds.
    pub rounds: usize,
}

impl Comparison {
    /// Whether the two differ, as far as the rounds tell.
    pub fn differs(&self) -> bool {
        !(self.low..=self.high).contains(&1.0)
    }
}

/// Two-sided 95 % quantiles of Student's distribution, by degrees of freedom from 1.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The quantile of so many degrees of freedom.
fn student(freedom: usize) -> f64 {
    match STUDENT.get(freedom - 1) {
        Some(quantile) => *quantile,
        // Within a thousandth of the true one from there on.
        None => 1.96 + 2.5 / freedom as f64,
    }
}

/// Compares; `None`: fewer than two rounds, or a run without a rate.
pub fn compare(rounds: &[Round]) -> Option<Comparison> {
    let count = rounds.len();
    if count < 2 || !rounds.iter().flatten().all(|rate| *rate > 0.0) {
        return None;
    }
    let log_ratio = |[a, b, c, d]: &Round| (b.ln() + c.ln() - a.ln() - d.ln()) / 2.0;
    let ratios: Vec<f64> = rounds.iter().map(log_ratio).collect();
    let mean = ratios.iter().sum::<f64>() / count as f64;
    let square = |ratio: &f64| (ratio - mean).powi(2);
    let variance = ratios.iter().map(square).sum::<f64>() / (count - 1) as f64;
    let half = student(count - 1) * (variance / count as f64).sqrt();
    Some(Comparison {
        ratio: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        smallest: half.exp() - 1.0,
        rounds: count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    /// About normal: the sum of twelve.
    fn noise(prng: &mut Prng, percent: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| prng.below(1_000_000) as f64 / 1e6).sum();
        (sum - 6.0) * percent / 100.0
    }

    /// Rounds of two that differ by `ratio`, on a machine that gets slower all the time.
    fn rounds(prng: &mut Prng, ratio: f64) -> Vec<Round> {
        let mut at = 0.0;
        let mut rate = |prng: &mut Prng, of: f64| {
            at += 1.0;
            1_000.0 * of * (1.0 - 0.01 * at) * (1.0 + noise(prng, 3.0))
        };
        let mut round = || [1.0, ratio, ratio, 1.0].map(|of| rate(prng, of));
        (0..6).map(|_| round()).collect()
    }

    #[test]
    fn the_interval_holds_the_true_ratio_in_most_repeats() {
        let mut prng = Prng::new(1);
        for (ratio, seen_at_least) in [(1.0, 0), (1.02, 0), (1.2, 95)] {
            let (mut held, mut seen) = (0, 0);
            for _ in 0..100 {
                let found = compare(&rounds(&mut prng, ratio)).unwrap();
                held += u32::from((found.low..=found.high).contains(&ratio));
                seen += u32::from(found.differs());
                let half = (found.high / found.low).sqrt() - 1.0;
                assert!((found.smallest - half).abs() < 1e-9);
            }
            assert!(held >= 93, "{ratio}: {held} of 100");
            assert!(seen >= seen_at_least, "{ratio}: {seen} of 100");
            // Of two that are equal, few are told apart.
            assert!(ratio != 1.0 || seen <= 7, "{seen} of 100");
        }
    }

    #[test]
    fn a_steady_change_is_no_difference() {
        let rounds: Vec<Round> = (0..4)
            .map(|round| {
                let rate = |at: i32| 1_000.0 * 1.01f64.powi(4 * round + at);
                [rate(0), rate(1), rate(2), rate(3)]
            })
            .collect();
        let found = compare(&rounds).unwrap();
        assert!(
            (found.ratio - 1.0).abs() < 1e-12 && !found.differs(),
            "{found:?}"
        );
        assert!(found.smallest < 1e-9);
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(compare(&[[1.0; 4]]), None);
        assert_eq!(compare(&[[1.0; 4], [1.0, 0.0, 1.0, 1.0]]), None);
        assert!((student(31) - 2.0395).abs() < 2e-3);
        assert_eq!(student(1), 12.706);
    }
}
