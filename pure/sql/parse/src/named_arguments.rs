//! Arguments by name of functions of the system: `make_interval(days => 3)`. The tree has them by
//! their places, with the defaults of those that are left out.

use super::words::fold;
use base::{SqlError, SqlState};
use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr, Ident, Value};

/// A function, the names of its arguments, and the defaults of the last ones.
type Signature = (&'static str, &'static [&'static str], &'static [Given]);

/// A default.
#[derive(Clone, Copy)]
enum Given {
    Number(&'static str),
    Text(&'static str),
    Flag(bool),
}

use Given::{Flag, Number, Text};

const PARTS: &[&str] = &["years", "months", "weeks", "days", "hours", "mins", "secs"];
const MOMENT: &[&str] = &["year", "month", "mday", "hour", "min", "sec"];
const CHANGED: &[&str] = &["jsonb_in", "path", "replacement", "create_if_missing"];
const PATH: &[&str] = &["target", "path", "vars", "silent"];
const PATH_DEFAULTS: &[Given] = &[Text("{}"), Flag(false)];
const FROM_JSON: &[&str] = &["from_json"];
const POPULATED: &[&str] = &["base", "from_json", "use_json_as_text"];

const SIGNATURES: &[Signature] = &[
    ("make_interval", PARTS, &[Number("0"); 7]),
    ("make_date", &["year", "month", "day"], &[]),
    ("make_time", &["hour", "min", "sec"], &[]),
    ("make_timestamp", MOMENT, &[]),
    ("make_timestamptz", MOMENT, &[]),
    ("parse_ident", &["str", "strict"], &[Flag(true)]),
    ("aclexplode", &["acl"], &[]),
    ("jsonb_set", CHANGED, &[Flag(true)]),
    (
        "jsonb_set_lax",
        &[
            "jsonb_in",
            "path",
            "replacement",
            "create_if_missing",
            "null_value_treatment",
        ],
        &[Flag(true), Text("use_json_null")],
    ),
    (
        "jsonb_insert",
        &["jsonb_in", "path", "replacement", "insert_after"],
        &[Flag(false)],
    ),
    ("jsonb_path_exists", PATH, PATH_DEFAULTS),
    ("jsonb_path_match", PATH, PATH_DEFAULTS),
    ("jsonb_path_query", PATH, PATH_DEFAULTS),
    ("jsonb_path_query_array", PATH, PATH_DEFAULTS),
    ("jsonb_path_query_first", PATH, PATH_DEFAULTS),
    ("jsonb_path_exists_tz", PATH, PATH_DEFAULTS),
    ("jsonb_path_match_tz", PATH, PATH_DEFAULTS),
    ("jsonb_path_query_tz", PATH, PATH_DEFAULTS),
    ("jsonb_path_query_array_tz", PATH, PATH_DEFAULTS),
    ("jsonb_path_query_first_tz", PATH, PATH_DEFAULTS),
    ("json_each", FROM_JSON, &[]),
    ("json_each_text", FROM_JSON, &[]),
    ("json_array_elements", FROM_JSON, &[]),
    ("json_array_elements_text", FROM_JSON, &[]),
    ("jsonb_each", FROM_JSON, &[]),
    ("jsonb_each_text", FROM_JSON, &[]),
    ("jsonb_array_elements", FROM_JSON, &[]),
    ("jsonb_array_elements_text", FROM_JSON, &[]),
    ("json_populate_record", POPULATED, &[Flag(false)]),
    ("json_populate_recordset", POPULATED, &[Flag(false)]),
    ("pg_terminate_backend", &["pid"], &[]),
];

impl Given {
    fn tree(self) -> Ast {
        Ast::value(match self {
            Number(digits) => Value::Number(digits.into(), false),
            Text(text) => Value::SingleQuotedString(text.into()),
            Flag(flag) => Value::Boolean(flag),
        })
    }
}

/// The name and the value of an argument that has a name.
fn named(arg: &FunctionArg) -> Option<(&Ident, &FunctionArgExpr)> {
    match arg {
        FunctionArg::Named {
            name,
            arg,
            operator: _,
        } => Some((name, arg)),
        _ => None,
    }
}

fn syntax(message: String) -> SqlError {
    SqlError::new(SqlState::SYNTAX, message)
}

/// The arguments of a function in FROM by their places, if some have names and a function of the
/// system has these.
///
/// # Errors
/// 42601 for a name that is there twice, or an argument without one behind one that has one.
pub fn placed_of(function: &str, args: &[FunctionArg]) -> Result<Vec<FunctionArg>, SqlError> {
    let args = args.iter().map(|arg| match arg {
        FunctionArg::ExprNamed {
            name: Ast::Identifier(name),
            arg,
            operator,
        } => FunctionArg::Named {
            name: name.clone(),
            arg: arg.clone(),
            operator: operator.clone(),
        },
        other => other.clone(),
    });
    placed(Some(function), args.collect())
}

/// The arguments by their places, if some have names and a function of the system has these.
///
/// # Errors
/// 42601 for a name that is there twice, or an argument without one behind one that has one.
pub(super) fn placed(
    function: Option<&str>,
    args: Vec<FunctionArg>,
) -> Result<Vec<FunctionArg>, SqlError> {
    let Some(first) = args.iter().position(|arg| named(arg).is_some()) else {
        return Ok(args);
    };
    let given: Option<Vec<_>> = args[first..].iter().map(named).collect();
    let Some(given) = given else {
        let message = "positional argument cannot follow named argument";
        return Err(syntax(message.into()));
    };
    let names = given
        .iter()
        .map(|(name, _)| fold(&name.value, name.quote_style.is_some()));
    let names: Vec<String> = names.collect();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            let message = format!("argument name \"{name}\" used more than once");
            return Err(syntax(message));
        }
    }
    let signatures = SIGNATURES.iter().filter(|(own, ..)| Some(*own) == function);
    for (_, own, defaults) in signatures {
        let place = |name: &String| own.iter().position(|it| it == name);
        let places: Option<Vec<usize>> = names.iter().map(place).collect();
        let Some(places) = places.filter(|all| all.iter().all(|at| *at >= first)) else {
            continue;
        };
        let required = own.len() - defaults.len();
        let is_there = |at: usize| at < first || at >= required || places.contains(&at);
        if !(0..own.len()).all(is_there) {
            continue;
        }
        let mut all: Vec<FunctionArg> = args[..first].to_vec();
        for at in first..own.len() {
            all.push(match places.iter().position(|place| *place == at) {
                Some(place) => FunctionArg::Unnamed(given[place].1.clone()),
                None => {
                    let default = defaults[at - required].tree();
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(default))
                }
            });
        }
        return Ok(all);
    }
    Ok(args)
}
