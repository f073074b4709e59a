//! Names and types: syntax trees to bound relations and expressions.
//!
//! Columns of enclosing queries and values that are computed once per statement become parameter
//! slots behind the client's own parameters: a dependent query runs again with other slot values,
//! and its expressions need no rewriting.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod aggregate;
pub mod body;
mod calls;
mod carried;
mod change;
mod check_option;
mod clauses;
mod composite;
mod computed;
mod conflict;
mod constraints;
mod dml;
mod domain;
mod exploded;
mod expr;
mod form;
mod from;
mod function;
mod group;
mod implied;
mod join;
mod listed;
mod locked;
mod merge;
mod names;
mod needs;
pub mod objects;
mod over;
mod part;
mod path;
mod policy;
mod predicate;
mod record;
mod recursive;
pub mod rel;
pub mod routine;
mod row;
pub mod scope;
mod select;
mod sequence;
mod sequence_call;
mod set;
mod sets;
mod table_function;
mod target;
pub mod types;
mod view;
mod with;
mod within;

pub use computed::{Kept, key_name};
pub use conflict::{Conflict, ConflictAction, check_arbiter};
pub use dml::{BoundAssignment, BoundInsert, BoundWrite};
pub use expr::check_collation;
pub use implied::implies;
pub use locked::refusal;
pub use merge::{BoundAction, BoundMerge, BoundWhen};
pub use part::{BoundMain, BoundPart};
pub use target::Target;
pub use view::{ViewQuery, query_of};

/// The names of a table's columns, under its own name.
pub fn scope_of(table: &Arc<catalog::Table>) -> Scope {
    scope::whole_scope(table)
}

use ::expr::resolve::enums;
use ::expr::{Expr, zoned};
use base::{Datum, OutColumn, SqlError, SqlState, TableId, Type};
use catalog::{Catalog, Database};
use core::cell::{Cell, OnceCell, RefCell};
use listed::ListedRows;
pub use parse::unsupported;
use parse::{Source, Statement, too_complex};
use rel::{Aggregate, Binds, Call, Init, InitValue, Rel};
pub use rights::Viewer;
use scope::Scope;
use statistics::TableValues;
use std::sync::Arc;

/// What planning needs to know.
pub struct PlanCx<'a> {
    /// The catalog to plan with.
    pub catalog: &'a Arc<Catalog>,
    /// The session's database in it.
    pub database: &'a Arc<Database>,
    /// Types of `$1..` that the client declared; `Unknown`: infer.
    pub param_types: &'a [Type],
    /// Names of the first of them, in statements of PL/pgSQL: what is no column may be one.
    pub param_names: &'a [ParamName],
    /// Time zone and style of intervals of the session ([`zoned::of_settings`]).
    pub zone: &'a str,
    /// The schemas in which names without a schema are looked up ([`catalog::Names::path`]).
    pub path: &'a [u32],
    /// Whose policies concern the rows.
    pub viewer: Viewer,
    /// Rows of a table in the whole cluster, as far as they are known.
    pub rows: &'a dyn Fn(TableId) -> Option<u64>,
    /// What is known of the values of a table.
    pub values: &'a dyn Fn(TableId) -> Option<Arc<TableValues>>,
    /// The paths of functions that set their own.
    pub paths: Paths,
}

/// Lists of schemas that live as long as the planning of a statement: each with the next one.
#[derive(Default)]
pub struct Paths(OnceCell<Box<(Vec<u32>, Paths)>>);

impl Paths {
    /// Keeps one more, unless it is there.
    fn keep(&self, path: Vec<u32>) -> &[u32] {
        let mut here = self;
        loop {
            let kept = here
                .0
                .get_or_init(|| Box::new((path.clone(), Paths::default())));
            if kept.0 == path {
                return &kept.0;
            }
            here = &kept.1;
        }
    }
}

/// A name that a statement may use for a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamName {
    /// What stands in front of it.
    pub qualifier: Option<String>,
    /// The name; empty: the parameter has none.
    pub name: String,
}

/// The first field of an [`Expr::Outer`] that stands for an aggregate while its query is bound.
pub(crate) const AGGREGATE: u32 = u32::MAX;

/// Where aggregates are forbidden without a clause that has a name.
const ELSEWHERE: Option<&str> = Some("this clause");

