//! The inputs of the five transactions (clauses 2.4.1 to 2.8.1), drawn from the seed.

use super::deck::{Deck, think_us};
use super::random::{Constants, customer_id, item_id, last_name, last_name_number};
use super::{DISTRICTS, Districts, Kind, Scale};
use crate::dike::contention::Pick;
use crate::dike::further::{self, Further, Source};
use crate::dike::{Controls, Distribution};
use crate::stream;
use alloc::{string::String, sync::Arc, vec::Vec};
use base::Prng;

/// How a transaction names its customer (clauses 2.5.1.2 and 2.6.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Customer {
    /// By C_ID, 40 %.
    Id(u32),
    /// By C_LAST, 60 %: the middle one by first name of those with that name.
    LastName(String),
}

/// One line of a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// OL_I_ID; one above the last item where the order must roll back.
    pub item: u32,
    /// OL_SUPPLY_W_ID: the home warehouse, 1 % another one.
    pub supply_warehouse: u32,
    /// OL_QUANTITY, 1 to 10.
    pub quantity: u32,
}

/// The input of NewOrder (clause 2.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// The terminal's warehouse.
    pub warehouse: u32,
    /// A random district.
    pub district: u32,
    /// By NURand.
    pub customer: u32,
    /// 5 to 15 lines.
    pub lines: Vec<Line>,
    /// One of its lines is for this row, which it locks first; `None`: as always.
    pub hot: Option<Arc<Pick>>,
}

/// The input of Payment (clause 2.5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The terminal's warehouse.
    pub warehouse: u32,
    /// A random district.
    pub district: u32,
    /// The customer's warehouse: 15 % another one.
    pub customer_warehouse: u32,
    /// The customer's district.
    pub customer_district: u32,
    /// Who pays.
    pub customer: Customer,
    /// H_AMOUNT: 1.00 to 5,000.00.
    pub amount_cents: i64,
}

/// The input of OrderStatus (clause 2.6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    /// The terminal's warehouse.
    pub warehouse: u32,
    /// A random district.
    pub district: u32,
    /// Whose last order.
    pub customer: Customer,
}

/// The input of Delivery (clause 2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The terminal's warehouse.
    pub warehouse: u32,
    /// O_CARRIER_ID, 1 to 10.
    pub carrier: u32,
    /// The first and the last district: all, and where there are more than ten, ten of them.
    pub districts: (u32, u32),
}

/// The input of StockLevel (clause 2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockLevel {
    /// The terminal's warehouse.
    pub warehouse: u32,
    /// The terminal's own district (clause 2.8.1.1).
    pub district: u32,
    /// 10 to 20.
    pub threshold: u32,
}

/// The input of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Clause 2.4.
    NewOrder(NewOrder),
    /// Clause 2.5.
    Payment(Payment),
    /// Clause 2.6.
    OrderStatus(OrderStatus),
    /// Clause 2.7.
    Delivery(Delivery),
    /// Clause 2.8.
    StockLevel(StockLevel),
    /// One that only Dike has.
    Further(Further),
}

impl Input {
    /// Which transaction it is for.
    pub fn kind(&self) -> Kind {
        match self {
            Input::NewOrder(_) => Kind::NewOrder,
            Input::Payment(_) => Kind::Payment,
            Input::OrderStatus(_) => Kind::OrderStatus,
            Input::Delivery(_) => Kind::Delivery,
            Input::StockLevel(_) => Kind::StockLevel,
            Input::Further(further) => further.kind(),
        }
    }

    /// The warehouse that is its home.
    pub fn home(&self) -> u32 {
        match self {
            Input::NewOrder(order) => order.warehouse,
            Input::Payment(payment) => payment.warehouse,
            Input::OrderStatus(status) => status.warehouse,
            Input::Delivery(delivery) => delivery.warehouse,
            Input::StockLevel(level) => level.warehouse,
            Input::Further(further) => further.home(),
        }
    }
}

impl NewOrder {
    /// Whether the last line names an unused item, so that the order must roll back.
    pub fn rolls_back(&self, scale: &Scale) -> bool {
        self.lines
            .last()
            .is_some_and(|line| line.item > scale.items)
    }
}

/// Draws inputs for one terminal: home warehouse and home district are fixed (clause 2.4.1.1,
/// 2.8.1.1).
#[derive(Clone, Debug)]
pub struct Terminal {
    scale: Scale,
    districts: Districts,
    constants: Constants,
    warehouse: u32,
    district: u32,
    deck: Deck,
    prng: Prng,
    controls: Option<Arc<Controls>>,
    /// The only kind that it has.
    bound: Option<Kind>,
}

