//! Changes that close something: a database that changes its protocol, a table that is frozen while
//! its rows are written anew.
//!
//! A catalog says which change keeps it closed and how far that is. So a node that has the catalog
//! can end the change and tell the outcome: node 1, or the others in its place (`node::register`).

use crate::command::Command;
use crate::desc::{Catalog, ProtocolKind, Switching};
use alloc::vec::Vec;
use base::ShardId;
use serde::{Deserialize, Serialize};

/// Names a schema change: the shard that asked for it, and a number there that is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ChangeId {
    /// The shard.
    pub by: ShardId,
    /// Its number.
    pub number: u64,
}

/// How far a change is that has closed something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// If no node goes on with it, it is undone.
    Undecided,
    /// If no node goes on with it, it is finished.
    Decided,
    /// It is finished, and nothing is closed.
    Done,
    /// It is undone, and nothing is closed.
    Undone,
}

/// A change that has closed something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Closing {
    /// Which.
    pub change: ChangeId,
    /// How far it is.
    pub stage: Stage,
}

impl Catalog {
    /// Whether something is closed: a database that changes its protocol, or a frozen table.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.databases.values().any(|database| {
            let mut tables = database.tables.values();
            database.switching.is_some() || tables.any(|table| table.frozen)
        })
    }

    /// The catalog in which nothing is closed any more: the change is undone, or finished if it was
    /// decided. Its version is larger by more than one if that takes several commands; the versions
    /// between do not exist.
    ///
    /// A database that was about to be opened under a protocol that moves rows goes back to
    /// [`ProtocolKind::COMMON`]: a node that is away may not know of the change, and could be the
    /// home of rows that move.
    #[must_use]
    pub fn opened(&self) -> Catalog {
        let mut next = self.clone();
        for command in self.opening_commands() {
            let (applied, _) = next.apply(&command).expect("what opens always applies");
            next = applied;
        }
        if let Some(closing) = &mut next.closing {
            closing.stage = match closing.stage {
                Stage::Decided => Stage::Done,
                Stage::Undecided => Stage::Undone,
                ended @ (Stage::Done | Stage::Undone) => ended,
            };
        }
        next
    }

    fn opening_commands(&self) -> Vec<Command> {
        let mut commands = Vec::new();
        for (name, database) in &self.databases {
            let (name, mut protocol) = (name.clone(), database.protocol);
            if database.switching == Some(Switching::Opening) && protocol.moves_rows() {
                protocol = ProtocolKind::COMMON;
                let database = name.clone();
                commands.push(Command::SetProtocol { database, protocol });
            }
            if database.switching.is_some() {
                let database = name.clone();
                commands.push(Command::Switch {
                    database,
                    protocol,
                    switching: None,
                });
            }
            for table in database.tables.values().filter(|table| table.frozen) {
                let (database, table) = (name.clone(), table.name.clone());
                commands.push(Command::Freeze {
                    database,
                    table,
                    frozen: false,
                });
            }
        }
        let reserved = self.reserved.iter();
        commands.extend(reserved.map(|index| Command::Unreserve { index: *index }));
        commands
    }
}
