//! How many districts each warehouse has: ten, or by Zipf (Dike, section 4.3.1).

use super::Scale;
use crate::stats::{exp, ln};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// Districts of each warehouse where the data are not skewed (clause 1.2.1), and those that one
/// Delivery serves at most.
pub const DISTRICTS: u32 = 10;

/// An exponent of Zipf's distribution in thousandths, by which districts are dealt among
/// warehouses; 0 deals them evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew(u32);

/// Why a text is no exponent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkewError(String);

impl fmt::Display for SkewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SkewError {}

impl Skew {
    /// Ten districts in each warehouse.
    pub const NONE: Skew = Skew(0);

    /// Of so many thousandths, at most 10,000.
    pub fn of_thousandths(thousandths: u32) -> Option<Skew> {
        (thousandths <= 10_000).then_some(Skew(thousandths))
    }

    /// The exponent in thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// The exponent.
    pub fn exponent(self) -> f64 {
        f64::from(self.0) / 1_000.0
    }
}

/// `1.5`: 0 to 10, at most three decimals.
impl FromStr for Skew {
    type Err = SkewError;

    fn from_str(text: &str) -> Result<Skew, SkewError> {
        let refused = || {
            SkewError(format!(
                "{text:?} is no exponent: 0 to 10 with at most three decimals"
            ))
        };
        let exponent: f64 = text.parse().map_err(|_| refused())?;
        if !(0.0..=10.0).contains(&exponent) {
            return Err(refused());
        }
        let skew = Skew((exponent * 1_000.0 + 0.5) as u32);
        let is_exact = (skew.exponent() - exponent).abs() < 1e-9;
        is_exact.then_some(skew).ok_or_else(refused)
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.exponent().to_string())
    }
}

/// The part of rank `rank` (from 1) before it is divided by the sum of all parts.
pub fn zipf_weight(rank: u32, exponent: f64) -> f64 {
    exp(-exponent * ln(f64::from(rank)))
}

/// The districts of each warehouse.
#[derive(Clone, Debug)]
pub enum Districts {
    /// Ten.
    Even,
    /// By warehouse, the first one first.
    Each(Arc<[u32]>),
}

impl Districts {
    /// Of a database of this size. There are about ten times as many districts as warehouses: of
    /// rank k, `10 W k^-s / sum(n^-s)`, rounded, and at least one.
    pub fn of(scale: &Scale) -> Districts {
        if scale.skew == Skew::NONE {
            return Districts::Even;
        }
        let exponent = scale.skew.exponent();
        let weights: Vec<f64> = (1..=scale.warehouses)
            .map(|rank| zipf_weight(rank, exponent))
            .collect();
        let all = f64::from(DISTRICTS) * f64::from(scale.warehouses);
        let each = all / weights.iter().sum::<f64>();
        let count = |weight: &f64| ((weight * each + 0.5) as u32).max(1);
        Districts::Each(weights.iter().map(count).collect())
    }

    /// Of this warehouse, 1 or more.
    pub fn in_warehouse(&self, warehouse: u32) -> u32 {
        match self {
            Districts::Even => DISTRICTS,
            Districts::Each(counts) => counts
                .get((warehouse as usize).wrapping_sub(1))
                .copied()
                .unwrap_or(0),
        }
    }

    /// Of all warehouses.
    pub fn sum(&self, warehouses: u32) -> u64 {
        match self {
            Districts::Even => u64::from(DISTRICTS) * u64::from(warehouses),
            Districts::Each(counts) => counts.iter().copied().map(u64::from).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skewed(warehouses: u32, exponent: &str) -> Districts {
        Districts::of(&Scale {
            skew: exponent.parse().expect("an exponent"),
            ..Scale::standard(warehouses)
        })
    }

    /// By hand: 40 / (1 + 2^-1.5 + 3^-1.5 + 4^-1.5) = 23.92, of which the ranks get 1, 0.354,
    /// 0.192 and 0.125.
    #[test]
    fn the_first_warehouse_has_most_districts() {
        let districts = skewed(4, "1.5");
        let counts: Vec<u32> = (1..=4).map(|w| districts.in_warehouse(w)).collect();
        assert_eq!(counts, [24, 8, 5, 3]);
        assert_eq!(districts.sum(4), 40);
    }

    #[test]
    fn every_warehouse_has_a_district() {
        for exponent in ["0.5", "0.99", "1.5", "3"] {
            let districts = skewed(100, exponent);
            let counts: Vec<u32> = (1..=100).map(|w| districts.in_warehouse(w)).collect();
            assert!(counts.iter().all(|count| *count >= 1), "{exponent}");
            assert!(counts.is_sorted_by(|a, b| a >= b), "{exponent}");
            assert!(counts[0] > counts[99], "{exponent}");
        }
        assert!(matches!(skewed(3, "0"), Districts::Even));
    }

    #[test]
    fn exponents_that_cannot_be_kept_are_refused() {
        for bad in ["", "x", "-1", "11", "NaN", "0.1234"] {
            assert!(bad.parse::<Skew>().is_err(), "{bad}");
        }
        let skew: Skew = "1.125".parse().expect("an exponent");
        assert_eq!(
            (skew.thousandths(), skew.to_string().as_str()),
            (1_125, "1.125")
        );
    }
}
