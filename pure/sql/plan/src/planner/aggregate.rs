//! Grouping: what shards can aggregate themselves, and minima that an index knows.

use super::access::is_repeatable;
use super::query::{Need, Planned, Wish, is_read, one, only_below, pushable, substitute};
use super::{Planner, columns_of, estimate, remap};
use crate::step::{Step, StepOp};
use base::{Datum, SqlError, Type};
use bind::rel::{Aggregate, Rel, SortKey};
use expr::program::{Body, PartialAggregate, ProgramPlan};
use expr::{Expr, Volatility, walk};

impl Planner<'_, '_> {
    pub(super) fn aggregate(
        &mut self,
        input: Rel,
        (group, always): (Vec<Expr>, Vec<Vec<Datum>>),
        aggregates: Vec<Aggregate>,
        conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        let groups = group.len() as u32;
        let (kept, aggregates) = read_ones(aggregates, groups, need, &conditions);
        let (below, above) = conditions_below(conditions, &group, &always);
        let width = groups + aggregates.len() as u32;
        let layout: Vec<u32> = (0..groups).chain(kept).collect();
        let mut need = columns_of(&group);
        for aggregate in &aggregates {
            need.extend(columns_of(&aggregate.args));
            need.extend(aggregate.filter.iter().flat_map(walk::columns));
            let keys = aggregate.order.iter();
            need.extend(keys.flat_map(|(key, _, _)| walk::columns(key)));
        }
        let wish = extreme_wish(&input, &group, &aggregates);
        let extreme = wish.limit.clone();
        let mut planned = self.rel(input, below, &need, wish)?;
        planned.send_first(extreme.as_ref());
        let (mut group, mut aggregates) = (group, aggregates);
        group.iter_mut().for_each(|key| remap(key, &planned.layout));
        for aggregate in &mut aggregates {
            let keys = aggregate.order.iter_mut().map(|(key, _, _)| key);
            let exprs = aggregate
                .args
                .iter_mut()
                .chain(&mut aggregate.filter)
                .chain(keys);
            exprs.for_each(|expr| remap(expr, &planned.layout));
        }
        let merge = partial_scan(&mut planned.step, &group, &aggregates);
        if !merge {
            planned.step = self.sorted_for(planned.step, &aggregates);
        }
        let rows = if groups == 0 {
            1.0
        } else {
            estimate::groups(planned.step.rows, group.len())
        };
        let input = Box::new(planned.step);
        let op = StepOp::Aggregate {
            input,
            group,
            aggregates,
            merge,
            always,
        };
        let step = self.step(width, rows, op);
        Ok(self.finish(
            Planned {
                step,
                layout,
                ordered: groups == 0,
            },
            above,
        ))
    }

    /// Rows for each set of grouping keys.
    pub(super) fn expand(
        &mut self,
        input: Rel,
        (mut keys, sets): (Vec<Expr>, Vec<Vec<bool>>),
        conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        let (width, added) = (input.width(), keys.len() as u32 + 1);
        let mut below = columns_of(keys.iter().chain(&conditions));
        below.extend(need);
        below.retain(|column| *column < width);
        let planned = self.rel(input, Vec::new(), &below, Wish::default())?;
        let mut layout = planned.layout;
        keys.iter_mut().for_each(|key| remap(key, &layout));
        layout.extend(width..width + added);
        let rows = planned.step.rows * sets.len() as f64;
        let input = Box::new(planned.step);
        let step = self.step(
            layout.len() as u32,
            rows,
            StepOp::Expand { input, keys, sets },
        );
        let planned = Planned {
            step,
            layout,
            ordered: false,
        };
        Ok(self.finish(planned, conditions))
    }

    /// Sorts the input of aggregates with an ORDER BY of their own.
    fn sorted_for(&mut self, input: Step, aggregates: &[Aggregate]) -> Step {
        let Some(ordered) = aggregates.iter().find(|a| !a.order.is_empty()) else {
            return input;
        };
        let width = input.width;
        let mut exprs: Vec<Expr> = (0..width).map(|i| Expr::Column(i, Type::Unknown)).collect();
        let mut keys = Vec::new();
        for (key, descending, nulls_first) in &ordered.order {
            let (descending, nulls_first) = (*descending, *nulls_first);
            keys.push(SortKey {
                column: exprs.len() as u32,
                descending,
                nulls_first,
            });
            exprs.push(key.clone());
        }
        let rows = input.rows;
        let input = self.project_above(input, exprs);
        let width = input.width;
        self.step(
            width,
            rows,
            StepOp::Sort {
                input: Box::new(input),
                keys,
                limit: None,
            },
        )
    }

