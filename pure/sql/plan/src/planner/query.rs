//! Bound relations to steps: filters move down, unused columns disappear, indexes are chosen.

use super::access::{self, Path, Place, Wanted, is_repeatable};
use super::constant::{check, check_above, check_below};
use super::estimate::{at_most, groups, share};
use super::few::total;
pub(super) use super::normal::conjunction;
use super::normal::{contradict, take_gates};
use super::shares::Known;
use super::{Planner, columns_of, remap};
use crate::step::{Scan, Step, StepOp};
use base::{SqlError, Type};
use bind::rel::{Call, CallKind, QueryUse, Rel, SortKey, TableFunction};
use catalog::Table;
use catalog::objects::is_own_table;
use expr::program::{Body, ProgramPlan, TopKey};
use expr::{Expr, Volatility, fold, list, walk};
use std::collections::BTreeSet;
use std::sync::Arc;
use txn::LockMode;

/// Columns of a relation that are needed above it.
pub(super) type Need = BTreeSet<u32>;

/// What the consumer would like.
#[derive(Clone, Default)]
pub(super) struct Wish {
    /// An order of the relation's columns.
    pub(super) order: Vec<SortKey>,
    /// Rows that are wanted at most (in that order, if there is one).
    pub(super) limit: Option<Expr>,
}

/// A planned relation.
pub(super) struct Planned {
    pub(super) step: Step,
    /// The relation's column that each of the step's columns holds.
    pub(super) layout: Vec<u32>,
    /// The wished order holds.
    pub(super) ordered: bool,
}

impl Planned {
    /// Lets the shards send only the first rows in the order that was wished, if they can.
    pub(super) fn send_first(&mut self, count: Option<&Expr>) {
        if let (Some(count), StepOp::Scan(scan)) = (count, &mut self.step.op)
            && !self.ordered
            && first_rows(scan, count)
        {
            self.step.rows = at_most(self.step.rows, Some(count));
        }
    }
}

/// Whether an expression can be computed where the rows are.
pub(super) fn pushable(expr: &Expr) -> bool {
    walk::volatility(expr) == Volatility::Immutable
        && !walk::any(expr, &|node| {
            matches!(node, Expr::Subquery(..) | Expr::Outer(..))
        })
}

/// Puts `exprs[i]` for column `i`. A column that is passed on without its type gets that by which
/// it is known here.
pub(super) fn substitute(expr: &mut Expr, exprs: &[Expr]) {
    match expr {
        Expr::Column(index, known) => {
            let known = *known;
            *expr = exprs[*index as usize].clone();
            if let Expr::Column(_, ty @ Type::Unknown) = expr {
                *ty = known;
            }
        }
        other => other.each_child_mut(&mut |child| substitute(child, exprs)),
    }
}

/// Whether one of the expressions reads the column.
pub(super) fn is_read(exprs: &[Expr], column: u32) -> bool {
    let reads = |node: &Expr| matches!(node, Expr::Column(read, _) if *read == column);
    exprs.iter().any(|expr| walk::any(expr, &reads))
}

pub(super) fn only_below(expr: &Expr, width: u32) -> bool {
    walk::columns(expr).iter().all(|column| *column < width)
}

impl Planner<'_, '_> {
    /// Plans a relation so that its rows have exactly the columns `wanted`, in this order.
    pub(super) fn rows(&mut self, rel: Rel, wanted: &[u32]) -> Result<Step, SqlError> {
        let need = wanted.iter().copied().collect();
        let planned = self.rel(rel, Vec::new(), &need, Wish::default())?;
        Ok(self.arrange(planned, wanted))
    }

    /// Brings the columns of a planned relation into an order.
    pub(super) fn arrange(&mut self, planned: Planned, wanted: &[u32]) -> Step {
        if planned.layout == wanted {
            return planned.step;
        }
        let exprs: Vec<Expr> = wanted
            .iter()
            .map(|column| {
                let place = planned.layout.iter().position(|c| c == column);
                let place = place.expect("a needed column is in the layout");
                // The type only matters for stored rows, where folding puts the real one.
                Expr::Column(place as u32, Type::Unknown)
            })
            .collect();
        self.project(planned.step, exprs)
    }

