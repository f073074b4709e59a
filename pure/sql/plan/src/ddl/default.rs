//! Defaults of columns, checked when the table is made.

use base::{SqlError, SqlState, Type};
use bind::Binder;
use bind::rel::run_query;
use bind::scope::Scope;
use catalog::Column;
use expr::{Expr, walk};
use sqlparser::ast;

/// Checks that a default binds and fits its column, and gives its text for the catalog. Whether a
/// value fits the length and range of the column is seen when it is used, as in PostgreSQL.
///
/// # Errors
/// 42804 for another type, 22P02 and its like for a literal that is no value of the type, 0A000 for
/// columns and subqueries, 42803 for aggregates, 42P02 for parameters.
pub(super) fn default_text(
    column: &Column,
    value: &ast::Expr,
    binder: &mut Binder<'_>,
) -> Result<String, SqlError> {
    let outer = binder.set_scope(Scope::default());
    let bound = binder.expr(value);
    binder.set_scope(outer);
    let bound = bound.map_err(worded)?;
    let parameters = binder.params.len() as u32;
    let parameter = |expr: &Expr| matches!(expr, Expr::Param(index, _) if *index < parameters);
    if walk::any(&bound, &parameter) {
        let message = "there is no parameter $1";
        return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
    }
    let plain = Column {
        ty: column.ty.without_modifiers(),
        ..column.clone()
    };
    let mut assigned = binder.assigned(bound, &plain).map_err(worded)?;
    let literal = |expr: &Expr| matches!(expr, Expr::Const(_, Type::Unknown));
    let moment = matches!(&assigned, Expr::Cast { arg, .. } if literal(arg));
    let calls = binder.take_calls();
    let inits = core::mem::take(&mut binder.inits);
    if run_query(&calls, &inits) {
        let message = "cannot use subquery in DEFAULT expression";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    binder.settle(&mut assigned);
    binder.check_labels()?;
    if moment {
        // Which moment a text without a zone means is decided now, by the session's zone.
        if let Expr::Const(value, ty) = &assigned {
            let text = base::text::to_string(*ty, value).replace('\'', "''");
            return Ok(format!("'{text}'::{}", ty.name()));
        }
    }
    Ok(super::shown::kept(&super::shown::text(value), binder))
}

/// The error with PostgreSQL's words for defaults.
fn worded(error: SqlError) -> SqlError {
    let message = &error.fields().message;
    match error.state() {
        SqlState::UNDEFINED_COLUMN => SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use column reference in DEFAULT expression",
        ),
        SqlState::DATATYPE_MISMATCH => {
            let text = message.replace(" but expression is", " but default expression is");
            SqlError::new(SqlState::DATATYPE_MISMATCH, text)
                .hint("You will need to rewrite or cast the expression.")
        }
        SqlState::GROUPING => SqlError::new(
            SqlState::GROUPING,
            "aggregate functions are not allowed in DEFAULT expressions",
        ),
        _ => error,
    }
}
