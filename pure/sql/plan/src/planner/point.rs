//! Statements that are one operation on one row given by its full primary key.

use super::query::pushable;
use crate::formula::{
    Case, Cases, Formulas, Judged, Obstacle, guards_of, is_guarded, judge, watched,
};
use crate::step::{Access, KeyPart, PointOp, PointPlan, Scan, Step, StepOp, Writer};
use catalog::Table;
use expr::program::{Body, ChangeKind, FormulaChange, ModifyBody, ProgramPlan};
use expr::{Expr, walk};

impl PointPlan {
    pub(super) fn writes(&self) -> bool {
        !matches!(self.op, PointOp::Get { .. })
    }

    fn new(table: &std::sync::Arc<Table>, key: Vec<Expr>, op: PointOp) -> PointPlan {
        let columns = &table.primary.columns;
        let slot: Vec<usize> = table
            .primary
            .slot_columns
            .iter()
            .map(|column| {
                let place = columns.iter().position(|key| key.column == *column);
                place.expect("partition columns are key columns")
            })
            .collect();
        let slot_is_prefix = slot
            .iter()
            .enumerate()
            .all(|(i, place)| i == *place && !columns[*place].descending);
        PointPlan {
            table: table.clone(),
            key,
            slot,
            slot_is_prefix,
            op,
        }
    }
}

/// The key of a scan that reads at most one row of the primary index.
fn point_key(access: &Access) -> Option<Vec<Expr>> {
    if !access.point || access.index != 0 {
        return None;
    }
    access
        .prefix
        .iter()
        .map(|part| match part {
            KeyPart::One(value) if walk::is_row_independent(value) => Some(value.clone()),
            _ => None,
        })
        .collect()
}

fn point_scan(step: &Step) -> Option<(&Scan, Vec<Expr>)> {
    let scan = plain_scan(step)?;
    let key = point_key(&scan.access)?;
    Some((scan, key))
}

fn plain_scan(step: &Step) -> Option<&Scan> {
    match &step.op {
        StepOp::Scan(scan) if scan.limit.is_none() && scan.gate.is_none() => Some(scan),
        _ => None,
    }
}

/// How an UPDATE or DELETE goes that is not one operation on one row.
pub(super) struct General {
    /// What the assignments are, unless `each` tells.
    pub(super) formulas: Option<Formulas>,
    /// What is done with each row of a list of keys.
    pub(super) each: Option<Box<PointOp>>,
}

/// A query that reads one row.
pub(super) fn query(step: &Step) -> Option<PointPlan> {
    let (scan, key) = point_scan(step)?;
    let op = PointOp::Get {
        program: scan.program.clone(),
        lock: scan.lock,
    };
    Some(PointPlan::new(&scan.table, key, op))
}

/// UPDATE or DELETE (without assignments) of one row. `returning` is over the table's row.
pub(super) fn write(
    step: &Step,
    writer: &Writer,
    assignments: Option<&[(u16, Expr)]>,
    returning: Option<&[Expr]>,
) -> Result<PointPlan, Box<General>> {
    let table = &writer.table;
    let width = table.columns.len() as u32;
    let over_row =
        |expr: &Expr| pushable(expr) && walk::columns(expr).iter().all(|column| *column < width);
    let Some(list) = assignments else {
        return delete(step, writer, returning, &over_row).ok_or_else(|| {
            Box::new(General {
                formulas: None,
                each: None,
            })
        });
    };
    let (judged, cases) = judge(writer, list, &over_row);
    match one_row(step, writer, list, returning, &over_row) {
        Ok((key, filter)) => {
            let op = update(writer, list, returning, filter, judged, cases);
            match key {
                Some(key) => Ok(PointPlan::new(table, key, op)),
                None => Err(Box::new(General {
                    formulas: None,
                    each: Some(op.into()),
                })),
            }
        }
        Err(obstacle) => {
            let are_formulas = judged.iter().all(|one| one.verdict.is_ok());
            let obstacle = are_formulas.then_some(obstacle);
            Err(Box::new(General {
                formulas: Some(Formulas { judged, obstacle }),
                each: None,
            }))
        }
    }
}

/// The key and the rest of the condition of an UPDATE of rows that concern no others. No key: there
/// are several, or a copy of the row on each shard, and no RETURNING.
fn one_row(
    step: &Step,
    writer: &Writer,
    list: &[(u16, Expr)],
    returning: Option<&[Expr]>,
    over_row: &dyn Fn(&Expr) -> bool,
) -> Result<(Option<Vec<Expr>>, Option<Expr>), Obstacle> {
    let scan = plain_scan(step).ok_or(Obstacle::Rows)?;
    let key = point_key(&scan.access);
    let several = scan.access.point && scan.access.index == 0 && returning.is_none();
    if key.is_none() && !several {
        return Err(Obstacle::Rows);
    }
    let replicated = writer.table.replicated;
    if replicated && returning.is_some() {
        return Err(Obstacle::Replicated);
    }
    let Body::Rows { filter, .. } = scan.program.unbound() else {
        return Err(Obstacle::Rows);
    };
    let alone =
        |(column, value): &(u16, Expr)| over_row(value) && watched(writer, *column).is_none();
    let has_mixed = writer.parents.iter().any(|parent| parent.has_mixed);
    let mut others = returning.unwrap_or(&[]).iter();
    let over_row = writer.checks.iter().all(|(_, check)| over_row(check)) && others.all(over_row);
    match list.iter().all(alone) && over_row && !has_mixed {
        true => Ok((key.filter(|_| !replicated), filter)),
        false => Err(Obstacle::Value),
    }
}

