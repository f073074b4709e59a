//! The twelve consistency conditions (clause 3.3.2), in integer cents, in both directions.
//!
//! The facts of one warehouse are gathered from one snapshot and compared here, so a hundred
//! warehouses need the memory of one. Both directions means: a row without its counterpart fails
//! whichever side it is on; an absent sum counts as 0 and an absent row or NULL never matches
//! silently, as it would in an inner join.

use super::{Districts, Scale};
use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};

/// What each condition says, in order; entry 0 is condition 1.
pub const TITLES: [&str; 12] = [
    "W_YTD = sum(D_YTD)",
    "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
    "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
    "sum(O_OL_CNT) = rows of ORDER-LINE",
    "O_CARRIER_ID is null if and only if the order is in NEW-ORDER",
    "O_OL_CNT = rows of ORDER-LINE of the order",
    "OL_DELIVERY_D is null if and only if O_CARRIER_ID is null",
    "W_YTD = sum(H_AMOUNT) of the warehouse",
    "D_YTD = sum(H_AMOUNT) of the district",
    "C_BALANCE = sum(OL_AMOUNT delivered) - sum(H_AMOUNT)",
    "rows of ORDER - rows of NEW-ORDER = loaded delivered + deliveries",
    "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT delivered)",
];

/// District and order, or district and customer.
pub type InDistrict = (u32, u32);

/// D_YTD and D_NEXT_O_ID; `None` is NULL.
#[derive(Clone, Copy, Debug)]
pub struct DistrictFacts {
    /// In cents.
    pub ytd_cents: Option<i64>,
    /// The next order's number.
    pub next_order: Option<i64>,
}

/// A row of ORDER; `None` is NULL.
#[derive(Clone, Copy, Debug)]
pub struct OrderFacts {
    /// O_C_ID.
    pub customer: Option<u32>,
    /// O_OL_CNT.
    pub lines: Option<i64>,
    /// Whether O_CARRIER_ID is set.
    pub has_carrier: bool,
}

/// The lines of one order.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineFacts {
    /// Rows.
    pub rows: i64,
    /// Rows with OL_DELIVERY_D.
    pub delivered_rows: i64,
    /// Sum of OL_AMOUNT over those rows, in cents.
    pub delivered_cents: i64,
}

/// A row of CUSTOMER; `None` is NULL.
#[derive(Clone, Copy, Debug)]
pub struct CustomerFacts {
    /// C_BALANCE in cents.
    pub balance_cents: Option<i64>,
    /// C_YTD_PAYMENT in cents.
    pub ytd_payment_cents: Option<i64>,
    /// C_DELIVERY_CNT.
    pub deliveries: Option<i64>,
}

/// Everything that the conditions need of one warehouse.
#[derive(Clone, Debug, Default)]
pub struct WarehouseFacts {
    /// W_ID.
    pub warehouse: u32,
    /// W_YTD in cents; `None` when the row is missing or NULL.
    pub ytd_cents: Option<i64>,
    /// DISTRICT.
    pub districts: BTreeMap<u32, DistrictFacts>,
    /// ORDER by district and order.
    pub orders: BTreeMap<InDistrict, OrderFacts>,
    /// NEW-ORDER by district and order.
    pub new_orders: BTreeSet<InDistrict>,
    /// ORDER-LINE, grouped by district and order.
    pub lines: BTreeMap<InDistrict, LineFacts>,
    /// sum(H_AMOUNT) in cents of rows with this H_W_ID, by H_D_ID.
    pub history_by_district: BTreeMap<u32, i64>,
    /// sum(H_AMOUNT) in cents of rows with this H_C_W_ID, by H_C_D_ID and H_C_ID.
    pub history_by_customer: BTreeMap<InDistrict, i64>,
    /// CUSTOMER by district and customer.
    pub customers: BTreeMap<InDistrict, CustomerFacts>,
    /// Keys that were read twice from a table whose key they are.
    pub repeated_keys: Vec<String>,
}

/// The state of one condition over the warehouses seen so far.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Compared groups.
    pub compared: u64,
    /// Groups that differ.
    pub failures: u64,
    /// The first that differs, in words.
    pub counterexample: Option<String>,
}

impl Condition {
    /// Counts a compared group, and what differs in it if it does.
    pub fn note(&mut self, is_equal: bool, tell: impl FnOnce() -> String) {
        self.compared += 1;
        if !is_equal {
            self.failures += 1;
            self.counterexample.get_or_insert_with(tell);
        }
    }
}

