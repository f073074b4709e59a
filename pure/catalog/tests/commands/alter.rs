//! ALTER TABLE and ALTER SEQUENCE.

use super::{DB, apply, column, create, foreign_key, fresh, get, index, refuse, sequence, table};
use base::{SqlState, Type};
use catalog::{
    Catalog, Check, Column, ColumnState, Command, SequenceChange, TableAction, Validity,
};

fn alter(table: &str, actions: Vec<TableAction>) -> Command {
    Command::AlterTable {
        database: DB.into(),
        table: table.into(),
        actions,
    }
}

fn added(name: &str, place: u16, state: ColumnState) -> TableAction {
    let column = Column {
        hidden: state == ColumnState::Filling,
        state,
        ..column(name, Type::Int4)
    };
    TableAction::AddColumn {
        column,
        place,
        if_not_exists: false,
    }
}

fn dropped(name: &str, cascade: bool) -> TableAction {
    TableAction::DropColumn {
        name: name.into(),
        if_exists: false,
        cascade,
    }
}

fn check(name: &str, expression: &str) -> TableAction {
    TableAction::AddCheck(Check {
        name: name.into(),
        expression: expression.into(),
        validity: Validity::Adding,
    })
}

fn visible(catalog: &Catalog, name: &str) -> Vec<String> {
    let columns = get(catalog, name).columns.iter();
    let visible = columns.filter(|column| !column.hidden);
    visible.map(|column| column.name.clone()).collect()
}

/// Two changes that were planned side by side give a hidden column the same name: the second one is
/// run again.
#[test]
fn hidden_columns_are_named_by_their_place() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[])));
    let hidden = || alter("t", vec![added("$4_expr", 4, ColumnState::Filling)]);
    apply(&mut catalog, hidden());
    refuse(
        &catalog,
        hidden(),
        SqlState::SERIALIZATION,
        "table \"t\" was changed by another statement",
    );
    refuse(
        &catalog,
        alter("t", vec![added("a", 5, ColumnState::Filling)]),
        SqlState::DUPLICATE_COLUMN,
        "column \"a\" of relation \"t\" already exists",
    );
}

#[test]
fn a_column_is_hidden_until_it_is_filled() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[])));
    let rowid = get(&catalog, "t").rowid();
    let begun = vec![
        added("d", 4, ColumnState::Filling),
        check("positive", "d > 0"),
        TableAction::AddIndex(index("t_d_key", &[4], true, true)),
    ];
    apply(&mut catalog, alter("t", begun.clone()));
    assert_eq!(visible(&catalog, "t"), ["a", "b", "c"]);
    assert_eq!(
        get(&catalog, "t").rowid(),
        rowid,
        "its place is another one"
    );
    let unfinished = get(&catalog, "t").unfinished_constraints(DB);
    assert_eq!(unfinished, [alter("t", vec![TableAction::Undo])]);
    let before = catalog.clone();
    apply(&mut catalog, alter("t", vec![TableAction::Publish]));
    assert_eq!(visible(&catalog, "t"), ["a", "b", "c", "d"]);
    let t = get(&catalog, "t");
    assert_eq!(t.checks[0].validity, Validity::Valid);
    assert!(!t.secondary[0].building && t.unfinished_constraints(DB).is_empty());
    // If that fails, nothing is left but its place, which holds what was filled.
    catalog = before;
    let undone = apply(&mut catalog, alter("t", vec![TableAction::Undo]));
    let t = get(&catalog, "t");
    assert_eq!((undone.dropped.len(), t.secondary.len()), (1, 0));
    assert!(t.checks.is_empty() && t.columns[4].state == ColumnState::Dropped);
    refuse(
        &catalog,
        alter("t", begun),
        SqlState::SERIALIZATION,
        "table \"t\" was changed by another statement",
    );
    apply(
        &mut catalog,
        alter("t", vec![added("d", 5, ColumnState::Ready)]),
    );
    assert_eq!(visible(&catalog, "t"), ["a", "b", "c", "d"]);
}

