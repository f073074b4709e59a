//! EXPLAIN: the steps as a tree, with what they did if they were run.

use super::step::{Access, Action, KeyPart, PointOp, Run, Scan, Step, StepOp, table_index};
use super::{Cx, StepStats, Tag, statement};
use crate::bind::rel::{Call, CallKind, InitValue, JoinKind};
use crate::expr::{Compare, Expr, Func};
use crate::port::{ExecError, Signal};
use crate::program::Body;
use crate::rows::shown;
use base::{Datum, RowBatch};
use catalog::Table;
use core::fmt::Write;

/// Gives the lines; with `analyze` runs the statement first, without sending its rows.
pub(super) async fn run(
    cx: &Cx<'_>,
    run: &Run,
    analyze: bool,
    params: &[Datum],
) -> Result<Tag, ExecError> {
    let inner = Cx::new(cx.port, run, analyze);
    let start = cx.port.now();
    let mut tag = None;
    if analyze {
        tag = Some(statement(&inner, run, params, false).await?);
    }
    let took = cx.port.now().since(start);
    let stats = inner.stats.as_ref().map(|stats| stats.borrow().clone());
    let mut lines = Lines {
        out: Vec::new(),
        stats: stats.as_deref(),
    };
    lines.run(run);
    if let Some(tag) = tag {
        let cost = cx.port.cost();
        lines.out.push(format!("Result: {tag}"));
        lines.out.push(format!(
            "Transaction: shards={} nodes={} messages={} in-node messages={} bytes={}",
            cost.shards,
            cost.nodes,
            cost.messages_on_path + cost.messages_off_path,
            cost.messages_in_node,
            cost.message_bytes
        ));
        if cost.rows_moved > 0 {
            lines.out.push(format!(
                "Transfers: rows={} waited={:.3} ms",
                cost.rows_moved,
                cost.move_wait_us as f64 / 1000.0
            ));
        }
        lines
            .out
            .push(format!("Execution Time: {:.3} ms", took as f64 / 1000.0));
    }
    let mut batch = RowBatch::new(1);
    for line in &lines.out {
        batch.push([Datum::Text(line.as_str().into())]);
    }
    cx.emit(batch).await;
    Ok(Tag::Word("EXPLAIN"))
}

struct Lines<'s> {
    out: Vec<String>,
    stats: Option<&'s [StepStats]>,
}

