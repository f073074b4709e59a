//! How parameters are drawn: numbers of a range by a distribution, or one of a list.
//!
//! Ranks are dealt by [`workload::dike::imbalance::Homes`]: uniform, Zipf, exponential, hot set.

use crate::document::{Problem, Section, told};
use crate::state::Datum;
use base::Prng;
use serde_json::Value;
use std::sync::Arc;
use workload::dike::imbalance::{Access, Homes};

/// The most numbers that a range of ranks has: sums of weights take 8 bytes each.
pub const RANGE_MAX: u64 = 20_000_000;
/// A prime by which ranks are spread over a range; it divides none that is allowed.
const SPREAD: u64 = 2_147_483_647;
/// The exponent that YCSB has.
const EXPONENT: f64 = 0.99;

/// Draws whole numbers of `0..count`, the first ones most often where the access is uneven.
#[derive(Clone, Debug)]
pub struct Ranks {
    homes: Arc<Homes>,
    count: u64,
    is_scattered: bool,
}

impl Ranks {
    /// Ranks below `count`, 1 to [`RANGE_MAX`]. Scattered ones are dealt over the whole range, each
    /// rank at a place of its own, so that neighbours are not hot together.
    ///
    /// Panics if the count is out of its bounds.
    pub fn new(access: Access, count: u64, is_scattered: bool) -> Ranks {
        assert!((1..=RANGE_MAX).contains(&count), "a range has its bounds");
        Ranks {
            homes: Arc::new(Homes::new(access, count as u32)),
            count,
            is_scattered,
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One of them.
    pub fn draw(&self, prng: &mut Prng) -> u64 {
        let rank = u64::from(self.homes.draw(prng, 0.0, None)) - 1;
        match self.is_scattered {
            true => (u128::from(rank) * u128::from(SPREAD) % u128::from(self.count)) as u64,
            false => rank,
        }
    }

    /// Several different ones in the order in which they were drawn; at most as many as there are.
    pub fn draw_distinct(&self, prng: &mut Prng, wanted: usize) -> Vec<u64> {
        let wanted = wanted.min(self.count as usize);
        let mut drawn: Vec<u64> = Vec::with_capacity(wanted);
        let mut tries = 0;
        while drawn.len() < wanted {
            let mut next = self.draw(prng);
            tries += 1;
            // A few ranks may have nearly all the weight: then their neighbours come.
            while drawn.contains(&next) && tries > 16 * wanted {
                next = (next + 1) % self.count;
            }
            if !drawn.contains(&next) {
                drawn.push(next);
            }
        }
        drawn
    }
}

/// What `access` of a parameter says: `uniform`, `zipf:0.99`, `exponential:4`, `hot:0.1:0.9`.
///
/// # Errors
/// It says none of these.
pub fn access(path: &str, text: &str) -> Result<Access, Problem> {
    match text.parse() {
        Ok(Access::Hot {
            every_s: Some(_), ..
        }) => {
            let text = "a moving hot set needs a clock: it is not for parameters";
            Err(Problem::new(path, text))
        }
        Ok(access) => Ok(access),
        Err(_) => {
            let text = format!(
                "{text:?} is none of uniform, zipf:EXPONENT (to 10), exponential:RATE (to 100), \
                 hot:PART:SHARE (to 1)"
            );
            Err(Problem::new(path, text))
        }
    }
}

/// Reads how a parameter is drawn, as [`access`] says; `usual` if the key is missing.
///
/// # Errors
/// It says none of these.
pub fn dealt(section: &mut Section<'_>, key: &str, usual: Access) -> Result<Access, Problem> {
    let text = section.text(key)?;
    text.map_or(Ok(usual), |text| access(&section.path_of(key), text))
}

/// A distribution of a parameter that data describes.
#[derive(Clone, Debug)]
pub enum Distribution {
    /// Always the same.
    Constant(Datum),
    /// One of these, each as often.
    List(Vec<Datum>),
    /// `from` plus a rank.
    Ranks {
        /// The smallest number.
        from: i64,
        /// How it is drawn.
        ranks: Ranks,
    },
    /// The largest number most often: `from + count - 1 -` a rank.
    Latest {
        /// The smallest number.
        from: i64,
        /// How far from the largest.
        ranks: Ranks,
    },
    /// A text of so many letters.
    Letters(usize),
}

impl Distribution {
    /// Reads a constant, or an object with a `kind`: `constant` (`value`), `list` (`values`),
    /// `uniform`, `zipf` (`exponent`, `scattered`), `hot` (`part`, `share`), `latest` (`exponent`),
    /// all four with `from` and `to`, and `text` (`length`).
    ///
    /// # Errors
    /// It is none of these.
    pub fn read(path: &str, value: &Value) -> Result<Distribution, Problem> {
        if !value.is_object() {
            let wrong = || Problem::new(path, format!("{} is no value", told(value)));
            return Datum::of(value)
                .map(Distribution::Constant)
                .ok_or_else(wrong);
        }
        let mut section = Section::of(path, value)?;
        let kind = section.required("kind")?;
        let exponent = |section: &mut Section<'_>| {
            let exponent = section.number("exponent", 0.01..=10.0)?;
            Ok(exponent.unwrap_or(EXPONENT))
        };
        let distribution = match kind.as_str() {
            Some("constant") => {
                let value = section.required("value")?;
                let wrong = || section.problem("value", format!("{} is no value", told(value)));
                Distribution::Constant(Datum::of(value).ok_or_else(wrong)?)
            }
            Some("list") => {
                let values = section.required("values")?;
                match Datum::of(values) {
                    Some(Datum::List(values)) if !values.is_empty() => Distribution::List(values),
                    _ => return Err(section.problem("values", "it is no list of values")),
                }
            }
            Some("uniform") => ranks(&mut section, Access::Uniform, false)?,
            Some("zipf") => {
                let exponent = exponent(&mut section)?;
                let is_scattered = section.flag("scattered")?.unwrap_or(false);
                ranks(&mut section, Access::Zipf { exponent }, is_scattered)?
            }
            Some("hot") => {
                let access = Access::Hot {
                    part: section.number("part", 1e-9..=1.0)?.unwrap_or(0.1),
                    share: section.number("share", 0.0..=1.0)?.unwrap_or(0.9),
                    every_s: None,
                };
                ranks(&mut section, access, false)?
            }
            Some("latest") => {
                let exponent = exponent(&mut section)?;
                match ranks(&mut section, Access::Zipf { exponent }, false)? {
                    Distribution::Ranks { from, ranks } => Distribution::Latest { from, ranks },
                    other => other,
                }
            }
            Some("text") => {
                let length = section.count("length", 0..=1 << 20)?;
                Distribution::Letters(length.unwrap_or(10) as usize)
            }
            _ => {
                let text = format!(
                    "{} is none of constant, list, uniform, zipf, hot, latest, text",
                    told(kind)
                );
                return Err(section.problem("kind", text));
            }
        };
        section.finish()?;
        Ok(distribution)
    }

    /// A value.
    pub fn draw(&self, prng: &mut Prng) -> Datum {
        match self {
            Distribution::Constant(value) => value.clone(),
            Distribution::List(values) => values[prng.below(values.len() as u64) as usize].clone(),
            Distribution::Ranks { from, ranks } => Datum::Int(from + ranks.draw(prng) as i64),
            Distribution::Latest { from, ranks } => {
                let last = from + ranks.count() as i64 - 1;
                Datum::Int(last - ranks.draw(prng) as i64)
            }
            Distribution::Letters(length) => Datum::Text(letters(prng, *length)),
        }
    }
}

fn ranks(
    section: &mut Section<'_>,
    access: Access,
    is_scattered: bool,
) -> Result<Distribution, Problem> {
    let mut whole = |key: &str| {
        let value = section.required(key)?;
        let wrong = || section.problem(key, format!("{} is no whole number", told(value)));
        let number = value
            .as_i64()
            .filter(|number| number.unsigned_abs() < 1 << 53);
        number.ok_or_else(wrong)
    };
    let (from, to) = (whole("from")?, whole("to")?);
    let count = to - from + 1;
    if count < 1 || count as u64 > RANGE_MAX {
        let text = format!("{from} to {to} is no range of 1 to {RANGE_MAX} numbers");
        return Err(section.problem("to", text));
    }
    let ranks = Ranks::new(access, count as u64, is_scattered);
    Ok(Distribution::Ranks { from, ranks })
}

/// A text of small letters.
pub fn letters(prng: &mut Prng, length: usize) -> String {
    let mut text = String::with_capacity(length);
    let mut bits = 0u64;
    for at in 0..length {
        // Twelve letters of each draw; the bias of 2^-64 * 26 is of no account.
        if at % 12 == 0 {
            bits = prng.next_u64();
        }
        text.push(char::from(b'a' + (bits % 26) as u8));
        bits /= 26;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use workload::stats::binomial_interval;

    fn ints(value: &Value, count: usize) -> Vec<i64> {
        let distribution = Distribution::read("p", value).expect("a distribution");
        let mut prng = Prng::new(11);
        let draw = |_| distribution.draw(&mut prng).int().expect("a whole number");
        (0..count).map(draw).collect()
    }

    #[test]
    fn numbers_are_drawn_as_often_as_their_distribution_says() {
        let n = 20_000u64;
        let share = |value: &Value, wanted: i64, p: f64| {
            let drawn = ints(value, n as usize);
            assert!(
                drawn.iter().all(|number| (5..=14).contains(number)),
                "{value}"
            );
            let count = drawn.iter().filter(|number| **number == wanted).count() as u64;
            let (low, high) = binomial_interval(n, p, 0.9999);
            assert!(
                (low..=high).contains(&count),
                "{value}: {count}, not {low} to {high}"
            );
        };
        let range = |kind: &str| json!({"kind": kind, "from": 5, "to": 14});
        share(&range("uniform"), 9, 0.1);
        // The harmonic sum of ten terms with exponent 1 is 2.929.
        let mut zipf = range("zipf");
        zipf["exponent"] = json!(1);
        share(&zipf, 5, 1.0 / 2.928_968);
        let mut latest = range("latest");
        latest["exponent"] = json!(1);
        share(&latest, 14, 1.0 / 2.928_968);
        let mut hot = range("hot");
        hot["share"] = json!(0.8);
        share(&hot, 5, 0.8);
        share(&hot, 6, 0.2 / 9.0);
    }

    #[test]
    fn scattered_ranks_are_a_permutation() {
        for count in [1, 2, 10, 1_000] {
            let ranks = Ranks::new(Access::Uniform, count, true);
            let mut prng = Prng::new(3);
            let drawn = ranks.draw_distinct(&mut prng, count as usize);
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..count), "{count}");
        }
        // Two places far from each other are the hottest.
        let zipf = Ranks::new(Access::Zipf { exponent: 3.0 }, 1_000, true);
        let mut prng = Prng::new(3);
        let many: Vec<u64> = (0..1_000).map(|_| zipf.draw(&mut prng)).collect();
        assert!(many.contains(&0) && many.contains(&(SPREAD % 1_000)));
        // The hottest few have all the weight, and yet as many as asked for are drawn.
        let steep = Ranks::new(Access::Zipf { exponent: 10.0 }, 50, false);
        assert_eq!(steep.draw_distinct(&mut prng, 50).len(), 50);
    }

