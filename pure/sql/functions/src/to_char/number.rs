//! Numbers written by patterns.

use super::pattern::{Pattern, Token, read};
use crate::cast::out_of_range;
use base::numeric::Numeric;
use base::{Decimal, SqlError, SqlState, Type};

/// The number cut to the digits of a pattern.
struct Digits {
    negative: bool,
    /// Digits before the point without leading zeros; empty below 1.
    whole: Vec<u8>,
    fraction: Vec<u8>,
    /// More digits than the pattern has room for.
    overflow: bool,
}

/// The number, if what `V` makes of it is a `bigint`.
fn shifted_whole(value: i64, pattern: &Pattern) -> Result<Decimal, SqlError> {
    let power = 10i64.checked_pow(pattern.shift as u32);
    let fits = power.is_some_and(|power| value.checked_mul(power).is_some());
    match fits {
        true => Ok(Decimal::from(value)),
        false => Err(out_of_range(Type::Int8)),
    }
}

/// The letters of a float that is no number, where the pattern has room for them.
fn letters(value: f64, sure: usize, pattern: &mut Pattern) -> Digits {
    let whole = if value.is_nan() { "NaN" } else { "Infinity" };
    let overflow = whole.len() > pattern.whole + pattern.shift;
    pattern.fraction = match overflow {
        true => pattern.fraction.min(sure.saturating_sub(whole.len())),
        false => 0,
    };
    Digits {
        negative: value == f64::NEG_INFINITY,
        whole: whole.into(),
        fraction: vec![b'0'; pattern.fraction],
        overflow,
    }
}

/// Digits of a float, rounded as the C library prints the float; the sign stays at 0. `sure`:
/// digits that the type keeps. Digits behind the point that go beyond these leave the pattern.
fn float_digits(value: f64, sure: usize, pattern: &mut Pattern) -> Digits {
    let shifted = match sure == f32::DIGITS as usize {
        true => f64::from(value as f32 * 10f32.powi(pattern.shift as i32)),
        false => value * 10f64.powi(pattern.shift as i32),
    };
    if !shifted.is_finite() {
        return letters(shifted, sure, pattern);
    }
    let before = format!("{:.0}", shifted.abs()).len();
    pattern.fraction = pattern.fraction.min(sure.saturating_sub(before));
    let text = format!("{:.*}", pattern.fraction, shifted.abs());
    split(shifted.is_sign_negative(), &text, pattern)
}

fn split(negative: bool, text: &str, pattern: &Pattern) -> Digits {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0').as_bytes().to_vec();
    // Zero has a digit before the point, too, for which there must be room.
    let overflow = whole.len().max(1) > pattern.whole + pattern.shift;
    let mut fraction = fraction.as_bytes().to_vec();
    fraction.resize(pattern.fraction, b'0');
    Digits {
        negative,
        whole,
        fraction,
        overflow,
    }
}

fn digits(value: Decimal, pattern: &Pattern) -> Digits {
    if pattern.shift == 0
        && let Ok(digits) = i32::try_from(pattern.fraction)
        && let Ok(rounded) = value.round(digits)
    {
        let text = rounded.abs().to_string();
        return split(rounded.is_negative(), &text, pattern);
    }
    large_digits(&Numeric::from(value), pattern)
}

fn large_digits(value: &Numeric, pattern: &Pattern) -> Digits {
    // Patterns are far shorter than what would overflow here.
    let power = Numeric::from(10).power(&Numeric::from(pattern.shift as i64));
    let shifted = power.map_or_else(|_| value.clone(), |power| value.mul(&power));
    let rounded = shifted.round(pattern.fraction as i64);
    split(rounded.is_negative(), &rounded.abs().to_string(), pattern)
}

/// Writes the sign, digits and blanks of one number.
struct Writer<'a> {
    pattern: &'a Pattern,
    digits: &'a Digits,
    out: String,
    /// Position of the next digit before the point.
    at: usize,
    /// Where the number begins: its first digit or the first `0` of the pattern.
    start: usize,
    /// Fraction digits that are shown.
    shown: usize,
    fraction_at: usize,
    /// Whether the floating sign has been written.
    signed: bool,
    behind_point: bool,
}

