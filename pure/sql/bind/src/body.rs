//! Bodies of functions in SQL in place of calls: an expression, a subquery, or a part of FROM.

use super::from::Factor;
use super::rel::{Binds, Call, CallKind, QueryUse, Rel};
use super::routine::RoutineCall;
use super::scope::{Scope, ScopeColumn};
use super::table_function::FunctionShape;
use super::{Binder, BoundQuery, Level, Untyped, place_calls, unsupported};
use base::full_name::{is_temporary, own};
use base::{Datum, SqlError, SqlState, Type};
use catalog::{Body, Database, Function, Returns};
use expr::resolve::{self, Context};
use expr::{Expr, Volatility, walk};
use parse::{Kind, Statement};
use pg_catalog::path;
use rights::RoleId;
use sqlparser::ast::{self, FunctionArg, SetExpr};
use std::sync::Arc;

/// The first field of an [`Expr::Outer`] that stands for an argument while a body is bound.
const ARGUMENT: u32 = u32::MAX - 7;

/// The statements of a body.
///
/// # Errors
/// Those of parsing it.
pub fn statements(body: &Body) -> Result<Vec<Statement>, SqlError> {
    match body {
        Body::Text(text) => parse::parse(text).map_err(|error| {
            let fields = error.fields();
            SqlError::new(error.state(), fields.message.clone()).hint(fields.hint.clone())
        }),
        Body::Parsed { statements, .. } => {
            let mut all = Vec::new();
            for text in statements {
                all.extend(parse::parse(text)?);
            }
            Ok(all)
        }
    }
}

/// The only statement of a body, if that is a query.
pub(super) fn only_query(statements: &[Statement]) -> Option<(&Statement, &ast::Query)> {
    match statements {
        [statement] => Some((statement, super::query_of(statement)?)),
        _ => None,
    }
}

/// The expression of a query that is nothing else.
pub(super) fn only_value(query: &ast::Query) -> Option<&ast::Expr> {
    let ast::Query {
        with: None,
        body,
        order_by: None,
        limit: None,
        limit_by,
        offset: None,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
    } = query
    else {
        return None;
    };
    let SetExpr::Select(select) = body.as_ref() else {
        return None;
    };
    let ast::Select {
        select_token: _,
        distinct: None,
        top: None,
        top_before_distinct: _,
        projection,
        into: None,
        from,
        lateral_views,
        prewhere: None,
        selection: None,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: None,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        connect_by: None,
        flavor: _,
    } = select.as_ref()
    else {
        return None;
    };
    let ungrouped = match group_by {
        ast::GroupByExpr::Expressions(keys, more) => keys.is_empty() && more.is_empty(),
        ast::GroupByExpr::All(_) => false,
    };
    let plain = from.is_empty() && lateral_views.is_empty() && ungrouped && locks.is_empty();
    let sorted = !cluster_by.is_empty() || !distribute_by.is_empty() || !sort_by.is_empty();
    if !plain || sorted || !named_window.is_empty() || !limit_by.is_empty() {
        return None;
    }
    match projection.as_slice() {
        [ast::SelectItem::UnnamedExpr(value)]
        | [
            ast::SelectItem::ExprWithAlias {
                expr: value,
                alias: _,
            },
        ] => Some(value),
        _ => None,
    }
}

/// Whether an argument may stand in several places: it is there already.
pub(super) fn is_cheap(arg: &Expr) -> bool {
    match arg {
        Expr::Const(..) | Expr::Column(..) | Expr::Param(..) | Expr::Subquery(..) => true,
        Expr::Outer(..) => true,
        Expr::Cast { arg, .. } => is_cheap(arg),
        _ => false,
    }
}