    /// A projection, folded into the step below where that is possible.
    pub(super) fn project(&mut self, input: Step, exprs: Vec<Expr>) -> Step {
        let width = exprs.len() as u32;
        match input.op {
            StepOp::Scan(mut scan)
                if matches!(scan.program.body(), Body::Rows { .. })
                    && exprs.iter().all(pushable) =>
            {
                let mut body = scan.program.unbound();
                let Body::Rows { projection, .. } = &mut body else {
                    unreachable!("matched above");
                };
                let mut exprs = exprs;
                exprs
                    .iter_mut()
                    .for_each(|expr| substitute(expr, projection));
                *projection = exprs;
                scan.program = ProgramPlan::new(body);
                scan.width = width;
                Step {
                    width,
                    op: StepOp::Scan(scan),
                    ..input
                }
            }
            StepOp::Project {
                input: inner,
                exprs: below,
            } if exprs.iter().all(|expr| matches!(expr, Expr::Column(..))) => {
                let mut exprs = exprs;
                exprs.iter_mut().for_each(|expr| substitute(expr, &below));
                Step {
                    width,
                    op: StepOp::Project {
                        input: inner,
                        exprs,
                    },
                    ..input
                }
            }
            op => {
                let mut exprs = exprs;
                exprs.iter_mut().for_each(list::prepare);
                let rows = input.rows;
                let input = Box::new(Step { op, ..input });
                self.step(width, rows, StepOp::Project { input, exprs })
            }
        }
    }

    /// Plans `rel` filtered by `conditions`; the layout holds at least the columns `need`.
    pub(super) fn rel(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        if self.depth >= super::DEPTH_MAX {
            return Err(parse::too_complex());
        }
        self.depth += 1;
        self.binder.work += 1 + conditions.len() as u64;
        let planned = self.rel_inside(rel, conditions, need, wish);
        self.depth -= 1;
        planned
    }

    fn rel_inside(
        &mut self,
        rel: Rel,
        mut conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let reads = |column| need.contains(&column) || is_read(&conditions, column);
        check(&rel, &reads)?;
        if contradict(&conditions) {
            check_below(&rel)?;
            return Ok(self.nothing(need));
        }
        if !matches!(rel, Rel::Table { .. } | Rel::Filter { .. })
            && let gates = take_gates(&mut conditions)
            && !gates.is_empty()
        {
            let planned = self.rel(rel, conditions, need, wish)?;
            return Ok(self.finish(planned, gates));
        }
        match rel {
            Rel::Filter {
                input,
                conditions: more,
                secure,
            } => self.filter((*input, more, secure), conditions, need, wish),
            Rel::Table { table, lock } => self.table(table, lock, conditions, need, &wish),
            Rel::Project { input, exprs } => self.projection(*input, exprs, conditions, need, wish),
            Rel::Join { .. } => self.join(rel, conditions, need),
            Rel::Lateral {
                outer,
                left,
                right,
                binds,
                on,
            } => self.lateral((outer, *left, *right, binds, on), conditions, need),
            Rel::Apply { input, calls } => self.apply(*input, calls, conditions, need, wish),
            Rel::Aggregate {
                input,
                group,
                aggregates,
                always,
            } => self.aggregate(*input, (group, always), aggregates, conditions, need),
            Rel::Expand { input, keys, sets } => {
                self.expand(*input, (keys, sets), conditions, need)
            }
            Rel::Window { .. } => self.window(rel, conditions, need, &wish),
            Rel::Sort { input, keys } => self.sort(*input, keys, conditions, need, wish),
            Rel::Distinct { input, keys } => self.distinct(*input, &keys, conditions, wish),
            Rel::Limit { .. } => self.limit(rel, conditions, need, wish),
            Rel::Locked { input, mode, skips } => {
                self.locked(*input, (mode, skips), conditions, need, wish)
            }
            Rel::Union { inputs } => self.union(inputs, conditions, need),
            Rel::Match {
                matching,
                left,
                right,
            } => self.matched(matching, (*left, *right), conditions),
            named @ (Rel::Shared { .. }
            | Rel::Recursive { .. }
            | Rel::Working { .. }
            | Rel::Part { .. }) => self.named(named, conditions),
            source => self.source(source, conditions),
        }
    }

