//! Views: what may be replaced, renamed and dropped, and what depends on what.

use base::{IndexId, TableId, Type};
use catalog::*;

fn table(name: &str, columns: &[&str]) -> Command {
    let columns = columns.iter().map(|name| Column::new(name, Type::Int4));
    Command::CreateTable {
        database: "d".into(),
        table: Table {
            id: TableId(0),
            name: name.into(),
            changed: 0,
            columns: columns.collect(),
            primary: Index {
                id: IndexId(0),
                name: String::new(),
                columns: Vec::new(),
                unique: true,
                constraint: false,
                slot_columns: Vec::new(),
                predicate: None,
                included: Vec::new(),
                classes: Vec::new(),
                nulls_equal: false,
                building: false,
                deferral: Deferral::Never,
                of_key: false,
            },
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

/// A view over column `a` of each relation, with these columns of its own.
fn view(name: &str, columns: &[(&str, Type)], uses: &[&str], replace: bool) -> Command {
    let uses = uses.iter().map(|relation| ViewUse {
        relation: (*relation).into(),
        visible: vec!["a".into(), "b".into()],
        columns: vec!["a".into()],
    });
    Command::CreateView {
        database: "d".into(),
        view: View {
            id: TableId(0),
            name: name.into(),
            query: "SELECT a FROM t".into(),
            renamed: false,
            updatable: false,
            check: None,
            columns: columns
                .iter()
                .map(|(name, ty)| ViewColumn {
                    name: (*name).into(),
                    ty: *ty,
                })
                .collect(),
            uses: uses.collect(),
        },
        replace,
    }
}

fn drop_views(names: &[&str], cascade: bool) -> Command {
    Command::DropView {
        database: "d".into(),
        names: names.iter().map(|name| (*name).into()).collect(),
        if_exists: false,
        cascade,
    }
}

fn rename(name: &str, to: &str) -> Command {
    Command::RenameView {
        database: "d".into(),
        name: name.into(),
        to: to.into(),
        if_exists: false,
    }
}

const A: &[(&str, Type)] = &[("a", Type::Int4)];

/// A database with the table `t`, the views `v` of it, `w` of `v`, and `x` of both.
fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for command in [
        Command::CreateDatabase {
            name: "d".into(),
            protocol: ProtocolKind::TwoPhase,
            execution: Execution::Interleaved,
            if_not_exists: false,
        },
        table("t", &["a", "b"]),
        view("v", A, &["t"], false),
        view("w", A, &["v"], false),
        view("x", A, &["t", "w"], false),
    ] {
        catalog = catalog.apply(&command).expect("it can be made").0;
    }
    catalog
}

/// SQLSTATE, message and DETAIL of a refusal.
fn refused(catalog: &Catalog, command: &Command) -> (String, String, String) {
    let error = catalog.apply(command).expect_err("it is refused");
    let fields = error.fields();
    let state = String::from_utf8_lossy(&error.state().0).into_owned();
    (state, fields.message.clone(), fields.detail.clone())
}

#[test]
fn what_is_used_stays_or_takes_its_users_along() {
    let catalog = catalog();
    let drop_table = |cascade| Command::DropTable {
        database: "d".into(),
        names: vec!["t".into()],
        if_exists: false,
        cascade,
    };
    let (state, message, detail) = refused(&catalog, &drop_table(false));
    assert_eq!(state, "2BP01");
    assert_eq!(
        message,
        "cannot drop table t because other objects depend on it"
    );
    assert_eq!(
        detail,
        "view v depends on table t\nview w depends on view v\nview x depends on table t"
    );
    let (state, _, detail) = refused(&catalog, &drop_views(&["v"], false));
    assert_eq!(
        (state.as_str(), detail.as_str()),
        (
            "2BP01",
            "view w depends on view v\nview x depends on view w"
        )
    );
    let (after, applied) = catalog.apply(&drop_views(&["w"], true)).expect("cascade");
    assert_eq!(applied.notices, ["drop cascades to view x"]);
    let names: Vec<&String> = after.databases["d"].views.keys().collect();
    assert_eq!(names, ["v"]);
    let (after, applied) = catalog.apply(&drop_table(true)).expect("cascade");
    assert_eq!(applied.notices, ["drop cascades to 3 other objects"]);
    assert!(after.databases["d"].views.is_empty());
    let (after, _) = catalog
        .apply(&drop_views(&["x", "v", "w"], false))
        .expect("all that depend go, too");
    assert!(after.databases["d"].views.is_empty());
}

#[test]
fn columns_that_a_view_reads_are_known() {
    let catalog = catalog();
    let database = &catalog.databases["d"];
    let using = |column| {
        let views = database.views_using("t", column);
        views
            .iter()
            .map(|view| view.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(using(None), ["v", "x"]);
    assert_eq!(using(Some("a")), ["v", "x"]);
    assert!(using(Some("b")).is_empty());
    let with: Vec<String> = database
        .views_with("t", Some("a"))
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    assert_eq!(
        with,
        [
            "view v depends on column a of table t",
            "view w depends on view v",
            "view x depends on column a of table t"
        ]
    );
}

#[test]
fn a_view_is_replaced_by_one_with_the_same_columns_or_more() {
    let catalog = catalog();
    let replaced = |columns: &[(&str, Type)]| {
        let (state, message, _) = refused(&catalog, &view("v", columns, &["t"], true));
        assert_eq!(state, "42P16");
        message
    };
    assert_eq!(
        replaced(&[("b", Type::Int4)]),
        "cannot change name of view column \"a\" to \"b\""
    );
    assert_eq!(
        replaced(&[("a", Type::Text)]),
        "cannot change data type of view column \"a\" from integer to text"
    );
    assert_eq!(replaced(&[]), "cannot drop columns from view");
    let more = [("a", Type::Int4), ("c", Type::Text)];
    let (after, _) = catalog
        .apply(&view("v", &more, &["t"], true))
        .expect("more columns");
    let (old, new) = (
        &catalog.databases["d"].views["v"],
        &after.databases["d"].views["v"],
    );
    assert_eq!((old.id, new.columns.len()), (new.id, 2));
    let (state, ..) = refused(&catalog, &view("v", A, &["x"], true));
    assert_eq!(state, "42P17", "a view of itself");
    let (state, message, _) = refused(&catalog, &view("t", A, &["t"], true));
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("42809", "\"t\" is not a view")
    );
    let (state, ..) = refused(&catalog, &view("v", A, &["t"], false));
    assert_eq!(state, "42P07");
}

#[test]
fn what_changed_since_a_view_was_bound_is_seen() {
    let catalog = catalog();
    let (state, message, _) = refused(&catalog, &view("y", A, &["gone"], false));
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("42P01", "relation \"gone\" does not exist")
    );
    let narrow = catalog.apply(&table("n", &["b"])).expect("a table").0;
    let (state, ..) = refused(&narrow, &view("y", A, &["n"], false));
    assert_eq!(state, "42703");
}

#[test]
fn names_are_those_of_relations() {
    let catalog = catalog();
    let (state, ..) = refused(&catalog, &table("v", &["a"]));
    assert_eq!(state, "42P07");
    let (state, ..) = refused(&catalog, &rename("x", "t"));
    assert_eq!(state, "42P07");
    let (state, ..) = refused(&catalog, &rename("v", "z"));
    assert_eq!(state, "0A000", "the text of another view names it");
    let (state, ..) = refused(&catalog, &rename("t", "z"));
    assert_eq!(state, "42809");
    let after = catalog.apply(&rename("x", "z")).expect("a free name").0;
    assert!(after.databases["d"].view("x").is_none());
    assert_eq!(after.databases["d"].views["z"].name, "z");
}
