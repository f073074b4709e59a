//! A database that changes its protocol, in the catalog.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base::SqlState;
use catalog::{Catalog, Command, Execution, Placement, ProtocolKind, Switching};

fn database(name: &str, execution: Execution) -> Command {
    Command::CreateDatabase {
        name: name.into(),
        protocol: ProtocolKind::TwoPhase,
        execution,
        if_not_exists: false,
    }
}

fn switch(name: &str, protocol: ProtocolKind, switching: Option<Switching>) -> Command {
    Command::Switch {
        database: name.into(),
        protocol,
        switching,
    }
}

#[test]
fn a_database_closes_changes_and_opens() {
    let set = Command::SetProtocol {
        database: "shop".into(),
        protocol: ProtocolKind::Leap,
    };
    let mut catalog = Catalog::default();
    let mut seen = Vec::new();
    for command in [
        Command::Bootstrap(Placement::new(2, 1)),
        database("shop", Execution::Interleaved),
        switch("shop", ProtocolKind::Leap, Some(Switching::Draining)),
        switch("shop", ProtocolKind::Leap, Some(Switching::Gathering)),
        set,
        switch("shop", ProtocolKind::Leap, None),
    ] {
        catalog = catalog.apply(&command).unwrap().0;
        let shop = catalog.database("shop");
        seen.extend(shop.map(|shop| (shop.protocol, shop.switching)));
    }
    let (old, new) = (ProtocolKind::TwoPhase, ProtocolKind::Leap);
    assert_eq!(
        seen,
        [
            (old, None),
            (old, Some(Switching::Draining)),
            (old, Some(Switching::Gathering)),
            (new, Some(Switching::Opening)),
            (new, None),
        ]
    );
    let again = switch("shop", new, Some(Switching::Draining));
    let (same, applied) = catalog.apply(&again).unwrap();
    assert_eq!(same, catalog);
    assert!(applied.skipped.unwrap().contains("runs leap already"));
}

#[test]
fn what_a_protocol_does_not_have_keeps_a_database_from_it() {
    let mut catalog = Catalog::default();
    for command in [
        Command::Bootstrap(Placement::new(2, 1)),
        database("serial", Execution::Serial),
    ] {
        catalog = catalog.apply(&command).unwrap().0;
    }
    let refused = switch("serial", ProtocolKind::Leap, Some(Switching::Draining));
    let error = catalog.apply(&refused).unwrap_err();
    assert_eq!(error.state(), SqlState::FEATURE_NOT_SUPPORTED);
    let missing = switch("none", ProtocolKind::Leap, Some(Switching::Draining));
    let error = catalog.apply(&missing).unwrap_err();
    assert_eq!(error.state(), SqlState::INVALID_DATABASE);
}
