//! Aggregates of a subquery that depends on the row by equalities:
//! `(SELECT avg(y) FROM t WHERE t.k = o.k)`. Computed once for all rows, as groups by `t.k` that
//! are joined by a left join, where that is cheaper than to run the query for each row.

use super::Planner;
use super::access::is_repeatable;
use super::query::{Need, Planned, Wish, substitute};
use super::secured::is_leakproof;
use crate::step::{Scan, Step, StepOp};
use base::{Datum, SqlError, Type};
use bind::rel::{Aggregate, Binds, Call, CallKind, JoinKind, QueryUse, Rel};
use expr::aggregate::AggFunc;
use expr::{Compare, Expr, Func, walk};

/// Groups are held in memory: of more than this the query is run for each row.
const GROUPS_MAX: f64 = 1_000_000.0;
/// Rows that are read must be this many times fewer: groups are kept in memory, and more rows are
/// locked than those of the keys that are wanted.
const GAIN: f64 = 2.0;
/// Cost of asking for one row, as rows that are read.
const POINT_COST: f64 = 8.0;
/// The same of a range.
const RANGE_COST: f64 = 20.0;
/// The same of a row behind a secondary index.
const BEHIND_COST: f64 = 10.0;

/// The parts of such a subquery.
struct Grouped {
    /// Gives the keys, then the aggregates.
    rel: Rel,
    /// What each key must be equal to, over the outer row.
    outer: Vec<Expr>,
    /// The value of the subquery over the aggregates.
    value: Expr,
    /// Value of each aggregate where there is no row, if it is not NULL, and the types of all.
    empty: Vec<(Option<Datum>, Type)>,
}

/// Takes a call apart, if it is such a subquery and no error can come of rows that no outer row
/// asks for.
fn grouped(call: &Call<Rel>) -> Option<Grouped> {
    let CallKind::Query {
        usage: QueryUse::Scalar,
        query,
        binds,
    } = &call.kind
    else {
        return None;
    };
    if !call.repeats || binds.is_empty() {
        return None;
    }
    let (mut value, mut below) = (Expr::Column(0, call.ty), query);
    while let Rel::Project { input, exprs } = below {
        substitute(&mut value, exprs);
        below = input;
    }
    let Rel::Aggregate {
        input,
        group,
        aggregates,
        always,
    } = below
    else {
        return None;
    };
    let Rel::Filter {
        input,
        conditions,
        secure: false,
    } = &**input
    else {
        return None;
    };
    let slot = |expr: &Expr| slot_of(expr, binds);
    let depends = |expr: &Expr| walk::any(expr, &|node| slot(node).is_some());
    let plain = group.is_empty() && always.is_empty() && is_simple(input);
    let mut exprs = aggregates.iter().map(is_harmless);
    if !plain || !exprs.all(|harmless| harmless) || depends(&value) || !is_repeatable(&value) {
        return None;
    }
    let (keys, outer, inner) = equalities(conditions, binds)?;
    if keys.is_empty() || reads(input, &|node| slot(node).is_some()) {
        return None;
    }
    let rel = Rel::Aggregate {
        input: Box::new(input.as_ref().clone().filtered(inner)),
        group: keys,
        aggregates: aggregates.clone(),
        always: Vec::new(),
    };
    let empty = aggregates.iter().map(|aggregate| {
        let counts = matches!(aggregate.func, AggFunc::Count | AggFunc::CountAll);
        (counts.then_some(Datum::Int(0)), aggregate.ty)
    });
    Some(Grouped {
        rel,
        outer,
        value,
        empty: empty.collect(),
    })
}

