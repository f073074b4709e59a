//! ALTER COLUMN: identities come, change and go.

use super::actions::Actions;
use super::names;
use super::table::{identity_kind, identity_sequence};
use base::full_name::beside;
use base::{SqlError, SqlState, Type};
use bind::unsupported;
use catalog::{Column, Identity, SequenceChange, TableAction};
use parse::{IdentityAction, SequenceWords};
use pg_catalog::names::{parts, qualified};
use sqlparser::ast;

impl Actions<'_, '_, '_> {
    pub(super) fn add_identity(
        &mut self,
        column: &Column,
        written: Option<&ast::GeneratedAs>,
        options: Option<&[ast::SequenceOptions]>,
    ) -> Result<(), SqlError> {
        let identity = identity_kind(written.unwrap_or(&ast::GeneratedAs::Always))?;
        let mut sequence = identity_sequence(column.ty, options)?;
        let database = self.catalog.database(&self.binder.cx.database.name);
        let database = database.expect("it is the session's");
        sequence.name = match &self.marks.sequence {
            Some(name) => {
                let (schema, name) = qualified(&database.name, parts(name)?)?;
                match schema {
                    Some(_) => self.binder.new_name(schema.as_deref(), &name)?,
                    None => beside(&self.table, &name),
                }
            }
            None => {
                let columns = core::slice::from_ref(&column.name);
                let free = names::free_name(database, &self.table, columns, "seq");
                beside(&self.table, &free)
            }
        };
        sequence.owned_by = Some((self.table.clone(), column.name.clone()));
        let set = TableAction::SetIdentity {
            column: column.name.clone(),
            identity,
        };
        // The column is looked at first, as in PostgreSQL.
        self.apply(set.clone())?;
        self.late.push(set);
        self.late(TableAction::AddSequence(sequence))
    }

    pub(super) fn change_identity(
        &mut self,
        column: &Column,
        action: &IdentityAction,
    ) -> Result<(), SqlError> {
        let name = column.name.clone();
        let (always, sequence) = match action {
            IdentityAction::Drop { if_exists } => {
                return self.late(TableAction::DropIdentity {
                    column: name,
                    if_exists: *if_exists,
                });
            }
            IdentityAction::Change { always, sequence } => (always, sequence),
        };
        let identity = always.map(|always| match always {
            true => Identity::Always,
            false => Identity::ByDefault,
        });
        let change = match *sequence == SequenceWords::default() {
            true => None,
            false => Some(sequence_change(column.ty, sequence)?),
        };
        self.late(TableAction::AlterIdentity {
            column: name,
            identity,
            change,
        })
    }
}

/// Options of the sequence of a column of this type.
fn sequence_change(ty: Type, words: &SequenceWords) -> Result<SequenceChange, SqlError> {
    let SequenceWords {
        ty: other,
        increment,
        min,
        max,
        start,
        restart,
        cycle,
        owned_by,
    } = words;
    if other.is_some() {
        return Err(unsupported("another type for the numbers of an identity")
            .hint("ALTER COLUMN ... TYPE changes the type of the column."));
    }
    if owned_by.is_some() {
        return Err(unsupported("OWNED BY for an identity"));
    }
    let (low, high) = match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    for (word, bound) in [("MAXVALUE", max), ("MINVALUE", min)] {
        if let Some(Some(value)) = bound
            && !(low..=high).contains(value)
        {
            let message = format!(
                "{word} ({value}) is out of range for sequence data type {}",
                ty.base_name()
            );
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
    }
    let is_descending = increment.is_some_and(|by| by < 0);
    let (lowest, highest) = match is_descending {
        true => (low, -1),
        false => (1, high),
    };
    Ok(SequenceChange {
        ty: None,
        increment: *increment,
        min: min.map(|min| Some(min.unwrap_or(lowest))),
        max: max.map(|max| Some(max.unwrap_or(highest))),
        start: *start,
        restart: *restart,
        cycle: *cycle,
        owned_by: None,
    })
}