impl Lines<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let arrow = if depth > 0 { "->  " } else { "" };
        let indent = depth.saturating_sub(1) * 6 + if depth > 0 { 2 } else { 0 };
        self.out.push(format!("{:indent$}{arrow}{text}", ""));
    }

    fn detail(&mut self, depth: usize, text: &str) {
        let indent = depth * 6 + 2;
        self.out.push(format!("{:indent$}{text}", ""));
    }

    fn run(&mut self, run: &Run) {
        match &run.action {
            Action::Query(step) => self.step(step, 0),
            Action::Point(point) => {
                let table = &point.table;
                let name = match &point.op {
                    PointOp::Get { lock: Some(_), .. } => "Locking Point Read on",
                    PointOp::Get { .. } => "Point Read on",
                    PointOp::Modify { delete: true, .. } => "Point Delete on",
                    PointOp::Modify { .. } => "Point Update on",
                    PointOp::Formula { .. } => "Formula Update on",
                    PointOp::Insert { .. } => "Point Insert on",
                };
                self.line(
                    0,
                    &format!("{name} {}  (one operation on one shard)", table.name),
                );
                let keys = table.primary.columns.iter().zip(&point.key);
                let text: Vec<String> = keys
                    .map(|(key, value)| {
                        let name = &table.column_at(key.column).name;
                        format!("{name} = {}", expr_text(value, &[]))
                    })
                    .collect();
                self.detail(0, &format!("Key: ({})", text.join(" AND ")));
            }
            Action::Insert(plan) => {
                self.line(0, &format!("Insert on {}", plan.writers[0].table.name));
                if plan.conflict.is_some() {
                    self.detail(0, "On Conflict");
                }
                self.step(&plan.source, 1);
            }
            Action::Write(plan) => {
                let verb = if plan.assignments.is_some() {
                    "Update"
                } else {
                    "Delete"
                };
                self.line(0, &format!("{verb} on {}", plan.writers[0].table.name));
                self.step(&plan.rows, 1);
            }
            Action::Truncate(plans) => {
                for plan in plans {
                    self.line(0, &format!("Truncate {}", plan.writers[0].table.name));
                }
            }
            Action::CopyFrom(plan) => {
                self.line(0, &format!("Copy into {}", plan.writers[0].table.name));
            }
            Action::CopyTo(plan) => {
                self.line(0, "Copy to client");
                self.step(&plan.query, 1);
            }
            Action::Show(_) => self.line(0, "Show"),
            Action::Explain { run, .. } => self.run(run),
        }
        for init in &run.inits {
            if let InitValue::Call(call) = &init.value
                && let Some((query, _)) = call.kind.query()
            {
                self.line(1, &format!("Once, as ${}", init.slot + 1));
                self.step(query, 2);
            }
        }
    }

    fn title(&mut self, step: &Step, depth: usize, text: &str) {
        let mut title = format!("{text}  (rows={:.0})", step.rows.max(1.0));
        if let Some(stats) = self.stats {
            let stats = &stats[step.id as usize];
            if stats.loops == 0 {
                title.push_str(" (never executed)");
            } else {
                let _ = write!(
                    title,
                    " (actual rows={} loops={} time={:.3} ms",
                    stats.rows,
                    stats.loops,
                    stats.micros as f64 / 1000.0
                );
                if stats.ops > 0 {
                    let _ = write!(
                        title,
                        " operations={} shards={}",
                        stats.ops,
                        stats.shards.len()
                    );
                }
                title.push(')');
            }
        }
        self.line(depth, &title);
    }

    fn step(&mut self, step: &Step, depth: usize) {
        match &step.op {
            StepOp::One => self.title(step, depth, "Result"),
            StepOp::Values { .. } => self.title(step, depth, "Values"),
            StepOp::Virtual(table) => {
                self.title(step, depth, &format!("System Catalog {}", table.name));
            }
            StepOp::Function { function, .. } => {
                self.title(step, depth, &format!("Function {function:?}"));
            }
            StepOp::Scan(scan) => {
                let title = scan_title(scan);
                self.title(step, depth, &title);
                self.scan(scan, depth);
            }
            StepOp::Filter { input, filter } => {
                self.title(step, depth, "Filter");
                self.detail(depth, &format!("Condition: {}", expr_text(filter, &[])));
                self.step(input, depth + 1);
            }
            StepOp::Project { input, .. } => {
                self.title(step, depth, "Project");
                self.step(input, depth + 1);
            }
            StepOp::Apply { input, calls } => {
                self.title(step, depth, "Compute per Row");
                self.step(input, depth + 1);
                calls.iter().for_each(|call| self.call(call, depth + 1));
            }
            StepOp::Lookup {
                kind,
                left,
                scan,
                filter,
            } => {
                let title = format!("{} by Key Lookup: {}", join_name(*kind), scan_title(scan));
                self.title(step, depth, &title);
                self.scan(scan, depth);
                if let Some(filter) = filter {
                    self.detail(depth, &format!("Join Filter: {}", expr_text(filter, &[])));
                }
                self.step(left, depth + 1);
            }
            StepOp::Hash {
                kind,
                left,
                right,
                keys,
                filter,
            } => {
                let how = if keys.is_empty() {
                    "Nested Loop"
                } else {
                    "Hash"
                };
                self.title(step, depth, &format!("{how} {}", join_name(*kind)));
                for (left, right) in keys {
                    let text = format!("{} = {}", expr_text(left, &[]), expr_text(right, &[]));
                    self.detail(depth, &format!("Hash Key: {text}"));
                }
                if let Some(filter) = filter {
                    self.detail(depth, &format!("Join Filter: {}", expr_text(filter, &[])));
                }
                self.step(left, depth + 1);
                self.step(right, depth + 1);
            }
            StepOp::Lateral { left, right, .. } => {
                self.title(step, depth, "Lateral Join");
                self.step(left, depth + 1);
                self.step(right, depth + 1);
            }
            StepOp::Aggregate {
                input,
                group,
                merge,
                ..
            } => {
                let name = match (group.is_empty(), merge) {
                    (_, true) => "Combine Partial Aggregates",
                    (true, false) => "Aggregate",
                    (false, false) => "Group Aggregate",
                };
                self.title(step, depth, name);
                self.step(input, depth + 1);
            }
            StepOp::Distinct { input, .. } => {
                self.title(step, depth, "Distinct");
                self.step(input, depth + 1);
            }
            StepOp::Sort { input, limit, .. } => {
                self.title(
                    step,
                    depth,
                    if limit.is_some() {
                        "Top-N Sort"
                    } else {
                        "Sort"
                    },
                );
                self.step(input, depth + 1);
            }
            StepOp::Limit { input, .. } => {
                self.title(step, depth, "Limit");
                self.step(input, depth + 1);
            }
            StepOp::Union { inputs } => {
                self.title(step, depth, "Append");
                inputs.iter().for_each(|input| self.step(input, depth + 1));
            }
        }
    }

    fn call(&mut self, call: &Call<Step>, depth: usize) {
        let name = match &call.kind {
            CallKind::Scalar { .. } => "Scalar Subquery",
            CallKind::Exists { .. } => "Exists",
            CallKind::In { .. } => "In",
            CallKind::Quantified { .. } => "Any or All",
            CallKind::Array { .. } => "Array",
            CallKind::Nextval(_) => "Next Sequence Value",
            CallKind::Currval(_) => "Current Sequence Value",
            CallKind::Sleep(_) => "Sleep",
            CallKind::Signal(_, Signal::Cancel) => "Cancel Session",
            CallKind::Signal(_, Signal::Terminate) => "End Session",
        };
        self.line(depth, name);
        if let Some((query, _)) = call.kind.query() {
            self.step(query, depth + 1);
        }
    }

    fn scan(&mut self, scan: &Scan, depth: usize) {
        let names: Vec<&str> = scan
            .table
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        if let Some(text) = access_text(&scan.table, &scan.access) {
            self.detail(depth, &format!("Key: {text}"));
        }
        match scan.program.unbound() {
            Body::Rows { filter, .. }
            | Body::Top { filter, .. }
            | Body::Aggregate { filter, .. } => {
                if let Some(filter) = filter {
                    self.detail(
                        depth,
                        &format!("Filter on shard: {}", expr_text(&filter, &names)),
                    );
                }
            }
            Body::Modify(_) => {}
        }
    }
}