    #[test]
    fn lists_constants_and_texts_are_drawn() {
        let mut prng = Prng::new(1);
        let mut draw = |value: Value| {
            let distribution = Distribution::read("p", &value).expect("a distribution");
            distribution.draw(&mut prng)
        };
        assert_eq!(draw(json!(4)), Datum::Int(4));
        assert_eq!(
            draw(json!({"kind": "constant", "value": "x"})),
            Datum::Text("x".into())
        );
        assert_eq!(draw(json!({"kind": "list", "values": [9]})), Datum::Int(9));
        let Datum::Text(text) = draw(json!({"kind": "text", "length": 30})) else {
            panic!("no text");
        };
        assert!(text.len() == 30 && text.bytes().all(|letter| letter.is_ascii_lowercase()));
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for value in [
            json!(null),
            json!({"from": 1, "to": 2}),
            json!({"kind": "pareto", "from": 1, "to": 2}),
            json!({"kind": "uniform", "from": 2, "to": 1}),
            json!({"kind": "uniform", "from": 1}),
            json!({"kind": "uniform", "from": 1, "to": 2, "share": 0.5}),
            json!({"kind": "zipf", "from": 1, "to": 2, "exponent": 11}),
            json!({"kind": "list", "values": []}),
            json!({"kind": "uniform", "from": 0, "to": 1_000_000_000}),
            json!({"kind": "uniform", "from": i64::MIN, "to": i64::MAX}),
        ] {
            let problem = Distribution::read("p", &value).expect_err(&value.to_string());
            assert!(problem.path.starts_with('p'), "{problem}");
        }
        assert!(access("a", "moving:0.1:0.8:5").is_err() && access("a", "zip").is_err());
        assert!(access("a", "zipf:0.5").is_ok());
    }
}
