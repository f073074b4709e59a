//! Numbers read by patterns: `to_number`.
//!
//! As PostgreSQL 15 does it: each element of the pattern looks at the byte of the text that is next
//! and, as a rule, takes it whether it fits or not. So a text that is not of the pattern's form
//! gives a number all the same, `to_number('1.5', '999')` for example 15. The digits that were read
//! must fit into those that the pattern has before the point (22003).

use super::pattern::{Pattern, Token, read};
use base::{Datum, Decimal, SqlError, SqlState};

/// Where reading a text by a pattern has come to.
struct Reader<'a> {
    pattern: &'a Pattern,
    text: &'a [u8],
    at: usize,
    sign: Option<u8>,
    /// Digits, and the point among them.
    number: String,
    /// Digits before and behind the point so far.
    whole: usize,
    fraction: usize,
    behind_point: bool,
}

/// `to_number(text, pattern)`.
///
/// # Errors
/// 42601 for a pattern that cannot be, 0A000 for `RN` and `EEEE`, 22P02 if there are no digits,
/// 22003 if there are too many.
pub(super) fn parse(text: &str, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = read(pattern)?;
    let mut reader = Reader {
        pattern: &pattern,
        text: text.as_bytes(),
        at: 0,
        sign: None,
        number: String::new(),
        whole: 0,
        fraction: 0,
        behind_point: false,
    };
    // These are refused wherever they stand, also behind the end of the text.
    for token in &pattern.tokens {
        match token {
            Token::Roman(_) => return Err(not_for_input("RN")),
            Token::Exponent => return Err(not_for_input("EEEE")),
            _ => {}
        }
    }
    for token in &pattern.tokens {
        if reader.is_over() {
            break;
        }
        reader.token(token)?;
    }
    let value = reader.value()?;
    if !pattern.has.shift {
        return Ok(Datum::Decimal(value));
    }
    // PostgreSQL takes it times a power of ten with 16 digits.
    let power = match pattern.shift {
        shift @ ..=16 => Decimal::ONE.div(Decimal::from(10_i64.pow(shift as u32)))?,
        _ => Decimal::from(0),
    };
    Ok(Datum::Decimal(value.mul(power.round(16)?)?))
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The byte that is next, 0 at the end.
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Takes one character, or what is left of one.
    fn skip(&mut self) {
        self.at += 1;
        while self.next() & 0xc0 == 0x80 {
            self.at += 1;
        }
    }

    /// Takes characters that cannot be part of a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            if self.is_over() || b"0123456789.,+-".contains(&self.next()) {
                break;
            }
            self.skip();
        }
    }

    fn token(&mut self, token: &Token) -> Result<(), SqlError> {
        let has = &self.pattern.has;
        match token {
            Token::Digit(_) => self.digit(true),
            Token::Point => self.digit(false),
            Token::Group => {
                if !self.pattern.fill && self.next() == b',' {
                    self.at += 1;
                }
            }
            Token::Minus => self.sign_of_its_own(b"-"),
            Token::Plus => self.sign_of_its_own(b"+"),
            Token::Both => self.sign_of_its_own(b"-+"),
            Token::Currency => self.skip_others(1),
            Token::Ordinal(_) => {
                if !has.point {
                    self.skip_others(2);
                }
            }
            Token::Literal(text) => {
                for _ in text.chars() {
                    if !self.is_over() {
                        self.skip();
                    }
                }
            }
            Token::Sign | Token::Brackets | Token::Shift | Token::Blank | Token::Nothing => {}
            Token::Roman(_) | Token::Exponent => unreachable!("refused before"),
        }
        Ok(())
    }

    /// `MI`, `PL` and `SG`.
    fn sign_of_its_own(&mut self, signs: &[u8]) {
        if signs.contains(&self.next()) {
            self.sign = Some(self.next());
            self.at += 1;
        } else {
            self.skip_others(1);
        }
    }

    /// A place of a digit (`signs`: a sign may stand before the first one) or of the point.
    fn digit(&mut self, signs: bool) {
        self.read_place(signs);
        // What does not fit is passed over.
        self.at += 1;
    }

    fn read_place(&mut self, signs: bool) {
        let has = &self.pattern.has;
        if self.next() == b' ' {
            self.at += 1;
        }
        if self.sign.is_none() && signs && self.whole + self.fraction == 0 {
            self.leading_sign();
        }
        if self.is_over() {
            return;
        }
        let mut taken = false;
        let next = self.next();
        if next.is_ascii_digit() {
            if self.behind_point && self.fraction == self.pattern.fraction {
                return;
            }
            self.number.push(char::from(next));
            match self.behind_point {
                true => self.fraction += 1,
                false => self.whole += 1,
            }
            taken = true;
        } else if has.point && !self.behind_point && next == b'.' {
            self.number.push('.');
            self.behind_point = true;
            taken = true;
        }
        if self.sign.is_none() && self.whole + self.fraction > 0 {
            self.trailing_sign(taken);
        }
    }

    fn leading_sign(&mut self) {
        let brackets = self.pattern.has.brackets;
        match self.next() {
            b'<' if !brackets => return,
            b'-' | b'<' => self.sign = Some(b'-'),
            b'+' => self.sign = Some(b'+'),
            _ => return,
        }
        self.at += 1;
    }

    /// A sign right behind the digits so far. `taken`: the present place has been read.
    fn trailing_sign(&mut self, taken: bool) {
        let has = &self.pattern.has;
        let is_sign = |byte: &u8| matches!(byte, b'-' | b'+');
        if has.sign {
            let behind = self.text.get(self.at + 1).filter(|byte| is_sign(byte));
            if let (Some(sign), true) = (behind, taken) {
                self.sign = Some(*sign);
                self.at += 1;
            }
        } else if !taken && (has.plus || has.minus || has.both) {
            self.sign = Some(self.next()).filter(is_sign);
        }
    }

    fn value(&self) -> Result<Decimal, SqlError> {
        let sign = self.sign.map_or(' ', char::from);
        let number = self.number.strip_suffix('.').unwrap_or(&self.number);
        if !number.bytes().any(|byte| byte.is_ascii_digit()) {
            let message = format!("invalid input syntax for type numeric: \"{sign}{number}\"");
            return Err(SqlError::new(SqlState::INVALID_TEXT, message));
        }
        let value: Decimal = number.parse()?;
        let scale = self.fraction.min(38) as u8;
        let precision = self.pattern.whole + self.pattern.shift + self.fraction;
        let value = value.rescale(precision.min(38) as u8, scale)?;
        Ok(match self.sign {
            Some(b'-') => value.neg(),
            _ => value,
        })
    }
}

fn not_for_input(word: &str) -> SqlError {
    let message = format!("\"{word}\" not supported for input");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}
