//! Functions in FROM.

use super::from::Factor;
use super::function::refuse_unbuilt;
use super::rel::{Call, Rel, TableFunction};
use super::scope::{Scope, ScopeColumn, ident, object_name};
use super::target::Target;
use super::{AGGREGATE, Binder, place_calls, unsupported};
use base::{Datum, SqlError, SqlState, Type};
use expr::resolve::{self, Context};
use expr::{Expr, walk};
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

/// Where a function that gives rows may stand in the SELECT list, and the one that does.
pub(super) struct ListedRows {
    /// Columns of the row that it is computed from; its own value stands behind them.
    width: u32,
    found: Option<BoundFunction>,
    /// Its rows are numbered, in a column of their own: `generate_subscripts` of its array.
    numbered: bool,
}

impl ListedRows {
    /// None has been found so far.
    fn behind(width: u32) -> ListedRows {
        ListedRows {
            width,
            found: None,
            numbered: false,
        }
    }

    /// Refuses rows that would be counted in another place than PostgreSQL does.
    ///
    /// # Errors
    /// 0A000.
    fn check<'e>(
        &self,
        elsewhere: bool,
        mut targets: impl Iterator<Item = &'e Expr>,
    ) -> Result<(), SqlError> {
        let own = |node: &Expr| matches!(node, Expr::Column(at, _) if *at == self.width);
        let chosen = |node: &Expr| {
            matches!(node, Expr::Case { .. } | Expr::Coalesce(..)) && walk::any(node, &own)
        };
        let mut args = self.found.iter().flat_map(|found| &found.args);
        let call = |node: &Expr| {
            matches!(node, Expr::Subquery(..)) || matches!(node, Expr::Outer(AGGREGATE, ..))
        };
        if elsewhere
            || args.any(|arg| walk::any(arg, &call))
            || targets.any(|target| walk::any(target, &chosen))
        {
            return Err(not_in_list());
        }
        Ok(())
    }
}

/// Whether a function gives rows.
pub(super) fn gives_rows(name: &str) -> bool {
    let plain = ["generate_series", "generate_subscripts", "unnest"];
    plain.contains(&name) || array_function(name).is_some() || JsonRows::named(name).is_some()
}

/// The function that gives as an array what this one gives as rows.
fn array_function(name: &str) -> Option<&'static str> {
    match name {
        "string_to_table" => Some("string_to_array"),
        "regexp_split_to_table" => Some("regexp_split_to_array"),
        _ => None,
    }
}

fn not_in_list() -> SqlError {
    unsupported("a set-returning function outside of FROM")
        .hint("Call it in FROM, which sees the tables before it.")
}

