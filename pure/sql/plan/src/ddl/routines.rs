//! CREATE, ALTER and DROP of functions and procedures.

use super::view::new_parts;
use super::{simple, with_notices};
use crate::plan::DdlPlan;
use crate::planner::routine::check_body;
use base::full_name::{beside, own};
use base::limits::VIEW_BYTES_MAX;
use base::{SqlError, SqlState, Type};
use bind::rel::run_query;
use bind::scope::Scope;
use bind::types::bind_type;
use bind::{Binder, unsupported};
use catalog::{Argument, Body, Command, Function, FunctionChange, Mode, Returns, Subject};
use expr::resolve::{self, Context};
use parse::{
    RoutineArgument, RoutineBody, RoutineCreate, RoutineName, RoutineOptions, RoutineReturns,
    RoutineStatement,
};
use pg_catalog::names::{known_schema, qualified};
use rights::{Change, Grant, ObjectNames};
use std::sync::Arc;

pub(super) fn plan(
    statement: &RoutineStatement,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let database = binder.cx.database.name.clone();
    let one = |tag, change| {
        let database = database.clone();
        simple(tag, vec![Command::Function { database, change }])
    };
    Ok(match statement {
        RoutineStatement::Create(create) => {
            let function = created(create, binder)?;
            let tag = match create.is_procedure {
                true => "CREATE PROCEDURE",
                false => "CREATE FUNCTION",
            };
            let replace = create.replace;
            one(tag, FunctionChange::Create { function, replace })
        }
        RoutineStatement::Drop {
            of,
            if_exists,
            cascade,
        } => dropped(of, (*if_exists, *cascade), binder)?,
        RoutineStatement::Rename { of, to } => {
            let function = found(of, binder)?;
            let to = beside(&function.name, to);
            let function = function.id;
            one(altered(of), FunctionChange::Rename { function, to })
        }
        RoutineStatement::Move { of, to } => {
            let function = found(of, binder)?;
            let there = binder.new_name(Some(to), own(&function.name))?;
            match there == function.name {
                true => simple(altered(of), Vec::new()),
                false => one(
                    altered(of),
                    FunctionChange::Rename {
                        function: function.id,
                        to: there,
                    },
                ),
            }
        }
        RoutineStatement::Owner { of, to } => {
            let function = found(of, binder)?;
            let change = Change::Owner {
                kind: function.kind(),
                name: function.id.to_string(),
                if_exists: false,
                to: to.clone(),
            };
            simple(altered(of), vec![Command::Rights { database, change }])
        }
        RoutineStatement::Alter { of, options } => {
            let mut function = (*found(of, binder)?).clone();
            apply_options(&mut function, options)?;
            one(altered(of), FunctionChange::Alter { function })
        }
        RoutineStatement::Comment { of, text } => {
            let comment = Command::Comment {
                database,
                subject: Subject::Function(found(of, binder)?.id),
                text: text.clone(),
            };
            simple("COMMENT", vec![comment])
        }
        RoutineStatement::Grant { of, grant } => granted(of, grant, binder)?,
    })
}

/// GRANT and REVOKE.
fn granted(of: &[RoutineName], grant: &Grant, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let numbers = of.iter().map(|name| Ok(found(name, binder)?.id));
    let numbers = numbers.collect::<Result<Vec<u32>, SqlError>>()?;
    let tag = if grant.is_grant { "GRANT" } else { "REVOKE" };
    let change = Change::Grant(Grant {
        objects: ObjectNames::Routines(numbers),
        ..grant.clone()
    });
    let database = binder.cx.database.name.clone();
    Ok(simple(tag, vec![Command::Rights { database, change }]))
}

fn dropped(
    of: &[RoutineName],
    (if_exists, cascade): (bool, bool),
    binder: &Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let (mut functions, mut notices) = (Vec::new(), Vec::new());
    for name in of {
        match found(name, binder) {
            Ok(function) => functions.push(function.id),
            Err(error) if if_exists && is_missing(&error) => {
                let shown = missing(name, binder);
                notices.push(format!("{shown} does not exist, skipping"));
            }
            Err(error) => return Err(error),
        }
    }
    let tag = match of.first().map(|name| name.word) {
        Some("PROCEDURE") => "DROP PROCEDURE",
        Some("ROUTINE") => "DROP ROUTINE",
        _ => "DROP FUNCTION",
    };
    let plan = match functions.is_empty() {
        true => simple(tag, Vec::new()),
        false => simple(
            tag,
            vec![Command::Function {
                database: binder.cx.database.name.clone(),
                change: FunctionChange::Drop { functions, cascade },
            }],
        ),
    };
    Ok(with_notices(plan, notices))
}

