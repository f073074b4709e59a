//! `set_config` and `current_setting` give the results that PostgreSQL 15 gives.

use base::Datum;
use catalog::ProtocolKind;
use one_shard::{Outcome, World};

/// Statements of one session and the first value of the last row, or the error's SQLSTATE.
const STATEMENTS: &[(&str, &str)] = &[
    ("SELECT current_setting('my.x', true)", "NULL"),
    ("SELECT current_setting('my.x')", "42704"),
    // A setting acts at once. With `is_local` it ends with the statement's own transaction.
    (
        "SELECT set_config('my.x', 'a', true) || current_setting('my.x')",
        "aa",
    ),
    ("SELECT current_setting('my.x')", ""),
    ("SELECT set_config('my.x', 'a', false)", "a"),
    ("SELECT current_setting('MY.X')", "a"),
    ("SHOW my.x", "a"),
    // In a block a local setting lasts until the end. A rollback undoes both kinds.
    ("BEGIN", "ok"),
    ("SELECT set_config('my.x', 'b', false)", "b"),
    ("SELECT set_config('my.x', 'c', true)", "c"),
    ("SELECT current_setting('my.x')", "c"),
    ("COMMIT", "ok"),
    ("SELECT current_setting('my.x')", "b"),
    ("BEGIN", "ok"),
    (
        "SELECT set_config('my.x', 'd', false), set_config('lock_timeout', '7s', true)",
        "d",
    ),
    ("SHOW lock_timeout", "7s"),
    ("ROLLBACK", "ok"),
    (
        "SELECT current_setting('my.x') || current_setting('lock_timeout')",
        "b0",
    ),
    ("BEGIN", "ok"),
    ("SELECT set_config('my.x', 'e', false)", "e"),
    ("SELECT 1 / 0", "22012"),
    ("ROLLBACK", "ok"),
    (
        "SELECT set_config('my.x', 'f', false), 1 / (SELECT 0)",
        "22012",
    ),
    ("SELECT current_setting('my.x')", "b"),
    // The call happens row by row, in any place, and only where evaluation reaches it.
    (
        "SELECT set_config('my.x', g::text, false) FROM generate_series(1, 3) AS g",
        "3",
    ),
    ("SELECT current_setting('my.x')", "3"),
    (
        "SELECT set_config('my.x', 'g', false) WHERE false",
        "no row",
    ),
    ("SELECT 'w' WHERE set_config('my.w', '1', false) = '1'", "w"),
    ("VALUES (set_config('my.v', '2', false))", "2"),
    ("CREATE TABLE t (id int PRIMARY KEY, c text)", "ok"),
    (
        "INSERT INTO t VALUES (1, set_config('my.i', '3', false)) RETURNING c",
        "3",
    ),
    (
        "SELECT current_setting('my.w') || current_setting('my.v') || current_setting('my.i') \
         || current_setting('my.x')",
        "1233",
    ),
    (
        "PREPARE s (text, text, boolean) AS SELECT set_config($1, $2, $3)",
        "ok",
    ),
    ("EXECUTE s('my.p', 'q', false)", "q"),
    (
        "SELECT c FROM t WHERE id = 1 AND current_setting('my.p') = 'q'",
        "3",
    ),
    // Settings of the server: checked, shown as SHOW does, with effect.
    (
        "SELECT set_config('statement_timeout', '5000', false)",
        "5s",
    ),
    ("SHOW statement_timeout", "5s"),
    ("SELECT set_config('statement_timeout', NULL, false)", "0"),
    (
        "SELECT set_config('application_name', 'other', NULL)",
        "other",
    ),
    (
        "SELECT set_config('application_name', NULL, false)",
        "starter",
    ),
    (
        "SELECT set_config('TimeZone', 'europe/berlin', false)",
        "Europe/Berlin",
    ),
    (
        "SELECT ('2024-07-01 12:00+00'::timestamptz)::text",
        "2024-07-01 14:00:00+02",
    ),
    (
        "SELECT set_config('statement_timeout', 'x', false)",
        "22023",
    ),
    ("SELECT set_config('server_version', 'x', false)", "55P02"),
    ("SELECT set_config('nope', 'x', false)", "42704"),
    ("SELECT set_config('my bad.x', 'x', false)", "42602"),
    ("SELECT set_config(NULL, 'x', false)", "22004"),
    ("SELECT set_config('my.x', 5, false)", "42883"),
    ("SELECT set_config('my.x', NULL, false)", ""),
    ("SELECT current_setting(NULL)", "NULL"),
    ("SELECT current_setting('nope', false)", "42704"),
    // Modes of the transaction.
    (
        "SELECT set_config('transaction_isolation', 'read committed', false)",
        "25001",
    ),
    (
        "SELECT set_config('transaction_isolation', 'serializable', false)",
        "serializable",
    ),
    ("BEGIN", "ok"),
    (
        "SELECT set_config('transaction_read_only', 'on', false)",
        "on",
    ),
    ("INSERT INTO t VALUES (2)", "25006"),
    ("ROLLBACK", "ok"),
    ("INSERT INTO t VALUES (2)", "ok"),
    ("DISCARD ALL", "ok"),
    ("SELECT current_setting('my.v')", ""),
];

