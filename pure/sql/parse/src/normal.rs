//! The normal text of a statement: its constants are `$1`, `$2`, ..., so that executions that
//! differ in their values alone are counted together (`pg_stat_statements`).
//!
//! It is read from the text alone, without its meaning. Constants of SELECT, INSERT, UPDATE,
//! DELETE, MERGE, VALUES, TABLE and WITH are replaced; other statements keep theirs, as in
//! PostgreSQL. What is no constant of an expression stays: numbers behind ORDER BY and GROUP BY,
//! modifiers of types, IS NULL.
//!
//! The hash tells statements apart: white space, comments and the case of words do not count.

use base::lookup::FixedHasher;
use core::hash::Hasher;

/// Bytes of a text that are read at most. What comes behind does not tell statements apart.
const READ_BYTES_MAX: usize = 32 << 10;

/// A statement's normal text.
#[derive(PartialEq, Eq, Debug)]
pub struct Normal {
    /// The text, without what stands around it.
    pub text: String,
    /// Equal for statements that are counted together.
    pub hash: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A word; `true`: it is quoted.
    Word(bool),
    Number,
    Text,
    Parameter,
    Sign,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
}

/// The normal form of the text of one statement. Its text has `bytes_max` bytes at most.
pub fn normal(text: &str, bytes_max: usize) -> Normal {
    let text = cut(text, READ_BYTES_MAX).trim_matches([' ', '\t', '\n', '\r', '\x0c', ';']);
    let tokens = tokens(text);
    let replaces = is_counted_by_shape(text, &tokens);
    let mut next = 1 + tokens
        .iter()
        .map(|it| parameter(text, it))
        .max()
        .unwrap_or(0);
    let mut hasher = FixedHasher::default();
    let (mut out, mut copied) = (String::new(), 0);
    let mut place = Place::default();
    for (at, token) in tokens.iter().enumerate() {
        let word = &text[token.start..token.end];
        if replaces && place.is_constant(text, &tokens, at) {
            let mut start = token.start;
            // A sign in front of a number is part of it where it is no operator.
            if token.kind == Kind::Number && place.is_negative(text, &tokens, at) {
                start = tokens[at - 1].start;
            }
            out.push_str(&text[copied..start]);
            out.push_str(&format!("${next}"));
            next += 1;
            copied = token.end;
            hasher.write_u8(1);
        } else if !(replaces && is_sign_of_number(text, &tokens, at)) {
            match token.kind {
                Kind::Word(false) => hasher.write(word.to_ascii_lowercase().as_bytes()),
                Kind::Word(true) | Kind::Number | Kind::Text | Kind::Sign => {
                    hasher.write(word.as_bytes());
                }
                // A parameter stands for the same as a constant.
                Kind::Parameter => hasher.write_u8(1),
            }
        }
        place.pass(text, token);
    }
    out.push_str(&text[copied..]);
    Normal {
        text: cut(&out, bytes_max).to_owned(),
        hash: hasher.finish(),
    }
}

/// The first word of a statement in lower case; empty if there is none.
pub fn first_word(text: &str) -> String {
    let tokens = tokens(cut(text, 1024));
    let first = tokens.iter().find(|it| it.kind == Kind::Word(false));
    first.map_or(String::new(), |it| {
        text[it.start..it.end].to_ascii_lowercase()
    })
}

/// At most this many bytes of a text.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Whether the statement's constants are replaced.
fn is_counted_by_shape(text: &str, tokens: &[Token]) -> bool {
    let opens = |it: &&Token| &text[it.start..it.end] == "(";
    let first = tokens.iter().find(|it| !opens(it));
    first.is_some_and(|it| {
        let word = text[it.start..it.end].to_ascii_lowercase();
        let words = "select insert update delete merge values table with";
        it.kind == Kind::Word(false) && words.split(' ').any(|known| known == word)
    })
}

/// The number of a parameter; 0 for other tokens.
fn parameter(text: &str, token: &Token) -> u32 {
    match token.kind {
        Kind::Parameter => text[token.start + 1..token.end].parse().unwrap_or(0),
        Kind::Word(_) | Kind::Number | Kind::Text | Kind::Sign => 0,
    }
}

/// Where a token stands.
#[derive(Default)]
struct Place {
    /// Depth of parentheses.
    depth: u32,
    /// Depth of the list behind ORDER BY or GROUP BY that is open.
    by: Option<u32>,
    /// Depth of the parentheses behind the name of a type that are open.
    modifiers: Option<u32>,
}

/// Words that end the list behind ORDER BY or GROUP BY.
const ENDS: &str = "limit offset fetch for having window union intersect except order returning";
/// Types with modifiers.
const TYPES: &str = "varchar char character varying bpchar numeric decimal dec bit time timestamp \
                     interval float timetz timestamptz";

fn is_among(word: &str, words: &str) -> bool {
    words
        .split(' ')
        .any(|known| word.eq_ignore_ascii_case(known))
}