/// Keys, what each must be equal to over the outer row, and the conditions that do not depend on
/// it. `None`: it depends on the row otherwise, or can fail.
fn equalities(conditions: &[Expr], binds: &Binds) -> Option<(Vec<Expr>, Vec<Expr>, Vec<Expr>)> {
    let slot = |expr: &Expr| slot_of(expr, binds);
    let depends = |expr: &Expr| walk::any(expr, &|node| slot(node).is_some());
    let (mut keys, mut outer, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    for condition in split(conditions) {
        if !depends(condition) {
            if !is_leakproof(condition) || !is_repeatable(condition) {
                return None;
            }
            inner.push(condition.clone());
            continue;
        }
        let Expr::Call(Func::Compare(Compare::Eq), sides, _) = condition else {
            return None;
        };
        let (key, bound) = match sides.as_slice() {
            [key, other] if slot(other).is_some() => (key, other),
            [other, key] if slot(other).is_some() => (key, other),
            _ => return None,
        };
        let value = slot(bound)?;
        if !matches!(key, Expr::Column(..)) || key.ty() != bound.ty() || !is_repeatable(value) {
            return None;
        }
        keys.push(key.clone());
        outer.push(value.clone());
    }
    Some((keys, outer, inner))
}

/// What a slot of the subquery is bound to.
fn slot_of<'b>(expr: &Expr, binds: &'b Binds) -> Option<&'b Expr> {
    let Expr::Param(slot, _) = expr else {
        return None;
    };
    let bind = binds.iter().find(|(bound, _)| bound == slot);
    bind.map(|(_, value)| value)
}

/// All conditions that stand below AND.
fn split(conditions: &[Expr]) -> Vec<&Expr> {
    let mut all = Vec::new();
    let mut waiting: Vec<&Expr> = conditions.iter().rev().collect();
    while let Some(condition) = waiting.pop() {
        match condition {
            Expr::And(parts) => waiting.extend(parts.iter().rev()),
            other => all.push(other),
        }
    }
    all
}

/// Whether a relation is made of tables, joins and conditions that cannot fail. Nothing in it is
/// planned twice at several depths.
fn is_simple(rel: &Rel) -> bool {
    let harmless = |conditions: &[Expr]| {
        let mut conditions = conditions.iter();
        conditions.all(|condition| is_leakproof(condition) && is_repeatable(condition))
    };
    match rel {
        Rel::Table { lock, .. } => lock.is_none(),
        Rel::Filter {
            input, conditions, ..
        } => harmless(conditions) && is_simple(input),
        Rel::Join {
            kind: JoinKind::Inner,
            left,
            right,
            on,
        } => harmless(on) && is_simple(left) && is_simple(right),
        _ => false,
    }
}

/// Whether an expression of a simple relation has such a node.
fn reads(rel: &Rel, wanted: &dyn Fn(&Expr) -> bool) -> bool {
    let own = match rel {
        Rel::Filter { conditions, .. } => &conditions[..],
        Rel::Join { on, .. } => &on[..],
        _ => &[],
    };
    own.iter().any(|expr| walk::any(expr, wanted))
        || rel.inputs().into_iter().any(|input| reads(input, wanted))
}

/// Whether an aggregate fails over no rows at all. Sums of floats may be out of range.
fn is_harmless(aggregate: &Aggregate) -> bool {
    let float = |arg: &Expr| matches!(arg.ty(), Type::Float4 | Type::Float8);
    let func = match aggregate.func {
        AggFunc::CountAll | AggFunc::Count | AggFunc::Min | AggFunc::Max => true,
        AggFunc::Sum(_) | AggFunc::Avg(_) => !aggregate.args.iter().any(float),
        _ => false,
    };
    let mut read = aggregate.args.iter().chain(&aggregate.filter);
    func && aggregate.order.is_empty() && read.all(|expr| is_leakproof(expr) && is_repeatable(expr))
}

impl Planner<'_, '_> {
    /// Adds the value of a call, whose expressions are over the rows of `planned`, behind its
    /// columns.
    pub(super) fn with_call(
        &mut self,
        planned: Planned,
        call: Call<Rel>,
    ) -> Result<Planned, SqlError> {
        let grouped = grouped(&call);
        let call = self.call(call)?;
        if let Some(grouped) = grouped
            && let Some(right) = self.cheaper_groups(&planned.step, &call, &grouped)?
        {
            let step = self.join_groups(planned.step, right, grouped);
            return Ok(Planned {
                step,
                ordered: false,
                ..planned
            });
        }
        let Planned { mut step, .. } = planned;
        if let StepOp::Apply { calls, .. } = &mut step.op {
            calls.push(call);
            step.width += 1;
        } else {
            let (width, rows) = (step.width + 1, step.rows);
            let op = StepOp::Apply {
                input: Box::new(step),
                calls: vec![call],
            };
            step = self.step(width, rows, op);
        }
        Ok(Planned { step, ..planned })
    }

