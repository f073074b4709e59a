//! Joins: the order of inner joins, key lookups against hash joins, semi joins from subqueries.

use super::access::{self, Place};
use super::query::{Need, Planned, Wish, conjunction, pushable, rows_program};
use super::{Planner, columns_of, remap};
use crate::bind::conjuncts;
use crate::bind::rel::{Binds, Call, CallKind, JoinKind, Rel};
use crate::exec::step::{Access, Bound, KeyPart, Scan, SlotPart, StepOp};
use crate::expr::{Compare, Expr, Func, walk};
use base::SqlError;
use catalog::Table;
use std::sync::Arc;
use txn::LockMode;

/// Cost of one key lookup, in rows scanned.
const LOOKUP_COST: f64 = 3.0;

/// One input of a set of inner joins; its columns start at `place.first` of the whole row.
struct Item {
    rel: Option<Rel>,
    place: Place,
    /// The table and its lock, if it is one that can be looked up.
    table: Option<(Arc<Table>, Option<LockMode>)>,
    /// Conditions on this item alone, in its own numbering.
    own: Vec<Expr>,
}

/// Moves the columns of an expression down by `by`.
fn lower(expr: &mut Expr, by: u32) {
    walk::map(expr, &mut |node| {
        if let Expr::Column(column, _) = node {
            *column -= by;
        }
    });
}

fn raise(expr: &mut Expr, by: u32) {
    walk::map(expr, &mut |node| {
        if let Expr::Column(column, _) = node {
            *column += by;
        }
    });
}

impl Planner<'_, '_> {
    pub(super) fn join(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        let Rel::Join {
            kind,
            left,
            right,
            on,
        } = rel
        else {
            unreachable!("the caller has looked at the kind");
        };
        match kind {
            JoinKind::Inner => {
                let (mut items, mut all) = (Vec::new(), conditions);
                flatten(
                    Rel::Join {
                        kind,
                        left,
                        right,
                        on,
                    },
                    0,
                    &mut items,
                    &mut all,
                );
                self.inner(items, all, need)
            }
            JoinKind::Right => {
                // The same with sides exchanged; columns keep their numbers in the layout.
                let (left_width, right_width) = (left.width(), right.width());
                let swap = |column: u32| {
                    if column < left_width {
                        column + right_width
                    } else {
                        column - left_width
                    }
                };
                let mut on = on;
                let mut conditions = conditions;
                for expr in on.iter_mut().chain(&mut conditions) {
                    walk::map(expr, &mut |node| {
                        if let Expr::Column(column, _) = node {
                            *column = swap(*column);
                        }
                    });
                }
                let need = need.iter().map(|column| swap(*column)).collect();
                let mut planned =
                    self.outer(JoinKind::Left, *right, *left, on, conditions, &need)?;
                for column in &mut planned.layout {
                    *column = if *column < right_width {
                        *column + left_width
                    } else {
                        *column - right_width
                    };
                }
                Ok(planned)
            }
            kind => self.outer(kind, *left, *right, on, conditions, need),
        }
    }