/// What an UPDATE does with its row. `cases`: of all assignments, with guards for the checks.
fn update(
    writer: &Writer,
    list: &[(u16, Expr)],
    returning: Option<&[Expr]>,
    filter: Option<Expr>,
    judged: Vec<Judged>,
    cases: Cases,
) -> PointOp {
    let guards = filter
        .as_ref()
        .map(|filter| filter_guards(filter, cases.as_deref().ok()));
    let obstacle = match (&guards, returning) {
        (_, Some(_)) => Some(Obstacle::Returning),
        (Some(None), None) => Some(Obstacle::Condition),
        (None | Some(Some(_)), None) => None,
    };
    let apart = cases.as_ref().err().cloned().flatten();
    let made = cases.is_ok();
    let cases = cases.unwrap_or_default();
    let is_guarded = guards.is_some() || is_guarded(&cases);
    let commutes = cases.iter().flatten().all(|one| one.kind.commutes());
    let formulas = Formulas {
        judged,
        obstacle: match &obstacle {
            _ if apart.is_some() => apart,
            None if is_guarded && !commutes => Some(Obstacle::Mixed),
            other => other.clone().filter(|_| made),
        },
    };
    let kept = match &obstacle {
        // What does not commute has its row to itself.
        _ if !commutes => Vec::new(),
        // It reads what it adds to, and is kept as a formula if that is all it does.
        Some(Obstacle::Returning) if !is_guarded => cases.clone(),
        Some(_) => Vec::new(),
        None if is_guarded => {
            let before = guards.flatten().unwrap_or_default();
            let whole = |case: &Case| before.iter().chain(case).cloned().collect();
            cases.iter().map(whole).collect()
        }
        None => Vec::new(),
    };
    let program = ProgramPlan::new(Body::Modify(Box::new(ModifyBody {
        filter,
        assignments: Some(list.to_vec()),
        checks: writer.checks.clone(),
        shape: writer.shape.clone(),
        returning: returning.unwrap_or(&[]).to_vec(),
        cases: kept,
    })));
    let mut cases = cases;
    match (cases.pop(), obstacle) {
        (Some(changes), None) if !is_guarded => PointOp::Formula {
            changes,
            otherwise: program,
            formulas,
        },
        _ => PointOp::Modify {
            program,
            returning: returning.is_some(),
            formulas: Some(formulas),
        },
    }
}

/// DELETE of one row that concerns no other row.
fn delete(
    step: &Step,
    writer: &Writer,
    returning: Option<&[Expr]>,
    over_row: &dyn Fn(&Expr) -> bool,
) -> Option<PointPlan> {
    let (scan, key) = point_scan(step)?;
    let table = &writer.table;
    let alone = table.secondary.is_empty() && writer.children.is_empty() && !table.replicated;
    let Body::Rows { filter, .. } = scan.program.unbound() else {
        return None;
    };
    if !alone || !returning.unwrap_or(&[]).iter().all(over_row) {
        return None;
    }
    let program = ProgramPlan::new(Body::Modify(Box::new(ModifyBody {
        filter,
        assignments: None,
        checks: Vec::new(),
        shape: writer.shape.clone(),
        returning: returning.unwrap_or(&[]).to_vec(),
        cases: Vec::new(),
    })));
    let op = PointOp::Modify {
        program,
        returning: returning.is_some(),
        formulas: None,
    };
    Some(PointPlan::new(table, key, op))
}

/// The condition as guards in front of changes that only add; `None`: it is more than that.
fn filter_guards(filter: &Expr, cases: Option<&[Case]>) -> Option<Vec<FormulaChange>> {
    // All cases change the same columns in the same way.
    let changes = cases?.first()?;
    let mut guards = Vec::new();
    let added = |column| {
        let mut of_it = changes.iter().filter(|change| change.column == column);
        let adds =
            |change: &FormulaChange| matches!(change.kind, ChangeKind::Add | ChangeKind::Subtract);
        of_it.find(|change| adds(change)).map(|change| change.ty)
    };
    guards_of(filter, &added, &mut guards).then_some(guards)
}

/// INSERT of one row that concerns no other row.
pub(super) fn insert(writer: &Writer, row: &[Expr]) -> Option<PointPlan> {
    let table = &writer.table;
    let alone = table.secondary.is_empty()
        && writer.parents.is_empty()
        && writer.generated.is_empty()
        && !table.replicated;
    if !alone || !row.iter().all(walk::is_row_independent) {
        return None;
    }
    let key = table.primary.columns.iter();
    let key = key
        .map(|key| row[usize::from(key.column)].clone())
        .collect();
    let op = PointOp::Insert {
        row: row.to_vec(),
        shape: writer.shape.clone(),
        checks: writer.checks.clone(),
        rowid: table.rowid(),
    };
    Some(PointPlan::new(table, key, op))
}