/// Collects the verdicts over all warehouses.
#[derive(Clone, Debug)]
pub struct Verifier {
    scale: Scale,
    districts: Districts,
    conditions: [Condition; 12],
}

impl Verifier {
    /// For a database loaded at `scale` (condition 11 needs the loaded orders).
    pub fn new(scale: Scale) -> Verifier {
        Verifier {
            scale,
            districts: scale.districts(),
            conditions: Default::default(),
        }
    }

    /// The twelve conditions in order.
    pub fn conditions(&self) -> &[Condition; 12] {
        &self.conditions
    }

    /// Conditions that hold everywhere so far and compared something.
    pub fn passed(&self) -> usize {
        self.conditions
            .iter()
            .filter(|c| c.failures == 0 && c.compared > 0)
            .count()
    }

    /// Records a failure found outside one warehouse's facts, such as rows of a warehouse that does
    /// not exist. `number` is 1 to 12.
    pub fn fail(&mut self, number: usize, counterexample: impl FnOnce() -> String) {
        self.compare(number, false, counterexample);
    }

    /// Compares the facts of one warehouse.
    pub fn check(&mut self, facts: &WarehouseFacts) {
        let w = facts.warehouse;
        for key in &facts.repeated_keys {
            self.fail(4, || format!("warehouse {w}: {key} was read twice"));
        }
        self.check_money(facts);
        self.check_districts(facts);
        self.check_orders(facts);
        self.check_customers(facts);
    }

    fn compare(&mut self, number: usize, holds: bool, counterexample: impl FnOnce() -> String) {
        let condition = &mut self.conditions[number - 1];
        condition.compared += 1;
        if !holds {
            condition.failures += 1;
            if condition.counterexample.is_none() {
                condition.counterexample = Some(counterexample());
            }
        }
    }

    /// Conditions 1, 8 and 9.
    fn check_money(&mut self, facts: &WarehouseFacts) {
        let w = facts.warehouse;
        let ytd = facts.ytd_cents;
        let districts: Option<i64> = facts.districts.values().map(|d| d.ytd_cents).sum();
        self.compare(1, ytd.is_some() && ytd == districts, || {
            format!(
                "warehouse {w}: W_YTD {}, sum(D_YTD) {}",
                money(ytd),
                money(districts)
            )
        });
        let history: i64 = facts.history_by_district.values().sum();
        self.compare(8, ytd == Some(history), || {
            format!(
                "warehouse {w}: W_YTD {}, sum(H_AMOUNT) {}",
                money(ytd),
                money(Some(history))
            )
        });
        let mut numbers: BTreeSet<u32> = facts.districts.keys().copied().collect();
        numbers.extend(facts.history_by_district.keys());
        for d in numbers {
            let ytd = facts
                .districts
                .get(&d)
                .and_then(|district| district.ytd_cents);
            let history = facts.history_by_district.get(&d).copied().unwrap_or(0);
            self.compare(9, ytd == Some(history), || {
                let (ytd, history) = (money(ytd), money(Some(history)));
                format!("warehouse {w} district {d}: D_YTD {ytd}, sum(H_AMOUNT) {history}")
            });
        }
    }