impl<'a> Binder<'a> {
    /// Binds a part of a body: it sees the arguments, and nothing of the statement around it.
    fn in_body<T>(
        &mut self,
        function: &Function,
        level: Level,
        statement: &Statement,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, Level), SqlError> {
        let path = self.path_of(function);
        let source = core::mem::replace(&mut self.source, statement.source().clone());
        let levels = core::mem::replace(&mut self.levels, vec![level]);
        let named = core::mem::take(&mut self.named);
        let views = self.suspend_views();
        let path = core::mem::replace(&mut self.path, path);
        let untyped = core::mem::take(&mut self.untyped);
        let inherited = self.inherited.take();
        self.routines.inside.push(function.id);
        let definer = self.routines.definer;
        self.routines.enter(function);
        let setting = core::mem::replace(&mut self.routines.sets_path, sets_path(function));
        let result = self.deeper(bind);
        self.routines.sets_path = setting;
        self.routines.definer = definer;
        self.routines.inside.pop();
        self.inherited = inherited;
        self.untyped = untyped;
        self.path = path;
        self.resume_views(views);
        self.named = named;
        let mut own = core::mem::replace(&mut self.levels, levels);
        self.source = source;
        let level = own.pop().expect("the level of the arguments stays");
        // Places of the body mean nothing in the text of the statement.
        let value = result.map_err(|error| error.at(0))?;
        Ok((value, level))
    }

