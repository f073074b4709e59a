//! `LIKE table` in CREATE TABLE: columns, and as far as they are asked for, what belongs to them.

use super::table::{Definition, set_primary};
use base::{IndexId, SqlError, SqlState};
use bind::{Binder, unsupported};
use catalog::{Column, ColumnState, Commented, Sequence, Table};
use parse::Like;
use pg_catalog::names::{known_schema, qualified};
use rights::Privileges;

/// An index that a new table gets: key columns with whether they descend, and whether it is unique.
pub(super) type LikeIndex = (Vec<(String, bool)>, bool);

pub(super) fn add(
    definition: &mut Definition,
    like: &Like,
    binder: &mut Binder<'_>,
) -> Result<(), SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, like.table.clone())?;
    known_schema(binder.cx.database, schema.as_deref())?;
    if let Some(view) = binder.find_view(schema.as_deref(), &name) {
        binder.need_for_change(|binder| binder.need_view(&view, Privileges::SELECT));
        let columns = view.columns.iter().map(|column| Column {
            name: column.name.clone(),
            ty: column.ty,
            not_null: false,
            default: None,
            generated: None,
            of_index: false,
            identity: None,
            hidden: false,
            state: ColumnState::default(),
        });
        definition.table.columns.extend(columns);
        return Ok(());
    }
    let table = binder.find_table_named(schema.as_deref(), &name)?;
    binder.need_for_change(|binder| binder.need_table(&table, Privileges::SELECT));
    let commented = |commented: &Commented| match commented {
        Commented::Relation(id) => *id == table.id.0,
        Commented::Column(id, _) | Commented::Constraint(id, _) => *id == table.id,
        Commented::Database | Commented::Schema(_) => false,
    };
    if like.comments && binder.cx.database.comments.keys().any(commented) {
        return Err(unsupported("INCLUDING COMMENTS")
            .hint("Say EXCLUDING COMMENTS, and use COMMENT ON for the new table."));
    }
    for column in table.columns.iter().filter(|column| !column.hidden) {
        add_column(definition, &table, column, like, binder)?;
    }
    if like.constraints {
        for check in &table.checks {
            let expression = parse::expression(&check.expression)?;
            definition.checks.push((check.name.clone(), expression));
        }
    }
    if like.indexes {
        add_indexes(definition, &table)?;
    }
    Ok(())
}

fn add_column(
    definition: &mut Definition,
    table: &Table,
    column: &Column,
    like: &Like,
    binder: &Binder<'_>,
) -> Result<(), SqlError> {
    let mut copy = Column {
        default: column.default.clone().filter(|_| like.defaults),
        identity: column.identity.filter(|_| like.identity),
        generated: None,
        state: ColumnState::default(),
        ..column.clone()
    };
    let drawn = binder.cx.database.sequences.values().find(|sequence| {
        let owner = sequence.owned_by.as_ref();
        owner.is_some_and(|(owner, of)| *owner == table.name && *of == column.name)
    });
    match (copy.identity, drawn) {
        (Some(_), Some(drawn)) => {
            let own = Sequence {
                id: IndexId(0),
                name: String::new(),
                ..drawn.clone()
            };
            definition.own(own, &column.name);
        }
        (Some(_), None) => copy.identity = None,
        (None, _) => {}
    }
    definition.table.columns.push(copy);
    if let Some(text) = column.generated.as_deref().filter(|_| like.generated) {
        let expr = parse::expression(text)?;
        definition.generated.push((column.name.clone(), expr));
    }
    Ok(())
}

fn add_indexes(definition: &mut Definition, table: &Table) -> Result<(), SqlError> {
    if table.primary_constraint.is_some() {
        let keys = table.primary.columns.iter().map(|key| key.column);
        set_primary(definition, String::new(), table.column_names(keys))?;
    }
    for index in table.secondary.iter().filter(|index| !index.building) {
        let keys = index.columns.iter();
        if index.constraint {
            let names = table.column_names(keys.map(|key| key.column));
            definition.uniques.push((String::new(), names));
            continue;
        }
        let of_index = |key: &catalog::IndexColumn| table.column_at(key.column).of_index;
        if index.predicate.is_some() || index.columns.iter().any(of_index) {
            return Err(
                unsupported("INCLUDING INDEXES with an index that computes values")
                    .hint("Say EXCLUDING INDEXES, and create the indexes of the new table."),
            );
        }
        if !index.included.is_empty() || index.nulls_equal {
            return Err(
                unsupported("INCLUDING INDEXES with INCLUDE or NULLS NOT DISTINCT")
                    .hint("Say EXCLUDING INDEXES, and create the indexes of the new table."),
            );
        }
        let named = keys.map(|key| (table.column_at(key.column).name.clone(), key.descending));
        definition.indexes.push((named.collect(), index.unique));
    }
    Ok(())
}

/// Refuses columns of the same name, before a table that is not named in the error gets them.
pub(super) fn check_names(columns: &[Column]) -> Result<(), SqlError> {
    for (i, column) in columns.iter().enumerate() {
        if columns[..i].iter().any(|other| other.name == column.name) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
    }
    Ok(())
}