#[test]
fn settings_are_set_by_functions() {
    for protocol in [ProtocolKind::TwoPhase, ProtocolKind::Leap] {
        let mut world = World::new(protocol);
        world.connect_with(1, "-c application_name=starter");
        for (statement, expected) in STATEMENTS {
            let outcome = world.run(1, statement);
            let found = match (&outcome.error, outcome.rows, &outcome.last) {
                (Some(error), ..) => error.state().to_string(),
                (None, 0, _) if *expected == "ok" => "ok".to_owned(),
                (None, 0, _) => "no row".to_owned(),
                (None, _, Datum::Null) => "NULL".to_owned(),
                (None, _, value) => value.as_str().expect("a text").to_owned(),
            };
            assert_eq!(found, *expected, "{statement}");
        }
    }
}

/// Statements and the error's SQLSTATE, empty without one.
const OF_SUPERUSERS: &[(&str, &str)] = &[
    ("CREATE ROLE joe LOGIN", ""),
    ("SET log_min_duration_statement = '10s'", ""),
    ("ALTER ROLE joe SET log_min_duration_statement = '20s'", ""),
    ("SET ROLE joe", ""),
    ("SET log_min_duration_statement = 0", "42501"),
    ("SET LOCAL log_min_duration_statement = 0", "42501"),
    ("SET LOG_MIN_DURATION_STATEMENT TO DEFAULT", "42501"),
    ("RESET log_min_duration_statement", "42501"),
    ("SET log_min_duration_statement = nonsense", "42501"),
    (
        "SELECT set_config('log_min_duration_statement', '0', false)",
        "42501",
    ),
    (
        "SELECT set_config('Log_Min_Duration_Statement', NULL, true)",
        "42501",
    ),
    ("ALTER ROLE joe SET log_min_duration_statement = 0", "42501"),
    ("ALTER ROLE joe RESET log_min_duration_statement", "42501"),
    ("ALTER ROLE joe SET lock_timeout = '1s'", ""),
    ("SET lock_timeout = '2s'", ""),
    ("SHOW log_min_duration_statement", ""),
    ("RESET ROLE", ""),
    (
        "SELECT set_config('log_min_duration_statement', '0', false)",
        "",
    ),
    ("RESET log_min_duration_statement", ""),
    ("CREATE ROLE ada LOGIN", ""),
];

#[test]
fn some_settings_are_for_superusers() {
    let mut world = World::new(ProtocolKind::TwoPhase);
    world.connect(1);
    for (statement, expected) in OF_SUPERUSERS {
        let error = world.run(1, statement).error;
        let found = error.map_or(String::new(), |error| error.state().to_string());
        assert_eq!(found, *expected, "{statement}");
    }
    // `ada` is a role without rights from now on.
    let mut refused = Outcome::default();
    world.connect_with(2, "-c log_min_duration_statement=0");
    world.take(2, &mut refused);
    let error = refused.error.expect("it is not let in");
    assert_eq!(error.state().to_string(), "42501");
    // What a superuser has set for it counts all the same.
    world.must(1, "ALTER ROLE ada SET log_min_duration_statement = '20s'");
    world.connect(3);
    let shown = world.must(3, "SHOW log_min_duration_statement").last;
    assert_eq!(shown, Datum::from("20s"));
}
