//! Which assignments of an UPDATE are formulas, and what stands in the way of the others.
//!
//! ```text
//! c + x, c - x            adds       integers and numeric
//! least(c, x), greatest   extremes   integers, numeric(p, s), dates and timestamps
//! x                       constant   any type
//! c || x                  appends    text, varchar, bytea
//! c * x                   scales     integers and numeric
//! CASE WHEN c >= x ..     cases      adds in each case
//! f(columns of the row)   ordered    arithmetic, CASE, COALESCE and the like
//! any other f             program    computed where the row is, which it has to itself
//! ```
//!
//! `x` is over no columns. A condition on a column that only adds (`AND c >= 5`, a CHECK) becomes a
//! guard of the formula. The statement is carried out as a formula if all its assignments are
//! formulas, none is a program, and nothing else reads the row.

use crate::step::Writer;
use crate::text::expr_text;
use base::{Datum, Type};
use catalog::{IndexColumn, Table};
use core::fmt;
use expr::program::{ChangeKind, FormulaChange, is_computable, makes_null, uncomputable};
use expr::{Compare, Expr, Func, TextFunc, walk};

/// What an assignment of an UPDATE is.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The column.
    pub column: u16,
    /// Its new value.
    pub value: Expr,
    /// What the assignment is; an error says why it is no formula.
    pub verdict: Result<Class, Obstacle>,
    /// Why the value of a program is none that is folded in order.
    pub alone: Option<Alone>,
}

/// Why a value over the columns of its row is computed only where nobody else changes the row.
#[derive(Clone, PartialEq, Debug)]
pub enum Alone {
    /// This CHECK reads the column.
    Check(String),
    /// The value may be NULL, and the column may not.
    Null,
    /// The value depends on the session's time zone, which has other rules on other days.
    Zone,
    /// It is not known when this part of it fails, and how long it may be.
    Part(Expr),
    /// It has too many parts.
    Long,
}

impl Judged {
    /// How EXPLAIN says what the assignment is, and of which class or why not.
    #[must_use]
    pub fn text(&self, names: &dyn Fn(u32) -> String) -> (&'static str, String) {
        let alone = self.alone.as_ref().map(|alone| alone.text(names));
        match &self.verdict {
            Ok(class) => ("Formula", format!("{class}{}", alone.unwrap_or_default())),
            Err(obstacle) => ("No Formula", obstacle.to_string()),
        }
    }
}

impl Alone {
    /// How EXPLAIN says it, behind the class.
    fn text(&self, names: &dyn Fn(u32) -> String) -> String {
        match self {
            Alone::Check(name) => format!(": check constraint {name} reads the column"),
            Alone::Null => ": it may be NULL, and the column may not".into(),
            Alone::Zone => ": it depends on the time zone".into(),
            Alone::Part(part) => format!(": no bounds are known of {}", expr_text(part, names)),
            Alone::Long => ": it has too many parts".into(),
        }
    }
}

/// Class of an assignment that is a formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Adds to its column.
    Adds,
    /// Takes the smaller or larger of its column and a value.
    Extreme,
    /// Sets its column to a value.
    Constant,
    /// Appends to its column.
    Appends,
    /// Multiplies its column.
    Scales,
    /// Adds to its column; how much, conditions on columns that are added to tell.
    Cases,
    /// Computed from the columns of the row, in the order of the formulas.
    Ordered,
    /// Computed from the columns of a row that nobody else changes, for a reason ([`Alone`]).
    Program,
}

