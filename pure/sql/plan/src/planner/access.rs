//! The choice of an index: which conditions become keys, and what a path costs.

use super::columns_of;
use super::computed::Computed;
use super::estimate::{CHOSEN_ROWS_MIN, PLANNED_ROWS_MIN};
use super::expected::Expected;
use super::query::conjunction;
use super::shares::Known;
use crate::step::{Access, Bound, KeyPart, SlotPart, table_index};
use crate::text::key_count;
use base::Type;
use bind::rel::SortKey;
use catalog::Table;
use expr::program::{Body, ProgramPlan};
use expr::{Compare, Expr, Func, list, walk};
use statistics::TableValues;

/// Cost of asking all shards instead of one.
const FAN_OUT_COST: f64 = 20.0;

/// Nodes of conditions that are sent with the keys of a scan at most.
const SENT_NODES_MAX: u64 = 1 << 18;
/// Keys that an array is taken to have.
const KEYS_OF_ARRAY: usize = 100;

/// A way to the rows of a table.
pub(super) struct Path {
    pub(super) access: Access,
    /// Rows that it gives, about.
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// What it would cost in a larger table: which index is read matters there.
    choice: f64,
    /// Conditions that the keys make certain.
    pub(super) certain: Vec<usize>,
    /// Conditions that hold for the entries of a secondary index. The row behind an entry may be
    /// newer than the entry, so they are looked at again where rows are read.
    pub(super) by_entry: Vec<usize>,
    /// Other constants in the conditions might ask for another index.
    pub(super) by_values: bool,
    /// Conditions that have made `rows` what they are.
    pub(super) used: Vec<usize>,
    /// It gives rows in the wanted order.
    pub(super) ordered: bool,
    /// It does so because entries of all slots are merged.
    pub(super) merges: bool,
}

impl Path {
    /// Whether the conditions, sent along with every key, would be too much: they are looked at
    /// where the rows arrive.
    pub(super) fn is_too_long_with(&self, conditions: &[Expr]) -> bool {
        let keys = key_count(&self.access).unwrap_or(KEYS_OF_ARRAY) as u64;
        let nodes = conditions.iter().map(list::nodes).sum::<u64>();
        keys > 1 && keys.saturating_mul(nodes) > SENT_NODES_MAX
    }

    /// Share of its rows that pass the conditions that it does not use.
    pub(super) fn share_of_rest(&self, conditions: &[Expr], known: Known<'_>) -> f64 {
        let rest = conditions.iter().enumerate();
        let rest = rest.filter(|(i, _)| !self.used.contains(i));
        known.share_of_all(rest.map(|(_, condition)| condition))
    }
}

/// What the consumer of a path would like.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'w> {
    /// Sort keys in the numbering of the conditions.
    pub(super) order: &'w [SortKey],
    /// Only some first rows are read.
    pub(super) limited: bool,
    /// Rows of the table.
    pub(super) rows: f64,
    /// What its indexes compute.
    pub(super) computed: &'w Computed,
    /// What is known of its values.
    pub(super) values: Option<&'w TableValues>,
}

impl<'w> Wanted<'w> {
    /// No order of a table of `rows` rows.
    pub(super) fn any(rows: f64, computed: &'w Computed) -> Wanted<'w> {
        Wanted {
            order: &[],
            limited: false,
            rows,
            computed,
            values: None,
        }
    }
}

/// What conditions say about the columns of a table.
struct Sargs {
    single: Vec<Sarg>,
    lists: Vec<RowList>,
    bounds: Vec<RowBound>,
}

/// What a condition says about a column.
struct Sarg {
    condition: usize,
    column: u16,
    kind: SargKind,
}

enum SargKind {
    Equal(KeyPart),
    Low(Bound),
    High(Bound),
}

/// Rows of values of which one is in `columns`.
struct RowList {
    condition: usize,
    columns: Vec<u16>,
    rows: Vec<Vec<Expr>>,
    /// The condition says nothing else.
    exact: bool,
}

/// `(columns) op (values)`
struct RowBound {
    columns: Vec<u16>,
    values: Vec<Expr>,
    op: Compare,
}

/// Whether values of both types have one representation and one order in keys.
pub(super) fn same_kind(a: Type, b: Type) -> bool {
    if let (Some(a), Some(b)) = (a.element(), b.element()) {
        return same_kind(a, b);
    }
    let class = |ty: Type| match ty {
        Type::Bool => 0,
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) | Type::Tid => 1,
        Type::Float4 | Type::Float8 => 2,
        Type::Numeric(_) => 3,
        Type::Text | Type::Varchar(_) | Type::Name | Type::InternalChar => 4,
        Type::Char(_) => 5,
        Type::Bytea => 6,
        Type::Date => 7,
        Type::Timestamp(_) => 8,
        Type::Timestamptz(_) => 9,
        Type::Uuid => 10,
        Type::Interval(_) => 11,
        Type::Jsonb => 13,
        // Only values of the same enum type meet.
        Type::Enum(_) => 14,
        Type::Time(_) => 15,
        Type::Inet | Type::Cidr => 16,
        Type::Macaddr => 17,
        Type::Timetz(_) => 18,
        Type::Bit(_) | Type::Varbit(_) => 19,
        // Only those of the same kind meet.
        Type::Range(_) => 20,
        Type::Multirange(_) => 21,
        Type::Array(_)
        | Type::Composite(_)
        | Type::Unknown
        | Type::Xid
        | Type::Json
        | Type::JsonPath => 12,
    };
    class(a) == class(b) && class(a) != 12
}