    /// Left, full, semi and anti joins.
    fn outer(
        &mut self,
        kind: JoinKind,
        left: Rel,
        right: Rel,
        on: Vec<Expr>,
        conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        let left_width = left.width();
        let is_left = |expr: &Expr| walk::columns(expr).iter().all(|c| *c < left_width);
        let is_right = |expr: &Expr| {
            let columns = walk::columns(expr);
            !columns.is_empty() && columns.iter().all(|c| *c >= left_width)
        };
        let repeatable = |expr: &Expr| access::is_repeatable(expr);
        let (left_conditions, above): (Vec<Expr>, Vec<Expr>) = conditions
            .into_iter()
            .partition(|e| kind != JoinKind::Full && is_left(e) && repeatable(e));
        let (mut right_conditions, on): (Vec<Expr>, Vec<Expr>) = on
            .into_iter()
            .partition(|e| kind != JoinKind::Full && is_right(e) && repeatable(e));
        right_conditions
            .iter_mut()
            .for_each(|condition| lower(condition, left_width));
        let mut all = need.clone();
        all.extend(columns_of(&above));
        let mut inputs = all.clone();
        inputs.extend(columns_of(&on));
        let left_need: Need = inputs.iter().copied().filter(|c| *c < left_width).collect();
        let left = self.rel(left, left_conditions, &left_need, Wish::default())?;
        let right_need: Need = inputs
            .iter()
            .filter(|c| **c >= left_width)
            .map(|c| c - left_width)
            .collect();
        let right_table = match &right {
            Rel::Table { table, lock } => Some((table.clone(), *lock, right_conditions.clone())),
            Rel::Filter { input, conditions } => match input.as_ref() {
                Rel::Table { table, lock } => {
                    let mut all = right_conditions.clone();
                    conditions
                        .iter()
                        .for_each(|c| conjuncts(c.clone(), &mut all));
                    Some((table.clone(), *lock, all))
                }
                _ => None,
            },
            _ => None,
        };
        if kind != JoinKind::Full
            && let Some((table, lock, own)) = right_table
            && own.iter().all(pushable)
        {
            let item = Item {
                rel: None,
                place: Place {
                    first: left_width,
                    width: table.columns.len() as u32,
                },
                table: Some((table, lock)),
                own,
            };
            if let Some(planned) = self.lookup(kind, &left, &item, &on, &inputs)? {
                let joined = Planned {
                    ordered: false,
                    ..planned
                };
                return Ok(self.finish(joined, above));
            }
        }
        let right = self.rel(right, right_conditions, &right_need, Wish::default())?;
        let right = Planned {
            layout: right
                .layout
                .iter()
                .map(|column| column + left_width)
                .collect(),
            ..right
        };
        let planned = self.hash(kind, left, right, on);
        Ok(self.finish(planned, above))
    }

    /// A join by key lookups into a table, if that is cheaper than reading it at once.
    fn lookup(
        &mut self,
        kind: JoinKind,
        left: &Planned,
        item: &Item,
        on: &[Expr],
        need: &Need,
    ) -> Result<Option<Planned>, SqlError> {
        let Some((table, lock)) = &item.table else {
            return Ok(None);
        };
        let place = item.place;
        let mut own: Vec<Expr> = item.own.clone();
        own.iter_mut()
            .for_each(|condition| raise(condition, place.first));
        let alone = access::best(table, place, &own, &|_| false, &[]);
        let known = |column: u32| left.layout.contains(&column);
        let own_count = own.len();
        let mut conditions = own;
        // Conditions over both sides become keys; what is no key is checked after the join.
        let usable = |e: &Expr| walk::columns(e).iter().all(|c| known(*c) || place.has(*c));
        let (shared, residual): (Vec<Expr>, Vec<Expr>) =
            on.iter().cloned().partition(|e| usable(e));
        if kind != JoinKind::Inner && !residual.is_empty() {
            return Ok(None);
        }
        conditions.extend(shared.iter().cloned());
        let path = access::best(table, place, &conditions, &known, &[]);
        let keyed = path.access.prefix.iter().any(|part| match part {
            KeyPart::One(value) | KeyPart::Array(value) => !walk::columns(value).is_empty(),
            KeyPart::List(values) => values.iter().any(|v| !walk::columns(v).is_empty()),
        });
        let per_row = LOOKUP_COST + path.cost;
        if !keyed || left.step.rows * per_row > alone.cost + 50.0 {
            return Ok(None);
        }
        // The program sees only the table's own conditions.
        let mut filter: Vec<Expr> = Vec::new();
        let mut after: Vec<Expr> = Vec::new();
        for (i, condition) in conditions.into_iter().enumerate() {
            if path.certain.contains(&i) {
                continue;
            }
            if i < own_count {
                let mut condition = condition;
                lower(&mut condition, place.first);
                filter.push(condition);
            } else {
                after.push(condition);
            }
        }
        let mut wanted = need.clone();
        wanted.extend(columns_of(&after));
        let columns: Vec<u32> = wanted.iter().copied().filter(|c| place.has(*c)).collect();
        let local: Vec<u32> = columns.iter().map(|c| c - place.first).collect();
        let mut access = path.access;
        each_access_expr(&mut access, &mut |expr| remap(expr, &left.layout));
        let scan = Scan {
            program: rows_program(table, &local, filter),
            width: local.len() as u32,
            access,
            lock: *lock,
            newest: false,
            limit: None,
            table: table.clone(),
        };
        let mut layout = left.layout.clone();
        layout.extend(&columns);
        after
            .iter_mut()
            .for_each(|condition| remap(condition, &layout));
        let outputs_left_only = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        if outputs_left_only {
            layout.clone_from(&left.layout);
        }
        let rows = match kind {
            JoinKind::Semi | JoinKind::Anti => left.step.rows * 0.5,
            _ => left.step.rows * path.rows,
        };
        let op = StepOp::Lookup {
            kind,
            left: Box::new(left.step.clone()),
            scan: Box::new(scan),
            filter: conjunction(after),
        };
        let step = self.step(layout.len() as u32, rows.max(1.0), op);
        let planned = Planned {
            step,
            layout,
            ordered: false,
        };
        Ok(Some(if residual.is_empty() {
            planned
        } else {
            self.finish(planned, residual)
        }))
    }

