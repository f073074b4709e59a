//! Joins: the order of inner joins, key lookups against hash joins, semi joins from subqueries.

use super::access::{self, Path, Place};
use super::estimate::share_of_all;
use super::few::step_picks;
use super::item::Item;
use super::normal::{contradict, derive_constants, derived, split, split_all};
use super::order::{Joined, Order};
use super::query::{Need, Planned, Wish, conjunction, pushable, rows_program};
use super::secured::is_leakproof;
use super::size::grown_by;
use super::{Planner, columns_of, remap, search};
use crate::step::{Access, Bound, KeyPart, Scan, SlotPart, Step, StepOp};
use base::SqlError;
use bind::rel::{Binds, JoinKind, Rel};
use catalog::Table;
use expr::program::ProgramPlan;
use expr::{Compare, Expr, Func, walk};

/// Moves the columns of an expression down by `by`.
fn lower(expr: &mut Expr, by: u32) {
    walk::map(expr, &mut |node| {
        if let Expr::Column(column, _) = node {
            *column -= by;
        }
    });
}

pub(super) fn raise(expr: &mut Expr, by: u32) {
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
        if matches!(
            rel,
            Rel::Join {
                kind: JoinKind::Inner,
                ..
            }
        ) {
            let (mut items, mut all) = (Vec::new(), conditions);
            flatten(rel, 0, &mut items, &mut all);
            for item in &mut items {
                self.count(item);
            }
            return self.inner(items, all, need);
        }
        // Joins that lean left are walked in a loop, for there may be many.
        let (mut left, mut conditions, mut need) = (rel, conditions, need.clone());
        let mut open = Vec::new();
        while let Rel::Join { kind, .. } = &left
            && *kind != JoinKind::Inner
        {
            let (join, below, pushed, wanted) = outer_join(left, conditions, &need);
            open.push(join);
            (left, conditions, need) = (below, pushed, wanted);
        }
        let mut planned = self.rel(left, conditions, &need, Wish::default())?;
        while let Some(join) = open.pop() {
            planned = self.outer(join, planned)?;
        }
        Ok(planned)
    }

    /// Asks how many rows the table of an input has.
    fn count(&mut self, item: &mut Item) {
        if let Some((table, _)) = &item.table {
            self.binder.by_rows = true;
            item.table_rows = self.rows_of(table);
            item.computed = self.computed_of(table);
            item.values = self.values_of(table);
        }
        if let Some(rel) = &item.rel {
            item.rel_rows = self.rows_of_rel(rel);
        }
    }

    /// Left, full, semi and anti joins with a planned left side.
    fn outer(&mut self, join: OuterJoin, left: Planned) -> Result<Planned, SqlError> {
        let OuterJoin {
            kind,
            right,
            on,
            right_conditions,
            above,
            inputs,
            left_width,
            swapped,
        } = join;
        let mut item = right_item(&right, &right_conditions, left_width);
        item.iter_mut().for_each(|item| self.count(item));
        let mut planned = match item {
            Some(item)
                if kind != JoinKind::Full
                    && item.own.iter().all(pushable)
                    && let Some(path) = lookup_path(kind, &left, &item, &on) =>
            {
                self.lookup(kind, left, &item, path, &inputs)
            }
            _ => {
                let right_need = inputs.range(left_width..).map(|c| c - left_width).collect();
                let right = self.rel(right, right_conditions, &right_need, Wish::default())?;
                match kind {
                    JoinKind::Semi if is_nothing(&right) => return Ok(self.without_rows(left)),
                    JoinKind::Anti if is_nothing(&right) => return Ok(self.finish(left, above)),
                    _ => {}
                }
                let layout = right.layout.iter().map(|column| column + left_width);
                let layout = layout.collect();
                self.hash(kind, left, Planned { layout, ..right }, on)
            }
        };
        planned = self.finish(planned, above);
        if let Some(right_width) = swapped {
            for column in &mut planned.layout {
                *column = match column.checked_sub(left_width) {
                    Some(column) => column,
                    None => *column + right_width,
                };
            }
        }
        Ok(planned)
    }

    /// The columns of a planned relation, but no row.
    fn without_rows(&mut self, planned: Planned) -> Planned {
        let layout = planned.layout;
        let Planned { step, .. } = self.nothing(&layout.iter().copied().collect());
        let step = Step {
            width: layout.len() as u32,
            ..step
        };
        Planned {
            step,
            layout,
            ordered: true,
        }
    }

    /// A join by key lookups into a table.
    fn lookup(
        &mut self,
        kind: JoinKind,
        left: Planned,
        item: &Item,
        found: LookupPath,
        need: &Need,
    ) -> Planned {
        let (table, lock) = item.table.as_ref().expect("a path leads to a table");
        let place = item.place;
        let LookupPath {
            path,
            each,
            filter,
            mut after,
            entries,
            residual,
        } = found;
        let entries = entries.filter(|_| lock.is_none());
        let (program, entries) = lookup_program(table, (need, place), filter, &mut after, entries);
        let local = looked_up(need, &after, place);
        let columns = local.iter().map(|column| column + place.first);
        self.binder.by_values |= path.by_values;
        let mut access = path.access;
        each_access_expr(&mut access, &mut |expr| remap(expr, &left.layout));
        let scan = Scan {
            program,
            entries,
            width: local.len() as u32,
            access,
            lock: *lock,
            newest: false,
            candidates: false,
            gate: None,
            limit: None,
            merges: false,
            table: table.clone(),
        };
        let mut layout = left.layout;
        let left_width = layout.len();
        layout.extend(columns);
        after
            .iter_mut()
            .for_each(|condition| remap(condition, &layout));
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            layout.truncate(left_width);
        }
        let rows = match kind {
            JoinKind::Semi | JoinKind::Anti => left.step.rows * 0.5,
            _ => left.step.rows * each,
        };
        let op = StepOp::Lookup {
            kind,
            left: Box::new(left.step),
            scan: Box::new(scan),
            filter: conjunction(after),
        };
        let step = self.step(layout.len() as u32, rows.max(1.0), op);
        let planned = Planned {
            step,
            layout,
            ordered: false,
        };
        self.finish(planned, residual)
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
        let (mut layout, left_width) = (left.layout, left.step.width as usize);
        layout.extend(&right.layout);
        filter
            .iter_mut()
            .for_each(|condition| remap(condition, &layout));
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            layout.truncate(left_width);
        }
        let (l, r) = (left.step.rows, right.step.rows);
        let rows = match kind {
            JoinKind::Semi | JoinKind::Anti => l * 0.5,
            _ if keys.is_empty() => l * r * share_of_all(&filter),
            _ => l.max(r) * share_of_all(&filter),
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

    /// Joins a set of inputs in the order that [`Order`] finds.
    fn inner(
        &mut self,
        mut items: Vec<Item>,
        mut conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        derive_constants(&mut conditions);
        if contradict(&conditions) {
            return Ok(self.nothing(need));
        }
        let (shared, above) = dealt(&mut items, conditions);
        let mut inputs = need.clone();
        inputs.extend(columns_of(&shared));
        inputs.extend(columns_of(&above));
        let found = search::sequence(&items, &shared);
        let (sequence, compared) = found.unzip();
        self.binder.work += compared.unwrap_or(0);
        let mut order = Order::new(&items, shared, sequence);
        let first = order.first();
        let mut current = self.item(&mut items[first], &inputs)?;
        let mut known = Joined::new(&items);
        known.add(first);
        order.join(first, &known);
        while let Some(number) = order.next(current.step.rows, &items, &known) {
            let on = order.take_conditions(number);
            let rows = grown_by(current.step.rows, number, &on, &items);
            let own_pushable = items[number].own.iter().all(pushable);
            let lookup = match own_pushable {
                true => lookup_path(JoinKind::Inner, &current, &items[number], &on),
                false => None,
            };
            current = match lookup {
                Some(path) => self.lookup(JoinKind::Inner, current, &items[number], path, &inputs),
                None => {
                    let right = self.item(&mut items[number], &inputs)?;
                    if is_nothing(&right) {
                        return Ok(self.nothing(need));
                    }
                    // The smaller side is kept in memory.
                    if right.step.rows > current.step.rows {
                        self.hash(JoinKind::Inner, right, current, on)
                    } else {
                        self.hash(JoinKind::Inner, current, right, on)
                    }
                }
            };
            current.step.rows = rows;
            known.add(number);
            order.join(number, &known);
        }
        self.binder.work += order.work();
        Ok(self.finish(current, above))
    }

    /// Plans one item by itself; its layout is in the numbering of the whole row.
    fn item(&mut self, item: &mut Item, inputs: &Need) -> Result<Planned, SqlError> {
        let place = item.place;
        let need = inputs.range(place.columns());
        let need = need.map(|column| column - place.first).collect();
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

/// A join that is no inner one, while its left side is planned.
struct OuterJoin {
    kind: JoinKind,
    right: Rel,
    on: Vec<Expr>,
    /// Conditions on the right side alone, in its own numbering.
    right_conditions: Vec<Expr>,
    /// Conditions on the joined row.
    above: Vec<Expr>,
    /// Columns of both sides that are read.
    inputs: Need,
    left_width: u32,
    /// Sides were exchanged: the width of what is the right side now.
    swapped: Option<u32>,
}

/// The join, its left side, and the conditions and columns of that.
fn outer_join(
    rel: Rel,
    mut conditions: Vec<Expr>,
    need: &Need,
) -> (OuterJoin, Rel, Vec<Expr>, Need) {
    let Rel::Join {
        kind,
        left,
        right,
        mut on,
    } = rel
    else {
        unreachable!("the caller has looked");
    };
    let (mut kind, mut left, mut right) = (kind, *left, *right);
    let (mut need, mut swapped) = (need.clone(), None);
    if kind == JoinKind::Right {
        // The same with sides exchanged; columns keep their numbers in the layout.
        let widths = (left.width(), right.width());
        need = exchange(widths, &mut on, &mut conditions, need);
        kind = JoinKind::Left;
        (left, right) = (right, left);
        swapped = Some(widths.0);
    }
    let left_width = left.width();
    let on = split_all(on);
    // No pair can pass: the right side need not be read.
    let (right, on) = match kind != JoinKind::Full && contradict(&on) {
        true => (right.emptied(), Vec::new()),
        false => (right, on),
    };
    let is_left = |expr: &Expr| walk::columns(expr).iter().all(|c| *c < left_width);
    let is_right = |expr: &Expr| {
        let columns = walk::columns(expr);
        !columns.is_empty() && columns.iter().all(|c| *c >= left_width)
    };
    let movable = |expr: &Expr| kind != JoinKind::Full && access::is_repeatable(expr);
    let (left_conditions, above): (Vec<Expr>, Vec<Expr>) = conditions
        .into_iter()
        .partition(|e| movable(e) && is_left(e));
    let (mut right_conditions, on): (Vec<Expr>, Vec<Expr>) =
        on.into_iter().partition(|e| movable(e) && is_right(e));
    right_conditions
        .iter_mut()
        .for_each(|condition| lower(condition, left_width));
    let mut inputs = need;
    inputs.extend(columns_of(&above));
    inputs.extend(columns_of(&on));
    let left_need = inputs.range(..left_width).copied().collect();
    let join = OuterJoin {
        kind,
        right,
        on,
        right_conditions,
        above,
        inputs,
        left_width,
        swapped,
    };
    (join, left, left_conditions, left_need)
}

/// Numbers columns as if the sides of a join, of these widths, were exchanged.
fn exchange(
    (left, right): (u32, u32),
    on: &mut [Expr],
    conditions: &mut [Expr],
    need: Need,
) -> Need {
    let swap = |column: u32| match column.checked_sub(left) {
        Some(column) => column,
        None => column + right,
    };
    for expr in on.iter_mut().chain(conditions) {
        walk::map(expr, &mut |node| {
            if let Expr::Column(column, _) = node {
                *column = swap(*column);
            }
        });
    }
    need.into_iter().map(swap).collect()
}

/// The right side of a join as one that can be looked up.
fn right_item(right: &Rel, conditions: &[Expr], left_width: u32) -> Option<Item> {
    let mut own = conditions.to_vec();
    let right = match right {
        // What may fail must not be computed of rows that policies hide.
        Rel::Filter { secure: true, .. } if !own.iter().all(is_leakproof) => return None,
        Rel::Filter {
            input,
            conditions,
            secure: _,
        } => {
            conditions.iter().for_each(|c| split(c.clone(), &mut own));
            input.as_ref()
        }
        other => other,
    };
    let Rel::Table { table, lock } = right else {
        return None;
    };
    let place = Place {
        first: left_width,
        width: table.columns.len() as u32,
    };
    Some(Item::of_table((table.clone(), *lock), place, own))
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
                split(condition, conditions);
            }
            flatten(*left, first, items, conditions);
            flatten(*right, first + left_width, items, conditions);
        }
        Rel::Filter {
            input,
            conditions: own,
            secure: true,
        } if matches!(*input, Rel::Table { .. }) => {
            flatten(*input, first, items, conditions);
            let item = items.last_mut().expect("a table is an item");
            own.into_iter().for_each(|it| split(it, &mut item.own));
            item.secure = true;
        }
        Rel::Filter {
            input,
            conditions: more,
            secure: false,
        } => {
            for mut condition in more {
                raise(&mut condition, first);
                split(condition, conditions);
            }
            flatten(*input, first, items, conditions);
        }
        Rel::Table { table, lock } => {
            let place = Place {
                first,
                width: table.columns.len() as u32,
            };
            items.push(Item::of_table((table, lock), place, Vec::new()));
        }
        // A row of no columns joins with everything and changes nothing.
        other => {
            let place = Place {
                first,
                width: other.width(),
            };
            items.push(Item::of_rel(other, place));
        }
    }
}