/// The table's columns in the numbering of the conditions.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) first: u32,
    pub(super) width: u32,
}

impl Place {
    pub(super) fn has(self, column: u32) -> bool {
        self.columns().contains(&column)
    }

    pub(super) fn end(self) -> u32 {
        self.first + self.width
    }

    pub(super) fn columns(self) -> core::ops::Range<u32> {
        self.first..self.end()
    }
}

/// Finds what conditions say about the columns of one table.
struct Finder<'f> {
    table: &'f Table,
    place: Place,
    /// Columns of other tables whose values are there when the table is read.
    known: &'f dyn Fn(u32) -> bool,
}

impl Finder<'_> {
    fn column(&self, expr: &Expr) -> Option<u16> {
        match expr {
            Expr::Column(column, _) if self.place.has(*column) => {
                Some((column - self.place.first) as u16)
            }
            _ => None,
        }
    }

    /// Whether the value, of type `ty`, can stand in a key of the column.
    fn usable(&self, value: &Expr, column: u16, ty: Type) -> bool {
        let mut columns = walk::columns(value).into_iter();
        same_kind(self.table.columns[usize::from(column)].ty, ty)
            && columns.all(|c| !self.place.has(c) && (self.known)(c))
            && is_repeatable(value)
    }

    /// `column op value`, the column being on the left.
    fn comparison<'e>(&self, expr: &'e Expr) -> Option<(u16, Compare, &'e Expr)> {
        let Expr::Call(Func::Compare(op), sides, _) = expr else {
            return None;
        };
        let [left, right] = sides.as_slice() else {
            return None;
        };
        match (self.column(left), self.column(right)) {
            (Some(column), _) if self.usable(right, column, right.ty()) => {
                Some((column, *op, right))
            }
            (_, Some(column)) if self.usable(left, column, left.ty()) => {
                Some((column, op.mirrored()?, left))
            }
            _ => None,
        }
    }

    fn sarg(&self, expr: &Expr) -> Option<(u16, SargKind)> {
        match expr {
            Expr::Call(..) => {
                let (column, op, value) = self.comparison(expr)?;
                let bound = |inclusive| Bound {
                    values: vec![value.clone()],
                    inclusive,
                };
                let kind = match op {
                    Compare::Eq => SargKind::Equal(KeyPart::One(value.clone())),
                    Compare::Lt => SargKind::High(bound(false)),
                    Compare::Le => SargKind::High(bound(true)),
                    Compare::Gt => SargKind::Low(bound(false)),
                    Compare::Ge => SargKind::Low(bound(true)),
                    _ => return None,
                };
                Some((column, kind))
            }
            Expr::InList(arg, list, false) => {
                let column = self.column(arg)?;
                let usable = |value: &Expr| self.usable(value, column, value.ty());
                list.iter()
                    .all(usable)
                    .then(|| (column, listed(list.to_vec())))
            }
            Expr::AnyArray(arg, Compare::Eq, array, false) => {
                let (column, element) = (self.column(arg)?, array.ty().element()?);
                let kind = SargKind::Equal(KeyPart::Array((**array).clone()));
                self.usable(array, column, element)
                    .then_some((column, kind))
            }
            Expr::Or(parts) => self.alternatives(parts),
            // A boolean column alone, or its negation, fixes its value.
            Expr::Column(..) => Some((self.column(expr)?, listed(vec![Expr::bool(true)]))),
            Expr::Not(inner) => Some((self.column(inner)?, listed(vec![Expr::bool(false)]))),
            _ => None,
        }
    }

    /// `(a = 1 AND b = 5 AND ..) OR (a = 1 AND b = 7 AND ..)`: the columns that every part sets
    /// equal to something, and their values.
    fn row_list(&self, condition: usize, parts: &[Expr]) -> Option<RowList> {
        let mut columns: Vec<u16> = Vec::new();
        let mut rows: Vec<Vec<(u16, &Expr)>> = Vec::with_capacity(parts.len());
        let mut exact = true;
        for part in parts {
            let mut row: Vec<(u16, &Expr)> = Vec::new();
            for condition in conjuncts_of(part) {
                match self.comparison(condition) {
                    Some((column, Compare::Eq, value))
                        if row.iter().all(|(known, _)| *known != column) =>
                    {
                        row.push((column, value));
                    }
                    _ => exact = false,
                }
            }
            if rows.is_empty() {
                columns = row.iter().map(|(column, _)| *column).collect();
            } else {
                columns.retain(|column| row.iter().any(|(known, _)| known == column));
            }
            if columns.is_empty() {
                return None;
            }
            rows.push(row);
        }
        exact &= rows.iter().all(|row| row.len() == columns.len());
        let value = |row: &Vec<(u16, &Expr)>, column: &u16| {
            let found = row.iter().find(|(known, _)| known == column);
            found.expect("every part has the column").1.clone()
        };
        let rows = rows.iter();
        let rows = rows.map(|row| columns.iter().map(|column| value(row, column)).collect());
        let rows = rows.collect();
        Some(RowList {
            condition,
            columns,
            rows,
            exact,
        })
    }

    /// `a < 1 OR (a = 1 AND b < 5)`, as `(a, b) < (1, 5)` is bound.
    fn row_bound(&self, expr: &Expr) -> Option<RowBound> {
        let parts = match expr {
            Expr::Or(parts) => parts,
            single => {
                let (column, op, value) = self.comparison(single)?;
                let ranged = matches!(op, Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge);
                return ranged.then(|| RowBound {
                    columns: vec![column],
                    values: vec![value.clone()],
                    op,
                });
            }
        };
        let [one, other] = parts.as_slice() else {
            return None;
        };
        let (strict, equal) = match (one, other) {
            (strict, Expr::And(equal)) | (Expr::And(equal), strict) => (strict, equal),
            _ => return None,
        };
        let (column, op @ (Compare::Lt | Compare::Gt), value) = self.comparison(strict)? else {
            return None;
        };
        let [equality, rest] = equal.as_slice() else {
            return None;
        };
        if self.comparison(equality)? != (column, Compare::Eq, value) {
            return None;
        }
        let mut bound = self.row_bound(rest)?;
        let same_side = match op {
            Compare::Lt => matches!(bound.op, Compare::Lt | Compare::Le),
            _ => matches!(bound.op, Compare::Gt | Compare::Ge),
        };
        if !same_side || bound.columns.contains(&column) {
            return None;
        }
        bound.columns.insert(0, column);
        bound.values.insert(0, value.clone());
        Some(bound)
    }

    /// `x = 1 OR x = 2` is `x IN (1, 2)`.
    fn alternatives(&self, parts: &[Expr]) -> Option<(u16, SargKind)> {
        let mut values = Vec::with_capacity(parts.len());
        let mut column = None;
        for part in parts {
            let (own, op, value) = self.comparison(part)?;
            if op != Compare::Eq || *column.get_or_insert(own) != own {
                return None;
            }
            values.push(value.clone());
        }
        Some((column?, listed(values)))
    }
}

