//! Shares of the transactions.

use crate::tpcc::Kind;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base::Prng;
use core::fmt;
use core::str::FromStr;

/// Kinds that may have a share.
const KINDS: usize = Kind::ALL.len();

/// A weight for each kind; its share is its part of their sum, which is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix([u32; KINDS]);

/// Why a text is no mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixError(String);

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for MixError {}

/// Those of the paper.
impl Default for Mix {
    fn default() -> Mix {
        Mix::PAPER
    }
}

impl Mix {
    /// 45, 43, 4, 4 and 4 of NewOrder, Payment, OrderStatus, Delivery and StockLevel: the first of
    /// the mixes in figure 18 b of the paper.
    pub const PAPER: Mix = Mix([45, 43, 4, 4, 4, 0, 0, 0, 0, 0, 0]);

    /// The kind of the next transaction.
    pub fn draw(&self, prng: &mut Prng) -> Kind {
        let sum: u32 = self.0.iter().sum();
        let mut left = prng.below(u64::from(sum)) as u32;
        for (kind, weight) in Kind::ALL.into_iter().zip(self.0) {
            match left.checked_sub(weight) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        unreachable!("the weights add up to their sum")
    }

    /// The kinds of so many terminals of which each has one kind only, in the order of a shuffle:
    /// as many of each as its share says, to within one.
    ///
    /// # Errors
    /// A kind with a share would have no terminal.
    pub fn deal(&self, terminals: u32, prng: &mut Prng) -> Result<Vec<Kind>, MixError> {
        let sum: i64 = self.0.iter().map(|weight| i64::from(*weight)).sum();
        let mut credit = [0; KINDS];
        let mut dealt = Vec::with_capacity(terminals as usize);
        for _ in 0..terminals {
            for (credit, weight) in credit.iter_mut().zip(self.0) {
                *credit += i64::from(weight);
            }
            let richest = Kind::ALL.into_iter().rev();
            let richest = richest.max_by_key(|kind| credit[kind.number()]);
            let kind = richest.unwrap_or(Kind::NewOrder);
            credit[kind.number()] -= sum;
            dealt.push(kind);
        }
        let is_left_out = |kind: &Kind| self.0[kind.number()] > 0 && !dealt.contains(kind);
        if let Some(kind) = Kind::ALL.into_iter().find(is_left_out) {
            return Err(MixError(format!(
                "{terminals} terminals are too few: {} has a share, and would have none of them",
                kind.name()
            )));
        }
        for at in (1..dealt.len()).rev() {
            dealt.swap(at, prng.below(at as u64 + 1) as usize);
        }
        Ok(dealt)
    }

    /// The same with another weight of one kind; as it was where all would be 0.
    pub fn with(self, kind: Kind, weight: u32) -> Mix {
        let mut weights = self.0;
        weights[kind.number()] = weight;
        match weights.iter().any(|weight| *weight > 0) {
            true => Mix(weights),
            false => self,
        }
    }

    /// The share of a kind, 0 to 1.
    pub fn share(&self, kind: Kind) -> f64 {
        let sum: u32 = self.0.iter().sum();
        f64::from(self.0[kind.number()]) / f64::from(sum)
    }
}

/// `new_order:45,payment:43`, with names as reports have them; kinds that are missing have no
/// share.
impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Mix, MixError> {
        let mut weights = [None; KINDS];
        for part in text.split(',') {
            let named = part.split_once(':');
            let kind = named.and_then(|(name, _)| Kind::parse(name));
            let weight = named.and_then(|(_, weight)| weight.parse::<u32>().ok());
            let (Some(kind), Some(weight)) = (kind, weight.filter(|it| *it <= 1_000_000)) else {
                let names = Kind::NAMES.join(", ");
                return Err(MixError(format!(
                    "{part:?} is no share such as new_order:45; the kinds are {names}"
                )));
            };
            if weights[kind.number()].replace(weight).is_some() {
                return Err(MixError(format!("{} has two shares", kind.name())));
            }
        }
        let weights = weights.map(|weight| weight.unwrap_or(0));
        match weights.iter().any(|weight| *weight > 0) {
            true => Ok(Mix(weights)),
            false => Err(MixError("some share must be above 0".to_string())),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Kind::ALL.into_iter().zip(self.0);
        let shown = all.filter(|(kind, weight)| kind.is_tpcc() || *weight > 0);
        for (kind, weight) in shown {
            let comma = if kind.number() > 0 { "," } else { "" };
            write!(f, "{comma}{}:{weight}", kind.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_dealt_by_their_shares() {
        let dealt = Mix::PAPER.deal(50, &mut Prng::new(1)).expect("enough");
        let count = |kind| dealt.iter().filter(|it| **it == kind).count();
        assert_eq!(dealt.len(), 50);
        for (kind, share) in Kind::TPCC.into_iter().zip([22.5, 21.5, 2.0, 2.0, 2.0]) {
            assert!((count(kind) as f64 - share).abs() < 1.0, "{kind:?}");
        }
        let few = Mix::PAPER.deal(10, &mut Prng::new(1)).expect_err("too few");
        assert!(few.to_string().contains("delivery has a share"), "{few}");
    }

    #[test]
    fn shares_are_drawn_as_they_are_told() {
        let mix: Mix = "new-order:60,stock_level:20".parse().expect("a mix");
        assert_eq!(mix.share(Kind::NewOrder), 0.75);
        let mut prng = Prng::new(1);
        let drawn = (0..10_000).filter(|_| mix.draw(&mut prng) == Kind::NewOrder);
        assert!((7_300..7_700).contains(&drawn.count()));
        assert_eq!(mix.to_string().parse(), Ok(mix));
        let further: Mix = "d-update-stock:3,co_access:1".parse().expect("a mix");
        assert_eq!(further.share(Kind::DUpdateStock), 0.75);
        assert!(
            further
                .to_string()
                .ends_with("d_update_stock:3,co_access:1")
        );
        assert_eq!(further.to_string().parse(), Ok(further));
        for bad in [
            "",
            "new_order",
            "new_order:0",
            "x:1",
            "payment:-1",
            "payment:1,payment:2",
        ] {
            assert!(bad.parse::<Mix>().is_err(), "{bad}");
        }
    }
}
