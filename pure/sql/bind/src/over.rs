//! Window functions: calls with OVER, and the WINDOW clause.
//!
//! While a query is bound, [`WINDOW`] marks the places of calls. When its groups are known, calls
//! of one partitioning and order become one relation, over a projection that has all that they
//! read as columns.

use super::aggregate::AggregateCall;
use super::function::first_word;
use super::group::{SelectParts, check_equality};
use super::rel::{Call, Rel, SortKey};
use super::scope::ident;
use super::{AGGREGATE, Binder, place_calls, unsupported};
use base::{SqlError, SqlState, Type};
use expr::resolve::{self, Context};
use expr::{Expr, walk};
use parse::windows::{Excluded, excluded};
use sqlparser::ast::{
    self, DuplicateTreatment, Expr as Ast, FunctionArgumentClause, FunctionArguments,
    NamedWindowDefinition, NamedWindowExpr, Spanned, WindowFrameBound, WindowFrameUnits,
    WindowSpec, WindowType,
};
use window::frame::windowing;
use window::{Edge, Exclusion, Frame, Key, Units, WindowCall, WindowFunc, reach};

/// The first field of an [`Expr::Outer`] that stands for a window function while its query is
/// bound.
pub(crate) const WINDOW: u32 = u32::MAX - 1;

/// What is being bound, as far as it decides whether window functions may stand there.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Place {
    /// A clause without them, which also tells where aggregates may stand.
    #[default]
    Elsewhere,
    /// The SELECT list, ORDER BY or DISTINCT ON.
    Allowed,
    /// The arguments of one.
    Nested,
    /// A window.
    Definition,
    /// The arguments of an aggregate.
    Aggregate,
    /// FILTER.
    Filter,
}

/// A window.
#[derive(Clone)]
struct Definition {
    partition: Vec<Expr>,
    /// With whether they descend, and whether NULLs come first.
    order: Vec<(Expr, bool, bool)>,
    frame: Option<Frame>,
}

/// A call over its window.
#[derive(PartialEq)]
struct Over {
    partition: Vec<Expr>,
    order: Vec<(Expr, bool, bool)>,
    call: WindowCall,
}

/// The windows of a query level, and the calls over them.
#[derive(Default)]
pub(super) struct Windows {
    pub(super) place: Place,
    named: Vec<(String, Definition)>,
    /// `Expr::Outer(WINDOW, n, _)` stands for the n-th.
    overs: Vec<Over>,
    /// Calls inside of their arguments and windows.
    pub(super) inner_calls: Vec<Call<Rel>>,
}

fn window_exprs<'e>(
    partition: &'e mut [Expr],
    order: &'e mut [(Expr, bool, bool)],
) -> impl Iterator<Item = &'e mut Expr> {
    let keys = order.iter_mut().map(|(key, _, _)| key);
    partition.iter_mut().chain(keys)
}

impl Windows {
    pub(super) fn is_used(&self) -> bool {
        !self.overs.is_empty()
    }

    /// Its expressions, and the calls inside of them.
    pub(super) fn clause(&mut self) -> (Vec<&mut Expr>, &mut Vec<Call<Rel>>) {
        let mut exprs: Vec<&mut Expr> = Vec::new();
        for (_, definition) in &mut self.named {
            exprs.extend(window_exprs(
                &mut definition.partition,
                &mut definition.order,
            ));
            exprs.extend(definition.frame.iter_mut().flat_map(Frame::exprs_mut));
        }
        for over in &mut self.overs {
            exprs.extend(window_exprs(&mut over.partition, &mut over.order));
            exprs.extend(over.call.exprs_mut());
        }
        (exprs, &mut self.inner_calls)
    }
}

fn not_implemented(what: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what)
}

