//! Names, keys and expressions of steps as EXPLAIN shows them.

use crate::step::{Access, KeyPart, Scan, Step, StepOp, table_index};
use base::{Datum, Type};
use catalog::Table;
use expr::aggregate::AggFunc;
use expr::program::{Body, PartialAggregate};
use expr::rows::shown;
use expr::{Compare, Expr, Func, TextFunc};
use window::WindowCall;

/// The keys that an access reads; `names` are those of the row that their values are over.
pub fn access_text(table: &Table, access: &Access, names: Names<'_>) -> Option<String> {
    let index = table_index(table, access.index);
    let name = |place: usize| column_name(table, index.columns[place].column);
    let mut parts = Vec::new();
    let mut listed: Vec<(usize, &str)> = Vec::new();
    for (i, part) in access.prefix.iter().enumerate() {
        parts.push(match part {
            KeyPart::One(value) => format!("{} = {}", name(i), expr_text(value, names)),
            KeyPart::List(values) => {
                format!(
                    "{} IN ({})",
                    name(i),
                    some_of(values, |value| expr_text(value, names))
                )
            }
            KeyPart::Array(array) => format!("{} = ANY ({})", name(i), expr_text(array, names)),
            KeyPart::Row(place) => {
                listed.push((*place, name(i)));
                continue;
            }
        });
    }
    if !listed.is_empty() {
        let columns: Vec<&str> = listed.iter().map(|(_, name)| *name).collect();
        let row = |values: &Vec<Expr>| {
            let values = listed
                .iter()
                .map(|(place, _)| expr_text(&values[*place], names));
            format!("({})", values.collect::<Vec<_>>().join(", "))
        };
        let rows = some_of(&access.rows, row);
        parts.push(format!("({}) IN ({rows})", columns.join(", ")));
    }
    let next = access.prefix.len();
    for (bound, op) in [(&access.low, '>'), (&access.high, '<')] {
        if let Some(bound) = bound {
            let equal = if bound.inclusive { "=" } else { "" };
            let columns: Vec<&str> = (0..bound.values.len()).map(|i| name(next + i)).collect();
            let values = bound.values.iter().map(|value| expr_text(value, names));
            let values: Vec<String> = values.collect();
            let (columns, values) = (columns.join(", "), values.join(", "));
            parts.push(match bound.values.len() {
                1 => format!("{columns} {op}{equal} {values}"),
                _ => format!("({columns}) {op}{equal} ({values})"),
            });
        }
    }
    (!parts.is_empty()).then(|| format!("({})", parts.join(" AND ")))
}

/// Values that a list shows at most.
const SHOWN_MAX: usize = 20;
/// Terms of a condition that are shown at most.
const TERMS_MAX: usize = 200;
/// Characters of a literal that are shown at most.
const CHARS_MAX: usize = 1_000;

/// A list, cut off at a length that is still read.
pub fn some_of<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
    joined(values, SHOWN_MAX, ", ", text)
}

/// The first values, up to a limit, with a separator between them.
fn joined<T>(values: &[T], most: usize, separator: &str, text: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = values.iter().take(most).map(text).collect();
    let shown = shown.join(separator);
    match values.len().checked_sub(most) {
        None | Some(0) => shown,
        Some(more) => format!("{shown}{separator}... {more} more"),
    }
}

/// The text of a literal, cut off at a length that is still read.
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(CHARS_MAX) {
        let more = format!("... {} bytes more", text.len() - at);
        text.truncate(at);
        text.push_str(&more);
    }
    text
}

fn compare_text(op: Compare) -> &'static str {
    match op {
        Compare::Eq => "=",
        Compare::Ne => "<>",
        Compare::Lt => "<",
        Compare::Le => "<=",
        Compare::Gt => ">",
        Compare::Ge => ">=",
        Compare::Like => "~~",
        Compare::NotLike => "!~~",
        Compare::ILike => "~~*",
        Compare::NotILike => "!~~*",
        Compare::Regex => "~",
        Compare::NotRegex => "!~",
        Compare::IRegex => "~*",
        Compare::NotIRegex => "!~*",
    }
}

/// Names of the columns that an expression is over.
pub type Names<'n> = &'n dyn Fn(u32) -> String;