/// One query level that is being bound.
struct Level {
    /// What its expressions see.
    scope: Scope,
    /// For a part of FROM that is bound as a level of its own: what LATERAL items in it see of the
    /// level above, which shows it to them only.
    around: Option<Scope>,
    /// Columns of the enclosing query that it (or a query in it) reads, with their slots.
    captures: Binds,
    /// Its value differs between rows of an enclosing query.
    dependent: bool,
    /// Calls of the clause that is being bound; `Expr::Subquery(n)` stands for the n-th.
    calls: Vec<Call<Rel>>,
    /// Calls inside of aggregate arguments and GROUP BY.
    inner_calls: Vec<Call<Rel>>,
    /// Aggregates found so far; `Expr::Outer(AGGREGATE, n, _)` stands for the n-th.
    aggregates: Vec<Aggregate>,
    /// Whether aggregates may stand here, or the clause that forbids them.
    aggregates_in: Option<&'static str>,
    /// A function that gives rows may stand in the SELECT list, which is being bound.
    listed: Option<ListedRows>,
    /// The windows of the query, and the calls of window functions found so far.
    windows: over::Windows,
    /// Arguments of GROUPING(); `Expr::Outer(GROUPED, n, _)` stands for the n-th.
    groupings: Vec<Vec<Expr>>,
}

impl Default for Level {
    fn default() -> Level {
        Level {
            scope: Scope::default(),
            around: None,
            captures: Vec::new(),
            dependent: false,
            calls: Vec::new(),
            inner_calls: Vec::new(),
            aggregates: Vec::new(),
            aggregates_in: ELSEWHERE,
            listed: None,
            windows: over::Windows::default(),
            groupings: Vec::new(),
        }
    }
}

/// A bound query.
#[allow(missing_docs)]
pub struct BoundQuery {
    pub rel: Rel,
    pub columns: Vec<OutColumn>,
}

/// What becomes of the columns of a query that are literals, NULL or parameters without a type.
#[derive(Default)]
pub(crate) enum Untyped {
    /// They become text.
    #[default]
    Text,
    /// They become of the types of the columns to which an INSERT assigns them.
    Assigned(Vec<Type>),
    /// They stay without a type: those of the other sides of a UNION decide.
    Kept,
}

/// Binds the parts of one statement.
#[allow(missing_docs)]
pub struct Binder<'a> {
    pub cx: &'a PlanCx<'a>,
    source: Source,
    /// That of the statement itself, unless a text of the catalog is being bound.
    own_source: Option<Source>,
    /// The schemas in which names are looked up now.
    path: &'a [u32],
    /// Schemas whose names the statement has written.
    used_schemas: RefCell<Vec<u32>>,
    /// Types of the client's parameters as far as they are known.
    pub params: Vec<Type>,
    next_slot: u32,
    levels: Vec<Level>,
    /// Values that are computed when the statement starts.
    pub inits: Vec<Init<Rel>>,
    /// Calls so far that must be made for every row.
    effects: u64,
    /// Expressions around the present one that need not come to compute it.
    optional: u32,
    depth: u32,
    /// Operators of the chains that are being bound, one inside the other.
    chained: u32,
    /// A query has FOR UPDATE or FOR SHARE.
    pub locks: bool,
    /// Tables of which it locks rows.
    pub locked: Vec<TableId>,
    /// The name of the first column of the scalar subquery that was bound last.
    subquery_name: String,
    /// The queries of WITH clauses whose names can be used here, innermost last.
    named: Vec<with::NamedQuery>,
    /// How often they have been used.
    named_uses: u32,
    /// The locks that the query to be bound next takes over from the one around it.
    inherited: Option<(txn::LockMode, &'static str)>,
    /// A parameter, its type, and another one as which an expression takes it.
    conflict: Cell<Option<(u32, Type, Type)>>,
    /// A literal is no label of its enum type.
    no_label: RefCell<Option<SqlError>>,
    /// What becomes of the columns without a type of the query to be bound next.
    untyped: Untyped,
    /// A function asks how much memory rows take up.
    pub sizes: bool,
    /// What it does with large objects.
    pub objects: objects::ObjectUse,
    /// Time zone and style of intervals of the session ([`zoned::of_settings`]).
    pub zone: Box<str>,
    /// The numbers of rows of tables have decided how it is planned.
    pub by_rows: bool,
    /// It reads what the session alone knows: its statements, its cursors.
    pub reads_session: bool,
    /// Constants have decided which index it reads.
    pub by_values: bool,
    /// What binding and planning have looked at: names, expressions, conditions, inputs of joins.
    pub work: u64,
    /// The parts that its WITH clause names.
    pub parts: Vec<BoundPart>,
    /// The tables in it of which columns are seen elsewhere than at their places.
    pub reordered: Vec<Arc<catalog::Table>>,
    /// The views in it.
    views: view::Views,
    /// The functions in SQL whose bodies are put in.
    routines: routine::Routines,
    /// What it needs to be allowed.
    pub needs: rights::Needs,
    /// What a change of the schema needs, apart from what the catalog asks for.
    pub needs_of_change: rights::Needs,
}

