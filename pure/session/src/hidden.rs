//! What an error does not tell a role: values of columns that the role may not read.
//!
//! A role that may write a table, and not read it, would learn from the details of a constraint's
//! error what else stands in the row that it has changed, or in the rows that refer to it. So it
//! would of a table whose policies hide rows from it.

use super::{Session, SessionCx};
use base::{SqlError, SqlState};
use catalog::{Catalog, Database, Table};
use rights::{ObjectKind, Privileges, RoleId, Target};

impl Session {
    /// The error as the session's role may see it.
    pub(super) fn shown_error(
        &self,
        cx: &SessionCx<'_>,
        database: &Database,
        error: SqlError,
    ) -> SqlError {
        match self.acting.superuser {
            true => error,
            false => shown(cx.catalog, database, self.acting.by.current, error),
        }
    }
}

fn shown(catalog: &Catalog, database: &Database, role: RoleId, error: SqlError) -> SqlError {
    let fields = error.fields();
    if fields.detail.is_empty() {
        return error;
    }
    let Some((table, columns)) = told(database, &error) else {
        return error;
    };
    let (rights, owner) = (&catalog.rights, catalog.owner_of_database(database));
    let target = Target::Relation(table.id.0);
    let whole = rights.privileges(role, (&target, ObjectKind::Table), owner);
    let reads = |column: &u16| {
        let own = rights.column_privileges(role, &target, *column, owner);
        own.has(Privileges::SELECT)
    };
    let guarded = catalog.rows_guarded(database, table.id, role).is_some();
    if !guarded && (whole.has(Privileges::SELECT) || columns.iter().all(reads)) {
        return error;
    }
    let detail = match error.state() {
        SqlState::FOREIGN_KEY => without_key(&fields.detail),
        _ => String::new(),
    };
    error.detail(detail)
}

/// The columns whose values the detail of an error tells, and their table.
fn told<'c>(database: &'c Database, error: &SqlError) -> Option<(&'c Table, Vec<u16>)> {
    let fields = error.fields();
    let table = &**database.table(&fields.table)?;
    let every = || table.shown();
    match error.state() {
        SqlState::NOT_NULL | SqlState::CHECK => Some((table, every())),
        SqlState::UNIQUE => {
            let index = table.index(&fields.constraint);
            let columns = index.map(|index| index.columns.iter().map(|key| key.column).collect());
            Some((table, columns.unwrap_or_else(every)))
        }
        SqlState::FOREIGN_KEY => {
            let mut keys = table.foreign_keys.iter();
            let Some(key) = keys.find(|key| key.name == fields.constraint) else {
                return Some((table, every()));
            };
            match fields.message.starts_with("update or delete") {
                true => {
                    let parent = database.table(&key.parent)?;
                    Some((parent, key.parent_columns.clone()))
                }
                false => Some((table, key.columns.clone())),
            }
        }
        _ => None,
    }
}