/// A number to be formatted.
#[derive(Clone, Copy)]
pub(super) enum Number<'a> {
    Exact(Decimal),
    /// One with more digits.
    Large(&'a Numeric),
    /// A `smallint` or `int`: with an exponent it is rounded as a float.
    Integer(i64),
    /// A `bigint`: what `V` shifts must be one, too.
    Whole(i64),
    /// A float, and how many decimal digits its type surely has: no more are shown.
    Float(f64, usize),
}

/// Refuses `TH` behind letters.
fn check_ordinal(digits: &Digits, pattern: &Pattern) -> Result<(), SqlError> {
    let is_letters = digits.whole.first().is_some_and(u8::is_ascii_alphabetic);
    let is_shown = !digits.overflow && !digits.negative && !pattern.has.point;
    if is_letters && is_shown && pattern.has.ordinal {
        let shown = String::from_utf8_lossy(&digits.whole);
        let message = format!("\"{shown}\" is not a number");
        return Err(SqlError::new(SqlState::INVALID_TEXT, message));
    }
    Ok(())
}

/// Formats a number.
pub(super) fn format(value: Number<'_>, pattern: &str) -> Result<String, SqlError> {
    let mut pattern = read(pattern)?;
    if pattern.has.roman {
        return roman(value, &pattern);
    }
    if pattern.has.exponent {
        return Ok(exponent(value, &pattern));
    }
    let digits = match value {
        Number::Exact(value) => digits(value, &pattern),
        Number::Large(value) => large_digits(value, &pattern),
        Number::Integer(value) => digits(Decimal::from(value), &pattern),
        Number::Whole(value) => digits(shifted_whole(value, &pattern)?, &pattern),
        Number::Float(value, sure) => float_digits(value, sure, &mut pattern),
    };
    check_ordinal(&digits, &pattern)?;
    let room = pattern.whole + pattern.shift;
    let wholes = pattern
        .tokens
        .iter()
        .take_while(|token| **token != Token::Point);
    let first_zero = wholes
        .filter(|token| matches!(token, Token::Digit(_)))
        .position(|token| *token == Token::Digit(true));
    // A number without digits before the point shows a 0 if it has none behind it either.
    let shown = shown_fraction(&pattern, &digits);
    let bare = pattern.fraction == 0 || pattern.fill && shown == 0;
    let least = usize::from(bare && room > 0);
    let start = room.saturating_sub(digits.whole.len().max(least));
    let start = if digits.overflow { 0 } else { start };
    let mut writer = Writer {
        pattern: &pattern,
        digits: &digits,
        out: String::new(),
        at: 0,
        start: first_zero.map_or(start, |zero| zero.min(start)),
        shown,
        fraction_at: 0,
        signed: false,
        behind_point: false,
    };
    let last = pattern
        .tokens
        .iter()
        .rposition(|token| matches!(token, Token::Digit(_)));
    for (i, token) in pattern.tokens.iter().enumerate() {
        if writer.is_cut(token) {
            // What stands around the last digit is shown, unless that stands before the point.
            if pattern.fraction > 0 {
                writer.behind_digits();
            }
            return Ok(writer.out);
        }
        writer.token(token);
        if Some(i) == last {
            writer.behind_digits();
        }
    }
    Ok(writer.out)
}

/// `EEEE`: a digit, those behind the point and an exponent. The other elements show nothing.
fn exponent(value: Number<'_>, pattern: &Pattern) -> String {
    let (negative, digits, power) = match value {
        Number::Exact(value) => exact_exponent(&value.to_string(), pattern.fraction),
        Number::Large(value) => exact_exponent(&value.to_string(), pattern.fraction),
        Number::Whole(value) => exact_exponent(&value.to_string(), pattern.fraction),
        Number::Integer(value) => float_exponent(value as f64, pattern.fraction),
        Number::Float(value, _) if value.is_finite() => float_exponent(value, pattern.fraction),
        Number::Float(..) => {
            let (whole, fraction) = ("#".repeat(pattern.whole), "#".repeat(pattern.fraction + 4));
            return format!(" {whole}.{fraction}");
        }
    };
    let sign = if negative { '-' } else { ' ' };
    let (first, fraction) = digits.split_at(1);
    let point = if fraction.is_empty() { "" } else { "." };
    let direction = if power < 0 { '-' } else { '+' };
    let power = power.unsigned_abs();
    format!("{sign}{first}{point}{fraction}e{direction}{power:02}")
}

