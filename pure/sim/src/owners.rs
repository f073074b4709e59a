//! No row has two owners, ever; and none has no owner when nothing is under way (rules L1 and R20).

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
        let machines = self.by_shard();
        let mut owners: BTreeMap<Key, ShardId> = BTreeMap::new();
        let known = known_to_all(&machines);
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

    /// A row that is gone for good: its home relies on a shard that is up and has not got it, not
    /// even as a backup, or it is on its way to a life of a node that is over. A restarted shard
    /// may have lost it until its home knows, so this is for a time when everything was healed
    /// long ago.
    pub(crate) fn lost_row(&self) -> Option<String> {
        let machines = self.by_shard();
        let known = known_to_all(&machines);
        machines.iter().find_map(|(home, machine)| {
            let under_way = machine.rows_under_way().into_iter();
            let mut under_way = under_way.filter(|(key, ..)| known.contains(&key.index));
            let late = under_way
                .find(|(_, to, life)| machines.get(to).is_some_and(|to| to.incarnation() > *life));
            if let Some((key, to, life)) = late {
                return Some(format!(
                    "{key:?} never arrives: {home} sends it to life {life} of {to}, which is over"
                ));
            }
            let tracked = machine.rows_tracked().into_iter();
            let mut tracked = tracked.filter(|(key, _)| known.contains(&key.index));
            tracked.find_map(|(key, owner)| {
                let has = machines.get(&owner?)?.has_row(&key);
                let owner = owner.filter(|_| !has)?;
                Some(format!(
                    "{key:?} is lost: its home {home} relies on {owner}, which has not got it"
                ))
            })
        })
    }

    fn by_shard(&self) -> BTreeMap<ShardId, &Shard> {
        let machines = self.machines().map(|machine| (machine.id(), machine));
        machines.collect()
    }
}

/// Key spaces that all shards know: what was dropped is forgotten bit by bit.
fn known_to_all(machines: &BTreeMap<ShardId, &Shard>) -> BTreeSet<IndexId> {
    let known = machines.values().map(|machine| key_spaces(machine));
    let known = known.reduce(|all, here| all.intersection(&here).copied().collect());
    known.unwrap_or_default()
}

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
