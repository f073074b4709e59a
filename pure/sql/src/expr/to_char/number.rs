//! Number patterns: `9 0 . , D G S MI PL SG PR FM TH RN V "text"`.

use base::{Datum, Decimal, SqlError, SqlState};

/// One element of a pattern.
#[derive(Clone, PartialEq, Debug)]
enum Token {
    /// `9`, or `0` (true): a digit.
    Digit(bool),
    /// `.` or `D`
    Point,
    /// `,` or `G`
    Group,
    /// `S`
    Sign,
    /// `MI`, `PL`, `SG`
    Minus,
    Plus,
    Both,
    /// `PR`
    Brackets,
    /// `TH`, `th`
    Ordinal(bool),
    /// `L`: C has no currency symbol.
    Currency,
    /// `B`: changes nothing here.
    Blank,
    /// `V`: digits behind it shift the number.
    Shift,
    /// `RN`, `rn`
    Roman(bool),
    Literal(String),
}

/// A pattern in parts.
#[derive(Default)]
struct Pattern {
    tokens: Vec<Token>,
    /// `FM`: no padding.
    fill: bool,
    /// Digit positions before and after the point.
    whole: usize,
    fraction: usize,
    /// Digit positions behind `V`.
    shift: usize,
}

fn syntax(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX, message)
}

fn read(pattern: &str) -> Result<Pattern, SqlError> {
    let mut found = Pattern::default();
    let mut rest = pattern;
    let mut point = false;
    while let Some(first) = rest.chars().next() {
        let upper: String = rest
            .chars()
            .take(4)
            .collect::<String>()
            .to_ascii_uppercase();
        let (length, token) = match upper.as_str() {
            word if word.starts_with("FM") => {
                found.fill = true;
                rest = &rest[2..];
                continue;
            }
            word if word.starts_with("MI") => (2, Token::Minus),
            word if word.starts_with("PL") => (2, Token::Plus),
            word if word.starts_with("SG") => (2, Token::Both),
            word if word.starts_with("PR") => (2, Token::Brackets),
            word if word.starts_with("TH") => (2, Token::Ordinal(rest.starts_with('T'))),
            word if word.starts_with("RN") => (2, Token::Roman(rest.starts_with('R'))),
            word if word.starts_with("EEEE") => {
                let message = "\"EEEE\" not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            _ => match first {
                '9' => (1, Token::Digit(false)),
                '0' => (1, Token::Digit(true)),
                '.' | 'D' | 'd' => (1, Token::Point),
                ',' | 'G' | 'g' => (1, Token::Group),
                'S' | 's' => (1, Token::Sign),
                'V' | 'v' => (1, Token::Shift),
                'L' | 'l' => (1, Token::Currency),
                'B' | 'b' => (1, Token::Blank),
                '"' => {
                    let end = rest[1..].find('"').map_or(rest.len(), |at| at + 1);
                    let text = rest[1..end].replace('\\', "");
                    ((end + 1).min(rest.len()), Token::Literal(text))
                }
                '\\' => {
                    let next = rest[1..].chars().next();
                    let length = 1 + next.map_or(0, char::len_utf8);
                    (
                        length,
                        Token::Literal(next.map(String::from).unwrap_or_default()),
                    )
                }
                other => (other.len_utf8(), Token::Literal(other.to_string())),
            },
        };
        match token {
            Token::Digit(_) if found.tokens.contains(&Token::Shift) => found.shift += 1,
            Token::Digit(_) if point => found.fraction += 1,
            Token::Digit(_) => found.whole += 1,
            Token::Point if point => return Err(syntax("multiple decimal points")),
            Token::Point if found.tokens.contains(&Token::Shift) => {
                return Err(syntax("cannot use \"V\" and decimal point together"));
            }
            Token::Point => point = true,
            Token::Sign if found.tokens.contains(&Token::Sign) => {
                return Err(syntax("cannot use \"S\" twice"));
            }
            _ => {}
        }
        found.tokens.push(token);
        rest = &rest[length..];
    }
    Ok(found)
}

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
        false => {
            let text = "bigint out of range";
            Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, text))
        }
    }
}