fn join_name(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Join",
        JoinKind::Left => "Left Join",
        JoinKind::Right => "Right Join",
        JoinKind::Full => "Full Join",
        JoinKind::Semi => "Semi Join",
        JoinKind::Anti => "Anti Join",
    }
}

fn scan_title(scan: &Scan) -> String {
    let access = &scan.access;
    let index = scan.index();
    let what = match scan.program.body() {
        Body::Aggregate { .. } => "Partial Aggregate of ",
        Body::Top { .. } => "Top-N of ",
        Body::Rows { .. } | Body::Modify(_) => "",
    };
    let how = if access.point && access.index == 0 {
        "Point Reads"
    } else if access.prefix.is_empty() && access.low.is_none() && access.high.is_none() {
        "Scan"
    } else {
        "Range Scan"
    };
    let back = if access.reverse { " Backward" } else { "" };
    let using = if access.index == 0 {
        String::new()
    } else {
        format!(" using {}", index.name)
    };
    let place = match (&access.slot, scan.table.replicated) {
        (_, true) => "local copy",
        (Some(_), _) => "one slot",
        (None, _) => "all shards",
    };
    format!("{what}{how}{back}{using} on {}  [{place}]", scan.table.name)
}

fn access_text(table: &Table, access: &Access) -> Option<String> {
    let index = table_index(table, access.index);
    let name = |place: usize| table.column_at(index.columns[place].column).name.as_str();
    let mut parts = Vec::new();
    let mut listed: Vec<(usize, &str)> = Vec::new();
    for (i, part) in access.prefix.iter().enumerate() {
        parts.push(match part {
            KeyPart::One(value) => format!("{} = {}", name(i), expr_text(value, &[])),
            KeyPart::List(values) => {
                format!(
                    "{} IN ({})",
                    name(i),
                    some_of(values, |value| expr_text(value, &[]))
                )
            }
            KeyPart::Array(array) => format!("{} = ANY ({})", name(i), expr_text(array, &[])),
            KeyPart::Row(place) => {
                listed.push((*place, name(i)));
                continue;
            }
        });
    }
    if !listed.is_empty() {
        let names: Vec<&str> = listed.iter().map(|(_, name)| *name).collect();
        let row = |values: &Vec<Expr>| {
            let values = listed
                .iter()
                .map(|(place, _)| expr_text(&values[*place], &[]));
            format!("({})", values.collect::<Vec<_>>().join(", "))
        };
        let rows = some_of(&access.rows, row);
        parts.push(format!("({}) IN ({rows})", names.join(", ")));
    }
    let next = access.prefix.len();
    for (bound, op) in [(&access.low, '>'), (&access.high, '<')] {
        if let Some(bound) = bound {
            let equal = if bound.inclusive { "=" } else { "" };
            let names: Vec<&str> = (0..bound.values.len()).map(|i| name(next + i)).collect();
            let values = bound.values.iter().map(|value| expr_text(value, &[]));
            let values: Vec<String> = values.collect();
            let (names, values) = (names.join(", "), values.join(", "));
            parts.push(match bound.values.len() {
                1 => format!("{names} {op}{equal} {values}"),
                _ => format!("({names}) {op}{equal} ({values})"),
            });
        }
    }
    (!parts.is_empty()).then(|| format!("({})", parts.join(" AND ")))
}

