//! What the further transactions are about, drawn from the seed.

use super::{
    Balance, CoAccess, Further, OneSnapshot, Prices, ROWS_MAX, StockLevels, StockRow, UpdateStock,
    tables,
};
use crate::dike::{Controls, Distribution};
use crate::stream;
use crate::tpcc::random::{Constants, item_id};
use crate::tpcc::{Districts, Kind, Scale};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::Prng;
use core::fmt;

/// Rows that `d_update_stock` changes where nothing is said: the mean of an order's lines.
const STOCK_ROWS: u32 = 10;
/// The share of `co_access` that changes a group where nothing is said.
const GROUP_SHARE: f64 = 0.8;

/// What is asked for of the further transactions, `None` where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// Rows that `d_update_stock` changes, 1 or more; `None`: 10.
    pub stock_rows: Option<u32>,
    /// Rows that `broadcast_update` changes, 1 or more; `None`: 1.
    pub broadcast_rows: Option<u32>,
    /// Whether the statements of an update travel in one round.
    pub batch: bool,
    /// What `co_access` changes together.
    pub co_access: Option<CoAccess>,
}

/// Why settings are not to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SettingsError {}

impl Settings {
    /// Rows of `d_update_stock`.
    pub fn stock_rows(&self) -> u32 {
        self.stock_rows.unwrap_or(STOCK_ROWS)
    }

    /// Rows of `broadcast_update`.
    pub fn broadcast_rows(&self) -> u32 {
        self.broadcast_rows.unwrap_or(1)
    }

    /// Whether they go together with the kinds that a run `has`.
    ///
    /// # Errors
    /// One is about a kind that the run does not have, or is out of its range.
    pub fn fits(&self, has: &dyn Fn(Kind) -> bool) -> Result<(), SettingsError> {
        let updates = [
            Kind::DUpdateStock,
            Kind::DUpdateBalance,
            Kind::BroadcastUpdate,
            Kind::CoAccess,
        ];
        let options: [(bool, &str, &[Kind]); 4] = [
            (
                self.stock_rows.is_some(),
                "--stock-rows",
                &[Kind::DUpdateStock],
            ),
            (
                self.broadcast_rows.is_some(),
                "--broadcast-rows",
                &[Kind::BroadcastUpdate],
            ),
            (self.co_access.is_some(), "--co-access", &[Kind::CoAccess]),
            (self.batch, "--batch-update", &updates),
        ];
        for (is_given, name, kinds) in options {
            if is_given && !kinds.iter().any(|kind| has(*kind)) {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                return Err(SettingsError(format!(
                    "{name} is about {}: give it a share in --mix, or leave {name} out",
                    names.join(", ")
                )));
            }
        }
        let rows = [
            ("--stock-rows", self.stock_rows()),
            ("--broadcast-rows", self.broadcast_rows()),
        ];
        match rows.iter().find(|(_, rows)| !(1..=ROWS_MAX).contains(rows)) {
            Some((name, rows)) => Err(SettingsError(format!("{name} {rows}: 1 to {ROWS_MAX}"))),
            None => Ok(()),
        }
    }

    /// Whether the loaded warehouses and the distribution allow them.
    ///
    /// # Errors
    /// They do not; the text says which, and what would.
    pub fn meet(
        &self,
        has: &dyn Fn(Kind) -> bool,
        warehouses: u32,
        distribution: Option<&Distribution>,
    ) -> Result<(), SettingsError> {
        let refuse = |text: String| Err(SettingsError(text));
        let most = distribution.map_or(1, Distribution::keys_max);
        let groups = self.co_access.unwrap_or_default();
        if has(Kind::DUpdateStock) && u64::from(self.stock_rows()) < most {
            return refuse(format!(
                "--stock-rows {}: a distributed d_update_stock has rows of {most} warehouses",
                self.stock_rows()
            ));
        }
        if has(Kind::CoAccess) {
            if u64::from(groups.rows) < most {
                return refuse(format!(
                    "--co-access {groups}: a distributed group has rows of {most} warehouses"
                ));
            }
            if groups.share.is_some() && distribution.is_some() {
                return refuse(format!(
                    "--co-access {groups}: with --distribution the share of groups is --ratio"
                ));
            }
            if warehouses < 2 {
                return refuse("co_access needs 2 warehouses or more".into());
            }
        }
        let has_accounts = has(Kind::DUpdateBalance) || has(Kind::DSelectBalance);
        if has_accounts && warehouses > tables::WAREHOUSES_MAX {
            let most = tables::WAREHOUSES_MAX;
            return refuse(format!(
                "d_update_balance and d_select_balance have {most} warehouses at most, not \
                 {warehouses}"
            ));
        }
        Ok(())
    }
}