fn listed(mut values: Vec<Expr>) -> SargKind {
    SargKind::Equal(match (values.len(), values.pop()) {
        (1, Some(only)) => KeyPart::One(only),
        (_, last) => {
            values.extend(last);
            KeyPart::List(values)
        }
    })
}

/// The conditions that all must hold for one to hold.
fn conjuncts_of(condition: &Expr) -> &[Expr] {
    match condition {
        Expr::And(parts) => parts,
        single => core::slice::from_ref(single),
    }
}

/// Finds conditions `column op value` on the table at `place`, the value being computable from
/// columns for which `known` holds.
fn sargs(table: &Table, place: Place, conditions: &[Expr], known: &dyn Fn(u32) -> bool) -> Sargs {
    let finder = Finder {
        table,
        place,
        known,
    };
    let (mut single, mut lists, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    for (condition, expr) in conditions.iter().enumerate() {
        if let Some((column, kind)) = finder.sarg(expr) {
            single.push(Sarg {
                condition,
                column,
                kind,
            });
        } else if let Expr::Or(parts) = expr {
            match finder.row_bound(expr) {
                Some(bound) => bounds.push(bound),
                None => lists.extend(finder.row_list(condition, parts)),
            }
        }
    }
    Sargs {
        single,
        lists,
        bounds,
    }
}

/// Whether an expression gives the same value each time during one statement.
pub(super) fn is_repeatable(expr: &Expr) -> bool {
    walk::volatility(expr) != expr::Volatility::Volatile
        && !walk::any(expr, &|node| {
            matches!(node, Expr::Subquery(..) | Expr::Outer(..))
        })
}

/// The best path to the rows of `table` that pass `conditions`.
pub(super) fn best(
    table: &Table,
    place: Place,
    conditions: &[Expr],
    known: &dyn Fn(u32) -> bool,
    wanted: Wanted<'_>,
) -> Path {
    let rewritten = wanted.computed.rewritten(place, conditions);
    let on_keys = rewritten.as_deref().unwrap_or(conditions);
    let sargs = sargs(table, place, on_keys, known);
    let count = 1 + table.secondary.len();
    let paths = (0..count)
        .filter(|number| !table_index(table, *number).building)
        .filter_map(|number| {
            let index = table_index(table, number);
            let served = wanted.computed.served(index, place, conditions)?;
            Some(path(
                table,
                place,
                number,
                &sargs,
                (conditions.len(), served),
                wanted,
            ))
        });
    let best = paths.min_by(|a, b| a.choice.total_cmp(&b.choice));
    let mut best = best.expect("a table has a primary index");
    let index = table_index(table, best.access.index);
    best.by_values = wanted.computed.hangs_on_values(index, place, conditions);
    best
}

/// The values that conditions give to the first columns of an index.
struct Prefix {
    parts: Vec<KeyPart>,
    rows: Vec<Vec<Expr>>,
    /// Conditions that hold for all rows with these values.
    certain: Vec<usize>,
    /// Number of different keys, about.
    combinations: f64,
}

fn prefix_of(index: &catalog::Index, sargs: &Sargs) -> Prefix {
    let (mut parts, mut certain, mut combinations) = (Vec::new(), Vec::new(), 1.0f64);
    let mut list: Option<&RowList> = None;
    let mut listed = 0;
    for key in &index.columns {
        if let Some((condition, part)) = sargs.equal(key.column) {
            combinations *= match part {
                KeyPart::List(list) => list.len() as f64,
                KeyPart::Array(_) => 10.0,
                KeyPart::One(_) | KeyPart::Row(_) => 1.0,
            };
            parts.push(part.clone());
            certain.push(condition);
            continue;
        }
        let names = |list: &&RowList| list.columns.contains(&key.column);
        if list.is_none() {
            list = sargs.lists.iter().find(names);
            combinations *= list.map_or(1.0, |list| list.rows.len() as f64);
        }
        let Some(list) = list.filter(names) else {
            break;
        };
        let place = list.columns.iter().position(|column| *column == key.column);
        parts.push(KeyPart::Row(place.expect("the list names the column")));
        listed += 1;
    }
    let list = list.filter(|_| listed > 0);
    if let Some(list) = list.filter(|list| list.exact && listed == list.columns.len()) {
        certain.push(list.condition);
    }
    Prefix {
        parts,
        rows: list.map_or_else(Vec::new, |list| list.rows.clone()),
        certain,
        combinations,
    }
}

impl Sargs {
    /// The values of a column that one condition names.
    fn equal(&self, column: u16) -> Option<(usize, &KeyPart)> {
        let mut own = self.single.iter().filter(|sarg| sarg.column == column);
        own.find_map(|sarg| match &sarg.kind {
            SargKind::Equal(part) => Some((sarg.condition, part)),
            SargKind::Low(_) | SargKind::High(_) => None,
        })
    }

    /// Conditions that say which entries of an index with such a prefix are read; `certain` are
    /// those that the prefix comes from, `same` those that the index asks of its rows.
    fn used(
        &self,
        index: &catalog::Index,
        prefix: usize,
        certain: &[usize],
        same: Vec<usize>,
    ) -> Vec<usize> {
        let next = index.columns.get(prefix);
        let of_next = |sarg: &&Sarg| next.is_some_and(|next| next.column == sarg.column);
        let own = self.single.iter().filter(of_next);
        let ends = own.filter(|sarg| !matches!(sarg.kind, SargKind::Equal(_)));
        let ends = ends.map(|sarg| sarg.condition).chain(same);
        let mut used: Vec<usize> = certain.iter().copied().chain(ends).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// The narrowest bounds of the columns behind a prefix.
    fn ends(&self, index: &catalog::Index, prefix: &[KeyPart]) -> (Option<Bound>, Option<Bound>) {
        let Some(next) = index.columns.get(prefix.len()) else {
            return (None, None);
        };
        let (mut low, mut high) = (None, None);
        for sarg in self.single.iter().filter(|sarg| sarg.column == next.column) {
            match &sarg.kind {
                SargKind::Low(bound) if low.is_none() => low = Some(bound.clone()),
                SargKind::High(bound) if high.is_none() => high = Some(bound.clone()),
                _ => {}
            }
        }
        for bound in &self.bounds {
            let Some((values, inclusive)) = bound.behind(index, prefix) else {
                continue;
            };
            let end = match bound.op {
                Compare::Lt | Compare::Le => &mut high,
                _ => &mut low,
            };
            if end
                .as_ref()
                .is_none_or(|known| known.values.len() < values.len())
            {
                *end = Some(Bound { values, inclusive });
            }
        }
        (low, high)
    }
}

impl RowBound {
    /// The values for the columns of an index behind a prefix, as far as they are compared in
    /// that order.
    fn behind(&self, index: &catalog::Index, prefix: &[KeyPart]) -> Option<(Vec<Expr>, bool)> {
        let mut pairs = self.columns.iter().zip(&self.values).peekable();
        // Columns that have the value of the bound do not decide.
        for (key, part) in index.columns.iter().zip(prefix) {
            if let KeyPart::One(fixed) = part
                && pairs
                    .next_if(|(column, value)| **column == key.column && fixed == *value)
                    .is_some()
            {
                continue;
            }
        }
        let rest = &index.columns[prefix.len()..];
        let descending = rest.first()?.descending;
        let mut values = Vec::new();
        for key in rest.iter().take_while(|key| key.descending == descending) {
            match pairs.next_if(|(column, _)| **column == key.column) {
                Some((_, value)) => values.push(value.clone()),
                None => break,
            }
        }
        // Rows that are equal in the columns that are left out lie on either side.
        let inclusive = pairs.peek().is_some() || matches!(self.op, Compare::Le | Compare::Ge);
        (!values.is_empty()).then_some((values, inclusive))
    }
}

/// What the cost of a path depends on beside its rows.
struct Price {
    secondary: bool,
    fans_out: bool,
    ordered: bool,
}

impl Price {
    fn of(&self, rows: f64, secondary: f64) -> f64 {
        let each = if self.secondary { secondary } else { 1.0 };
        let all = rows * each + if self.fans_out { FAN_OUT_COST } else { 0.0 };
        let read = if self.ordered { all * 0.3 } else { all };
        read + f64::from(u8::from(self.secondary))
    }
}

fn path(
    table: &Table,
    place: Place,
    number: usize,
    sargs: &Sargs,
    (conditions, (same, share)): (usize, (Vec<usize>, f64)),
    wanted: Wanted<'_>,
) -> Path {
    let index = table_index(table, number);
    let equal = |column: u16| sargs.equal(column);
    let Prefix {
        parts: prefix,
        rows: row_values,
        mut certain,
        combinations,
    } = prefix_of(index, sargs);
    let (low, high) = sargs.ends(index, &prefix);
    let used = sargs.used(index, prefix.len(), &certain, same);
    let slot = slot_parts(index, &prefix, &equal);
    let point = index.is_immediate() && prefix.len() == index.columns.len();
    let reckoned = Expected::of(index, &prefix, (low.as_ref(), high.as_ref()), wanted.values);
    let expected = |rows: f64| reckoned.rows(rows, combinations);
    let secondary = reckoned.secondary_cost();
    let single = prefix.iter().all(|part| matches!(part, KeyPart::One(_)));
    let (in_order, reverse) = match point {
        true => (single && !wanted.order.is_empty(), false),
        false => ordering(index, prefix.len(), place, wanted.order, &equal),
    };
    let ordered = in_order && single && (point || slot.is_some());
    // The first rows of all slots are found without reading the others: of a secondary index if
    // no condition is left that could drop them.
    let first_rows = in_order
        && !ordered
        && !point
        && wanted.limited
        && (number == 0 || (single && used.len() == conditions));
    let by_entry = match number {
        0 => Vec::new(),
        _ => core::mem::take(&mut certain),
    };
    let price = Price {
        secondary: number != 0,
        fans_out: slot.is_none(),
        ordered: ordered || first_rows,
    };
    let cost = |least: f64| price.of(expected(wanted.rows.max(least) * share), secondary);
    let access = Access {
        index: number,
        prefix,
        rows: row_values,
        low,
        high,
        slot,
        point,
        reverse,
        in_order: ordered || first_rows,
    };
    Path {
        access,
        rows: expected(wanted.rows * share),
        cost: cost(PLANNED_ROWS_MIN),
        choice: cost(CHOSEN_ROWS_MIN),
        certain,
        by_entry,
        by_values: false,
        used,
        ordered: ordered || (first_rows && number != 0),
        merges: first_rows && number != 0,
    }
}

fn slot_parts<'a>(
    index: &catalog::Index,
    prefix: &[KeyPart],
    equal: &dyn Fn(u16) -> Option<(usize, &'a KeyPart)>,
) -> Option<Vec<SlotPart>> {
    let part = |column: &u16| {
        let position = index.columns.iter().position(|key| key.column == *column);
        if let Some(position) = position.filter(|position| *position < prefix.len()) {
            return Some(SlotPart::Prefix(position));
        }
        match equal(*column)?.1 {
            KeyPart::One(value) => Some(SlotPart::Value(value.clone())),
            KeyPart::List(_) | KeyPart::Array(_) | KeyPart::Row(_) => None,
        }
    };
    index.slot_columns.iter().map(part).collect()
}

/// Whether entries behind a prefix come in the wanted order, and whether in reverse.
fn ordering<'a>(
    index: &catalog::Index,
    prefix: usize,
    place: Place,
    order: &[SortKey],
    equal: &dyn Fn(u16) -> Option<(usize, &'a KeyPart)>,
) -> (bool, bool) {
    if order.is_empty() {
        return (false, false);
    }
    // Columns that have one value in all rows of a key or range that is named.
    let fixed = |column: u16| {
        let mut own = index.columns[..prefix].iter();
        matches!(equal(column), Some((_, KeyPart::One(_)))) || own.any(|key| key.column == column)
    };
    let mut columns = index.columns[prefix..].iter();
    let mut reverse: Option<bool> = None;
    for key in order {
        if !place.has(key.column) {
            return (false, false);
        }
        let column = (key.column - place.first) as u16;
        if fixed(column) {
            continue;
        }
        let Some(next) = columns.next().filter(|next| next.column == column) else {
            return (false, false);
        };
        // Keys put NULL behind everything in ascending order, before everything in descending.
        let backwards = next.descending != key.descending;
        if key.nulls_first != key.descending || reverse.is_some_and(|r| r != backwards) {
            return (false, false);
        }
        reverse = Some(backwards);
    }
    (true, reverse.unwrap_or(false))
}

/// The program that gives the columns `layout` of the rows that pass, over entries of a secondary
/// index: these have the columns of the primary key. `None`: others are read.
pub(super) fn entry_program(
    table: &Table,
    layout: &[u32],
    mut conditions: Vec<Expr>,
) -> Option<ProgramPlan> {
    let keys = &table.primary.columns;
    let place = |column: u32| keys.iter().position(|key| u32::from(key.column) == column);
    let mut read: Vec<u32> = columns_of(&conditions).into_iter().collect();
    read.extend(layout);
    if read.iter().any(|column| place(*column).is_none()) {
        return None;
    }
    let at = |column: u32| place(column).expect("an entry has the column") as u32;
    let projection = layout.iter().map(|column| {
        let ty = table.columns[*column as usize].ty;
        Expr::Column(at(*column), ty)
    });
    let projection = projection.collect();
    for condition in &mut conditions {
        walk::map(condition, &mut |node| {
            if let Expr::Column(column, _) = node {
                *column = at(*column);
            }
        });
    }
    let filter = conjunction(conditions);
    Some(ProgramPlan::new(Body::Rows { filter, projection }))
}

/// The conditions but those that entries make certain.
pub(super) fn without(conditions: &[Expr], certain: &[usize]) -> Vec<Expr> {
    let left = conditions.iter().enumerate();
    let left = left.filter(|(number, _)| !certain.contains(number));
    left.map(|(_, condition)| condition.clone()).collect()
}