    /// A hash join; both layouts are in the numbering of the joined row.
    fn hash(&mut self, kind: JoinKind, left: Planned, right: Planned, on: Vec<Expr>) -> Planned {
        let (mut keys, mut filter) = (Vec::new(), Vec::new());
        let of = |expr: &Expr, layout: &[u32]| {
            let columns = walk::columns(expr);
            !columns.is_empty() && columns.iter().all(|c| layout.contains(c))
        };
        for condition in on {
            if let Expr::Call(Func::Compare(Compare::Eq), sides, _) = &condition
                && let [a, b] = sides.as_slice()
            {
                let pair = if of(a, &left.layout) && of(b, &right.layout) {
                    Some((a.clone(), b.clone()))
                } else if of(b, &left.layout) && of(a, &right.layout) {
                    Some((b.clone(), a.clone()))
                } else {
                    None
                };
                if let Some((mut l, mut r)) = pair
                    && access::is_repeatable(&condition)
                {
                    remap(&mut l, &left.layout);
                    remap(&mut r, &right.layout);
                    keys.push((l, r));
                    continue;
                }
            }
            filter.push(condition);
        }
        let mut layout = left.layout.clone();
        layout.extend(&right.layout);
        filter
            .iter_mut()
            .for_each(|condition| remap(condition, &layout));
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            layout.clone_from(&left.layout);
        }
        let (l, r) = (left.step.rows, right.step.rows);
        let rows = match kind {
            JoinKind::Semi | JoinKind::Anti => l * 0.5,
            _ if keys.is_empty() => l * r,
            _ => l.max(r),
        };
        let op = StepOp::Hash {
            kind,
            left: Box::new(left.step),
            right: Box::new(right.step),
            keys,
            filter: conjunction(filter),
        };
        let step = self.step(layout.len() as u32, rows.max(1.0), op);
        Planned {
            step,
            layout,
            ordered: false,
        }
    }

    /// Orders a set of inner joins greedily: the smallest input first, then what is cheapest.
    fn inner(
        &mut self,
        mut items: Vec<Item>,
        mut conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        derive_constants(&mut conditions);
        // Conditions of one item go to it; volatile ones stay above everything.
        let mut shared = Vec::new();
        let mut above = Vec::new();
        for condition in conditions {
            let columns = walk::columns(&condition);
            let owner = items
                .iter_mut()
                .find(|item| !columns.is_empty() && columns.iter().all(|c| item.place.has(*c)));
            match owner {
                _ if !access::is_repeatable(&condition) => above.push(condition),
                Some(item) => {
                    let mut condition = condition;
                    lower(&mut condition, item.place.first);
                    item.own.push(condition);
                }
                None => shared.push(condition),
            }
        }
        let mut inputs = need.clone();
        inputs.extend(columns_of(&shared));
        inputs.extend(columns_of(&above));
        let mut order: Vec<usize> = (0..items.len()).collect();
        let sizes: Vec<f64> = items.iter().map(item_rows).collect();
        order.sort_by(|a, b| sizes[*a].total_cmp(&sizes[*b]));
        let first = order.remove(0);
        let mut current = self.item(&mut items[first], &inputs)?;
        while !order.is_empty() {
            let mut best: Option<(f64, usize)> = None;
            for (i, number) in order.iter().enumerate() {
                let cost = self.join_cost(&current, &items[*number], sizes[*number], &shared);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, i));
                }
            }
            let (_, chosen) = best.expect("there is an input left");
            let number = order.remove(chosen);
            let place = items[number].place;
            let visible = |column: u32| current.layout.contains(&column) || place.has(column);
            let (on, later): (Vec<Expr>, Vec<Expr>) = shared
                .into_iter()
                .partition(|e| walk::columns(e).iter().all(|c| visible(*c)));
            shared = later;
            let lookup = if items[number].own.iter().all(pushable) {
                self.lookup(JoinKind::Inner, &current, &items[number], &on, &inputs)?
            } else {
                None
            };
            current = match lookup {
                Some(planned) => planned,
                None => {
                    let right = self.item(&mut items[number], &inputs)?;
                    // The smaller side is kept in memory.
                    if right.step.rows > current.step.rows {
                        self.hash(JoinKind::Inner, right, current, on)
                    } else {
                        self.hash(JoinKind::Inner, current, right, on)
                    }
                }
            };
        }
        above.extend(shared);
        Ok(self.finish(current, above))
    }

    /// Cost of joining an item to what is joined already.
    fn join_cost(&self, current: &Planned, item: &Item, size: f64, shared: &[Expr]) -> f64 {
        let known = |column: u32| current.layout.contains(&column);
        let place = item.place;
        let connected = shared.iter().any(|condition| {
            let columns = walk::columns(condition);
            columns.iter().all(|c| known(*c) || place.has(*c))
                && columns.iter().any(|c| place.has(*c))
                && matches!(condition, Expr::Call(Func::Compare(Compare::Eq), _, _))
        });
        let whole = if connected {
            size
        } else {
            size * current.step.rows.max(1.0)
        };
        let Some((table, _)) = &item.table else {
            return whole;
        };
        let mut conditions = item.own.clone();
        conditions
            .iter_mut()
            .for_each(|condition| raise(condition, place.first));
        conditions.extend(
            shared
                .iter()
                .filter(|e| walk::columns(e).iter().all(|c| known(*c) || place.has(*c)))
                .cloned(),
        );
        let path = access::best(table, place, &conditions, &known, &[]);
        whole.min(current.step.rows * (LOOKUP_COST + path.cost))
    }

    /// Plans one item by itself; its layout is in the numbering of the whole row.
    fn item(&mut self, item: &mut Item, inputs: &Need) -> Result<Planned, SqlError> {
        let place = item.place;
        let need = inputs
            .iter()
            .filter(|column| place.has(**column))
            .map(|column| column - place.first)
            .collect();
        let rel = match (item.rel.take(), &item.table) {
            (Some(rel), _) => rel,
            (None, Some((table, lock))) => Rel::Table {
                table: table.clone(),
                lock: *lock,
            },
            (None, None) => unreachable!("an item is planned once"),
        };
        let own = core::mem::take(&mut item.own);
        let planned = self.rel(rel, own, &need, Wish::default())?;
        let layout = planned
            .layout
            .iter()
            .map(|column| column + place.first)
            .collect();
        Ok(Planned { layout, ..planned })
    }

    /// LATERAL: the right side runs per left row.
    pub(super) fn lateral(
        &mut self,
        (outer, left, right, binds, on): (bool, Rel, Rel, Binds, Vec<Expr>),
        conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        let left_width = left.width();
        let (below, above): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(|e| {
            walk::columns(e).iter().all(|c| *c < left_width) && access::is_repeatable(e)
        });
        let mut inputs = need.clone();
        inputs.extend(columns_of(&above));
        inputs.extend(columns_of(&on));
        let mut left_need: Need = inputs.iter().copied().filter(|c| *c < left_width).collect();
        left_need.extend(binds.iter().flat_map(|(_, expr)| walk::columns(expr)));
        let left = self.rel(left, below, &left_need, Wish::default())?;
        let right_need = inputs
            .iter()
            .filter(|c| **c >= left_width)
            .map(|c| c - left_width)
            .collect();
        let right = self.rel(right, Vec::new(), &right_need, Wish::default())?;
        let mut binds = binds;
        binds
            .iter_mut()
            .for_each(|(_, expr)| remap(expr, &left.layout));
        let mut layout = left.layout.clone();
        layout.extend(right.layout.iter().map(|column| column + left_width));
        let mut on = on;
        on.iter_mut()
            .for_each(|condition| remap(condition, &layout));
        let rows = left.step.rows * right.step.rows;
        let op = StepOp::Lateral {
            outer,
            left: Box::new(left.step),
            right: Box::new(right.step),
            binds,
            filter: conjunction(on),
        };
        let step = self.step(layout.len() as u32, rows, op);
        let planned = Planned {
            step,
            layout,
            ordered: false,
        };
        Ok(self.finish(planned, above))
    }
}