/// `Key is not present in table "t".` of `Key (a)=(1) is not present in table "t".`
fn without_key(detail: &str) -> String {
    match detail.rfind(") is ") {
        Some(at) => format!("Key{}", &detail[at + 1..]),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{IndexId, TableId, Type};
    use catalog::{
        Action, Column, Command, Deferral, Execution, ForeignKey, Index, IndexColumn, ProtocolKind,
        Validity,
    };
    use rights::{Change, Grant, ObjectNames, RoleName};

    fn index(name: &str, columns: &[u16]) -> Index {
        let columns = columns.iter().map(|column| IndexColumn {
            column: *column,
            descending: false,
            nulls_first: false,
        });
        Index {
            id: IndexId(0),
            name: name.into(),
            columns: columns.collect(),
            unique: true,
            constraint: true,
            slot_columns: Vec::new(),
            predicate: None,
            included: Vec::new(),
            classes: Vec::new(),
            nulls_equal: false,
            building: false,
            deferral: Deferral::Never,
            of_key: false,
        }
    }

    /// A table of the columns a, b, c with a key over a and a unique constraint over b and c.
    fn table(name: &str, foreign_keys: Vec<ForeignKey>) -> Command {
        let columns = ["a", "b", "c"].map(|name| Column::new(name, Type::Int4));
        let table = Table {
            id: TableId(0),
            name: name.into(),
            changed: 0,
            columns: columns.into(),
            primary: index("", &[0]),
            primary_constraint: None,
            secondary: vec![index(&format!("{name}_unique"), &[1, 2])],
            partition: Vec::new(),
            replicated: false,
            checks: Vec::new(),
            foreign_keys,
            referenced_by: Vec::new(),
            frozen: false,
        };
        Command::CreateTable {
            database: "d".into(),
            table,
            sequences: Vec::new(),
            if_not_exists: false,
        }
    }

    /// What `reader` may see of an error, who may read these columns of table `t`.
    fn seen(columns: &[&str], error: &SqlError) -> String {
        let key = ForeignKey {
            name: "key".into(),
            columns: vec![2],
            parent: "t".into(),
            parent_columns: vec![0],
            on_delete: Action::NoAction,
            on_update: Action::NoAction,
            match_full: false,
            validity: Validity::Valid,
            deferral: Deferral::Never,
            child_off: false,
            parent_off: false,
        };
        let names = columns.iter().map(|name| (*name).into()).collect();
        let change = |change| Command::Rights {
            database: "d".into(),
            change,
        };
        let commands = [
            Command::CreateDatabase {
                name: "d".into(),
                protocol: ProtocolKind::TwoPhase,
                execution: Execution::Interleaved,
                if_not_exists: false,
            },
            table("t", Vec::new()),
            table("child", vec![key]),
            change(Change::CreateRole {
                name: "reader".into(),
                options: Vec::new(),
            }),
            change(Change::Grant(Grant {
                is_grant: true,
                privileges: vec![(Privileges::SELECT, names)],
                objects: ObjectNames::Relations(vec!["t".into()]),
                roles: vec![RoleName::Named("reader".into())],
                option: false,
                cascade: false,
            })),
        ];
        let catalog = commands
            .iter()
            .fold(Catalog::default(), |catalog, command| {
                catalog.apply(command).expect("a good command").0
            });
        let database = catalog.database("d").expect("made");
        let reader = catalog.rights.find("reader", "").expect("made");
        let told = shown(&catalog, database, reader, error.clone());
        let owner = shown(&catalog, database, RoleId::OWNER, error.clone());
        assert_eq!(owner, *error);
        told.fields().detail.clone()
    }

    fn error(state: SqlState, (table, constraint): (&str, &str), detail: &str) -> SqlError {
        SqlError::new(state, "insert or update")
            .table(table)
            .constraint(constraint)
            .detail(detail)
    }

    #[test]
    fn details_tell_nothing_that_a_role_may_not_read() {
        let key = "Key (b, c)=(1, 2) already exists.";
        let unique = error(SqlState::UNIQUE, ("t", "t_unique"), key);
        assert_eq!(seen(&["a", "b"], &unique), "");
        assert_eq!(seen(&["b", "c"], &unique), key);
        let row = "Failing row contains (1, 2, 3).";
        for state in [SqlState::NOT_NULL, SqlState::CHECK] {
            assert_eq!(seen(&["a", "c"], &error(state, ("t", "x"), row)), "");
            assert_eq!(seen(&["a", "b", "c"], &error(state, ("t", "x"), row)), row);
        }
        let other = error(SqlState::INVALID_TEXT, ("", ""), "a detail");
        assert_eq!(seen(&["a"], &other), "a detail");
    }

    #[test]
    fn details_of_foreign_keys_lose_the_key() {
        let missing = "Key (c)=(7) is not present in table \"t\".";
        let child = error(SqlState::FOREIGN_KEY, ("child", "key"), missing);
        assert_eq!(seen(&["a"], &child), "Key is not present in table \"t\".");
        let used = "Key (a)=() is (7)) is still referenced from table \"child\".";
        let message = "update or delete on table \"t\" violates";
        let parent = SqlError::new(SqlState::FOREIGN_KEY, message)
            .table("child")
            .constraint("key")
            .detail(used);
        assert_eq!(seen(&["a"], &parent), used);
        assert_eq!(
            seen(&["b"], &parent),
            "Key is still referenced from table \"child\"."
        );
    }
}