/// Digits of a float, rounded as the C library prints it; the sign stays at 0. Of those behind the
/// point only so many are left in the pattern as are sure beside those before it.
fn float_digits(value: f64, sure: usize, pattern: &mut Pattern) -> Digits {
    let shifted = match sure == f32::DIGITS as usize {
        true => f64::from(value as f32 * 10f32.powi(pattern.shift as i32)),
        false => value * 10f64.powi(pattern.shift as i32),
    };
    let before = format!("{:.0}", shifted.abs()).len();
    pattern.fraction = pattern.fraction.min(sure.saturating_sub(before));
    let text = format!("{:.*}", pattern.fraction, shifted.abs());
    split(shifted.is_sign_negative(), &text, pattern)
}

fn split(negative: bool, text: &str, pattern: &Pattern) -> Digits {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0').as_bytes().to_vec();
    let overflow = whole.len() > pattern.whole + pattern.shift;
    let mut fraction = fraction.as_bytes().to_vec();
    fraction.resize(pattern.fraction, b'0');
    Digits {
        negative,
        whole,
        fraction,
        overflow,
    }
}

fn digits(value: Decimal, pattern: &Pattern) -> Result<Digits, SqlError> {
    let shifted = match pattern.shift {
        0 => value,
        shift => {
            let power = 10i64.checked_pow(shift as u32).unwrap_or(i64::MAX);
            value.mul(Decimal::from(power))?
        }
    };
    let rounded = shifted.round(pattern.fraction.min(38) as i32)?;
    Ok(split(
        rounded.is_negative(),
        &rounded.abs().to_string(),
        pattern,
    ))
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
pub(super) enum Number {
    Exact(Decimal),
    /// A `bigint`: what `V` shifts must be one, too.
    Whole(i64),
    /// A float, and how many decimal digits its type surely has: no more are shown.
    Float(f64, usize),
}

/// Formats a number.
pub(super) fn format(value: Number, pattern: &str) -> Result<String, SqlError> {
    let mut pattern = read(pattern)?;
    if let Some(Token::Roman(upper)) = pattern
        .tokens
        .iter()
        .find(|token| matches!(token, Token::Roman(_)))
    {
        return roman(value, *upper, pattern.fill);
    }
    let digits = match value {
        Number::Exact(value) => digits(value, &pattern)?,
        Number::Whole(value) => digits(shifted_whole(value, &pattern)?, &pattern)?,
        Number::Float(value, sure) => float_digits(value, sure, &mut pattern),
    };
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
    for (i, token) in pattern.tokens.iter().enumerate() {
        if writer.is_cut(token) {
            return Ok(writer.finish_cut());
        }
        writer.token(token, i);
    }
    Ok(writer.finish())
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
    fn has(&self, wanted: fn(&Token) -> bool) -> bool {
        self.pattern.tokens.iter().any(wanted)
    }

    /// Whether the sign stands right before the number by itself.
    fn floats(&self) -> bool {
        !self.has(|token| matches!(token, Token::Minus | Token::Both)) && !self.trailing_sign()
    }

    /// `S` behind the last digit.
    fn trailing_sign(&self) -> bool {
        let last_digit = self
            .pattern
            .tokens
            .iter()
            .rposition(|token| matches!(token, Token::Digit(_)));
        let sign = self
            .pattern
            .tokens
            .iter()
            .position(|token| *token == Token::Sign);
        matches!((sign, last_digit), (Some(sign), Some(last)) if sign > last)
    }

    /// Writes the floating sign once.
    fn sign(&mut self) {
        if core::mem::replace(&mut self.signed, true) || !self.floats() {
            return;
        }
        let fill = self.pattern.fill;
        if self.has(|token| *token == Token::Brackets) {
            match (self.digits.negative, fill) {
                (true, _) => self.out.push('<'),
                (false, false) => self.out.push(' '),
                (false, true) => {}
            }
        } else if self.has(|token| *token == Token::Sign) {
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

    fn token(&mut self, token: &Token, _: usize) {
        let negative = self.digits.negative;
        match token {
            Token::Digit(_) if self.behind_point => {
                let at = self.fraction_at;
                self.fraction_at += 1;
                if self.digits.overflow {
                    self.out.push('#');
                } else if at < self.shown {
                    self.out.push(char::from(self.digits.fraction[at]));
                }
            }
            Token::Digit(_) => {
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
            Token::Sign if self.trailing_sign() => {
                self.out.push(if negative { '-' } else { '+' });
            }
            Token::Sign | Token::Shift | Token::Brackets | Token::Blank => {}
            Token::Minus if negative => self.out.push('-'),
            Token::Plus if !negative => self.out.push('+'),
            Token::Minus | Token::Plus => self.blank(),
            Token::Both => self.out.push(if negative { '-' } else { '+' }),
            Token::Currency => self.out.push(' '),
            Token::Ordinal(upper) => {
                let decimal = self.has(|token| *token == Token::Point);
                if !negative && !decimal && !self.digits.overflow {
                    let suffix = ordinal(&self.digits.whole);
                    self.out.push_str(&if *upper {
                        suffix.to_uppercase()
                    } else {
                        suffix.into()
                    });
                }
            }
            Token::Roman(_) => {}
            Token::Literal(text) => self.out.push_str(text),
        }
    }

    /// The end where the pattern has more digits than the number: what stands around the last digit
    /// is shown, unless that stands before the point.
    fn finish_cut(mut self) -> String {
        if self.pattern.fraction == 0 {
            return self.out;
        }
        if self.trailing_sign() {
            self.out.push(if self.digits.negative { '-' } else { '+' });
        }
        self.finish()
    }

    fn finish(mut self) -> String {
        if self.has(|token| *token == Token::Brackets) {
            match (self.digits.negative, self.pattern.fill) {
                (true, _) => self.out.push('>'),
                (false, false) => self.out.push(' '),
                (false, true) => {}
            }
        }
        self.out
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

fn roman(value: Number, upper: bool, fill: bool) -> Result<String, SqlError> {
    let value = match value {
        Number::Exact(value) => value.round(0)?.to_i64_exact().unwrap_or(i64::MAX),
        Number::Whole(value) => value,
        // One that is too large is no error.
        Number::Float(value, _) => i64::from(value.round_ties_even() as i32),
    };
    let integer = i32::try_from(value).map(i64::from);
    let value = integer
        .map_err(|_| SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range"))?;
    if !(1..4000).contains(&value) {
        return Ok("#".repeat(15));
    }
    let text = roman_digits(value);
    let text = if upper { text } else { text.to_lowercase() };
    Ok(if fill { text } else { format!("{text:>15}") })
}

/// `to_number(text, pattern)`: the digits and the sign where the pattern expects them.
pub(super) fn parse(text: &str, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = read(pattern)?;
    let mut number = String::new();
    let mut negative = text.contains('<') && pattern.tokens.contains(&Token::Brackets);
    let mut rest = text.chars().peekable();
    let mut behind_point = false;
    for token in &pattern.tokens {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        match token {
            Token::Digit(_) => {
                while let Some(sign) = rest.next_if(|c| matches!(c, '-' | '+' | '<')) {
                    negative |= sign == '-';
                }
                match rest.peek() {
                    Some(digit) if digit.is_ascii_digit() => number.extend(rest.next()),
                    // The number has fewer digits before the point than the pattern.
                    Some('.') if !behind_point => {}
                    _ => {}
                }
            }
            Token::Point => {
                if rest.next_if_eq(&'.').is_some() {
                    behind_point = true;
                    number.push('.');
                }
            }
            Token::Group => {
                rest.next_if_eq(&',');
            }
            Token::Sign | Token::Minus | Token::Both | Token::Plus => {
                if let Some(sign) = rest.next_if(|c| matches!(c, '-' | '+')) {
                    negative |= sign == '-';
                }
            }
            Token::Literal(text) => {
                for _ in text.chars() {
                    rest.next();
                }
            }
            Token::Currency => {
                rest.next_if(|c| !c.is_ascii_digit() && !matches!(c, '-' | '+' | '.' | ','));
            }
            Token::Brackets | Token::Ordinal(_) | Token::Shift | Token::Blank => {}
            Token::Roman(_) => {
                let message = "\"RN\" not supported for input";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
        }
    }
    if rest.any(|c| c == '-') && !pattern.tokens.contains(&Token::Plus) {
        negative = true;
    }
    if number.is_empty() || number == "." {
        let message = format!("invalid input syntax for type numeric: \"{}\"", text.trim());
        return Err(SqlError::new(SqlState::INVALID_TEXT, message));
    }
    let value: Decimal = number.trim_end_matches('.').parse()?;
    Ok(Datum::Decimal(if negative { value.neg() } else { value }))
}