    /// Conditions 2, 3, 4 and 11, for every district that any table names.
    fn check_districts(&mut self, facts: &WarehouseFacts) {
        let w = facts.warehouse;
        let mut numbers: BTreeSet<u32> = (1..=self.districts.in_warehouse(w)).collect();
        numbers.extend(facts.districts.keys());
        numbers.extend(facts.orders.keys().map(|key| key.0));
        numbers.extend(facts.new_orders.iter().map(|key| key.0));
        numbers.extend(facts.lines.keys().map(|key| key.0));
        for d in numbers {
            let all = (d, 0)..=(d, u32::MAX);
            let next = facts
                .districts
                .get(&d)
                .and_then(|district| district.next_order);
            let last = facts
                .orders
                .range(all.clone())
                .next_back()
                .map(|(key, _)| key.1);
            let waiting: Vec<u32> = facts
                .new_orders
                .range(all.clone())
                .map(|key| key.1)
                .collect();
            let expected = next.map(|next| next - 1);
            // With nothing left to deliver there is no maximum; conditions 5 and 11 then say
            // whether NEW-ORDER may be empty.
            let waiting_fits = waiting
                .last()
                .is_none_or(|&max| Some(i64::from(max)) == expected);
            let holds = expected.is_some() && last.map(i64::from) == expected && waiting_fits;
            self.compare(2, holds, || {
                let waiting = waiting.last();
                format!(
                    "warehouse {w} district {d}: D_NEXT_O_ID {next:?}, max(O_ID) {last:?}, \
                     max(NO_O_ID) {waiting:?}"
                )
            });
            let span = match (waiting.first(), waiting.last()) {
                (Some(first), Some(last)) => (last - first) as usize + 1,
                _ => 0,
            };
            self.compare(3, span == waiting.len(), || {
                let rows = waiting.len();
                format!("warehouse {w} district {d}: NO_O_ID spans {span}, {rows} rows")
            });
            let stated: Option<i64> = facts.orders.range(all.clone()).map(|(_, o)| o.lines).sum();
            let rows: i64 = facts
                .lines
                .range(all.clone())
                .map(|(_, line)| line.rows)
                .sum();
            self.compare(4, stated == Some(rows), || {
                format!("warehouse {w} district {d}: sum(O_OL_CNT) {stated:?}, {rows} order lines")
            });
            let customers = facts.customers.range(all.clone());
            let deliveries: Option<i64> = customers.map(|(_, c)| c.deliveries).sum();
            let orders = facts.orders.range(all).count() as i64;
            let settled = orders - waiting.len() as i64;
            let loaded = i64::from(self.scale.delivered());
            self.compare(11, deliveries.map(|n| n + loaded) == Some(settled), || {
                format!(
                    "warehouse {w} district {d}: {orders} orders - {} new orders = {settled}, \
                     expected {loaded} + {deliveries:?} deliveries",
                    waiting.len()
                )
            });
        }
    }

    /// Conditions 5, 6 and 7, for every order that any table names.
    fn check_orders(&mut self, facts: &WarehouseFacts) {
        let w = facts.warehouse;
        for (&(d, o), order) in &facts.orders {
            let waiting = facts.new_orders.contains(&(d, o));
            self.compare(5, order.has_carrier != waiting, || {
                let carrier = if order.has_carrier { "set" } else { "null" };
                let place = if waiting { "in" } else { "not in" };
                format!("order {w}/{d}/{o}: O_CARRIER_ID {carrier}, {place} NEW-ORDER")
            });
            let lines = facts.lines.get(&(d, o)).copied().unwrap_or_default();
            self.compare(6, order.lines == Some(lines.rows), || {
                format!(
                    "order {w}/{d}/{o}: O_OL_CNT {:?}, {} lines",
                    order.lines, lines.rows
                )
            });
            let expected = if order.has_carrier { lines.rows } else { 0 };
            self.compare(7, lines.delivered_rows == expected, || {
                format!(
                    "order {w}/{d}/{o}: {} of {} lines have OL_DELIVERY_D, O_CARRIER_ID is {}",
                    lines.delivered_rows,
                    lines.rows,
                    if order.has_carrier { "set" } else { "null" }
                )
            });
        }
        for &(d, o) in facts
            .new_orders
            .iter()
            .filter(|key| !facts.orders.contains_key(key))
        {
            self.fail(5, || format!("new order {w}/{d}/{o} has no order"));
        }
        for &(d, o) in facts
            .lines
            .keys()
            .filter(|key| !facts.orders.contains_key(key))
        {
            self.fail(6, || format!("lines of order {w}/{d}/{o} have no order"));
            self.fail(7, || format!("lines of order {w}/{d}/{o} have no order"));
        }
    }

