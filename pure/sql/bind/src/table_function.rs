//! Functions in FROM.

use super::from::Factor;
use super::function::refuse_unbuilt;
use super::rel::{Call, Rel, TableFunction};
use super::scope::{Scope, ScopeColumn, ident, object_name};
use super::{Binder, place_calls, unsupported};
use base::{ArrayKind, Datum, SqlError, SqlState, Type};
use expr::resolve::{self, Context};
use expr::{Expr, Func};
use functions::RangeFunc;
use functions::json::JsonRows;
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, TableAlias};

/// What stands behind the call of a function in FROM.
#[derive(Clone, Copy)]
pub(super) struct FunctionShape<'a> {
    alias: Option<&'a TableAlias>,
    /// `WITH ORDINALITY`: rows are numbered in a last column.
    ordinality: bool,
}

impl<'a> FunctionShape<'a> {
    pub(super) fn of(alias: &'a Option<TableAlias>, ordinality: bool) -> FunctionShape<'a> {
        let alias = alias.as_ref();
        FunctionShape { alias, ordinality }
    }

    pub(super) fn alias(self) -> Option<&'a TableAlias> {
        self.alias
    }

    /// For functions in SQL.
    pub(super) fn refuse_numbers(self) -> Result<(), SqlError> {
        match self.ordinality {
            true => Err(unsupported("WITH ORDINALITY of a function in SQL")
                .hint("Number its rows by row_number() OVER ().")),
            false => Ok(()),
        }
    }

    /// Whether rows are numbered.
    pub(super) fn is_numbered(self) -> bool {
        self.ordinality
    }

    /// For functions whose rows are not numbered.
    fn refuse_ordinality(self) -> Result<(), SqlError> {
        match self.ordinality {
            true => Err(unsupported(
                "WITH ORDINALITY of a function of the system catalog",
            )),
            false => Ok(()),
        }
    }
}

/// Whether the name is a word of the grammar for a value, which is a function without arguments in
/// FROM, too.
pub(super) fn is_value_word(name: &ast::ObjectName) -> bool {
    const WORDS: [&str; 11] = [
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "user",
    ];
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(word)] => {
            word.quote_style.is_none() && WORDS.contains(&ident(word).as_str())
        }
        _ => false,
    }
}

/// Whether a function gives rows.
pub(super) fn gives_rows(name: &str) -> bool {
    let plain = [
        "generate_series",
        "generate_subscripts",
        "unnest",
        "regexp_matches",
    ];
    let is_json = || match JsonRows::named(name) {
        // Their columns are known in FROM alone.
        Some(JsonRows::Records { .. }) | None => false,
        Some(_) => true,
    };
    plain.contains(&name)
        || array_function(name).is_some()
        || super::exploded::is_exploded(name)
        || is_json()
}

/// The function that gives as an array what this one gives as rows.
fn array_function(name: &str) -> Option<&'static str> {
    match name {
        "string_to_table" => Some("string_to_array"),
        "regexp_split_to_table" => Some("regexp_split_to_array"),
        _ => None,
    }
}

