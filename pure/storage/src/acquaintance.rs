//! What a node remembers of the others: in which directory and incarnation it has last met them.
//!
//! A node that comes back with another directory, or in an earlier life, has lost what it had
//! acknowledged. Its peers refuse it rather than count its rows as gone.

use crate::disk::{Disk, DiskError, DiskFault};
use crate::error::StorageError;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{NodeId, codec};
use core::fmt;
use journal::{Fault, JournalError};
use serde::{Deserialize, Serialize};

/// Name of the file.
pub const PEERS_NAME: &str = "PEERS";
/// Where the next one lies until it is whole.
const PEERS_NEW: &str = "PEERS.new";

/// How a node introduces itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Introduction {
    /// Number of its directory.
    pub directory: u64,
    /// Its starts so far.
    pub incarnation: u32,
}

/// Why a node is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stranger {
    /// It has another directory than before.
    OtherDirectory,
    /// Its incarnation is lower than this one, which was met before.
    EarlierLife(u32),
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stranger::OtherDirectory => f.write_str(
                "it has come back with another data directory, without the rows that it had",
            ),
            Stranger::EarlierLife(seen) => write!(
                f,
                "it has come back with older data: incarnation {seen} was met before"
            ),
        }
    }
}

/// Whether a node may come, by what was `seen` of it. `Ok(true)`: that is news.
///
/// # Errors
/// It must not.
pub fn admit(seen: Option<Introduction>, now: Introduction) -> Result<bool, Stranger> {
    match seen {
        None => Ok(true),
        Some(seen) if seen.directory != now.directory => Err(Stranger::OtherDirectory),
        Some(seen) if seen.incarnation > now.incarnation => {
            Err(Stranger::EarlierLife(seen.incarnation))
        }
        Some(seen) => Ok(seen.incarnation < now.incarnation),
    }
}

/// The nodes that were met, on disk.
pub struct Acquaintances<D: Disk> {
    disk: D,
    met: BTreeMap<NodeId, Introduction>,
}

impl<D: Disk> Acquaintances<D> {
    /// Reads who was met.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn read(disk: &D) -> Result<Acquaintances<D>, StorageError> {
        let met = match disk.read_all(PEERS_NAME) {
            Ok(bytes) => decode(&bytes)
                .map_err(|fault| JournalError::new(&disk.describe(PEERS_NAME), 0, fault))?,
            Err(error) if error.fault == DiskFault::NotFound => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Acquaintances {
            disk: disk.clone(),
            met: met.into_iter().collect(),
        })
    }

    /// Meets a node; what is new is durable when this returns.
    ///
    /// # Errors
    /// The disk, inside of `Ok` who must not come.
    pub fn meet(
        &mut self,
        node: NodeId,
        now: Introduction,
    ) -> Result<Result<(), Stranger>, DiskError> {
        match admit(self.met.get(&node).copied(), now) {
            Err(stranger) => return Ok(Err(stranger)),
            Ok(false) => return Ok(Ok(())),
            Ok(true) => {}
        }
        self.met.insert(node, now);
        let met: Vec<(NodeId, Introduction)> = self.met.iter().map(|(n, i)| (*n, *i)).collect();
        let payload = codec::to_vec(&met);
        let mut bytes = Vec::new();
        journal::frame(&payload, &mut bytes);
        let file = self.disk.create(PEERS_NEW)?;
        self.disk.write_all_at(&file, 0, &bytes)?;
        self.disk.sync(&file)?;
        self.disk.rename(PEERS_NEW, PEERS_NAME)?;
        self.disk.sync_directory()?;
        Ok(Ok(()))
    }
}

fn decode(bytes: &[u8]) -> Result<Vec<(NodeId, Introduction)>, Fault> {
    let payload = journal::record::unframe(bytes)?;
    codec::decode(payload).map_err(Fault::Content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table() {
        let who = |directory, incarnation| Introduction {
            directory,
            incarnation,
        };
        let rows = [
            (None, who(1, 1), Ok(true)),
            (Some(who(1, 3)), who(1, 4), Ok(true)),
            (Some(who(1, 3)), who(1, 3), Ok(false)),
            (Some(who(1, 3)), who(1, 2), Err(Stranger::EarlierLife(3))),
            (Some(who(1, 3)), who(2, 3), Err(Stranger::OtherDirectory)),
            (Some(who(1, 3)), who(2, 9), Err(Stranger::OtherDirectory)),
            (Some(who(1, 3)), who(2, 1), Err(Stranger::OtherDirectory)),
        ];
        for (seen, now, verdict) in rows {
            assert_eq!(admit(seen, now), verdict, "{seen:?} {now:?}");
        }
    }
}
