//! Values of settings: a table of (name, value, what SHOW prints or the error).

use super::*;

fn outcome(name: &str, value: &str) -> String {
    match validate(name, value) {
        Ok(value) => value,
        Err(error) => format!("{} {}", error.state(), error.fields().message),
    }
}

#[test]
fn values_are_checked_and_brought_into_form() {
    let table = [
        ("statement_timeout", "5000", "5s"),
        ("statement_timeout", "90s", "90s"),
        ("statement_timeout", "2min", "2min"),
        ("STATEMENT_TIMEOUT", " 1.5 s ", "1500ms"),
        ("statement_timeout", "0", "0"),
        (
            "statement_timeout",
            "-1",
            "22023 -1 is outside the valid range for parameter \"statement_timeout\" \
             (0 .. 2147483647)",
        ),
        (
            "statement_timeout",
            "5 parsecs",
            "22023 invalid value for parameter \"statement_timeout\": \"5 parsecs\"",
        ),
        ("work_mem", "4MB", "4MB"),
        ("work_mem", "4096", "4MB"),
        ("work_mem", "8MB", "0A000 work_mem \"8MB\" is not supported"),
        (
            "work_mem",
            "1 lot",
            "22023 invalid value for parameter \"work_mem\": \"1 lot\"",
        ),
        (
            "enable_seqscan",
            "off",
            "0A000 enable_seqscan \"off\" is not supported",
        ),
        ("extra_float_digits", "3", "3"),
        (
            "extra_float_digits",
            "0",
            "22023 0 is outside the valid range for parameter \"extra_float_digits\" (1 .. 3)",
        ),
        ("admission_potential", "20", "20"),
        (
            "admission_potential",
            "0",
            "22023 0 is outside the valid range for parameter \"admission_potential\" (1 .. 100)",
        ),
        (
            "admission_potential",
            "101",
            "22023 101 is outside the valid range for parameter \"admission_potential\" (1 .. 100)",
        ),
        ("admission_wait", "20", "20ms"),
        (
            "admission_wait",
            "2min",
            "22023 120000 is outside the valid range for parameter \"admission_wait\" (1 .. 60000)",
        ),
        ("search_path", "\"$user\", public", "\"$user\", public"),
        ("search_path", "mine, PUBLIC", "mine, PUBLIC"),
        ("search_path", "mine", "mine"),
        ("search_path", "", ""),
        (
            "search_path",
            "a b",
            "22023 invalid value for parameter \"search_path\": \"a b\"",
        ),
        ("synchronous_commit", "OFF", "off"),
        ("synchronous_commit", "true", "on"),
        ("synchronous_commit", "remote_write", "remote_write"),
        ("row_security", "yes", "on"),
        (
            "row_security",
            "maybe",
            "22023 parameter \"row_security\" requires a Boolean value",
        ),
        ("client_min_messages", "Warning", "warning"),
        (
            "client_min_messages",
            "loud",
            "22023 invalid value for parameter \"client_min_messages\": \"loud\"",
        ),
        (
            "default_transaction_isolation",
            "read committed",
            "read committed",
        ),
        ("datestyle", "ISO", "ISO, MDY"),
        ("DateStyle", "iso,  mdy", "ISO, MDY"),
        (
            "DateStyle",
            "German",
            "0A000 DateStyle \"German\" is not supported",
        ),
        ("TimeZone", "etc/utc", "Etc/UTC"),
        ("timezone", "Europe/Berlin", "Europe/Berlin"),
        ("timezone", "europe/BERLIN", "Europe/Berlin"),
        ("timezone", "5.5", "<+05:30>-05:30"),
        ("timezone", "-7", "<-07>+07"),
        (
            "timezone",
            "Nowhere/Land",
            "22023 invalid value for parameter \"TimeZone\": \"Nowhere/Land\"",
        ),
        ("client_encoding", "utf-8", "UTF8"),
        ("client_encoding", "'utf-8'", "UTF8"),
        ("client_encoding", "UTF_8", "UTF8"),
        ("client_encoding", "Unicode", "UTF8"),
        ("client_encoding", "utf8 ", "UTF8"),
        ("client_encoding", "sql_ascii", "SQL_ASCII"),
        (
            "client_encoding",
            "LATIN1",
            "0A000 client_encoding \"LATIN1\" is not supported",
        ),
        ("standard_conforming_strings", "on", "on"),
        ("application_name", "été\n", "?t??"),
        ("my.setting", "anything", "anything"),
        (
            "nonsense",
            "1",
            "42704 unrecognized configuration parameter \"nonsense\"",
        ),
        (
            "a..b",
            "1",
            "42602 invalid configuration parameter name \"a..b\"",
        ),
        (
            "server_version",
            "9",
            "55P02 parameter \"server_version\" cannot be changed",
        ),
        (
            "max_connections",
            "9",
            "55P02 parameter \"max_connections\" cannot be changed without restarting the server",
        ),
    ];
    for (name, value, expected) in table {
        assert_eq!(outcome(name, value), expected, "SET {name} = {value}");
    }
}

#[test]
fn timeouts_are_readable_in_their_base_unit() {
    assert_eq!(integer("statement_timeout", "5s"), Some(5_000));
    assert_eq!(integer("lock_timeout", "0"), Some(0));
    assert_eq!(integer("search_path", "5"), None);
}

#[test]
fn the_table_is_sound() {
    for (index, setting) in SETTINGS.iter().enumerate() {
        assert_eq!(lookup(setting.name), Some(setting), "{}", setting.name);
        if index > 0 {
            let before = SETTINGS[index - 1].name.to_ascii_lowercase();
            assert!(
                before < setting.name.to_ascii_lowercase(),
                "{} out of order",
                setting.name
            );
        }
        let value = check(setting, setting.default).expect(setting.name);
        assert_eq!(value, setting.default, "{}", setting.name);
    }
    // What clients rely on without asking.
    for name in [
        "server_version",
        "server_encoding",
        "client_encoding",
        "application_name",
        "default_transaction_read_only",
        "in_hot_standby",
        "is_superuser",
        "session_authorization",
        "DateStyle",
        "IntervalStyle",
        "TimeZone",
        "integer_datetimes",
        "standard_conforming_strings",
    ] {
        assert!(lookup(name).expect(name).reported, "{name}");
    }
}

#[test]
fn styles_of_intervals_are_taken_or_wrong() {
    let set = |value| validate("IntervalStyle", value);
    assert_eq!(set("ISO_8601").as_deref(), Ok("iso_8601"));
    let error = set("verbose").expect_err("no style");
    assert_eq!(error.state().as_str(), "22023", "{error}");
}
