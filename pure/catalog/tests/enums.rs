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