/// What the further transactions of a run are drawn from.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    settings: Settings,
    one_snapshot: OneSnapshot,
    /// Sets of rows (warehouse and item), by home from 1.
    sets: Vec<Vec<Vec<(u32, u32)>>>,
}

impl Groups {
    /// Prepares settings that [meet](Settings::meet) the run. The sets of `co_access` are those of
    /// the seed. `one_snapshot`: whether the isolation level promises one.
    pub fn new(
        settings: Settings,
        one_snapshot: OneSnapshot,
        scale: &Scale,
        seed: u64,
        distribution: Option<&Distribution>,
    ) -> Groups {
        let wanted = settings.co_access.unwrap_or_default();
        let mut prng = stream(seed, &[0x636f_6163]);
        let mut set = |home: u32| {
            let mut warehouses = match distribution {
                Some(distribution) => distribution.partners(&mut prng, home),
                None => others(&mut prng, scale.warehouses, home, wanted.rows - 1),
            };
            warehouses.insert(0, home);
            let places = warehouses.iter().cycle().take(wanted.rows as usize);
            let item = |_: &u32| prng.between(1, i64::from(scale.items)) as u32;
            let items: Vec<u32> = places.clone().map(item).collect();
            let mut rows: Vec<(u32, u32)> = places.copied().zip(items).collect();
            rows.sort_unstable();
            rows.dedup();
            rows
        };
        let homes = 1..=scale.warehouses;
        let sets = homes.map(|home| (0..wanted.groups).map(|_| set(home)).collect());
        Groups {
            settings,
            one_snapshot,
            sets: sets.collect(),
        }
    }

