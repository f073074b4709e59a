//! What the stores have in common, and the machine.

use super::ask::repeats;
use super::bed::{NODES, Place};
use crate::dike::ground::machine;
use crate::model::Model;
use servers::Kind;

/// Lines for the report.
pub(super) fn lines(model: &Model) -> Vec<String> {
    let settings = Kind::ALL.map(|kind| format!("{}: {}", kind.name(), kind.settings()));
    let mappings = Place::all().into_iter().map(|place| {
        let names: Vec<&str> = place.mappings().iter().map(|it| it.name()).collect();
        format!("{}: {}", place.name(), names.join(", "))
    });
    let mappings: Vec<String> = mappings.collect();
    vec![
        format!("The machine: {}.", machine()),
        format!(
            "One client program for all stores, with one connection for each user and its own \
             clients of all protocols. Servers of others as started by this command: {}.",
            settings.join("; ")
        ),
        format!(
            "Trellis has {NODES} nodes of one shard where a figure says nothing else, links of \
             1 ms between them, and differs in one line, CREATE DATABASE ... WITH (protocol = ..)."
        ),
        format!("Mappings, the default first: {}.", mappings.join("; ")),
        "Between client and servers every message takes the time of the link, by a proxy of the \
         client's process (store.link_ms). A store in memory waits as long for each of its calls. \
         Loads and checks have no links."
            .to_owned(),
        format!(
            "Each number is that of {} runs with another seed each, or their mean. After each run \
             what the store holds is compared with what was acknowledged; a run whose check fails \
             has no number.",
            repeats(model.quick)
        ),
        "Below each figure stands the command that repeats it on one store. The files say sizes, \
         users and phases; URL and mapping are those of the row."
            .to_owned(),
    ]
}

/// What is computed instead of measured.
pub(super) fn describe(_: &Model) -> String {
    "No number of this page is of the scale model. Computed is the last column of figure 9: a core \
     for each server, divided by the processor time of an interaction."
        .to_owned()
}
