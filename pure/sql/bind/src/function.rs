//! Function calls: scalar functions, functions with syntax of their own, sequences, aggregates.

use super::aggregate::AggregateCall;
use super::rel::{CallKind, InitValue};
use super::scope::ident;
use super::table_function::gives_rows;
use super::{Binder, at, unsupported};
use crate::rel::Signal;
use base::{Datum, SqlError, SqlState, Type};
use expr::resolve::{self, enums};
use expr::walk;
use expr::{Expr, Func, SessionFunc, Volatility};
use pg_catalog::names::known_schema;
use sqlparser::ast::{
    self, DuplicateTreatment, Expr as Ast, ExtractSyntax, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments,
};

impl Binder<'_> {
    pub(super) fn function(&mut self, function: &ast::Function) -> Result<Expr, SqlError> {
        self.call_of(function).map_err(|error| {
            // Where the name stands is looked up only for an error.
            let position = super::scope::name_position(&self.source, &function.name);
            at(error, position)
        })
    }

    fn call_of(&mut self, function: &ast::Function) -> Result<Expr, SqlError> {
        let ast::Function {
            name,
            uses_odbc_syntax,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        let written = name;
        let (schema, name) = self.name_of(name)?;
        self.no(*uses_odbc_syntax, "{")?;
        self.no(!matches!(parameters, FunctionArguments::None), "(")?;
        self.no(null_treatment.is_some(), "NULLS")?;
        if let FunctionArguments::Subquery(query) = args {
            return if name == "array" {
                self.array_subquery(query)
            } else {
                Err(unsupported("a subquery as function argument"))
            };
        }
        known_schema(self.cx.database, schema.as_deref())?;
        if over.is_none()
            && filter.is_none()
            && within_group.is_empty()
            && !expr::aggregate::is_aggregate(&name)
            && !window::is_window_function(&name)
            && name != "grouping"
            && let Some(call) = self.routine_call((schema.as_deref(), &name), written, args)?
        {
            return Ok(call);
        }
        let call = AggregateCall {
            arguments: args,
            filter: filter.as_deref(),
            within_group,
        };
        if let Some(over) = over {
            return self.call_over(&name, call, over);
        }
        if !within_group.is_empty() {
            return self.within(&name, call);
        }
        if expr::aggregate::is_aggregate(&name) {
            return self.aggregate(&name, call);
        }
        if name == "grouping" {
            return self.grouping(args);
        }
        if window::is_window_function(&name) {
            let message = format!("window function {name} requires an OVER clause");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if filter.is_some() {
            return Err(only_aggregates(&name, "FILTER"));
        }
        self.scalar_call(&name, written, args)
    }

    /// A call that is none of an aggregate or window function.
    fn scalar_call(
        &mut self,
        name: &str,
        written: &ast::ObjectName,
        args: &FunctionArguments,
    ) -> Result<Expr, SqlError> {
        self.known_names(name, args)?;
        if let Some(call) = self.call_by_name(name, args)? {
            return Ok(call);
        }
        // The row that it takes is no value here.
        if name.starts_with("json") && name.contains("_populate_record") {
            refuse_unbuilt(name)?;
        }
        let args = self.plain_arguments(name, args)?;
        let since = self.listed_calls();
        let bound = args.iter().enumerate().map(|(i, arg)| match name {
            "coalesce" if i > 0 => self.optionally(|binder| binder.argument(name, arg)),
            _ => self.argument(name, arg),
        });
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
        if name == "coalesce" {
            self.refuse_listed(since, "COALESCE")?;
        }
        self.call_of_values(name, written, bound)
    }

    /// # Errors
    /// 42883 for arguments with names: those that a function has stand in their places already.
    fn known_names(&mut self, name: &str, args: &FunctionArguments) -> Result<(), SqlError> {
        let FunctionArguments::List(list) = args else {
            return Ok(());
        };
        let is_plain = |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(_));
        if list.args.iter().all(is_plain) {
            return Ok(());
        }
        let mut shown = Vec::with_capacity(list.args.len());
        for arg in &list.args {
            let (word, arg) = match arg {
                FunctionArg::Named {
                    name,
                    arg,
                    operator: _,
                } => (format!("{} => ", ident(name)), arg),
                FunctionArg::Unnamed(arg) => (String::new(), arg),
                FunctionArg::ExprNamed {
                    name: _,
                    arg: _,
                    operator: _,
                } => return Ok(()),
            };
            let FunctionArgExpr::Expr(arg) = arg else {
                return Ok(());
            };
            let ty = self.argument(name, arg)?.ty();
            shown.push(format!("{word}{}", ty.base_name()));
        }
        let error = resolve::absent_function(name).unwrap_or_else(|| {
            let message = format!("function {name}({}) does not exist", shown.join(", "));
            SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            )
        });
        Err(error)
    }

    /// A call whose arguments are bound in a way of their own; it has a frame of its own because
    /// calls nest deeply.
    fn call_by_name(
        &mut self,
        name: &str,
        args: &FunctionArguments,
    ) -> Result<Option<Expr>, SqlError> {
        if let Some(call) = self.call_of_rows(name, args)? {
            return Ok(Some(call));
        }
        if let Some(value) = self.session_value(name)? {
            return Ok(Some(value));
        }
        let args = self.plain_arguments(name, args)?;
        let is_array = |arg: &&Ast| super::routine::variadic_array(arg).is_some();
        if args.iter().any(is_array) {
            return Err(unsupported("VARIADIC in a call of this function")
                .hint("Functions in SQL take arrays so."));
        }
        self.sequence_call(name, &args)
    }

    fn call_of_values(
        &mut self,
        name: &str,
        written: &ast::ObjectName,
        bound: Vec<Expr>,
    ) -> Result<Expr, SqlError> {
        if let Some(call) = self.effect(name, &bound)? {
            return Ok(call);
        }
        let bound = match self.session_call(name, bound)? {
            Ok(call) => return Ok(call),
            Err(bound) => bound,
        };
        if gives_rows(name) {
            return self.listed_rows(name, bound);
        }
        refuse_unbuilt(name)?;
        let own = !self.cx.database.functions.is_empty();
        let values = own.then(|| bound.clone());
        let call = match (resolve::function(name, bound), values) {
            (Err(error), Some(values)) if error.state() == SqlState::UNDEFINED_FUNCTION => {
                match self.overloaded(name, written, values)? {
                    Some(call) => return Ok(call),
                    None => return Err(error),
                }
            }
            (call, _) => call?,
        };
        self.sizes |= is_size(&call);
        self.note(&call);
        self.computed(call)
    }

    /// A function by which sessions end, lock out or tell each other; `Err`: it is none, or has
    /// other arguments.
    fn session_call(
        &mut self,
        name: &str,
        mut bound: Vec<Expr>,
    ) -> Result<Result<Expr, Vec<Expr>>, SqlError> {
        let untyped = |expr: &Expr| expr.ty() == Type::Unknown;
        let fits = |expr: &Expr| expr.ty().is_integer() || untyped(expr);
        if let Some(call) = advisory::Call::named(name) {
            let (min, max) = match call {
                advisory::Call::UnlockAll => (0, 0),
                advisory::Call::Lock { .. } | advisory::Call::Unlock(_) => (1, 2),
            };
            let count = bound.len();
            let narrow = |expr: &Expr| count == 1 || expr.ty() != Type::Int8;
            let known = bound.iter().all(|expr| fits(expr) && narrow(expr));
            if !(min..=max).contains(&count) || !known {
                return Ok(Err(bound));
            }
            let ty = if count == 1 { Type::Int8 } else { Type::Int4 };
            for arg in &mut bound {
                *arg = self.explicit(arg.clone(), ty)?;
                self.note(arg);
            }
            let result = if call.tells() { Type::Bool } else { Type::Text };
            return Ok(Ok(
                self.volatile_call(CallKind::Advisory(call, bound), result)
            ));
        }
        let texts = |expr: &Expr| expr.ty().is_text() || untyped(expr);
        if name == "pg_notify" && bound.len() == 2 && bound.iter().all(texts) {
            for arg in &mut bound {
                *arg = self.explicit(arg.clone(), Type::Text)?;
                self.note(arg);
            }
            return Ok(Ok(self.volatile_call(CallKind::Notify(bound), Type::Text)));
        }
        self.object_call(name, bound)
    }

    /// A call that waits, or does something to another session.
    fn effect(&mut self, name: &str, args: &[Expr]) -> Result<Option<Expr>, SqlError> {
        let (kind, ty) = match (name, signal_of(name), args) {
            ("pg_sleep", _, [seconds]) => {
                let seconds = self.explicit(seconds.clone(), Type::Float8)?;
                self.note(&seconds);
                (CallKind::Sleep(seconds), Type::Text)
            }
            ("pg_sleep", ..) => return Err(unsupported("pg_sleep")),
            (_, Some(signal), [pid]) => {
                let pid = self.explicit(pid.clone(), Type::Int4)?;
                self.note(&pid);
                self.need_superuser(match signal {
                    Signal::Cancel => "must be superuser to cancel the statement of a session",
                    Signal::Terminate => "must be superuser to end a session",
                });
                (CallKind::Signal(pid, signal), Type::Bool)
            }
            ("pg_reload_conf", _, []) => {
                // Settings are those of sessions, roles and databases: they are there at once.
                self.need_superuser("permission denied for function pg_reload_conf");
                return Ok(Some(Expr::Const(Datum::Bool(true), Type::Bool)));
            }
            ("pg_stat_statements_reset", ..) if args.len() <= 3 => {
                let types = [Type::Oid, Type::Oid, Type::Int8];
                let typed = args.iter().zip(types);
                let typed = typed.map(|(arg, ty)| self.explicit(arg.clone(), ty));
                let typed = typed.collect::<Result<Vec<_>, _>>()?;
                typed.iter().for_each(|arg| self.note(arg));
                self.need_superuser("permission denied for function pg_stat_statements_reset");
                (CallKind::ForgetStatements(typed), Type::Text)
            }
            _ => return Ok(None),
        };
        Ok(Some(self.volatile_call(kind, ty)))
    }

    /// A call of a function that takes rows, one of which is written `relation.*`.
    fn call_of_rows(
        &mut self,
        name: &str,
        args: &FunctionArguments,
    ) -> Result<Option<Expr>, SqlError> {
        let FunctionArguments::List(list) = args else {
            return Ok(None);
        };
        let rows = |arg: &FunctionArg| {
            matches!(
                arg,
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_))
            )
        };
        if !super::row::takes_rows(name) || !list.args.iter().any(rows) {
            return Ok(None);
        }
        let mut bound = Vec::new();
        for arg in &list.args {
            bound.push(match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => self.argument(name, arg)?,
                FunctionArg::Unnamed(row) => match self.row_argument(name, row)? {
                    Some(row) => row,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            });
        }
        let call = resolve::function(name, bound)?;
        self.note(&call);
        self.computed(call).map(Some)
    }

    /// The arguments of a call that is none of an aggregate.
    pub(super) fn plain_arguments<'a>(
        &self,
        name: &str,
        args: &'a FunctionArguments,
    ) -> Result<Vec<&'a Ast>, SqlError> {
        let list = match args {
            FunctionArguments::List(ast::FunctionArgumentList {
                duplicate_treatment,
                args,
                clauses,
            }) => {
                if matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct)) {
                    return Err(only_aggregates(name, "DISTINCT"));
                }
                match clauses.first() {
                    None => {}
                    Some(FunctionArgumentClause::OrderBy(_)) => {
                        return Err(only_aggregates(name, "ORDER BY"));
                    }
                    Some(other) => return Err(self.source.misplaced(&first_word(other))),
                }
                args
            }
            FunctionArguments::None | FunctionArguments::Subquery(_) => return Ok(Vec::new()),
        };
        list.iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => Ok(arg),
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)) => {
                    Err(unsupported("a whole row as a value"))
                }
                FunctionArg::Unnamed(_) => Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("{name}(*) specified, but {name} is not an aggregate function"),
                )),
                FunctionArg::Named {
                    name: _,
                    arg: _,
                    operator: _,
                }
                | FunctionArg::ExprNamed {
                    name: _,
                    arg: _,
                    operator: _,
                } => Err(resolve::absent_function(name).unwrap_or_else(|| {
                    let message =
                        format!("function {name} with arguments by these names does not exist");
                    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
                })),
            })
            .collect()
    }

    /// A call as it stands in expressions: what is the same for all rows of a statement, but only
    /// known when it runs, becomes a slot.
    pub(super) fn computed(&mut self, mut call: Expr) -> Result<Expr, SqlError> {
        if let Expr::Call(func @ Func::Session(SessionFunc::Setting), _, _) = &mut call
            && self.source.0.to_ascii_lowercase().contains("set_config")
        {
            *func = Func::Session(SessionFunc::SettingNow);
        }
        if enums::constant(&call).is_some() {
            // A label becomes a value when the statement is settled.
            return Ok(call);
        }
        let stable = matches!(&call, Expr::Call(func, _, _)
            if func.volatility() == Volatility::Stable);
        if stable && walk::is_row_independent(&call) && !reads_row_slots(&call, self.params.len()) {
            let ty = call.ty();
            return Ok(self.init(InitValue::Expr(call), ty));
        }
        Ok(call)
    }

    /// Functions that the grammar knows; `None` for other expressions.
    pub(super) fn special_function(&mut self, ast: &Ast) -> Result<Option<Expr>, SqlError> {
        let (name, args): (&str, Vec<&Ast>) = match ast {
            Ast::Extract {
                field,
                syntax,
                expr,
            } => {
                self.no(*syntax != ExtractSyntax::From, ",")?;
                let field = Expr::literal(&field.to_string().to_lowercase().replace('\'', ""));
                let value = self.expr(expr)?;
                return resolve::function("extract", vec![field, value]).map(Some);
            }
            Ast::Position { expr, r#in } => ("strpos", vec![r#in, expr]),
            Ast::Substring {
                expr,
                substring_from,
                substring_for,
                // Whether commas stand in place of the words.
                special: _,
            } => {
                let value = self.expr(expr)?;
                let from = match substring_from {
                    Some(from) => self.expr(from)?,
                    None => Expr::Const(Datum::Int(1), Type::Int4),
                };
                let mut args = vec![value, from];
                if let Some(length) = substring_for {
                    args.push(self.expr(length)?);
                }
                let call = resolve::function("substring", args)?;
                self.note(&call);
                return Ok(Some(call));
            }
            Ast::Trim {
                expr,
                trim_where,
                trim_what,
                trim_characters,
            } => {
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    Some(ast::TrimWhereField::Both) | None => "btrim",
                };
                let mut args: Vec<&Ast> = vec![expr];
                args.extend(trim_what.as_deref());
                args.extend(trim_characters.iter().flatten());
                (name, args)
            }
            Ast::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let mut args: Vec<&Ast> = vec![expr, overlay_what, overlay_from];
                args.extend(overlay_for.as_deref());
                ("overlay", args)
            }
            _ => return Ok(None),
        };
        let args = args
            .into_iter()
            .map(|arg| self.expr(arg))
            .collect::<Result<Vec<_>, _>>()?;
        let call = resolve::function(of_bits(name, &args), args)?;
        self.note(&call);
        Ok(Some(call))
    }
}