    /// A relation that reads no other and no table.
    fn source(&mut self, rel: Rel, conditions: Vec<Expr>) -> Result<Planned, SqlError> {
        match rel {
            Rel::One => {
                let planned = self.whole(0, 1.0, StepOp::One, conditions);
                Ok(Planned {
                    ordered: true,
                    ..planned
                })
            }
            Rel::Values { rows, types, calls } => {
                let calls = self.calls(calls)?;
                let count = rows.len() as f64;
                let op = StepOp::Values {
                    rows: rows.into(),
                    calls,
                };
                Ok(self.whole(types.len() as u32, count, op, conditions))
            }
            Rel::Virtual(table) => {
                let op = StepOp::Virtual(table);
                Ok(self.whole(table.columns.len() as u32, 100.0, op, conditions))
            }
            Rel::Function {
                function,
                args,
                types,
            } => {
                let scalar = function == TableFunction::Scalar;
                let rows = if scalar { 1.0 } else { 100.0 };
                let width = types.len() as u32;
                let op = StepOp::Function {
                    function,
                    args,
                    types,
                };
                Ok(self.whole(width, rows, op, conditions))
            }
            _ => unreachable!("the caller has dealt with all others"),
        }
    }

    /// A relation without rows.
    pub(super) fn nothing(&mut self, need: &Need) -> Planned {
        let layout: Vec<u32> = need.iter().copied().collect();
        let op = StepOp::Values {
            rows: Arc::from([]),
            calls: Vec::new(),
        };
        Planned {
            step: self.step(layout.len() as u32, 0.0, op),
            layout,
            ordered: true,
        }
    }

    fn distinct(
        &mut self,
        input: Rel,
        keys: &[u32],
        conditions: Vec<Expr>,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let all: Need = (0..input.width()).collect();
        let inner = Wish {
            limit: None,
            ..wish
        };
        let planned = self.rel(input, Vec::new(), &all, inner)?;
        let places = keys.iter().map(|key| position(&planned.layout, *key));
        let keys: Vec<u32> = places.collect();
        let (width, rows) = (planned.step.width, groups(planned.step.rows, keys.len()));
        let input = Box::new(planned.step);
        let step = self.step(width, rows, StepOp::Distinct { input, keys });
        let planned = Planned { step, ..planned };
        Ok(self.finish(planned, conditions))
    }

    fn limit(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let Rel::Limit {
            input,
            limit,
            offset,
            ties,
        } = rel
        else {
            unreachable!("called for limits only");
        };
        let mut need = need.clone();
        need.extend(columns_of(&conditions));
        need.extend(&ties);
        let inner = Wish {
            limit: total(limit.as_ref(), offset.as_ref()).filter(|_| ties.is_empty()),
            ..wish
        };
        let planned = self.rel(*input, Vec::new(), &need, inner)?;
        let width = planned.step.width;
        let rows = at_most(planned.step.rows, limit.as_ref());
        let places = ties.iter().map(|column| position(&planned.layout, *column));
        let op = StepOp::Limit {
            input: Box::new(planned.step),
            limit,
            offset,
            ties: places.collect(),
        };
        let step = self.step(width, rows, op);
        let planned = Planned { step, ..planned };
        Ok(self.finish(planned, conditions))
    }

    /// A source of all its columns, filtered.
    pub(super) fn whole(
        &mut self,
        width: u32,
        rows: f64,
        op: StepOp,
        conditions: Vec<Expr>,
    ) -> Planned {
        let step = self.step(width, rows, op);
        let planned = Planned {
            step,
            layout: (0..width).collect(),
            ordered: false,
        };
        self.finish(planned, conditions)
    }

    /// Filters what could not be filtered below.
    pub(super) fn finish(&mut self, planned: Planned, mut conditions: Vec<Expr>) -> Planned {
        conditions
            .iter_mut()
            .for_each(|condition| remap(condition, &planned.layout));
        let Some(mut filter) = conjunction(conditions) else {
            return planned;
        };
        list::prepare(&mut filter);
        let (width, rows) = (planned.step.width, planned.step.rows * share(&filter));
        let input = Box::new(planned.step);
        let step = self.step(width, rows, StepOp::Filter { input, filter });
        Planned { step, ..planned }
    }