/// Why an assignment is no formula, or a statement is not carried out as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// The column is part of a key or an index.
    Indexed,
    /// The column is generated, or another one is generated from it.
    Generated,
    /// A foreign key has the column.
    ForeignKey,
    /// This CHECK reads the column, and is no comparison of it with a constant.
    Check(String),
    /// A constraint of the table does not hold for all its rows yet.
    Unchecked,
    /// The value depends on more than the row.
    Value,
    /// The statement may change other rows than those that their keys name.
    Rows,
    /// The table is replicated.
    Replicated,
    /// The condition reads the row, and is no comparison of an added column with a constant.
    Condition,
    /// RETURNING reads the row.
    Returning,
    /// A CHECK has to be looked at where ON CONFLICT cannot.
    Checked,
    /// ON CONFLICT names another index than the primary key.
    Arbiter,
    /// All cases of all assignments are more than a formula has.
    Cases,
    /// A change that is no addition stands beside a condition.
    Mixed,
    /// Each assignment would have to be the first.
    Circle,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Adds => "adds",
            Class::Extreme => "extreme",
            Class::Constant => "constant",
            Class::Appends => "appends",
            Class::Scales => "scales",
            Class::Cases => "cases",
            Class::Ordered => "ordered",
            Class::Program => "program",
        })
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Indexed => "the column is part of a key or an index",
            Obstacle::Generated => "a generated column or an index computes from the column",
            Obstacle::ForeignKey => "a foreign key has the column",
            Obstacle::Check(name) => return write!(f, "check constraint {name} reads the column"),
            Obstacle::Unchecked => "a check constraint is not validated",
            Obstacle::Value => "the value depends on more than the row",
            Obstacle::Rows => "the condition does not name rows by their keys",
            Obstacle::Replicated => "the table is replicated",
            Obstacle::Condition => "the condition reads the row",
            Obstacle::Returning => "RETURNING reads the row",
            Obstacle::Checked => "a check constraint reads the row",
            Obstacle::Arbiter => "the conflict is not with the primary key",
            Obstacle::Cases => return write!(f, "together they have over {CASES_MAX} cases"),
            Obstacle::Mixed => "with conditions, only additions share a row",
            Obstacle::Circle => "each assignment reads what another one sets",
        })
    }
}

/// The assignments of an UPDATE: each judged alone, and what they make together.
#[derive(Clone, Debug)]
pub struct Formulas {
    /// Each assignment.
    pub judged: Vec<Judged>,
    /// Why the statement is not carried out as a formula although all assignments are formulas;
    /// `None`: it is, or some are not.
    pub obstacle: Option<Obstacle>,
}

/// What a statement does to its row in one case: guards that tell the case, changes, and guards
/// that stand for CHECK constraints.
pub(crate) type Case = Vec<FormulaChange>;

/// Most cases of a statement.
const CASES_MAX: usize = 8;

/// The cases of all assignments together, or why they make none although each alone would; without
/// a reason, not all are changes.
pub(crate) type Cases = Result<Vec<Case>, Option<Obstacle>>;

/// Judges the assignments, and makes the cases of what they do. `row_value` tells whether a value
/// is over the row alone.
pub(crate) fn judge(
    writer: &Writer,
    list: &[(u16, Expr)],
    row_value: &dyn Fn(&Expr) -> bool,
) -> (Vec<Judged>, Cases) {
    let (judged, cases) = judge_with(writer, list, row_value, &added_columns(writer, list));
    let share = match &cases {
        Err(reason) => *reason != Some(Obstacle::Cases),
        Ok(all) => {
            let mut changes = all.iter().flatten();
            all.len() == 1 || changes.all(|one| one.kind.commutes())
        }
    };
    if share {
        return (judged, cases);
    }
    // Where the cases cannot stand apart, each CASE is a value that is computed.
    let (computed, case) = judge_with(writer, list, row_value, &[]);
    match case {
        Ok(case) => (computed, Ok(case)),
        Err(_) => (judged, cases),
    }
}