impl<'a> Binder<'a> {
    /// Nothing is bound yet.
    pub fn new(cx: &'a PlanCx<'a>, statement: &Statement) -> Binder<'a> {
        let count = (statement.parameters() as usize).max(cx.param_types.len());
        let mut params = cx.param_types.to_vec();
        params.resize(count, Type::Unknown);
        Binder {
            cx,
            source: statement.source().clone(),
            own_source: Some(statement.source().clone()),
            path: cx.path,
            used_schemas: RefCell::default(),
            next_slot: count as u32,
            params,
            levels: vec![Level::default()],
            inits: Vec::new(),
            effects: 0,
            optional: 0,
            depth: 0,
            chained: 0,
            locks: false,
            locked: Vec::new(),
            named: Vec::new(),
            named_uses: 0,
            inherited: None,
            conflict: Cell::new(None),
            no_label: RefCell::new(None),
            untyped: Untyped::Text,
            subquery_name: String::new(),
            sizes: false,
            objects: objects::ObjectUse::None,
            zone: cx.zone.into(),
            by_rows: false,
            reads_session: false,
            by_values: false,
            work: 0,
            parts: Vec::new(),
            reordered: Vec::new(),
            views: view::Views::default(),
            routines: routine::Routines::default(),
            needs: rights::Needs::default(),
            needs_of_change: rights::Needs::default(),
        }
    }

    /// Slots in use: the client's parameters and the hidden ones behind them.
    pub fn slots(&self) -> u32 {
        self.next_slot
    }

    /// A parameter slot behind those of the client.
    pub fn new_slot(&mut self) -> u32 {
        let slot = self.next_slot;
        self.next_slot += 1;
        slot
    }

    fn level(&mut self) -> &mut Level {
        self.levels
            .last_mut()
            .expect("the outermost level is never popped")
    }

    /// Replaces the visible names of the current level.
    pub fn set_scope(&mut self, scope: Scope) -> Scope {
        core::mem::replace(&mut self.level().scope, scope)
    }

    /// Hides or shows what stands before the parts of FROM that are being bound.
    fn swap_around(&mut self) {
        for depth in (1..self.levels.len()).rev() {
            let (above, below) = self.levels.split_at_mut(depth);
            let Some(around) = &mut below[0].around else {
                return;
            };
            core::mem::swap(around, &mut above[depth - 1].scope);
        }
    }

    /// Runs `bind` at one more level of recursion.
    fn deeper<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if self.depth >= parse::DEPTH_MAX {
            return Err(too_complex());
        }
        self.depth += 1;
        let result = parse::stack::grown(|| bind(self));
        self.depth -= 1;
        result
    }

    /// Binds a query one level deeper; gives also the slots that depend on this level's row and
    /// whether it depends on any row at all.
    fn nested<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, Binds, bool), SqlError> {
        self.levels.push(Level::default());
        let result = self.deeper(bind);
        let level = self.levels.pop().expect("pushed above");
        Ok((result?, level.captures, level.dependent))
    }

    /// The calls that the expressions bound since the last time stand for.
    pub fn take_calls(&mut self) -> Vec<Call<Rel>> {
        core::mem::take(&mut self.level().calls)
    }

    /// A slot whose value is computed when the statement starts.
    pub fn init(&mut self, value: InitValue<Rel>, ty: Type) -> Expr {
        let slot = self.new_slot();
        self.inits.push(Init { slot, value });
        Expr::Param(slot, ty)
    }

    /// Takes note of parameter types that resolution has given to the operands of `expr`.
    fn note(&mut self, expr: &Expr) {
        let mut typed = Vec::new();
        let mut look = |node: &Expr| {
            if let Expr::Param(index, ty) = node
                && *ty != Type::Unknown
            {
                typed.push((*index as usize, *ty));
            }
        };
        look(expr);
        expr.each_child(&mut |child| {
            look(child);
            child.each_child(&mut look);
        });
        for (index, ty) in typed {
            if self.params.get(index) == Some(&Type::Unknown) {
                self.params[index] = ty.without_modifiers();
            }
        }
    }

    /// Sets the types of parameters that stand in expressions bound before the type was known, and
    /// puts the session's time zone in. [`Binder::check_params`] tells of a parameter to which two
    /// places have given different types.
    pub fn settle(&self, expr: &mut Expr) {
        ::expr::walk::map(expr, &mut |node| {
            zoned::read_literal(node, &self.zone);
            self.read_label(node);
            composite::settle_row(node);
            let Expr::Param(index, ty) = node else { return };
            let Some(known) = self.params.get(*index as usize) else {
                return;
            };
            if *ty == Type::Unknown {
                *ty = *known;
            } else if ty.without_modifiers() != known.without_modifiers() {
                self.conflict.set(Some((*index, *known, *ty)));
            }
        });
        if !self.zone.is_empty() {
            zoned::localize(expr, &self.zone);
        }
    }

    /// Makes a label that is a constant a value; [`Binder::check_params`] tells of a literal that
    /// is no label.
    fn read_label(&self, node: &mut Expr) {
        let Some((label, id, literal)) = enums::constant(node) else {
            return;
        };
        let ty = node.ty();
        let read = match ty {
            Type::Composite(_) => self.read_row(ty, label),
            _ => {
                let found = self.cx.database.enum_by_id(id);
                found.map(|found| found.place_of(label).map(Datum::Int))
            }
        };
        match read {
            Some(Ok(value)) => *node = Expr::Const(value, ty),
            Some(Err(error)) if literal => drop(self.no_label.replace(Some(error))),
            // Where it is reached, it fails.
            Some(Err(_)) | None => {}
        }
    }

    /// How long the value of an expression that the catalog keeps stays the same: a label that is a
    /// constant is one value.
    pub fn kept_volatility(&self, expr: &Expr) -> ::expr::Volatility {
        let mut read = expr.clone();
        ::expr::walk::map(&mut read, &mut |node| self.read_label(node));
        ::expr::walk::volatility(&read)
    }

    /// Fails if a parameter's type is still open, or if a settled expression takes it for another.
    ///
    /// # Errors
    /// 42P18, 42P08, 22P02.
    pub fn check_params(&self) -> Result<(), SqlError> {
        if let Some((index, known, other)) = self.conflict.get() {
            let message = format!("inconsistent types deduced for parameter ${}", index + 1);
            let detail = format!("{} versus {}", known.name(), other.name());
            return Err(SqlError::new(SqlState::AMBIGUOUS_PARAMETER, message).detail(detail));
        }
        self.check_labels()?;
        match self.params.iter().position(|ty| *ty == Type::Unknown) {
            Some(index) => Err(SqlError::new(
                SqlState::INDETERMINATE_DATATYPE,
                format!("could not determine data type of parameter ${}", index + 1),
            )),
            None => Ok(()),
        }
    }

    /// Fails if a literal in a settled expression is no label of its enum type.
    ///
    /// # Errors
    /// 22P02.
    pub fn check_labels(&self) -> Result<(), SqlError> {
        match self.no_label.borrow().as_ref() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Refuses a clause that PostgreSQL's grammar does not have, if it is there.
    ///
    /// # Errors
    /// 42601 at the clause's word.
    pub fn no(&self, there: bool, word: &str) -> Result<(), SqlError> {
        if there {
            Err(self.source.misplaced(word))
        } else {
            Ok(())
        }
    }

    fn position(&self, span: sqlparser::tokenizer::Span) -> u32 {
        self.source.position(span.start)
    }
}

/// Adds a position to an error that has none.
pub fn at(error: SqlError, position: u32) -> SqlError {
    if error.fields().position == 0 {
        error.at(position)
    } else {
        error
    }
}

/// The conjuncts of a condition.
pub fn conjuncts(condition: Expr, into: &mut Vec<Expr>) {
    match condition {
        Expr::And(parts) => parts.into_iter().for_each(|part| conjuncts(part, into)),
        other => into.push(other),
    }
}

/// Replaces the placeholders of a clause's calls by the columns that [`Rel::Apply`] appends
/// behind `width` columns.
pub(crate) fn place_calls(expr: &mut Expr, width: u32) {
    ::expr::walk::map(expr, &mut |node| {
        if let Expr::Subquery(number, ty) = node {
            *node = Expr::Column(width + *number, *ty);
        }
    });
}
