//! Statements that are one operation on one row given by its full primary key.

use super::query::pushable;
use crate::step::{Access, KeyPart, PointOp, PointPlan, Scan, Step, StepOp, Writer};
use base::Type;
use catalog::{IndexColumn, Table};
use expr::program::{Body, FormulaChange, ModifyBody, ProgramPlan};
use expr::{Expr, Func, walk};

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
    let StepOp::Scan(scan) = &step.op else {
        return None;
    };
    if scan.limit.is_some() || scan.gate.is_some() {
        return None;
    }
    let key = point_key(&scan.access)?;
    Some((scan, key))
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
) -> Option<PointPlan> {
    let (scan, key) = point_scan(step)?;
    let table = &writer.table;
    if table.replicated {
        return None;
    }
    let Body::Rows { filter, .. } = scan.program.unbound() else {
        return None;
    };
    let width = table.columns.len() as u32;
    let over_row =
        |expr: &Expr| pushable(expr) && walk::columns(expr).iter().all(|column| *column < width);
    if !returning.unwrap_or(&[]).iter().all(over_row) {
        return None;
    }
    let delete = assignments.is_none();
    match assignments {
        None if !table.secondary.is_empty() || !writer.children.is_empty() => return None,
        None => {}
        Some(list) => {
            let simple = list
                .iter()
                .all(|(column, value)| over_row(value) && !is_watched(writer, *column));
            let has_mixed = writer.parents.iter().any(|parent| parent.has_mixed);
            if !simple || has_mixed || !writer.checks.iter().all(|(_, check)| over_row(check)) {
                return None;
            }
        }
    }
    let changes = assignments.and_then(|list| formula(table, writer, list));
    let program = ProgramPlan::new(Body::Modify(Box::new(ModifyBody {
        filter: filter.clone(),
        assignments: assignments.map(<[_]>::to_vec),
        checks: if delete {
            Vec::new()
        } else {
            writer.checks.clone()
        },
        shape: writer.shape.clone(),
        returning: returning.unwrap_or(&[]).to_vec(),
        // Without RETURNING it is a formula itself.
        changes: changes.clone().filter(|_| returning.is_some()),
    })));
    let modify = (program, delete, returning.is_some());
    if let (None, None, Some(changes)) = (&filter, returning, changes) {
        let op = PointOp::Formula {
            changes,
            otherwise: modify.0,
        };
        return Some(PointPlan::new(table, key, op));
    }
    let (program, delete, returning) = modify;
    Some(PointPlan::new(
        table,
        key,
        PointOp::Modify {
            program,
            delete,
            returning,
        },
    ))
}

/// Whether a change of the column concerns more than its row.
fn is_watched(writer: &Writer, column: u16) -> bool {
    let table = &writer.table;
    let in_key = |keys: &[IndexColumn]| keys.iter().any(|key| key.column == column);
    table
        .indexes()
        .any(|index| in_key(&index.columns) || index.slot_columns.contains(&column))
        || writer
            .parents
            .iter()
            .any(|parent| parent.declared.contains(&column))
        || writer
            .children
            .iter()
            .any(|child| child.parent_columns.contains(&column))
}

/// The assignments as commutative changes.
fn formula(table: &Table, writer: &Writer, list: &[(u16, Expr)]) -> Option<Vec<FormulaChange>> {
    list.iter()
        .map(|(column, value)| {
            let described = &table.columns[usize::from(*column)];
            let checked = !writer.all_valid
                || writer
                    .checks
                    .iter()
                    .any(|(_, check)| walk::columns(check).contains(&u32::from(*column)));
            if checked
                || !matches!(
                    described.ty,
                    Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric(_)
                )
            {
                return None;
            }
            let (operand, negated) = addition(value, u32::from(*column))?;
            Some(FormulaChange {
                column: *column,
                ty: described.ty,
                operand,
                negated,
            })
        })
        .collect()
}

/// `column + x`, `x + column` or `column - x`.
fn addition(value: &Expr, column: u32) -> Option<(Expr, bool)> {
    let inner = match value {
        Expr::Cast {
            arg,
            explicit: false,
            ..
        } => arg.as_ref(),
        other => other,
    };
    let Expr::Call(func @ (Func::Add | Func::Sub), sides, ty) = inner else {
        return None;
    };
    if !(ty.is_integer() || matches!(ty, Type::Numeric(_))) {
        return None;
    }
    let [left, right] = sides.as_slice() else {
        return None;
    };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(c, _) if *c == column);
    let negated = *func == Func::Sub;
    let operand = if is_column(left) {
        right
    } else if is_column(right) && !negated {
        left
    } else {
        return None;
    };
    walk::is_row_independent(operand).then(|| (operand.clone(), negated))
}

/// INSERT of one row that concerns no other row.
pub(super) fn insert(writer: &Writer, row: &[Expr]) -> Option<PointPlan> {
    let table = &writer.table;
    let alone = table.secondary.is_empty() && writer.parents.is_empty() && !table.replicated;
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