/// [`judge`]; CASE may ask for the columns `added`.
fn judge_with(
    writer: &Writer,
    list: &[(u16, Expr)],
    row_value: &dyn Fn(&Expr) -> bool,
    added: &[(u16, Type)],
) -> (Vec<Judged>, Cases) {
    let mut all = Ok(vec![Vec::with_capacity(list.len())]);
    let mut guards = Vec::new();
    let judged = list.iter().map(|(column, value)| {
        let judged = judge_one(writer, *column, value, row_value, added, &mut guards);
        let (verdict, cases) = match judged {
            Ok((class, cases)) => (Ok(class), cases),
            Err(obstacle) => (Err(obstacle), None),
        };
        all = match (&all, cases) {
            (_, None) | (Err(None), _) => Err(None),
            (Ok(all), Some(cases)) if all.len() * cases.len() <= CASES_MAX => {
                Ok(each_with_each(all, &cases))
            }
            (Ok(_) | Err(Some(_)), Some(_)) => Err(Some(Obstacle::Cases)),
        };
        let is_program = matches!(verdict, Ok(Class::Program));
        Judged {
            column: *column,
            value: value.clone(),
            verdict,
            alone: is_program.then(|| why_alone(writer, *column, value)),
        }
    });
    let judged = judged.collect();
    for case in all.iter_mut().flatten() {
        // Conditions are on the row as it was.
        case.sort_by_key(|change| !change.kind.is_guard());
        if !readers_first(case) {
            all = Err(Some(Obstacle::Circle));
            break;
        }
        case.extend(guards.iter().cloned());
    }
    (judged, all)
}

/// Orders changes so that each is computed from columns that are still as they were. Returns
/// whether there is such an order: `SET a = b, b = a` has none.
fn readers_first(case: &mut Case) -> bool {
    for place in 0..case.len() {
        let is_read = |one: &FormulaChange| {
            let mut others = case[place..].iter().filter(|it| it.column != one.column);
            others.any(|it| walk::columns(&it.operand).contains(&u32::from(one.column)))
        };
        match case[place..].iter().position(|one| !is_read(one)) {
            Some(next) => case[place..=place + next].rotate_right(1),
            None => return false,
        }
    }
    true
}

/// Each of `all` with each of `cases` behind it.
fn each_with_each(all: &[Case], cases: &[Case]) -> Vec<Case> {
    let behind = |before: &Case| {
        let before = before.clone();
        let both = move |case: &Case| before.iter().chain(case).cloned().collect();
        cases.iter().map(both)
    };
    all.iter().flat_map(behind).collect()
}

/// The columns that the assignments only add to, with their types: those that a CASE may ask for.
fn added_columns(writer: &Writer, list: &[(u16, Expr)]) -> Vec<(u16, Type)> {
    let table = &writer.table;
    let adds = |(column, value): &&(u16, Expr)| match uncast(value) {
        Expr::Case { .. } => true,
        _ => matches!(change_of(table, *column, value), (Class::Adds, _)),
    };
    let typed = |(column, _): &(u16, Expr)| (*column, table.columns[usize::from(*column)].ty);
    list.iter().filter(adds).map(typed).collect()
}

/// Judges the assignments of ON CONFLICT DO UPDATE, which are over the existing row and then the
/// proposed one. `reads`: why the statement reads the existing row in any case.
pub(crate) fn judge_conflict(
    writer: &Writer,
    list: &[(u16, Expr)],
    reads: Option<Obstacle>,
) -> (Formulas, Option<Vec<FormulaChange>>) {
    let width = writer.table.columns.len() as u32;
    let over_row = |expr: &Expr| walk::travels(expr);
    let outer = |(column, value): &(u16, Expr)| {
        let mut value = value.clone();
        walk::map(&mut value, &mut |node| {
            if let Expr::Column(at, ty) = node
                && *at >= width
            {
                *node = Expr::Outer(0, *at - width, *ty);
            }
        });
        (*column, value)
    };
    let inner: Vec<(u16, Expr)> = list.iter().map(outer).collect();
    let (mut judged, cases) = judge(writer, &inner, &over_row);
    for (judged, (_, value)) in judged.iter_mut().zip(list) {
        judged.value.clone_from(value);
    }
    let obstacle = match cases.as_deref() {
        Err(reason) => reason.clone(),
        Ok(_) if writer.table.replicated => Some(Obstacle::Replicated),
        Ok([_, _, ..]) => Some(Obstacle::Condition),
        Ok(cases) if is_guarded(cases) => Some(Obstacle::Checked),
        Ok(_) => reads,
    };
    let cases = cases.ok().filter(|_| obstacle.is_none());
    let changes = cases.and_then(|mut cases| cases.pop());
    (Formulas { judged, obstacle }, changes)
}

