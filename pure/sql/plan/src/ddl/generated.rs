//! Generated columns.

use super::shown;
use super::table::{Definition, Foreign};
use base::{SqlError, SqlState};
use bind::{Binder, Kept, unsupported};
use catalog::{Column, Table};
use sqlparser::ast::{self, GeneratedExpressionMode, ReferentialAction};
use std::sync::Arc;

/// Gives the columns `generated` of a table whose columns are all there the texts of their
/// expressions.
///
/// # Errors
/// 42P17 for what is no generation expression, 42804 for another type.
pub(super) fn add(
    table: &mut Table,
    generated: &[(String, ast::Expr)],
    binder: &mut Binder<'_>,
) -> Result<(), SqlError> {
    for (name, expr) in generated {
        // A generated column may not read one, itself included, whatever its text.
        let (at, _) = table.column(name).expect("it is a column of the table");
        table.columns[usize::from(at)].generated = Some(shown::kept(&shown::text(expr), binder));
    }
    let shared = Arc::new(table.clone());
    for (name, expr) in generated {
        let (_, column) = shared.column(name).expect("it is a column of the table");
        binder.kept_expr(&shared, expr, Kept::Generated(column))?;
    }
    Ok(())
}

/// Reads GENERATED of a column; `false`: it makes an identity column.
///
/// # Errors
/// 42601 for a second identity.
pub(super) fn add_option(
    definition: &mut Definition,
    column: &Column,
    (expr, mode): (Option<&ast::Expr>, Option<&GeneratedExpressionMode>),
) -> Result<bool, SqlError> {
    if let Some(expr) = expr {
        if !matches!(mode, Some(GeneratedExpressionMode::Stored)) {
            return Err(unsupported("a generated column that is not STORED"));
        }
        definition
            .generated
            .push((column.name.clone(), expr.clone()));
        return Ok(true);
    }
    if column.identity.is_some() {
        let message = format!(
            "multiple identity specifications for column \"{}\" of table \"{}\"",
            column.name, definition.table.name
        );
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    Ok(false)
}

/// Refuses a partition by a generated column.
///
/// # Errors
/// 42P17.
pub(super) fn check_partition(column: &Column) -> Result<(), SqlError> {
    if column.generated.is_none() {
        return Ok(());
    }
    let message = "cannot use generated column in partition key";
    let detail = format!("Column \"{}\" is a generated column.", column.name);
    let state = SqlState::INVALID_OBJECT_DEFINITION;
    Err(SqlError::new(state, message).detail(detail))
}

/// Refuses a second source of the values of a column.
///
/// # Errors
/// 42601.
pub(super) fn check_alone(
    table: &str,
    column: &Column,
    has_sequence: bool,
) -> Result<(), SqlError> {
    let other = if column.identity.is_some() {
        "identity"
    } else if column.default.is_some() || has_sequence {
        "default"
    } else {
        return Ok(());
    };
    let name = &column.name;
    let message = format!(
        "both {other} and generation expression specified for column \"{name}\" of table \
         \"{table}\""
    );
    Err(SqlError::new(SqlState::SYNTAX, message))
}

/// Refuses actions of a foreign key that would set a generated column.
///
/// # Errors
/// 42601.
pub(super) fn check_actions(
    generated: &dyn Fn(&str) -> bool,
    key: &Foreign,
) -> Result<(), SqlError> {
    if !key.columns.iter().any(|column| generated(column)) {
        return Ok(());
    }
    let sets = |action: Option<ReferentialAction>, update: bool| match action {
        Some(ReferentialAction::SetNull | ReferentialAction::SetDefault) => true,
        Some(ReferentialAction::Cascade) => update,
        _ => false,
    };
    for (word, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if sets(action, word == "UPDATE") {
            let message = format!(
                "invalid ON {word} action for foreign key constraint containing generated column"
            );
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
    }
    Ok(())
}
