//! Imbalance of data and of accesses among warehouses (section 4.3 of the paper).
//!
//! ```text
//! data:zipf:1.5              districts dealt among warehouses by Zipf, when they are loaded
//! access:uniform             each warehouse is home of as many transactions
//! access:zipf:1.2            warehouse k of k^-1.2 as many as the first
//! access:exponential:4       exp(-4 (k - 1) / W) as many
//! access:hot:0.1             a tenth of the warehouses of 90 % of the transactions
//! access:hot:0.1:0.8         of 80 %
//! access:moving:0.1:0.8:5    of 80 %, and others every five seconds
//! ```

use crate::stats::exp;
use crate::tpcc::{Skew, zipf_weight};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base::Prng;
use core::fmt;
use core::str::FromStr;

/// The share of the transactions that the hot warehouses get where none is said.
const HOT_SHARE: f64 = 0.9;

/// How transactions are dealt among warehouses, which are their homes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Evenly.
    Uniform,
    /// By rank: the first warehouse gets most.
    Zipf {
        /// Above 0, at most 10.
        exponent: f64,
    },
    /// By rank, `exp(-rate (k - 1) / W)`.
    Exponential {
        /// Above 0, at most 100.
        rate: f64,
    },
    /// A part of the warehouses gets a share of the transactions.
    Hot {
        /// Part of the warehouses, above 0, at most 1; one warehouse at least.
        part: f64,
        /// Share of the transactions, 0 to 1.
        share: f64,
        /// Seconds after which the next warehouses are the hot ones, above 0; `None`: it is always
        /// the first.
        every_s: Option<f64>,
    },
}

/// What is uneven.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Imbalance {
    /// Districts by warehouse.
    pub data: Option<Skew>,
    /// Transactions by warehouse.
    pub access: Option<Access>,
}

/// Why a text says no imbalance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImbalanceError(String);

impl fmt::Display for ImbalanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for ImbalanceError {}

fn number(text: &str, most: f64) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number > 0.0 && number <= most).then_some(number)
}

fn share(text: &str) -> Option<f64> {
    let share: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&share).then_some(share)
}

impl FromStr for Access {
    type Err = ImbalanceError;

    fn from_str(text: &str) -> Result<Access, ImbalanceError> {
        let parts: Vec<&str> = text.split(':').collect();
        let access = match *parts {
            ["uniform"] => Some(Access::Uniform),
            ["zipf", exponent] => number(exponent, 10.0).map(|exponent| Access::Zipf { exponent }),
            ["exponential", rate] => number(rate, 100.0).map(|rate| Access::Exponential { rate }),
            ["hot", part] => number(part, 1.0).map(|part| Access::Hot {
                part,
                share: HOT_SHARE,
                every_s: None,
            }),
            ["hot", part, of] => {
                let both = number(part, 1.0).zip(share(of));
                both.map(|(part, share)| Access::Hot {
                    part,
                    share,
                    every_s: None,
                })
            }
            ["moving", part, of, seconds] => {
                let all = number(part, 1.0).zip(share(of)).zip(number(seconds, 1e6));
                all.map(|((part, share), every_s)| Access::Hot {
                    part,
                    share,
                    every_s: Some(every_s),
                })
            }
            _ => None,
        };
        access.ok_or_else(|| {
            ImbalanceError(format!(
                "access:{text} is none of access:uniform, access:zipf:EXPONENT (to 10), \
                 access:exponential:RATE (to 100), access:hot:PART or access:hot:PART:SHARE \
                 (parts and shares to 1), access:moving:PART:SHARE:SECONDS"
            ))
        })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Uniform => f.write_str("uniform"),
            Access::Zipf { exponent } => write!(f, "zipf:{exponent}"),
            Access::Exponential { rate } => write!(f, "exponential:{rate}"),
            Access::Hot {
                part,
                share,
                every_s: None,
            } => write!(f, "hot:{part}:{share}"),
            Access::Hot {
                part,
                share,
                every_s: Some(seconds),
            } => write!(f, "moving:{part}:{share}:{seconds}"),
        }
    }
}

/// `data:zipf:1.5,access:hot:0.1`, one of both or both.
impl FromStr for Imbalance {
    type Err = ImbalanceError;