    /// The path by which names in a body are looked up.
    pub fn path_of(&self, function: &Function) -> &'a [u32] {
        let database: &'a Arc<Database> = self.cx.database;
        if let (Some(setting), Body::Text(_)) = (function.setting("search_path"), &function.body) {
            // The schema of the session stands in its path, if there is one.
            let mut session = self.cx.path.iter().copied();
            let own = session.find(|schema| is_temporary(*schema));
            let owner = match function.definer {
                true => self.owner_of(function),
                false => RoleId::OWNER,
            };
            let catalog = self.cx.catalog;
            let path = path::schemas(catalog, database, (owner, ""), own, setting);
            return self.cx.paths.keep(path);
        }
        match database.function(function.id).map(|kept| &kept.body) {
            Some(Body::Parsed { path, .. }) => path,
            _ => self.cx.path,
        }
    }

    fn owner_of(&self, function: &Function) -> RoleId {
        let target = rights::Target::Relation(function.id);
        self.cx.catalog.rights.owner(&target)
    }

    /// The name of the role as which a body of SECURITY DEFINER runs, for `current_user`.
    ///
    /// # Errors
    /// 0A000 for what tells of the path where a function sets its own.
    pub(super) fn session_value(&self, name: &str) -> Result<Option<Expr>, SqlError> {
        let is_user = matches!(name, "current_user" | "current_role" | "user");
        if let (Some(definer), true) = (self.routines.definer, is_user) {
            let rights = &self.cx.catalog.rights;
            let owner = rights.owner(&rights::Target::Relation(definer));
            let name = Datum::Text(rights.name(owner).as_str().into());
            return Ok(Some(Expr::Const(name, Type::Name)));
        }
        let is_path = matches!(
            name,
            "current_schema" | "current_schemas" | "current_setting"
        );
        if self.routines.sets_path && is_path {
            let what = format!("{name} in a function that sets search_path");
            return Err(unsupported(&what).hint("Give it as an argument."));
        }
        Ok(None)
    }

    /// The arguments as the names of a level.
    pub(crate) fn argument_scope(function: &Function, args: &[Expr]) -> Scope {
        let relation = own(&function.name).to_string();
        let inputs = function.inputs().zip(args);
        let columns = inputs.map(|(argument, arg)| ScopeColumn {
            relation: relation.clone(),
            name: argument.name.clone(),
            expr: arg.clone(),
            shadowed: false,
            hidden: false,
            origin: (0, 0),
        });
        Scope {
            columns: columns.collect(),
            relations: vec![relation],
            ..Scope::default()
        }
    }

    /// Whether the body of a function is being bound.
    pub(super) fn is_in_routine(&self) -> bool {
        !self.routines.inside.is_empty()
    }

    /// The argument `$n` of the function whose body is being bound; `None`: there is none.
    pub(super) fn numbered_argument(&mut self, number: usize) -> Option<Result<Expr, ()>> {
        if self.routines.inside.is_empty() {
            return None;
        }
        let scope = &self.levels[0].scope;
        let Some(column) = number.checked_sub(1).and_then(|at| scope.columns.get(at)) else {
            return Some(Err(()));
        };
        let value = column.expr.clone();
        Some(Ok(self.argument_value(0, value)))
    }

    /// A value of the level of arguments as a deeper level reads it.
    pub(super) fn argument_value(&mut self, depth: usize, value: Expr) -> Expr {
        let here = depth + 1 == self.levels.len();
        let fixed = matches!(value, Expr::Const(..) | Expr::Param(..));
        match here || (fixed && depth == 0 && !self.routines.inside.is_empty()) {
            true => value,
            false => self.capture(depth, value),
        }
    }

    /// A call with the body in its place.
    pub(super) fn inlined(&mut self, call: RoutineCall) -> Result<Expr, SqlError> {
        if call.function.gives_rows() {
            return self.listed_routine(call);
        }
        let RoutineCall { function, args } = call;
        self.count_routine(&function)?;
        let ty = match function.returns {
            Returns::One(ty) => ty,
            Returns::Void => return Err(not_in_expressions(&function)),
            Returns::Each(_) | Returns::Rows | Returns::Row => {
                let what = "a function of several OUT arguments outside of FROM";
                return Err(unsupported(what).hint("Call it in FROM."));
            }
        };
        let all = statements(&function.body)?;
        let Some((statement, query)) = only_query(&all) else {
            return Err(not_in_expressions(&function));
        };
        if function.strict && args.iter().any(is_null) {
            return Ok(Expr::null(ty));
        }
        if let Some(value) = only_value(query)
            && let Some(bound) = self.as_expression(&function, &args, statement, value, ty)?
        {
            return Ok(bound);
        }
        self.as_subquery(&function, args, (statement, query), ty)
    }

    /// The expression of a body with the arguments in it, unless one would be computed twice.
    fn as_expression(
        &mut self,
        function: &Function,
        args: &[Expr],
        statement: &Statement,
        value: &ast::Expr,
        ty: Type,
    ) -> Result<Option<Expr>, SqlError> {
        if function.strict && !args.iter().all(is_cheap) {
            return Ok(None);
        }
        let placed = args.iter().enumerate().map(|(i, arg)| match is_cheap(arg) {
            true => arg.clone(),
            false => Expr::Outer(ARGUMENT, i as u32, arg.ty()),
        });
        let placed: Vec<Expr> = placed.collect();
        let (inits, slot, effects) = (self.inits.len(), self.next_slot, self.effects);
        // Calls of the body are computed with those of the clause around it.
        let kept = core::mem::take(&mut self.level().calls);
        let level = Level {
            scope: Self::argument_scope(function, &placed),
            calls: kept.clone(),
            aggregates_in: None,
            ..Level::default()
        };
        let bound = self.in_body(function, level, statement, |binder| binder.expr(value));
        let (bound, mut level) = match bound {
            Ok(bound) => bound,
            Err(error) => {
                self.level().calls = kept;
                self.inits.truncate(inits);
                self.effects = effects;
                // An aggregate is one of the body, not of the query around the call.
                return match error.state() {
                    SqlState::GROUPING | SqlState::FEATURE_NOT_SUPPORTED => Ok(None),
                    _ => Err(error),
                };
            }
        };
        let mut bound = self.composed(bound, ty, Context::Assignment)?;
        let mut more = level.calls.split_off(kept.len());
        let counts = counted(args.len(), &bound, &more);
        let once = counts.iter().zip(args).all(|(count, arg)| {
            let changes = walk::volatility(arg) == Volatility::Volatile;
            is_cheap(arg) || *count == 1 || (*count == 0 && !changes)
        });
        if !once || !level.aggregates.is_empty() || !level.groupings.is_empty() {
            self.level().calls = kept;
            self.inits.truncate(inits);
            self.next_slot = slot;
            self.effects = effects;
            return Ok(None);
        }
        place_arguments(&mut bound, args);
        for call in &mut more {
            let exprs = call.kind.outer_exprs_mut();
            exprs.for_each(|expr| place_arguments(expr, args));
        }
        level.calls.extend(more);
        self.level().calls = level.calls;
        Ok(Some(match function.strict {
            true => unless_null(bound, args, ty),
            false => bound,
        }))
    }

    /// The body as a query, with the slots of the arguments that it reads.
    fn body_query(
        &mut self,
        function: &Function,
        args: &[Expr],
        (statement, query): (&Statement, &ast::Query),
        types: &[Type],
    ) -> Result<(Rel, Binds), SqlError> {
        let level = Level {
            scope: Self::argument_scope(function, args),
            ..Level::default()
        };
        let strict = function.strict;
        let types = types.to_vec();
        let ((rel, binds), _) = self.in_body(function, level, statement, |binder| {
            let (rel, binds, _) = binder.nested(|binder| {
                binder.untyped = Untyped::Assigned(types.clone());
                let bound = binder.query(query)?;
                let mut rel = result_of(function, binder.cx.database, bound, &types)?;
                if strict {
                    let count = binder.levels[0].scope.columns.len();
                    let args = (0..count).map(|at| binder.levels[0].scope.columns[at].expr.clone());
                    let args: Vec<Expr> = args.collect();
                    let read = args.into_iter().map(|arg| binder.argument_value(0, arg));
                    let there = read.map(|arg| Expr::IsNull(Box::new(arg), true));
                    rel = rel.filtered(there.collect());
                }
                Ok(rel)
            })?;
            Ok((rel, binds))
        })?;
        Ok((rel, binds))
    }

    /// A body that is a query as a value: that of its first row.
    fn as_subquery(
        &mut self,
        function: &Function,
        args: Vec<Expr>,
        body: (&Statement, &ast::Query),
        ty: Type,
    ) -> Result<Expr, SqlError> {
        let before = self.effects;
        let (mut rel, binds) = self.body_query(function, &args, body, &[ty])?;
        let mut repeats = self.effects == before;
        rel.each_expr_mut(&mut |expr| {
            repeats &= walk::volatility(expr) < Volatility::Volatile;
        });
        let rel = Rel::Limit {
            input: Box::new(rel),
            limit: Some(Expr::Const(Datum::Int(1), Type::Int8)),
            offset: None,
            ties: Vec::new(),
        };
        // A slot of an enclosing row has no bind of its own.
        let clients = self.params.len() as u32;
        let moves = |arg: &Expr| match arg {
            Expr::Const(..) => false,
            Expr::Param(slot, _) => {
                *slot >= clients && !self.inits.iter().any(|init| init.slot == *slot)
            }
            _ => true,
        };
        let outer = !binds.is_empty() || !repeats || args.iter().any(moves);
        let kind = CallKind::Query {
            usage: QueryUse::Scalar,
            query: rel,
            binds,
        };
        Ok(self.routine_value(kind, ty, outer, repeats))
    }

    /// A function of users in FROM; `None`: the name is none.
    pub(super) fn routine_factor(
        &mut self,
        (schema, name): (Option<&str>, &str),
        written: &ast::ObjectName,
        args: &[FunctionArg],
        shape: FunctionShape<'_>,
        visible: &Scope,
    ) -> Result<Option<Factor>, SqlError> {
        if schema.is_none() && (resolve::is_known(name) || super::table_function::gives_rows(name))
        {
            return Ok(None);
        }
        let all = self.routines_named(schema, name);
        if all.is_empty() {
            return Ok(None);
        }
        shape.refuse_numbers()?;
        let outer = self.set_scope(visible.clone());
        self.swap_around();
        let bound = self.nested(|binder| {
            binder.level().aggregates_in = Some("functions in FROM");
            let given = binder.given(name, args)?;
            let call = binder.choose_routine(name, &all, given, "function")?;
            let columns = columns_of(&call.function, binder.cx.database);
            let function = call.function.clone();
            let (rel, binds) = match call.function.returns {
                Returns::One(_) => {
                    let value = binder.inlined(call)?;
                    let calls = binder.take_calls();
                    let mut value = value;
                    place_calls(&mut value, 0);
                    return Ok((
                        Rel::One.applied(calls).projected(vec![value]),
                        columns,
                        function,
                    ));
                }
                _ => binder.rows_of(&call)?,
            };
            let calls = binder.take_calls();
            Ok((laid_out(rel, binds, calls, &columns), columns, function))
        });
        self.swap_around();
        self.set_scope(outer);
        let ((mut rel, mut columns, function), binds, _) = bound?;
        if let [(_, ty)] = columns[..]
            && self.cx.database.attributes_of(ty).is_some()
            && matches!(function.returns, Returns::One(_) | Returns::Each(_))
        {
            let fields = self.fields_of(&Expr::Column(0, ty))?.into_iter();
            let (names, values): (Vec<String>, Vec<Expr>) = fields.unzip();
            let types = values.iter().map(Expr::ty);
            columns = names.into_iter().zip(types).collect();
            rel = rel.projected(values);
        }
        self.note_name(written, &function.name);
        let alias = shape.alias();
        let shown = match alias {
            None => name.to_string(),
            Some(alias) => self.relation_name(&alias.name)?,
        };
        let named = columns.into_iter().map(|(name, ty)| {
            let name = if name.is_empty() { shown.clone() } else { name };
            (name, ty, (0, 0))
        });
        let mut scope = Scope::of_relation(&shown, named, 0);
        self.rename(&mut scope, alias)?;
        Ok(Some(Factor { rel, scope, binds }))
    }

    /// The rows of a call in a SELECT list, and the types of their columns.
    pub(super) fn rows_of_listed(
        &mut self,
        call: &RoutineCall,
    ) -> Result<(Rel, Binds, Vec<Type>), SqlError> {
        let types = columns_of(&call.function, self.cx.database).into_iter();
        let types = types.map(|(_, ty)| ty).collect();
        let (rel, binds) = self.rows_of(call)?;
        Ok((rel, binds, types))
    }

    /// The rows of a function whose body is a query.
    fn rows_of(&mut self, call: &RoutineCall) -> Result<(Rel, Binds), SqlError> {
        let RoutineCall { function, args } = call;
        self.count_routine(function)?;
        let all = statements(&function.body)?;
        let Some(body) = only_query(&all) else {
            return Err(not_in_expressions(function));
        };
        let types: Vec<Type> = columns_of(function, self.cx.database)
            .into_iter()
            .map(|(_, ty)| ty)
            .collect();
        let (rel, binds) = self.body_query(function, args, body, &types)?;
        if function.gives_rows() {
            return Ok((rel, binds));
        }
        let rel = Rel::Limit {
            input: Box::new(rel),
            limit: Some(Expr::Const(Datum::Int(1), Type::Int8)),
            offset: None,
            ties: Vec::new(),
        };
        // Without a row it gives one of NULL.
        let rel = Rel::Lateral {
            outer: true,
            left: Box::new(Rel::One),
            right: Box::new(rel),
            binds: Vec::new(),
            on: Vec::new(),
        };
        Ok((rel, binds))
    }
}