#[test]
fn what_reads_a_dropped_column_goes_with_it() {
    let mut catalog = fresh();
    let mut parent = table("p", &[0]);
    parent.secondary = vec![index("p_b_key", &[1], true, true)];
    apply(&mut catalog, create(parent));
    let mut child = table("t", &[0]);
    child.foreign_keys = vec![foreign_key(&[1], "p", &[1])];
    apply(&mut catalog, create(child));
    apply(
        &mut catalog,
        alter("p", vec![check("both", "b > 0 OR a > 0")]),
    );
    refuse(
        &catalog,
        alter("p", vec![dropped("b", false)]),
        SqlState::DEPENDENT_OBJECTS,
        "cannot drop column b of table p because other objects depend on it",
    );
    let applied = apply(&mut catalog, alter("p", vec![dropped("b", true)]));
    assert_eq!(
        applied.notices,
        ["drop cascades to constraint t_b_fkey on table t"]
    );
    let p = get(&catalog, "p");
    assert!(p.checks.is_empty() && p.referenced_by.is_empty());
    assert!(p.secondary[0].building, "its readers end before it goes");
    assert_eq!(p.columns[1].name, "........pg.dropped.2........");
    assert!(get(&catalog, "t").foreign_keys.is_empty());
    refuse(
        &catalog,
        alter("p", vec![dropped("a", true)]),
        SqlState::FEATURE_NOT_SUPPORTED,
        "dropping a column of the primary key or of the partition is not supported",
    );
}

#[test]
fn names_are_followed() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("p", &[0])));
    let mut child = table("t", &[0]);
    child.foreign_keys = vec![foreign_key(&[1], "p", &[0])];
    child.columns[2].default = Some("nextval('s')".into());
    apply(&mut catalog, create(child));
    let mut drawn = sequence("s");
    drawn.owned_by = Some(("p".into(), "c".into()));
    apply(
        &mut catalog,
        Command::CreateSequence {
            database: DB.into(),
            sequence: drawn,
            if_not_exists: false,
        },
    );
    let rename = |from: &str, to: &str| Command::RenameRelation {
        database: DB.into(),
        from: from.into(),
        to: to.into(),
    };
    let renamed = TableAction::RenameTable { to: "q".into() };
    apply(&mut catalog, alter("p", vec![renamed]));
    let (from, to) = ("c".into(), "z".into());
    let renamed = TableAction::RenameColumn { from, to };
    apply(&mut catalog, alter("q", vec![renamed]));
    let (from, to) = ("t_b_fkey".into(), "of_q".into());
    let renamed = TableAction::RenameConstraint { from, to };
    apply(&mut catalog, alter("t", vec![renamed]));
    apply(&mut catalog, rename("s", "S"));
    apply(&mut catalog, rename("p_pkey", "q_pkey"));
    let (q, t) = (get(&catalog, "q"), get(&catalog, "t"));
    assert_eq!(q.referenced_by, [("t".into(), "of_q".into())]);
    assert_eq!(q.primary_constraint.as_deref(), Some("q_pkey"));
    assert_eq!(t.foreign_keys[0].parent, "q");
    assert_eq!(
        t.columns[2].default.as_deref(),
        Some("nextval('\"$2200\".\"S\"')")
    );
    let owner = catalog.database(DB).unwrap().sequence("S").unwrap();
    assert_eq!(owner.owned_by, Some(("q".into(), "z".into())));
    refuse(
        &catalog,
        rename("q_pkey", "t"),
        SqlState::DUPLICATE_TABLE,
        "relation \"t\" already exists",
    );
}

#[test]
fn a_restarted_sequence_counts_elsewhere() {
    let mut catalog = fresh();
    let sequence = sequence("s");
    apply(
        &mut catalog,
        Command::CreateSequence {
            database: DB.into(),
            sequence,
            if_not_exists: false,
        },
    );
    let change = |change: SequenceChange| Command::AlterSequence {
        database: DB.into(),
        name: "s".into(),
        change,
    };
    let before = catalog.database(DB).unwrap().sequence("s").unwrap().clone();
    let restart = SequenceChange {
        restart: Some(Some(7)),
        ..SequenceChange::default()
    };
    let applied = apply(&mut catalog, change(restart));
    let after = catalog.database(DB).unwrap().sequence("s").unwrap();
    assert_eq!(applied.dropped, [before.id]);
    assert!(after.id != before.id && after.first == Some(7) && after.start == 1);
    let low = SequenceChange {
        restart: Some(Some(0)),
        ..SequenceChange::default()
    };
    refuse(
        &catalog,
        change(low),
        SqlState::INVALID_PARAMETER,
        "RESTART value (0) cannot be less than MINVALUE (1)",
    );
}