fn altered(of: &RoutineName) -> &'static str {
    match of.word {
        "PROCEDURE" => "ALTER PROCEDURE",
        "ROUTINE" => "ALTER ROUTINE",
        _ => "ALTER FUNCTION",
    }
}

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState(*b"42P13"), message)
}

fn is_missing(error: &SqlError) -> bool {
    [SqlState::UNDEFINED_FUNCTION, SqlState::INVALID_SCHEMA].contains(&error.state())
}

/// The word for what a statement names.
fn noun(of: &RoutineName) -> &'static str {
    match of.word {
        "PROCEDURE" => "procedure",
        "ROUTINE" => "routine",
        _ => "function",
    }
}

/// `function f(integer)`, as the error that there is none has it.
fn missing(of: &RoutineName, binder: &Binder<'_>) -> String {
    let name = of.name.join(".");
    let types = of.types.iter().flatten().map(|ty| {
        let known = bind_type(ty, &binder.names());
        known.map_or_else(
            |_| ty.to_string().to_lowercase(),
            |ty| ty.base_name().into(),
        )
    });
    let types: Vec<String> = types.collect();
    format!("{} {name}({})", noun(of), types.join(","))
}

/// The function that a statement names.
///
/// # Errors
/// 42883 if there is none, 42725 if there are several of the name, 42809 for one of another kind.
fn found(of: &RoutineName, binder: &Binder<'_>) -> Result<Arc<Function>, SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, of.name.clone())?;
    known_schema(binder.cx.database, schema.as_deref())?;
    let all = binder.routines_named(schema.as_deref(), &name);
    let undefined = |text: String| SqlError::new(SqlState::UNDEFINED_FUNCTION, text);
    let found = match &of.types {
        Some(types) => {
            let names = binder.names();
            let absent = || undefined(format!("{} does not exist", missing(of, binder)));
            let types = types.iter().map(|ty| match bind_type(ty, &names) {
                Ok(ty) => Ok(ty.without_modifiers()),
                // No function takes what there is none of.
                Err(error) if error.state() == SqlState::FEATURE_NOT_SUPPORTED => Err(absent()),
                Err(error) => Err(error),
            });
            let types = types.collect::<Result<Vec<Type>, SqlError>>()?;
            let found = all.into_iter().find(|one| one.input_types() == types);
            found.ok_or_else(absent)?
        }
        None => {
            let kind = |one: &Arc<Function>| match of.word {
                "PROCEDURE" => one.is_procedure,
                "FUNCTION" => !one.is_procedure,
                _ => true,
            };
            let mut right = all.iter().filter(|one| kind(one));
            match (right.next(), right.next(), all.first()) {
                (Some(found), None, _) => found.clone(),
                (None, _, Some(other)) => other.clone(),
                (None, _, None) => {
                    let message = format!("could not find a {} named \"{name}\"", noun(of));
                    return Err(undefined(message));
                }
                _ => {
                    let message = format!("{} name \"{name}\" is not unique", noun(of));
                    let error = SqlError::new(SqlState::AMBIGUOUS_FUNCTION, message);
                    return Err(error.hint(format!(
                        "Specify the argument list to select the {} unambiguously.",
                        noun(of)
                    )));
                }
            }
        }
    };
    let fits = match of.word {
        "PROCEDURE" => found.is_procedure,
        "FUNCTION" => !found.is_procedure,
        _ => true,
    };
    if fits {
        return Ok(found);
    }
    let types: Vec<String> = found.input_types().iter().map(|ty| ty.name()).collect();
    let shown = format!("{name}({})", types.join(","));
    let message = format!("{shown} is not a {}", noun(of));
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}

fn apply_options(function: &mut Function, options: &RoutineOptions) -> Result<(), SqlError> {
    let RoutineOptions {
        lasts,
        strict,
        leakproof,
        parallel,
        cost,
        rows,
        definer,
        settings,
    } = options;
    if function.is_procedure && (lasts.is_some() || strict.is_some() || leakproof.is_some()) {
        return Err(wrong("invalid attribute in procedure definition"));
    }
    if rows.is_some() && !function.gives_rows() {
        let message = "ROWS is not applicable when function does not return a set";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    }
    function.lasts = lasts.unwrap_or(function.lasts);
    function.strict = strict.unwrap_or(function.strict);
    function.leakproof = leakproof.unwrap_or(function.leakproof);
    function.parallel = parallel.unwrap_or(function.parallel);
    function.cost = cost.or(function.cost);
    function.rows = rows.or(function.rows);
    function.definer = definer.unwrap_or(function.definer);
    for (name, value) in settings {
        function
            .settings
            .retain(|(own, _)| name.as_ref().is_some_and(|name| name != own));
        if let (Some(name), Some(value)) = (name, value) {
            function.settings.push((name.clone(), value.clone()));
        }
    }
    Ok(())
}

/// Most arguments of a function, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 100;

