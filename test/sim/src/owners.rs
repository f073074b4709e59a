//! No row has two owners, ever; and none has no owner when nothing is under way (protocols.md 6.5).

use crate::world::World;
use base::{IndexId, Key, ShardId};
use node::Shard;
use std::collections::{BTreeMap, BTreeSet};

impl World {
    /// Compares what all running shards say about rows that moved. With `quiet` nothing is under
    /// way: then homes and owners must agree.
    ///
    /// # Errors
    /// A text that names the row and its owners.
    pub(crate) fn check_owners(&self, quiet: bool) -> Result<(), String> {
        let running = self.nodes.iter().filter_map(|node| node.running.as_ref());
        let shards = running.flat_map(|running| &running.shards);
        let machines: BTreeMap<ShardId, &Shard> = shards
            .map(|host| (host.machine.id(), &host.machine))
            .collect();
        let mut owners: BTreeMap<Key, ShardId> = BTreeMap::new();
        // What was dropped is forgotten bit by bit.
        let known = machines.values().map(|machine| key_spaces(machine));
        let known = known.reduce(|all, here| all.intersection(&here).copied().collect());
        let known = known.unwrap_or_default();
        for (shard, machine) in &machines {
            for key in machine.rows_owned() {
                if !known.contains(&key.index) {
                    continue;
                }
                if let Some(other) = owners.insert(key.clone(), *shard) {
                    return Err(format!("{key:?} is owned by {other} and by {shard}"));
                }
            }
        }
        for (key, owner) in &owners {
            let home = machines
                .values()
                .find(|machine| machine.id() != *owner && machine.owns(key));
            if let Some(home) = home {
                let home = home.id();
                return Err(format!("{key:?} is owned by {owner} and at home in {home}"));
            }
        }
        if quiet {
            agree(&machines, &known, owners)?;
        }
        Ok(())
    }
}

/// All key spaces that a shard knows.
fn key_spaces(machine: &Shard) -> BTreeSet<IndexId> {
    let catalog = machine.catalog();
    let databases = catalog.databases.values();
    databases
        .flat_map(|database| database.key_spaces())
        .collect()
}

/// Every row that its home knows elsewhere is owned there, and no other.
fn agree(
    machines: &BTreeMap<ShardId, &Shard>,
    known: &BTreeSet<IndexId>,
    mut owners: BTreeMap<Key, ShardId>,
) -> Result<(), String> {
    for (home, machine) in machines {
        let away = machine.rows_away().into_iter();
        for (key, place) in away.filter(|(key, _)| known.contains(&key.index)) {
            let owner = owners.remove(&key);
            if owner.is_none() || owner != place {
                return Err(format!(
                    "{key:?} is at {place:?} for its home {home}, but owned by {owner:?}"
                ));
            }
        }
    }
    match owners.first_key_value() {
        Some((key, owner)) => Err(format!("{key:?} is owned by {owner} without its home")),
        None => Ok(()),
    }
}
