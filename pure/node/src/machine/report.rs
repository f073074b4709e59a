//! What a shard tells to a system that watches it.

use super::{Question, Shard};
use base::RowBatch;
use parse::show::Show;
use txn::touched::Ends;

/// The shard's part of several SHOWs, and what became of the transactions of each database.
#[derive(Debug)]
pub struct Report {
    /// Rows of each SHOW, with its columns.
    pub rows: Vec<(Show, RowBatch)>,
    /// Database, protocol, and the transactions of its clients that this shard has coordinated.
    pub databases: Vec<(String, &'static str, Ends)>,
}

/// What is told.
const TOLD: [Show; 7] = [
    Show::ShardCounters,
    Show::Memory,
    Show::Ownership,
    Show::Stages,
    Show::Databases,
    Show::Nodes,
    Show::InDoubt,
];

impl Shard {
    /// What this shard has to tell now. It takes as long as so many SHOWs of one shard.
    pub fn report(&mut self) -> Report {
        let rows = TOLD.map(|what| {
            let database = String::new();
            (what, self.answer(&Question::Show { what, database }))
        });
        let core = self.core.borrow();
        let databases = core.catalog.databases.iter();
        let databases = databases.filter_map(|(name, database)| {
            let ends = core.degrees.ends_of(database.id)?;
            Some((name.clone(), database.protocol.name(), ends.clone()))
        });
        Report {
            rows: rows.into(),
            databases: databases.collect(),
        }
    }
}