fn argument(
    argument: &RoutineArgument,
    before: &[Argument],
    binder: &mut Binder<'_>,
) -> Result<Argument, SqlError> {
    let RoutineArgument {
        mode,
        name,
        ty,
        default,
    } = argument;
    let ty = bind_type(ty, &binder.names())?.without_modifiers();
    if ty == Type::Unknown {
        return Err(wrong("SQL functions cannot have arguments of type unknown"));
    }
    let (takes, gives) = (Mode::takes, Mode::gives);
    if takes(*mode) && before.iter().any(|other| other.mode == Mode::Variadic) {
        return Err(wrong("VARIADIC parameter must be the last input parameter"));
    }
    if *mode == Mode::Variadic && ty.element().is_none() {
        return Err(wrong("VARIADIC parameter must be an array"));
    }
    let clashes = |other: &&Argument| {
        let both = takes(other.mode) && takes(*mode) || gives(other.mode) && gives(*mode);
        !name.is_empty() && other.name == *name && both
    };
    if before.iter().find(clashes).is_some() {
        return Err(wrong(format!(
            "parameter name \"{name}\" used more than once"
        )));
    }
    if default.is_some() && !takes(*mode) {
        return Err(wrong("only input parameters can have default values"));
    }
    let had = before
        .iter()
        .any(|other| takes(other.mode) && other.default.is_some());
    if default.is_none() && had && takes(*mode) {
        return Err(wrong(
            "input parameters after one with a default value must also have defaults",
        ));
    }
    let default = match default {
        None => None,
        Some(value) => Some(default_text(value, ty, binder)?),
    };
    Ok(Argument {
        mode: *mode,
        name: name.clone(),
        ty,
        default,
    })
}