fn is_nothing(planned: &Planned) -> bool {
    matches!(&planned.step.op, StepOp::Values { rows, .. } if rows.is_empty())
}

/// Gives each input the conditions on it alone; the others are over several inputs, or belong
/// above the join because they must be computed once per row of the result.
fn dealt(items: &mut [Item], conditions: Vec<Expr>) -> (Vec<Expr>, Vec<Expr>) {
    let (mut shared, mut above) = (Vec::new(), Vec::new());
    for condition in conditions {
        let columns = walk::columns(&condition);
        if columns.is_empty() || !access::is_repeatable(&condition) {
            above.push(condition);
            continue;
        }
        let owners = owners(items, &columns);
        if let [only] = owners.as_slice() {
            let item = &mut items[*only];
            if item.secure && !is_leakproof(&condition) {
                above.push(condition);
                continue;
            }
            let mut condition = condition;
            lower(&mut condition, item.place.first);
            item.own.push(condition);
            continue;
        }
        for owner in owners {
            let item = &mut items[owner];
            let place = item.place;
            if let Some(mut own) = derived(&condition, &|column| place.has(column))
                && (!item.secure || is_leakproof(&own))
            {
                lower(&mut own, place.first);
                item.own.push(own);
            }
        }
        shared.push(condition);
    }
    (shared, above)
}

