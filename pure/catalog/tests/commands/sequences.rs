//! Sequences: those of serial columns, and those that stand alone.

use super::{DB, apply, drop, fresh, get, refuse, sequence, table};
use base::SqlState;
use catalog::{Command, Identity, Sequence};

#[test]
fn serial_columns_bring_their_sequences() {
    let mut catalog = fresh();
    let owned = |column: &str| Sequence {
        owned_by: Some(("t".into(), column.into())),
        ..sequence("")
    };
    let mut wanted = table("t", &[0]);
    wanted.columns[1].identity = Some(Identity::Always);
    let command = Command::CreateTable {
        database: DB.into(),
        table: wanted,
        sequences: vec![owned("a"), owned("b")],
        if_not_exists: false,
    };
    apply(&mut catalog, command);
    let t = get(&catalog, "t");
    let default = "nextval('\"$2200\".t_a_seq'::regclass)";
    assert_eq!(t.column("a").unwrap().1.default.as_deref(), Some(default));
    assert_eq!(t.column("b").unwrap().1.default, None);
    let database = catalog.database(DB).unwrap();
    let id = database.sequence("t_b_seq").unwrap().id;
    assert!(database.key_spaces().contains(&id));
    let gone = |name: &str| Command::DropSequence {
        database: DB.into(),
        names: vec![name.into()],
        if_exists: false,
        cascade: false,
    };
    for name in ["t_a_seq", "t_b_seq"] {
        let message = format!("cannot drop sequence {name} because other objects depend on it");
        refuse(&catalog, gone(name), SqlState::DEPENDENT_OBJECTS, &message);
    }
    let dropped = apply(&mut catalog, drop(&["t"], false, false)).dropped;
    assert_eq!(dropped.len(), 3, "the rows and both sequences");
    assert!(catalog.database(DB).unwrap().sequences.is_empty());
}

#[test]
fn sequences_are_checked() {
    let mut catalog = fresh();
    let make = |sequence| Command::CreateSequence {
        database: DB.into(),
        sequence,
        if_not_exists: false,
    };
    apply(&mut catalog, make(sequence("s")));
    let exists = "relation \"s\" already exists";
    refuse(
        &catalog,
        make(sequence("s")),
        SqlState::DUPLICATE_TABLE,
        exists,
    );
    let bad = |increment, min, max, start| Sequence {
        increment,
        min,
        max,
        start,
        ..sequence("x")
    };
    for (sequence, message) in [
        (bad(0, 1, 9, 1), "INCREMENT must not be zero"),
        (
            bad(1, 9, 1, 1),
            "MINVALUE (9) must be less than MAXVALUE (1)",
        ),
        (
            bad(1, 1, 9, 0),
            "START value (0) cannot be less than MINVALUE (1)",
        ),
        (
            bad(1, 1, 9, 10),
            "START value (10) cannot be greater than MAXVALUE (9)",
        ),
    ] {
        refuse(
            &catalog,
            make(sequence),
            SqlState::INVALID_PARAMETER,
            message,
        );
    }
    let gone = |name: &str, if_exists| Command::DropSequence {
        database: DB.into(),
        names: vec![name.into()],
        if_exists,
        cascade: false,
    };
    let missing = "sequence \"x\" does not exist";
    refuse(
        &catalog,
        gone("x", false),
        SqlState::UNDEFINED_TABLE,
        missing,
    );
    assert!(apply(&mut catalog, gone("x", true)).skipped.is_some());
    assert_eq!(apply(&mut catalog, gone("s", false)).dropped.len(), 1);
}