/// Values that a list shows at most.
const SHOWN_MAX: usize = 20;

/// A list, cut off where nobody reads on.
fn some_of<T>(values: &[T], text: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = values.iter().take(SHOWN_MAX).map(text).collect();
    match values.len().checked_sub(SHOWN_MAX) {
        None | Some(0) => shown.join(", "),
        Some(more) => format!("{}, ... {more} more", shown.join(", ")),
    }
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

/// An expression for people; columns without a name are numbered.
fn expr_text(expr: &Expr, names: &[&str]) -> String {
    let list = |items: &[Expr], separator: &str| {
        let items: Vec<String> = items.iter().map(|item| expr_text(item, names)).collect();
        items.join(separator)
    };
    match expr {
        Expr::Const(Datum::Null, _) => "NULL".into(),
        Expr::Const(datum, ty) if ty.is_text() || ty.is_datetime() => {
            format!("'{}'", shown(*ty, datum).replace('\'', "''"))
        }
        Expr::Const(datum, ty) => shown(*ty, datum),
        Expr::Column(column, _) => match names.get(*column as usize) {
            Some(name) => (*name).to_string(),
            None => format!("#{}", column + 1),
        },
        Expr::Param(slot, _) => format!("${}", slot + 1),
        Expr::Call(Func::Compare(op), sides, _) if sides.len() == 2 => {
            let (left, right) = (expr_text(&sides[0], names), expr_text(&sides[1], names));
            format!("({left} {} {right})", compare_text(*op))
        }
        Expr::Call(func, args, _) => {
            let name = match func {
                Func::Add => Some(" + "),
                Func::Sub => Some(" - "),
                Func::Mul => Some(" * "),
                Func::Div => Some(" / "),
                _ => None,
            };
            match name {
                Some(op) if args.len() == 2 => format!("({})", list(args, op)),
                _ => format!("{func:?}({})", list(args, ", ")),
            }
        }
        Expr::Cast { arg, to, .. } => format!("{}::{}", expr_text(arg, names), to.name()),
        Expr::And(parts) => format!("({})", list(parts, " AND ")),
        Expr::Or(parts) => format!("({})", list(parts, " OR ")),
        Expr::Not(inner) => format!("NOT {}", expr_text(inner, names)),
        Expr::IsNull(inner, negated) => {
            let not = if *negated { "NOT " } else { "" };
            format!("({} IS {not}NULL)", expr_text(inner, names))
        }
        Expr::InList(arg, items, negated) => {
            let not = if *negated { "NOT " } else { "" };
            format!(
                "({} {not}IN ({}))",
                expr_text(arg, names),
                list(items, ", ")
            )
        }
        Expr::Coalesce(args, _) => format!("COALESCE({})", list(args, ", ")),
        Expr::MakeArray(items, _) => format!("ARRAY[{}]", list(items, ", ")),
        Expr::IsBool(..)
        | Expr::IsDistinct(..)
        | Expr::Case { .. }
        | Expr::AnyArray(..)
        | Expr::Outer(..)
        | Expr::Subquery(..) => "...".into(),
    }
}
