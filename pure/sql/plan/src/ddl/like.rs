//! `LIKE table` in CREATE TABLE: columns, and as far as they are asked for, what belongs to them.

use super::table::{Definition, set_primary};
use super::unique::{Key, Unique};
use super::{index, key_column};
use base::{IndexId, SqlError, SqlState};
use bind::{Binder, unsupported};
use catalog::{Column, ColumnState, Commented, Index, IndexColumn, Sequence, Table};
use parse::Like;
use pg_catalog::names::{known_schema, qualified};
use rights::Privileges;

/// An index of the table that a new one is like, by the names of its columns.
pub(super) struct LikeIndex {
    /// Name, descending, NULLs first.
    pub(super) keys: Vec<(String, bool, bool)>,
    pub(super) included: Vec<String>,
    pub(super) classes: Vec<Option<String>>,
    pub(super) unique: bool,
    pub(super) nulls_equal: bool,
}

pub(super) fn add(
    definition: &mut Definition,
    like: &Like,
    binder: &mut Binder<'_>,
) -> Result<(), SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, like.table.clone())?;
    known_schema(binder.cx.database, schema.as_deref())?;
    if let Some(view) = binder.find_view(schema.as_deref(), &name) {
        binder.need_for_change(|binder| binder.need_view(&view, Privileges::SELECT));
        let columns = view.columns.iter();
        let columns = columns.map(|column| Column::new(&column.name, column.ty));
        definition.table.columns.extend(columns);
        return Ok(());
    }
    let table = binder.find_table_named(schema.as_deref(), &name)?;
    binder.need_for_change(|binder| binder.need_table(&table, Privileges::SELECT));
    let commented = |commented: &Commented| match commented {
        Commented::Relation(id) => *id == table.id.0,
        Commented::Column(id, _) | Commented::Constraint(id, _) => *id == table.id,
        Commented::Database
        | Commented::Schema(_)
        | Commented::Function(_)
        | Commented::Type(_) => false,
    };
    if like.comments && binder.cx.database.comments.keys().any(commented) {
        return Err(unsupported("INCLUDING COMMENTS")
            .hint("Say EXCLUDING COMMENTS, and use COMMENT ON for the new table."));
    }
    for at in table.shown() {
        add_column(definition, &table, table.column_at(at), like, binder)?;
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
        shown_at: None,
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
    if let Some(key) = table.key_index() {
        let keys = key.columns.iter().map(|key| key.column);
        let key = Key {
            name: String::new(),
            columns: table.column_names(keys),
            deferral: key.deferral,
        };
        set_primary(definition, key)?;
    }
    let others = table.secondary.iter();
    for index in others.filter(|index| !index.building && !index.of_key) {
        let keys = index.columns.iter();
        if index.constraint {
            let names = table.column_names(keys.map(|key| key.column));
            definition.uniques.push(Unique {
                nulls_equal: index.nulls_equal,
                ..Unique::new(String::new(), names, index.deferral)
            });
            continue;
        }
        let of_index = |key: &IndexColumn| table.column_at(key.column).of_index;
        if index.predicate.is_some() || index.columns.iter().any(of_index) {
            return Err(
                unsupported("INCLUDING INDEXES with an index that computes values")
                    .hint("Say EXCLUDING INDEXES, and create the indexes of the new table."),
            );
        }
        let named = keys.map(|key| {
            let name = table.column_at(key.column).name.clone();
            (name, key.descending, key.nulls_first)
        });
        definition.indexes.push(LikeIndex {
            keys: named.collect(),
            included: table.column_names(index.included.iter().copied()),
            classes: index.classes.clone(),
            unique: index.unique,
            nulls_equal: index.nulls_equal,
        });
    }
    Ok(())
}

/// Gives a new table the indexes of the one that it is like.
pub(super) fn add_copies(table: &mut Table, indexes: Vec<LikeIndex>) -> Result<(), SqlError> {
    for like in indexes {
        let LikeIndex {
            keys,
            included,
            classes,
            unique,
            nulls_equal,
        } = like;
        let keys = keys.into_iter().map(|(name, descending, nulls_first)| {
            Ok(IndexColumn {
                column: key_column(table, &name)?,
                descending,
                nulls_first,
            })
        });
        let keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
        let included = included.iter().map(|name| key_column(table, name));
        let included = included.collect::<Result<Vec<_>, _>>()?;
        table.secondary.push(Index {
            included,
            classes,
            nulls_equal,
            ..index(String::new(), keys, unique, false)
        });
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
