//! Function calls: scalar functions, functions with syntax of their own, sequences, aggregates.

use super::aggregate::AggregateCall;
use super::rel::{CallKind, InitValue};
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
        self.scalar_call(&name, args)
    }

    /// A call that is none of an aggregate or window function.
    fn scalar_call(&mut self, name: &str, args: &FunctionArguments) -> Result<Expr, SqlError> {
        if let Some(call) = self.call_of_rows(name, args)? {
            return Ok(call);
        }
        let args = self.plain_arguments(name, args)?;
        if let Some(call) = self.sequence_call(name, &args)? {
            return Ok(call);
        }
        let bound = args.iter().enumerate().map(|(i, arg)| match name {
            "coalesce" if i > 0 => self.optionally(|binder| binder.argument(name, arg)),
            _ => self.argument(name, arg),
        });
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
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
        let call = resolve::function(name, bound)?;
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
        Ok(Err(bound))
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
    fn plain_arguments<'a>(
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
                } => Err(unsupported("named arguments")),
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
        let call = resolve::function(name, args)?;
        self.note(&call);
        Ok(Some(call))
    }
}

/// Refuses functions that are not there yet.
pub(super) fn refuse_unbuilt(name: &str) -> Result<(), SqlError> {
    let is_path = name.starts_with("jsonb_path_");
    let is_record = name.starts_with("json")
        && (name.contains("_populate_record") || name.contains("_to_record"));
    if name == "regexp_matches" {
        return Err(unsupported(name).hint("Use regexp_match, which gives the first match."));
    }
    if name == "current_time" {
        return Err(unsupported(name).hint("Use LOCALTIME, which has no time zone."));
    }
    match (is_path, is_record) {
        (true, _) => {
            let hint = "Use the operators ->, #> and @>, or jsonb_array_elements in FROM.";
            Err(unsupported(name).hint(hint))
        }
        (_, true) => Err(unsupported(name).hint("Use ->> and a cast for each column.")),
        _ => Ok(()),
    }
}

/// The error of a clause that calls of aggregates have.
fn only_aggregates(name: &str, clause: &str) -> SqlError {
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
