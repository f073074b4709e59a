//! The twelve conditions on one snapshot, read warehouse by warehouse.
//!
//! Both sides of every condition are fetched, grouped by the server where the sum is all that
//! counts, and compared here (see [`crate::tpcc::conditions`]). Only HISTORY is read as a whole,
//! because the payments of a customer lie in other warehouses too; it is kept as one number per
//! paying customer.

use super::conditions::{
    CustomerFacts, DistrictFacts, LineFacts, OrderFacts, Verifier, WarehouseFacts,
};
use super::scale::Scale;
use super::schema::Table;
use crate::wire::{Answers, Connection, command};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Checks a loaded database. `begin` opens a transaction whose reads see one snapshot; it is
/// closed again.
///
/// # Errors
/// The connection broke, or the server refused a query.
pub async fn check<C: Connection>(
    link: &mut C,
    scale: Scale,
    begin: &str,
) -> Result<Verifier, C::Error> {
    command(link, begin).await?;
    let mut verifier = Verifier::new(scale);
    let mut reader = Reader {
        link,
        history: Vec::new(),
        received: BTreeMap::new(),
    };
    let warehouses = reader.warehouses(&mut verifier, scale.warehouses).await?;
    reader.read_history().await?;
    for (&warehouse, &ytd_cents) in &warehouses {
        let facts = reader.facts(warehouse, ytd_cents).await?;
        verifier.check(&facts);
    }
    reader.find_strangers(&mut verifier, &warehouses).await?;
    command(reader.link, "COMMIT").await?;
    Ok(verifier)
}

/// A sum of HISTORY: the warehouse and district that were paid to, the customer, the cents.
struct Paid {
    customer: (u32, u32, u32),
    to: (u32, u32),
    cents: i64,
}

struct Reader<'a, C> {
    link: &'a mut C,
    /// Sorted by customer.
    history: Vec<Paid>,
    /// The same by the warehouse and district that were paid to, in cents.
    received: BTreeMap<(u32, u32), i64>,
}