/// Inputs and conditions of nested inner joins. Columns of the whole row are numbered as they were.
fn flatten(rel: Rel, first: u32, items: &mut Vec<Item>, conditions: &mut Vec<Expr>) {
    match rel {
        Rel::Join {
            kind: JoinKind::Inner,
            left,
            right,
            on,
        } => {
            let left_width = left.width();
            for mut condition in on {
                raise(&mut condition, first);
                conjuncts(condition, conditions);
            }
            flatten(*left, first, items, conditions);
            flatten(*right, first + left_width, items, conditions);
        }
        Rel::Filter {
            input,
            conditions: more,
        } => {
            for mut condition in more {
                raise(&mut condition, first);
                conjuncts(condition, conditions);
            }
            flatten(*input, first, items, conditions);
        }
        Rel::Table { table, lock } => {
            let place = Place {
                first,
                width: table.columns.len() as u32,
            };
            items.push(Item {
                rel: None,
                place,
                table: Some((table, lock)),
                own: Vec::new(),
            });
        }
        // A row of no columns joins with everything and changes nothing.
        other => {
            let place = Place {
                first,
                width: other.width(),
            };
            items.push(Item {
                rel: Some(other),
                place,
                table: None,
                own: Vec::new(),
            });
        }
    }
}

/// Rows of an item by itself, about.
fn item_rows(item: &Item) -> f64 {
    match (&item.table, &item.rel) {
        (Some((table, _)), _) => {
            let place = Place {
                first: 0,
                ..item.place
            };
            access::best(table, place, &item.own, &|_| false, &[]).rows
        }
        (None, Some(Rel::One)) => 1.0,
        (None, Some(Rel::Values { rows, .. })) => rows.len() as f64,
        (None, Some(Rel::Virtual(_) | Rel::Function { .. })) => 100.0,
        (None, _) => 1000.0,
    }
}