    /// The plan of the groups, if they cost less than the query for each row of `outer`.
    fn cheaper_groups(
        &mut self,
        outer: &Step,
        call: &Call<Step>,
        grouped: &Grouped,
    ) -> Result<Option<Step>, SqlError> {
        let CallKind::Query { query, .. } = &call.kind else {
            return Ok(None);
        };
        self.binder.by_rows = true;
        let each = self.cost_of(query);
        let need: Need = (0..grouped.rel.width()).collect();
        let planned = self.rel(grouped.rel.clone(), Vec::new(), &need, Wish::default())?;
        let groups = planned.step;
        let all = self.cost_of(&groups) + groups.rows;
        let cheaper = all * GAIN < outer.rows * each && groups.rows <= GROUPS_MAX;
        Ok(cheaper.then_some(groups))
    }

    /// Rows that a step and those below it read, about.
    fn cost_of(&self, step: &Step) -> f64 {
        match &step.op {
            StepOp::Scan(scan) => self.scan_cost(scan, step.rows),
            StepOp::Lookup { left, scan, .. } => {
                let each = (step.rows / left.rows.max(1.0)).max(1.0);
                self.cost_of(left) + left.rows * self.scan_cost(scan, each)
            }
            StepOp::Hash { left, right, .. } => self.cost_of(left) + self.cost_of(right),
            StepOp::Filter { input, .. }
            | StepOp::Project { input, .. }
            | StepOp::Aggregate { input, .. }
            | StepOp::Sort { input, .. }
            | StepOp::Limit { input, .. } => self.cost_of(input),
            _ => step.rows,
        }
    }

    fn scan_cost(&self, scan: &Scan, rows: f64) -> f64 {
        let access = &scan.access;
        let ranged = access.low.is_some() || access.high.is_some();
        if access.prefix.is_empty() && !ranged {
            return match (access.index, scan.limit.is_some()) {
                (_, true) => rows,
                (0, false) => self.rows_of(&scan.table),
                (_, false) => self.rows_of(&scan.table) * BEHIND_COST,
            };
        }
        let each = match access.index {
            0 => 1.0,
            _ => BEHIND_COST,
        };
        match access.point {
            true => POINT_COST,
            false => RANGE_COST + rows * each,
        }
    }

    /// Joins rows with groups; the value of the subquery is the last column.
    fn join_groups(&mut self, left: Step, right: Step, grouped: Grouped) -> Step {
        let (width, keys) = (left.width, grouped.outer.len() as u32);
        let pairs = grouped.outer.into_iter().zip(0..).map(|(outer, at)| {
            let ty = outer.ty();
            (outer, Expr::Column(at, ty))
        });
        let (rows, joined) = (left.rows, width + right.width);
        let op = StepOp::Hash {
            kind: JoinKind::Left,
            keys: pairs.collect(),
            left: Box::new(left),
            right: Box::new(right),
            filter: None,
        };
        let step = self.step(joined, rows, op);
        let aggregates = grouped.empty.into_iter().zip(width + keys..);
        let aggregates = aggregates.map(|((empty, ty), at)| {
            let found = Expr::Column(at, ty);
            match empty {
                None => found,
                Some(value) => Expr::Coalesce(vec![found, Expr::Const(value, ty)], ty),
            }
        });
        let aggregates: Vec<Expr> = aggregates.collect();
        let mut value = grouped.value;
        substitute(&mut value, &aggregates);
        let mut exprs: Vec<Expr> = (0..width)
            .map(|at| Expr::Column(at, Type::Unknown))
            .collect();
        exprs.push(value);
        self.project(step, exprs)
    }
}