impl<C: Connection> Reader<'_, C> {
    async fn each(&mut self, sql: &str, each: impl FnMut(&Answers)) -> Result<(), C::Error> {
        self.link.each_row(sql, each).await
    }

    /// W_YTD of all warehouses. A number of warehouses other than the loaded one fails condition 1.
    async fn warehouses(
        &mut self,
        verifier: &mut Verifier,
        loaded: u32,
    ) -> Result<BTreeMap<u32, Option<i64>>, C::Error> {
        let mut found = BTreeMap::new();
        self.each("SELECT w_id, w_ytd FROM warehouse", |row| {
            found.insert(id(row, 0), row.cents(0, 0, 1));
        })
        .await?;
        for missing in (1..=loaded).filter(|w| !found.contains_key(w)) {
            verifier.fail(1, || format!("warehouse {missing} does not exist"));
        }
        Ok(found)
    }

    async fn read_history(&mut self) -> Result<(), C::Error> {
        let mut history = Vec::new();
        let sql = "SELECT h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, SUM(h_amount) FROM history \
                   GROUP BY h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id";
        self.each(sql, |row| {
            history.push(Paid {
                customer: (id(row, 0), id(row, 1), id(row, 2)),
                to: (id(row, 3), id(row, 4)),
                cents: row.cents(0, 0, 5).unwrap_or(0),
            });
        })
        .await?;
        history.sort_unstable_by_key(|paid| paid.customer);
        for paid in &history {
            *self.received.entry(paid.to).or_default() += paid.cents;
        }
        self.history = history;
        Ok(())
    }

    async fn facts(&mut self, w: u32, ytd_cents: Option<i64>) -> Result<WarehouseFacts, C::Error> {
        let mut facts = WarehouseFacts {
            warehouse: w,
            ytd_cents,
            ..WarehouseFacts::default()
        };
        let mut repeated = Vec::new();
        let sql = format!("SELECT d_id, d_ytd, d_next_o_id FROM district WHERE d_w_id = {w}");
        self.each(&sql, |row| {
            let ytd_cents = row.cents(0, 0, 1);
            let district = DistrictFacts {
                ytd_cents,
                next_order: row.int(0, 0, 2),
            };
            if facts.districts.insert(id(row, 0), district).is_some() {
                repeated.push(format!("district {}", id(row, 0)));
            }
        })
        .await?;
        let sql = format!(
            "SELECT o_d_id, o_id, o_c_id, o_ol_cnt, o_carrier_id FROM orders WHERE o_w_id = {w}"
        );
        self.each(&sql, |row| {
            let order = OrderFacts {
                customer: row.int(0, 0, 2).map(|c| c as u32),
                lines: row.int(0, 0, 3),
                has_carrier: row.cell(0, 0, 4).is_some(),
            };
            let key = (id(row, 0), id(row, 1));
            if facts.orders.insert(key, order).is_some() {
                repeated.push(format!("order {}/{}", key.0, key.1));
            }
        })
        .await?;
        let sql = format!("SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = {w}");
        self.each(&sql, |row| {
            let key = (id(row, 0), id(row, 1));
            if !facts.new_orders.insert(key) {
                repeated.push(format!("new order {}/{}", key.0, key.1));
            }
        })
        .await?;
        facts.lines = self.lines(w).await?;
        facts.customers = self.customers(w, &mut repeated).await?;
        facts.repeated_keys = repeated;
        self.add_history(&mut facts);
        Ok(facts)
    }

    async fn lines(&mut self, w: u32) -> Result<BTreeMap<(u32, u32), LineFacts>, C::Error> {
        let mut lines = BTreeMap::new();
        let sql = format!(
            "SELECT ol_d_id, ol_o_id, COUNT(*), COUNT(ol_delivery_d) FROM order_line \
             WHERE ol_w_id = {w} GROUP BY ol_d_id, ol_o_id"
        );
        self.each(&sql, |row| {
            let counted = |column| row.int(0, 0, column).unwrap_or(0);
            let (rows, delivered_rows) = (counted(2), counted(3));
            let facts = LineFacts {
                rows,
                delivered_rows,
                delivered_cents: 0,
            };
            lines.insert((id(row, 0), id(row, 1)), facts);
        })
        .await?;
        let sql = format!(
            "SELECT ol_d_id, ol_o_id, SUM(ol_amount) FROM order_line \
             WHERE ol_w_id = {w} AND ol_delivery_d IS NOT NULL GROUP BY ol_d_id, ol_o_id"
        );
        self.each(&sql, |row| {
            let none = LineFacts {
                rows: 0,
                delivered_rows: 0,
                delivered_cents: 0,
            };
            let facts = lines.entry((id(row, 0), id(row, 1))).or_insert(none);
            facts.delivered_cents = row.cents(0, 0, 2).unwrap_or(0);
        })
        .await?;
        Ok(lines)
    }

    async fn customers(
        &mut self,
        w: u32,
        repeated: &mut Vec<String>,
    ) -> Result<BTreeMap<(u32, u32), CustomerFacts>, C::Error> {
        let mut customers = BTreeMap::new();
        let sql = format!(
            "SELECT c_d_id, c_id, c_balance, c_ytd_payment, c_delivery_cnt FROM customer \
             WHERE c_w_id = {w}"
        );
        self.each(&sql, |row| {
            let customer = CustomerFacts {
                balance_cents: row.cents(0, 0, 2),
                ytd_payment_cents: row.cents(0, 0, 3),
                deliveries: row.int(0, 0, 4),
            };
            let key = (id(row, 0), id(row, 1));
            if customers.insert(key, customer).is_some() {
                repeated.push(format!("customer {}/{}", key.0, key.1));
            }
        })
        .await?;
        Ok(customers)
    }

    /// What was paid to the warehouse, and what its customers paid anywhere.
    fn add_history(&self, facts: &mut WarehouseFacts) {
        let w = facts.warehouse;
        for (&(_, d), &cents) in self.received.range((w, 0)..=(w, u32::MAX)) {
            facts.history_by_district.insert(d, cents);
        }
        let first = self.history.partition_point(|paid| paid.customer.0 < w);
        for paid in self.history[first..]
            .iter()
            .take_while(|paid| paid.customer.0 == w)
        {
            let (_, d, c) = paid.customer;
            *facts.history_by_customer.entry((d, c)).or_default() += paid.cents;
        }
    }

    /// Rows of warehouses that do not exist: no warehouse's own facts would show them.
    async fn find_strangers(
        &mut self,
        verifier: &mut Verifier,
        warehouses: &BTreeMap<u32, Option<i64>>,
    ) -> Result<(), C::Error> {
        for (table, condition) in [
            (Table::District, 1),
            (Table::Orders, 2),
            (Table::NewOrder, 5),
            (Table::OrderLine, 6),
            (Table::Customer, 12),
        ] {
            let column = table
                .warehouse_column()
                .expect("these tables have a warehouse");
            let name = table.name();
            let mut strangers = BTreeSet::new();
            self.each(
                &format!("SELECT {column}, COUNT(*) FROM {name} GROUP BY {column}"),
                |row| {
                    let w = id(row, 0);
                    if !warehouses.contains_key(&w) {
                        strangers.insert(w);
                    }
                },
            )
            .await?;
            for w in strangers {
                verifier.fail(condition, || format!("{name} has rows of warehouse {w}"));
            }
        }
        for paid in &self.history {
            let Paid { customer, to, .. } = paid;
            if !warehouses.contains_key(&to.0) {
                verifier.fail(8, || format!("history has rows of warehouse {}", to.0));
            }
            if !warehouses.contains_key(&customer.0) {
                verifier.fail(10, || {
                    format!("history of customer {customer:?}, who is nowhere")
                });
            }
        }
        Ok(())
    }
}

/// An id; NULL and what is no number become 0, which no row may have.
fn id(row: &Answers, column: usize) -> u32 {
    row.int(0, 0, column)
        .and_then(|value| u32::try_from(value).ok())
        .unwrap_or(0)
}

/// Sums that committed transactions add to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    /// sum(D_NEXT_O_ID): one more for each NewOrder.
    pub orders: i64,
    /// Rows of HISTORY: one more for each Payment.
    pub payments: i64,
    /// sum(C_DELIVERY_CNT): one more for each delivered order.
    pub deliveries: i64,
}

/// Reads the ledger.
///
/// # Errors
/// The connection broke, or the server refused a query.
pub async fn read_ledger<C: Connection>(link: &mut C) -> Result<Ledger, C::Error> {
    let mut sums = [0; 3];
    let queries = [
        "SELECT SUM(d_next_o_id) FROM district",
        "SELECT COUNT(*) FROM history",
        "SELECT SUM(c_delivery_cnt) FROM customer",
    ];
    for (sum, sql) in sums.iter_mut().zip(queries) {
        let set = |row: &Answers| *sum = row.int(0, 0, 0).unwrap_or(0);
        link.each_row(sql, set).await?;
    }
    Ok(Ledger {
        orders: sums[0],
        payments: sums[1],
        deliveries: sums[2],
    })
}