impl Binder<'_> {
    /// Refuses window functions where they cannot stand.
    fn refuse_window(&mut self) -> Result<(), SqlError> {
        let level = self.level();
        let clause = match level.windows.place {
            Place::Allowed => return Ok(()),
            Place::Nested => return Err(windowing("window function calls cannot be nested")),
            Place::Aggregate => {
                let message = "aggregate function calls cannot contain window function calls";
                return Err(SqlError::new(SqlState::GROUPING, message));
            }
            Place::Definition => "window definitions",
            Place::Filter => "FILTER",
            Place::Elsewhere => level.aggregates_in.unwrap_or("HAVING"),
        };
        let message = format!("window functions are not allowed in {clause}");
        Err(windowing(message))
    }

    /// A call with OVER: noted at this level, with a placeholder in its place.
    pub(super) fn call_over(
        &mut self,
        name: &str,
        call: AggregateCall<'_>,
        over: &WindowType,
    ) -> Result<Expr, SqlError> {
        let aggregate = expr::aggregate::is_aggregate(name);
        if !call.within_group.is_empty() {
            return Err(match aggregate || !window::is_window_function(name) {
                true => not_implemented(&format!(
                    "OVER is not supported for ordered-set aggregate {name}"
                )),
                false => {
                    let message = format!("window function {name} cannot have WITHIN GROUP");
                    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                }
            });
        }
        let place = self.level().windows.place;
        let outer = self.take_calls();
        self.level().calls = core::mem::take(&mut self.level().windows.inner_calls);
        let known = place == Place::Allowed;
        let bound = self.over_parts(name, call, over, known);
        self.level().windows.place = place;
        self.level().windows.inner_calls = self.take_calls();
        self.level().calls = outer;
        let over = bound?;
        let ty = over.call.ty;
        let overs = &mut self.level().windows.overs;
        let known = overs.iter().position(|known| *known == over);
        let number = known.unwrap_or_else(|| {
            overs.push(over);
            overs.len() - 1
        });
        Ok(Expr::Outer(WINDOW, number as u32, ty))
    }

    fn over_parts(
        &mut self,
        name: &str,
        call: AggregateCall<'_>,
        over: &WindowType,
        known: bool,
    ) -> Result<Over, SqlError> {
        if known {
            self.level().windows.place = Place::Nested;
        }
        let (args, star) = self.over_arguments(name, call.arguments)?;
        let before = core::mem::replace(&mut self.level().windows.place, Place::Filter);
        let filter = call.filter.map(|filter| self.condition(filter, "FILTER"));
        let filter = filter.transpose()?;
        self.level().windows.place = before;
        if !expr::aggregate::is_aggregate(name) && !window::is_window_function(name) {
            resolve::function(name, args)?;
            let message = format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            );
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let (func, args, ty) = window::call::resolve(name, args, star)?;
        if !known {
            self.refuse_window()?;
        }
        self.level().windows.place = Place::Definition;
        let definition = match over {
            WindowType::NamedWindow(name) => self.named_window(name)?,
            WindowType::WindowSpec(spec) => self.window_spec(spec)?,
        };
        if filter.is_some() && !matches!(func, WindowFunc::Aggregate(_)) {
            let what = "FILTER is not implemented for non-aggregate window functions";
            return Err(not_implemented(what));
        }
        args.iter().for_each(|arg| self.note(arg));
        Ok(Over {
            partition: definition.partition,
            order: definition.order,
            call: WindowCall {
                func,
                args,
                filter,
                frame: definition.frame.unwrap_or_else(Frame::usual),
                ty,
            },
        })
    }

    fn over_arguments(
        &mut self,
        name: &str,
        arguments: &FunctionArguments,
    ) -> Result<(Vec<Expr>, bool), SqlError> {
        let FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment,
            args: given,
            clauses,
        }) = arguments
        else {
            return Err(unsupported("this form of a window function"));
        };
        let unknown = "this form of an argument of a window function";
        let (args, star) = self.call_args(name, given, unknown)?;
        if matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct)) {
            return Err(not_implemented(
                "DISTINCT is not implemented for window functions",
            ));
        }
        match clauses.first() {
            None => Ok((args, star)),
            Some(FunctionArgumentClause::OrderBy(_)) => Err(not_implemented(
                "aggregate ORDER BY is not implemented for window functions",
            )),
            Some(other) => Err(self.source.misplaced(&first_word(other))),
        }
    }

    /// Binds the WINDOW clause; then window functions may stand in the clauses that follow.
    pub(super) fn window_clause(
        &mut self,
        definitions: &[NamedWindowDefinition],
    ) -> Result<(), SqlError> {
        for NamedWindowDefinition(name, definition) in definitions {
            let folded = ident(name);
            let named = &self.level().windows.named;
            if named.iter().any(|(known, _)| *known == folded) {
                let message = format!("window \"{folded}\" is already defined");
                return Err(windowing(message).at(self.position(name.span)));
            }
            let NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(self.source.misplaced("WINDOW"));
            };
            let outer = self.take_calls();
            self.level().calls = core::mem::take(&mut self.level().windows.inner_calls);
            self.level().windows.place = Place::Definition;
            let definition = self.window_spec(spec);
            self.level().windows.inner_calls = self.take_calls();
            self.level().calls = outer;
            self.level().windows.named.push((folded, definition?));
        }
        self.level().windows.place = Place::Allowed;
        Ok(())
    }

    fn named_window(&mut self, name: &ast::Ident) -> Result<Definition, SqlError> {
        let folded = ident(name);
        let mut named = self.level().windows.named.iter();
        let found = named.find(|(known, _)| *known == folded);
        match found {
            Some((_, definition)) => Ok(definition.clone()),
            None => {
                let message = format!("window \"{folded}\" does not exist");
                let error = SqlError::new(SqlState::UNDEFINED_OBJECT, message);
                Err(error.at(self.position(name.span)))
            }
        }
    }

    fn window_spec(&mut self, spec: &WindowSpec) -> Result<Definition, SqlError> {
        let WindowSpec {
            window_name,
            partition_by,
            order_by,
            window_frame,
        } = spec;
        let (partition_by, excluded) = excluded(partition_by);
        let base = match window_name {
            Some(name) => Some((name, self.named_window(name)?)),
            None => None,
        };
        let mut order = Vec::new();
        for key in order_by {
            let value = self.window_key(&key.expr)?;
            let SortKey {
                descending,
                nulls_first,
                ..
            } = self.sort_key((0, value.ty()), key)?;
            order.push((value, descending, nulls_first));
        }
        let mut partition = Vec::new();
        for key in partition_by {
            let value = self.window_key(key)?;
            check_equality(value.ty())?;
            partition.push(value);
        }
        if let Some((name, base)) = base {
            let at = self.position(name.span);
            let name = ident(name);
            let refuse = |what: &str| Err(windowing(format!("{what} \"{name}\"")).at(at));
            if !partition.is_empty() {
                return refuse("cannot override PARTITION BY clause of window");
            }
            if !order.is_empty() && !base.order.is_empty() {
                return refuse("cannot override ORDER BY clause of window");
            }
            if base.frame.is_some() {
                let message =
                    format!("cannot copy window \"{name}\" because it has a frame clause");
                let error = windowing(message).at(at);
                return Err(match order.is_empty() && window_frame.is_none() {
                    true => error.hint("Omit the parentheses in this OVER clause."),
                    false => error,
                });
            }
            partition = base.partition;
            if order.is_empty() {
                order = base.order;
            }
        }
        let frame = window_frame.as_ref();
        let frame = frame.map(|frame| self.window_frame(frame, excluded, &order));
        Ok(Definition {
            frame: frame.transpose()?,
            partition,
            order,
        })
    }

    fn window_key(&mut self, ast: &Ast) -> Result<Expr, SqlError> {
        let key = self.expr(ast)?;
        match key.ty() {
            Type::Unknown => resolve::coerce(key, Type::Text, Context::Implicit),
            _ => Ok(key),
        }
    }

    fn window_frame(
        &mut self,
        frame: &ast::WindowFrame,
        excluded: Option<Excluded>,
        order: &[(Expr, bool, bool)],
    ) -> Result<Frame, SqlError> {
        let ast::WindowFrame {
            units,
            start_bound,
            end_bound,
        } = frame;
        let (units, name) = match units {
            WindowFrameUnits::Rows => (Units::Rows, "ROWS"),
            WindowFrameUnits::Range => (Units::Range, "RANGE"),
            WindowFrameUnits::Groups => (Units::Groups, "GROUPS"),
        };
        let unbound = |bound: &WindowFrameBound| edge(bound, |_| Ok(Expr::null(Type::Int8)));
        let end = end_bound.as_ref().map(unbound).transpose()?;
        Frame::check_edges(&unbound(start_bound)?, end.as_ref())?;
        if units == Units::Groups && order.is_empty() {
            return Err(windowing("GROUPS mode requires an ORDER BY clause"));
        }
        let start = edge(start_bound, |ast| {
            self.frame_offset(ast, units, name, order)
        })?;
        let end = match end_bound {
            None => Edge::Current,
            Some(bound) => edge(bound, |ast| self.frame_offset(ast, units, name, order))?,
        };
        let mut frame = Frame::new(units, start, end);
        frame.exclusion = match excluded {
            None | Some(Excluded::NoOthers) => Exclusion::Nothing,
            Some(Excluded::CurrentRow) => Exclusion::Current,
            Some(Excluded::Group) => Exclusion::Group,
            Some(Excluded::Ties) => Exclusion::Ties,
        };
        Ok(frame)
    }

    /// How far a frame reaches.
    fn frame_offset(
        &mut self,
        ast: &Ast,
        units: Units,
        name: &str,
        order: &[(Expr, bool, bool)],
    ) -> Result<Expr, SqlError> {
        let key = match (units, order) {
            (Units::Range, [(key, ..)]) => Some(key.ty()),
            (Units::Range, _) => {
                return Err(windowing(
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                ));
            }
            _ => None,
        };
        let given = self.expr(ast)?;
        let ty = match key {
            Some(key) => {
                let position = self.position(ast.span());
                reach::of(key, given.ty())
                    .map_err(|error| error.at(position))?
                    .offset
            }
            None => Type::Int8,
        };
        let from = given.ty();
        let offset = resolve::coerce(given, ty, Context::Assignment).map_err(|error| {
            if from == Type::Unknown {
                return error;
            }
            let (wanted, from) = (ty.name(), from.name());
            let message = format!("argument of {name} must be type {wanted}, not type {from}");
            SqlError::new(SqlState::DATATYPE_MISMATCH, message)
        })?;
        self.note(&offset);
        let varies = |node: &Expr| matches!(node, Expr::Column(..));
        if walk::any(&offset, &|node| matches!(node, Expr::Outer(AGGREGATE, ..))) {
            let message = format!("aggregate functions are not allowed in window {name}");
            return Err(SqlError::new(SqlState::GROUPING, message));
        }
        if walk::any(&offset, &varies) {
            let message = format!("argument of {name} must not contain variables");
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        Ok(offset)
    }

    /// The relation with the values of the window functions; the clauses of the query then read
    /// them.
    pub(super) fn with_windows(
        &mut self,
        rel: Rel,
        parts: &mut SelectParts,
    ) -> Result<Rel, SqlError> {
        let mut windows = core::mem::take(&mut parts.windows);
        if !windows.is_used() {
            return Ok(rel);
        }
        let width = rel.width();
        let (exprs, calls) = windows.clause();
        exprs.into_iter().for_each(|expr| place_calls(expr, width));
        let rel = rel.applied(core::mem::take(calls));
        let mut columns = Columns::of(rel.width());
        let mut groups: Vec<Group> = Vec::new();
        for (number, over) in windows.overs.into_iter().enumerate() {
            let group = columns.group(over)?;
            match groups.iter_mut().find(|known| known.is_like(&group)) {
                Some(known) => known
                    .calls
                    .extend(group.calls.into_iter().map(|(_, c)| (number, c))),
                None => groups.push(Group {
                    calls: group.calls.into_iter().map(|(_, c)| (number, c)).collect(),
                    ..group
                }),
            }
        }
        // The order of the first window is that of the rows, unless the query has one of its own.
        groups.reverse();
        let mut next = columns.exprs.len() as u32;
        let mut rel = rel.projected(columns.exprs);
        let mut places = vec![0; groups.iter().map(|group| group.calls.len()).sum()];
        for Group {
            partition,
            order,
            calls,
        } in groups
        {
            for (number, _) in &calls {
                places[*number] = next;
                next += 1;
            }
            rel = Rel::Window {
                input: Box::new(rel),
                partition,
                order,
                calls: calls.into_iter().map(|(_, call)| call).collect(),
            };
        }
        let place = |expr: &mut Expr| {
            walk::map(expr, &mut |node| {
                if let Expr::Outer(WINDOW, number, ty) = node {
                    *node = Expr::Column(places[*number as usize], *ty);
                }
            });
        };
        let [_, _, (exprs, calls)] = parts.clauses();
        exprs.into_iter().for_each(place);
        for call in calls {
            call.kind.outer_exprs_mut().for_each(place);
        }
        Ok(rel)
    }
}