impl Terminal {
    /// Terminal `number` (from 0). Terminals go round the warehouses first, then the districts.
    pub fn new(scale: Scale, constants: Constants, seed: u64, number: u32) -> Terminal {
        Terminal::of(scale, scale.districts(), constants, seed, number)
    }

    /// The same with the [districts](Scale::districts) of the scale, which terminals share.
    pub fn of(
        scale: Scale,
        districts: Districts,
        constants: Constants,
        seed: u64,
        number: u32,
    ) -> Terminal {
        let home = number % scale.warehouses + 1;
        let district = number / scale.warehouses % districts.in_warehouse(home) + 1;
        let prng = stream(seed, &[0x7465_726d, u64::from(number)]);
        Terminal {
            scale,
            districts,
            constants,
            warehouse: home,
            district,
            deck: Deck::new(),
            prng,
            controls: None,
            bound: None,
        }
    }

    /// The same with inputs as the controls want them, which are not the specification's.
    pub fn controlled(mut self, controls: Arc<Controls>) -> Terminal {
        self.controls = Some(controls);
        self
    }

    /// The same with this home warehouse and home district, if they are given.
    pub fn at_home(mut self, home: Option<(u32, u32)>) -> Terminal {
        (self.warehouse, self.district) = home.unwrap_or(self.home());
        self
    }

    /// The same with transactions of one kind only, if one is given.
    pub fn bound_to(mut self, kind: Option<Kind>) -> Terminal {
        self.bound = kind;
        self
    }

    /// The home warehouse and the home district.
    pub fn home(&self) -> (u32, u32) {
        (self.warehouse, self.district)
    }

    /// The next transaction's input: its kind comes from the terminal's deck.
    pub fn draw(&mut self) -> Input {
        if let Some(controls) = &self.controls
            && let Some(home) = controls.home(&mut self.prng)
        {
            self.warehouse = home;
            self.district = self.any_district(home);
        }
        let kind = match (&self.controls, self.bound) {
            (_, Some(kind)) => kind,
            (Some(controls), None) => controls.kind(&mut self.prng),
            (None, None) => self.deck.draw(&mut self.prng),
        };
        self.draw_kind(kind)
    }

