//! Documents to inherit from that are part of the program: stores, workloads, populations.

use crate::nearest::nearest;

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../experiments/templates/", $name, ".yaml")))),*]
    };
}

/// Names and texts, in the order in which they are listed.
const TEMPLATES: [(&str, &str); 33] = templates![
    "memory",
    "postgres",
    "trellis",
    "mysql",
    "redis",
    "redis-lua",
    "etcd",
    "cassandra",
    "hbase",
    "mongodb",
    "local-postgres",
    "local-mariadb",
    "local-redis",
    "local-etcd",
    "local-trellis",
    "micro-personal",
    "micro-shared",
    "micro-messages",
    "auction",
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "ycsb-steps",
    "smallbank",
    "hot-counter",
    "tpcc",
    "closed",
    "semi-open",
    "open",
    "three-times",
];

/// The text of a template.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    let found = TEMPLATES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// All templates: name, and what its first comment says.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEMPLATES.iter().map(|(name, text)| {
        let first = text.lines().next().unwrap_or_default();
        (*name, first.trim_start_matches('#').trim())
    })
}

/// That there is none of this name, and which one may be meant.
pub(crate) fn unknown(name: &str) -> String {
    let names = || TEMPLATES.iter().map(|(name, _)| *name);
    match nearest(name, names()) {
        Some(meant) => format!("there is no template {name}; did you mean {meant}?"),
        None => {
            let names: Vec<&str> = names().collect();
            format!("there is no template {name}, but {}", names.join(", "))
        }
    }
}
