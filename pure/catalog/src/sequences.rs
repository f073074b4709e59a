//! ALTER SEQUENCE.

use crate::alter::TableAction;
use crate::apply::no_relation;
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use ::rights::Target;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{IndexId, SqlError, SqlState, Type};
use serde::{Deserialize, Serialize};

/// A change of a sequence; what is `None` stays.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub struct SequenceChange {
    /// Bounds that are those of the type before become those of this one.
    pub ty: Option<Type>,
    pub increment: Option<i64>,
    /// `Some(None)`: what the direction of the sequence suggests.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub start: Option<i64>,
    /// The next number is this one; `Some(None)`: the start.
    pub restart: Option<Option<i64>>,
    pub cycle: Option<bool>,
    /// The column that owns it; `Some(None)`: no one does.
    pub owned_by: Option<Option<(String, String)>>,
}

impl Catalog {
    /// A sequence that begins anew counts in another key space: so the numbers that shards have
    /// drawn before are not given out any more.
    pub(crate) fn alter_sequence(
        &mut self,
        database: &str,
        name: &str,
        change: &SequenceChange,
    ) -> Result<Applied, CatalogError> {
        let id = IndexId(self.next_number());
        let rights = Arc::clone(&self.rights);
        let owner = self.database_mut(database)?;
        let found = owner.sequences.get(name).cloned();
        let found = found.ok_or_else(|| no_relation(name))?;
        let mut next = found.clone();
        let increment = change.increment.unwrap_or(found.increment);
        next.increment = increment;
        next.ty = change.ty.unwrap_or(found.ty);
        (next.min, next.max) = changed_bounds(&found, change, increment > 0);
        next.start = change.start.unwrap_or(found.start);
        next.cycle = change.cycle.unwrap_or(found.cycle);
        let mut dropped = Vec::new();
        if let Some(value) = change.restart {
            let first = value.unwrap_or(next.start);
            check_restart(first, &next)?;
            next.first = Some(first);
            next.id = id;
            dropped.push(found.id);
        }
        if let Some(column) = &change.owned_by {
            if let Some((table, column)) = column {
                let table = owner.table(table).ok_or_else(|| no_relation(table))?;
                table.own_column(column)?;
                let owner_of = |id| rights.owner(&Target::Relation(id));
                if owner_of(table.id.0) != owner_of(found.id.0) {
                    let message = "sequence must have same owner as table it is linked to";
                    return Err(SqlError::new(SqlState::OBJECT_NOT_READY, message));
                }
            }
            next.owned_by.clone_from(column);
        }
        let next_id = next.id;
        owner.add_sequence(next)?;
        if let Some(text) = owner.comments.remove(&Commented::Relation(found.id.0)) {
            let id = owner.sequences[name].id.0;
            owner.comments.insert(Commented::Relation(id), text);
        }
        let (old, new) = (Target::Relation(found.id.0), Target::Relation(next_id.0));
        if let Some(object) = rights.objects.get(&old) {
            self.rights_mut().objects.remove(&old);
            self.rights_mut().objects.insert(new, object.clone());
        }
        Ok(Applied {
            dropped,
            ..Applied::default()
        })
    }
}

impl Catalog {
    /// An action on the identity of a column.
    pub(crate) fn change_identity(
        &mut self,
        table: (&str, &str),
        action: &TableAction,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        match action {
            TableAction::AlterIdentity {
                column,
                identity,
                change,
            } => self.alter_identity(table, column, *identity, change, applied),
            TableAction::DropIdentity { column, if_exists } => {
                self.drop_identity(table, column, *if_exists, applied)
            }
            _ => unreachable!("called for these actions only"),
        }
    }

    fn alter_identity(
        &mut self,
        (database, table): (&str, &str),
        column: &str,
        identity: Option<Identity>,
        change: &Option<SequenceChange>,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let found = self.table_mut(database, table)?;
        let at = found.own_column(column)?;
        if found.columns[at].identity.is_none() {
            return Err(found.no_identity(at));
        }
        if identity.is_some() {
            found.columns[at].identity = identity;
        }
        let owner = self.database_mut(database)?;
        let (Some(name), Some(change)) = (owner.owned_sequence(table, column), change) else {
            return Ok(());
        };
        let changed = self.alter_sequence(database, &name, change)?;
        applied.dropped.extend(changed.dropped);
        Ok(())
    }

    fn drop_identity(
        &mut self,
        (database, table): (&str, &str),
        column: &str,
        if_exists: bool,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let found = self.table_mut(database, table)?;
        let at = found.own_column(column)?;
        if found.columns[at].identity.take().is_none() {
            let error = found.no_identity(at);
            if !if_exists {
                return Err(error);
            }
            let text = error.fields().message.clone();
            applied.notices.push(text + ", skipping");
            return Ok(());
        }
        self.database_mut(database)?
            .drop_owned(table, column, applied);
        Ok(())
    }
}

impl Database {
    /// The sequence that a column owns.
    fn owned_sequence(&self, table: &str, column: &str) -> Option<String> {
        let mut all = self.sequences.values();
        let owned = all.find(|sequence| {
            let owner = sequence.owned_by.as_ref();
            owner.is_some_and(|(of, own)| of == table && own == column)
        });
        owned.map(|sequence| sequence.name.clone())
    }
}

impl Table {
    /// 55000 for a column that is no identity.
    fn no_identity(&self, at: usize) -> SqlError {
        let message = format!(
            "column \"{}\" of relation \"{}\" is not an identity column",
            self.columns[at].name, self.name
        );
        SqlError::new(SqlState::OBJECT_NOT_READY, message)
    }
}

/// The bounds of a sequence that is changed. Those that were the bounds of its type go with it.
fn changed_bounds(found: &Sequence, change: &SequenceChange, ascends: bool) -> (i64, i64) {
    let (was_lowest, was_highest) = bounds(found.ty);
    let (lowest, highest) = bounds(change.ty.unwrap_or(found.ty));
    let is_changed = change.ty.is_some_and(|ty| ty != found.ty);
    let (new_min, new_max) = (
        is_changed && found.min == was_lowest,
        is_changed && found.max == was_highest,
    );
    let low = if ascends && !new_min { 1 } else { lowest };
    let high = if ascends || new_max { highest } else { -1 };
    let min = if new_min { low } else { found.min };
    let max = if new_max { high } else { found.max };
    (
        change.min.map_or(min, |min| min.unwrap_or(low)),
        change.max.map_or(max, |max| max.unwrap_or(high)),
    )
}

/// The smallest and the largest number of a sequence of this type.
pub(crate) fn bounds(ty: Type) -> (i64, i64) {
    match ty {
        Type::Int2 => (i16::MIN.into(), i16::MAX.into()),
        Type::Int4 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

fn check_restart(first: i64, sequence: &Sequence) -> Result<(), CatalogError> {
    let Sequence { min, max, .. } = sequence;
    let message = if first < *min {
        format!("RESTART value ({first}) cannot be less than MINVALUE ({min})")
    } else if first > *max {
        format!("RESTART value ({first}) cannot be greater than MAXVALUE ({max})")
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::INVALID_PARAMETER, message))
}