/// A function with its arguments, and the names and types of its columns.
pub(super) struct BoundFunction {
    pub(super) function: TableFunction,
    pub(super) args: Vec<Expr>,
    pub(super) columns: Vec<(Option<&'static str>, Type)>,
}

/// `unnest` of an array, of several side by side, or of a multirange.
fn bind_unnest(args: Vec<Expr>) -> Result<BoundFunction, SqlError> {
    let args = args.into_iter().map(parts_of_multirange);
    let args: Vec<Expr> = args.collect();
    let element = |arg: &Expr| {
        arg.ty().element().ok_or_else(|| {
            let message = format!("function unnest({}) does not exist", arg.ty().name());
            SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
        })
    };
    let types = args.iter().map(element).collect::<Result<Vec<_>, _>>()?;
    let (function, name) = match (types.len(), u8::try_from(types.len())) {
        (1, _) => (TableFunction::Unnest, None),
        (2.., Ok(count)) => (TableFunction::Unnests(count), Some("unnest")),
        _ => return Err(unsupported("this number of arguments of unnest")),
    };
    Ok(BoundFunction {
        function,
        args,
        columns: types.into_iter().map(|ty| (name, ty)).collect(),
    })
}

/// A multirange as the array of its ranges; others as they are.
fn parts_of_multirange(arg: Expr) -> Expr {
    match arg.ty() {
        Type::Multirange(kind) => {
            let parts = Func::Range(RangeFunc::Parts);
            Expr::Call(parts, vec![arg], Type::Array(ArrayKind::Range(kind)))
        }
        _ => arg,
    }
}

/// A function that gives the parts of a JSON value.
fn bind_rows(name: &str, rows: JsonRows, args: Vec<Expr>) -> Result<BoundFunction, SqlError> {
    let args = rows_arguments(name, rows, args)?;
    Ok(BoundFunction {
        function: TableFunction::Json(rows),
        args,
        columns: rows.columns(),
    })
}

/// A call of the function `like`, whose arguments those of `name` are.
fn renamed(name: &str, like: &str, args: Vec<Expr>) -> Result<Expr, SqlError> {
    resolve::function(like, args).map_err(|error| {
        let message = error.fields().message.replace(like, name);
        SqlError::new(error.state(), message).hint(error.fields().hint.clone())
    })
}

/// Its arguments, in the types that it takes.
pub(super) fn rows_arguments(
    name: &str,
    rows: JsonRows,
    args: Vec<Expr>,
) -> Result<Vec<Expr>, SqlError> {
    let (wanted, required) = rows.arguments();
    let fits = (required..=wanted.len()).contains(&args.len())
        && args
            .iter()
            .zip(&wanted)
            .all(|(arg, ty)| resolve::can_coerce(arg.ty(), *ty, Context::Implicit));
    if !fits {
        let types: Vec<_> = args.iter().map(|arg| arg.ty().base_name()).collect();
        let message = format!("function {name}({}) does not exist", types.join(", "));
        return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
            "No function matches the given name and argument types. You might need to add \
             explicit type casts.",
        ));
    }
    let args = args.into_iter().zip(wanted);
    args.map(|(arg, ty)| resolve::coerce(arg, ty, Context::Implicit))
        .collect()
}

/// Refuses a column definition list.
fn not_of_a_record(alias: Option<&TableAlias>, columns: usize) -> Result<(), SqlError> {
    let mut listed = alias.into_iter().flat_map(|alias| &alias.columns);
    if listed.all(|column| column.data_type.is_none()) {
        return Ok(());
    }
    let message = match columns {
        1 => "a column definition list is only allowed for functions returning \"record\"",
        _ => "a column definition list is redundant for a function with OUT parameters",
    };
    Err(SqlError::new(SqlState::SYNTAX, message))
}

/// Whether these are options of a foreign table, server or the like: there are none.
fn are_foreign_options(function: &str, args: &[FunctionArg]) -> bool {
    const NAMES: [&str; 5] = [
        "attfdwoptions",
        "fdwoptions",
        "srvoptions",
        "umoptions",
        "ftoptions",
    ];
    let last = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Identifier(name))) => ident(name),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::CompoundIdentifier(parts))) => {
            parts.last().map(ident).unwrap_or_default()
        }
        _ => String::new(),
    };
    function == "pg_options_to_table"
        && matches!(args, [arg] if NAMES.contains(&last(arg).as_str()))
}

/// The table of the system catalog whose rows a function gives.
fn rows_behind(function: &str) -> &str {
    match function {
        "pg_show_all_settings" => "pg_settings",
        other => other,
    }
}

