//! Patterns of numbers, and what all patterns share.
//!
//! Number patterns: `9 0 . , D G S MI PL SG PR FM TH RN V EEEE B C L SP "text" \"`.

use base::{SqlError, SqlState};

/// One element of a pattern of numbers.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
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
    /// `B`: nothing is shown.
    Blank,
    /// `C`, `SP`: nothing is shown, and nothing is meant.
    Nothing,
    /// `V`: digits behind it shift the number.
    Shift,
    /// `RN`, `rn`
    Roman(bool),
    /// `EEEE`
    Exponent,
    Literal(String),
}

/// A pattern of numbers in parts.
#[derive(Default)]
pub(super) struct Pattern {
    pub(super) tokens: Vec<Token>,
    /// `FM`: no padding.
    pub(super) fill: bool,
    /// Digit positions before and after the point.
    pub(super) whole: usize,
    pub(super) fraction: usize,
    /// Digit positions behind `V`.
    pub(super) shift: usize,
    pub(super) has: Has,
}

/// Which elements a pattern has.
#[derive(Default)]
pub(super) struct Has {
    pub(super) point: bool,
    pub(super) shift: bool,
    pub(super) sign: bool,
    pub(super) plus: bool,
    pub(super) minus: bool,
    pub(super) both: bool,
    pub(super) brackets: bool,
    pub(super) exponent: bool,
    pub(super) roman: bool,
    pub(super) ordinal: bool,
    /// `B` before the first digit.
    blank: bool,
}

/// Key words of number patterns, longer ones before those they begin with.
static WORDS: [(&str, Option<Token>); 20] = [
    ("EEEE", Some(Token::Exponent)),
    ("FM", None),
    ("MI", Some(Token::Minus)),
    ("PL", Some(Token::Plus)),
    ("PR", Some(Token::Brackets)),
    ("RN", Some(Token::Roman(true))),
    ("SG", Some(Token::Both)),
    ("SP", Some(Token::Nothing)),
    ("TH", Some(Token::Ordinal(true))),
    (",", Some(Token::Group)),
    (".", Some(Token::Point)),
    ("0", Some(Token::Digit(true))),
    ("9", Some(Token::Digit(false))),
    ("B", Some(Token::Blank)),
    ("C", Some(Token::Nothing)),
    ("D", Some(Token::Point)),
    ("G", Some(Token::Group)),
    ("L", Some(Token::Currency)),
    ("S", Some(Token::Sign)),
    ("V", Some(Token::Shift)),
];

/// Whether `rest` begins with a key word, which is written in capitals or in small letters.
pub(super) fn begins(rest: &str, word: &str) -> bool {
    let start = rest.get(..word.len()).unwrap_or("");
    start == word
        || start
            .bytes()
            .eq(word.bytes().map(|letter| letter.to_ascii_lowercase()))
}

/// The text at the start of `rest` that stands for itself, and how many bytes of the pattern it
/// takes: `"text"`, in which `\` takes the next character as it is, or `\"`.
pub(super) fn quoted(rest: &str) -> Option<(String, usize)> {
    if rest.starts_with("\\\"") {
        return Some(("\"".into(), 2));
    }
    let inside = rest.strip_prefix('"')?;
    let mut text = String::new();
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, at + 2)),
            '\\' => text.push(chars.next().map_or('\\', |(_, c)| c)),
            other => text.push(other),
        }
    }
    Some((text, rest.len()))
}

/// The next element; `None` stands for `FM`.
fn next(rest: &str) -> (usize, Option<Token>) {
    if let Some((text, length)) = quoted(rest) {
        return (length, Some(Token::Literal(text)));
    }
    let small = rest.starts_with(|c: char| c.is_ascii_lowercase());
    match WORDS.iter().find(|(word, _)| begins(rest, word)) {
        Some((word, Some(Token::Ordinal(_)))) => (word.len(), Some(Token::Ordinal(!small))),
        Some((word, Some(Token::Roman(_)))) => (word.len(), Some(Token::Roman(!small))),
        Some((word, token)) => (word.len(), token.clone()),
        None => {
            let first = rest.chars().next().expect("something is left");
            (first.len_utf8(), Some(Token::Literal(first.to_string())))
        }
    }
}