impl Place {
    fn pass(&mut self, text: &str, token: &Token) {
        let word = &text[token.start..token.end];
        match word {
            "(" => self.depth += 1,
            ")" => {
                self.depth = self.depth.saturating_sub(1);
                self.by = self.by.filter(|depth| *depth <= self.depth);
                self.modifiers = self.modifiers.filter(|depth| *depth < self.depth);
            }
            _ if token.kind != Kind::Word(false) => {}
            _ if word.eq_ignore_ascii_case("by") => self.by = Some(self.depth),
            _ if self.by == Some(self.depth) && is_among(word, ENDS) => self.by = None,
            _ if is_among(word, TYPES) && text[token.end..].starts_with('(') => {
                self.modifiers = Some(self.depth);
            }
            _ => {}
        }
    }

    /// Whether the token is a constant of an expression.
    fn is_constant(&self, text: &str, tokens: &[Token], at: usize) -> bool {
        let word = |at: Option<usize>| {
            let token = at.and_then(|at| tokens.get(at));
            token.map_or("", |it| &text[it.start..it.end])
        };
        let (before, this) = (word(at.checked_sub(1)), word(Some(at)));
        match tokens[at].kind {
            Kind::Text => true,
            Kind::Number => {
                let listed = before.eq_ignore_ascii_case("by") || before == ",";
                let alone = matches!(word(Some(at + 1)), "," | ")" | "" | ";")
                    || is_among(word(Some(at + 1)), ENDS)
                    || is_among(word(Some(at + 1)), "asc desc nulls");
                let position = self.by == Some(self.depth) && listed && alone;
                !position && self.modifiers.is_none()
            }
            Kind::Word(false) if is_among(this, "true false null") => {
                let negated = before.eq_ignore_ascii_case("not");
                let test = match negated {
                    true => word(at.checked_sub(2)),
                    false => before,
                };
                !test.eq_ignore_ascii_case("is") && !matches!(before, "." | "\"")
            }
            Kind::Word(_) | Kind::Parameter | Kind::Sign => false,
        }
    }

    /// Whether the number has a sign of its own in front.
    fn is_negative(&self, text: &str, tokens: &[Token], at: usize) -> bool {
        at > 0 && is_sign_of_number(text, tokens, at - 1)
    }
}

/// Whether the token is a minus that belongs to the number behind it.
fn is_sign_of_number(text: &str, tokens: &[Token], at: usize) -> bool {
    let sign = &tokens[at];
    if &text[sign.start..sign.end] != "-"
        || tokens
            .get(at + 1)
            .is_none_or(|next| next.kind != Kind::Number)
    {
        return false;
    }
    let Some(before) = at.checked_sub(1).map(|at| &tokens[at]) else {
        return true;
    };
    let word = &text[before.start..before.end];
    match before.kind {
        Kind::Number | Kind::Text | Kind::Parameter | Kind::Word(true) => false,
        Kind::Word(false) => is_among(
            word,
            "select where and or not between in then else when limit offset by on having values \
             returning like set case distinct all",
        ),
        Kind::Sign => !matches!(word, ")" | "]"),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// The tokens of a text, without white space and comments.
fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let rest = &bytes[at..];
        at += match rest {
            [b' ' | b'\t' | b'\n' | b'\r' | b'\x0c', ..] => 1,
            [b'-', b'-', ..] => rest
                .iter()
                .position(|it| *it == b'\n')
                .unwrap_or(rest.len()),
            [b'/', b'*', ..] => comment_bytes(rest),
            _ => {
                let (kind, length) = token(text, at);
                let end = (at + length).min(bytes.len());
                found.push(Token { kind, start, end });
                end - start
            }
        };
    }
    found
}

