//! Calls of functions in SQL: which one a name means, and with which arguments.

use super::body::{only_query, only_value, statements};
use super::function::{first_word, only_aggregates};
use super::scope::{Scope, ident};
use super::{Binder, Level, unsupported};
use base::full_name::{full, own, schema_of};
use base::limits::{VIEW_USES_MAX, VIEWS_BYTES_MAX};
use base::{SqlError, SqlState, Type};
use catalog::{Argument, Body, Function, Mode, Returns};
use expr::Expr;
use expr::resolve::{self, Context};
use parse::Statement;
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};
use std::sync::Arc;

/// Functions whose bodies are bound, one inside the other: deeper ones are 54001.
const NESTED_MAX: usize = 64;

/// The functions whose bodies are being bound, and how much has been put in.
#[derive(Default)]
pub(crate) struct Routines {
    /// Numbers of those whose bodies are being bound, the outermost first.
    pub(super) inside: Vec<u32>,
    count: usize,
    bytes: usize,
    /// Numbers of all that the statement calls.
    pub(super) used: Vec<u32>,
    /// A function that is being made: its body may not call it.
    making: Option<(String, Vec<Type>)>,
    /// The function whose owner has the rights of what is being bound: SECURITY DEFINER.
    pub(super) definer: Option<u32>,
    /// The body that is being bound has a path of its own.
    pub(super) sets_path: bool,
}

impl Routines {
    /// The body of a function is bound next.
    pub(super) fn enter(&mut self, function: &Function) {
        if function.definer {
            self.definer = Some(function.id);
        }
    }
}

/// A call with its arguments, those that were left out included.
pub struct RoutineCall {
    /// What is called.
    pub function: Arc<Function>,
    /// A value for each argument that a call gives.
    pub args: Vec<Expr>,
}

/// Arguments of a call as they are written.
pub(super) struct Given {
    values: Vec<Expr>,
    /// Names of the last ones.
    names: Vec<String>,
    /// VARIADIC stands before the last one: it is the array itself.
    is_array: bool,
}

/// A function that may be meant, and how.
struct Fitting<'f> {
    function: &'f Arc<Function>,
    /// For each value the place of the argument that takes it.
    places: Vec<usize>,
    types: Vec<Type>,
    count: usize,
    /// Values from the last place on are items of an array.
    items: bool,
}

impl Given {
    fn types(&self) -> Vec<Type> {
        self.values.iter().map(Expr::ty).collect()
    }

    /// The arguments of the call as messages list them.
    fn shown(&self) -> String {
        let unnamed = self.values.len() - self.names.len();
        let shown = self.values.iter().enumerate().map(|(i, value)| {
            let ty = value.ty().base_name().to_string();
            match i.checked_sub(unnamed) {
                Some(at) => format!("{} => {ty}", self.names[at]),
                None => ty,
            }
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    /// For each value the place of the argument that takes it; `None`: the function does not.
    fn places(&self, arguments: &[&Argument]) -> Option<Vec<usize>> {
        let unnamed = self.values.len() - self.names.len();
        if self.values.len() > arguments.len() {
            return None;
        }
        let mut places: Vec<usize> = (0..unnamed).collect();
        for name in &self.names {
            let place = arguments
                .iter()
                .position(|argument| argument.name == *name)?;
            if places.contains(&place) {
                return None;
            }
            places.push(place);
        }
        let left_out = (0..arguments.len()).filter(|place| !places.contains(place));
        let mut left_out = left_out.map(|place| arguments[place]);
        left_out
            .all(|argument| argument.default.is_some())
            .then_some(places)
    }

    /// How a function may take the values: as they are, and some as items of its last argument.
    fn fitting<'f>(&self, function: &'f Arc<Function>, all: &mut Vec<Fitting<'f>>) {
        let arguments = taken(function);
        let count = arguments.len();
        let variadic = function.is_variadic();
        let named = variadic && !self.is_array && !self.names.is_empty();
        if named || self.is_array && !variadic {
            return;
        }
        let spreads = variadic && !self.is_array && self.values.len() >= count;
        if let Some(places) = self.places(&arguments).filter(|_| !spreads) {
            let types = places.iter().map(|at| arguments[*at].ty).collect();
            all.push(Fitting {
                function,
                places,
                types,
                count,
                items: false,
            });
        }
        let element = arguments.last().and_then(|last| last.ty.element());
        let (Some(element), true) = (element, spreads) else {
            return;
        };
        let last = count - 1;
        let places = (0..self.values.len()).map(|at| at.min(last)).collect();
        let types = (0..self.values.len()).map(|at| match at < last {
            true => arguments[at].ty,
            false => element,
        });
        all.push(Fitting {
            function,
            places,
            types: types.collect(),
            count,
            items: true,
        });
    }
}

/// What a call of a procedure gives values for: OUT arguments, too.
fn taken(function: &Function) -> Vec<&Argument> {
    let arguments = function.arguments.iter();
    let given = arguments.filter(|argument| match argument.mode {
        Mode::In | Mode::InOut | Mode::Variadic => true,
        Mode::Out => function.is_procedure,
        Mode::Table => false,
    });
    given.collect()
}

/// The array behind VARIADIC in a call.
pub(super) fn variadic_array(arg: &ast::Expr) -> Option<&ast::Expr> {
    let ast::Expr::Function(marked) = arg else {
        return None;
    };
    let [ast::ObjectNamePart::Identifier(word)] = marked.name.0.as_slice() else {
        return None;
    };
    let FunctionArguments::List(list) = &marked.args else {
        return None;
    };
    let is_word = word.quote_style.is_none() && word.value.eq_ignore_ascii_case("variadic");
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] if is_word => Some(array),
        _ => None,
    }
}

