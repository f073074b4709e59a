//! COPY.

use super::write::Purpose;
use super::{Planner, bound_query, run_plan};
use crate::plan::{Plan, PlanKind};
use crate::step::{Action, CopyFromPlan, CopyToPlan, StepOp};
use base::{ArrayKind, SqlError, SqlState, Type};
use bind::rel::Rel;
use bind::{Binder, BoundQuery};
use catalog::{PolicyCommand, Table};
use expr::resolve::{self, Context};
use expr::{Expr, walk};
use parse::copy::{CopyOptions, Direction, Format};
use parse::{CopySource, CopyStatement};
use pg_catalog::names::in_known_schema;
use rights::Privileges;
use std::sync::Arc;

/// What a client must be told before COPY data flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyShape {
    /// From the client (CopyInResponse), otherwise to it.
    pub from_client: bool,
    /// The binary format.
    pub binary: bool,
    /// Number of columns.
    pub columns: usize,
}

impl Plan {
    /// For COPY: which way, and the form of the data.
    pub fn copy_shape(&self) -> Option<CopyShape> {
        let PlanKind::Run(run) = &self.kind else {
            return None;
        };
        match &run.action {
            Action::CopyFrom(plan) => Some(CopyShape {
                from_client: true,
                binary: plan.options.format == Format::Binary,
                columns: plan.columns.len(),
            }),
            Action::CopyTo(plan) => Some(CopyShape {
                from_client: false,
                binary: plan.options.format == Format::Binary,
                columns: plan.columns.len(),
            }),
            _ => None,
        }
    }
}

fn column_positions(table: &Table, names: &[String]) -> Result<Vec<u16>, SqlError> {
    if names.is_empty() {
        let written = |at: &u16| table.column_at(*at).generated.is_none();
        return Ok(table.shown().into_iter().filter(written).collect());
    }
    let mut found = Vec::new();
    for name in names {
        let place = table.column(name).filter(|(_, column)| !column.hidden);
        let Some((place, _)) = place else {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if table.column_at(place).generated.is_some() {
            let message = format!("column \"{name}\" is a generated column");
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
                .detail("Generated columns cannot be used in COPY."));
        }
        if found.contains(&place) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        found.push(place);
    }
    Ok(found)
}

/// # Errors
/// 0A000 for rows in the binary format: their fields are the catalog's.
fn check_rows(ty: Type, format: Format) -> Result<(), SqlError> {
    let is_row = matches!(ty.element().unwrap_or(ty), Type::Composite(_));
    match is_row && format == Format::Binary {
        true => Err(
            bind::unsupported("COPY of composite types in binary format")
                .hint("Use the text or CSV format."),
        ),
        false => Ok(()),
    }
}

/// A value as COPY writes it: labels of enums, and in text the names that the oids of `reg...`
/// types stand for.
fn named_value(value: Expr, format: Format) -> Result<Expr, SqlError> {
    let ty = value.ty();
    check_rows(ty, format)?;
    let named =
        ty.user_id().is_some() || format != Format::Binary && !pg_catalog::output::is_plain(ty);
    let to = match ty.element() {
        Some(_) if format == Format::Binary => Type::Array(ArrayKind::Text),
        _ => Type::Text,
    };
    match named {
        true => resolve::coerce(value, to, Context::Explicit),
        false => Ok(value),
    }
}

/// The query with its columns as COPY writes them.
fn named_columns(mut query: BoundQuery, format: Format) -> Result<BoundQuery, SqlError> {
    if format == Format::Binary {
        let mut columns = query.columns.iter();
        columns.try_for_each(|column| pg_catalog::output::check_binary(column.ty))?;
    }
    let mut columns = query.columns.iter();
    if columns.all(|column| pg_catalog::output::is_plain(column.ty)) {
        return Ok(query);
    }
    let mut values = Vec::with_capacity(query.columns.len());
    for (i, column) in query.columns.iter_mut().enumerate() {
        let value = Expr::Column(i as u32, column.ty);
        values.push(named_value(value, format)?);
        column.ty = values[i].ty();
    }
    query.rel = query.rel.projected(values);
    Ok(query)
}

