//! EXPLAIN: the steps as a tree, with what they did if they were run.

use super::counted::RowCounts;
use super::explain_object::{self, Entry, Node};
use super::fill::settings_of;
use super::{Cx, StepStats, statement};
use base::full_name::{MARK, bare};
use base::types::UNNAMED;
use base::{Datum, RowBatch, Tag, Type};
use bind::PlanCx;
use bind::rel::{Call, CallKind, InitValue, JoinKind, Matching, QueryUse, Signal, SortKey};
use catalog::Table;
use core::fmt::Write;
use expr::Expr;
use expr::program::{Body, ProgramPlan};
use parse::{ExplainFormat, ExplainOptions, Statement};
use plan::formula::Formulas;
use plan::step::{
    Action, ConflictPlan, MergeWhen, Part, PartsPlan, PointOp, PointPlan, Run, Scan, Step, StepOp,
    When,
};
use plan::text::{
    Names, access_text, column_name, column_text, expr_text, key_count, scan_column, some_of,
};
use plan::{Plan, PlanKind};
use std::sync::Arc;
use txn::{OpError, TxnCost};

/// The explained statement, planned with the numbers of rows of this moment.
struct Planned {
    plan: Arc<Plan>,
    counts: RowCounts,
    took_ns: u64,
}

impl Planned {
    async fn make(cx: &Cx<'_>, statement: &Statement, types: &[Type]) -> Result<Planned, OpError> {
        let counts = RowCounts::ask(cx).await?;
        let zone = settings_of(cx.port);
        let before = cx.port.stopwatch_ns();
        let path = cx.facts.with_catalog(None, |catalog| catalog.path());
        let plan_cx = PlanCx {
            catalog: cx.port.catalog(),
            database: cx.port.database(),
            param_types: types,
            param_names: &[],
            zone: &zone,
            path: &path,
            viewer: cx.facts.viewer(),
            rows: &|table| counts.rows.get(&table).copied(),
            values: &|table| counts.values.get(&table).cloned(),
            paths: Default::default(),
        };
        let plan = cx.port.plan(statement, &plan_cx)?;
        let took_ns = cx.port.stopwatch_ns().saturating_sub(before);
        Ok(Planned {
            plan,
            counts,
            took_ns,
        })
    }
}

/// Gives the lines; with `analyze` runs the statement first, without sending its rows.
pub(super) async fn run(
    cx: &Cx<'_>,
    known: &Run,
    again: Option<&(Statement, Box<[Type]>)>,
    options: ExplainOptions,
    params: &[Datum],
) -> Result<Tag, OpError> {
    let planned = match again {
        Some((statement, types)) => Some(Planned::make(cx, statement, types).await?),
        None => None,
    };
    let run = match planned.as_ref().map(|planned| &planned.plan.kind) {
        Some(PlanKind::Run(run)) => run,
        Some(_) => unreachable!("it was planned as one before"),
        None => known,
    };
    let inner = Cx::new(cx.port, run, options.analyze).with_parts(run);
    let start = cx.port.stopwatch_ns();
    let mut tag = None;
    if options.analyze {
        tag = Some(statement(&inner, run, params, false).await?);
    }
    let took_ns = cx.port.stopwatch_ns().saturating_sub(start);
    let stats = inner.stats.as_ref().map(|stats| stats.borrow().clone());
    let mut lines = Lines {
        out: Vec::new(),
        entries: Vec::new(),
        node: None,
        stats: stats.as_deref(),
        options,
    };
    lines.run(run);
    let steps = lines.out.len();
    let gap = planned.as_ref().and_then(|planned| planned.counts.gap());
    lines.out.extend(gap);
    if let Some(tag) = tag {
        lines.cost(&tag, &cx.port.cost());
    }
    let mut times = Vec::new();
    let settings = options
        .settings
        .then(|| explain_object::changed_settings(cx));
    if options.summary {
        let planning = planned.as_ref().map(|planned| planned.took_ns);
        times.extend(planning.map(|ns| ("Planning Time", ns)));
        times.extend(options.analyze.then_some(("Execution Time", took_ns)));
    }
    let mut rows = lines.rows(steps, settings.as_deref(), &times);
    for line in &mut rows.datums {
        if let Some(text) = line
            .as_str()
            .filter(|text| text.contains([UNNAMED[0], MARK]))
        {
            *line = bare(&cx.port.database().named_types(text))
                .into_owned()
                .into();
        }
    }
    cx.emit(rows).await;
    Ok(Tag::Word("EXPLAIN"))
}

