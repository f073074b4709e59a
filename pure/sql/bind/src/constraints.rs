//! Names of constraints in SET CONSTRAINTS.

use super::Binder;
use base::{SqlError, SqlState};
use catalog::Deferral;
use parse::Constraints;

impl Binder<'_> {
    /// What SET CONSTRAINTS says, if it names constraints that can be deferred.
    ///
    /// # Errors
    /// 42704 for a name of none, 42809 for a constraint that cannot be deferred.
    pub fn constraints(&self, set: &Constraints) -> Result<Constraints, SqlError> {
        for name in set.names.iter().flatten() {
            let tables = || self.cx.database.tables.values();
            let deferrals = tables().flat_map(|table| {
                let keys = table.foreign_keys.iter();
                let keys = keys.map(|key| (&key.name, key.deferral));
                let indexes = table.indexes().filter(|index| index.constraint);
                keys.chain(indexes.map(|index| (&index.name, index.deferral)))
            });
            let mut named = deferrals.filter(|(own, _)| *own == name).peekable();
            let exists = named.peek().is_some();
            if named.any(|(_, deferral)| deferral != Deferral::Never) {
                continue;
            }
            if !exists && !tables().any(|table| table.has_constraint(name)) {
                let message = format!("constraint \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
            let message = format!("constraint \"{name}\" is not deferrable");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        Ok(set.clone())
    }
}