/// Whether names in a body are looked up by a path of its own.
pub(super) fn sets_path(function: &Function) -> bool {
    function.setting("search_path").is_some()
}

/// What cannot be computed inside of an expression.
fn not_in_expressions(function: &Function) -> SqlError {
    let what = format!("the function {} in an expression", own(&function.name));
    unsupported(&what)
        .detail("Its body has several statements, or changes rows.")
        .hint("Call it as all of a SELECT list without FROM, or make it a procedure.")
}

/// How often each argument stands in an expression and the calls in it.
fn counted(arguments: usize, bound: &Expr, calls: &[Call<Rel>]) -> Vec<usize> {
    let mut counts = vec![0usize; arguments];
    let mut count = |expr: &Expr| {
        visit(expr, &mut |node| {
            if let Expr::Outer(ARGUMENT, i, _) = node {
                counts[*i as usize] += 1;
            }
        });
    };
    count(bound);
    for call in calls {
        call.kind.outer_exprs().for_each(&mut count);
    }
    counts
}

fn place_arguments(expr: &mut Expr, args: &[Expr]) {
    walk::map(expr, &mut |node| {
        if let Expr::Outer(ARGUMENT, i, _) = node {
            *node = args[*i as usize].clone();
        }
    });
}

/// The value, or NULL if an argument is.
fn unless_null(bound: Expr, args: &[Expr], ty: Type) -> Expr {
    let open = args.iter().filter(|arg| !matches!(arg, Expr::Const(..)));
    let nulls = open.map(|arg| Expr::IsNull(Box::new(arg.clone()), false));
    let nulls: Vec<Expr> = nulls.collect();
    if nulls.is_empty() {
        return bound;
    }
    Expr::Case {
        arms: vec![(Expr::Or(nulls), Expr::null(ty))],
        otherwise: Box::new(bound),
        ty,
    }
}