/// An edge of a frame whose offset `offset` binds.
fn edge(
    bound: &WindowFrameBound,
    mut offset: impl FnMut(&Ast) -> Result<Expr, SqlError>,
) -> Result<Edge, SqlError> {
    Ok(match bound {
        WindowFrameBound::CurrentRow => Edge::Current,
        WindowFrameBound::Preceding(None) => Edge::First,
        WindowFrameBound::Following(None) => Edge::Last,
        WindowFrameBound::Preceding(Some(ast)) => Edge::Preceding(offset(ast)?),
        WindowFrameBound::Following(Some(ast)) => Edge::Following(offset(ast)?),
    })
}

/// Calls of one partitioning and order, with their numbers.
struct Group {
    partition: Vec<u32>,
    order: Vec<SortKey>,
    calls: Vec<(usize, WindowCall)>,
}

impl Group {
    fn is_like(&self, other: &Group) -> bool {
        self.partition == other.partition && self.order == other.order
    }
}

/// The columns that window functions read.
struct Columns {
    exprs: Vec<Expr>,
    /// Columns of the input, which come first.
    width: u32,
}

impl Columns {
    fn of(width: u32) -> Columns {
        // The type only matters for stored rows, where planning puts the real one.
        let own = (0..width).map(|column| Expr::Column(column, Type::Unknown));
        Columns {
            exprs: own.collect(),
            width,
        }
    }

