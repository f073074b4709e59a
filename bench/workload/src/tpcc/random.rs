//! The random values of clauses 2.1.6 and 4.3.2.

use super::Scale;
use crate::stream;
use alloc::{string::String, vec::Vec};
use base::Prng;

/// The constants C of NURand (clause 2.1.6): one per use, fixed for a load or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// For C_LAST, in `0..=255`.
    pub c_last: u32,
    /// For C_ID, in `0..=1023`.
    pub c_id: u32,
    /// For OL_I_ID, in `0..=8191`.
    pub ol_i_id: u32,
}

impl Constants {
    /// The constants of a load.
    pub fn for_load(seed: u64) -> Constants {
        let mut prng = stream(seed, &[0x634c_6f61]);
        Constants {
            c_last: prng.below(256) as u32,
            c_id: prng.below(1024) as u32,
            ol_i_id: prng.below(8192) as u32,
        }
    }

    /// The constants of a run against data loaded with `c_last_load`: C_LAST is drawn again until
    /// its distance is allowed (clause 2.1.6.1).
    pub fn for_run(seed: u64, c_last_load: u32) -> Constants {
        let mut prng = stream(seed, &[0x6352_756e]);
        loop {
            let drawn = Constants {
                c_last: prng.below(256) as u32,
                c_id: prng.below(1024) as u32,
                ol_i_id: prng.below(8192) as u32,
            };
            if c_last_distance_allowed(c_last_load, drawn.c_last) {
                return drawn;
            }
        }
    }
}

/// Whether the constants of C_LAST of load and run differ as clause 2.1.6.1 asks: by 65 to 119,
/// but neither 96 nor 112.
pub fn c_last_distance_allowed(load: u32, run: u32) -> bool {
    let distance = load.abs_diff(run);
    (65..=119).contains(&distance) && distance != 96 && distance != 112
}

/// NURand(A, x, y) with constant `c` (clause 2.1.6): non-uniform in `x..=y`.
pub fn nurand(prng: &mut Prng, a: u32, c: u32, x: u32, y: u32) -> u32 {
    let drawn = prng.below(u64::from(a) + 1) | (u64::from(x) + prng.below(u64::from(y - x) + 1));
    ((drawn + u64::from(c)) % u64::from(y - x + 1)) as u32 + x
}

/// A customer number by NURand(1023, 1, customers).
pub fn customer_id(prng: &mut Prng, constants: &Constants, scale: &Scale) -> u32 {
    nurand(prng, 1023, constants.c_id, 1, scale.customers)
}

/// An item number by NURand(8191, 1, items).
pub fn item_id(prng: &mut Prng, constants: &Constants, scale: &Scale) -> u32 {
    nurand(prng, 8191, constants.ol_i_id, 1, scale.items)
}

/// The number of a last name by NURand(255, 0, 999).
pub fn last_name_number(prng: &mut Prng, c_last: u32, scale: &Scale) -> u32 {
    nurand(prng, 255, c_last, 0, scale.last_names() - 1)
}