/// `a = b AND b = 1` also says `a = 1`.
fn derive_constants(conditions: &mut Vec<Expr>) {
    let equality = |expr: &Expr| match expr {
        Expr::Call(Func::Compare(Compare::Eq), sides, _) => match sides.as_slice() {
            [a, b] => Some((a.clone(), b.clone())),
            _ => None,
        },
        _ => None,
    };
    let constant = |expr: &Expr| walk::columns(expr).is_empty() && access::is_repeatable(expr);
    loop {
        let mut found = Vec::new();
        for condition in conditions.iter() {
            let Some((a, b)) = equality(condition) else {
                continue;
            };
            let (Expr::Column(..), Expr::Column(..)) = (&a, &b) else {
                continue;
            };
            for other in conditions.iter() {
                let Some((c, d)) = equality(other) else {
                    continue;
                };
                let (column, value) = if constant(&d) { (c, d) } else { (d, c) };
                if !constant(&value) {
                    continue;
                }
                let target = if column == a {
                    &b
                } else if column == b {
                    &a
                } else {
                    continue;
                };
                if !access::same_kind(target.ty(), value.ty()) {
                    continue;
                }
                let sides = vec![target.clone(), value];
                let new = Expr::Call(Func::Compare(Compare::Eq), sides, base::Type::Bool);
                if !conditions.contains(&new) && !found.contains(&new) {
                    found.push(new);
                }
            }
        }
        if found.is_empty() || conditions.len() > 200 {
            return;
        }
        conditions.extend(found);
    }
}

