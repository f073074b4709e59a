//! Row security in the catalog: what policies need, and whom they concern.

use base::{IndexId, SqlState, TableId, Type};
use catalog::{
    Catalog, Column, Command, Condition, Execution, Index, IndexColumn, PolicyChange,
    PolicyCommand, ProtocolKind, Table, TableAction, ViewUse,
};
use rights::{Change, RoleId, RoleName, RoleOption};

fn table(name: &str) -> Command {
    let primary = Index {
        id: IndexId(0),
        name: String::new(),
        columns: vec![IndexColumn {
            column: 0,
            descending: false,
            nulls_first: false,
        }],
        unique: true,
        constraint: true,
        slot_columns: Vec::new(),
        predicate: None,
        included: Vec::new(),
        classes: Vec::new(),
        nulls_equal: false,
        building: false,
        deferral: catalog::Deferral::Never,
        of_key: false,
    };
    Command::CreateTable {
        database: "d".into(),
        table: Table {
            id: TableId(0),
            name: name.into(),
            changed: 0,
            columns: ["id", "owner"]
                .map(|name| Column::new(name, Type::Text))
                .into(),
            primary,
            primary_constraint: None,
            secondary: Vec::new(),
            partition: Vec::new(),
            replicated: false,
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            frozen: false,
        },
        sequences: Vec::new(),
        if_not_exists: false,
    }
}

fn rights(change: Change) -> Command {
    let database = "d".into();
    Command::Rights { database, change }
}

fn role(name: &str, options: Vec<RoleOption>) -> Command {
    let name = name.into();
    rights(Change::CreateRole { name, options })
}

fn policy(change: PolicyChange) -> Command {
    let (database, table) = ("d".into(), "t".into());
    Command::Policy {
        database,
        table,
        change,
    }
}

/// `own` for `reader`, which reads the column `owner` of its table, and `other` as a whole.
fn create(plain: bool) -> Command {
    let used = |relation: &str, columns: &[&str]| ViewUse {
        relation: relation.into(),
        visible: vec!["id".into(), "owner".into()],
        columns: columns.iter().map(|name| (*name).into()).collect(),
    };
    let mut uses = vec![used("t", &["owner"])];
    if !plain {
        uses.push(used("other", &["id"]));
    }
    policy(PolicyChange::Create {
        name: "own".into(),
        permissive: true,
        command: PolicyCommand::All,
        roles: vec![RoleName::Named("reader".into())],
        using: Some(Condition {
            text: "owner = current_user".into(),
            uses,
            plain,
        }),
        check: None,
    })
}

fn with(commands: &[Command]) -> Catalog {
    let first = [
        Command::CreateDatabase {
            name: "d".into(),
            protocol: ProtocolKind::TwoPhase,
            execution: Execution::Interleaved,
            if_not_exists: false,
        },
        table("t"),
        table("other"),
        role("reader", Vec::new()),
        role("free", vec![RoleOption::BypassRls(true)]),
    ];
    let all = first.iter().chain(commands);
    all.fold(Catalog::default(), |catalog, command| {
        catalog.apply(command).expect("a good command").0
    })
}

fn refused(catalog: &Catalog, command: &Command) -> SqlState {
    catalog
        .apply(command)
        .map(drop)
        .expect_err("refused")
        .state()
}

fn drop_table(name: &str, cascade: bool) -> Command {
    Command::DropTable {
        database: "d".into(),
        names: vec![name.into()],
        if_exists: false,
        cascade,
    }
}

fn alter(action: TableAction) -> Command {
    Command::AlterTable {
        database: "d".into(),
        table: "t".into(),
        actions: vec![action],
    }
}

fn count(catalog: &Catalog) -> usize {
    catalog.database("d").expect("made").policies().count()
}

#[test]
fn row_security_concerns_all_but_owners_and_those_who_bypass_it() {
    let catalog = with(&[create(true), policy(PolicyChange::Enable(true))]);
    let database = catalog.database("d").expect("made");
    let table = database.table("t").expect("made").id;
    let role = |name: &str| catalog.rights.find(name, "").expect("made");
    let guarded = |role| catalog.rows_guarded(database, table, role).is_some();
    assert!(guarded(role("reader")));
    assert!(!guarded(role("free")));
    assert!(!guarded(RoleId::OWNER));
    let other = database.table("other").expect("made").id;
    assert!(
        catalog
            .rows_guarded(database, other, role("reader"))
            .is_none()
    );
}

#[test]
fn what_a_policy_reads_stays_or_takes_it_along() {
    let catalog = with(&[create(false)]);
    assert_eq!(
        refused(&catalog, &drop_table("other", false)),
        SqlState::DEPENDENT_OBJECTS
    );
    let (next, _) = catalog.apply(&drop_table("other", true)).expect("cascades");
    assert_eq!(count(&next), 0);
    let (next, _) = catalog.apply(&drop_table("t", false)).expect("its own");
    assert!(next.database("d").expect("made").row_security.is_empty());
    let roles = vec![RoleName::Named("reader".into())];
    let drop_role = rights(Change::DropRoles {
        roles,
        if_exists: false,
    });
    assert_eq!(refused(&catalog, &drop_role), SqlState::DEPENDENT_OBJECTS);
}

#[test]
fn names_follow_in_conditions_without_subqueries() {
    let rename = alter(TableAction::RenameColumn {
        from: "owner".into(),
        to: "who".into(),
    });
    let (next, _) = with(&[create(true)]).apply(&rename).expect("plain");
    let database = next.database("d").expect("made");
    let (_, policy) = database.policies().next().expect("made");
    let using = policy.using.as_ref().expect("given");
    assert_eq!(using.text, "who = current_user");
    assert_eq!(using.uses[0].columns, ["who"]);
    let catalog = with(&[create(false)]);
    assert_eq!(refused(&catalog, &rename), SqlState::FEATURE_NOT_SUPPORTED);
}