/// The error of a function that takes other arguments.
fn no_match(name: &str, given: &Given, noun: &str, many: bool) -> SqlError {
    let call = format!("{noun} {name}({})", given.shown());
    let hint = "You might need to add explicit type casts.";
    match many {
        true => SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("{call} is not unique"),
        )
        .hint(format!("Could not choose a best candidate {noun}. {hint}")),
        false => SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("{call} does not exist"),
        )
        .hint(format!(
            "No {noun} matches the given name and argument types. {hint}"
        )),
    }
}

fn too_deep(function: &Function) -> SqlError {
    let name = own(&function.name);
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
    )
    .detail(format!("Function {name} calls itself."))
    .hint("Functions in SQL cannot call themselves: use WITH RECURSIVE in the body.")
}

impl<'a> Binder<'a> {
    /// The functions and procedures that a name may mean, those of earlier schemas of the path
    /// first.
    pub fn routines_named(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Function>> {
        let database = self.cx.database;
        if database.functions.is_empty() {
            return Vec::new();
        }
        let schemas = match schema {
            Some(schema) => match database.schema(schema) {
                Some(number) => {
                    self.use_schema(number);
                    vec![number]
                }
                None => Vec::new(),
            },
            None => self.path.to_vec(),
        };
        let mut found: Vec<Arc<Function>> = Vec::new();
        for schema in schemas {
            for function in database.functions_named(&full(schema, name)) {
                let types = function.input_types();
                if !found.iter().any(|known| known.input_types() == types) {
                    found.push(function.clone());
                }
            }
        }
        found
    }

    /// # Errors
    /// 42809 for what only aggregates have inside of their parentheses.
    fn plain_list(&self, name: &str, list: &ast::FunctionArgumentList) -> Result<(), SqlError> {
        let ast::FunctionArgumentList {
            duplicate_treatment,
            args: _,
            clauses,
        } = list;
        let distinct = matches!(duplicate_treatment, Some(ast::DuplicateTreatment::Distinct));
        match (distinct, clauses.first()) {
            (true, _) => Err(only_aggregates(name, "DISTINCT")),
            (_, Some(ast::FunctionArgumentClause::OrderBy(_))) => {
                Err(only_aggregates(name, "ORDER BY"))
            }
            (_, Some(other)) => Err(self.source.misplaced(&first_word(other))),
            (_, None) => Ok(()),
        }
    }

    /// # Errors
    /// 42601 for what stands behind the call of a procedure.
    fn plain_call(&self, function: &ast::Function) -> Result<(), SqlError> {
        let ast::Function {
            name: _,
            uses_odbc_syntax,
            parameters,
            args: _,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        self.no(*uses_odbc_syntax, "{")?;
        self.no(!matches!(parameters, FunctionArguments::None), "(")?;
        self.no(filter.is_some(), "FILTER")?;
        self.no(null_treatment.is_some(), "NULLS")?;
        self.no(over.is_some(), "OVER")?;
        self.no(!within_group.is_empty(), "WITHIN")
    }

    /// Binds what a call gives.
    pub(super) fn given(&mut self, name: &str, args: &[FunctionArg]) -> Result<Given, SqlError> {
        let mut given = Given {
            values: Vec::new(),
            names: Vec::new(),
            is_array: false,
        };
        for (at, arg) in args.iter().enumerate() {
            let (value, called) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (value, None),
                FunctionArg::Named {
                    name,
                    arg: FunctionArgExpr::Expr(value),
                    operator: _,
                } => (value, Some(ident(name))),
                FunctionArg::ExprNamed {
                    name: ast::Expr::Identifier(name),
                    arg: FunctionArgExpr::Expr(value),
                    operator: _,
                } => (value, Some(ident(name))),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {
                    let message =
                        format!("{name}(*) specified, but {name} is not an aggregate function");
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                _ => return Err(unsupported("this form of function argument")),
            };
            match called {
                None if !given.names.is_empty() => {
                    let message = "positional argument cannot follow named argument";
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
                Some(called) if given.names.contains(&called) => {
                    let message = format!("argument name \"{called}\" used more than once");
                    return Err(SqlError::new(SqlState::SYNTAX, message));
                }
                called => given.names.extend(called),
            }
            let array = variadic_array(value);
            if array.is_some() && at + 1 < args.len() {
                return Err(self.source.misplaced(","));
            }
            given.is_array |= array.is_some();
            given.values.push(self.expr(array.unwrap_or(value))?);
        }
        Ok(given)
    }

    /// The function among `all` that takes these arguments, and a value for each of its own.
    pub(super) fn choose_routine(
        &mut self,
        name: &str,
        all: &[Arc<Function>],
        given: Given,
        noun: &'static str,
    ) -> Result<RoutineCall, SqlError> {
        let procedure = noun == "procedure";
        let types = given.types();
        let mut fitting = Vec::new();
        for function in all.iter().filter(|one| one.is_procedure == procedure) {
            given.fitting(function, &mut fitting);
        }
        // One that needs no defaults goes before those that do, and before those that take items.
        fitting.sort_by_key(|one| (one.items, one.count));
        let mut lists: Vec<Vec<Type>> = Vec::new();
        let mut kept = Vec::new();
        for one in fitting {
            if !lists.contains(&one.types) {
                lists.push(one.types.clone());
                kept.push(one);
            }
        }
        let chosen = resolve::chosen(&lists, &types);
        let at = chosen.map_err(|many| {
            let other = all.iter().find(|one| one.is_procedure != procedure);
            match other {
                Some(other) if kept.is_empty() => self.other_kind(other, &given, name, noun),
                _ => no_match(name, &given, noun, many),
            }
        })?;
        let Fitting {
            function,
            places,
            types,
            items: has_items,
            ..
        } = kept.swap_remove(at);
        let function = function.clone();
        let arguments = taken(&function);
        let mut args: Vec<Option<Expr>> = vec![None; arguments.len()];
        let mut items = Vec::new();
        for ((value, place), ty) in given.values.into_iter().zip(places).zip(types) {
            let value = resolve::argument(value, ty)?;
            self.note(&value);
            match has_items && place + 1 == arguments.len() {
                true => items.push(value),
                false => args[place] = Some(value),
            }
        }
        if let (Some(last), true) = (arguments.last(), has_items) {
            args[arguments.len() - 1] = Some(Expr::MakeArray(items, last.ty));
        }
        for (arg, argument) in args.iter_mut().zip(&arguments) {
            if arg.is_none() {
                *arg = Some(self.default_argument(argument)?);
            }
        }
        let mut args: Vec<Expr> = args.into_iter().flatten().collect();
        if function.is_procedure {
            let modes = arguments.iter().map(|argument| argument.mode);
            let kept = args.drain(..).zip(modes);
            let kept = kept.filter(|(_, mode)| *mode != Mode::Out);
            args = kept.map(|(arg, _)| arg).collect();
        }
        Ok(RoutineCall { function, args })
    }

    fn other_kind(&self, other: &Function, given: &Given, name: &str, noun: &str) -> SqlError {
        let arguments = taken(other);
        if given.places(&arguments).is_none() {
            return no_match(name, given, noun, false);
        }
        let signature = own_signature(other);
        let (what, hint) = match other.is_procedure {
            true => ("a procedure", "To call a procedure, use CALL."),
            false => ("not a procedure", "To call a function, use SELECT."),
        };
        let message = format!("{signature} is {what}");
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).hint(hint)
    }

    /// The value of an argument that a call leaves out.
    fn default_argument(&mut self, argument: &Argument) -> Result<Expr, SqlError> {
        let text = argument.default.as_deref().unwrap_or("NULL");
        let ast = parse::expression(text)?;
        let outer = self.set_scope(Scope::default());
        let bound = self.kept(|binder| binder.expr(&ast));
        self.set_scope(outer);
        self.composed(bound?, argument.ty, Context::Assignment)
    }

    /// A call of a function of users; `None`: the name is none.
    pub(super) fn routine_call(
        &mut self,
        (schema, name): (Option<&str>, &str),
        written: &ast::ObjectName,
        args: &FunctionArguments,
    ) -> Result<Option<Expr>, SqlError> {
        if schema.is_none() && resolve::is_known(name) {
            return Ok(None);
        }
        let all = self.routines_named(schema, name);
        if all.is_empty() && !self.is_making(name) {
            return Ok(None);
        }
        let FunctionArguments::List(list) = args else {
            return Ok(None);
        };
        self.plain_list(name, list)?;
        let given = self.given(name, &list.args)?;
        self.refuse_making(schema, name, &given)?;
        let call = self.choose_routine(name, &all, given, "function")?;
        self.note_name(written, &call.function.name);
        self.inlined(call).map(Some)
    }

    /// The same of a name that functions of the system have, too, which do not take these values.
    pub(super) fn overloaded(
        &mut self,
        name: &str,
        written: &ast::ObjectName,
        values: Vec<Expr>,
    ) -> Result<Option<Expr>, SqlError> {
        let all = self.routines_named(None, name);
        let functions = all.iter().any(|function| !function.is_procedure);
        if !functions {
            return Ok(None);
        }
        let given = Given {
            values,
            names: Vec::new(),
            is_array: false,
        };
        let call = self.choose_routine(name, &all, given, "function")?;
        self.note_name(written, &call.function.name);
        self.inlined(call).map(Some)
    }

    /// The procedure that CALL names.
    ///
    /// # Errors
    /// 42883, 42725, 42809 for a function, and those of its arguments.
    pub fn called(&mut self, function: &ast::Function) -> Result<RoutineCall, SqlError> {
        let (schema, name) = self.name_of(&function.name)?;
        pg_catalog::names::known_schema(self.cx.database, schema.as_deref())?;
        let all = self.routines_named(schema.as_deref(), &name);
        let FunctionArguments::List(list) = &function.args else {
            return Err(self.source.misplaced(";"));
        };
        self.plain_list(&name, list)?;
        self.plain_call(function)?;
        let given = self.given(&name, &list.args)?;
        self.choose_routine(&name, &all, given, "procedure")
    }

    /// The function that is all of a query (`SELECT f(..)`), if its body has to be run: it has
    /// several statements, or changes rows.
    ///
    /// # Errors
    /// Those of the call.
    pub fn run_by(&mut self, query: &ast::Query) -> Result<Option<RoutineCall>, SqlError> {
        if self.cx.database.functions.is_empty() {
            return Ok(None);
        }
        let Some(ast::Expr::Function(function)) = only_value(query) else {
            return Ok(None);
        };
        let (schema, name) = self.name_of(&function.name)?;
        if schema.is_none() && resolve::is_known(&name) {
            return Ok(None);
        }
        let all = self.routines_named(schema.as_deref(), &name);
        let runs = |function: &Arc<Function>| {
            let void = function.returns == Returns::Void;
            let parsed = statements(&function.body);
            parsed.is_ok_and(|all| void || only_query(&all).is_none())
        };
        let FunctionArguments::List(list) = &function.args else {
            return Ok(None);
        };
        if function.over.is_some() || function.filter.is_some() {
            return Ok(None);
        }
        if !all.iter().any(|one| !one.is_procedure && runs(one)) {
            return Ok(None);
        }
        self.plain_list(&name, list)?;
        let given = self.given(&name, &list.args)?;
        let call = self.choose_routine(&name, &all, given, "function")?;
        Ok(runs(&call.function).then_some(call))
    }

    /// Whether a function of this name is being made.
    fn is_making(&self, name: &str) -> bool {
        let making = self.routines.making.as_ref();
        making.is_some_and(|(made, _)| own(made) == name)
    }

    /// # Errors
    /// 54001 for a call of the function that is being made.
    fn refuse_making(
        &self,
        schema: Option<&str>,
        name: &str,
        given: &Given,
    ) -> Result<(), SqlError> {
        let Some((made, types)) = &self.routines.making else {
            return Ok(());
        };
        let here = match schema {
            Some(schema) => self.cx.database.schema(schema) == Some(schema_of(made)),
            None => self.path.contains(&schema_of(made)),
        };
        let fits = resolve::chosen(core::slice::from_ref(types), &given.types()).is_ok();
        if own(made) == name && here && fits {
            let function = Function {
                id: 0,
                name: made.clone(),
                is_procedure: false,
                arguments: Vec::new(),
                returns: Returns::Void,
                body: Body::Text(String::new()),
                lasts: catalog::Lasts::default(),
                strict: false,
                leakproof: false,
                parallel: catalog::Parallel::default(),
                cost: None,
                rows: None,
                definer: false,
                settings: Vec::new(),
                row_of: None,
            };
            return Err(too_deep(&function));
        }
        Ok(())
    }

    /// Counts one more body that is put in, or run.
    ///
    /// # Errors
    /// 54001 for a function that calls itself, 54000 for too many.
    pub fn count_routine(&mut self, function: &Function) -> Result<(), SqlError> {
        if self.routines.inside.contains(&function.id) || self.routines.inside.len() >= NESTED_MAX {
            return Err(too_deep(function));
        }
        if !self.routines.used.contains(&function.id) {
            self.routines.used.push(function.id);
        }
        let bytes: usize = match &function.body {
            Body::Text(text) => text.len(),
            Body::Parsed { statements, .. } => statements.iter().map(String::len).sum(),
        };
        self.need_function(function);
        self.routines.count += 1;
        self.routines.bytes += bytes;
        self.work += bytes as u64;
        if self.routines.count <= VIEW_USES_MAX && self.routines.bytes <= VIEWS_BYTES_MAX {
            return Ok(());
        }
        let message = "the functions of a statement are too large";
        let detail = format!(
            "A statement may call up to {VIEW_USES_MAX} functions in SQL, with those in them, of \
             {VIEWS_BYTES_MAX} bytes together."
        );
        Err(SqlError::new(SqlState::PROGRAM_LIMIT, message).detail(detail))
    }

    /// Binds the statements of a body that is being made or run, whose arguments are parameters.
    pub fn of_routine(
        cx: &'a super::PlanCx<'a>,
        statement: &Statement,
        function: &Function,
        around: &Binder<'_>,
    ) -> Binder<'a> {
        let mut binder = Binder::new(cx, statement);
        binder.routines.inside.clone_from(&around.routines.inside);
        binder.routines.count = around.routines.count;
        binder.routines.bytes = around.routines.bytes;
        binder.params.truncate(cx.param_types.len());
        binder.next_slot = binder.params.len() as u32;
        let types = cx.param_types.iter().enumerate();
        let args: Vec<Expr> = types.map(|(i, ty)| Expr::Param(i as u32, *ty)).collect();
        let level = Level {
            scope: Self::argument_scope(function, &args),
            ..Level::default()
        };
        binder.levels.insert(0, level);
        binder.routines.inside.push(function.id);
        binder.routines.definer = around.routines.definer;
        binder.routines.sets_path = super::body::sets_path(function);
        binder
    }

    /// The body of a function is run: with the rights of its owner, if it says so.
    pub fn running(&mut self, function: &Function) {
        self.routines.enter(function);
    }

    /// A function is being made: its body may not call it.
    pub fn making(&mut self, function: &Function) {
        self.routines.making = Some((function.name.clone(), function.input_types()));
    }

    /// Adds what a statement of a body needs.
    pub fn take_needs(&mut self, needs: rights::Needs) {
        let rights::Needs {
            relations,
            schemas,
            owned,
            superuser,
            of_views: _,
        } = needs;
        for need in relations {
            let columns = need.columns.clone();
            let known = self.needs.add(need);
            for column in columns {
                if !known.contains(&column) {
                    known.push(column);
                }
            }
        }
        self.needs.schemas.extend(schemas);
        self.needs.owned.extend(owned);
        if self.needs.superuser.is_none() {
            self.needs.superuser = superuser;
        }
    }

    /// Numbers of the functions that were called so far.
    pub fn called_routines(&self) -> &[u32] {
        &self.routines.used
    }
}

/// `name(types)` without a schema.
fn own_signature(function: &Function) -> String {
    let types: Vec<String> = function.input_types().iter().map(|ty| ty.name()).collect();
    format!("{}({})", own(&function.name), types.join(", "))
}
