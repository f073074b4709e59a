//! How much becomes of a text, told before it is parsed.

use alloc::format;
use base::limits::STATEMENT_WORDS_MAX;
use base::{SqlError, SqlState};

/// Words that a statement counts besides its own: its tree, its plan and its answer.
const STATEMENT_WORDS: usize = 8;
/// Bytes of memory that a word takes while it is parsed, bound and planned, about (measured: 540
/// to 1,000; OR of many conditions 3,000).
const WORD_BYTES: u64 = 1_024;

/// Bytes of memory that parsing, binding and planning of a text take, about.
pub fn memory_bytes(text: &str) -> u64 {
    words(text) as u64 * WORD_BYTES
}

/// 54001: a text whose words would keep the shard busy for seconds.
pub(super) fn check(text: &str) -> Result<(), SqlError> {
    // No word is shorter than a byte.
    if text.len() <= STATEMENT_WORDS_MAX {
        return Ok(());
    }
    let words = words(text);
    if words <= STATEMENT_WORDS_MAX {
        return Ok(());
    }
    let message = "statement is too complex";
    Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .detail(format!(
            "It has about {words} words, numbers, strings and signs; {STATEMENT_WORDS_MAX} are \
             allowed."
        ))
        .hint("Use COPY, an array as a parameter, or several statements."))
}

/// Names, numbers, strings and signs of a text, and some more for each statement. Exact as far as
/// quotes go; comments and dollar-quoted strings count like code.
fn words(text: &str) -> usize {
    let mut count = 0;
    let mut in_word = false;
    let mut bytes = text.bytes();
    let mut before = b' ';
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' | b'"' => {
                let escapes = byte == b'\'' && matches!(before, b'e' | b'E');
                while let Some(inner) = bytes.next() {
                    if inner == byte {
                        break;
                    }
                    if escapes && inner == b'\\' {
                        bytes.next();
                    }
                }
                count += 1;
                in_word = false;
            }
            b';' => {
                count += STATEMENT_WORDS;
                in_word = false;
            }
            b if b.is_ascii_whitespace() => in_word = false,
            b if b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || !b.is_ascii() => {
                count += usize::from(!in_word);
                in_word = true;
            }
            _ => {
                count += 1;
                in_word = false;
            }
        }
        before = byte;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn words_are_counted_outside_of_quotes() {
        assert_eq!(words("select a, 'b c ''d'' e' from \"x y\".t"), 9);
        assert_eq!(words("values (1.5),(2)"), 8);
        assert_eq!(words("E'it\\'s' || 'x'"), 5);
        assert_eq!(words("select 1; select 2"), 4 + STATEMENT_WORDS);
        assert_eq!(words(""), 0);
        assert_eq!(words("'no end"), 1);
    }

    #[test]
    fn a_text_of_too_many_words_is_refused_before_it_is_parsed() {
        let tuples = |count: usize| {
            let values = "(1),".repeat(count);
            let mut text = String::from("insert into t values ");
            text.push_str(values.trim_end_matches(','));
            text
        };
        assert_eq!(
            super::super::parse(&tuples(1_000)).map(|all| all.len()),
            Ok(1)
        );
        let error = super::super::parse(&tuples(STATEMENT_WORDS_MAX / 4 + 1)).expect_err("refused");
        assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
        let long = alloc::format!("select '{}'", "x".repeat(STATEMENT_WORDS_MAX + 1));
        assert_eq!(super::super::parse(&long).map(|all| all.len()), Ok(1));
    }
}