    /// A scan of one table.
    fn table(
        &mut self,
        table: Arc<Table>,
        lock: Option<LockMode>,
        conditions: Vec<Expr>,
        need: &Need,
        wish: &Wish,
    ) -> Result<Planned, SqlError> {
        let mut conditions = conditions;
        let gate = conjunction(take_gates(&mut conditions));
        let (mut pushed, mut rest): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(pushable);
        let place = Place {
            first: 0,
            width: table.columns.len() as u32,
        };
        let wanted = Wanted {
            order: &wish.order,
            limited: wish.limit.is_some() && rest.is_empty(),
            rows: self.rows_of(&table),
            computed: &self.computed_of(&table),
            values: None,
        };
        let (path, share) = self.path(&table, place, &pushed, wanted);
        self.binder.by_values |= path.by_values;
        self.binder.by_rows |= !table.secondary.is_empty() && !path.access.point;
        let by_entry = access::without(&pushed, &path.by_entry);
        pushed = access::without(&pushed, &path.certain);
        if path.is_too_long_with(&pushed) {
            rest.append(&mut pushed);
        }
        let layout: Vec<u32> = need.union(&columns_of(&rest)).copied().collect();
        let limit = if rest.is_empty() && (wish.order.is_empty() || path.ordered) {
            wish.limit.clone()
        } else {
            None
        };
        let rows = at_most(path.rows * share, limit.as_ref());
        // Only the server itself locks rows of its own tables, to write over what is there.
        let newest = lock.is_some() && is_own_table(&table.name);
        let merges = path.merges && limit.is_some();
        let alone = lock.is_none() && !merges && path.access.index > 0;
        let alone = alone.then(|| access::entry_program(&table, &layout, by_entry));
        let alone = alone.flatten();
        let entries = alone.is_some();
        let program = alone.unwrap_or_else(|| rows_program(&table, &layout, pushed));
        let scan = Scan {
            program,
            width: layout.len() as u32,
            access: path.access,
            lock,
            newest,
            candidates: false,
            gate,
            merges,
            limit,
            entries,
            table,
        };
        let step = self.step(layout.len() as u32, rows, StepOp::Scan(Box::new(scan)));
        let planned = Planned {
            step,
            layout,
            ordered: path.ordered,
        };
        Ok(self.finish(planned, rest))
    }

    /// The best path to the rows that pass, and the share of its rows that do.
    fn path(
        &self,
        table: &Table,
        place: Place,
        pushed: &[Expr],
        wanted: Wanted<'_>,
    ) -> (Path, f64) {
        let mut path = access::best(table, place, pushed, &|_| false, wanted);
        // A point is one, whatever is known of values.
        let values = match path.access.point || pushed.is_empty() {
            true => None,
            false => self.values_of(table),
        };
        let values = values.as_deref();
        if values.is_some() {
            let wanted = Wanted { values, ..wanted };
            path = access::best(table, place, pushed, &|_| false, wanted);
        }
        let share = path.share_of_rest(pushed, Known { values, place });
        (path, share)
    }

    fn projection(
        &mut self,
        input: Rel,
        exprs: Vec<Expr>,
        conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let (mut below, above): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(|condition| {
                walk::columns(condition)
                    .iter()
                    .all(|c| is_repeatable(&exprs[*c as usize]))
            });
        below
            .iter_mut()
            .for_each(|condition| substitute(condition, &exprs));
        below.iter_mut().for_each(fold::fold);
        below.iter().try_for_each(fold::check)?;
        let layout: Vec<u32> = need.union(&columns_of(&above)).copied().collect();
        let kept: Vec<Expr> = layout.iter().map(|c| exprs[*c as usize].clone()).collect();
        kept.iter().try_for_each(fold::check)?;
        check_above(&kept, &input)?;
        let order: Option<Vec<SortKey>> = wish
            .order
            .iter()
            .map(|key| match &exprs[key.column as usize] {
                Expr::Column(column, _) => Some(SortKey {
                    column: *column,
                    ..*key
                }),
                _ => None,
            })
            .collect();
        let limit = if above.is_empty() && order.is_some() {
            wish.limit
        } else {
            None
        };
        let inner = Wish {
            order: order.clone().unwrap_or_default(),
            limit,
        };
        let planned = self.rel(input, below, &columns_of(&kept), inner)?;
        let ordered = planned.ordered && order.is_some();
        let mut kept = kept;
        kept.iter_mut()
            .for_each(|expr| remap(expr, &planned.layout));
        let identity = kept.len() as u32 == planned.step.width
            && kept
                .iter()
                .enumerate()
                .all(|(i, e)| matches!(e, Expr::Column(c, _) if *c as usize == i));
        let step = if identity {
            planned.step
        } else {
            self.project(planned.step, kept)
        };
        Ok(self.finish(
            Planned {
                step,
                layout,
                ordered,
            },
            above,
        ))
    }

