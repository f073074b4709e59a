//! How throughput grows with the cluster: the universal scalability law, and Dike's equation 3.
//!
//! ```text
//! X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))
//!
//! lambda  rate of one node
//! sigma   contention: share of the work that waits in line
//! kappa   coherency: price of each pair of nodes that must agree
//! ```
//!
//! Gunther, "Guerrilla Capacity Planning" (2007). With `sigma = kappa = 0` growth is linear; with
//! `kappa > 0` the rate has a peak, behind which nodes cost throughput.
//!
//! **Fit.** Least squares of `ln X`: throughput scatters by a share of itself, so every size counts
//! alike. `N / X` is linear in `1/lambda`, `sigma/lambda`, `kappa/lambda`, which gives the start;
//! Gauss-Newton steps, halved until they help, do the rest. `sigma` and `kappa` are not below 0: if
//! the free minimum is, the best of the three fits with one or both at 0 is taken. Deterministic.
//!
//! **Intervals** (95 %) come from the linearised covariance of the *free* fit, in which `sigma` and
//! `kappa` may be negative, with Student's t of `points - 3` degrees of freedom; `lambda`'s and a
//! prediction's are on the logarithm. They are cut off at 0 and always hold the estimate. A
//! parameter that the law puts at 0 keeps an upper end that far above 0. Four points leave one
//! degree of freedom, and intervals so wide that they say little: measure each size several times.
//!
//! What it is not: a proof that the law holds. [`Law::scatter`] far above the noise of repeated
//! runs says that it does not, and so does a rate per node that rises with the cluster.

use alloc::vec::Vec;
use core::{array, fmt};
use workload::stats::{exp, ln, sqrt};

/// Dike's scalability from a cluster to one of more nodes, at most 1:
/// `1 - |X2/N2 - X1/N1| / (X2/N2)` (Dike 4.4, equation 3). None if the first has no node, if the
/// second has not more, or if a rate is not finite and above 0.
///
/// What is wrong with it: the absolute value punishes growth beyond linear like a loss. It divides
/// by the larger cluster's rate per node, so it is negative below half of the smaller's, without
/// bound. It compares two sizes, and says nothing of noise. [`fit`] uses all sizes.
pub fn scalability(smaller: Point, larger: Point) -> Option<f64> {
    let each = |point: Point| point.rate / f64::from(point.nodes);
    let valid = |rate: f64| rate.is_finite() && rate > 0.0;
    let ordered = 0 < smaller.nodes && smaller.nodes < larger.nodes;
    let defined = ordered && valid(smaller.rate) && valid(larger.rate);
    defined.then(|| 1.0 - (each(larger) - each(smaller)).abs() / each(larger))
}

/// One measurement. A size may have several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Nodes of the cluster, 1 or more.
    pub nodes: u32,
    /// Transactions per second, a normal number above 0.
    pub rate: f64,
}

/// Fewest points, and fewest different sizes among them, that the law is fitted to.
pub const POINTS_MIN: usize = 4;

/// Why the law is not fitted. Other measurements are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LawError {
    /// This number of points; [`POINTS_MIN`] are needed.
    FewPoints(usize),
    /// This number of different sizes; [`POINTS_MIN`] are needed.
    FewSizes(usize),
    /// This point has no node, or no rate above 0.
    Point(usize),
    /// The points do not determine the law: they scatter so much that the rate of one node may be
    /// anything, or numbers are beyond the range of a double.
    NoFit,
}

impl fmt::Display for LawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LawError::FewPoints(points) => {
                write!(
                    f,
                    "{points} measurements, the scalability law needs {POINTS_MIN}"
                )
            }
            LawError::FewSizes(sizes) => {
                write!(
                    f,
                    "{sizes} cluster sizes, the scalability law needs {POINTS_MIN}"
                )
            }
            LawError::Point(at) => write!(f, "measurement {at} has no node or no rate above 0"),
            LawError::NoFit => {
                f.write_str("the measurements scatter too much for a scalability law")
            }
        }
    }
}

impl core::error::Error for LawError {}