/// Tells of the nodes of an expression.
fn visit(expr: &Expr, told: &mut dyn FnMut(&Expr)) {
    told(expr);
    expr.each_child(&mut |child| visit(child, told));
}

fn is_null(arg: &Expr) -> bool {
    matches!(arg, Expr::Const(Datum::Null, _))
}

/// Names and types of the columns that a function gives in FROM; without a name: its own.
pub fn columns_of(function: &Function, database: &Database) -> Vec<(String, Type)> {
    if let Some(row) = function.row_of.and_then(|id| row_columns(id, database)) {
        return row;
    }
    match function.returns {
        Returns::Void => Vec::new(),
        Returns::One(ty) | Returns::Each(ty) => {
            let name = function.outputs().next().map(|output| output.name.clone());
            vec![(name.unwrap_or_default(), ty)]
        }
        Returns::Row | Returns::Rows => {
            let outputs = function.outputs().enumerate();
            let named = outputs.map(|(i, output)| match output.name.as_str() {
                "" => (format!("column{}", i + 1), output.ty),
                name => (name.to_string(), output.ty),
            });
            named.collect()
        }
    }
}

/// The columns of a table or view by its number.
pub fn row_columns(id: u32, database: &Database) -> Option<Vec<(String, Type)>> {
    if let Some(table) = database.tables.values().find(|table| table.id.0 == id) {
        let visible = table.columns.iter().filter(|column| !column.hidden);
        let columns = visible.map(|column| (column.name.clone(), column.ty.without_modifiers()));
        return Some(columns.collect());
    }
    let view = database.views.values().find(|view| view.id.0 == id)?;
    let columns = view.columns.iter();
    let columns = columns.map(|column| (column.name.clone(), column.ty.without_modifiers()));
    Some(columns.collect())
}