/// An expression for people.
pub fn expr_text(expr: &Expr, names: Names<'_>) -> String {
    let values = |items: &[Expr]| some_of(items, |item| expr_text(item, names));
    let terms = |items: &[Expr], separator: &str| {
        joined(items, TERMS_MAX, separator, |item| expr_text(item, names))
    };
    match expr {
        Expr::Const(Datum::Null, _) => "NULL".into(),
        Expr::Const(datum, ty)
            if ty.is_text()
                || ty.is_datetime()
                || matches!(
                    ty,
                    Type::Time(_) | Type::Timetz(_) | Type::Bit(_) | Type::Varbit(_)
                )
                || ty.range_kind().is_some()
                || ty.user_id().is_some() =>
        {
            format!("'{}'", cut(shown(*ty, datum)).replace('\'', "''"))
        }
        Expr::Const(datum, ty) => cut(shown(*ty, datum)),
        Expr::Column(column, _) => names(*column),
        Expr::Param(slot, _) => format!("${}", slot + 1),
        Expr::Call(Func::Compare(op), sides, _) if sides.len() == 2 => {
            let (left, right) = (expr_text(&sides[0], names), expr_text(&sides[1], names));
            format!("({left} {} {right})", compare_text(*op))
        }
        Expr::Call(Func::RowVersion, _, _) => "xmin".into(),
        Expr::Call(func, args, _) => {
            let name = match func {
                Func::Add => Some(" + "),
                Func::Sub => Some(" - "),
                Func::Mul => Some(" * "),
                Func::Div => Some(" / "),
                Func::Text(TextFunc::Concat) => Some(" || "),
                _ => None,
            };
            match name {
                Some(op) if args.len() == 2 => format!("({})", terms(args, op)),
                _ => format!("{func:?}({})", values(args)),
            }
        }
        Expr::Cast { arg, to, .. } => format!("{}::{}", expr_text(arg, names), to.name()),
        Expr::And(parts) => format!("({})", terms(parts, " AND ")),
        Expr::Or(parts) => format!("({})", terms(parts, " OR ")),
        Expr::Not(inner) => format!("NOT {}", expr_text(inner, names)),
        Expr::IsNull(inner, negated) => {
            let not = if *negated { "NOT " } else { "" };
            format!("({} IS {not}NULL)", expr_text(inner, names))
        }
        Expr::InList(arg, items, negated) => {
            let not = if *negated { "NOT " } else { "" };
            format!("({} {not}IN ({}))", expr_text(arg, names), values(items))
        }
        Expr::Coalesce(args, _) => format!("COALESCE({})", values(args)),
        Expr::MakeArray(items, _) => format!("ARRAY[{}]", values(items)),
        Expr::Outer(..) | Expr::Subquery(..) => "(subquery)".into(),
        Expr::IsBool(..) | Expr::IsDistinct(..) | Expr::Case { .. } | Expr::AnyArray(..) => {
            form_text(expr, names)
        }
    }
}

/// The forms that have words of their own.
fn form_text(expr: &Expr, names: Names<'_>) -> String {
    match expr {
        Expr::IsBool(arg, wanted, negated) => {
            let not = if *negated { "NOT " } else { "" };
            let wanted = match wanted {
                Some(true) => "TRUE",
                Some(false) => "FALSE",
                None => "UNKNOWN",
            };
            format!("({} IS {not}{wanted})", expr_text(arg, names))
        }
        Expr::IsDistinct(left, right, negated) => {
            let not = if *negated { "NOT " } else { "" };
            let (left, right) = (expr_text(left, names), expr_text(right, names));
            format!("({left} IS {not}DISTINCT FROM {right})")
        }
        Expr::Case {
            arms, otherwise, ..
        } => {
            let arm = |(condition, result): &(Expr, Expr)| {
                let (condition, result) = (expr_text(condition, names), expr_text(result, names));
                format!("WHEN {condition} THEN {result}")
            };
            let otherwise = expr_text(otherwise, names);
            format!("CASE {} ELSE {otherwise} END", some_of(arms, arm))
        }
        Expr::AnyArray(arg, op, array, all) => {
            let quantifier = if *all { "ALL" } else { "ANY" };
            let (arg, array) = (expr_text(arg, names), expr_text(array, names));
            format!("({arg} {} {quantifier} ({array}))", compare_text(*op))
        }
        _ => unreachable!("the caller has dealt with all others"),
    }
}