/// Whether it is negative, `1 + fraction` digits, and the power of ten of the first one; ties are
/// rounded away from zero.
fn exact_exponent(value: &str, fraction: usize) -> (bool, String, i32) {
    let text = value.trim_start_matches('-');
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    let all = format!("{whole}{behind}");
    let wanted = fraction + 1;
    let Some(first) = all.bytes().position(|digit| digit != b'0') else {
        return (false, "0".repeat(wanted), 0);
    };
    let mut power = whole.len() as i32 - 1 - first as i32;
    let used = all.as_bytes()[first..].iter().take(wanted);
    let mut digits: Vec<u8> = used.copied().collect();
    let rest = all.as_bytes().get(first + wanted);
    digits.resize(wanted, b'0');
    if rest.is_some_and(|digit| *digit >= b'5') {
        match digits.iter().rposition(|digit| *digit != b'9') {
            Some(at) => {
                digits[at] += 1;
                digits[at + 1..].fill(b'0');
            }
            None => {
                digits.fill(b'0');
                digits[0] = b'1';
                power += 1;
            }
        }
    }
    let digits = String::from_utf8(digits).expect("digits are ASCII");
    (value.starts_with('-'), digits, power)
}

/// Digits that no float exceeds; formatting takes no more than 65,534.
const FLOAT_DIGITS_MAX: usize = 1_100;

/// The same of a float, rounded as the C library prints it.
fn float_exponent(value: f64, fraction: usize) -> (bool, String, i32) {
    let text = format!("{:.*e}", fraction.min(FLOAT_DIGITS_MAX), value.abs());
    let (digits, power) = text.split_once('e').expect("an exponent was asked for");
    let power = power.parse().expect("the exponent is a number");
    let mut digits = digits.replace('.', "");
    digits.extend(core::iter::repeat_n(
        '0',
        fraction.saturating_sub(FLOAT_DIGITS_MAX),
    ));
    (value.is_sign_negative(), digits, power)
}

/// Fraction digits shown: with `FM` zeros at the end only where the pattern has `0`.
fn shown_fraction(pattern: &Pattern, digits: &Digits) -> usize {
    if !pattern.fill {
        return pattern.fraction;
    }
    let used = digits
        .fraction
        .iter()
        .rposition(|digit| *digit != b'0')
        .map_or(0, |at| at + 1);
    let slots: Vec<&Token> = pattern
        .tokens
        .iter()
        .skip_while(|token| **token != Token::Point)
        .filter(|token| matches!(token, Token::Digit(_)))
        .collect();
    let fixed = slots
        .iter()
        .rposition(|token| **token == Token::Digit(true))
        .map_or(0, |at| at + 1);
    used.max(fixed).min(pattern.fraction)
}

