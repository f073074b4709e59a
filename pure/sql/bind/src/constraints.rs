//! Names of constraints in SET CONSTRAINTS.

use super::Binder;
use base::{SqlError, SqlState};
use catalog::Deferral;
use parse::Constraints;

impl Binder<'_> {
    /// What SET CONSTRAINTS says, if it names foreign keys that can be deferred.
    ///
    /// # Errors
    /// 42704 for a name of none, 42809 for a constraint that cannot be deferred.
    pub fn constraints(&self, set: &Constraints) -> Result<Constraints, SqlError> {
        for name in set.names.iter().flatten() {
            let tables = || self.cx.database.tables.values();
            let mut keys = tables().flat_map(|table| &table.foreign_keys);
            let message = match keys.find(|key| key.name == *name) {
                Some(key) if key.deferral != Deferral::Never => continue,
                None if !tables().any(|table| table.has_constraint(name)) => {
                    let message = format!("constraint \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
                }
                _ => format!("constraint \"{name}\" is not deferrable"),
            };
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        Ok(set.clone())
    }
}