    fn sort(
        &mut self,
        input: Rel,
        keys: Vec<SortKey>,
        conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let mut need = need.clone();
        need.extend(keys.iter().map(|key| key.column));
        let inner = Wish {
            order: keys.clone(),
            limit: wish.limit.clone(),
        };
        let mut planned = self.rel(input, conditions, &need, inner)?;
        let wanted = keys.starts_with(&wish.order);
        if planned.ordered {
            planned.ordered = wanted;
            return Ok(planned);
        }
        let keys: Vec<SortKey> = keys
            .into_iter()
            .map(|key| SortKey {
                column: position(&planned.layout, key.column),
                ..key
            })
            .collect();
        if let (Some(limit), StepOp::Scan(scan)) = (&wish.limit, &mut planned.step.op)
            && scan.lock.is_none()
            && scan.access.index == 0
            && !scan.access.point
            && pushable(limit)
            && let Body::Rows { filter, projection } = scan.program.unbound()
        {
            // Every shard sends only its own first rows.
            let keys = keys.iter().map(|key| TopKey {
                column: key.column,
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
            let top = Body::Top {
                filter,
                projection,
                keys: keys.collect(),
                count: limit.clone(),
            };
            if !first_rows(scan, limit) {
                scan.program = ProgramPlan::new(top);
            }
            planned.step.rows = at_most(planned.step.rows, Some(limit));
        }
        let width = planned.step.width;
        let rows = at_most(planned.step.rows, wish.limit.as_ref());
        let input = Box::new(planned.step);
        let step = self.step(
            width,
            rows,
            StepOp::Sort {
                input,
                keys,
                limit: wish.limit,
            },
        );
        Ok(Planned {
            step,
            layout: planned.layout,
            ordered: wanted,
        })
    }

    fn apply(
        &mut self,
        input: Rel,
        calls: Vec<Call<Rel>>,
        conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let width = input.width();
        let (below, above): (Vec<Expr>, Vec<Expr>) = conditions
            .into_iter()
            .partition(|condition| only_below(condition, width));
        let calls = calls.into_iter().map(Some).collect();
        let (input, calls, rest) = semi_joins(input.filtered(below), calls, above, need);
        let mut wanted = need.clone();
        wanted.extend(columns_of(&rest));
        // A call whose value is not read need not be made, unless it has an effect. A call may
        // read the ones before it.
        let mut kept: Vec<(u32, Call<Rel>)> = Vec::new();
        for (i, call) in calls.into_iter().enumerate().rev() {
            let (column, Some(call)) = (width + i as u32, call) else {
                continue;
            };
            if wanted.contains(&column) || call.kind.has_effect() {
                wanted.extend(columns_of(call.kind.outer_exprs()));
                kept.push((column, call));
            }
        }
        kept.reverse();
        let inner_need: Need = wanted.iter().copied().filter(|c| *c < width).collect();
        let (columns, kept): (Vec<u32>, Vec<Call<Rel>>) = kept.into_iter().unzip();
        let limit = wish.limit.filter(|_| kept.is_empty() && rest.is_empty());
        // An order by the value of a call is made above.
        let plain = wish.order.iter().all(|key| key.column < width);
        let order = if plain { wish.order } else { Vec::new() };
        let below = Wish { limit, order };
        let mut planned = self.rel(input, Vec::new(), &inner_need, below)?;
        planned.ordered &= plain;
        if kept.is_empty() {
            return Ok(self.finish(planned, rest));
        }
        for (mut call, column) in kept.into_iter().zip(columns) {
            for expr in call.kind.outer_exprs_mut() {
                remap(expr, &planned.layout);
            }
            planned = self.with_call(planned, call)?;
            planned.layout.push(column);
        }
        Ok(self.finish(planned, rest))
    }

    /// Plans the queries of calls.
    pub(super) fn calls(&mut self, calls: Vec<Call<Rel>>) -> Result<Vec<Call<Step>>, SqlError> {
        calls.into_iter().map(|call| self.call(call)).collect()
    }

    pub(super) fn call(&mut self, call: Call<Rel>) -> Result<Call<Step>, SqlError> {
        let exists = matches!(
            call.kind,
            CallKind::Query {
                usage: QueryUse::Exists,
                ..
            }
        );
        let kind = call.kind.try_map(&mut |query: Rel| {
            if exists {
                let wish = Wish {
                    order: Vec::new(),
                    limit: Some(one()),
                };
                let planned = self.rel(query, Vec::new(), &Need::new(), wish)?;
                return Ok(planned.step);
            }
            let wanted: Vec<u32> = (0..query.width()).collect();
            self.rows(query, &wanted)
        })?;
        Ok(Call {
            kind,
            ty: call.ty,
            repeats: call.repeats,
        })
    }
}

/// EXISTS and IN that stand alone as conditions become semi joins where they can. Gives the new
/// input, the calls that are left and the other conditions.
fn semi_joins(
    mut input: Rel,
    mut calls: Vec<Option<Call<Rel>>>,
    conditions: Vec<Expr>,
    need: &Need,
) -> (Rel, Vec<Option<Call<Rel>>>, Vec<Expr>) {
    let width = input.width();
    let mut uses: Vec<u32> = conditions.iter().flat_map(walk::columns).collect();
    uses.extend(need);
    for call in calls.iter().flatten() {
        let exprs = call.kind.outer_exprs();
        uses.extend(exprs.flat_map(walk::columns));
    }
    let mut rest = Vec::new();
    for condition in conditions {
        let (column, anti) = match &condition {
            Expr::Column(column, _) => (Some(*column), false),
            Expr::Not(inner) => match inner.as_ref() {
                Expr::Column(column, _) => (Some(*column), true),
                _ => (None, false),
            },
            _ => (None, false),
        };
        let once = |column: &u32| uses.iter().filter(|used| *used == column).count() == 1;
        let number = column
            .filter(once)
            .and_then(|column| column.checked_sub(width));
        let call = number.and_then(|number| calls[number as usize].as_ref());
        // What reads another call's value, or is read by one, is computed beside it.
        let alone = |call: &&Call<Rel>| {
            let mut exprs = call.kind.outer_exprs();
            exprs.all(|expr| only_below(expr, width))
        };
        let call = call.filter(alone);
        let joined = call.is_some_and(|call| super::semi::join(&mut input, call, anti));
        match number {
            Some(number) if joined => calls[number as usize] = None,
            _ => rest.push(condition),
        }
    }
    (input, calls, rest)
}

/// The program that gives the columns `layout` of the rows that pass.
pub(super) fn rows_program(table: &Table, layout: &[u32], conditions: Vec<Expr>) -> ProgramPlan {
    let projection = layout
        .iter()
        .map(|c| Expr::Column(*c, table.columns[*c as usize].ty))
        .collect();
    ProgramPlan::new(Body::Rows {
        filter: conjunction(conditions),
        projection,
    })
}

pub(super) fn position(layout: &[u32], column: u32) -> u32 {
    let place = layout.iter().position(|c| *c == column);
    place.expect("a needed column is in the layout") as u32
}

pub(super) fn one() -> Expr {
    Expr::Const(base::Datum::Int(1), Type::Int8)
}

/// Lets the shards send the first rows in the order of their keys, if that is the wanted one.
fn first_rows(scan: &mut Scan, count: &Expr) -> bool {
    let Body::Rows { filter, projection } = scan.program.unbound() else {
        return false;
    };
    if !scan.access.in_order || scan.access.index != 0 || scan.lock.is_some() {
        return false;
    }
    scan.program = ProgramPlan::new(Body::First {
        filter,
        projection,
        count: count.clone(),
        reverse: scan.access.reverse,
        keyed: false,
    });
    true
}
