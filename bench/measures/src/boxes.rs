//! How evenly data and operations lie on the nodes: a box plot of one value per node.
//!
//! ```text
//!       o    |------[====|========]--------|        o
//! outlier  whisker  q1 median    q3     whisker   outlier
//! ```
//!
//! Dike 4.4 (3) shows schedulability as box plots of the data's size and of the operations per
//! second on each node (its figures 23 and 24). [`BoxPlot::imbalance`] is the one number beside
//! them: how much more the fullest node has than an even share.

use alloc::vec::Vec;
use core::fmt;

/// Lengths of the box beyond which a node counts as an outlier (Tukey's).
const FENCE: f64 = 1.5;

/// The spread of one quantity over the nodes, in the quantity's own unit (bytes, operations per
/// second).
#[derive(Clone, Debug, PartialEq)]
pub struct BoxPlot {
    /// The least value.
    pub min: f64,
    /// A quarter of the nodes is below: between the two nearest values in proportion, as R and
    /// NumPy do by default (type 7 of Hyndman and Fan 1996).
    pub q1: f64,
    /// Half of the nodes is below.
    pub median: f64,
    /// Three quarters of the nodes are below.
    pub q3: f64,
    /// The largest value.
    pub max: f64,
    /// The least and the largest value that is no outlier: where the whiskers end.
    pub whiskers: (f64, f64),
    /// The nodes, by their place in the values, that lie more than 1.5 lengths of the box (`q3 -
    /// q1`) outside it; ascending. Three nodes never have one.
    pub outliers: Vec<usize>,
    /// The even share of a node.
    pub mean: f64,
    /// `max / mean`: 1 if all nodes have the same (all nothing, too), the number of nodes if one
    /// has everything.
    pub imbalance: f64,
}

/// Why values have no box plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxError {
    /// There is no value.
    Empty,
    /// The value of this node is negative or not finite.
    Value(usize),
}

impl fmt::Display for BoxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoxError::Empty => f.write_str("no node has a value"),
            BoxError::Value(node) => write!(f, "node {node} has no value of 0 or more"),
        }
    }
}

impl core::error::Error for BoxError {}

impl BoxPlot {
    /// The box plot of one value per node, each 0 or more.
    ///
    /// # Errors
    /// [`BoxError::Empty`] without a node; [`BoxError::Value`] for the first value that is negative
    /// or not finite.
    pub fn of(values: &[f64]) -> Result<BoxPlot, BoxError> {
        let bad = |value: &f64| !(value.is_finite() && *value >= 0.0);
        if let Some(node) = values.iter().position(bad) {
            return Err(BoxError::Value(node));
        }
        let mut ascending = values.to_vec();
        ascending.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (ascending.first(), ascending.last()) else {
            return Err(BoxError::Empty);
        };
        let [q1, median, q3] = [1, 2, 3].map(|quarter| quartile(&ascending, quarter));
        let (low, high) = (q1 - FENCE * (q3 - q1), q3 + FENCE * (q3 - q1));
        let within = |value: &f64| (low..=high).contains(value);
        // The box itself is within, so there is a value on each side.
        let least = ascending.iter().copied().find(within).unwrap_or(min);
        let largest = ascending.iter().copied().rfind(within).unwrap_or(max);
        let mean = ascending.iter().sum::<f64>() / ascending.len() as f64;
        Ok(BoxPlot {
            min,
            q1,
            median,
            q3,
            max,
            whiskers: (least, largest),
            outliers: (0..values.len())
                .filter(|node| !within(&values[*node]))
                .collect(),
            mean,
            imbalance: if max > 0.0 { max / mean } else { 1.0 },
        })
    }
}

/// The value that this number of quarters of at least one ascending value is below.
fn quartile(ascending: &[f64], quarter: usize) -> f64 {
    let place = (ascending.len() - 1) * quarter;
    let (below, rest) = (place / 4, (place % 4) as f64 / 4.0);
    let above = (below + 1).min(ascending.len() - 1);
    ascending[below] + rest * (ascending[above] - ascending[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> BoxPlot {
        BoxPlot::of(values).expect("values of nodes")
    }

    fn five(plot: &BoxPlot) -> [f64; 5] {
        [plot.min, plot.q1, plot.median, plot.q3, plot.max]
    }

    #[test]
    fn five_numbers_are_those_of_r() {
        // quantile(x) of R, which is numpy.percentile too.
        for (values, numbers) in [
            (&[7.0][..], [7.0; 5]),
            (&[4.0, 1.0], [1.0, 1.75, 2.5, 3.25, 4.0]),
            (&[3.0, 1.0, 2.0], [1.0, 1.5, 2.0, 2.5, 3.0]),
            (&[4.0, 3.0, 2.0, 1.0], [1.0, 1.75, 2.5, 3.25, 4.0]),
            (
                &[9.0, 1.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0],
                [1.0, 3.0, 5.0, 7.0, 9.0],
            ),
        ] {
            assert_eq!(five(&of(values)), numbers, "{values:?}");
        }
    }

    #[test]
    fn one_node_far_outside_the_box_is_an_outlier() {
        // The box is 3 to 7, so the fences are at -3 and 13.
        let values = [1.0, 3.0, 40.0, 2.0, 3.0, 5.0, 7.0, 7.0, 13.0];
        let plot = of(&values);
        assert_eq!(five(&plot), [1.0, 3.0, 5.0, 7.0, 40.0]);
        assert_eq!(
            (plot.outliers, plot.whiskers),
            (Vec::from([2]), (1.0, 13.0))
        );
        // On the fence is inside, both ways.
        let plot = of(&[0.0, 20.0, 20.0, 22.0, 24.0, 24.0, 30.0]);
        assert_eq!((plot.q1, plot.q3), (20.0, 24.0));
        assert_eq!(
            (plot.outliers, plot.whiskers),
            (Vec::from([0]), (20.0, 30.0))
        );
    }

    #[test]
    fn imbalance_goes_from_one_to_the_number_of_nodes() {
        let even = of(&[5.0; 9]);
        assert_eq!((even.imbalance, even.mean), (1.0, 5.0));
        assert!(even.outliers.is_empty());
        assert_eq!(of(&[0.0, 0.0, 0.0, 8.0]).imbalance, 4.0);
        assert_eq!(of(&[1.0, 2.0, 3.0, 6.0]).imbalance, 2.0);
        assert_eq!(of(&[0.0; 3]).imbalance, 1.0);
    }

    #[test]
    fn what_has_no_box_is_refused() {
        assert_eq!(BoxPlot::of(&[]), Err(BoxError::Empty));
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(BoxPlot::of(&[1.0, bad]), Err(BoxError::Value(1)));
        }
    }
}
