//! What changes with the seconds of a run beside the rate of its arrivals: shares of transactions,
//! and how many of them the hot warehouses get. (How many compete for a row has phases of its own:
//! [`Schedule`](super::contention::Schedule).)
//!
//! ```text
//! mix:payment:step:43@0,200@20    the weight of Payment; the other kinds keep theirs
//! hot:ramp:0..0.9@60              the share of the hot warehouses of access:hot
//! ```

use super::Mix;
use crate::curve::Curve;
use crate::tpcc::Kind;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Largest weight of a kind.
pub const WEIGHT_MAX: f64 = 1_000_000.0;

/// Curves, and the second at which the run is.
#[derive(Debug, Default)]
pub struct Dynamics {
    /// Weights of kinds.
    mix: Vec<(Kind, Curve)>,
    /// The share of the transactions of the hot warehouses.
    hot: Option<Curve>,
    /// Microseconds of the measured phase that have gone by; 0 before it.
    us: AtomicU64,
}

impl Dynamics {
    /// Of these curves.
    pub fn new(mix: Vec<(Kind, Curve)>, hot: Option<Curve>) -> Dynamics {
        Dynamics {
            mix,
            hot,
            us: AtomicU64::new(0),
        }
    }

    /// Whether nothing follows a curve.
    pub fn is_still(&self) -> bool {
        self.mix.is_empty() && self.hot.is_none()
    }

    /// For the description of a run.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let mix = self.mix.iter();
        let mut all: Vec<(&'static str, String)> = mix
            .map(|(kind, curve)| ("mix_curve", format!("{}:{curve}", kind.name())))
            .collect();
        all.extend(self.hot.iter().map(|hot| ("hot_curve", hot.to_string())));
        all
    }

    /// Tells at which second of the measured phase the run is.
    pub fn set_second(&self, second: f64) {
        let us = (second.max(0.0) * 1e6) as u64;
        self.us.store(us, Ordering::Relaxed);
    }

    /// The second at which the run is, 0 before its measured phase.
    pub fn second(&self) -> f64 {
        self.us.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// The shares of the transactions now. Where a curve would leave no kind any weight, the last
    /// kind with a curve keeps its own.
    pub fn mix(&self, usual: &Mix) -> Mix {
        let second = self.second();
        let weight = |curve: &Curve| (curve.at(second).min(WEIGHT_MAX) + 0.5) as u32;
        let changed = |mix: Mix, (kind, curve): &(Kind, Curve)| mix.with(*kind, weight(curve));
        self.mix.iter().fold(*usual, changed)
    }

    /// The share of the hot warehouses now; `None`: no curve says it.
    pub fn hot_share(&self) -> Option<f64> {
        let hot = self.hot.as_ref()?;
        Some(hot.at(self.second()).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn curves_are_followed() {
        let curve = |text: &str| text.parse::<Curve>().expect("a curve");
        let mix = vec![(Kind::Payment, curve("step:43@0,200@20"))];
        let dynamics = Dynamics::new(mix, Some(curve("ramp:0..0.8@40")));
        assert!(!dynamics.is_still() && Dynamics::default().is_still());
        let seen = |second: f64| {
            dynamics.set_second(second);
            let mix = dynamics.mix(&Mix::PAPER);
            (mix, dynamics.hot_share().expect("a curve"))
        };
        assert_eq!(seen(-2.0), (Mix::PAPER, 0.0));
        let (mix, share) = seen(20.0);
        assert_eq!(
            mix.to_string(),
            "new_order:45,payment:200,order_status:4,delivery:4,stock_level:4"
        );
        assert!((share - 0.4).abs() < 1e-6);
        assert!((seen(100.0).1 - 0.8).abs() < 1e-6);
    }

    #[test]
    fn some_kind_keeps_a_weight() {
        let mix: Mix = "payment:5".parse().expect("a mix");
        let curve = "step:1@10".parse().expect("a curve");
        let dynamics = Dynamics::new(vec![(Kind::Payment, curve)], None);
        assert_eq!(dynamics.mix(&mix), mix);
    }
}
