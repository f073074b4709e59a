//! Rows that are locked at once or not at all: found in a snapshot first, then read again by their
//! keys under a lock, in their order and only as many as are wanted.

use super::access::is_repeatable;
use super::normal::split;
use super::query::{Need, Planned, Wish, conjunction, pushable, rows_program};
use super::secured::is_leakproof;
use super::{Planner, columns_of, remap};
use crate::step::{Access, Scan, Step, StepOp};
use base::{Datum, SqlError, Type};
use bind::refusal;
use bind::rel::{Rel, SortKey};
use catalog::Table;
use expr::{Expr, list};
use std::sync::Arc;
use txn::LockMode;

/// The parts of a query of one table.
struct Parts {
    table: Arc<Table>,
    conditions: Vec<Expr>,
    exprs: Vec<Expr>,
    keys: Vec<SortKey>,
}

impl Parts {
    fn of(rel: Rel, words: &str) -> Result<Parts, SqlError> {
        let (rel, keys) = match rel {
            Rel::Sort { input, keys } => (*input, keys),
            rel => (rel, Vec::new()),
        };
        let Rel::Project { mut input, exprs } = rel else {
            return Err(refusal(words, "this query"));
        };
        let mut conditions = Vec::new();
        while let Rel::Filter {
            input: inner,
            conditions: more,
            secure,
        } = *input
        {
            if secure && !conditions.iter().all(is_leakproof) {
                let what = "conditions that may fail on a table with row-level security";
                return Err(refusal(words, what));
            }
            more.into_iter()
                .for_each(|condition| split(condition, &mut conditions));
            input = inner;
        }
        let Rel::Table { table, .. } = *input else {
            return Err(refusal(words, "subqueries in the select list or in WHERE"));
        };
        Ok(Parts {
            table,
            conditions,
            exprs,
            keys,
        })
    }

    /// The rows' sort keys and primary keys, in their order.
    fn candidates(&self) -> Rel {
        let mut exprs: Vec<Expr> = Vec::new();
        let mut keys = Vec::new();
        for key in &self.keys {
            keys.push(SortKey {
                column: exprs.len() as u32,
                ..*key
            });
            exprs.push(self.exprs[key.column as usize].clone());
        }
        for column in &self.table.primary.columns {
            let at = column.column;
            exprs.push(Expr::Column(
                u32::from(at),
                self.table.columns[usize::from(at)].ty,
            ));
        }
        let mut rel = Rel::Table {
            table: self.table.clone(),
            lock: None,
        };
        if !self.conditions.is_empty() {
            rel = rel.filtered(self.conditions.clone());
        }
        let input = Box::new(Rel::Project {
            input: Box::new(rel),
            exprs,
        });
        match keys.is_empty() {
            true => *input,
            false => Rel::Sort { input, keys },
        }
    }
}

impl Planner<'_, '_> {
    /// Plans rows that are locked one after the other.
    pub(super) fn locked(
        &mut self,
        input: Rel,
        (mode, skips): (LockMode, bool),
        conditions: Vec<Expr>,
        need: &Need,
        wish: Wish,
    ) -> Result<Planned, SqlError> {
        let words = if skips { "SKIP LOCKED" } else { "NOWAIT" };
        let parts = Parts::of(input, words)?;
        if parts.exprs.iter().any(|expr| !is_repeatable(expr)) {
            return Err(refusal(words, "volatile functions in the select list"));
        }
        let found = self.found(&parts)?;
        let first = parts.keys.len() as u32;
        let layout: Vec<u32> = need.union(&columns_of(&conditions)).copied().collect();
        let exprs: Vec<Expr> = layout
            .iter()
            .map(|column| parts.exprs[*column as usize].clone())
            .collect();
        let (pushed, mut rest): (Vec<Expr>, Vec<Expr>) =
            parts.conditions.into_iter().partition(pushable);
        if !rest.iter().all(is_repeatable) {
            return Err(refusal(
                words,
                "volatile functions or outer columns in WHERE",
            ));
        }
        let columns: Vec<u32> = columns_of(exprs.iter().chain(&rest)).into_iter().collect();
        rest.iter_mut().for_each(|expr| remap(expr, &columns));
        let mut filter = conjunction(rest);
        filter.iter_mut().for_each(list::prepare);
        let limit = wish.limit.filter(|_| wish.order.is_empty());
        let scan = Scan {
            program: rows_program(&parts.table, &columns, pushed),
            width: columns.len() as u32,
            access: any_key(),
            lock: Some(mode),
            newest: false,
            candidates: false,
            gate: None,
            merges: false,
            entries: false,
            limit,
            table: parts.table,
        };
        let rows = found.rows;
        let op = StepOp::Locked {
            input: Box::new(found),
            scan: Box::new(scan),
            first,
            filter,
            skips,
        };
        let step = self.step(columns.len() as u32, rows, op);
        let mut exprs = exprs;
        exprs.iter_mut().for_each(|expr| remap(expr, &columns));
        let step = self.project(step, exprs);
        let planned = Planned {
            step,
            layout,
            ordered: false,
        };
        Ok(self.finish(planned, conditions))
    }

    /// The candidates: from an index in their order if there is one, else sorted.
    fn found(&mut self, parts: &Parts) -> Result<Step, SqlError> {
        let width = parts.keys.len() + parts.table.primary.columns.len();
        let all: Need = (0..width as u32).collect();
        let many = || Some(Expr::Const(Datum::Int(i64::MAX / 2), Type::Int8));
        let mut planned = None;
        if !parts.keys.is_empty() {
            let limit = many();
            let order = Vec::new();
            let sorted = self.rel(parts.candidates(), Vec::new(), &all, Wish { order, limit })?;
            planned = (!has_sort(&sorted.step)).then_some(sorted);
        }
        let planned = match planned {
            Some(planned) => planned,
            None => self.rel(parts.candidates(), Vec::new(), &all, Wish::default())?,
        };
        let wanted: Vec<u32> = (0..width as u32).collect();
        let mut step = self.arrange(planned, &wanted);
        reads_candidates(&mut step);
        Ok(step)
    }
}

/// Whether rows are sorted in a step over a scan.
fn has_sort(step: &Step) -> bool {
    match &step.op {
        StepOp::Sort { .. } => true,
        StepOp::Filter { input, .. } | StepOp::Project { input, .. } => has_sort(input),
        _ => false,
    }
}

/// Lets the scan under these steps read a snapshot.
fn reads_candidates(step: &mut Step) {
    match &mut step.op {
        StepOp::Scan(scan) => scan.candidates = true,
        StepOp::Sort { input, .. }
        | StepOp::Filter { input, .. }
        | StepOp::Project { input, .. } => reads_candidates(input),
        _ => {}
    }
}

/// Rows are read by keys that come from elsewhere.
fn any_key() -> Access {
    Access {
        index: 0,
        prefix: Vec::new(),
        rows: Vec::new(),
        low: None,
        high: None,
        slot: None,
        point: false,
        reverse: false,
        in_order: false,
    }
}