    /// A projection that is not folded.
    fn project_above(&mut self, input: Step, exprs: Vec<Expr>) -> Step {
        let (width, rows) = (exprs.len() as u32, input.rows);
        self.step(
            width,
            rows,
            StepOp::Project {
                input: Box::new(input),
                exprs,
            },
        )
    }
}

/// The aggregates that are computed, and the columns behind the keys that they are.
fn read_ones(
    aggregates: Vec<Aggregate>,
    groups: u32,
    need: &Need,
    conditions: &[Expr],
) -> (Vec<u32>, Vec<Aggregate>) {
    let all = (groups..).zip(aggregates);
    let computed = all.filter(|(column, aggregate)| {
        need.contains(column) || is_read(conditions, *column) || acts(aggregate)
    });
    computed.unzip()
}

/// Conditions of groups that rows can be asked for, over the rows, and the others.
fn conditions_below(
    conditions: Vec<Expr>,
    group: &[Expr],
    always: &[Vec<Datum>],
) -> (Vec<Expr>, Vec<Expr>) {
    let groups = group.len() as u32;
    let (mut below, above): (Vec<Expr>, Vec<Expr>) =
        conditions.into_iter().partition(|condition| {
            groups > 0
                && always.is_empty()
                && !walk::columns(condition).is_empty()
                && only_below(condition, groups)
                && group.iter().all(is_repeatable)
        });
    below
        .iter_mut()
        .for_each(|condition| substitute(condition, group));
    (below, above)
}

/// Whether it does more than to give a value, so that it is computed even if nobody reads it.
fn acts(aggregate: &Aggregate) -> bool {
    let keys = aggregate.order.iter().map(|(key, _, _)| key);
    let mut exprs = aggregate.args.iter().chain(&aggregate.filter).chain(keys);
    exprs.any(|expr| walk::volatility(expr) == Volatility::Volatile)
}

/// min(x) and max(x) alone: an order by x with one row answers them, if an index has it.
fn extreme_wish(input: &Rel, group: &[Expr], aggregates: &[Aggregate]) -> Wish {
    use expr::aggregate::AggFunc;
    let ([], [only]) = (group, aggregates) else {
        return Wish::default();
    };
    let descending = match only.func {
        AggFunc::Min => false,
        AggFunc::Max => true,
        _ => return Wish::default(),
    };
    let (None, [Expr::Column(column, _)]) = (&only.filter, only.args.as_slice()) else {
        return Wish::default();
    };
    let mut below = input;
    while let Rel::Filter { input, .. } = below {
        below = input;
    }
    let Rel::Table { table, .. } = below else {
        return Wish::default();
    };
    // NULL comes first from the back.
    if !table.columns[*column as usize].not_null {
        return Wish::default();
    }
    let key = SortKey {
        column: *column,
        descending,
        nulls_first: descending,
    };
    Wish {
        order: vec![key],
        limit: Some(one()),
    }
}

/// Lets the shards aggregate what they scan. Returns whether they do.
fn partial_scan(step: &mut Step, group: &[Expr], aggregates: &[Aggregate]) -> bool {
    let StepOp::Scan(scan) = &mut step.op else {
        return false;
    };
    let plain = scan.lock.is_none()
        && scan.limit.is_none()
        && scan.is_direct()
        && !scan.access.point
        && group.iter().all(pushable)
        && aggregates.iter().all(|aggregate| {
            aggregate.order.is_empty()
                && aggregate.args.iter().chain(&aggregate.filter).all(pushable)
        });
    let Body::Rows { filter, projection } = scan.program.unbound() else {
        return false;
    };
    if !plain {
        return false;
    }
    let over_row = |expr: &Expr| {
        let mut expr = expr.clone();
        substitute(&mut expr, &projection);
        expr
    };
    let body = Body::Aggregate {
        filter,
        group: group.iter().map(over_row).collect(),
        aggregates: aggregates
            .iter()
            .map(|aggregate| PartialAggregate {
                func: aggregate.func,
                args: aggregate.args.iter().map(over_row).collect(),
                distinct: aggregate.distinct && !aggregate.func.ignores_repetition(),
                filter: aggregate.filter.as_ref().map(over_row),
            })
            .collect(),
    };
    let states: usize = aggregates
        .iter()
        .map(|a| {
            a.func
                .partial_width(a.distinct && !a.func.ignores_repetition())
        })
        .sum();
    scan.width = (group.len() + states) as u32;
    scan.program = ProgramPlan::new(body);
    step.width = scan.width;
    true
}