    /// The column of an expression.
    fn place(&mut self, expr: Expr) -> u32 {
        if let Expr::Column(column, _) = expr {
            return column;
        }
        let added = &self.exprs[self.width as usize..];
        let known = added.iter().position(|known| *known == expr);
        let place = known.unwrap_or_else(|| {
            self.exprs.push(expr);
            self.exprs.len() - 1 - self.width as usize
        });
        self.width + place as u32
    }

    /// The expression as one that is quick for every row.
    fn read(&mut self, expr: Expr) -> Expr {
        match expr {
            Expr::Const(..) | Expr::Param(..) | Expr::Column(..) => expr,
            other => {
                let ty = other.ty();
                Expr::Column(self.place(other), ty)
            }
        }
    }

    fn group(&mut self, over: Over) -> Result<Group, SqlError> {
        let Over {
            partition,
            order,
            mut call,
        } = over;
        let mut keys: Vec<SortKey> = Vec::new();
        let mut first = None;
        for (key, descending, nulls_first) in order {
            let ty = key.ty();
            let column = self.place(key);
            let key = SortKey {
                column,
                descending,
                nulls_first,
            };
            first.get_or_insert((key, ty));
            if keys.iter().all(|known| known.column != column) {
                keys.push(key);
            }
        }
        if let (Units::Range, Some((key, ty))) = (call.frame.units, first) {
            self.reach(&mut call.frame, key, ty)?;
        }
        let filter = call.filter.take().map(|filter| self.read(filter));
        let args = core::mem::take(&mut call.args);
        for arg in args {
            // What the filter keeps away must not fail.
            let arg = match (&filter, arg) {
                (_, plain @ (Expr::Const(..) | Expr::Param(..) | Expr::Column(..))) => plain,
                (None, other) => other,
                (Some(filter), other) => Expr::Case {
                    ty: other.ty(),
                    otherwise: Box::new(Expr::null(other.ty())),
                    arms: vec![(self.written(filter), other)],
                },
            };
            let arg = self.read(arg);
            call.args.push(arg);
        }
        call.filter = filter;
        Ok(Group {
            partition: partition.into_iter().map(|key| self.place(key)).collect(),
            order: keys,
            calls: vec![(0, call)],
        })
    }

