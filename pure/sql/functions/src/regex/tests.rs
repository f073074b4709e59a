//! Patterns against texts, with the matches that PostgreSQL 15 finds.

use super::Regex;
use base::SqlState;

fn found(pattern: &str, text: &str) -> Option<String> {
    let captures = Regex::new(pattern, false)
        .expect("a valid pattern")
        .find_at(text, 0)?;
    let (start, end) = captures[0].expect("the whole match");
    Some(text[start..end].to_string())
}

#[test]
fn leftmost_longest() {
    for (pattern, text, expected) in [
        ("a|ab", "xab", Some("ab")),
        ("a*", "aaa", Some("aaa")),
        ("a*?", "aaa", Some("")),
        ("a+?b", "aaab", Some("aaab")),
        ("b", "abc", Some("b")),
        ("^(pg_class)$", "pg_class", Some("pg_class")),
        ("^(pg_class)$", "pg_class2", None),
        ("[[:digit:]]{2,3}", "a1b1234", Some("123")),
        ("[^a-c]+", "abcxyz", Some("xyz")),
        ("[]a]+", "x]a]", Some("]a]")),
        ("\\d+\\.\\d*", "v15.3", Some("15.3")),
        ("\\mfoo\\M", "a foo b", Some("foo")),
        ("(?i)FOO", "xfoo", Some("foo")),
        ("***=a.b", "a.b", Some("a.b")),
        ("x{0}y", "xy", Some("y")),
        ("", "abc", Some("")),
        ("(a|b)*c", "ababc", Some("ababc")),
        ("a.c", "a\nc", Some("a\nc")),
        ("a{,2}", "a{,2}", Some("a{,2}")),
    ] {
        assert_eq!(
            found(pattern, text).as_deref(),
            expected,
            "{pattern} in {text}"
        );
    }
}

#[test]
fn groups_are_captured() {
    let regex = Regex::new("(\\w+)@(\\w+)(\\.com)?", false).expect("a valid pattern");
    let captures = regex.find_at("mail bob@example now", 0).expect("a match");
    assert_eq!(captures, [Some((5, 16)), Some((5, 8)), Some((9, 16)), None]);
}

#[test]
fn malformed_patterns_are_refused() {
    for (pattern, reason) in [
        ("(", "parentheses () not balanced"),
        (")", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("*a", "quantifier operand invalid"),
        ("a**", "quantifier operand invalid"),
        ("a{2,1}", "invalid repetition count(s)"),
        ("a{256}", "invalid repetition count(s)"),
        ("[z-a]", "invalid character range"),
        ("[[:foo:]]", "invalid character class"),
        ("\\", "invalid escape \\ sequence"),
    ] {
        let error = Regex::new(pattern, false)
            .err()
            .expect("a malformed pattern");
        let expected = format!("invalid regular expression: {reason}");
        assert_eq!(error.fields().message, expected, "{pattern}");
    }
}

/// Patterns that take exponential time when each choice is tried in turn.
#[test]
fn time_is_bounded() {
    let text = "a".repeat(5_000);
    assert!(
        !Regex::new("(a*)*b", false)
            .expect("a valid pattern")
            .is_match(&text)
            .expect("little work")
    );
    assert!(
        !Regex::new("(a|aa)+$b", false)
            .expect("a valid pattern")
            .is_match(&text)
            .expect("little work")
    );
    assert!(Regex::new("((a{1,50}){1,50}){1,50}", false).is_err());
    assert!(Regex::new(&"(".repeat(100_000), false).is_err());
}

#[test]
fn work_is_bounded() {
    // Each match is looked for up to the end of the text.
    let text = "a".repeat(100_000);
    let regex = Regex::new("a+b|a", false).expect("a valid pattern");
    let mut at = 0;
    while regex.find_at(&text, at).is_some() {
        at += 1;
    }
    assert!(at < text.len());
    let error = regex.check().expect_err("it was given up");
    assert_eq!(error.state(), SqlState::STATEMENT_TOO_COMPLEX);
    // One pass over the text is not.
    let words = "word and ".repeat(20_000);
    let regex = Regex::new("\\m(a|an|and)\\M", false).expect("a valid pattern");
    let (mut at, mut count) = (0, 0);
    while let Some(found) = regex.find_at(&words, at) {
        (at, count) = (found[0].expect("a match").1, count + 1);
    }
    assert_eq!(count, 20_000);
    regex.check().expect("little work");
}

/// Where no match can begin no thread begins; what is found is the same.
#[test]
fn places_are_passed() {
    for (pattern, text, expected) in [
        ("\u{e4}b", "xx\u{e4}a\u{e4}b", Some((5, 8))),
        ("[^a]b", "aab\u{20ac}b", Some((3, 7))),
        ("b+$", "abab\nbb", Some((5, 7))),
        ("^b", "ab", None),
        ("\\yb", "ab b", Some((3, 4))),
        ("b*", "ab", Some((0, 0))),
    ] {
        let regex = Regex::new(pattern, false).expect("a valid pattern");
        let found = regex.find_at(text, 0).and_then(|found| found[0]);
        assert_eq!(found, expected, "{pattern}");
    }
}