/// The inputs that hold the columns (ascending), each once.
pub(super) fn owners(items: &[Item], columns: &[u32]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::with_capacity(2);
    for column in columns {
        let owner = items.partition_point(|item| item.place.end() <= *column);
        if found.last() != Some(&owner) {
            found.push(owner);
        }
    }
    found
}

/// How a table is looked up for each row of what stands left of it.
struct LookupPath {
    path: Path,
    /// Rows that it gives for one row on the left.
    each: f64,
    /// Conditions on the table alone, in its own numbering.
    filter: Vec<Expr>,
    /// Conditions on both that are no keys.
    after: Vec<Expr>,
    /// The same two, if the entries of a secondary index are read alone.
    entries: Option<(Vec<Expr>, Vec<Expr>)>,
    /// Conditions that read neither.
    residual: Vec<Expr>,
}

/// The key lookups of a join, if they are cheaper than reading the table at once.
fn lookup_path(kind: JoinKind, left: &Planned, item: &Item, on: &[Expr]) -> Option<LookupPath> {
    let (table, lock) = item.table.as_ref()?;
    let place = item.place;
    let mut own: Vec<Expr> = item.own.clone();
    own.iter_mut()
        .for_each(|condition| raise(condition, place.first));
    let wanted = item.wanted();
    let alone = access::best(table, place, &own, &|_| false, wanted);
    let known = |column: u32| left.layout.contains(&column);
    let own_count = own.len();
    let mut conditions = own;
    // Conditions over both sides become keys; what is no key is checked after the join.
    let usable = |e: &Expr| walk::columns(e).iter().all(|c| place.has(*c) || known(*c));
    let (shared, residual): (Vec<Expr>, Vec<Expr>) = on.iter().cloned().partition(|e| usable(e));
    if kind != JoinKind::Inner && !residual.is_empty() {
        return None;
    }
    conditions.extend(shared);
    let path = access::best(table, place, &conditions, &known, wanted);
    let dependent = |value: &Expr| !walk::columns(value).is_empty();
    let keyed = path.access.prefix.iter().any(|part| match part {
        KeyPart::One(value) | KeyPart::Array(value) => dependent(value),
        KeyPart::List(values) => values.iter().any(dependent),
        KeyPart::Row(_) => path.access.rows.iter().flatten().any(dependent),
    });
    let per_row = item.lookup_cost(&path);
    let picked = kind == JoinKind::Inner && lock.is_some() && step_picks(&left.step);
    if !keyed || !picked && left.step.rows * per_row > alone.cost + 50.0 {
        return None;
    }
    let each = path.rows * path.share_of_rest(&conditions, item.known(place));
    // The program sees only the table's own conditions.
    let parts = |certain: &[usize]| {
        let (mut filter, mut after) = (Vec::new(), Vec::new());
        for (i, condition) in conditions.iter().enumerate() {
            if certain.contains(&i) {
                continue;
            }
            let mut condition = condition.clone();
            if i < own_count {
                lower(&mut condition, place.first);
                filter.push(condition);
            } else {
                after.push(condition);
            }
        }
        (filter, after)
    };
    let (filter, after) = parts(&path.certain);
    let entries = (path.access.index > 0).then(|| parts(&path.by_entry));
    Some(LookupPath {
        path,
        each,
        filter,
        after,
        entries,
        residual,
    })
}