struct Lines<'s> {
    out: Vec<String>,
    /// The same before it is text.
    entries: Vec<Entry>,
    /// The node that the next line is about.
    node: Option<Node>,
    stats: Option<&'s [StepStats]>,
    options: ExplainOptions,
}

impl Lines<'_> {
    /// The rows of the answer: `steps` lines are about the steps, the others about all of it.
    fn rows(
        mut self,
        steps: usize,
        settings: Option<&[(String, String)]>,
        times_ns: &[(&str, u64)],
    ) -> RowBatch {
        let times = times_ns
            .iter()
            .map(|(what, ns)| (what.to_string(), format!("{:.3}", *ns as f64 / 1e6)));
        let mut batch = RowBatch::new(1);
        if self.has_objects() {
            let more = self.out[steps..].iter().map(|line| {
                let (name, value) = line.split_once(": ").unwrap_or(("Note", line));
                (name.to_owned(), value.to_owned())
            });
            let more: Vec<(String, String)> = more.chain(times).collect();
            let text = explain_object::text(self.entries, settings, &more, self.options);
            batch.push([Datum::Text(text.as_str().into())]);
            return batch;
        }
        self.out.extend(explain_object::settings_line(settings));
        let times = times.map(|(what, ms)| format!("{what}: {ms} ms"));
        self.out.extend(times);
        let lines = self.out.iter();
        lines.for_each(|line| batch.push([Datum::Text(line.as_str().into())]));
        batch
    }

    /// What the transaction has cost.
    fn cost(&mut self, tag: &Tag, cost: &TxnCost) {
        self.out.push(format!("Result: {tag}"));
        let messages = cost.messages_on_path + cost.messages_off_path;
        // In a transaction that began with another statement they were not measured.
        let bytes = match cost.message_bytes {
            0 if messages > 0 => String::new(),
            bytes => format!(" bytes={bytes}"),
        };
        self.out.push(format!(
            "Transaction: shards={} nodes={} messages={messages} in-node messages={}{bytes}",
            cost.shards, cost.nodes, cost.messages_in_node,
        ));
        if cost.rows_moved > 0 {
            self.out.push(format!(
                "Transfers: rows={} waited={:.3} ms",
                cost.rows_moved,
                cost.move_wait_us as f64 / 1000.0
            ));
        }
    }

    fn has_objects(&self) -> bool {
        self.options.format != ExplainFormat::Text
    }

    fn line(&mut self, depth: usize, text: &str) {
        if self.has_objects() {
            let plain = || Node {
                title: text.to_owned(),
                ..Node::default()
            };
            let node = self.node.take().unwrap_or_else(plain);
            self.entries.push(Entry::Node { depth, node });
        }
        let arrow = if depth > 0 { "->  " } else { "" };
        let indent = depth.saturating_sub(1) * 6 + if depth > 0 { 2 } else { 0 };
        self.out.push(format!("{:indent$}{arrow}{text}", ""));
    }

    fn detail(&mut self, depth: usize, text: &str) {
        if self.has_objects() {
            let text = text.to_owned();
            self.entries.push(Entry::Detail { depth, text });
        }
        let indent = depth * 6 + 2;
        self.out.push(format!("{:indent$}{text}", ""));
    }

    fn run(&mut self, run: &Run) {
        match &run.action {
            Action::Query(step) => self.step(step, 0),
            Action::Point(point) => self.point(point),
            Action::Insert(plan) => {
                self.line(0, &format!("Insert on {}", plan.writers[0].table.name));
                if let Some(conflict) = &plan.conflict {
                    self.conflict(&plan.writers[0].table, conflict);
                }
                self.step(&plan.source, 1);
            }
            Action::Write(plan) => {
                let table = &plan.writers[0].table;
                let (verb, suffix) = match (&plan.each, &plan.assignments) {
                    (Some(each), _) if table.replicated => {
                        (point_title(each), "  (one operation for each copy)")
                    }
                    (Some(each), _) => (point_title(each), "  (one operation for each key)"),
                    (None, Some(_)) => ("Update on", ""),
                    (None, None) => ("Delete on", ""),
                };
                self.line(0, &format!("{verb} {}{suffix}", table.name));
                if let Some(formulas) = plan.each.as_deref().and_then(formulas_of) {
                    self.formulas(table, formulas);
                }
                if let Some(formulas) = &plan.formulas {
                    self.formulas(table, formulas);
                }
                self.step(&plan.rows, 1);
            }
            Action::Parts(plan) => self.parts(plan),
            Action::Truncate(plans, _) => {
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
            Action::Routine(plan) => self.line(0, &format!("Call of {}", plan.name)),
            Action::Upkeep(_) => self.line(0, "Analyze"),
            Action::Fill(_) => self.line(0, "Schema change"),
            Action::Explain { run, .. } => self.run(run),
        }
        for init in &run.inits {
            if let InitValue::Call(call) = &init.value
                && let Some(query) = call.kind.query()
            {
                self.line(1, &format!("Once, as ${}", init.slot + 1));
                self.step(query, 2);
            }
        }
    }

    /// A statement of several parts: its own first.
    fn parts(&mut self, plan: &PartsPlan) {
        let mut named = plan.parts.as_slice();
        match (&plan.query, named.split_last()) {
            (Some(query), _) => self.step(query, 0),
            (None, Some((own, others))) => {
                self.line(0, &part_title(own));
                self.part(own, 1);
                named = others;
            }
            (None, None) => {}
        }
        for (at, part) in named.iter().enumerate() {
            self.line(1, &format!("Part {}: {}", at + 1, part_title(part)));
            self.part(part, 2);
        }
    }

    fn part(&mut self, part: &Part, depth: usize) {
        match part {
            Part::Insert(plan) => {
                if let Some(conflict) = &plan.conflict {
                    let what = conflict.update.as_ref().map_or("nothing", |_| "update");
                    self.detail(depth - 1, &format!("On Conflict: {what}"));
                }
            }
            Part::Write(_) => {}
            Part::Merge(merge) => {
                for When {
                    matched, action, ..
                } in &merge.clauses
                {
                    let when = if *matched { "Matched" } else { "Not Matched" };
                    let action = match action {
                        MergeWhen::Nothing => "nothing",
                        MergeWhen::Delete => "delete",
                        MergeWhen::Update(_) => "update",
                        MergeWhen::Insert { .. } => "insert",
                    };
                    self.detail(depth - 1, &format!("When {when}: {action}"));
                }
            }
        }
        self.step(part.rows(), depth);
    }

    /// One operation on one row.
    fn point(&mut self, point: &PointPlan) {
        let table = &point.table;
        let name = point_title(&point.op);
        self.line(
            0,
            &format!("{name} {}  (one operation on one shard)", table.name),
        );
        let keys = table.primary.columns.iter().zip(&point.key);
        let text: Vec<String> = keys
            .map(|(key, value)| {
                let name = column_name(table, key.column);
                format!("{name} = {}", expr_text(value, &unnamed))
            })
            .collect();
        self.detail(0, &format!("Key: ({})", text.join(" AND ")));
        if let Some(formulas) = formulas_of(&point.op) {
            self.formulas(table, formulas);
        }
    }

    /// Which assignments are formulas, and why the others are not.
    fn formulas(&mut self, table: &Table, formulas: &Formulas) {
        let Formulas { judged, obstacle } = formulas;
        let width = table.columns.len() as u32;
        let named = |column: u32| table.columns.get(column as usize);
        let names = |column: u32| match (named(column), column.checked_sub(width)) {
            (Some(described), _) => described.name.clone(),
            (None, Some(proposed)) => match named(proposed) {
                Some(described) => format!("excluded.{}", described.name),
                None => unnamed(column),
            },
            (None, None) => unnamed(column),
        };
        for one in judged {
            let (what, why) = one.text(&names);
            let (name, value) = (names(u32::from(one.column)), expr_text(&one.value, &names));
            self.detail(0, &format!("{what}: {name} = {value}  ({why})"));
        }
        if let Some(obstacle) = obstacle {
            self.detail(0, &format!("Reads the row: {obstacle}"));
        }
    }

    fn conflict(&mut self, table: &Table, conflict: &ConflictPlan) {
        let Some(update) = &conflict.update else {
            self.detail(0, "On Conflict: nothing");
            return;
        };
        self.detail(
            0,
            match update.changes {
                Some(_) => "On Conflict: formula update",
                None => "On Conflict: update",
            },
        );
        self.formulas(table, &update.formulas);
    }

    fn title(&mut self, step: &Step, depth: usize, text: &str) {
        let mut title = text.to_owned();
        self.node = self.has_objects().then(|| Node {
            title: text.to_owned(),
            rows: Some(step.rows),
            stats: self.stats.map(|stats| stats[step.id as usize].clone()),
        });
        if self.options.costs {
            let _ = write!(title, "  (rows={:.0})", step.rows.max(1.0));
        }
        if let Some(stats) = self.stats {
            let stats = &stats[step.id as usize];
            if stats.loops == 0 {
                title.push_str(" (never executed)");
            } else {
                let _ = write!(title, " (actual rows={} loops={}", stats.rows, stats.loops);
                if self.options.timing {
                    let _ = write!(title, " time={:.3} ms", stats.nanos as f64 / 1e6);
                }
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
            StepOp::Values { rows, .. } => self.title(step, depth, values_title(rows.len())),
            StepOp::Virtual(table) => {
                self.title(step, depth, &format!("System Catalog {}", table.name));
            }
            StepOp::Function { function, .. } => {
                self.title(step, depth, &format!("Function {}", function.name()));
            }
            StepOp::Scan(scan) => {
                let title = scan_title(scan);
                self.title(step, depth, &title);
                self.scan(scan, depth, &unnamed);
            }
            StepOp::Filter { input, filter } => {
                self.title(step, depth, "Filter");
                self.condition(depth, filter, input);
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
                self.scan(scan, depth, &|column| column_text(left, column));
                if let Some(filter) = filter {
                    let text = expr_text(filter, &|column| joined_text(left, scan, column));
                    self.detail(depth, &format!("Join Filter: {text}"));
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
                let how = keys.first().map_or("Nested Loop", |_| "Hash");
                self.title(step, depth, &format!("{how} {}", join_name(*kind)));
                self.pairs((left, right), keys, filter.as_ref(), depth);
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
                let keys = (0..group.len() as u32).map(|column| column_text(step, column));
                self.list(depth, "Group Key", keys.collect());
                self.step(input, depth + 1);
            }
            StepOp::Expand { input, keys, sets } => {
                self.title(step, depth, "Grouping Sets");
                let set = |set: &Vec<bool>| {
                    let own = keys.iter().zip(set).filter(|(_, is_in)| **is_in);
                    let own = own.map(|(key, _)| expr_text(key, &|c| column_text(input, c)));
                    format!("({})", own.collect::<Vec<_>>().join(", "))
                };
                self.list(depth, "Sets", sets.iter().map(set).collect());
                self.step(input, depth + 1);
            }
            StepOp::Window {
                input,
                partition,
                order,
                calls: _,
            } => {
                self.title(step, depth, "WindowAgg");
                let keys = partition.iter().map(|column| column_text(input, *column));
                self.list(depth, "Partition Key", keys.collect());
                self.list(depth, "Order Key", sort_texts(input, order));
                self.step(input, depth + 1);
            }
            StepOp::Distinct { input, keys } => {
                self.title(step, depth, "Distinct");
                let keys = keys.iter().map(|column| column_text(input, *column));
                self.list(depth, "Distinct Key", keys.collect());
                self.step(input, depth + 1);
            }
            StepOp::Sort { input, limit, keys } => {
                let name = limit.as_ref().map_or("Sort", |_| "Top-N Sort");
                self.title(step, depth, name);
                self.list(depth, "Sort Key", sort_texts(input, keys));
                self.step(input, depth + 1);
            }
            StepOp::Limit { input, .. } => {
                self.title(step, depth, "Limit");
                self.step(input, depth + 1);
            }
            StepOp::Locked { input, .. } => {
                self.title(step, depth, "LockRows");
                self.step(input, depth + 1);
            }
            _ => self.queries(step, depth),
        }
    }

    /// A step that puts queries together.
    fn queries(&mut self, step: &Step, depth: usize) {
        match &step.op {
            StepOp::Union { inputs } => {
                self.title(step, depth, "Append");
                inputs.iter().for_each(|input| self.step(input, depth + 1));
            }
            StepOp::Match {
                matching,
                left,
                right,
            } => {
                self.title(step, depth, match_title(matching));
                self.step(left, depth + 1);
                self.step(right, depth + 1);
            }
            StepOp::Shared { id, query } => {
                self.title(step, depth, &format!("WITH Query {id}"));
                self.step(query, depth + 1);
            }
            StepOp::Recursive {
                base,
                step: round,
                slot: _,
                distinct: _,
            } => {
                self.title(step, depth, "Recursive Union");
                self.step(base, depth + 1);
                self.step(round, depth + 1);
            }
            StepOp::Working { slot: _ } => self.title(step, depth, "Rows of Last Round"),
            StepOp::Part { number } => {
                self.title(step, depth, &format!("Rows of Part {}", number + 1));
            }
            _ => unreachable!("called for steps of queries only"),
        }
    }

    fn call(&mut self, call: &Call<Step>, depth: usize) {
        use QueryUse::{Array, Exists, In, Scalar};
        let name = match &call.kind {
            CallKind::Query { usage: Scalar, .. } => "Scalar Subquery",
            CallKind::Query { usage: Exists, .. } => "Exists",
            CallKind::Query { usage: In(_), .. } => "In",
            CallKind::Query {
                usage: Array { .. },
                ..
            } => "Array",
            CallKind::Query { .. } => "Any or All",
            CallKind::Nextval(_) => "Next Sequence Value",
            CallKind::Currval(_) => "Current Sequence Value",
            CallKind::Sequence(..) => "Sequence",
            CallKind::Sleep(_) => "Sleep",
            CallKind::Signal(_, Signal::Cancel) => "Cancel Session",
            CallKind::Signal(_, Signal::Terminate) => "End Session",
            CallKind::ForgetStatements(_) => "Reset Statements",
            CallKind::Advisory(..) => "Advisory Lock",
            CallKind::Notify(_) => "Notify",
            CallKind::Object(..) => "Large Object",
        };
        self.line(depth, name);
        if let Some(query) = call.kind.query() {
            self.step(query, depth + 1);
        }
    }

    /// The keys and the filter of a join of two steps.
    fn pairs(
        &mut self,
        (left, right): (&Step, &Step),
        keys: &[(Expr, Expr)],
        filter: Option<&Expr>,
        depth: usize,
    ) {
        let of_left = |column| column_text(left, column);
        let of_right = |column| column_text(right, column);
        for (left, right) in keys {
            let (left, right) = (expr_text(left, &of_left), expr_text(right, &of_right));
            self.detail(depth, &format!("Hash Key: {left} = {right}"));
        }
        if let Some(filter) = filter {
            let text = expr_text(filter, &|column| match column.checked_sub(left.width) {
                None => of_left(column),
                Some(column) => of_right(column),
            });
            self.detail(depth, &format!("Join Filter: {text}"));
        }
    }

    fn condition(&mut self, depth: usize, filter: &Expr, input: &Step) {
        let text = expr_text(filter, &|column| column_text(input, column));
        self.detail(depth, &format!("Condition: {text}"));
    }

    /// A line of names, cut off where there are very many.
    fn list(&mut self, depth: usize, what: &str, names: Vec<String>) {
        if !names.is_empty() {
            let names = some_of(&names, String::clone);
            self.detail(depth, &format!("{what}: {names}"));
        }
    }

    /// What a scan reads; `outer` names the columns of the row that its keys are over.
    fn scan(&mut self, scan: &Scan, depth: usize, outer: Names<'_>) {
        let names = |column: u32| column_name(&scan.table, scan.table_column(column)).into();
        if let Some(text) = access_text(&scan.table, &scan.access, outer) {
            self.detail(depth, &format!("Key: {text}"));
        }
        if scan.access.point {
            match key_count(&scan.access) {
                Some(1) => {}
                Some(count) => self.detail(depth, &format!("Keys: {count}")),
                None => self.detail(depth, "Keys: as many as the array has values"),
            }
        }
        if let Some(gate) = &scan.gate {
            self.detail(depth, &format!("Only if: {}", expr_text(gate, &unnamed)));
        }
        match scan.program.unbound() {
            Body::Rows { filter, .. }
            | Body::Top { filter, .. }
            | Body::First { filter, .. }
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

/// Sort keys over the rows of a step.
fn sort_texts(input: &Step, keys: &[SortKey]) -> Vec<String> {
    let key = |key: &SortKey| {
        let name = column_text(input, key.column);
        let down = if key.descending { " DESC" } else { "" };
        let nulls = match (key.nulls_first, key.descending) {
            (true, false) => " NULLS FIRST",
            (false, true) => " NULLS LAST",
            _ => "",
        };
        format!("{name}{down}{nulls}")
    };
    keys.iter().map(key).collect()
}

fn part_title(part: &Part) -> String {
    let (first, rest) = part.verb().split_at(1);
    let table = &part.writers()[0].table.name;
    format!("{first}{} on {table}", rest.to_lowercase())
}

/// What an operation on one row does.
fn point_title(op: &PointOp) -> &'static str {
    match op {
        PointOp::Get { lock: Some(_), .. } => "Locking Point Read on",
        PointOp::Get { .. } => "Point Read on",
        PointOp::Modify { formulas: None, .. } => "Point Delete on",
        PointOp::Modify { program, .. } if is_guarded(program) => "Guarded Formula Update on",
        PointOp::Modify { .. } => "Point Update on",
        PointOp::Formula { .. } => "Formula Update on",
        PointOp::Insert { .. } => "Point Insert on",
    }
}

/// What the assignments of an update are.
fn formulas_of(op: &PointOp) -> Option<&Formulas> {
    match op {
        PointOp::Modify { formulas, .. } => formulas.as_ref(),
        PointOp::Formula { formulas, .. } => Some(formulas),
        PointOp::Get { .. } | PointOp::Insert { .. } => None,
    }
}

/// Whether an update is a formula whose guards stand for its conditions.
fn is_guarded(program: &ProgramPlan) -> bool {
    match program.body() {
        Body::Modify(modify) => {
            let mut changes = modify.cases.iter().flatten();
            let shares = changes.all(|one| one.kind.commutes());
            shares && !modify.cases.is_empty() && modify.returning.is_empty()
        }
        Body::Rows { .. } | Body::Top { .. } | Body::First { .. } | Body::Aggregate { .. } => false,
    }
}

fn match_title(matching: &Matching) -> &'static str {
    match (matching.except, matching.all) {
        (false, false) => "Intersect",
        (false, true) => "Intersect All",
        (true, false) => "Except",
        (true, true) => "Except All",
    }
}

fn values_title(rows: usize) -> &'static str {
    match rows {
        0 => "Nothing: no row can pass",
        _ => "Values",
    }
}

/// Keys of a plain scan are over no row.
fn unnamed(column: u32) -> String {
    format!("#{}", column + 1)
}

/// A column of a left row and the columns that a scan adds.
fn joined_text(left: &Step, scan: &Scan, column: u32) -> String {
    match column.checked_sub(left.width) {
        None => column_text(left, column),
        Some(column) => scan_column(scan, column),
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
        Body::First { .. } => "First Rows of ",
        Body::Rows { .. } | Body::Modify(_) => "",
    };
    let how = if access.point && access.index == 0 {
        "Point Reads"
    } else if scan.entries {
        "Index Only Scan"
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
        (None, _) if scan.merges => "all shards, merged",
        (None, _) => "all shards",
    };
    format!("{what}{how}{back}{using} on {}  [{place}]", scan.table.name)
}