    /// Conditions 10 and 12, for every customer that any table names.
    fn check_customers(&mut self, facts: &WarehouseFacts) {
        let w = facts.warehouse;
        let mut delivered: BTreeMap<InDistrict, i64> = BTreeMap::new();
        for (&(d, o), lines) in &facts.lines {
            let customer = facts.orders.get(&(d, o)).and_then(|order| order.customer);
            match customer {
                Some(c) => *delivered.entry((d, c)).or_default() += lines.delivered_cents,
                None => self.fail(12, || format!("lines of {w}/{d}/{o} belong to no customer")),
            }
        }
        for (&(d, c), customer) in &facts.customers {
            let sum = delivered.remove(&(d, c)).unwrap_or(0);
            let paid = facts.history_by_customer.get(&(d, c)).copied().unwrap_or(0);
            let balance = customer.balance_cents;
            self.compare(10, balance == Some(sum - paid), || {
                let (balance, sum, paid) = (money(balance), money(Some(sum)), money(Some(paid)));
                format!("customer {w}/{d}/{c}: C_BALANCE {balance}, lines {sum}, history {paid}")
            });
            let payments = customer.ytd_payment_cents;
            let total = balance
                .zip(payments)
                .map(|(balance, payments)| balance + payments);
            self.compare(12, total == Some(sum), || {
                let (balance, payments, sum) = (money(balance), money(payments), money(Some(sum)));
                format!(
                    "customer {w}/{d}/{c}: C_BALANCE {balance} + C_YTD_PAYMENT {payments}, \
                     lines {sum}"
                )
            });
        }
        for ((d, c), _) in delivered {
            self.fail(12, || {
                format!("orders of customer {w}/{d}/{c}, who does not exist")
            });
        }
        for &(d, c) in facts.history_by_customer.keys() {
            if !facts.customers.contains_key(&(d, c)) {
                self.fail(10, || {
                    format!("history of customer {w}/{d}/{c}, who does not exist")
                });
            }
        }
    }
}