    /// What was asked for.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// So many warehouses beside `home`, or all if there are fewer, each set of them equally often.
fn others(prng: &mut Prng, warehouses: u32, home: u32, count: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (1..=warehouses).filter(|it| *it != home).collect();
    let count = (count as usize).min(all.len());
    for at in 0..count {
        let other = at + prng.below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

/// What a terminal draws from.
pub(crate) struct Source<'a> {
    pub(crate) prng: &'a mut Prng,
    pub(crate) scale: &'a Scale,
    pub(crate) districts: &'a Districts,
    pub(crate) constants: &'a Constants,
    /// Warehouse and district of the terminal.
    pub(crate) home: (u32, u32),
}

/// An input of the given kind, which is not TPC-C's.
pub(crate) fn draw(kind: Kind, source: &mut Source<'_>, controls: &Controls) -> Further {
    let distribution = controls.distribution.as_deref();
    let groups = &controls.groups;
    let batch = groups.settings.batch;
    let home = source.home.0;
    match kind {
        Kind::DStockLevel => Further::StockLevel(source.stock_levels(distribution)),
        Kind::DUpdateStock => {
            let rows = source.stock_rows(distribution, groups.settings.stock_rows());
            Further::UpdateStock(UpdateStock {
                warehouse: home,
                rows,
                batch,
            })
        }
        Kind::CoAccess => Further::CoAccess(UpdateStock {
            warehouse: home,
            rows: source.co_accessed(distribution, groups),
            batch,
        }),
        Kind::BroadcastUpdate => Further::Broadcast(Prices {
            warehouse: home,
            items: source.prices(distribution, groups.settings.broadcast_rows()),
            batch,
        }),
        Kind::DSelectBalance => {
            Further::SelectBalance(source.balance(distribution, batch), groups.one_snapshot)
        }
        _ => Further::UpdateBalance(source.balance(distribution, batch)),
    }
}

impl Source<'_> {
    /// Warehouses beside the home one, as a distribution says; none without one.
    fn partners(&mut self, distribution: Option<&Distribution>) -> Vec<u32> {
        match distribution {
            Some(distribution) => distribution.suppliers(self.prng, self.home.0),
            None => Vec::new(),
        }
    }

    fn stock_levels(&mut self, distribution: Option<&Distribution>) -> StockLevels {
        let partners = self.partners(distribution);
        let mut places = Vec::from([self.home]);
        for warehouse in partners {
            let districts = self.districts.in_warehouse(warehouse);
            let district = self.prng.between(1, i64::from(districts)) as u32;
            places.push((warehouse, district));
        }
        StockLevels {
            places,
            threshold: self.prng.between(10, 20) as u32,
        }
    }

    /// Rows of the home warehouse and of its partners, each of which has one or more.
    fn stock_rows(&mut self, distribution: Option<&Distribution>, count: u32) -> Vec<StockRow> {
        let mut warehouses = self.partners(distribution);
        warehouses.push(self.home.0);
        let places: Vec<u32> = (0..count as usize)
            .map(|at| match warehouses.get(at) {
                Some(warehouse) => *warehouse,
                None => warehouses[self.prng.below(warehouses.len() as u64) as usize],
            })
            .collect();
        let rows = places
            .into_iter()
            .map(|it| (it, item_id(self.prng, self.constants, self.scale)));
        let rows: Vec<(u32, u32)> = rows.collect();
        self.with_quantities(rows)
    }

    fn co_accessed(
        &mut self,
        distribution: Option<&Distribution>,
        groups: &Groups,
    ) -> Vec<StockRow> {
        let wanted = groups.settings.co_access.unwrap_or_default();
        let share = match distribution {
            Some(distribution) => distribution.wanted().ratio,
            None => wanted.share.unwrap_or(GROUP_SHARE),
        };
        let home = self.home.0;
        if self.prng.unit() < share {
            let sets = &groups.sets[home as usize - 1];
            let set = &sets[self.prng.below(sets.len() as u64) as usize];
            return self.with_quantities(set.clone());
        }
        let items = 0..wanted.rows;
        let items = items.map(|_| item_id(self.prng, self.constants, self.scale));
        let rows: Vec<(u32, u32)> = items.map(|item| (home, item)).collect();
        self.with_quantities(rows)
    }

    /// Rows in the order in which they are locked, each once.
    fn with_quantities(&mut self, mut rows: Vec<(u32, u32)>) -> Vec<StockRow> {
        rows.sort_unstable();
        rows.dedup();
        let row = |(warehouse, item)| StockRow {
            warehouse,
            item,
            quantity: self.prng.between(10, 100) as u32,
        };
        rows.into_iter().map(row).collect()
    }

    fn balance(&mut self, distribution: Option<&Distribution>, batch: bool) -> Balance {
        Balance {
            warehouse: self.home.0,
            others: self.partners(distribution),
            amount_cents: self.prng.between(100, 10_000),
            batch,
        }
    }

    /// Items of the home node, where items have homes.
    fn prices(&mut self, distribution: Option<&Distribution>, count: u32) -> Vec<(u32, i64)> {
        let mut items: Vec<u32> = (0..count)
            .map(|_| {
                let mut draw = || item_id(self.prng, self.constants, self.scale);
                match distribution {
                    Some(it) => it.placement().item(&[self.home.0], &mut draw),
                    None => draw(),
                }
            })
            .collect();
        items.sort_unstable();
        items.dedup();
        let price = |item| (item, self.prng.between(100, 10_000));
        items.into_iter().map(price).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dike::{Mix, Mode, Placement, Wanted};
    use crate::tpcc::input::{Input, Terminal};
    use alloc::sync::Arc;

    fn controls(mix: &str, distribution: Option<Distribution>, settings: Settings) -> Controls {
        let scale = Scale::standard(6);
        let mix: Mix = mix.parse().expect("a mix");
        let has = |kind| mix.share(kind) > 0.0;
        let met = settings.meet(&has, scale.warehouses, distribution.as_ref());
        met.expect("settings that can be had");
        let groups = Groups::new(
            settings,
            OneSnapshot(true),
            &scale,
            1,
            distribution.as_ref(),
        );
        Controls {
            distribution: distribution.map(Arc::new),
            mix,
            groups,
            ..Controls::default()
        }
    }

    fn drawn(controls: Controls) -> Vec<Further> {
        let controls = Arc::new(controls);
        let constants = Constants::for_run(1, 77);
        let mut all = Vec::new();
        for number in 0..6 {
            let terminal = Terminal::new(Scale::standard(6), constants, 1, number);
            let mut terminal = terminal.controlled(controls.clone());
            for _ in 0..500 {
                match terminal.draw() {
                    Input::Further(further) => all.push(further),
                    other => panic!("{other:?} has no share"),
                }
            }
        }
        all
    }

    fn exact(ratio: f64, degree: u32) -> Option<Distribution> {
        let wanted = Wanted {
            mode: Mode::Exact,
            ratio,
            degree,
        };
        Some(Distribution::new(wanted, Placement::even(6, 3)).expect("3 nodes"))
    }

    const ALL: &str = "d_stock_level:1,d_update_stock:1,d_update_balance:1,d_select_balance:1,\
                       co_access:1";

    /// Each kind touches one node or the degree, and the share that was asked for has the degree.
    #[test]
    fn each_kind_has_the_degree_that_was_asked_for() {
        for degree in [2, 3] {
            let settings = Settings {
                co_access: Some(CoAccess {
                    rows: 3,
                    ..CoAccess::default()
                }),
                ..Settings::default()
            };
            let placement = Placement::even(6, 3);
            for (ratio, low, high) in [(0.0, 0.0, 0.0), (0.4, 0.36, 0.44), (1.0, 1.0, 1.0)] {
                let all = drawn(controls(ALL, exact(ratio, degree), settings));
                let mut distributed = 0;
                for further in &all {
                    let nodes = placement.degree(&Input::Further(further.clone()));
                    assert!(nodes == 1 || nodes == degree as usize, "{further:?}");
                    assert_eq!(nodes > 1, further.leaves_home());
                    distributed += u32::from(nodes > 1);
                }
                let share = f64::from(distributed) / all.len() as f64;
                assert!((low..=high).contains(&share), "{degree} {ratio}: {share}");
            }
        }
    }

    #[test]
    fn without_a_distribution_only_groups_leave_home() {
        let all = drawn(controls(ALL, None, Settings::default()));
        let mut by_kind = [(0u32, 0u32); Kind::ALL.len()];
        for further in &all {
            let count = &mut by_kind[further.kind().number()];
            *count = (count.0 + 1, count.1 + u32::from(further.leaves_home()));
        }
        for kind in Kind::ALL {
            let (count, left) = by_kind[kind.number()];
            match kind {
                Kind::CoAccess => assert!(left > count * 7 / 10 && left < count * 9 / 10),
                _ => assert_eq!(left, 0, "{kind:?}"),
            }
        }
    }

    /// The same rows again and again: as many sets as were asked for.
    #[test]
    fn groups_are_accessed_together_and_always_the_same() {
        let settings = Settings {
            co_access: "3:2:1".parse().ok(),
            ..Settings::default()
        };
        let mut sets = alloc::collections::BTreeSet::new();
        for further in drawn(controls("co_access:1", None, settings)) {
            let Further::CoAccess(update) = further else {
                panic!("nothing else has a share");
            };
            let keys: Vec<(u32, u32)> = update
                .rows
                .iter()
                .map(|row| (row.warehouse, row.item))
                .collect();
            assert_eq!(keys.len(), 2);
            assert_ne!(keys[0].0, keys[1].0);
            sets.insert(keys);
        }
        assert_eq!(sets.len(), 6 * 3);
    }

    #[test]
    fn rows_are_locked_in_one_order_and_values_are_in_range() {
        let mix = "d_update_stock:1,broadcast_update:1";
        let settings = Settings {
            broadcast_rows: Some(4),
            ..Settings::default()
        };
        for further in drawn(controls(mix, exact(0.5, 3), settings)) {
            match further {
                Further::UpdateStock(update) => {
                    assert!(update.rows.is_sorted() && !update.rows.is_empty());
                    let quantities = update.rows.iter().map(|row| row.quantity);
                    assert!(quantities.into_iter().all(|it| (10..=100).contains(&it)));
                }
                Further::Broadcast(prices) => {
                    assert!(prices.items.is_sorted() && prices.items.len() <= 4);
                    let mut cents = prices.items.iter().map(|item| item.1);
                    assert!(cents.all(|it| (100..=10_000).contains(&it)));
                }
                other => panic!("{other:?} has no share"),
            }
        }
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let fits = |settings: Settings, kind: Kind| settings.fits(&|it| it == kind);
        let rows = Settings {
            stock_rows: Some(2),
            ..Settings::default()
        };
        let error = fits(rows, Kind::NewOrder).expect_err("no such kind").0;
        assert!(
            error.contains("--stock-rows is about d_update_stock"),
            "{error}"
        );
        assert!(fits(rows, Kind::DUpdateStock).is_ok());
        let batch = Settings {
            batch: true,
            ..Settings::default()
        };
        assert!(fits(batch, Kind::DSelectBalance).is_err());
        assert!(fits(batch, Kind::CoAccess).is_ok());
        let meet = |settings: Settings, kind: Kind, warehouses| {
            let met = settings.meet(&|it| it == kind, warehouses, exact(1.0, 3).as_ref());
            met.map_err(|error| error.0)
        };
        let error = meet(rows, Kind::DUpdateStock, 6).expect_err("3 nodes");
        assert!(error.contains("--stock-rows 2"), "{error}");
        let usual = Settings::default();
        assert!(meet(usual, Kind::CoAccess, 6).is_err());
        assert!(meet(usual, Kind::DUpdateBalance, 6).is_ok());
        assert!(meet(usual, Kind::DUpdateBalance, 1_001).is_err());
        let share = Settings {
            co_access: "4:3:0.5".parse().ok(),
            ..usual
        };
        let error = meet(share, Kind::CoAccess, 6).expect_err("two shares");
        assert!(error.contains("--ratio"), "{error}");
    }
}