/// The changes for one proposed row (`judge_conflict`).
pub fn over_proposed(changes: &[FormulaChange], row: &[Datum]) -> Vec<FormulaChange> {
    let mut changes = changes.to_vec();
    for change in &mut changes {
        walk::map(&mut change.operand, &mut |node| {
            if let Expr::Outer(0, at, ty) = node {
                *node = Expr::Const(row[*at as usize].clone(), *ty);
            }
        });
    }
    changes
}

/// Whether any of the changes is a guard.
pub(crate) fn is_guarded(cases: &[Case]) -> bool {
    cases.iter().flatten().any(|change| change.kind.is_guard())
}

/// The class of an assignment, and what it does in each case unless it is a program. `added`: the
/// columns that a CASE may ask for.
fn judge_one(
    writer: &Writer,
    column: u16,
    value: &Expr,
    row_value: &dyn Fn(&Expr) -> bool,
    added: &[(u16, Type)],
    guards: &mut Vec<FormulaChange>,
) -> Result<(Class, Option<Vec<Case>>), Obstacle> {
    if let Some(obstacle) = watched(writer, column) {
        return Err(obstacle);
    }
    let table = &writer.table;
    let (class, cases) = match cases_of(table, column, value, added) {
        Some(cases) => (Class::Cases, Some(cases)),
        None => {
            let (class, change) = change_of(table, column, value);
            (class, change.map(|change| vec![vec![change]]))
        }
    };
    if !row_value(value) {
        return Err(Obstacle::Value);
    }
    if !writer.all_valid {
        return Err(Obstacle::Unchecked);
    }
    let ty = table.columns[usize::from(column)].ty;
    for (name, check) in &writer.checks {
        if !walk::columns(check).contains(&u32::from(column)) {
            continue;
        }
        match class {
            // A program looks at the checks as well.
            Class::Ordered | Class::Program => return Ok((Class::Program, None)),
            Class::Adds | Class::Cases
                if guards_of(check, &|wanted| (wanted == column).then_some(ty), guards) => {}
            _ => return Err(Obstacle::Check(name.clone())),
        }
    }
    Ok((class, cases))
}

/// Why a value is a program, and none that is folded in order.
fn why_alone(writer: &Writer, column: u16, value: &Expr) -> Alone {
    let described = &writer.table.columns[usize::from(column)];
    let mut checks = writer.checks.iter();
    let check = checks.find(|(_, check)| walk::columns(check).contains(&u32::from(column)));
    match (check, uncomputable(value)) {
        (Some((name, _)), _) => Alone::Check(name.clone()),
        (None, Some(Expr::Call(Func::Zoned(_), ..))) => Alone::Zone,
        (None, Some(part)) => Alone::Part(part.clone()),
        (None, None) if described.not_null && is_computable(value) => Alone::Null,
        (None, None) => Alone::Long,
    }
}

/// The cases of a CASE whose conditions are single comparisons of added columns, and that adds to
/// its column in each; `None`: the value is something else.
fn cases_of(table: &Table, column: u16, value: &Expr, added: &[(u16, Type)]) -> Option<Vec<Case>> {
    let Expr::Case {
        arms, otherwise, ..
    } = uncast(value)
    else {
        return None;
    };
    if arms.len() >= CASES_MAX {
        return None;
    }
    let type_of = |wanted: u16| {
        let mut all = added.iter();
        all.find_map(|(column, ty)| (*column == wanted).then_some(*ty))
    };
    let mut cases = Vec::with_capacity(arms.len() + 1);
    // That no condition so far is true.
    let mut before: Case = Vec::new();
    for (condition, value) in arms {
        let mut guards = Vec::new();
        if !guards_of(condition, &type_of, &mut guards) || guards.len() != 1 {
            return None;
        }
        let change = added_by(table, column, value)?;
        let case = before.iter().chain(&guards).cloned().chain([change]);
        cases.push(case.collect());
        let mut guard = guards.pop()?;
        guard.kind = guard.kind.opposite()?;
        before.push(guard);
    }
    before.push(added_by(table, column, otherwise)?);
    cases.push(before);
    Some(cases)
}