fn money(cents: Option<i64>) -> String {
    match cents {
        None => String::from("null"),
        Some(cents) => {
            let mut text = Vec::new();
            super::text::push_cents(cents, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::Skew;

    const SCALE: Scale = Scale {
        warehouses: 1,
        items: 10,
        customers: 10,
        orders: 10,
        skew: Skew::NONE,
    };

    /// The loaded state, with one order of district 1 delivered since (15.00 to customer 8).
    fn sound() -> WarehouseFacts {
        let mut facts = WarehouseFacts {
            warehouse: 1,
            ..WarehouseFacts::default()
        };
        for d in 1..=10 {
            let district = DistrictFacts {
                ytd_cents: Some(10_000),
                next_order: Some(11),
            };
            facts.districts.insert(d, district);
            facts.history_by_district.insert(d, 10_000);
            for number in 1..=10 {
                let key = (d, number);
                let delivered = number <= 7 || key == (1, 8);
                let cents = if key == (1, 8) { 1_500 } else { 0 };
                let order = OrderFacts {
                    customer: Some(number),
                    lines: Some(5),
                    has_carrier: delivered,
                };
                facts.orders.insert(key, order);
                if !delivered {
                    facts.new_orders.insert(key);
                }
                let delivered_rows = if delivered { 5 } else { 0 };
                let lines = LineFacts {
                    rows: 5,
                    delivered_rows,
                    delivered_cents: cents,
                };
                facts.lines.insert(key, lines);
                facts.history_by_customer.insert(key, 1_000);
                let customer = CustomerFacts {
                    balance_cents: Some(cents - 1_000),
                    ytd_payment_cents: Some(1_000),
                    deliveries: Some(i64::from(key == (1, 8))),
                };
                facts.customers.insert(key, customer);
            }
        }
        facts.ytd_cents = Some(100_000);
        facts
    }

    fn failing(facts: &WarehouseFacts) -> Vec<usize> {
        let mut verifier = Verifier::new(SCALE);
        verifier.check(facts);
        (1..=12)
            .filter(|n| verifier.conditions()[n - 1].failures > 0)
            .collect()
    }

    #[test]
    fn sound_facts_pass_all_twelve() {
        assert_eq!(failing(&sound()), Vec::<usize>::new());
        let mut verifier = Verifier::new(SCALE);
        verifier.check(&sound());
        assert_eq!(verifier.passed(), 12);
    }

    #[test]
    fn no_facts_pass_nothing() {
        assert_eq!(Verifier::new(SCALE).passed(), 0);
        let empty = WarehouseFacts {
            warehouse: 1,
            ..WarehouseFacts::default()
        };
        assert_eq!(failing(&empty), [1, 2, 8, 11]);
    }

    #[test]
    fn everything_delivered_is_sound() {
        let mut facts = sound();
        for (key, order) in &mut facts.orders {
            if facts.new_orders.remove(key) {
                order.has_carrier = true;
                facts.lines.get_mut(key).unwrap().delivered_rows = 5;
                facts.customers.get_mut(key).unwrap().deliveries = Some(1);
            }
        }
        assert_eq!(failing(&facts), Vec::<usize>::new());
    }

    /// One planted error per row, and the conditions that must see it.
    #[test]
    fn planted_errors_are_caught() {
        type Plant = fn(&mut WarehouseFacts);
        let plants: [(&str, &[usize], Plant); 22] = [
            ("W_YTD", &[1, 8], |f| f.ytd_cents = Some(100_001)),
            ("W_YTD null", &[1, 8], |f| f.ytd_cents = None),
            ("D_YTD", &[1, 9], |f| {
                f.districts.get_mut(&3).unwrap().ytd_cents = Some(9_999)
            }),
            ("D_YTD null", &[1, 9], |f| {
                f.districts.get_mut(&3).unwrap().ytd_cents = None
            }),
            ("district gone", &[1, 2, 9], |f| {
                let _ = f.districts.remove(&3);
            }),
            ("D_NEXT_O_ID", &[2], |f| {
                f.districts.get_mut(&3).unwrap().next_order = Some(12)
            }),
            ("D_NEXT_O_ID null", &[2], |f| {
                f.districts.get_mut(&3).unwrap().next_order = None
            }),
            ("new order in the middle gone", &[3, 5, 11], |f| {
                let _ = f.new_orders.remove(&(2, 9));
            }),
            ("last new order gone", &[2, 5, 11], |f| {
                let _ = f.new_orders.remove(&(2, 10));
            }),
            ("new order too much", &[3, 5, 11], |f| {
                let _ = f.new_orders.insert((2, 5));
            }),
            ("new order without order", &[2, 5, 11], |f| {
                let _ = f.new_orders.insert((2, 11));
            }),
            ("O_OL_CNT", &[4, 6], |f| {
                f.orders.get_mut(&(2, 5)).unwrap().lines = Some(6)
            }),
            ("O_OL_CNT null", &[4, 6], |f| {
                f.orders.get_mut(&(2, 5)).unwrap().lines = None
            }),
            ("lines gone", &[4, 6], |f| {
                let _ = f.lines.remove(&(2, 5));
            }),
            ("carrier gone", &[5, 7], |f| {
                f.orders.get_mut(&(2, 5)).unwrap().has_carrier = false;
            }),
            ("one line undelivered", &[7], |f| {
                f.lines.get_mut(&(2, 5)).unwrap().delivered_rows = 4
            }),
            ("history of district", &[8, 9], |f| {
                f.history_by_district.insert(4, 9_000);
            }),
            ("history of another customer", &[10], |f| {
                f.history_by_customer.insert((2, 2), 2_000);
            }),
            ("history without customer", &[10], |f| {
                f.history_by_customer.insert((2, 99), 2_000);
            }),
            ("C_BALANCE", &[10, 12], |f| {
                f.customers.get_mut(&(2, 2)).unwrap().balance_cents = Some(-999);
            }),
            ("C_YTD_PAYMENT null", &[12], |f| {
                f.customers.get_mut(&(2, 2)).unwrap().ytd_payment_cents = None;
            }),
            ("delivery counted twice", &[11], |f| {
                f.customers.get_mut(&(1, 8)).unwrap().deliveries = Some(2);
            }),
        ];
        for (title, expected, plant) in plants {
            let mut facts = sound();
            plant(&mut facts);
            assert_eq!(failing(&facts), expected, "{title}");
        }
        let seen: BTreeSet<usize> = plants.iter().flat_map(|plant| plant.1).copied().collect();
        assert!(
            seen.into_iter().eq(1..=12),
            "every condition has caught something"
        );
    }

    #[test]
    fn missing_order_and_lines_without_order_are_caught() {
        let mut facts = sound();
        facts.orders.remove(&(2, 5));
        assert_eq!(failing(&facts), [4, 6, 7, 11, 12]);
        facts.lines.remove(&(2, 5));
        assert_eq!(failing(&facts), [11], "an order gone with all its lines");
    }

    #[test]
    fn first_counterexample_names_the_place() {
        let mut facts = sound();
        facts.customers.get_mut(&(2, 2)).unwrap().balance_cents = Some(-999);
        let mut verifier = Verifier::new(SCALE);
        verifier.check(&facts);
        assert_eq!(
            verifier.conditions()[9].counterexample.as_deref(),
            Some("customer 1/2/2: C_BALANCE -9.99, lines 0.00, history 10.00")
        );
    }
}
