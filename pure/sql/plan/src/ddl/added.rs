//! The column of ADD COLUMN.

use super::table::{Definition, Foreign, add_column, empty_table};
use super::unique::{Key, Unique};
use base::SqlError;
use bind::Binder;
use catalog::{Column, Sequence, Table};
use parse::Marks;
use sqlparser::ast;

/// A column that ADD COLUMN adds, and what its options say of the table.
pub(super) struct Added {
    pub(super) column: Column,
    pub(super) sequence: Option<Sequence>,
    pub(super) primary: Option<Key>,
    pub(super) uniques: Vec<Unique>,
    pub(super) foreign: Vec<Foreign>,
    pub(super) checks: Vec<(String, ast::Expr)>,
    pub(super) generated: Vec<(String, ast::Expr)>,
}

/// Reads the column that is added to `table`.
pub(super) fn added_column(
    table: &Table,
    ast: &ast::ColumnDef,
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<Added, SqlError> {
    let mut definition = Definition {
        table: empty_table(table.name.clone(), false),
        sequences: Vec::new(),
        primary: None,
        uniques: Vec::new(),
        foreign: Vec::new(),
        checks: Vec::new(),
        generated: Vec::new(),
        indexes: Vec::new(),
    };
    add_column(&mut definition, ast, marks, binder)?;
    let mut column = definition.table.columns.remove(0);
    column.not_null |= definition.primary.is_some();
    if column.default.is_some() && !binder.zone.is_empty() {
        column.zone = Some((*binder.zone).into());
    }
    Ok(Added {
        column,
        sequence: definition.sequences.pop(),
        primary: definition.primary,
        uniques: definition.uniques,
        foreign: definition.foreign,
        checks: definition.checks,
        generated: definition.generated,
    })
}