/// A number with its 95 % interval: `low <= value <= high`; `high` is infinite where the points say
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The universal scalability law of a system, fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// Transactions per second of one node, above 0.
    pub lambda: Estimate,
    /// Contention, 0 or more: the share of a node's work that cannot overlap with another's.
    pub sigma: Estimate,
    /// Coherency, 0 or more: what each pair of nodes costs, as a share of a node's work.
    pub kappa: Estimate,
    /// Standard deviation of the points around the law as a share of the rate (of `ln X`).
    pub scatter: f64,
    /// Points that were fitted.
    pub points: usize,
    /// Covariance of `ln lambda`, `sigma` and `kappa` in the free fit.
    covariance: Matrix,
}

/// Fits the law to at least [`POINTS_MIN`] points of as many sizes, as the module says.
///
/// # Errors
/// Every [`LawError`].
pub fn fit(points: &[Point]) -> Result<Law, LawError> {
    if points.len() < POINTS_MIN {
        return Err(LawError::FewPoints(points.len()));
    }
    let bad = |p: &Point| p.nodes == 0 || !p.rate.is_normal() || p.rate < 0.0;
    if let Some(at) = points.iter().position(bad) {
        return Err(LawError::Point(at));
    }
    let mut sizes: Vec<u32> = points.iter().map(|p| p.nodes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < POINTS_MIN {
        return Err(LawError::FewSizes(sizes.len()));
    }
    let free = descend(points, [true; 2]).ok_or(LawError::NoFit)?;
    let is_lawful = |fit: &Params| fit.sigma >= 0.0 && fit.kappa >= 0.0;
    let best = if is_lawful(&free) {
        free
    } else {
        let kept = [[true, false], [false, true], [false, false]];
        let edges = kept.into_iter().filter_map(|kept| descend(points, kept));
        let lawful = edges.filter(is_lawful);
        lawful
            .min_by(|a, b| a.loss(points).total_cmp(&b.loss(points)))
            .ok_or(LawError::NoFit)?
    };
    Law::between(points, best, free).ok_or(LawError::NoFit)
}

impl Law {
    /// The law of the best parameters, with intervals from the free fit's. None if a number is
    /// beyond the range of a double.
    fn between(points: &[Point], best: Params, free: Params) -> Option<Law> {
        let freedom = points.len() - 3;
        let variance = free.loss(points) / freedom as f64;
        let inverse = invert(&free.normal(points, [true; 2]).0)?;
        let covariance = inverse.map(|row| row.map(|cell| cell * variance));
        let reach = |at: usize| student(freedom) * sqrt(covariance[at][at].max(0.0));
        let bounded = |value: f64, free: f64, reach: f64| Estimate {
            value,
            low: (free - reach).max(0.0).min(value),
            high: (free.max(0.0) + reach).max(value),
        };
        let (lambda, middle, factor) = (exp(best.log_lambda), exp(free.log_lambda), exp(reach(0)));
        let law = Law {
            lambda: Estimate {
                value: lambda,
                low: lambda.min(middle / factor),
                high: lambda.max(middle * factor),
            },
            sigma: bounded(best.sigma, free.sigma, reach(1)),
            kappa: bounded(best.kappa, free.kappa, reach(2)),
            scatter: sqrt(best.loss(points) / freedom as f64),
            points: points.len(),
            covariance,
        };
        let finite = covariance.iter().flatten().all(|cell| cell.is_finite());
        let usable = finite && lambda.is_normal() && best.sigma.is_finite();
        (usable && best.kappa.is_finite()).then_some(law)
    }

    /// The rate that this many nodes (1 or more) are to have on average, transactions per second.
    ///
    /// The interval is that of the law, not of one run, which scatters around it by
    /// [`Law::scatter`]. Far outside the measured sizes it holds only if the law does.
    pub fn predict(&self, nodes: u32) -> Estimate {
        let params = Params {
            log_lambda: ln(self.lambda.value),
            sigma: self.sigma.value,
            kappa: self.kappa.value,
        };
        let others = f64::from(nodes.max(1)) - 1.0;
        let divisor = params.divisor(others);
        let slope = slope(others, divisor);
        let mut variance = 0.0;
        for (row, a) in self.covariance.iter().zip(slope) {
            for (cell, b) in row.iter().zip(slope) {
                variance += a * b * cell;
            }
        }
        let reach = exp(student(self.points - 3) * sqrt(variance.max(0.0)));
        let value = self.lambda.value * (others + 1.0) / divisor;
        Estimate {
            value,
            low: value / reach,
            high: value * reach,
        }
    }

    /// The number of nodes, 1 or more, at which the rate is highest: `sqrt((1 - sigma) / kappa)`.
    /// None if `kappa` is 0: the rate never falls. 1 if `sigma` is 1 or more.
    pub fn peak_nodes(&self) -> Option<f64> {
        let (sigma, kappa) = (self.sigma.value, self.kappa.value);
        (kappa > 0.0).then(|| sqrt(((1.0 - sigma) / kappa).max(1.0)))
    }
}

type Matrix = [[f64; 3]; 3];

/// Parameters, with any signs.
#[derive(Clone, Copy)]
struct Params {
    log_lambda: f64,
    sigma: f64,
    kappa: f64,
}

/// Derivatives of `ln X` by `ln lambda`, `sigma` and `kappa`, at one node and `others`.
fn slope(others: f64, divisor: f64) -> [f64; 3] {
    [1.0, -others / divisor, -others * (others + 1.0) / divisor]
}

impl Params {
    fn divisor(&self, others: f64) -> f64 {
        1.0 + self.sigma * others + self.kappa * others * (others + 1.0)
    }

    /// By how much the logarithm of this rate is above the law: infinite where the law has no rate.
    fn residual(&self, point: &Point) -> f64 {
        let nodes = f64::from(point.nodes);
        let divisor = self.divisor(nodes - 1.0);
        match divisor.is_normal() && divisor > 0.0 {
            true => ln(point.rate) - self.log_lambda - ln(nodes) + ln(divisor),
            false => f64::INFINITY,
        }
    }

    /// The sum of the squared residuals.
    fn loss(&self, points: &[Point]) -> f64 {
        let square = |residual: f64| residual * residual;
        points.iter().map(|p| square(self.residual(p))).sum()
    }

    /// The normal equations of one Gauss-Newton step. A parameter that is not kept stays.
    fn normal(&self, points: &[Point], kept: [bool; 2]) -> (Matrix, [f64; 3]) {
        let kept = [true, kept[0], kept[1]];
        let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
        for point in points {
            let others = f64::from(point.nodes) - 1.0;
            let slope = slope(others, self.divisor(others));
            let residual = self.residual(point);
            for row in (0..3).filter(|row| kept[*row]) {
                right[row] += slope[row] * residual;
                for column in (0..3).filter(|column| kept[*column]) {
                    matrix[row][column] += slope[row] * slope[column];
                }
            }
        }
        leave_out(&mut matrix, kept);
        (matrix, right)
    }
}

/// The best parameters; those of `sigma` and `kappa` that are not kept are 0. None if the points do
/// not determine them.
fn descend(points: &[Point], kept: [bool; 2]) -> Option<Params> {
    let mut at = linear(points, kept);
    let mut loss = at.loss(points);
    for _ in 0..ROUNDS_MAX {
        let (matrix, right) = at.normal(points, kept);
        let step = product(&invert(&matrix)?, &right);
        let shorter = |halvings: i32| {
            let share = 1.0 / f64::from(1 << halvings);
            let next = Params {
                log_lambda: at.log_lambda + share * step[0],
                sigma: at.sigma + share * step[1],
                kappa: at.kappa + share * step[2],
            };
            let less = next.loss(points);
            (less < loss).then_some((next, less))
        };
        // Without a better step near by, this is the minimum.
        let Some((next, less)) = (0..30).find_map(shorter) else {
            return loss.is_finite().then_some(at);
        };
        let gain = loss - less;
        (at, loss) = (next, less);
        if gain <= loss * 1e-12 {
            return Some(at);
        }
    }
    None
}

/// Most Gauss-Newton steps. Five are enough at 5 % of noise; the minimum of points that take more
/// than this is at infinity, as a rule.
const ROUNDS_MAX: usize = 100;

/// Takes the parameters that are not kept out of normal equations: their step is 0.
fn leave_out(matrix: &mut Matrix, kept: [bool; 3]) {
    for (at, row) in matrix.iter_mut().enumerate() {
        if !kept[at] {
            row[at] = 1.0;
        }
    }
}

fn product(matrix: &Matrix, vector: &[f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

/// The minimum for relative errors of `N / X`, which is linear; a start for [`descend`].
fn linear(points: &[Point], kept: [bool; 2]) -> Params {
    let kept = [true, kept[0], kept[1]];
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    let mut mean_log = 0.0;
    // In units of a typical rate per node, so that squares stay in range.
    for point in points {
        mean_log += (ln(point.rate) - ln(f64::from(point.nodes))) / points.len() as f64;
    }
    for point in points {
        let nodes = f64::from(point.nodes);
        let each = exp(ln(point.rate) - ln(nodes) - mean_log);
        let column = [each, each * (nodes - 1.0), each * nodes * (nodes - 1.0)];
        for row in (0..3).filter(|row| kept[*row]) {
            right[row] += column[row];
            for other in (0..3).filter(|other| kept[*other]) {
                matrix[row][other] += column[row] * column[other];
            }
        }
    }
    leave_out(&mut matrix, kept);
    let plain = Params {
        log_lambda: mean_log,
        sigma: 0.0,
        kappa: 0.0,
    };
    let solve = || {
        let [a, b, c] = product(&invert(&matrix)?, &right);
        let a = Some(a).filter(|a| a.is_normal() && *a > 0.0)?;
        let params = Params {
            log_lambda: mean_log - ln(a),
            sigma: b / a,
            kappa: c / a,
        };
        params.loss(points).is_finite().then_some(params)
    };
    solve().unwrap_or(plain)
}

/// The inverse of a symmetric positive matrix; None if it has none by the precision of a double.
fn invert(matrix: &Matrix) -> Option<Matrix> {
    // The unit of each parameter is scaled away, then Gauss and Jordan.
    let scale: [f64; 3] = array::from_fn(|at| matrix[at][at]);
    if scale
        .iter()
        .any(|square| !square.is_normal() || *square < 0.0)
    {
        return None;
    }
    let scale = scale.map(sqrt);
    let mut rows: [[f64; 6]; 3] = array::from_fn(|row| {
        array::from_fn(|column| match column {
            0..3 => matrix[row][column] / (scale[row] * scale[column]),
            _ => f64::from(u8::from(column == row + 3)),
        })
    });
    for pivot in 0..3 {
        let value = rows[pivot][pivot];
        if value.is_nan() || value < PIVOT_MIN {
            return None;
        }
        let line = rows[pivot].map(|cell| cell / value);
        for (at, row) in rows.iter_mut().enumerate() {
            let share = row[pivot];
            *row = match at == pivot {
                true => line,
                false => array::from_fn(|column| row[column] - share * line[column]),
            };
        }
    }
    Some(array::from_fn(|row| {
        array::from_fn(|column| rows[row][column + 3] / (scale[row] * scale[column]))
    }))
}

/// Below this, what is left of a parameter beside the others is rounding. Its square root bounds
/// how near 1 the correlation of two parameters may come.
const PIVOT_MIN: f64 = 1e-12;

/// Student's t that 95 % of the values stay within, for 1 and more degrees of freedom; exact to
/// three decimals. From ten degrees on it is Fisher's expansion around the normal quantile.
fn student(freedom: usize) -> f64 {
    const FEW: [f64; 9] = [
        12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622,
    ];
    if let Some(t) = freedom.checked_sub(1).and_then(|at| FEW.get(at)) {
        return *t;
    }
    let (z, v) = (1.959_964, freedom as f64);
    let square = z * z;
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    z + first / v + second / (v * v) + third / (v * v * v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    const ODD: &[u32] = &[3, 5, 7, 9, 11, 13, 15];
    const DOUBLED: &[u32] = &[1, 2, 4, 8, 16];
    const REPEATED: &[u32] = &[1, 1, 1, 3, 3, 3, 9, 9, 9, 15, 15, 15];

    /// `lambda`, `sigma`, `kappa`.
    const PLANTED: [[f64; 3]; 6] = [
        [1_000.0, 0.05, 0.002],
        [250.0, 0.3, 0.01],
        [50_000.0, 0.02, 0.0005],
        [1_000.0, 0.1, 0.0],
        [1_000.0, 0.0, 0.005],
        [1_000.0, 0.0, 0.0],
    ];

    fn rate([lambda, sigma, kappa]: [f64; 3], nodes: u32) -> f64 {
        let n = f64::from(nodes);
        lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }

    fn normal(prng: &mut Prng) -> f64 {
        let radius = sqrt(-2.0 * ln(1.0 - prng.unit()));
        radius * (core::f64::consts::TAU * prng.unit()).cos()
    }

    fn measured(law: [f64; 3], sizes: &[u32], noise: f64, seed: u64) -> Vec<Point> {
        let mut prng = Prng::new(seed * 13 + 5);
        let mut point = |nodes: u32| Point {
            nodes,
            rate: rate(law, nodes) * (1.0 + noise * normal(&mut prng)),
        };
        sizes.iter().map(|nodes| point(*nodes)).collect()
    }

    fn holds(estimate: Estimate, truth: f64) -> bool {
        assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        estimate.low <= truth && truth <= estimate.high
    }

    #[test]
    fn intervals_hold_planted_parameters_as_often_as_they_say() {
        for planted in PLANTED {
            for (sizes, noise) in [(ODD, 0.02), (ODD, 0.05), (DOUBLED, 0.03), (REPEATED, 0.05)] {
                let mut held = [0; 5];
                for seed in 0..200 {
                    let law = fit(&measured(planted, sizes, noise, seed)).expect("a law");
                    for (held, fine) in held.iter_mut().zip([
                        holds(law.lambda, planted[0]),
                        holds(law.sigma, planted[1]),
                        holds(law.kappa, planted[2]),
                        holds(law.predict(10), rate(planted, 10)),
                        holds(law.predict(24), rate(planted, 24)),
                    ]) {
                        *held += usize::from(fine);
                    }
                }
                let case = alloc::format!("{held:?} of {planted:?} at {sizes:?}, {noise}");
                assert!(held.iter().all(|held| *held >= 180), "{case}");
                // Intervals that always hold say nothing: lambda has no bound near by.
                assert!(held[0] <= 198, "{case}");
            }
        }
    }

    #[test]
    fn parameters_without_noise_are_exact() {
        for planted in PLANTED {
            let law = fit(&measured(planted, ODD, 0.0, 0)).expect("a law");
            for (got, planted) in [law.lambda, law.sigma, law.kappa].iter().zip(planted) {
                assert!(
                    (got.value - planted).abs() <= 1e-7 * planted.max(1.0),
                    "{law:?}"
                );
            }
            let far = law.predict(40).value / rate(planted, 40);
            assert!((far - 1.0).abs() < 1e-6 && law.scatter < 1e-7, "{law:?}");
        }
    }

    #[test]
    fn no_lawful_parameters_near_by_fit_better() {
        let loss = |params: [f64; 3], points: &[Point]| -> f64 {
            let off = |p: &Point| (p.rate / rate(params, p.nodes)).ln().powi(2);
            points.iter().map(off).sum()
        };
        let mut at_bound = 0;
        for seed in 0..100 {
            let mut prng = Prng::new(seed);
            let planted = PLANTED[prng.below(6) as usize];
            let points = measured(planted, ODD, 0.05, seed);
            let law = fit(&points).expect("a law");
            let best = [law.lambda.value, law.sigma.value, law.kappa.value];
            at_bound += usize::from(best[1] == 0.0 || best[2] == 0.0);
            for _ in 0..100 {
                let near = exp(-9.0 * prng.unit());
                let mut other = best.map(|value| value * (1.0 + 0.02 * near * normal(&mut prng)));
                other[1] = (other[1] + 0.002 * near * normal(&mut prng)).max(0.0);
                other[2] = (other[2] + 0.0002 * near * normal(&mut prng)).max(0.0);
                let (less, least) = (loss(other, &points), loss(best, &points));
                assert!(
                    less >= least * (1.0 - 1e-9),
                    "{other:?} instead of {best:?}"
                );
            }
        }
        assert!(at_bound > 20, "{at_bound} of 100 at a bound");
    }

    #[test]
    fn the_peak_is_where_the_rate_is_highest() {
        let law = |planted| fit(&measured(planted, ODD, 0.0, 0)).expect("a law");
        let fitted = law([1_000.0, 0.02, 0.005]);
        let peak = fitted.peak_nodes().expect("a peak");
        assert!((peak - 14.0).abs() < 1e-3, "{peak}");
        let at = |nodes| fitted.predict(nodes).value;
        assert!(at(14) > at(13) && at(14) > at(15));
        let mut falling = law([1_000.0, 0.1, 0.01]);
        falling.sigma.value = 1.5;
        assert_eq!(falling.peak_nodes(), Some(1.0));
        falling.kappa.value = 0.0;
        assert_eq!(falling.peak_nodes(), None);
    }

    #[test]
    fn growth_beyond_linear_is_fitted_by_a_line_and_scatters() {
        let point = |nodes| Point {
            nodes,
            rate: 100.0 * f64::from(nodes * nodes),
        };
        let law = fit(&ODD.iter().map(|n| point(*n)).collect::<Vec<_>>()).expect("a law");
        assert_eq!((law.sigma.value, law.kappa.value), (0.0, 0.0));
        assert!(law.scatter > 0.5 && law.peak_nodes().is_none(), "{law:?}");
    }

    #[test]
    fn too_little_to_fit_is_refused() {
        let fine = measured(PLANTED[0], ODD, 0.0, 0);
        assert!(fit(&fine[..4]).is_ok());
        assert_eq!(fit(&fine[..3]), Err(LawError::FewPoints(3)));
        let again = [&fine[..3], &fine[..3]].concat();
        assert_eq!(fit(&again), Err(LawError::FewSizes(3)));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
            let mut points = fine.clone();
            points[5].rate = bad;
            assert_eq!(fit(&points), Err(LawError::Point(5)), "{bad}");
        }
        let mut points = fine.clone();
        points[2].nodes = 0;
        assert_eq!(fit(&points), Err(LawError::Point(2)));
    }

    #[test]
    fn whatever_is_measured_is_fitted_or_refused() {
        let mut fitted = 0;
        for seed in 0..500 {
            let mut prng = Prng::new(seed);
            let size = 1 << (2 + prng.below(30));
            let span = 1.0 + 600.0 * prng.unit() * prng.unit();
            let points: Vec<Point> = (0..4 + prng.below(5))
                .map(|_| Point {
                    nodes: 1 + prng.below(size) as u32,
                    rate: exp(span * (prng.unit() - 0.5)),
                })
                .collect();
            if let Ok(law) = fit(&points) {
                fitted += 1;
                for estimate in [law.lambda, law.sigma, law.kappa, law.predict(u32::MAX)] {
                    assert!(
                        estimate.value.is_finite() && estimate.value >= 0.0,
                        "{law:?}"
                    );
                    assert!(holds(estimate, estimate.value), "{law:?}");
                }
            }
        }
        assert!((100..500).contains(&fitted), "{fitted} of 500 fitted");
    }

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (freedom, t) in [
            (1, 12.706),
            (4, 2.776),
            (9, 2.262),
            (10, 2.228),
            (30, 2.042),
        ] {
            assert!((student(freedom) - t).abs() < 1e-3, "{freedom}");
        }
        assert!((student(100_000) - 1.96).abs() < 1e-4);
    }

    #[test]
    fn the_papers_scalability_is_that_of_the_paper() {
        let point = |nodes, rate| Point { nodes, rate };
        let of = |larger| scalability(point(3, 3_000.0), larger);
        assert_eq!(of(point(6, 6_000.0)), Some(1.0));
        assert_eq!(of(point(6, 4_800.0)), Some(0.75));
        // Twice the rate per node is punished, a quarter of it is negative.
        assert_eq!(of(point(6, 12_000.0)), Some(0.5));
        assert_eq!(of(point(6, 1_500.0)), Some(-2.0));
        for undefined in [
            point(3, 1.0),
            point(2, 1.0),
            point(6, 0.0),
            point(6, f64::NAN),
        ] {
            assert_eq!(of(undefined), None);
        }
        assert_eq!(scalability(point(0, 1.0), point(2, 1.0)), None);
    }
}