/// A function with its arguments, and the names and types of its columns.
struct BoundFunction {
    function: TableFunction,
    args: Vec<Expr>,
    columns: Vec<(Option<&'static str>, Type)>,
}

impl BoundFunction {
    fn is_unnest(&self) -> bool {
        matches!(
            self.function,
            TableFunction::Unnest | TableFunction::Unnests(_)
        )
    }
}

/// `unnest` of an array, or of several side by side.
fn bind_unnest(args: Vec<Expr>) -> Result<BoundFunction, SqlError> {
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

/// A function that gives the parts of a JSON value.
fn bind_rows(name: &str, rows: JsonRows, args: Vec<Expr>) -> Result<BoundFunction, SqlError> {
    let types: Vec<Type> = args.iter().map(Expr::ty).collect();
    let wanted = rows.argument();
    let arg = match <[Expr; 1]>::try_from(args) {
        Ok([arg]) if resolve::can_coerce(arg.ty(), wanted, Context::Implicit) => arg,
        _ => {
            let types: Vec<_> = types.iter().map(|ty| ty.base_name()).collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            ));
        }
    };
    Ok(BoundFunction {
        function: TableFunction::Json(rows),
        args: vec![resolve::coerce(arg, wanted, Context::Implicit)?],
        columns: rows.columns(),
    })
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
            && let Some(found) = pg_catalog::lookup(schema.as_deref(), &function)
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
        let args = args
            .iter()
            .map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => Ok(arg),
                _ => Err(unsupported("this form of function argument")),
            })
            .collect::<Result<Vec<_>, _>>()?;
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

    /// A function that gives rows in the SELECT list: noted there, its value is a column behind
    /// those of FROM.
    pub(super) fn listed_rows(&mut self, name: &str, args: Vec<Expr>) -> Result<Expr, SqlError> {
        let args = match name {
            "generate_subscripts" => return self.listed_subscripts(args),
            _ => args,
        };
        let level = self.level();
        let inside = level.aggregates_in.is_some();
        let width = match &level.listed {
            Some(ListedRows {
                width, found: None, ..
            }) if !inside => *width,
            // The subscripts of this array stand before it.
            Some(ListedRows {
                width,
                found: Some(found),
                ..
            }) if !inside && name == "unnest" && found.args == args => {
                return Ok(Expr::Column(*width, found.columns[0].1));
            }
            Some(ListedRows {
                found: Some(found),
                numbered: false,
                ..
            }) if !inside && name == "unnest" && found.is_unnest() => {
                let another = self.bind_table_function(name, args)?;
                return self.beside(another);
            }
            _ => return Err(not_in_list()),
        };
        let found = self.bind_table_function(name, args)?;
        let [(_, ty)] = *found.columns.as_slice() else {
            return Err(not_in_list());
        };
        self.level().listed = Some(ListedRows {
            width,
            found: Some(found),
            numbered: false,
        });
        Ok(Expr::Column(width, ty))
    }

    /// One more `unnest` in a SELECT list, whose values stand beside those before.
    fn beside(&mut self, another: BoundFunction) -> Result<Expr, SqlError> {
        let Some(listed) = &mut self.level().listed else {
            return Err(not_in_list());
        };
        let (width, Some(found)) = (listed.width, &mut listed.found) else {
            return Err(not_in_list());
        };
        let [(_, ty)] = *another.columns.as_slice() else {
            return Err(not_in_list());
        };
        let place = found.columns.len();
        let count = u8::try_from(place + 1).map_err(|_| not_in_list())?;
        found.function = TableFunction::Unnests(count);
        found.args.extend(another.args);
        found.columns.extend(another.columns);
        Ok(Expr::Column(width + place as u32, ty))
    }

    /// `generate_subscripts(array, dimension)` in the SELECT list: the number of the item that
    /// `unnest(array)` gives there, whether that stands in the list or not.
    fn listed_subscripts(&mut self, args: Vec<Expr>) -> Result<Expr, SqlError> {
        let [array, dimension] = <[Expr; 2]>::try_from(args)
            .map_err(|_| unsupported("generate_subscripts in another form"))?;
        let from_zero = self.is_zero_based(&array);
        let level = self.level();
        let same = match &level.listed {
            Some(ListedRows {
                found: Some(found), ..
            }) => found.function == TableFunction::Unnest && found.args[..] == [array.clone()],
            _ => false,
        };
        if !same {
            self.listed_rows("unnest", vec![array])?;
        }
        let level = self.level();
        let Some(listed) = &mut level.listed else {
            return Err(not_in_list());
        };
        listed.numbered = true;
        let number = Expr::Column(listed.width + 1, Type::Int8);
        let number = resolve::coerce(number, Type::Int4, Context::Explicit)?;
        let int = |value| Expr::Const(Datum::Int(value), Type::Int4);
        let number = resolve::binary("-", number, int(i64::from(from_zero)))?;
        let dimension = resolve::coerce(dimension, Type::Int4, Context::Implicit)?;
        self.note(&dimension);
        Ok(Expr::Case {
            arms: vec![(resolve::binary("=", dimension, int(1))?, number)],
            otherwise: Box::new(Expr::Const(Datum::Null, Type::Int4)),
            ty: Type::Int4,
        })
    }

    /// The SELECT list over a row of this many columns, and the function in it that gives rows.
    pub(super) fn listed_targets(
        &mut self,
        projection: &[ast::SelectItem],
        width: u32,
    ) -> Result<(Vec<Target>, Option<ListedRows>), SqlError> {
        self.level().listed = Some(ListedRows::behind(width));
        let targets = self.targets(projection)?;
        Ok((targets, self.level().listed.take()))
    }

    /// Each row with the values that the function in the SELECT list gives for it, if one is
    /// there; `elsewhere`: PostgreSQL would make the rows later.
    ///
    /// # Errors
    /// 0A000 for rows that are made elsewhere.
    pub(super) fn with_rows(
        &mut self,
        rel: Rel,
        listed: Option<ListedRows>,
        elsewhere: bool,
        targets: &[Target],
    ) -> Result<Rel, SqlError> {
        let Some(listed) = listed.filter(|listed| listed.found.is_some()) else {
            return Ok(rel);
        };
        listed.check(elsewhere, targets.iter().map(|target| &target.expr))?;
        let Some(BoundFunction {
            function,
            args,
            columns,
        }) = listed.found
        else {
            return Ok(rel);
        };
        let (mut binds, mut slots) = (Vec::new(), Vec::new());
        for arg in args {
            let slot = self.new_slot();
            slots.push(Expr::Param(slot, arg.ty()));
            binds.push((slot, arg));
        }
        let mut types: Vec<Type> = columns.into_iter().map(|(_, ty)| ty).collect();
        types.extend(listed.numbered.then_some(Type::Int8));
        let right = Rel::Function {
            function,
            args: slots,
            types,
        };
        Ok(Rel::Lateral {
            outer: false,
            left: Box::new(rel),
            right: Box::new(right),
            binds,
            on: Vec::new(),
        })
    }

    /// A function of which an argument holds a dependent subquery: that is computed in a row of
    /// its own.
    fn after_calls(&mut self, mut rel: Rel, calls: Vec<Call<Rel>>, types: &[Type]) -> Rel {
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

    fn bind_table_function(
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
            "generate_subscripts" if args.len() == 2 => {
                let first = i64::from(!self.is_zero_based(&args[0]));
                let int = |value| Expr::Const(Datum::Int(value), Type::Int4);
                let last = resolve::function("array_upper", args)?;
                let last = resolve::binary("-", last, int(1 - first))?;
                let (args, ty) = self.bind_series(vec![int(first), last])?;
                Ok(plain(TableFunction::Series, args, ty))
            }
            "generate_series" if (2..=3).contains(&args.len()) => {
                let (args, ty) = self.bind_series(args)?;
                Ok(plain(TableFunction::Series, args, ty))
            }
            "generate_subscripts" if args.len() == 2 => {
                let last = resolve::function("array_upper", args)?;
                self.note(&last);
                let first = Expr::Const(Datum::Int(1), Type::Int4);
                Ok(plain(TableFunction::Series, vec![first, last], Type::Int4))
            }
            _ if let Some(array) = array_function(name) => {
                let call = resolve::function(array, args).map_err(|error| {
                    let message = error.fields().message.replace(array, name);
                    SqlError::new(error.state(), message).hint(error.fields().hint.clone())
                })?;
                self.note(&call);
                let element = call.ty().element().unwrap_or(Type::Text);
                Ok(plain(TableFunction::Unnest, vec![call], element))
            }
            _ => {
                refuse_unbuilt(name)?;
                let call = resolve::function(name, args)?;
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
                Type::Interval
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
