//! When a transaction is run again, and how long to wait before.

use base::Prng;
use core::future::Future;

/// Time and sleep, which come from who runs the clients.
pub trait Pace {
    /// Microseconds since some time that does not change.
    fn now_us(&self) -> u64;

    /// Returns after this many microseconds.
    fn sleep_us(&mut self, length_us: u64) -> impl Future<Output = ()>;
}

/// A pace without waiting: sleeping only moves its clock. For tests and single steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWait {
    now_us: u64,
}

impl Pace for NoWait {
    fn now_us(&self) -> u64 {
        self.now_us
    }

    async fn sleep_us(&mut self, length_us: u64) {
        self.now_us += length_us;
    }
}

/// How the waits before further attempts grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Always `base_us`.
    Constant,
    /// `base_us`, twice it, three times it.
    Linear,
    /// `base_us`, twice it, four times it.
    Exponential,
}

impl Shape {
    /// `constant`, `linear` or `exponential`; `None` for another name.
    pub fn parse(name: &str) -> Option<Shape> {
        match name {
            "constant" => Some(Shape::Constant),
            "linear" => Some(Shape::Linear),
            "exponential" => Some(Shape::Exponential),
            _ => None,
        }
    }
}

/// Waits between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// How they grow.
    pub shape: Shape,
    /// The first wait, in microseconds. 0: no waits.
    pub base_us: u64,
    /// The longest wait, in microseconds.
    pub cap_us: u64,
    /// Percent of a wait that is drawn: 0 waits exactly, 100 anything from nothing to all of it.
    /// Above 100 counts as 100.
    pub jitter_percent: u8,
}

impl BackOff {
    /// No waits.
    pub const NONE: BackOff = BackOff {
        shape: Shape::Constant,
        base_us: 0,
        cap_us: 0,
        jitter_percent: 0,
    };

    /// The wait after `attempts` attempts (at least 1) have failed, in microseconds.
    pub fn wait_us(&self, attempts: u32, prng: &mut Prng) -> u64 {
        let steps = u64::from(attempts.max(1)) - 1;
        let factor = match self.shape {
            Shape::Constant => 1,
            Shape::Linear => steps + 1,
            Shape::Exponential => 1u64.checked_shl(steps as u32).unwrap_or(u64::MAX),
        };
        let whole = self.base_us.saturating_mul(factor).min(self.cap_us);
        let percent = u128::from(self.jitter_percent.min(100));
        let drawn = (u128::from(whole) * percent / 100) as u64;
        match drawn {
            0 => whole,
            drawn => whole - drawn + prng.below(drawn.saturating_add(1)),
        }
    }
}

/// When a transaction is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Most attempts; at least 1 is made.
    pub attempts: u32,
    /// Time from the first attempt, in microseconds, after which no further one begins.
    pub total_us: u64,
    /// Waits between attempts.
    pub back_off: BackOff,
}

impl Policy {
    /// One attempt.
    pub const ONCE: Policy = Policy {
        attempts: 1,
        total_us: u64::MAX,
        back_off: BackOff::NONE,
    };
}

impl Default for Policy {
    /// 20 attempts in 10 seconds, with exponential waits of 0.5 to 100 ms, half of each drawn.
    fn default() -> Policy {
        Policy {
            attempts: 20,
            total_us: 10_000_000,
            back_off: BackOff {
                shape: Shape::Exponential,
                base_us: 500,
                cap_us: 100_000,
                jitter_percent: 50,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(shape: Shape, jitter_percent: u8) -> Vec<u64> {
        let back_off = BackOff {
            shape,
            base_us: 100,
            cap_us: 700,
            jitter_percent,
        };
        let mut prng = Prng::new(7);
        (1..=5).map(|n| back_off.wait_us(n, &mut prng)).collect()
    }

    #[test]
    fn waits_grow_as_their_shape_says() {
        assert_eq!(waits(Shape::Constant, 0), [100; 5]);
        assert_eq!(waits(Shape::Linear, 0), [100, 200, 300, 400, 500]);
        assert_eq!(waits(Shape::Exponential, 0), [100, 200, 400, 700, 700]);
        let drawn = waits(Shape::Exponential, 50);
        assert_eq!(drawn, waits(Shape::Exponential, 50));
        for (wait, whole) in drawn.iter().zip([100, 200, 400, 700, 700]) {
            assert!((whole / 2..=whole).contains(wait), "{drawn:?}");
        }
    }

    #[test]
    fn waits_stay_in_range_at_the_ends() {
        let most = BackOff {
            shape: Shape::Exponential,
            base_us: u64::MAX,
            cap_us: u64::MAX,
            jitter_percent: 255,
        };
        let mut prng = Prng::new(1);
        for attempts in [0, 1, 2, 64, 65, u32::MAX] {
            most.wait_us(attempts, &mut prng);
        }
        assert_eq!(BackOff::NONE.wait_us(3, &mut prng), 0);
    }
}
