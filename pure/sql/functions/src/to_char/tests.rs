//! Random patterns and texts: they give a value or an error, never a panic.

use super::{parse_moment, to_number};
use base::Prng;

const MOMENTS: &[&str] = &[
    "YYYY", "Y,YYY", "YYY", "YY", "Y", "IYYY", "IY", "I", "CC", "BC", "AD", "MM", "Month", "Mon",
    "RM", "DD", "DDD", "IDDD", "D", "ID", "DAY", "DY", "WW", "IW", "W", "J", "Q", "HH", "HH12",
    "HH24", "MI", "SS", "SSSS", "MS", "US", "FF1", "FF6", "AM", "P.M.", "TZH", "TZM", "OF", "TH",
    "FX", "FM", "-", " ", ":", "\"x\"",
];
const NUMBERS: &[&str] = &[
    "9",
    "0",
    ".",
    ",",
    "D",
    "G",
    "S",
    "MI",
    "PL",
    "SG",
    "PR",
    "FM",
    "TH",
    "V",
    "B",
    "C",
    "L",
    "SP",
    "9999999999",
    " ",
    "\"x\"",
    "x",
];
const TEXTS: &[&str] = &[
    "0",
    "1",
    "9",
    "99",
    "2147483647",
    "2147483648",
    "-2147483648",
    "9223372036854775807",
    "12",
    "-",
    "+",
    ".",
    ",",
    " ",
    ":",
    "Jan",
    "february",
    "BC",
    "pm",
    "<",
    ">",
    "é",
    "$",
    "XII",
    "Mon",
];

fn drawn(prng: &mut Prng, words: &[&str]) -> String {
    let count = 1 + prng.below(6);
    (0..count)
        .map(|_| words[prng.below(words.len() as u64) as usize])
        .collect()
}

#[test]
fn random_patterns_and_texts_do_not_panic() {
    let mut prng = Prng::new(7);
    let mut read = 0;
    for _ in 0..60_000 {
        let text = drawn(&mut prng, TEXTS);
        read += usize::from(parse_moment(&text, &drawn(&mut prng, MOMENTS)).is_ok());
        read += usize::from(to_number(&text, &drawn(&mut prng, NUMBERS)).is_ok());
    }
    assert!(read > 5_000, "some are values: {read}");
}