/// A function whose body does not give what it says.
pub fn wrong_result(function: &Function, database: &Database, detail: &str) -> SqlError {
    let mut relations = database.relations();
    let row = relations.find(|(_, _, id)| function.row_of == Some(*id));
    let returned = match (function.returns, row) {
        (_, Some((name, ..))) => own(name).to_string(),
        (Returns::Void, _) => "void".to_string(),
        (Returns::One(ty) | Returns::Each(ty), _) => ty.name(),
        (Returns::Row | Returns::Rows, _) => "record".to_string(),
    };
    let message = format!("return type mismatch in function declared to return {returned}");
    SqlError::new(SqlState(*b"42P13"), message).detail(detail)
}

/// The columns of a query as values of these types.
///
/// # Errors
/// 42P13 if they are others.
pub fn results(
    function: &Function,
    database: &Database,
    columns: &[base::OutColumn],
    types: &[Type],
) -> Result<Vec<Expr>, SqlError> {
    if let [ty] = types
        && let Some(row) = super::composite::row_of_columns(*ty, database, columns)
    {
        return Ok(vec![row?]);
    }
    let single = matches!(function.returns, Returns::One(_) | Returns::Each(_));
    if single && columns.len() != 1 {
        let detail = "Final statement must return exactly one column.";
        return Err(wrong_result(function, database, detail));
    }
    if columns.len() != types.len() {
        let detail = match columns.len() < types.len() {
            true => "Final statement returns too few columns.",
            false => "Final statement returns too many columns.",
        };
        return Err(wrong_result(function, database, detail));
    }
    let mut exprs = Vec::with_capacity(types.len());
    for (i, (column, ty)) in columns.iter().zip(types).enumerate() {
        if !resolve::can_coerce(column.ty, *ty, Context::Assignment) {
            let actual = column.ty.base_name();
            return Err(match single {
                true => wrong_result(
                    function,
                    database,
                    &format!("Actual return type is {actual}."),
                ),
                false => {
                    let expected = ty.name();
                    let detail = format!(
                        "Final statement returns {actual} instead of {expected} at column {}.",
                        i + 1
                    );
                    wrong_result(function, database, &detail)
                }
            });
        }
        let value = Expr::Column(i as u32, column.ty);
        exprs.push(resolve::coerce(value, *ty, Context::Assignment)?);
    }
    Ok(exprs)
}