/// What a value adds to its column: nothing if it is the column.
fn added_by(table: &Table, column: u16, value: &Expr) -> Option<FormulaChange> {
    let ty = table.columns[usize::from(column)].ty;
    let own = Own {
        column: u32::from(column),
        ty,
    };
    if own.is(uncast(value)) {
        let zero = match ty {
            Type::Int2 | Type::Int4 | Type::Int8 => Datum::Int(0),
            Type::Numeric(_) => Datum::Decimal(0.into()),
            _ => return None,
        };
        return Some(FormulaChange {
            column,
            ty,
            kind: ChangeKind::Add,
            operand: Expr::Const(zero, ty),
        });
    }
    match change_of(table, column, value) {
        (Class::Adds, change) => change,
        _ => None,
    }
}

/// Why a change of the column concerns more than its row.
pub(crate) fn watched(writer: &Writer, column: u16) -> Option<Obstacle> {
    let table = &writer.table;
    let in_key = |keys: &[IndexColumn]| keys.iter().any(|key| key.column == column);
    let mut indexes = table.indexes();
    if indexes.any(|index| in_key(&index.columns) || index.slot_columns.contains(&column)) {
        return Some(Obstacle::Indexed);
    }
    let reads = |(own, value): &(u16, Expr)| {
        *own == column || walk::columns(value).contains(&u32::from(column))
    };
    if writer.generated.iter().any(reads) {
        return Some(Obstacle::Generated);
    }
    let mut parents = writer.parents.iter();
    let mut children = writer.children.iter();
    let keyed = parents.any(|parent| parent.declared.contains(&column))
        || children.any(|child| child.parent_columns.contains(&column));
    keyed.then_some(Obstacle::ForeignKey)
}

/// The class of an assignment, and its change unless it is a program.
fn change_of(table: &Table, column: u16, value: &Expr) -> (Class, Option<FormulaChange>) {
    let described = &table.columns[usize::from(column)];
    let found = if walk::is_row_independent(value) {
        let kind = match described.not_null {
            true => ChangeKind::SetNotNull,
            false => ChangeKind::Set,
        };
        Some((Class::Constant, kind, value.clone()))
    } else {
        let own = Own {
            column: u32::from(column),
            ty: described.ty,
        };
        let computed = || {
            let null = described.not_null && (reads_null(table, value) || makes_null(value));
            let computable = !null && is_computable(value);
            computable.then(|| (Class::Ordered, ChangeKind::Compute, value.clone()))
        };
        own.function(value).or_else(computed)
    };
    match found {
        None => (Class::Program, None),
        Some((class, kind, operand)) => {
            let change = FormulaChange {
                column,
                ty: described.ty,
                kind,
                operand,
            };
            (class, Some(change))
        }
    }
}

/// Whether the value reads a column that may be NULL.
fn reads_null(table: &Table, value: &Expr) -> bool {
    let mut columns = walk::columns(value).into_iter();
    // Columns of other rows are no column of the table.
    let keeps = |column: u32| table.columns.get(column as usize);
    columns.any(|column| keeps(column).is_none_or(|column| !column.not_null))
}

/// The value before the cast to the type of its column.
fn uncast(value: &Expr) -> &Expr {
    match value {
        Expr::Cast {
            arg,
            explicit: false,
            ..
        } => arg,
        other => other,
    }
}

/// The column that an assignment changes.
struct Own {
    column: u32,
    ty: Type,
}

