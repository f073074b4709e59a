//! Databases: they come and go, and keep the comments on what is in them.

use super::{DB, apply, create, create_database, drop, fresh, refuse, table};
use base::SqlState;
use catalog::{Catalog, Command, Placement, Subject};

#[test]
fn databases_come_and_go() {
    let mut catalog = fresh();
    assert_eq!(catalog.database(DB).unwrap().id.0, 16384);
    refuse(
        &catalog,
        Command::Bootstrap(Placement::new(1, 1)),
        SqlState::OBJECT_NOT_READY,
        "the placement of the cluster is already fixed",
    );
    let taken = "database \"shop\" already exists";
    refuse(
        &catalog,
        create_database(DB, false),
        SqlState::DUPLICATE_DATABASE,
        taken,
    );
    let skipped = apply(&mut catalog, create_database(DB, true)).skipped;
    assert_eq!(
        skipped.unwrap(),
        "database \"shop\" already exists, skipping"
    );
    apply(&mut catalog, create(table("t", &[0])));
    let gone = Command::DropDatabase {
        name: DB.into(),
        if_exists: false,
    };
    let spaces = catalog.database(DB).unwrap().key_spaces();
    assert_eq!(apply(&mut catalog, gone.clone()).dropped, spaces);
    let missing = "database \"shop\" does not exist";
    refuse(&catalog, gone, SqlState::INVALID_DATABASE, missing);
    refuse(
        &catalog,
        create(table("t", &[0])),
        SqlState::INVALID_DATABASE,
        missing,
    );
    let maybe = Command::DropDatabase {
        name: DB.into(),
        if_exists: true,
    };
    assert!(apply(&mut catalog, maybe).skipped.is_some());
}

#[test]
fn comments_are_kept_until_what_they_are_about_is_dropped() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("orders", &[0])));
    let comment = |subject: Subject, text: &str| Command::Comment {
        database: DB.into(),
        subject,
        text: (!text.is_empty()).then(|| text.into()),
    };
    let before = catalog.databases[DB].comments.len();
    let all = [
        Subject::Database,
        Subject::Relation("table".into(), "orders".into()),
        Subject::Column("orders".into(), "a".into()),
        Subject::Constraint("orders".into(), "orders_pkey".into()),
        Subject::Relation("index".into(), "orders_pkey".into()),
    ];
    for subject in &all {
        apply(&mut catalog, comment(subject.clone(), "text"));
    }
    assert_eq!(catalog.databases[DB].comments.len(), before + all.len());
    let mut bytes = Vec::new();
    base::codec::encode(&catalog, &mut bytes);
    let back: Catalog = base::codec::decode(&bytes).expect("what was encoded");
    assert_eq!(back, catalog, "comments survive a restart");
    let long = "x".repeat(base::limits::COMMENT_BYTES_MAX + 1);
    let message = "a comment cannot be longer than 8192 bytes";
    refuse(
        &catalog,
        comment(Subject::Database, &long),
        SqlState::PROGRAM_LIMIT,
        message,
    );
    let elsewhere = Command::Comment {
        database: "nowhere".into(),
        subject: Subject::Database,
        text: None,
    };
    let message = "database \"nowhere\" does not exist";
    refuse(&catalog, elsewhere, SqlState::INVALID_DATABASE, message);
    apply(
        &mut catalog,
        comment(Subject::Column("orders".into(), "a".into()), ""),
    );
    assert_eq!(catalog.databases[DB].comments.len(), before + all.len() - 1);
    apply(&mut catalog, drop(&["orders"], false, true));
    let left: Vec<&str> = catalog.databases[DB]
        .comments
        .values()
        .map(|text| &**text)
        .collect();
    assert_eq!(
        left,
        ["text", "standard public schema"],
        "the database's and the schema's"
    );
}