    fn from_str(text: &str) -> Result<Imbalance, ImbalanceError> {
        let mut imbalance = Imbalance::default();
        for part in text.split(',') {
            let is_second = match part.split_once(':') {
                Some(("data", "uniform")) => imbalance.data.replace(Skew::NONE).is_some(),
                Some(("data", data)) => {
                    let Some(exponent) = data.strip_prefix("zipf:") else {
                        return Err(ImbalanceError(format!(
                            "{part} is neither data:uniform nor data:zipf:EXPONENT"
                        )));
                    };
                    let skew: Skew = exponent
                        .parse()
                        .map_err(|error| ImbalanceError(format!("{part}: {error}")))?;
                    imbalance.data.replace(skew).is_some()
                }
                Some(("access", access)) => imbalance.access.replace(access.parse()?).is_some(),
                _ => {
                    return Err(ImbalanceError(format!(
                        "{part:?} is neither data:zipf:EXPONENT nor access:HOW"
                    )));
                }
            };
            if is_second {
                return Err(ImbalanceError(format!("{part}: it is said twice")));
            }
        }
        Ok(imbalance)
    }
}

/// Deals homes.
#[derive(Clone, Debug)]
pub struct Homes {
    warehouses: u32,
    access: Access,
    /// Sums of the weights of all warehouses up to each, where these differ by rank.
    sums: Vec<f64>,
}

impl Homes {
    /// Among so many warehouses, at least one.
    pub fn new(access: Access, warehouses: u32) -> Homes {
        let weight = |rank: u32| match access {
            Access::Zipf { exponent } => zipf_weight(rank, exponent),
            Access::Exponential { rate } => {
                exp(-rate * f64::from(rank - 1) / f64::from(warehouses))
            }
            Access::Uniform | Access::Hot { .. } => 1.0,
        };
        let mut sum = 0.0;
        let mut add = |rank: u32| {
            sum += weight(rank);
            sum
        };
        let sums = match access {
            Access::Uniform | Access::Hot { .. } => Vec::new(),
            _ => (1..=warehouses).map(&mut add).collect(),
        };
        Homes {
            warehouses,
            access,
            sums,
        }
    }

    /// How many are hot.
    pub fn hot_count(&self) -> u32 {
        match self.access {
            Access::Hot { part, .. } => {
                let count = part * f64::from(self.warehouses);
                ((count + 0.999_999) as u32).clamp(1, self.warehouses)
            }
            _ => 0,
        }
    }

    /// The first hot warehouse at this second of the run.
    pub fn hot_begin(&self, second: f64) -> u32 {
        match self.access {
            Access::Hot {
                every_s: Some(every_s),
                ..
            } => {
                let moves = (second.max(0.0) / every_s) as u64;
                let begin = moves * u64::from(self.hot_count()) % u64::from(self.warehouses);
                begin as u32 + 1
            }
            _ => 1,
        }
    }

    /// The home of a transaction at this second. `hot_share` is said by a curve instead of by the
    /// access.
    pub fn draw(&self, prng: &mut Prng, second: f64, hot_share: Option<f64>) -> u32 {
        match self.access {
            Access::Uniform => prng.below(u64::from(self.warehouses)) as u32 + 1,
            Access::Zipf { .. } | Access::Exponential { .. } => {
                let all = self.sums.last().copied().unwrap_or(1.0);
                let drawn = unit(prng) * all;
                let place = self.sums.partition_point(|sum| *sum <= drawn);
                (place as u32).min(self.warehouses - 1) + 1
            }
            Access::Hot { share, .. } => {
                let hot = self.hot_count();
                let others = self.warehouses - hot;
                let is_hot = unit(prng) < hot_share.unwrap_or(share);
                let place = match is_hot || others == 0 {
                    true => prng.below(u64::from(hot)) as u32,
                    false => hot + prng.below(u64::from(others)) as u32,
                };
                (self.hot_begin(second) - 1 + place) % self.warehouses + 1
            }
        }
    }