impl Writer<'_> {
    /// Whether the sign stands right before the number by itself.
    fn floats(&self) -> bool {
        !(self.pattern.has.minus || self.pattern.has.both || self.trailing_sign())
    }

    /// `S` behind the last digit before the point; that of a pattern with `V` stands in front.
    fn trailing_sign(&self) -> bool {
        let mut tokens = self.pattern.tokens.iter();
        let digit = |token: &&Token| matches!(token, Token::Digit(_));
        let before = tokens.by_ref().take_while(|token| **token != Token::Sign);
        let before = before.filter(digit).count();
        self.pattern.has.sign
            && self.pattern.shift == 0
            && before.min(self.pattern.whole) == self.pattern.whole
    }

    /// Writes the floating sign once.
    fn sign(&mut self) {
        if core::mem::replace(&mut self.signed, true) || !self.floats() {
            return;
        }
        let fill = self.pattern.fill;
        if self.pattern.has.brackets {
            match (self.digits.negative, fill) {
                (true, _) => self.out.push('<'),
                (false, false) => self.out.push(' '),
                (false, true) => {}
            }
        } else if self.pattern.has.sign {
            self.out.push(if self.digits.negative { '-' } else { '+' });
        } else if self.digits.negative {
            self.out.push('-');
        } else if !fill {
            self.out.push(' ');
        }
    }

    /// Whether the digits of a float that are sure end here, and with them what is shown.
    fn is_cut(&self, token: &Token) -> bool {
        let digit = matches!(token, Token::Digit(_));
        digit && self.behind_point && self.fraction_at >= self.pattern.fraction
    }

    fn blank(&mut self) {
        if !self.pattern.fill {
            self.out.push(' ');
        }
    }

    fn digit(&mut self) {
        if self.behind_point {
            let at = self.fraction_at;
            self.fraction_at += 1;
            if self.digits.overflow {
                self.out.push('#');
            } else if at < self.shown {
                self.out.push(char::from(self.digits.fraction[at]));
            }
            return;
        }
        let at = self.at;
        self.at += 1;
        if at < self.start {
            self.blank();
            return;
        }
        self.sign();
        let room = self.pattern.whole + self.pattern.shift;
        let first = room.saturating_sub(self.digits.whole.len());
        self.out.push(if self.digits.overflow {
            '#'
        } else if at >= first {
            char::from(self.digits.whole[at - first])
        } else {
            '0'
        });
    }

    /// What stands right behind the last digit, wherever the pattern has it.
    fn behind_digits(&mut self) {
        let negative = self.digits.negative;
        if self.trailing_sign() {
            self.out.push(if negative { '-' } else { '+' });
        }
        if self.pattern.has.brackets {
            match (negative, self.pattern.fill) {
                (true, _) => self.out.push('>'),
                (false, false) => self.out.push(' '),
                (false, true) => {}
            }
        }
    }

    fn token(&mut self, token: &Token) {
        let negative = self.digits.negative;
        match token {
            Token::Digit(_) => self.digit(),
            Token::Point => {
                self.sign();
                self.behind_point = true;
                // A point that no digits follow is not shown.
                if self.pattern.fraction > 0 || self.digits.overflow {
                    self.out.push('.');
                }
            }
            Token::Group if self.behind_point => {}
            Token::Group if self.at > self.start || self.at > 0 && self.signed => {
                self.out.push(',');
            }
            Token::Group => self.blank(),
            Token::Sign | Token::Shift | Token::Brackets | Token::Blank | Token::Nothing => {}
            Token::Minus if negative => self.out.push('-'),
            Token::Plus if !negative => self.out.push('+'),
            Token::Minus | Token::Plus => self.blank(),
            Token::Both => self.out.push(if negative { '-' } else { '+' }),
            Token::Currency => self.out.push(' '),
            Token::Ordinal(upper) => {
                let decimal = self.pattern.has.point;
                if !negative && !decimal && !self.digits.overflow {
                    let suffix = ordinal(&self.digits.whole);
                    self.out.push_str(&if *upper {
                        suffix.to_uppercase()
                    } else {
                        suffix.into()
                    });
                }
            }
            Token::Roman(_) | Token::Exponent => {}
            Token::Literal(text) => self.out.push_str(text),
        }
    }
}

/// `st`, `nd`, `rd` or `th`.
pub(super) fn ordinal(digits: &[u8]) -> &'static str {
    match digits {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    }
}

const ROMAN: [(i64, &str); 13] = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// Roman digits of 1 to 3999, lower case.
pub(super) fn roman_digits(mut value: i64) -> String {
    let mut out = String::new();
    for (size, letters) in ROMAN {
        while value >= size {
            out.push_str(letters);
            value -= size;
        }
    }
    out
}

/// The number in Roman digits, between the literals of the pattern.
fn roman(value: Number<'_>, pattern: &Pattern) -> Result<String, SqlError> {
    let value = match value {
        Number::Exact(value) => value.to_i64().unwrap_or(i64::MAX),
        Number::Large(value) => value.to_i64().unwrap_or(i64::MAX),
        Number::Integer(value) | Number::Whole(value) => value,
        // One that is too large is no error.
        Number::Float(value, _) => i64::from(value.round_ties_even() as i32),
    };
    let integer = i32::try_from(value).map(i64::from);
    let value = integer.map_err(|_| out_of_range(Type::Int4))?;
    let digits = match value {
        1..4000 => roman_digits(value),
        _ => "#".repeat(15),
    };
    let mut out = String::new();
    for token in &pattern.tokens {
        match token {
            Token::Roman(upper) => {
                let digits = if *upper {
                    digits.clone()
                } else {
                    digits.to_lowercase()
                };
                let width = if pattern.fill { 0 } else { 15 };
                out.push_str(&format!("{digits:>width$}"));
            }
            Token::Literal(text) => out.push_str(text),
            _ => {}
        }
    }
    Ok(out)
}