fn result_of(
    function: &Function,
    database: &Database,
    bound: BoundQuery,
    types: &[Type],
) -> Result<Rel, SqlError> {
    let exprs = results(function, database, &bound.columns, types)?;
    let same = exprs.iter().all(|expr| matches!(expr, Expr::Column(..)));
    Ok(match same && bound.rel.width() as usize == types.len() {
        true => bound.rel,
        false => bound.rel.projected(exprs),
    })
}

/// Rows that read the values of arguments, and calls in these.
fn laid_out(rel: Rel, mut binds: Binds, calls: Vec<Call<Rel>>, columns: &[(String, Type)]) -> Rel {
    if binds.is_empty() && calls.is_empty() {
        return rel;
    }
    for (_, value) in &mut binds {
        place_calls(value, 0);
    }
    let width = calls.len() as u32;
    let lateral = Rel::Lateral {
        outer: false,
        left: Box::new(Rel::One.applied(calls)),
        right: Box::new(rel),
        binds,
        on: Vec::new(),
    };
    let columns = (width..).zip(columns);
    lateral.projected(columns.map(|(at, (_, ty))| Expr::Column(at, *ty)).collect())
}

/// Whether a statement may stand in the body of a function, by its kind.
///
/// # Errors
/// 0A000 for those that cannot run inside of another statement.
pub fn check_statement(statement: &Statement, body: &Body) -> Result<(), SqlError> {
    if matches!(
        (statement.kind(), body),
        (Kind::Call(_), Body::Parsed { .. })
    ) {
        let message = "CALL is not yet supported in unquoted SQL function body";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let word = statement
        .text()
        .split_whitespace()
        .next()
        .unwrap_or_default();
    let word = word.to_uppercase();
    match statement.kind() {
        Kind::Sql(ast) => match ast.as_ref() {
            ast::Statement::Query(_)
            | ast::Statement::Insert(_)
            | ast::Statement::Update {
                table: _,
                assignments: _,
                from: _,
                selection: _,
                returning: _,
                or: _,
            }
            | ast::Statement::Delete(_) => Ok(()),
            _ => Err(in_function(&word)),
        },
        Kind::Insert(..) | Kind::With(_) | Kind::Merge(_) | Kind::Call(_) => Ok(()),
        Kind::Session(_)
            if matches!(word.as_str(), "COMMIT" | "ROLLBACK" | "BEGIN" | "SAVEPOINT") =>
        {
            let message = format!("{word} is not allowed in an SQL function");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        _ => Err(in_function(&word)),
    }
}

fn in_function(word: &str) -> SqlError {
    unsupported(&format!("{word} in a function or procedure"))
        .hint("Bodies have SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES and CALL.")
}