/// Reads a pattern of numbers.
///
/// # Errors
/// 42601 for elements that cannot stand together.
pub(super) fn read(pattern: &str) -> Result<Pattern, SqlError> {
    let mut found = Pattern::default();
    let mut rest = pattern;
    while !rest.is_empty() {
        let (length, token) = next(rest);
        found.check(token.as_ref())?;
        found.add(token);
        rest = &rest[length..];
    }
    Ok(found)
}

impl Pattern {
    fn add(&mut self, token: Option<Token>) {
        let Some(token) = token else {
            self.fill = true;
            return;
        };
        let has = &mut self.has;
        match token {
            Token::Digit(false) if has.shift => self.shift += 1,
            // A `0` behind `V` is a digit before the point, as in PostgreSQL.
            Token::Digit(_) if has.point => self.fraction += 1,
            Token::Digit(_) => self.whole += 1,
            Token::Point => has.point = true,
            Token::Shift => has.shift = true,
            Token::Sign => has.sign = true,
            Token::Plus => has.plus = true,
            Token::Minus => has.minus = true,
            Token::Both => has.both = true,
            Token::Brackets => has.brackets = true,
            Token::Exponent => has.exponent = true,
            Token::Roman(_) => has.roman = true,
            Token::Blank => has.blank |= self.whole == 0,
            Token::Ordinal(_) => has.ordinal = true,
            Token::Group | Token::Currency | Token::Nothing | Token::Literal(_) => {}
        }
        self.tokens.push(token);
    }

    /// Refuses what cannot stand behind the elements so far.
    fn check(&self, next: Option<&Token>) -> Result<(), SqlError> {
        let has = &self.has;
        let signed = has.plus || has.minus || has.both;
        let wrong = match next {
            Some(Token::Literal(_)) => None,
            Some(Token::Exponent) if has.exponent => Some("cannot use \"EEEE\" twice"),
            _ if has.exponent => Some("\"EEEE\" must be the last pattern used"),
            Some(Token::Digit(true)) if has.brackets => Some("\"0\" must be ahead of \"PR\""),
            Some(Token::Digit(false)) if has.brackets => Some("\"9\" must be ahead of \"PR\""),
            Some(Token::Point) if has.point => Some("multiple decimal points"),
            Some(Token::Point) if has.shift => Some(POINT_AND_SHIFT),
            Some(Token::Shift) if has.point => Some(POINT_AND_SHIFT),
            Some(Token::Sign) if has.sign => Some("cannot use \"S\" twice"),
            Some(Token::Sign) if signed || has.brackets => {
                Some("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
            }
            Some(Token::Minus) if has.sign => Some("cannot use \"S\" and \"MI\" together"),
            Some(Token::Plus) if has.sign => Some("cannot use \"S\" and \"PL\" together"),
            Some(Token::Both) if has.sign => Some("cannot use \"S\" and \"SG\" together"),
            Some(Token::Brackets) if has.sign || signed => {
                Some("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
            }
            Some(Token::Exponent) if self.is_no_exponent() => {
                let message = "\"EEEE\" is incompatible with other formats";
                let detail =
                    "\"EEEE\" may only be used together with digit and decimal point patterns.";
                return Err(SqlError::new(SqlState::SYNTAX, message).detail(detail));
            }
            _ => None,
        };
        match wrong {
            None => Ok(()),
            Some(message) => Err(SqlError::new(SqlState::SYNTAX, message)),
        }
    }

    /// Whether `EEEE` cannot stand behind the elements so far.
    fn is_no_exponent(&self) -> bool {
        let has = &self.has;
        let signed = has.sign || has.plus || has.minus || has.both || has.brackets;
        self.fill || signed || has.shift || has.roman || has.blank
    }
}

const POINT_AND_SHIFT: &str = "cannot use \"V\" and decimal point together";