/// Checks that a default fits its argument, and gives its text for the catalog.
fn default_text(
    value: &sqlparser::ast::Expr,
    ty: Type,
    binder: &mut Binder<'_>,
) -> Result<String, SqlError> {
    let outer = binder.set_scope(Scope::default());
    let bound = binder.expr(value);
    binder.set_scope(outer);
    let bound = bound.map_err(|error| {
        if error.state() != SqlState::UNDEFINED_COLUMN {
            return error;
        }
        let message = "cannot use table references in parameter default value";
        SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
    })?;
    resolve::coerce(bound, ty, Context::Assignment)?;
    let calls = binder.take_calls();
    let inits = core::mem::take(&mut binder.inits);
    if run_query(&calls, &inits) {
        let message = "cannot use subquery in DEFAULT expression";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let text = super::shown::kept(&super::shown::text(value), binder);
    // As PostgreSQL shows a literal: with its type.
    let literal = matches!(value, sqlparser::ast::Expr::Value(value)
        if parse::literal_text(&value.value).is_some());
    Ok(match literal && ty.user_id().is_none() {
        true => format!("{text}::{}", ty.name()),
        false => text,
    })
}

/// What a function gives, by RETURNS and its OUT arguments.
fn returns(
    create: &RoutineCreate,
    arguments: &[Argument],
    binder: &Binder<'_>,
) -> Result<(Returns, Option<u32>), SqlError> {
    if let Some(RoutineReturns::Type { ty, set }) = &create.returns
        && let Some(row) = row_type(ty, binder)
    {
        if arguments.iter().any(|argument| argument.mode.gives()) {
            return mismatched(arguments);
        }
        let returns = if *set { Returns::Rows } else { Returns::Row };
        return Ok((returns, Some(row)));
    }
    returned(create, arguments, binder).map(|returns| (returns, None))
}

/// # Errors
/// 42P13: RETURNS says something else than the OUT arguments.
fn mismatched<T>(arguments: &[Argument]) -> Result<T, SqlError> {
    let mut outputs = arguments.iter().filter(|argument| argument.mode.gives());
    let ty = match (outputs.next(), outputs.next()) {
        (Some(one), None) => one.ty.name(),
        _ => "record".to_string(),
    };
    let message = format!("function result type must be {ty} because of OUT parameters");
    Err(wrong(message))
}

/// The table or view whose rows a function gives, if a type names one.
fn row_type(ty: &sqlparser::ast::DataType, binder: &Binder<'_>) -> Option<u32> {
    if bind_type(ty, &binder.names()).is_ok() {
        return None;
    }
    let full = binder.of_text(&ty.to_string())?;
    let database = binder.cx.database;
    let mut relations = database.relations();
    let (_, kind, id) = relations.find(|(name, ..)| *name == full)?;
    (kind != rights::ObjectKind::Sequence).then_some(id)
}

/// What a function gives that names no row.
fn returned(
    create: &RoutineCreate,
    arguments: &[Argument],
    binder: &Binder<'_>,
) -> Result<Returns, SqlError> {
    let outputs: Vec<Type> = arguments
        .iter()
        .filter(|argument| argument.mode.gives())
        .map(|argument| argument.ty)
        .collect();
    if create.is_procedure {
        return Ok(Returns::Void);
    }
    let by_outputs = match outputs.as_slice() {
        [] => None,
        [one] => Some(Returns::One(*one)),
        _ => Some(Returns::Row),
    };
    let mismatch = |ty: &str| {
        let message = format!("function result type must be {ty} because of OUT parameters");
        Err(wrong(message))
    };
    match (&create.returns, by_outputs) {
        (None, Some(returns)) => Ok(returns),
        (None, None) => Err(wrong("function result type must be specified")),
        (Some(RoutineReturns::Void), None) => Ok(Returns::Void),
        (Some(RoutineReturns::Table), _) => {
            let mut modes = arguments.iter().map(|argument| argument.mode);
            if modes.any(|mode| matches!(mode, Mode::Out | Mode::InOut)) {
                let message = "OUT and INOUT arguments aren't allowed in TABLE functions";
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
            Ok(match outputs.as_slice() {
                [one] => Returns::Each(*one),
                _ => Returns::Rows,
            })
        }
        (Some(RoutineReturns::Record { set: _ }), None) => {
            let error = unsupported("a function that returns record without OUT arguments");
            Err(error.hint("Name the columns: RETURNS TABLE (...)."))
        }
        (Some(RoutineReturns::Record { set }), Some(Returns::Row)) => Ok(match set {
            true => Returns::Rows,
            false => Returns::Row,
        }),
        (Some(RoutineReturns::Type { ty, set }), by_outputs) => {
            let ty = result_type(ty, binder)?;
            match by_outputs {
                Some(Returns::One(own)) if own != ty => mismatch(&own.name()),
                Some(Returns::Row) => mismatch("record"),
                _ if *set => Ok(Returns::Each(ty)),
                _ => Ok(Returns::One(ty)),
            }
        }
        (Some(_), Some(Returns::One(own))) => mismatch(&own.name()),
        (Some(_), Some(_)) => mismatch("record"),
    }
}

fn result_type(ty: &sqlparser::ast::DataType, binder: &Binder<'_>) -> Result<Type, SqlError> {
    bind_type(ty, &binder.names()).map(Type::without_modifiers)
}

/// A body of which nothing is known yet.
fn new_body(body: &RoutineBody, path: &[u32]) -> Body {
    let (statements, returns) = match body {
        RoutineBody::Text(text) => return Body::Text(text.clone()),
        RoutineBody::Return(text) => (vec![text.clone()], true),
        RoutineBody::Atomic(all) => (all.clone(), false),
    };
    Body::Parsed {
        returns,
        statements,
        shown: Vec::new(),
        path: path.to_vec(),
        uses: Vec::new(),
    }
}

fn created(create: &RoutineCreate, binder: &mut Binder<'_>) -> Result<Function, SqlError> {
    let RoutineCreate {
        replace: _,
        is_procedure,
        name,
        arguments: written,
        returns: _,
        options,
        body,
    } = create;
    let name = new_parts(name, binder)?;
    if written.len() > ARGUMENTS_MAX {
        let message = format!("functions cannot have more than {ARGUMENTS_MAX} arguments");
        return Err(SqlError::new(SqlState(*b"54023"), message));
    }
    let mut arguments: Vec<Argument> = Vec::with_capacity(written.len());
    for one in written {
        arguments.push(argument(one, &arguments, binder)?);
    }
    let (returns, row_of) = returns(create, &arguments, binder)?;
    let path = binder.names().path.to_vec();
    let mut function = Function {
        id: 0,
        name,
        is_procedure: *is_procedure,
        arguments,
        returns,
        body: new_body(body, &path),
        lasts: Default::default(),
        strict: false,
        leakproof: false,
        parallel: Default::default(),
        cost: None,
        rows: None,
        definer: false,
        settings: Vec::new(),
        row_of,
    };
    apply_options(&mut function, options)?;
    let length: usize = match &function.body {
        Body::Text(text) => text.len(),
        Body::Parsed { statements, .. } => statements.iter().map(String::len).sum(),
    };
    if length > VIEW_BYTES_MAX {
        let message =
            format!("the body of a function cannot be longer than {VIEW_BYTES_MAX} bytes");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
    }
    let is_text = matches!(function.body, Body::Text(_));
    if is_text && !binder.cx.viewer.checks_bodies {
        return Ok(function);
    }
    let path = match function.setting("search_path") {
        Some(_) if is_text => binder.path_of(&function).to_vec(),
        _ => path,
    };
    let found = check_body(&function, &path, binder)?;
    if let Body::Parsed { uses, shown, .. } = &mut function.body {
        *uses = found.uses;
        *shown = found.shown;
    }
    Ok(function)
}
