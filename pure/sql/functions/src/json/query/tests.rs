//! Paths on values, with PostgreSQL's answers.

use super::{PathUse, path_items, path_value};
use base::{Datum, Jsonb, SqlState, Type, text};

fn args(value: &str, path: &str) -> Vec<Datum> {
    let value = Datum::Jsonb(Jsonb::parse(value).expect("it is JSON"));
    vec![value, path.into()]
}

fn found(value: &str, path: &str) -> String {
    match path_items(&args(value, path), None) {
        Ok(items) => {
            let items = items.iter().map(|item| text::to_string(Type::Jsonb, item));
            items.collect::<Vec<_>>().join(" ")
        }
        Err(error) => error.fields().message.clone(),
    }
}

#[test]
fn follows_paths() {
    let cases = [
        ("{\"a\":[1,{\"b\":2}]}", "$.a[*].b", "2"),
        ("{\"a\":[1,{\"b\":2}]}", "strict $.a[1].b", "2"),
        ("[1,2,3]", "$[last]", "3"),
        ("[1,2,3]", "$[0 to 1, last]", "1 2 3"),
        ("[1,2,3]", "$[*] ? (@ > 1)", "2 3"),
        ("[1,2,3]", "$ ? (@ > 1)", "2 3"),
        ("{\"a\":{\"b\":{\"c\":1}}}", "$.**{2}", "{\"c\": 1}"),
        ("{\"a\":{\"b\":{\"c\":1}}}", "$.**{last}", "1"),
        (
            "[1,\"a\",null]",
            "$[*].type()",
            "\"number\" \"string\" \"null\"",
        ),
        ("\"abc\"", "$ like_regex \"^A\" flag \"i\"", "true"),
        ("\"a.c\"", "$ like_regex \"A.C\" flag \"qi\"", "true"),
        ("[1,2]", "-$[*]", "-1 -2"),
        ("[7]", "$[0] % 4 + 1.5", "4.5"),
        ("{\"x\":1}", "$.keyvalue().key", "\"x\""),
        (
            "[{\"x\":[true,1.5]},{\"y\":1}]",
            "$[*].keyvalue().id",
            "12 52",
        ),
        (
            "\"2017-03-10 12:34:56 +3\"",
            "$.datetime()",
            "\"2017-03-10T12:34:56+03:00\"",
        ),
    ];
    for (value, path, wanted) in cases {
        assert_eq!(found(value, path), wanted, "{path}");
    }
}

#[test]
fn bounds_its_work() {
    let wide = format!("[{}]", vec!["1"; 3_000].join(","));
    let path = "$[*] ? (exists($[*] ? (exists($[*] ? (@ > 1)))))";
    assert_eq!(found(&wide, path), "a jsonpath takes too many steps");
    let deep = format!("{}1{}", "[".repeat(250), "]".repeat(250));
    let path = "$.** ? (exists($.** ? (exists($.** ? (exists($.** ? (exists($.** ? (@ > 2)))))))))";
    let message = found(&deep, path);
    assert!(
        message.starts_with("stack depth") || message.contains("steps"),
        "{message}"
    );
    let path = format!("${}", ".**".repeat(200));
    let message = found(&deep, &path);
    assert!(
        message.contains("steps") || message.contains("items"),
        "{message}"
    );
    let path = format!("{}1{}", "9".repeat(9_000), " * 9".repeat(200));
    assert!(!found("1", &path).is_empty());
}

#[test]
fn silent_calls_pass_over_errors() {
    let value = |usage, value: &str, path: &str| path_value(usage, &args(value, path), None).ok();
    assert_eq!(value(PathUse::HasAny, "1", "strict $.a"), Some(Datum::Null));
    assert_eq!(value(PathUse::Exists, "1", "strict $.a"), None);
    assert_eq!(
        value(PathUse::IsTrue, "1", "$ > 0"),
        Some(Datum::Bool(true))
    );
    assert_eq!(value(PathUse::IsTrue, "1", "$"), Some(Datum::Null));
    assert_eq!(value(PathUse::Match, "1", "$"), None);
    // An error of what `.**` begins with is passed over where something is inside.
    let doubles = |value: &str, silent: bool| {
        let mut args = args(value, "$.**.double()");
        let vars = Jsonb::parse("{}").expect("it is JSON");
        args.extend([Datum::Jsonb(vars), Datum::Bool(silent)]);
        path_value(PathUse::First, &args, None).map_err(|error| error.state())
    };
    let number = |text: &str| Ok(Datum::Jsonb(Jsonb::parse(text).expect("it is JSON")));
    assert_eq!(doubles("{\"a\": 12}", true), number("12"));
    assert_eq!(doubles("{\"a\": {\"b\": 12}}", true), Ok(Datum::Null));
    assert_eq!(doubles("{\"a\": 12}", false), Err(SqlState(*b"22036")));
    let met = "$ ? (@.**.double() > 1)";
    assert_eq!(
        value(PathUse::Exists, "{\"a\": 12}", met),
        Some(Datum::Bool(true))
    );
}