/// The function of a construct: `strpos` is of texts only.
fn of_bits<'n>(name: &'n str, args: &[Expr]) -> &'n str {
    let is_bits = |arg: &Expr| matches!(arg.ty(), Type::Bit(_) | Type::Varbit(_));
    match name {
        "strpos" if args.iter().any(is_bits) => "position",
        other => other,
    }
}

/// Refuses functions that are not there yet.
pub(super) fn refuse_unbuilt(name: &str) -> Result<(), SqlError> {
    let is_record = name.starts_with("json")
        && (name.contains("_populate_record") || name.contains("_to_record"));
    match is_record {
        true if name.contains("_to_record") => {
            let message = format!("could not determine row type for result of {name}");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(
                "Provide a non-null record argument, or call the function in the FROM clause using \
                 a column definition list.",
            ))
        }
        true => {
            let hint = format!("Call it in FROM: SELECT * FROM {name}(..).");
            Err(unsupported(&format!("{name} outside of FROM")).hint(hint))
        }
        false => Ok(()),
    }
}

/// The error of a clause that calls of aggregates have.
pub(super) fn only_aggregates(name: &str, clause: &str) -> SqlError {
    if let Some(error) = resolve::absent_function(name) {
        return error;
    }
    let message = format!("{clause} specified, but {name} is not an aggregate function");
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// The word that a clause starts with.
pub(super) fn first_word(clause: &impl core::fmt::Display) -> String {
    let text = clause.to_string();
    text.split(' ').next().unwrap_or_default().to_string()
}

/// Whether a call asks how much memory rows take up.
fn is_size(call: &Expr) -> bool {
    matches!(call, Expr::Call(Func::Catalog(name), ..)
        if pg_catalog::functions::is_size(name))
}

/// Whether the expression reads slots behind the client's parameters: they may belong to rows of
/// an enclosing query.
fn reads_row_slots(expr: &Expr, params: usize) -> bool {
    walk::any(expr, &|node| match node {
        Expr::Param(slot, _) => *slot as usize >= params,
        Expr::Outer(..) => true,
        Expr::Call(Func::NextVal | Func::Sleep, _, _) => true,
        _ => false,
    })
}

/// What a function does to another session, if it is such a function.
fn signal_of(name: &str) -> Option<Signal> {
    match name {
        "pg_cancel_backend" => Some(Signal::Cancel),
        "pg_terminate_backend" => Some(Signal::Terminate),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use functions::json::JsonRows;

    /// pg_proc as it was recorded from PostgreSQL.
    const PROCS: &str = include_str!("../../pg_catalog/src/procs.txt");

    /// Functions that are bound in a way of their own.
    const OWN: [&str; 29] = [
        "array_to_json",
        "currval",
        "enum_first",
        "enum_in",
        "enum_last",
        "enum_out",
        "enum_range",
        "json_build_array",
        "json_build_object",
        "jsonb_build_array",
        "jsonb_build_object",
        "lastval",
        "lo_export",
        "lo_import",
        "mode",
        "percentile_cont",
        "percentile_disc",
        "pg_cancel_backend",
        "pg_notify",
        "pg_reload_conf",
        "pg_sequence_last_value",
        "pg_terminate_backend",
        "pg_typeof",
        "row_to_json",
        "setval",
        "to_json",
        "to_jsonb",
        "loread",
        "lowrite",
    ];

    fn is_there(name: &str) -> bool {
        resolve::is_known(name)
            || Type::named(name).is_some_and(|ty| ty != Type::InternalChar)
            || expr::aggregate::is_aggregate(name)
            || window::is_window_function(name)
            || gives_rows(name)
            || JsonRows::named(name).is_some()
            || advisory::Call::named(name).is_some()
            || name.starts_with("lo_")
            || OWN.contains(&name)
    }

    #[test]
    fn what_postgresql_has_is_there_or_absent() {
        let names = PROCS.lines().map(|line| line.split(' ').nth(1));
        let names = names.map(|name| name.expect("a line has a name"));
        let is_absent = |name: &str| resolve::absent_function(name).is_some();
        let neither = names.filter(|name| !is_there(name) && !is_absent(name));
        assert_eq!(neither.collect::<Vec<_>>(), Vec::<&str>::new(), "neither");
        let both = resolve::absent_functions().filter(|name| is_there(name));
        assert_eq!(both.collect::<Vec<_>>(), Vec::<&str>::new(), "both");
    }
}
