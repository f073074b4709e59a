//! ALTER SEQUENCE.

use crate::apply::no_relation;
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use ::rights::Target;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{IndexId, SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// A change of a sequence; what is `None` stays.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub struct SequenceChange {
    pub increment: Option<i64>,
    /// `Some(None)`: what the direction of the sequence suggests.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub start: Option<i64>,
    /// The next number is this one; `Some(None)`: the start.
    pub restart: Option<Option<i64>>,
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
        let (low, high) = match increment > 0 {
            true => (1, i64::MAX),
            false => (i64::MIN, -1),
        };
        next.increment = increment;
        next.min = change.min.map_or(found.min, |min| min.unwrap_or(low));
        next.max = change.max.map_or(found.max, |max| max.unwrap_or(high));
        next.start = change.start.unwrap_or(found.start);
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
