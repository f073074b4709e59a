//! Enum types: places of labels, and what a change may not take away.

use base::Type;
use catalog::*;

fn database() -> Catalog {
    let command = Command::CreateDatabase {
        name: "d".into(),
        protocol: ProtocolKind::Leap,
        execution: Execution::Interleaved,
        if_not_exists: false,
    };
    applied(&Catalog::default(), &command)
}

fn applied(catalog: &Catalog, command: &Command) -> Catalog {
    catalog.apply(command).expect("a good command").0
}

fn create(labels: &[&str]) -> Command {
    Command::CreateEnum {
        database: "d".into(),
        name: "mood".into(),
        attributes: None,
        labels: labels.iter().map(|label| (*label).into()).collect(),
    }
}

fn alter(change: EnumChange) -> Command {
    Command::AlterEnum {
        database: "d".into(),
        name: "mood".into(),
        change,
    }
}

fn add(label: &str, beside: Option<(bool, &str)>) -> Command {
    alter(EnumChange::AddLabel {
        label: label.into(),
        if_not_exists: false,
        beside: beside.map(|(before, of)| (before, of.into())),
    })
}

/// A table `t` with a column `m` and a check.
fn table(ty: Type, check: &str) -> Command {
    let index = Index {
        id: base::IndexId(0),
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
    };
    Command::CreateTable {
        database: "d".into(),
        table: Table {
            id: base::TableId(0),
            name: "t".into(),
            changed: 0,
            columns: vec![Column::new("m", ty)],
            primary: index,
            primary_constraint: None,
            secondary: Vec::new(),
            partition: Vec::new(),
            replicated: false,
            checks: vec![Check {
                name: String::new(),
                expression: check.into(),
                validity: Validity::Valid,
            }],
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            frozen: false,
        },
        sequences: Vec::new(),
        if_not_exists: false,
    }
}

fn mood(catalog: &Catalog) -> EnumType {
    let enums = &catalog.database("d").expect("made").enums;
    (*enums["mood"]).clone()
}

fn labels(catalog: &Catalog) -> Vec<String> {
    let found = mood(catalog);
    let places = found.labels.windows(2);
    assert!(places.into_iter().all(|two| two[0].place < two[1].place));
    found.labels.into_iter().map(|label| label.text).collect()
}

#[test]
fn labels_get_in_between_without_moving_others() {
    let mut catalog = applied(&database(), &create(&["b", "d"]));
    let before = mood(&catalog).place_of("d");
    for (label, beside) in [
        ("a", Some((true, "b"))),
        ("c", Some((false, "b"))),
        ("e", None),
        ("f", Some((false, "e"))),
    ] {
        catalog = applied(&catalog, &add(label, beside));
    }
    assert_eq!(labels(&catalog), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(mood(&catalog).place_of("d"), before);
}

#[test]
fn a_label_is_shown_before_it_is_written() {
    let catalog = applied(&database(), &create(&["a"]));
    let adding = applied(&catalog, &add("b", None));
    let place = mood(&adding).labels[1].place;
    assert_eq!(mood(&adding).label_at(place), Some("b"));
    assert!(mood(&adding).place_of("b").is_err());
    assert_eq!(
        mood(&applied(&adding, &add("b", None))),
        mood(&adding),
        "it may be added again"
    );
    let publish = EnumChange::PublishLabel { label: "b".into() };
    let published = applied(&adding, &alter(publish));
    assert_eq!(mood(&published).place_of("b"), Ok(place));
}

#[test]
fn a_place_is_full_after_24_labels() {
    let mut catalog = applied(&database(), &create(&["a", "z"]));
    for i in 0..24 {
        catalog = applied(&catalog, &add(&format!("l{i}"), Some((true, "z"))));
    }
    let refused = catalog.apply(&add("one more", Some((true, "z"))));
    let state = refused.map(drop).expect_err("no room").state();
    assert_eq!(state, base::SqlState::PROGRAM_LIMIT);
    assert_eq!(labels(&catalog).len(), 26);
    applied(&catalog, &add("at the end", None));
}

#[test]
fn labels_in_the_text_of_an_array_keep_their_text() {
    let check = |expression: &str, of_mood: bool| {
        let catalog = applied(&database(), &create(&["sad", "so so"]));
        let id = mood(&catalog).id;
        let ty = if of_mood { Type::Enum(id) } else { Type::Text };
        let table = table(ty, expression);
        let catalog = applied(&catalog, &table);
        let rename = EnumChange::RenameLabel {
            from: "so so".into(),
            to: "ok".into(),
        };
        catalog.apply(&alter(rename)).map(drop)
    };
    let state = base::SqlState::FEATURE_NOT_SUPPORTED;
    for text in [
        "m = ANY ('{sad,so so}')",
        "m <> ALL ('{\"so so\"}'::mood[])",
    ] {
        assert_eq!(check(text, true).expect_err(text).state(), state);
    }
    let cast = "m = ANY ('{so so}'::mood[]::text[])";
    assert_eq!(check(cast, false).expect_err(cast).state(), state);
    assert_eq!(check("m = ANY ('{so so}')", false), Ok(()));
    assert_eq!(check("m = ANY ('{sad,so}')", true), Ok(()));
}

/// In a time that grows with the labels: beside each other they would take minutes.
#[test]
fn a_type_may_have_many_labels() {
    let labels: Vec<String> = (0..100_000).map(|i| format!("label {i}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let catalog = applied(&database(), &create(&labels));
    assert_eq!(mood(&catalog).labels.len(), labels.len());
    let twice = [&labels[..], &["label 7"]].concat();
    let refused = database().apply(&create(&twice)).map(drop);
    assert_eq!(refused.expect_err("twice").state(), base::SqlState::UNIQUE);
}

#[test]
fn numbers_become_names_where_the_catalog_is() {
    let catalog = applied(&database(), &create(&["a", "z"]));
    let found = mood(&catalog);
    let ty = Type::Enum(found.id);
    let place = found.place_of("z").expect("a label");
    let value = base::text::to_string(ty, &base::Datum::Int(place));
    let database = catalog.database("d").expect("made");
    assert_eq!(database.named_types(&ty.name()), "mood");
    let array = ty.array_of().expect("an array");
    assert_eq!(
        database.named_types(&format!("({value})::{}", array.name())),
        "(z)::mood[]"
    );
    assert_eq!(database.named_types("\u{1}1\u{2} \u{1}x"), "??? x");
    assert_eq!(database.type_by_oid(ty.oid()), Some(ty));
    assert_eq!(database.type_by_oid(array.oid()), Some(array));
    assert_eq!(database.type_named("_mood"), Some(array));
}