    /// The expression over the input that a column stands for.
    fn written(&self, expr: &Expr) -> Expr {
        match expr {
            Expr::Column(column, _) if *column >= self.width => {
                self.exprs[*column as usize].clone()
            }
            other => other.clone(),
        }
    }

    /// What a RANGE with an offset compares.
    fn reach(&mut self, frame: &mut Frame, key: SortKey, ty: Type) -> Result<(), SqlError> {
        let own = Expr::Column(key.column, ty);
        let mut sums = [None, None];
        let mut value = None;
        for (side, offset) in frame.offsets().into_iter().enumerate() {
            let Some(offset) = offset else { continue };
            let reach = reach::of(ty, offset.ty())?;
            let compared = match &value {
                Some(known) => known,
                None => {
                    let over = self.written(&own);
                    let cast = resolve::coerce(over, reach.value, Context::Implicit)?;
                    value.insert(self.read(cast))
                }
            };
            if reach.dated {
                let edges = [&frame.start, &frame.end];
                let back = matches!(edges[side], Edge::Preceding(_));
                let op = if back != key.descending { "-" } else { "+" };
                sums[side] = Some(resolve::binary(op, compared.clone(), offset.clone())?);
            }
        }
        frame.sums = sums;
        frame.key = value.map(|value| Key {
            value,
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
        Ok(())
    }
}