impl Binder<'_> {
    pub(super) fn function_factor(
        &mut self,
        name: &ast::ObjectName,
        args: &[FunctionArg],
        shape: FunctionShape<'_>,
        visible: &Scope,
    ) -> Result<Factor, SqlError> {
        let (schema, function) = object_name(name);
        if (args.is_empty() || are_foreign_options(&function, args))
            && let Some(found) = pg_catalog::lookup(schema.as_deref(), rows_behind(&function))
        {
            shape.refuse_ordinality()?;
            let alias = shape.alias;
            let shown = match alias {
                None => function.clone(),
                Some(alias) => self.relation_name(&alias.name)?,
            };
            let columns = found
                .columns
                .iter()
                .map(|c| (c.name.to_string(), c.ty, (0, 0)));
            let mut scope = Scope::of_relation(&shown, columns, 0);
            self.rename(&mut scope, alias)?;
            return Ok(Factor {
                rel: Rel::Virtual(found),
                scope,
                binds: Vec::new(),
            });
        }
        let called = (schema.as_deref(), function.as_str());
        if let Some(factor) = self.routine_factor(called, name, args, shape, visible)? {
            return Ok(factor);
        }
        let placed = parse::placed(&function, args)?;
        let args = placed
            .iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => Ok(arg),
                _ => Err(unsupported("this form of function argument")),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(rows @ JsonRows::Records { .. }) = JsonRows::named(&function) {
            return self.record_factor(rows, &args, shape, visible);
        }
        self.table_function(&function, &args, shape, visible)
    }

    pub(super) fn table_function(
        &mut self,
        name: &str,
        args: &[&ast::Expr],
        shape: FunctionShape<'_>,
        visible: &Scope,
    ) -> Result<Factor, SqlError> {
        let outer = self.set_scope(visible.clone());
        self.swap_around();
        let bound = self.nested(|binder| {
            binder.level().aggregates_in = Some("functions in FROM");
            let args = args
                .iter()
                .map(|arg| binder.expr(arg))
                .collect::<Result<Vec<_>, _>>()?;
            let bound = binder.bind_table_function(name, args)?;
            let calls = binder.take_calls();
            Ok((bound, calls))
        });
        self.swap_around();
        self.set_scope(outer);
        let ((bound, calls), binds, _) = bound?;
        let BoundFunction {
            function,
            args,
            columns,
        } = bound;
        let mut types: Vec<Type> = columns.iter().map(|(_, ty)| *ty).collect();
        types.extend(shape.ordinality.then_some(Type::Int8));
        let mut rel = Rel::Function {
            function,
            args,
            types: types.clone(),
        };
        if !calls.is_empty() {
            rel = self.after_calls(rel, calls, &types);
        }
        let alias = shape.alias;
        let shown = match alias {
            None => name.to_string(),
            Some(alias) => self.relation_name(&alias.name)?,
        };
        // A function of one column without a name of its own names it as the alias does.
        let named = columns.iter().map(|(name, ty)| {
            let name = name.map_or_else(|| shown.clone(), str::to_string);
            (name, *ty, (0, 0))
        });
        not_of_a_record(alias, columns.len())?;
        let place = shape
            .ordinality
            .then(|| ("ordinality".to_string(), Type::Int8, (0, 0)));
        let mut scope = Scope::of_relation(&shown, named.chain(place), 0);
        self.rename(&mut scope, alias)?;
        // The relation as a whole is the value, if that is all it has.
        if let [(Some(_), ty)] = columns.as_slice()
            && !shape.ordinality
            && scope.columns.iter().all(|column| column.name != shown)
        {
            let whole = Scope::of_relation(&shown, [(shown.clone(), *ty, (0, 0))], 0);
            scope
                .columns
                .extend(whole.columns.into_iter().map(|column| ScopeColumn {
                    hidden: true,
                    ..column
                }));
        }
        Ok(Factor { rel, scope, binds })
    }

    /// A function of which an argument holds a dependent subquery: that is computed in a row of
    /// its own.
    pub(super) fn after_calls(
        &mut self,
        mut rel: Rel,
        calls: Vec<Call<Rel>>,
        types: &[Type],
    ) -> Rel {
        let mut binds = Vec::new();
        if let Rel::Function { args, .. } = &mut rel {
            for arg in args.iter_mut() {
                place_calls(arg, 0);
                let slot = self.new_slot();
                let ty = arg.ty();
                binds.push((slot, core::mem::replace(arg, Expr::Param(slot, ty))));
            }
        }
        let width = calls.len() as u32;
        let lateral = Rel::Lateral {
            outer: false,
            left: Box::new(Rel::One.applied(calls)),
            right: Box::new(rel),
            binds,
            on: Vec::new(),
        };
        let columns = (width..).zip(types);
        lateral.projected(columns.map(|(at, ty)| Expr::Column(at, *ty)).collect())
    }

    pub(super) fn bind_table_function(
        &mut self,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<BoundFunction, SqlError> {
        let plain = |function, args, ty| BoundFunction {
            function,
            args,
            columns: vec![(None, ty)],
        };
        if let Some(rows) = JsonRows::named(name) {
            return bind_rows(name, rows, args);
        }
        match name {
            "unnest" => bind_unnest(args),
            _ if super::exploded::is_exploded(name) => self.bind_exploded(name, args),
            "generate_subscripts" if args.len() == 2 => {
                let shift = i64::from(Self::is_zero_based(&args[0]));
                let shift = Expr::Const(Datum::Int(shift), Type::Int4);
                let first = resolve::function("array_lower", args.clone())?;
                let first = resolve::binary("-", first, shift.clone())?;
                let last = resolve::function("array_upper", args)?;
                let last = resolve::binary("-", last, shift)?;
                let (args, ty) = self.bind_series(vec![first, last])?;
                Ok(plain(TableFunction::Series, args, ty))
            }
            "generate_series" if (2..=3).contains(&args.len()) => {
                let (args, ty) = self.bind_series(args)?;
                Ok(plain(TableFunction::Series, args, ty))
            }
            "regexp_matches" => {
                let call = renamed(name, "regexp_match", args)?;
                self.note(&call);
                Ok(match call {
                    Expr::Call(_, args, ty) => plain(TableFunction::Matches, args, ty),
                    other => plain(TableFunction::Unnest, vec![other], Type::Text),
                })
            }
            _ if let Some(array) = array_function(name) => {
                let call = renamed(name, array, args)?;
                self.note(&call);
                let element = call.ty().element().unwrap_or(Type::Text);
                Ok(plain(TableFunction::Unnest, vec![call], element))
            }
            _ => {
                refuse_unbuilt(name)?;
                if let (Some(value), true) = (self.session_value(name)?, args.is_empty()) {
                    let ty = value.ty();
                    return Ok(plain(TableFunction::Scalar, vec![value], ty));
                }
                let call = match self.object_call(name, args)? {
                    Ok(call) => call,
                    Err(args) => resolve::function(name, args)?,
                };
                let ty = call.ty();
                Ok(plain(TableFunction::Scalar, vec![call], ty))
            }
        }
    }

    /// The arguments of `generate_series` in the type of what it gives.
    fn bind_series(&mut self, args: Vec<Expr>) -> Result<(Vec<Expr>, Type), SqlError> {
        let types: Vec<Type> = args[..2].iter().map(Expr::ty).collect();
        let mut ty = resolve::common_type(&types)?.without_modifiers();
        if ty.is_datetime() && ty == Type::Date {
            ty = Type::Timestamptz(None);
        }
        if matches!(ty, Type::Unknown | Type::Int2) {
            ty = Type::Int4;
        }
        if let Some(step) = args.get(2)
            && step.ty().is_numeric()
        {
            ty = resolve::common_type(&[ty, step.ty()])?.without_modifiers();
        }
        let supported = matches!(
            ty,
            Type::Int4 | Type::Int8 | Type::Numeric(_) | Type::Timestamp(_) | Type::Timestamptz(_)
        );
        if !supported || (ty.is_datetime() && args.len() == 2) {
            let shown: Vec<String> = args.iter().map(|arg| arg.ty().name()).collect();
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!(
                    "function generate_series({}) does not exist",
                    shown.join(", ")
                ),
            ));
        }
        let mut coerced = Vec::new();
        for (i, arg) in args.into_iter().enumerate() {
            let to = if i == 2 && ty.is_datetime() {
                Type::Interval(None)
            } else {
                ty
            };
            let arg = resolve::coerce(arg, to, Context::Implicit)?;
            self.note(&arg);
            coerced.push(arg);
        }
        Ok((coerced, ty))
    }
}