/// The kind of the token that begins at a place, and its bytes.
fn token(text: &str, at: usize) -> (Kind, usize) {
    let rest = &text.as_bytes()[at..];
    match rest {
        [b'\'', ..] => (Kind::Text, quoted_bytes(rest, b'\'', false)),
        [b'e' | b'E', b'\'', ..] => (Kind::Text, 1 + quoted_bytes(&rest[1..], b'\'', true)),
        [b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => {
            (Kind::Text, 1 + quoted_bytes(&rest[1..], b'\'', false))
        }
        [b'u' | b'U', b'&', b'\'', ..] => (Kind::Text, 2 + quoted_bytes(&rest[2..], b'\'', false)),
        [b'u' | b'U', b'&', b'"', ..] => {
            (Kind::Word(true), 2 + quoted_bytes(&rest[2..], b'"', false))
        }
        [b'"', ..] => (Kind::Word(true), quoted_bytes(rest, b'"', false)),
        [b'$', b'0'..=b'9', ..] => {
            let digits = rest[1..].iter().take_while(|it| it.is_ascii_digit());
            (Kind::Parameter, 1 + digits.count())
        }
        [b'$', ..] => match dollar_bytes(text, at) {
            1 => (Kind::Sign, 1),
            length => (Kind::Text, length),
        },
        [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => (Kind::Number, number_bytes(rest)),
        [byte, ..] if is_word(*byte) => {
            let length = rest.iter().take_while(|it| is_word(**it)).count();
            (Kind::Word(false), length)
        }
        _ => (Kind::Sign, 1),
    }
}

/// Bytes of what stands in quotes, which are doubled within.
fn quoted_bytes(bytes: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Bytes of a text in dollar quotes; 1: it is none.
fn dollar_bytes(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let Some(tag) = rest[1..].find('$') else {
        return 1;
    };
    let tag = &rest[..tag + 2];
    if !tag[1..tag.len() - 1].bytes().all(is_word) {
        return 1;
    }
    let end = rest[tag.len()..].find(tag);
    end.map_or(rest.len(), |end| tag.len() + end + tag.len())
}

fn comment_bytes(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < bytes.len() && depth > 0 {
        match &bytes[at..] {
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            _ => at += 1,
        }
    }
    at.min(bytes.len())
}

fn number_bytes(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|it| it.is_ascii_digit())
            .count()
    };
    let mut at = digits(0);
    if bytes.get(at) == Some(&b'.') && bytes.get(at + 1) != Some(&b'.') {
        at += 1;
        at += digits(at);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let more = bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit);
        if more {
            at += 1 + sign;
            at += digits(at);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        normal(text, 1000).text
    }

    #[test]
    fn constants_are_numbered_behind_the_parameters() {
        let cases = [
            ("select 1", "select $1"),
            (
                " SELECT a FROM t WHERE k = 'x''y' ; ",
                "SELECT a FROM t WHERE k = $1",
            ),
            ("select $2::int + 5, $1", "select $2::int + $3, $1"),
            (
                "select -5, a -5, 3 - 4, (-1.5e3)",
                "select $1, a -$2, $3 - $4, ($5)",
            ),
            (
                "select a from t order by 1, 2 limit 3",
                "select a from t order by 1, 2 limit $1",
            ),
            (
                "select a from t group by 1 having sum(b) > 2",
                "select a from t group by 1 having sum(b) > $1",
            ),
            (
                "select a from t order by b + 1",
                "select a from t order by b + $1",
            ),
            (
                "select null, true where a is not null and b is false",
                "select $1, $2 where a is not null and b is false",
            ),
            (
                "select 1::numeric(10,2), 'a'::varchar(5)",
                "select $1::numeric(10,2), $2::varchar(5)",
            ),
            (
                "insert into t1 values (1, 'a'), (E'\\'', $$x$$)",
                "insert into t1 values ($1, $2), ($3, $4)",
            ),
            (
                "select /* 1 */ a2 -- 'x'\n from \"t 1\" where x = 1",
                "select /* 1 */ a2 -- 'x'\n from \"t 1\" where x = $1",
            ),
            ("set a = 5", "set a = 5"),
            (
                "create table t (a numeric(3,1) default 5)",
                "create table t (a numeric(3,1) default 5)",
            ),
            ("select a[1:2], 'é", "select a[$1:$2], $3"),
            ("", ""),
        ];
        for (given, expected) in cases {
            assert_eq!(text(given), expected, "{given}");
        }
    }

    #[test]
    fn the_hash_ignores_values_case_and_white_space() {
        let hash = |text: &str| normal(text, 1000).hash;
        let same = [
            "select a from t where b = 1",
            "SELECT  a\nFROM t where b = -17",
            "select a from t where b = $1",
            "select a from t /* x */ where b = 'é'",
        ];
        for other in same {
            assert_eq!(hash(same[0]), hash(other), "{other}");
        }
        let others = [
            "select a from u where b = 1",
            "select a from t where c = 1",
            "select a from t where b - 1",
            "select a from \"T\" where b = 1",
        ];
        for other in others {
            assert_ne!(hash(same[0]), hash(other), "{other}");
        }
        assert_ne!(hash("set a = 1"), hash("set a = 2"));
    }

    #[test]
    fn no_text_is_too_odd() {
        let mut prng = base::Prng::new(7);
        let pieces = [
            "'", "\"", "$", "$1", "$a$", "é", "/*", "*/", "--", "\n", "E'", "\\", "1", ".", "e",
            "-", "(", ")", "select ", "by ", "numeric(", "U&'", "null ", "is not ",
        ];
        for _ in 0..20_000 {
            let count = prng.below(12);
            let text: String = (0..count)
                .map(|_| pieces[prng.below(pieces.len() as u64) as usize])
                .collect();
            let text = format!("select {text}");
            let long = normal(&text, 20);
            assert!(long.text.len() <= 20);
        }
        let long = format!("select '{}'", "é".repeat(40_000));
        assert_eq!(normal(&long, 100).text, "select $1");
        assert_eq!(first_word("/* x */ (Select 1)"), "select");
    }
}
