//! Expressions against the results of PostgreSQL 15, recorded in test/sql/expr.tsv, and against
//! the list of known differences in test/sql/expr_differs.tsv.
//!
//! The expressions are parsed with sqlparser and bound by a small binder without columns, so that
//! nothing but the expression modules is under test.

mod binder;

use base::{Datum, SqlError, Time, Type, text};
use expr::{Env, NoColumns, SessionFacts, eval, fold};

/// A session whose clock stands still.
struct Session;

impl SessionFacts for Session {
    fn txn_time(&self) -> Time {
        Time(1_700_000_000_123_456)
    }
    fn now(&self) -> Time {
        Time(1_700_000_001_000_000)
    }
    fn user(&self) -> String {
        "postgres".to_string()
    }
    fn database(&self) -> String {
        "postgres".to_string()
    }
    fn pid(&self) -> i32 {
        7
    }
    fn set_config(&self, _: &str, value: Option<&str>, _: bool) -> Result<String, SqlError> {
        Ok(value.unwrap_or_default().to_string())
    }
    fn setting(&self, name: &str) -> Option<String> {
        (name == "timezone").then(|| "UTC".to_string())
    }
    fn random(&self) -> u64 {
        0x1234_5678_9abc_def0
    }
    fn unique(&self) -> u64 {
        1
    }
    fn catalog_function(&self, name: &str, _: &[Datum]) -> Result<Datum, SqlError> {
        match name {
            "current_schema" => Ok("public".into()),
            _ => panic!("{name} needs a catalog"),
        }
    }
    fn room(&self, _: usize) -> Result<(), SqlError> {
        Ok(())
    }
}

const ENV: Env<'static> = Env {
    params: &[],
    subqueries: &[],
    session: &Session,
};

/// Type and text of an expression's value.
fn compute(source: &str, folded: bool) -> Result<(String, String), SqlError> {
    let mut expr = binder::bind(source)?;
    if folded {
        fold::fold(&mut expr);
    }
    let value = eval(&expr, &NoColumns, &ENV)?;
    let ty = expr.ty();
    let shown = match value {
        Datum::Null => "\\N".to_string(),
        value => text::to_string(ty, &value).replace('\n', "\\n"),
    };
    Ok((ty.without_modifiers().name().to_string(), shown))
}

/// What the table says: `error<TAB>SQLSTATE` or `type<TAB>text`.
fn outcome(source: &str, folded: bool) -> String {
    match compute(source, folded) {
        Ok((ty, text)) => format!("{ty}\t{text}"),
        Err(error) => format!("error\t{}", error.state()),
    }
}

fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| line.split('\t').collect())
}

/// The name of a type as `pg_typeof` has it; literals that stay unknown are text here.
fn expected_type(name: &str) -> String {
    match name {
        "unknown" => "text".to_string(),
        "character" => "bpchar".to_string(),
        other => other.to_string(),
    }
}

#[test]
fn results_are_those_of_postgresql() {
    let table = include_str!("../../../../../test/sql/expr.tsv");
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows(table) {
        let [source, ty, text] = row.as_slice() else {
            panic!("three columns: {row:?}");
        };
        count += 1;
        let expected = format!("{}\t{text}", expected_type(ty));
        for folded in [false, true] {
            let found = outcome(&source.replace("\\n", "\n"), folded);
            if found != expected {
                wrong.push(format!(
                    "{source}\n    expected {expected}\n    found    {found}"
                ));
                break;
            }
        }
    }
    assert!(count > 800, "the table is there: {count} rows");
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Differences from PostgreSQL stay as they are documented.
#[test]
fn differences_are_as_listed() {
    let table = include_str!("../../../../../test/sql/expr_differs.tsv");
    for row in rows(table) {
        let [source, ty, text, _postgres, why] = row.as_slice() else {
            panic!("five columns: {row:?}");
        };
        assert!(!why.is_empty());
        assert_eq!(outcome(source, false), format!("{ty}\t{text}"), "{source}");
    }
}

#[test]
fn parameters_take_the_type_of_their_place() {
    for (source, expected) in [
        ("$1 + 1", Type::Int4),
        ("1.5 * $1", Type::Numeric(None)),
        ("$1 || 'x'", Type::Text),
        ("$1 = '2020-01-01'::date", Type::Date),
        ("length($1)", Type::Text),
        ("$1::bigint", Type::Int8),
        ("$1::varchar(5)", Type::Varchar(None)),
        ("coalesce($1, 5)", Type::Int4),
        ("'x'::varchar(3) = $1", Type::Text),
        ("now() + $1", Type::Interval(None)),
        ("5 = ANY ($1)", Type::Array(base::types::ArrayKind::Int4)),
        ("5 IN (1, $1)", Type::Int4),
        ("CASE WHEN $1 THEN 1 END", Type::Bool),
        ("NOT $1", Type::Bool),
    ] {
        let expr = binder::bind(source).expect(source);
        let mut found = Vec::new();
        expr::walk::walk(&expr, &mut |node| {
            if let expr::Expr::Param(_, ty) = node {
                found.push(*ty);
            }
        });
        assert_eq!(found, [expected], "{source}");
    }
}
