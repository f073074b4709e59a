//! Normal form, errors, order and keys.

use super::*;
use core::cmp::Ordering;

fn normal(text: &str) -> String {
    normalise(text).unwrap()
}

#[test]
fn normal_form() {
    let cases = [
        (" 1 ", "1"),
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("1e5", "100000"),
        ("1.50e1", "15.0"),
        ("12.345e-2", "0.12345"),
        ("1e-3", "0.001"),
        ("1.5e-3", "0.0015"),
        ("0e10", "0"),
        ("0e-2", "0.00"),
        ("123456.789e2", "12345678.9"),
        ("[1 ,2,[ ]]", "[1, 2, []]"),
        (
            r#"{"b":1,"a":2,"b":3,"aa":0}"#,
            r#"{"a": 2, "b": 3, "aa": 0}"#,
        ),
        (
            r#""\u00e9\ud83d\ude00\/\u001f""#,
            "\"\u{e9}\u{1f600}/\\u001f\"",
        ),
        ("{}", "{}"),
    ];
    for (text, wanted) in cases {
        assert_eq!(normal(text), wanted, "{text}");
        assert_eq!(normal(wanted), wanted);
        assert_eq!(check(text), Ok(()));
    }
}

#[test]
fn errors_are_postgres() {
    let cases = [
        (
            "",
            "The input string ended unexpectedly.",
            "JSON data, line 1: ",
        ),
        (
            "{",
            "The input string ended unexpectedly.",
            "JSON data, line 1: {",
        ),
        (
            "[1,]",
            "Expected JSON value, but found \"]\".",
            "JSON data, line 1: [1,]",
        ),
        ("{a}", "Token \"a\" is invalid.", "JSON data, line 1: {a..."),
        (
            "{1:2}",
            "Expected string or \"}\", but found \"1\".",
            "JSON data, line 1: {1...",
        ),
        (
            "[\n1 2]",
            "Expected \",\" or \"]\", but found \"2\".",
            "JSON data, line 2: 1 2...",
        ),
        (
            "1 1",
            "Expected end of input, but found \"1\".",
            "JSON data, line 1: 1 1",
        ),
        (
            "\"\\x\"",
            "Escape sequence \"\\x\" is invalid.",
            "JSON data, line 1: \"\\x...",
        ),
        ("01", "Token \"01\" is invalid.", "JSON data, line 1: 01"),
        ("nul", "Token \"nul\" is invalid.", "JSON data, line 1: nul"),
    ];
    for (text, detail, context) in cases {
        let error = normalise(text).unwrap_err();
        assert_eq!(
            (error.detail.as_str(), error.context.as_str()),
            (detail, context),
            "{text}"
        );
        assert_eq!(error.state, "22P02");
        assert_eq!(check(text), Err(error));
    }
    assert_eq!(normalise("\"\\u0000\"").unwrap_err().state, "22P05");
    assert_eq!(check("\"\\u0000\""), Ok(()));
    assert_eq!(normalise("1e200000").unwrap_err().state, "22003");
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert_eq!(normal(&deep(DEPTH_MAX)), deep(DEPTH_MAX));
    assert_eq!(normalise(&deep(DEPTH_MAX + 1)).unwrap_err().state, "54001");
    assert_eq!(check(&deep(1_000_000)).unwrap_err().state, "54001");
}

/// Ascending.
const ORDERED: &[&str] = &[
    "[]",
    "null",
    "\"\"",
    "\"\\u0001\"",
    "\"a\"",
    "\"aa\"",
    "\"b\"",
    "-100.5",
    "-100",
    "-0.01",
    "0",
    "0.0001",
    "0.01",
    "1",
    "1.5",
    "9",
    "10",
    "100",
    "false",
    "true",
    "[null]",
    "[1]",
    "[[]]",
    "[{}]",
    "[1, 2]",
    "[1, 3]",
    "{}",
    "{\"a\": 1}",
    "{\"a\": 2}",
    "{\"b\": 0}",
    "{\"a\": 0, \"b\": 0}",
];

#[test]
fn order_and_keys_agree() {
    let key = |text: &str| {
        let mut bytes = Vec::new();
        encode_key(text, &mut bytes);
        bytes
    };
    for (i, a) in ORDERED.iter().enumerate() {
        for (j, b) in ORDERED.iter().enumerate() {
            assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
            assert_eq!(key(a).cmp(&key(b)), i.cmp(&j), "key of {a} {b}");
        }
        let bytes = key(a);
        let mut rest = bytes[1..].iter().copied();
        assert_eq!(
            decode_key(bytes[0], &mut || rest.next()).as_deref(),
            Some(*a)
        );
        assert_eq!(rest.next(), None);
    }
    assert_eq!(compare("1", "1.00"), Ordering::Equal);
    assert_eq!(key("[1.10, -20]"), key("[1.1, -20.0]"));
}

#[test]
fn views_and_changes() {
    let text = normal(r#"{"a":[1,"x\n",{"b":null}],"":true}"#);
    let value = Value::new(&text);
    let path = ["a", "-1", "b"];
    assert_eq!(
        value.at_path(path.into_iter()).map(Value::text),
        Some("null")
    );
    let item = value.member("a").and_then(|a| a.item(1)).unwrap();
    assert_eq!(item.shown().unwrap().as_deref(), Some("x\n"));
    assert_eq!(value.member("").map(Value::text), Some("true"));
    let set = edit_path("{}", &[Some("k")], Edit::Set("1")).unwrap();
    assert_eq!(set, "{\"k\": 1}");
    let inserted = edit_path("[1, 2]", &[Some("-1")], Edit::InsertAfter("3")).unwrap();
    assert_eq!(inserted, "[1, 2, 3]");
    assert_eq!(concat("{\"a\": 1}", "[2]").unwrap(), "[{\"a\": 1}, 2]");
    assert!(contains("[1, 2, [1]]", "[[1], 2.0]") && contains("[1]", "1"));
    assert!(!contains("1", "[1]") && !contains("{\"a\": 1}", "{\"a\": 2}"));
    assert_eq!(pretty("[]", 100).as_deref(), Some("[\n]"));
    assert_eq!(pretty("[1, 2]", 5), None);
}

#[test]
fn views_of_any_text_end() {
    for text in [
        "", "[", "{\"a", "[1,,]", "}{", "\\", "\"", "[\"\\", "{\"a\":}", "[}]",
    ] {
        let value = Value::new(text);
        let _ = (
            value.count(),
            value.member("a"),
            value.item(-1),
            value.shown(),
        );
        let _ = (
            compare(text, "[1]"),
            contains(text, text),
            pretty(text, 1000),
        );
        let _ = (
            delete_index(text, 0),
            concat(text, text),
            strip_nulls(text, true),
        );
        encode_key(text, &mut Vec::new());
    }
}
