//! Indexes: built, finished, retired and dropped.

use super::{DB, apply, create, create_index, drop_index, fresh, get, index, refuse, table};
use base::SqlState;
use catalog::Command;

#[test]
fn indexes_are_built_finished_and_dropped() {
    let mut catalog = fresh();
    apply(&mut catalog, create(table("t", &[0])));
    apply(
        &mut catalog,
        create_index("t", index("", &[1], false, false), false),
    );
    let id = get(&catalog, "t")
        .index("t_b_idx")
        .expect("it has PostgreSQL's name")
        .id;
    assert!(get(&catalog, "t").index_by_id(id).unwrap().building);
    let finish = |name: &str| Command::FinishIndex {
        database: DB.into(),
        table: "t".into(),
        index: name.into(),
    };
    apply(&mut catalog, finish("t_b_idx"));
    assert!(!get(&catalog, "t").index("t_b_idx").unwrap().building);
    let missing = "index \"x\" does not exist";
    refuse(&catalog, finish("x"), SqlState::UNDEFINED_OBJECT, missing);
    refuse(
        &catalog,
        drop_index("x", false),
        SqlState::UNDEFINED_OBJECT,
        missing,
    );
    let taken = create_index("t", index("t_b_idx", &[1], false, false), false);
    refuse(
        &catalog,
        taken,
        SqlState::DUPLICATE_TABLE,
        "relation \"t_b_idx\" already exists",
    );
    let taken = create_index("t", index("t_b_idx", &[1], false, false), true);
    assert!(apply(&mut catalog, taken).skipped.is_some());
    let nowhere = create_index("x", index("", &[1], false, false), false);
    refuse(
        &catalog,
        nowhere,
        SqlState::UNDEFINED_TABLE,
        "relation \"x\" does not exist",
    );
    let error = catalog.apply(&drop_index("t_pkey", false)).unwrap_err();
    assert_eq!(error.state(), SqlState::DEPENDENT_OBJECTS);
    assert_eq!(
        error.fields().hint,
        "You can drop constraint t_pkey on table t instead."
    );
    let wrong = "\"t\" is not an index";
    refuse(
        &catalog,
        drop_index("t", true),
        SqlState::WRONG_OBJECT_TYPE,
        wrong,
    );
    // Before it goes it serves readers no more; that says all that there is to be said.
    let retire = |name: &str, if_exists| Command::RetireIndex {
        database: DB.into(),
        names: vec![name.into()],
        if_exists,
    };
    refuse(
        &catalog,
        retire("x", false),
        SqlState::UNDEFINED_OBJECT,
        missing,
    );
    assert!(apply(&mut catalog, retire("x", true)).skipped.is_some());
    apply(&mut catalog, retire("t_b_idx", false));
    assert!(get(&catalog, "t").index("t_b_idx").unwrap().building);
    assert_eq!(
        apply(&mut catalog, drop_index("t_b_idx", false)).dropped,
        [id]
    );
    // A unique constraint whose backfill fails is undone.
    apply(
        &mut catalog,
        create_index("t", index("", &[1], true, true), false),
    );
    assert_eq!(
        apply(&mut catalog, drop_index("t_b_key", false))
            .dropped
            .len(),
        1
    );
}