impl Own {
    fn is(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Column(column, _) => *column == self.column,
            // The same text.
            Expr::Cast { arg, to, .. } if *to == Type::Text => {
                matches!(arg.ty(), Type::Varchar(_)) && self.is(arg)
            }
            _ => false,
        }
    }

    /// The function of the column and one value that `value` is.
    fn function(&self, value: &Expr) -> Option<(Class, ChangeKind, Expr)> {
        let Expr::Call(func, args, ty) = uncast(value) else {
            return None;
        };
        let number = |ty: Type| ty.is_integer() || matches!(ty, Type::Numeric(_));
        let (class, kind, commutes) = match func {
            Func::Add => (Class::Adds, ChangeKind::Add, true),
            Func::Sub => (Class::Adds, ChangeKind::Subtract, false),
            Func::Least => (Class::Extreme, ChangeKind::Least, true),
            Func::Greatest => (Class::Extreme, ChangeKind::Greatest, true),
            Func::Mul => (Class::Scales, ChangeKind::Multiply, true),
            Func::Text(TextFunc::Concat) => (Class::Appends, ChangeKind::Append, false),
            _ => return None,
        };
        let fits = match class {
            Class::Adds | Class::Scales => number(*ty) && number(self.ty),
            // Of equal values of numeric, each has its own number of digits.
            Class::Extreme => match self.ty {
                Type::Int2 | Type::Int4 | Type::Int8 => ty.is_integer(),
                Type::Numeric(Some(_)) => matches!(ty, Type::Numeric(_)),
                Type::Date | Type::Timestamp(_) | Type::Timestamptz(_) => {
                    ty.without_modifiers() == self.ty.without_modifiers()
                }
                _ => false,
            },
            Class::Appends => matches!(self.ty, Type::Text | Type::Varchar(_) | Type::Bytea),
            Class::Constant | Class::Cases | Class::Ordered | Class::Program => false,
        };
        let [left, right] = args.as_slice() else {
            return None;
        };
        let operand = if self.is(left) {
            right.clone()
        } else if self.is(right) && commutes {
            left.clone()
        } else if class == Class::Appends {
            // `(c || x) || y` appends `x || y`.
            let (_, _, first) = self.function(left).filter(|(inner, ..)| *inner == class)?;
            Expr::Call(func.clone(), vec![first, right.clone()], *ty)
        } else {
            return None;
        };
        let independent = walk::is_row_independent(&operand);
        (fits && independent).then_some((class, kind, operand))
    }
}

/// Appends the guards that say what the condition says. `added` gives the types of the columns that
/// may have guards. Returns false, with undefined guards, if the condition is no conjunction of
/// comparisons of such columns with values over no columns.
pub(crate) fn guards_of(
    condition: &Expr,
    added: &dyn Fn(u16) -> Option<Type>,
    guards: &mut Vec<FormulaChange>,
) -> bool {
    if let Expr::And(all) = condition {
        return all.iter().all(|one| guards_of(one, added, guards));
    }
    let Expr::Call(Func::Compare(compare), sides, _) = condition else {
        return false;
    };
    let [left, right] = sides.as_slice() else {
        return false;
    };
    let (column, operand, turned) = match (left, right) {
        (Expr::Column(column, _), operand) => (*column, operand, false),
        (operand, Expr::Column(column, _)) => (*column, operand, true),
        _ => return false,
    };
    let kind = match (compare, turned) {
        (Compare::Ge, false) | (Compare::Le, true) => ChangeKind::AtLeast,
        (Compare::Gt, false) | (Compare::Lt, true) => ChangeKind::Above,
        (Compare::Le, false) | (Compare::Ge, true) => ChangeKind::AtMost,
        (Compare::Lt, false) | (Compare::Gt, true) => ChangeKind::Below,
        _ => return false,
    };
    let column = column as u16;
    match added(column) {
        Some(ty) if walk::is_row_independent(operand) => {
            guards.push(FormulaChange {
                column,
                ty,
                kind,
                operand: operand.clone(),
            });
            true
        }
        Some(_) | None => false,
    }
}