/// The syllables of clause 4.3.2.3.
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// The last name of a number in `0..1000` (clause 4.3.2.3).
pub fn last_name(number: u32) -> String {
    assert!(number < 1_000, "a last name has three syllables");
    let mut name = String::with_capacity(15);
    for digit in [number / 100, number / 10 % 10, number % 10] {
        name.push_str(SYLLABLES[digit as usize]);
    }
    name
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Appends a random a-string of `low..=high` characters (clause 4.3.2.2).
pub fn push_a_string(prng: &mut Prng, low: u32, high: u32, out: &mut Vec<u8>) {
    let mut length = prng.between(i64::from(low), i64::from(high));
    // One 64-bit draw serves eight letters by multiplication of byte-sized lanes; the bias of
    // 256 mod 62 is avoided by using 16 bits a letter and four letters a draw.
    while length > 0 {
        let mut word = prng.next_u64();
        for _ in 0..length.min(4) {
            let lane = word & 0xffff;
            out.push(LETTERS[((lane * 62) >> 16) as usize]);
            word >>= 16;
        }
        length -= 4;
    }
}

/// Appends a random n-string of exactly `length` digits (clause 4.3.2.2).
pub fn push_n_string(prng: &mut Prng, length: u32, out: &mut Vec<u8>) {
    for _ in 0..length {
        out.push(b'0' + prng.below(10) as u8);
    }
}

/// Appends a zip code: four digits and 11111 (clause 4.3.2.7).
pub fn push_zip(prng: &mut Prng, out: &mut Vec<u8>) {
    push_n_string(prng, 4, out);
    out.extend_from_slice(b"11111");
}

/// Appends I_DATA or S_DATA: 26 to 50 characters, a tenth of them with ORIGINAL inside
/// (clause 4.3.3.1).
pub fn push_brand_text(prng: &mut Prng, out: &mut Vec<u8>) {
    let start = out.len();
    push_a_string(prng, 26, 50, out);
    if prng.below(10) == 0 {
        let room = (out.len() - start - 8) as u64;
        let at = start + prng.below(room + 1) as usize;
        out[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
}

/// A random permutation of `1..=count` (clause 4.3.3.1: O_C_ID).
pub fn permutation(prng: &mut Prng, count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (1..=count).collect();
    for i in (1..numbers.len()).rev() {
        numbers.swap(i, prng.below(i as u64 + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nurand_stays_in_range_and_is_not_uniform() {
        let mut prng = Prng::new(1);
        let mut counts = [0u32; 3_001];
        for _ in 0..300_000 {
            let value = nurand(&mut prng, 1023, 259, 1, 3_000);
            assert!((1..=3_000).contains(&value));
            counts[value as usize] += 1;
        }
        // The bitwise or makes some values many times as frequent as the average of 100.
        assert!(counts.iter().max() > Some(&500));
        assert!(counts[1..].iter().filter(|&&c| c < 30).count() > 300);
    }

    #[test]
    fn nurand_is_the_formula_of_the_clause() {
        let mut ours = Prng::new(9);
        let mut plain = Prng::new(9);
        for _ in 0..1_000 {
            let got = nurand(&mut ours, 255, 123, 0, 999);
            let (a, b) = (plain.below(256), plain.below(1_000));
            assert_eq!(u64::from(got), ((a | b) + 123) % 1_000);
        }
    }

    #[test]
    fn constants_of_run_keep_their_distance() {
        for seed in 0..500 {
            let load = Constants::for_load(seed);
            assert!(load.c_last <= 255 && load.c_id <= 1023 && load.ol_i_id <= 8191);
            let run = Constants::for_run(seed, load.c_last);
            assert!(
                c_last_distance_allowed(load.c_last, run.c_last),
                "seed {seed}"
            );
        }
        assert!(!c_last_distance_allowed(10, 10));
        assert!(!c_last_distance_allowed(0, 96));
        assert!(!c_last_distance_allowed(112, 0));
        assert!(!c_last_distance_allowed(0, 64) && c_last_distance_allowed(0, 65));
        assert!(c_last_distance_allowed(119, 0) && !c_last_distance_allowed(120, 0));
    }

    #[test]
    fn last_names_are_those_of_the_clause() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn strings_have_their_lengths_and_alphabets() {
        let mut prng = Prng::new(2);
        let mut seen = [false; 256];
        let mut lengths = [0u32; 21];
        for _ in 0..3_000 {
            let mut text = Vec::new();
            push_a_string(&mut prng, 10, 20, &mut text);
            lengths[text.len()] += 1;
            text.iter().for_each(|&b| seen[b as usize] = true);
            assert!(text.iter().all(u8::is_ascii_alphanumeric));
        }
        assert!(lengths[10..=20].iter().all(|&count| count > 150));
        assert_eq!(lengths[..10].iter().sum::<u32>(), 0);
        assert_eq!(seen.iter().filter(|&&s| s).count(), 62);
        let mut zip = Vec::new();
        push_zip(&mut prng, &mut zip);
        assert!(zip.len() == 9 && zip.ends_with(b"11111") && zip.iter().all(u8::is_ascii_digit));
    }

    #[test]
    fn a_tenth_of_the_brand_texts_is_original() {
        let mut prng = Prng::new(3);
        let mut original = 0;
        for _ in 0..20_000 {
            let mut text = Vec::new();
            push_brand_text(&mut prng, &mut text);
            assert!((26..=50).contains(&text.len()));
            original += u32::from(text.windows(8).any(|w| w == b"ORIGINAL"));
        }
        assert!((1_850..2_150).contains(&original), "{original}");
    }

    #[test]
    fn permutation_holds_every_number_once() {
        let mut numbers = permutation(&mut Prng::new(4), 3_000);
        assert_ne!(numbers[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(1..=3_000));
    }
}