/// COPY FROM into these columns of a table; the others get their defaults.
fn copy_from(
    planner: &mut Planner<'_, '_>,
    table: &Arc<Table>,
    places: Vec<u16>,
    options: CopyOptions,
) -> Result<Action, SqlError> {
    let mut types = places.iter().map(|place| table.column_at(*place).ty);
    types.try_for_each(|ty| check_rows(ty, options.format))?;
    let writers = planner.writers(table, Purpose::Insert)?;
    let mut row = Vec::new();
    for (i, column) in table.columns.iter().enumerate() {
        row.push(if places.contains(&(i as u16)) {
            Expr::null(column.ty)
        } else {
            planner.binder.default_value(table, column)?
        });
    }
    let constant = row.iter().all(walk::is_row_independent);
    let calls = planner.binder.take_calls();
    let types = table.columns.iter().map(|column| column.ty).collect();
    let source = planner.settled(Rel::Values {
        rows: vec![row],
        types,
        calls,
    });
    let wanted: Vec<u32> = (0..table.columns.len() as u32).collect();
    let defaults = planner.rows(source, &wanted)?;
    debug_assert!(matches!(defaults.op, StepOp::Values { .. }));
    Ok(Action::CopyFrom(Box::new(CopyFromPlan {
        writers,
        columns: places,
        defaults,
        constant_defaults: constant,
        options,
    })))
}

/// COPY TO of these columns of a table.
fn copy_to(
    planner: &mut Planner<'_, '_>,
    table: &Arc<Table>,
    places: &[u16],
    options: CopyOptions,
) -> Result<Action, SqlError> {
    let mut wanted: Vec<u32> = places.iter().map(|place| u32::from(*place)).collect();
    let columns = places.iter().map(|place| {
        let column = table.column_at(*place);
        (column.name.clone(), column.ty)
    });
    let mut columns: Vec<(String, Type)> = columns.collect();
    let rel = Rel::Table {
        table: table.clone(),
        lock: None,
    };
    let rel = planner
        .binder
        .guarded(table, rel, &[PolicyCommand::Select])?;
    let mut rel = planner.settled(rel);
    if columns.iter().any(|(_, ty)| ty.user_id().is_some()) {
        let mut values = Vec::with_capacity(columns.len());
        for ((_, ty), place) in columns.iter_mut().zip(&wanted) {
            let value = named_value(Expr::Column(*place, *ty), options.format)?;
            *ty = value.ty();
            values.push(value);
        }
        wanted = (0..columns.len() as u32).collect();
        rel = planner.settled(rel.projected(values));
    }
    let query = planner.rows(rel, &wanted)?;
    Ok(Action::CopyTo(Box::new(CopyToPlan {
        query,
        columns,
        options,
    })))
}

pub(super) fn plan(copy: &CopyStatement, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let direction = if copy.from {
        Direction::From
    } else {
        Direction::To
    };
    let options = CopyOptions::new(&copy.options, direction)?;
    match &copy.source {
        CopySource::Query(query) => {
            let bound = named_columns(binder.query(query)?, options.format)?;
            let columns = bound
                .columns
                .iter()
                .map(|c| (c.name.clone(), c.ty))
                .collect();
            let (query, inits, steps) = bound_query(bound, binder)?;
            let action = Action::CopyTo(Box::new(CopyToPlan {
                query,
                columns,
                options,
            }));
            run_plan(binder, action, inits, steps)
        }
        CopySource::Table {
            name,
            columns,
            position,
        } => {
            let table = in_known_schema(binder.cx.database, name.clone())
                .and_then(|(schema, name)| {
                    if binder.stored(schema.as_deref(), &name).is_some() {
                        return Err(of_view(("materialized view", &name), direction));
                    }
                    let view = binder.find_view(schema.as_deref(), &name);
                    view.map_or(Ok((schema, name)), |view| {
                        Err(of_view(("view", &view.name), direction))
                    })
                })
                .and_then(|(schema, name)| binder.find_table_named(schema.as_deref(), &name))
                .map_err(|error| error.at(*position))?;
            let places = column_positions(&table, columns)?;
            let wanted = match direction {
                Direction::From => Privileges::INSERT,
                Direction::To => Privileges::SELECT,
            };
            binder.need_table(&table, wanted);
            binder.need_columns(&table, wanted, &places);
            if direction == Direction::From && binder.is_guarded(&table)? {
                let message = "COPY FROM not supported with row-level security";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .hint("Use INSERT statements instead."));
            }
            let mut planner = Planner::new(binder);
            let action = match direction {
                Direction::From => copy_from(&mut planner, &table, places, options)?,
                Direction::To => copy_to(&mut planner, &table, &places, options)?,
            };
            let inits = planner.inits()?;
            let steps = planner.next_step;
            run_plan(binder, action, inits, steps)
        }
    }
}

fn of_view((kind, name): (&str, &str), direction: Direction) -> SqlError {
    let (side, hint) = match direction {
        Direction::From => (
            "to",
            "To enable copying to a view, provide an INSTEAD OF INSERT trigger.",
        ),
        Direction::To => ("from", "Try the COPY (SELECT ...) TO variant."),
    };
    let message = format!("cannot copy {side} {kind} \"{name}\"");
    let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
    match (kind, direction) {
        ("materialized view", Direction::From) => error,
        _ => error.hint(hint),
    }
}