    /// An input of the given kind. Only a controlled terminal draws what TPC-C does not have.
    pub fn draw_kind(&mut self, kind: Kind) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(self.new_order()),
            Kind::Payment => Input::Payment(self.payment()),
            Kind::OrderStatus => Input::OrderStatus(OrderStatus {
                warehouse: self.warehouse,
                district: self.any_district(self.warehouse),
                customer: self.customer(),
            }),
            Kind::Delivery => Input::Delivery(Delivery {
                warehouse: self.warehouse,
                carrier: self.prng.between(1, 10) as u32,
                districts: self.delivered_districts(),
            }),
            Kind::StockLevel => Input::StockLevel(StockLevel {
                warehouse: self.warehouse,
                district: self.district,
                threshold: self.prng.between(10, 20) as u32,
            }),
            Kind::DStockLevel
            | Kind::DUpdateStock
            | Kind::DUpdateBalance
            | Kind::DSelectBalance
            | Kind::BroadcastUpdate
            | Kind::CoAccess => Input::Further(self.further(kind)),
        }
    }

    fn further(&mut self, kind: Kind) -> Further {
        let controls = self.controls.clone();
        let controls = controls.expect("only a controlled terminal draws what TPC-C has not");
        let mut source = Source {
            prng: &mut self.prng,
            scale: &self.scale,
            districts: &self.districts,
            constants: &self.constants,
            home: (self.warehouse, self.district),
        };
        further::draw(kind, &mut source, &controls)
    }

    /// The think time after a transaction, in microseconds.
    pub fn think_us(&mut self, kind: Kind) -> u64 {
        think_us(&mut self.prng, kind)
    }

    fn item(&mut self, distribution: Option<&Distribution>, near: &[u32]) -> u32 {
        let mut draw = || item_id(&mut self.prng, &self.constants, &self.scale);
        match distribution {
            Some(distribution) => distribution.placement().item(near, &mut draw),
            None => draw(),
        }
    }

    fn distribution(&self) -> Option<Arc<Distribution>> {
        self.controls.as_ref()?.distribution.clone()
    }

    fn any_district(&mut self, warehouse: u32) -> u32 {
        let districts = self.districts.in_warehouse(warehouse);
        self.prng.between(1, i64::from(districts)) as u32
    }

    /// The districts of a Delivery: ten at most, so that it does not grow with the warehouse.
    fn delivered_districts(&mut self) -> (u32, u32) {
        let all = self.districts.in_warehouse(self.warehouse);
        if all <= DISTRICTS {
            return (1, all);
        }
        let tens = u64::from(all.div_ceil(DISTRICTS));
        let first = self.prng.below(tens) as u32 * DISTRICTS + 1;
        (first, all.min(first + DISTRICTS - 1))
    }

    /// A warehouse that is not the home one; the home one where there is no other.
    fn other_warehouse(&mut self) -> u32 {
        if self.scale.warehouses == 1 {
            return self.warehouse;
        }
        let drawn = self.prng.between(1, i64::from(self.scale.warehouses) - 1) as u32;
        drawn + u32::from(drawn >= self.warehouse)
    }

    fn customer(&mut self) -> Customer {
        if self.prng.between(1, 100) <= 60 {
            let number = last_name_number(&mut self.prng, self.constants.c_last, &self.scale);
            Customer::LastName(last_name(number))
        } else {
            Customer::Id(customer_id(&mut self.prng, &self.constants, &self.scale))
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let district = self.any_district(self.warehouse);
        let customer = customer_id(&mut self.prng, &self.constants, &self.scale);
        let distribution = self.distribution();
        let suppliers = match &distribution {
            Some(distribution) => distribution.suppliers(&mut self.prng, self.warehouse),
            None => Vec::new(),
        };
        let count = match &distribution {
            Some(distribution) => distribution.lines(&mut self.prng, suppliers.len()),
            None => self.prng.between(5, 15) as u32,
        };
        let rolls_back = self.prng.between(1, 100) == 1;
        let mut near = suppliers.clone();
        near.push(self.warehouse);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                item: self.item(distribution.as_deref(), &near),
                supply_warehouse: match &distribution {
                    None if self.prng.between(1, 100) == 1 => self.other_warehouse(),
                    _ => self.warehouse,
                },
                quantity: self.prng.between(1, 10) as u32,
            })
            .collect();
        for (line, supplier) in lines.iter_mut().zip(&suppliers) {
            line.supply_warehouse = *supplier;
        }
        for place in (0..suppliers.len()).rev() {
            let other = place + self.prng.below((lines.len() - place) as u64) as usize;
            lines.swap(place, other);
        }
        if rolls_back && let Some(last) = lines.last_mut() {
            last.item = self.scale.items + 1;
        }
        let hot = self
            .controls
            .as_ref()
            .and_then(|it| it.heat(self.warehouse, &mut lines));
        NewOrder {
            warehouse: self.warehouse,
            district,
            customer,
            lines,
            hot,
        }
    }

    fn payment(&mut self) -> Payment {
        let district = self.any_district(self.warehouse);
        let stays = self.distribution().is_some() || self.prng.between(1, 100) <= 85;
        let (customer_warehouse, customer_district) = match stays {
            true => (self.warehouse, district),
            false => {
                let other = self.other_warehouse();
                (other, self.any_district(other))
            }
        };
        Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer: self.customer(),
            amount_cents: self.prng.between(100, 500_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dike::{Mode, Placement, Wanted};

    fn terminal(warehouses: u32, number: u32) -> Terminal {
        Terminal::new(
            Scale::standard(warehouses),
            Constants::for_run(1, 77),
            1,
            number,
        )
    }

    #[test]
    fn homes_go_round_warehouses_then_districts() {
        let homes: Vec<(u32, u32)> = (0..5).map(|n| terminal(2, n).home()).collect();
        assert_eq!(homes, [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3)]);
        assert_eq!(terminal(1, 10).home(), (1, 1));
    }

    #[test]
    fn values_are_in_the_ranges_of_the_clauses() {
        let mut terminal = terminal(3, 1);
        for _ in 0..20_000 {
            match terminal.draw() {
                Input::NewOrder(order) => {
                    assert_eq!(order.warehouse, 2);
                    assert!((1..=10).contains(&order.district));
                    assert!((1..=3_000).contains(&order.customer));
                    assert!((5..=15).contains(&order.lines.len()));
                    for line in &order.lines {
                        assert!((1..=100_001).contains(&line.item));
                        assert!((1..=3).contains(&line.supply_warehouse));
                        assert!((1..=10).contains(&line.quantity));
                    }
                    let unused = order.lines.iter().filter(|l| l.item == 100_001).count();
                    assert_eq!(unused == 1, order.rolls_back(&Scale::standard(3)));
                }
                Input::Payment(payment) => {
                    assert!((100..=500_000).contains(&payment.amount_cents));
                    if payment.customer_warehouse == 2 {
                        assert_eq!(payment.customer_district, payment.district);
                    }
                }
                Input::OrderStatus(status) => assert!((1..=10).contains(&status.district)),
                Input::Delivery(delivery) => {
                    assert!((1..=10).contains(&delivery.carrier));
                    assert_eq!(delivery.districts, (1, 10));
                }
                Input::StockLevel(level) => {
                    assert_eq!((level.warehouse, level.district), (2, 1));
                    assert!((10..=20).contains(&level.threshold));
                }
                Input::Further(further) => panic!("{further:?} is none of TPC-C"),
            }
        }
    }

    #[test]
    fn same_seed_same_inputs_and_terminals_differ() {
        let draw = |number| {
            let mut terminal = terminal(4, number);
            (0..200).map(|_| terminal.draw()).collect::<Vec<Input>>()
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(4));
    }

    #[test]
    fn one_warehouse_has_nothing_remote() {
        let mut terminal = terminal(1, 0);
        for _ in 0..2_000 {
            match terminal.draw() {
                Input::NewOrder(order) => {
                    assert!(order.lines.iter().all(|line| line.supply_warehouse == 1));
                }
                Input::Payment(payment) => assert_eq!(payment.customer_warehouse, 1),
                _ => {}
            }
        }
    }

    /// Shares of lines and of payments that concern another warehouse.
    /// With data by Zipf every district is used, and none that was not loaded.
    #[test]
    fn every_loaded_district_is_used_and_no_other() {
        for exponent in ["0.5", "0.99", "1.5"] {
            let scale = Scale {
                skew: exponent.parse().expect("an exponent"),
                ..Scale::standard(5)
            };
            let districts = scale.districts();
            let mut used = alloc::collections::BTreeMap::new();
            let mut delivered = alloc::collections::BTreeSet::new();
            for number in 0..50 {
                let constants = Constants::for_run(1, 77);
                let mut terminal = Terminal::new(scale, constants, 1, number);
                for _ in 0..400 {
                    match terminal.draw() {
                        Input::NewOrder(order) => {
                            *used.entry((order.warehouse, order.district)).or_insert(0) += 1;
                        }
                        Input::Payment(payment) => {
                            let key = (payment.customer_warehouse, payment.customer_district);
                            *used.entry(key).or_insert(0) += 1;
                        }
                        Input::Delivery(delivery) => {
                            let (first, last) = delivery.districts;
                            assert!(last - first < DISTRICTS);
                            delivered.extend((first..=last).map(|d| (delivery.warehouse, d)));
                        }
                        _ => {}
                    }
                }
            }
            let loaded: Vec<(u32, u32)> = (1..=5)
                .flat_map(|w| (1..=districts.in_warehouse(w)).map(move |d| (w, d)))
                .collect();
            assert!(used.keys().eq(loaded.iter()), "{exponent}");
            assert!(delivered.iter().eq(loaded.iter()), "{exponent}");
        }
    }

    fn remote_shares(distribution: Option<Distribution>) -> (f64, f64) {
        let distribution = distribution.map(Arc::new);
        let mix = "new_order:1,payment:1".parse().expect("a mix");
        let controls = Controls {
            distribution,
            mix,
            ..Controls::default()
        };
        let mut terminal = terminal(4, 2).controlled(Arc::new(controls));
        let (mut lines, mut remote_lines, mut payments, mut remote_payments) = (0, 0, 0, 0);
        for _ in 0..20_000 {
            match terminal.draw() {
                Input::NewOrder(order) => {
                    lines += order.lines.len();
                    let remote = order.lines.iter().filter(|line| line.supply_warehouse != 3);
                    remote_lines += remote.count();
                }
                Input::Payment(payment) => {
                    payments += 1;
                    remote_payments += u32::from(payment.customer_warehouse != 3);
                }
                _ => {}
            }
        }
        let lines = remote_lines as f64 / lines as f64;
        (lines, f64::from(remote_payments) / f64::from(payments))
    }

    /// A mix alone leaves TPC-C's shares of other warehouses; a distribution replaces them.
    #[test]
    fn only_a_distribution_changes_what_is_remote() {
        let (lines, payments) = remote_shares(None);
        assert!((0.008..0.012).contains(&lines), "{lines}");
        assert!((0.13..0.17).contains(&payments), "{payments}");
        let wanted = Wanted {
            mode: Mode::Exact,
            ratio: 0.0,
            degree: 2,
        };
        let none = Distribution::new(wanted, Placement::even(4, 2)).expect("2 nodes");
        assert_eq!(remote_shares(Some(none)), (0.0, 0.0));
    }

    #[test]
    fn remote_warehouses_are_all_others_alike() {
        let mut terminal = terminal(4, 2);
        let mut counts = [0u32; 5];
        for _ in 0..3_000 {
            counts[terminal.other_warehouse() as usize] += 1;
        }
        assert_eq!(counts[3], 0);
        assert!(
            [1, 2, 4].iter().all(|&w| (900..1_100).contains(&counts[w])),
            "{counts:?}"
        );
    }
}
