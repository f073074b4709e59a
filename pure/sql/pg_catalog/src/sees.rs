//! What a role sees in `information_schema`: what it owns, or has a privilege on, as in PostgreSQL.

use super::{CatalogCx, grants};
use base::Datum;
use rights::RoleId;

/// Privileges on tables and columns that show a table and its columns.
pub(super) const READS: (&str, &str) = (
    "SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER",
    "SELECT, INSERT, UPDATE, REFERENCES",
);
/// Those that show its constraints: other than to read it.
pub(super) const CONSTRAINTS: (&str, &str) = (
    "INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER",
    "INSERT, UPDATE, REFERENCES",
);

impl CatalogCx<'_> {
    /// Whether the session's role sees everything.
    fn sees_all(&self) -> bool {
        self.catalog.rights.is_superuser(self.acting())
    }

    fn has(&self, function: &str, args: &[Datum]) -> bool {
        let answer = grants::privilege(self, function, args);
        matches!(answer, Ok(Datum::Bool(true)))
    }

    /// Whether it has the privileges of a role.
    pub(super) fn has_role(&self, owner: RoleId) -> bool {
        let args = [Datum::Int(i64::from(owner.0)), Datum::from("USAGE")];
        self.sees_all() || self.has("pg_has_role", &args)
    }

    /// Whether it has the privileges of the owner of a table, view or sequence.
    pub(super) fn has_owner(&self, relation: u32) -> bool {
        self.sees_all() || self.has_role(self.owner(relation))
    }

    /// Whether it sees a table or view: by one of the privileges on it, or on one of its columns.
    pub(super) fn sees(&self, relation: u32, (table, columns): (&str, &str)) -> bool {
        let args = |words: &str| [Datum::Int(i64::from(relation)), Datum::from(words)];
        self.has_owner(relation)
            || self.has("has_table_privilege", &args(table))
            || self.has("has_any_column_privilege", &args(columns))
    }

    /// Whether it sees a column, by its number from 1.
    pub(super) fn sees_column(&self, relation: u32, number: usize) -> bool {
        let args = [
            Datum::Int(i64::from(relation)),
            Datum::Int(number as i64),
            Datum::from(READS.1),
        ];
        self.has_owner(relation) || self.has("has_column_privilege", &args)
    }

    /// Whether it sees a sequence.
    pub(super) fn sees_sequence(&self, sequence: u32) -> bool {
        let args = [
            Datum::Int(i64::from(sequence)),
            Datum::from("SELECT, UPDATE, USAGE"),
        ];
        self.has_owner(sequence) || self.has("has_sequence_privilege", &args)
    }

    /// Whether it sees a schema.
    pub(super) fn sees_schema(&self, name: &str, owner: RoleId) -> bool {
        let args = [Datum::from(name), Datum::from("CREATE, USAGE")];
        self.has_role(owner) || self.has("has_schema_privilege", &args)
    }
}