/// The program of a lookup, and whether it is over entries alone: then fewer conditions are left
/// to be looked at `after` it.
fn lookup_program(
    table: &Table,
    (need, place): (&Need, Place),
    filter: Vec<Expr>,
    after: &mut Vec<Expr>,
    entries: Option<(Vec<Expr>, Vec<Expr>)>,
) -> (ProgramPlan, bool) {
    if let Some((own, both)) = entries {
        let local = looked_up(need, &both, place);
        if let Some(program) = access::entry_program(table, &local, own) {
            *after = both;
            return (program, true);
        }
    }
    let local = looked_up(need, after, place);
    (rows_program(table, &local, filter), false)
}

/// The columns of a table that is looked up, in its own numbering: those that are needed, and those
/// that conditions read.
fn looked_up(need: &Need, after: &[Expr], place: Place) -> Vec<u32> {
    let mut columns: Need = need.range(place.columns()).copied().collect();
    columns.extend(columns_of(after).range(place.columns()));
    columns.into_iter().map(|c| c - place.first).collect()
}

/// Visits the key expressions of an access.
pub(super) fn each_access_expr(access: &mut Access, visit: &mut dyn FnMut(&mut Expr)) {
    for part in &mut access.prefix {
        match part {
            KeyPart::One(value) | KeyPart::Array(value) => visit(value),
            KeyPart::List(values) => values.iter_mut().for_each(&mut *visit),
            KeyPart::Row(_) => {}
        }
    }
    access.rows.iter_mut().flatten().for_each(&mut *visit);
    for Bound { values, .. } in access.low.iter_mut().chain(&mut access.high) {
        values.iter_mut().for_each(&mut *visit);
    }
    for part in access.slot.iter_mut().flatten() {
        if let SlotPart::Value(value) = part {
            visit(value);
        }
    }
}