/// The name of a column of a step's rows: that of the table column or expression that it holds.
pub fn column_text(step: &Step, column: u32) -> String {
    let of = |input: &Step| column_text(input, column);
    match &step.op {
        StepOp::Scan(scan) | StepOp::Locked { scan, .. } => scan_column(scan, column),
        StepOp::Filter { input, .. }
        | StepOp::Distinct { input, .. }
        | StepOp::Sort { input, .. }
        | StepOp::Limit { input, .. } => of(input),
        StepOp::Project { input, exprs } => {
            expr_text(&exprs[column as usize], &|c| column_text(input, c))
        }
        StepOp::Apply { input, .. } if column < input.width => of(input),
        StepOp::Apply { .. } => "(subquery)".into(),
        StepOp::Window { input, .. } | StepOp::Expand { input, .. } if column < input.width => {
            of(input)
        }
        StepOp::Expand { input, keys, .. } => match keys.get((column - input.width) as usize) {
            Some(key) => expr_text(key, &|c| column_text(input, c)),
            None => "(set)".into(),
        },
        StepOp::Window { input, calls, .. } => {
            window_text(&calls[(column - input.width) as usize], input)
        }
        StepOp::Lookup { left, .. } | StepOp::Hash { left, .. } | StepOp::Lateral { left, .. }
            if column < left.width =>
        {
            of(left)
        }
        StepOp::Lookup { left, scan, .. } => scan_column(scan, column - left.width),
        StepOp::Hash { left, right, .. } | StepOp::Lateral { left, right, .. } => {
            column_text(right, column - left.width)
        }
        StepOp::Aggregate {
            input,
            group,
            aggregates,
            merge,
            always: _,
        } => match column.checked_sub(group.len() as u32) {
            None if *merge => of(input),
            None => expr_text(&group[column as usize], &|c| column_text(input, c)),
            // The states that shards send do not tell the arguments.
            Some(number) if *merge => match partial(input) {
                Some((table, aggregates)) => {
                    let PartialAggregate { func, args, .. } = &aggregates[number as usize];
                    aggregate_text(*func, args, &|c| table_column(table, c))
                }
                None => "(aggregate)".into(),
            },
            Some(number) => {
                let aggregate = &aggregates[number as usize];
                aggregate_text(aggregate.func, &aggregate.args, &|c| column_text(input, c))
            }
        },
        StepOp::Values { .. } => format!("column{}", column + 1),
        StepOp::Virtual(table) => format!("{}.{}", table.name, table.columns[column as usize].name),
        StepOp::Function { function, .. } => function.name().to_lowercase(),
        StepOp::Match { left, .. }
        | StepOp::Shared { query: left, .. }
        | StepOp::Recursive { base: left, .. } => of(left),
        StepOp::Working { .. } | StepOp::Part { .. } => format!("column{}", column + 1),
        StepOp::Union { inputs } => inputs.first().map_or_else(String::new, of),
        StepOp::One => "(none)".into(),
    }
}

fn window_text(call: &WindowCall, input: &Step) -> String {
    let args = call.args.iter();
    let args = args.map(|arg| expr_text(arg, &|column| column_text(input, column)));
    let args: Vec<String> = args.collect();
    format!("{}({}) OVER (...)", call.name(), args.join(", "))
}

fn partial(step: &Step) -> Option<(&Table, &[PartialAggregate])> {
    match &step.op {
        StepOp::Scan(scan) => match scan.program.body() {
            Body::Aggregate { aggregates, .. } => Some((&scan.table, aggregates)),
            _ => None,
        },
        _ => None,
    }
}

fn table_column(table: &Table, column: u32) -> String {
    format!("{}.{}", table.name, column_name(table, column as u16))
}

/// The column's name as a query has it: `ctid` for the hidden number of a row.
pub fn column_name(table: &Table, column: u16) -> &str {
    match table.rowid() {
        Some(number) if number == column => "ctid",
        _ => {
            let described = table.column_at(column);
            let computed = described.generated.as_deref();
            computed
                .filter(|_| described.of_index)
                .unwrap_or(&described.name)
        }
    }
}

/// The name of a column that a scan gives.
pub fn scan_column(scan: &Scan, column: u32) -> String {
    let names = |column: u32| table_column(&scan.table, scan.table_column(column).into());
    let exprs = match scan.program.body() {
        Body::Rows { projection, .. }
        | Body::Top { projection, .. }
        | Body::First { projection, .. } => projection,
        Body::Aggregate { group, .. } => group,
        Body::Modify(modify) => &modify.returning,
    };
    let expr = exprs.get(column as usize);
    expr.map_or_else(|| "(state)".into(), |expr| expr_text(expr, &names))
}

fn aggregate_text(func: AggFunc, args: &[Expr], names: Names<'_>) -> String {
    let name = format!("{func:?}");
    let name = name.split(['(', ' ']).next().unwrap_or_default();
    let args: Vec<String> = args.iter().map(|arg| expr_text(arg, names)).collect();
    match func {
        AggFunc::CountAll => "count(*)".into(),
        AggFunc::Pair(of) => format!("{}({})", of.name(), args.join(", ")),
        _ => format!("{}({})", name.to_lowercase(), args.join(", ")),
    }
}

/// Number of keys of an access, where it does not depend on rows or parameters.
pub fn key_count(access: &Access) -> Option<usize> {
    let lists = access.prefix.iter().map(|part| match part {
        KeyPart::One(_) | KeyPart::Row(_) => Some(1),
        KeyPart::List(values) => Some(values.len()),
        KeyPart::Array(_) => None,
    });
    let rows = access.rows.len().max(1);
    lists
        .chain([Some(rows)])
        .try_fold(1usize, |all, count| Some(all.saturating_mul(count?)))
}
