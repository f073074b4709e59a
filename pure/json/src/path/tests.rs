//! Paths as PostgreSQL reads and shows them.

use super::Path;
use alloc::string::{String, ToString};

fn shown(text: &str) -> String {
    match Path::parse(text) {
        Ok(path) => path.to_string(),
        Err(error) => alloc::format!("{}: {} {}", error.state, error.message, error.detail),
    }
}

#[test]
fn shows_the_normal_form() {
    let cases = [
        (
            "$.a[0 to last,3].**{1 to 3}.**{2}.**{last}",
            "$.\"a\"[0 to last,3].**{1 to 3}.**{2}.**{last}",
        ),
        (
            "strict $ . \"a b\" + 2 * -(3 - $x) % 4",
            "strict ($.\"a b\" + (2 * -(3 - $\"x\")) % 4)",
        ),
        (
            "$ ? (@ > 1 && !(@ == \"a\") || exists(@.z))",
            "$?(@ > 1 && !(@ == \"a\") || exists (@.\"z\"))",
        ),
        (
            "$ ? (@ like_regex \"^a\" flag \"imsq\").size()",
            "$?(@ like_regex \"^a\" flag \"ismq\").size()",
        ),
        (
            "$.last.TO.is.like_regex.Null",
            "$.\"last\".\"TO\".\"is\".\"like_regex\".\"Null\"",
        ),
        ("(exists($)) is unknown", "(exists ($)) is unknown"),
        ("-$.a", "(-$.\"a\")"),
        ("(-$).a", "(-$).\"a\""),
        ("- (1)", "-1"),
        ("1--1", "(1 - -1)"),
        ("+-$", "(+(-$))"),
        (".5", "0.5"),
        ("1.5e3", "1500"),
        ("1.", "1"),
        ("$ <> 1", "($ != 1)"),
        ("$.a /* x */ . b", "$.\"a\".\"b\""),
        ("$.\\u0061\\x62\\u{63}", "$.\"abc\""),
        (
            "$.datetime(\"a\\\"b\").datetime()",
            "$.datetime(\"a\\\"b\").datetime()",
        ),
        ("$.**{0 to last}.keyvalue", "$.**.\"keyvalue\""),
        ("(1 == 1).type()", "(1 == 1).type()"),
        ("$[0 ? (last == @)]", "$[(0)?(last == @)]"),
        ("1 + 2 * 3 - 4 / 5", "((1 + 2 * 3) - 4 / 5)"),
    ];
    for (text, wanted) in cases {
        assert_eq!(shown(text), wanted, "{text}");
        assert_eq!(shown(wanted), wanted, "{text}");
    }
}

#[test]
fn refuses_what_is_no_path() {
    let cases = [
        ("", "22P02: invalid input syntax for type jsonpath: \"\" "),
        ("@ > 1", "42601: @ is not allowed in root expressions "),
        ("last", "42601: LAST is allowed only in array subscripts "),
        (
            "1.type()",
            "42601: trailing junk after numeric literal at or near \"1.t\" of jsonpath input ",
        ),
        (
            "00",
            "42601: trailing junk after numeric literal at or near \"00\" of jsonpath input ",
        ),
        ("000", "42601: syntax error at end of jsonpath input "),
        (
            "$ = 1",
            "42601: syntax error at or near \"=\" of jsonpath input ",
        ),
        (
            "$.a ? (@.a)",
            "42601: syntax error at or near \")\" of jsonpath input ",
        ),
        (
            "1 == 2 == 3",
            "42601: syntax error at or near \"==\" of jsonpath input ",
        ),
        (
            "!$.a",
            "42601: syntax error at or near \"$\" of jsonpath input ",
        ),
        (
            "true && false",
            "42601: syntax error at or near \"&&\" of jsonpath input ",
        ),
        (
            "\"abc",
            "42601: unexpected end of quoted string at end of jsonpath input ",
        ),
        (
            "$.a is unknown",
            "42601: syntax error at or near \" \" of jsonpath input ",
        ),
        (
            "$ like_regex \"a\" flag \"x\"",
            "0A000: XQuery \"x\" flag (expanded regular expressions) is not implemented ",
        ),
        (
            "\"\\u12\"",
            "42601: invalid unicode sequence at or near \"\\u12\" of jsonpath input ",
        ),
        (
            "\"\\ud83d\"",
            "22P02: invalid input syntax for type jsonpath \
             Unicode low surrogate must follow a high surrogate.",
        ),
        (
            "$.**{4294967296}",
            "22003: value \"4294967296\" is out of range for type integer ",
        ),
        (
            "1e+",
            "42601: invalid numeric literal at or near \"1e+\" of jsonpath input ",
        ),
        (
            "!(1 == 1) is unknown",
            "42601: syntax error at or near \" \" of jsonpath input ",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(shown(text), wanted, "{text}");
    }
}

#[test]
fn bounds_the_depth() {
    let many = |start: &str, part: &str, end: &str| {
        shown(&alloc::format!("{start}{}{end}", part.repeat(9_999)))
    };
    for text in [
        many("$", ".a", ""),
        many("1", "+1", ""),
        many("", "-", "$"),
        many("", "(", ""),
        many("$", "[$", ""),
        many("$", "?(@", ""),
        many("", "!(", ""),
        many("", "exists(", ""),
    ] {
        assert!(text.starts_with("54001"), "{text}");
    }
}
