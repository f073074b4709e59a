//! Bodies, and what they ask for in which order.

use super::*;
use crate::machine::{Columns, Host};
use base::{Datum, Type};
use std::sync::Arc;

struct Plain;

impl Host for Plain {
    fn convert(&self, value: Datum, _: Type, _: Type) -> Result<Datum, SqlError> {
        Ok(value)
    }
    fn text(&self, value: &Datum, ty: Type) -> Result<String, SqlError> {
        Ok(base::text::to_string(ty, value))
    }
}

/// What a body asks for: statements as they are, `SELECT n` with its value, `fail` with an error.
fn trace(text: &str) -> Vec<String> {
    let program = Arc::new(compile(text).expect("it compiles"));
    let types = program.variables.iter().map(|variable| {
        let own = machine::own_type(&variable.declared);
        Ok::<Type, Option<Columns>>(own.unwrap_or(Type::Int4))
    });
    let types: Vec<_> = types.collect();
    let mut machine = Machine::new(program.clone(), &types);
    let (mut answer, mut all) = (Answer::Done, Vec::new());
    for _ in 0..1000 {
        let Some(ask) = machine.go_on(answer, 100, &Plain) else {
            answer = Answer::Done;
            continue;
        };
        answer = match ask {
            Ask::Done => return all,
            Ask::Fail(error) => {
                all.push(format!("failed {}", error.fields().message));
                return all;
            }
            Ask::Run(run) => {
                let fragment = &program.fragments[run.fragment];
                let text = fragment.sql.trim_start_matches("SELECT ");
                let own = run.params.iter().find(|param| param.name == text);
                let value = match (text, own) {
                    ("true", _) => Datum::Bool(true),
                    (_, Some(param)) => param.value.clone(),
                    _ => text.parse().map_or(Datum::Null, Datum::Int),
                };
                if !fragment.is_value {
                    all.push(fragment.sql.clone());
                }
                match text {
                    "fail" => {
                        let error = SqlError::new(SqlState(*b"22012"), "division by zero");
                        Answer::Failed(error, true)
                    }
                    _ => Answer::Ran {
                        columns: Arc::from([("c".to_owned(), Type::Int4)]),
                        first: Some(vec![value]),
                        count: 1,
                        counts: true,
                        writes: false,
                    },
                }
            }
            Ask::Tell(_, error) => {
                all.push(format!("told {}", error.fields().message));
                Answer::Done
            }
            Ask::Row(..) => Answer::Row(None),
            Ask::RunText(text, _) => {
                all.push(text);
                Answer::Done
            }
            other => {
                all.push(format!("{other:?}").to_lowercase());
                Answer::Done
            }
        };
    }
    all.push("never ends".into());
    all
}

#[test]
fn loops_count_and_leave() {
    let text = "BEGIN FOR i IN 1..3 LOOP RAISE NOTICE '%', i; END LOOP; END";
    assert_eq!(trace(text), ["told 1", "told 2", "told 3"]);
    let text = "<<o>> BEGIN FOR i IN REVERSE 9..1 BY 4 LOOP RAISE NOTICE '%%%', i; \
                EXIT o WHEN true; END LOOP; RAISE NOTICE 'no'; END o";
    assert_eq!(trace(text), ["told %9"]);
}

#[test]
fn handlers_take_their_errors() {
    let text = "BEGIN BEGIN INSERT a; PERFORM fail; EXCEPTION WHEN division_by_zero OR \
                unique_violation THEN RAISE NOTICE '% %', sqlstate, sqlerrm; END; END;";
    let want = [
        "savepoint(0)",
        "INSERT a",
        "SELECT fail",
        "rollbackto(0)",
        "told 22012 division by zero",
    ];
    assert_eq!(trace(text), want);
    let text = "BEGIN BEGIN PERFORM fail; EXCEPTION WHEN unique_violation THEN NULL; END; \
                EXCEPTION WHEN others THEN RAISE; END";
    let want = [
        "savepoint(0)",
        "savepoint(1)",
        "SELECT fail",
        "rollbackto(0)",
    ];
    assert_eq!(trace(text)[..4], want);
    assert_eq!(trace(text)[4], "failed division by zero");
}

#[test]
fn leaving_a_block_releases_it() {
    let text = "BEGIN LOOP BEGIN BEGIN EXIT; EXCEPTION WHEN others THEN NULL; END; \
                EXCEPTION WHEN others THEN NULL; END; END LOOP; RAISE NOTICE 'x'; END";
    let want = ["savepoint(0)", "savepoint(1)", "release(0)", "told x"];
    assert_eq!(trace(text), want);
}

#[test]
fn wrong_texts_are_refused_before_anything_runs() {
    for (text, message) in [
        ("BEGIN x := 1; END", "\"x\" is not a known variable"),
        (
            "BEGIN IF true THEN NULL; END",
            "syntax error at end of input",
        ),
        (
            "BEGIN EXIT; END",
            "EXIT cannot be used outside a loop, unless it has a label",
        ),
        ("BEGIN COMMIT; END", "COMMIT is not supported in PL/pgSQL"),
        (
            "BEGIN RAISE NOTICE '%'; END",
            "too few parameters specified for RAISE",
        ),
        (
            "BEGIN NULL; EXCEPTION WHEN nonsense THEN NULL; END",
            "unrecognized exception condition \"nonsense\"",
        ),
        ("BEGIN OPEN c; END", "a cursor is not supported in PL/pgSQL"),
        (
            "DECLARE a CONSTANT int := 1; BEGIN a := 2; END",
            "variable \"a\" is declared CONSTANT",
        ),
        ("SELECT 1", "syntax error at or near \"SELECT\""),
        (
            "BEGIN NULL; END; SELECT 1",
            "syntax error at or near \"SELECT\"",
        ),
    ] {
        let error = compile(text).expect_err(text);
        assert_eq!(error.fields().message, message, "{text}");
    }
    let deep = "BEGIN ".repeat(500);
    assert!(compile(&deep).is_err());
    let long = " ".repeat(CODE_BYTES_MAX + 1);
    assert!(compile(&long).is_err());
}

#[test]
fn no_cut_text_panics() {
    let text = "<<l>> DECLARE a int := 1; r record; BEGIN FOR i IN 1..2 LOOP a := a + i; \
                IF a > 2 THEN EXIT l WHEN true; ELSIF a = 1 THEN PERFORM 1; ELSE NULL; END IF; \
                END LOOP; FOR r IN SELECT 'ä' AS x LOOP EXECUTE 'a' || r.x INTO a USING 1, 2; \
                END LOOP; CASE a WHEN 1, 2 THEN NULL; ELSE RAISE SQLSTATE '22012' USING \
                message = 'x'; END CASE; GET STACKED DIAGNOSTICS a = message_text; \
                EXCEPTION WHEN sqlstate '22012' THEN RETURN; END";
    assert!(compile(text).is_ok());
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _ = compile(&text[..end]);
        let _ = compile(&text[end..]);
    }
}