/// Visits the key expressions of an access.
pub(super) fn each_access_expr(access: &mut Access, visit: &mut dyn FnMut(&mut Expr)) {
    for part in &mut access.prefix {
        match part {
            KeyPart::One(value) | KeyPart::Array(value) => visit(value),
            KeyPart::List(values) => values.iter_mut().for_each(&mut *visit),
        }
    }
    for Bound { value, .. } in access.low.iter_mut().chain(&mut access.high) {
        visit(value);
    }
    for part in access.slot.iter_mut().flatten() {
        if let SlotPart::Value(value) = part {
            visit(value);
        }
    }
}

/// EXISTS or IN as a semi join (NOT: anti join), if its dependence on the outer row is only in
/// conditions that can become join conditions: the kind, the right side, the conditions over
/// both rows.
pub(super) fn semi_join(call: &Call<Rel>, anti: bool) -> Option<(JoinKind, Rel, Vec<Expr>)> {
    let kind = if anti { JoinKind::Anti } else { JoinKind::Semi };
    match &call.kind {
        CallKind::Exists { query, binds } => {
            let outer = binds
                .iter()
                .map(|(_, expr)| expr.clone())
                .collect::<Vec<_>>();
            // Only the number of rows matters: projections and orders are dropped.
            let mut inner = query;
            while let Rel::Project { input, .. } | Rel::Sort { input, .. } = inner {
                inner = input;
            }
            let Rel::Filter { input, conditions } = inner else {
                return None;
            };
            if reads_slots(input, binds) {
                return None;
            }
            split(input, conditions, binds, &outer, kind)
        }
        // NOT IN is not an anti join: a NULL on either side makes it unknown.
        CallKind::In { left, query, binds } if !anti && binds.is_empty() => {
            Some((kind, query.clone(), in_conditions(left)))
        }
        _ => None,
    }
}

/// Marks right columns by their distance from the top, because the left width is not known yet.
const RIGHT: u32 = 1 << 30;

fn in_conditions(left: &[Expr]) -> Vec<Expr> {
    let conditions = left.iter().enumerate().map(|(i, key)| {
        let right = Expr::Column(RIGHT + i as u32, key.ty());
        let sides = vec![key.clone(), right];
        Expr::Call(Func::Compare(Compare::Eq), sides, base::Type::Bool)
    });
    conditions.collect()
}

fn split(
    input: &Rel,
    conditions: &[Expr],
    binds: &Binds,
    outer: &[Expr],
    kind: JoinKind,
) -> Option<(JoinKind, Rel, Vec<Expr>)> {
    let (mut inner, mut on) = (Vec::new(), Vec::new());
    for condition in conditions {
        let mut reads = false;
        walk::walk(condition, &mut |node| {
            if let Expr::Param(slot, _) = node {
                reads |= binds.iter().any(|(bound, _)| bound == slot);
            }
        });
        if !reads {
            inner.push(condition.clone());
            continue;
        }
        if !access::is_repeatable(condition) {
            return None;
        }
        let mut condition = condition.clone();
        walk::map(&mut condition, &mut |node| match node {
            Expr::Column(column, _) => *column += RIGHT,
            Expr::Param(slot, _) => {
                if let Some(place) = binds.iter().position(|(bound, _)| bound == slot) {
                    *node = outer[place].clone();
                }
            }
            _ => {}
        });
        on.push(condition);
    }
    Some((kind, input.clone().filtered(inner), on))
}

/// Puts real numbers for the columns that [`semi_join`] has marked.
pub(super) fn place_right(on: &mut [Expr], left_width: u32) {
    for condition in on {
        walk::map(condition, &mut |node| {
            if let Expr::Column(column, _) = node
                && *column >= RIGHT
            {
                *column = *column - RIGHT + left_width;
            }
        });
    }
}

/// Whether a relation reads any of the slots.
fn reads_slots(rel: &Rel, binds: &Binds) -> bool {
    let mut found = false;
    rel.clone().each_expr_mut(&mut |expr| {
        walk::walk(expr, &mut |node| {
            if let Expr::Param(slot, _) = node {
                found |= binds.iter().any(|(bound, _)| bound == slot);
            }
        });
    });
    found
}