    /// The share of the transactions that each warehouse is to get, from the first on; `None`
    /// where it changes in the course of a run.
    pub fn shares(&self) -> Option<Vec<f64>> {
        let all = || 1..=self.warehouses;
        match self.access {
            Access::Hot {
                every_s: Some(_), ..
            } => None,
            Access::Uniform => Some(all().map(|_| 1.0 / f64::from(self.warehouses)).collect()),
            Access::Hot { share, .. } => {
                let hot = self.hot_count();
                let others = self.warehouses - hot;
                let share = if others == 0 { 1.0 } else { share };
                let of = |warehouse: u32| match warehouse <= hot {
                    true => share / f64::from(hot),
                    false => (1.0 - share) / f64::from(others),
                };
                Some(all().map(of).collect())
            }
            Access::Zipf { .. } | Access::Exponential { .. } => {
                let sum = self.sums.last()?;
                let before = core::iter::once(&0.0).chain(&self.sums);
                let pairs = before.zip(&self.sums);
                Some(pairs.map(|(a, b)| (b - a) / sum).collect())
            }
        }
    }

    /// Whether the hot warehouses change in the course of a run.
    pub fn moves(&self) -> bool {
        matches!(
            self.access,
            Access::Hot {
                every_s: Some(_),
                ..
            }
        )
    }

    /// As it was asked for.
    pub fn describe(&self) -> String {
        self.access.to_string()
    }
}

/// From 0 on, below 1.
fn unit(prng: &mut Prng) -> f64 {
    prng.below(1 << 53) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const DRAWS: u32 = 100_000;

    fn counts(homes: &Homes, second: f64, hot_share: Option<f64>) -> Vec<u32> {
        let mut prng = Prng::new(5);
        let mut counts = vec![0; homes.warehouses as usize];
        for _ in 0..DRAWS {
            counts[homes.draw(&mut prng, second, hot_share) as usize - 1] += 1;
        }
        counts
    }

    #[test]
    fn homes_are_dealt_as_they_are_told() {
        for text in [
            "uniform",
            "zipf:0.5",
            "zipf:1.5",
            "exponential:4",
            "hot:0.25",
            "hot:0.3:0.6",
        ] {
            let homes = Homes::new(text.parse().expect("an access"), 10);
            let shares = homes.shares().expect("they stay");
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{text}");
            for (count, share) in counts(&homes, 0.0, None).iter().zip(&shares) {
                let expected = share * f64::from(DRAWS);
                let off = (f64::from(*count) - expected).abs();
                assert!(
                    off < 5.0 * crate::stats::sqrt(expected) + 5.0,
                    "{text}: {count} {expected}"
                );
            }
        }
    }

    #[test]
    fn a_hot_set_moves_and_its_share_follows_a_curve() {
        let homes = Homes::new("moving:0.2:1:5".parse().expect("an access"), 10);
        assert_eq!(homes.hot_count(), 2);
        let hot_at = |second| {
            let counts = counts(&homes, second, None);
            let hot = (1..).zip(counts).filter(|(_, count)| *count > 0);
            hot.map(|(warehouse, _)| warehouse).collect::<Vec<u32>>()
        };
        assert_eq!(hot_at(-1.0), [1, 2]);
        assert_eq!(hot_at(4.9), [1, 2]);
        assert_eq!(hot_at(5.0), [3, 4]);
        assert_eq!(hot_at(25.0), [1, 2]);
        let cold = counts(&homes, 0.0, Some(0.0));
        assert_eq!(cold[..2], [0, 0]);
        assert!(homes.shares().is_none());
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let both: Imbalance = "data:zipf:1.5,access:hot:0.1".parse().expect("both");
        assert_eq!(both.data.map(Skew::thousandths), Some(1_500));
        assert_eq!(both.access.expect("access").to_string(), "hot:0.1:0.9");
        for bad in [
            "",
            "data",
            "data:zipf",
            "data:zipf:-1",
            "data:hot:1",
            "access",
            "access:hot",
            "access:hot:0",
            "access:hot:0.1:2",
            "access:zipf:0",
            "access:moving:0.1",
            "access:uniform:1",
            "data:zipf:1,data:zipf:2",
        ] {
            assert!(bad.parse::<Imbalance>().is_err(), "{bad}");
        }
    }
}
