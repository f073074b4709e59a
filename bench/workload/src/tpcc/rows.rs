//! The rows of the initial database (clause 4.3.3.1), as text for COPY, in chunks.
//!
//! A chunk is a part of one table of at most about 10,000 rows. Each chunk is written from its own
//! stream of the seed, so chunks can be made in any order, in parallel, and again after a failure.
//! ORDER, NEW-ORDER and ORDER-LINE of a district share one drawn list of order heads, so they agree
//! whichever is made first.

use super::random::{
    Constants, last_name, last_name_number, permutation, push_a_string, push_brand_text,
    push_n_string, push_zip,
};
use super::schema::Table;
use super::text::{push_cents, push_fixed, push_int, push_timestamp};
use super::{DISTRICTS, Scale};
use crate::stream;
use alloc::{format, string::String, vec::Vec};
use base::Prng;

/// Rows of ITEM, STOCK and CUSTOMER per chunk.
const ROWS_PER_CHUNK: u32 = 10_000;
/// Orders per chunk of ORDER-LINE: ten lines each on average.
const ORDERS_PER_CHUNK: u32 = 1_000;

/// Everything that decides the content of the initial database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Content {
    /// The sizes.
    pub scale: Scale,
    /// The seed of the load.
    pub seed: u64,
    /// The constants of NURand of the load.
    pub constants: Constants,
    /// The time that dates get, in microseconds since 1970.
    pub now_us: u64,
}

/// A part of one table that is written by one COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The table.
    pub table: Table,
    /// The warehouse, 0 for ITEM.
    pub warehouse: u32,
    /// The district, 0 where the chunk spans all of a warehouse.
    pub district: u32,
    /// How many the warehouse has, 0 for ITEM.
    pub districts: u32,
    /// First and last id in the chunk: item, customer or order numbers (both included).
    pub ids: (u32, u32),
}

impl Chunk {
    /// All chunks of the database, in a loading order that meets the foreign keys table by table.
    pub fn all(scale: &Scale) -> Vec<Chunk> {
        let (mut chunks, districts) = (Vec::new(), scale.districts());
        for table in Table::ALL {
            match table {
                Table::Item => {
                    let items = Chunk {
                        table,
                        warehouse: 0,
                        district: 0,
                        districts: 0,
                        ids: (1, scale.items),
                    };
                    split(items, ROWS_PER_CHUNK, &mut chunks);
                }
                _ => {
                    for warehouse in 1..=scale.warehouses {
                        let count = districts.in_warehouse(warehouse);
                        Chunk::of_warehouse((table, warehouse, count), scale, &mut chunks);
                    }
                }
            }
        }
        chunks
    }

    fn of_warehouse(
        (table, warehouse, districts): (Table, u32, u32),
        scale: &Scale,
        out: &mut Vec<Chunk>,
    ) {
        let whole = |last| Chunk {
            table,
            warehouse,
            district: 0,
            districts,
            ids: (1, last),
        };
        let (ids, size) = match table {
            Table::Item => return,
            Table::Warehouse => return out.push(whole(1)),
            Table::District => return split(whole(districts), ROWS_PER_CHUNK, out),
            Table::Stock => return split(whole(scale.items), ROWS_PER_CHUNK, out),
            Table::Customer | Table::History => ((1, scale.customers), ROWS_PER_CHUNK),
            Table::Orders => ((1, scale.orders), ROWS_PER_CHUNK),
            Table::NewOrder => ((scale.delivered() + 1, scale.orders), u32::MAX),
            Table::OrderLine => ((1, scale.orders), ORDERS_PER_CHUNK),
        };
        for district in 1..=districts {
            let chunk = Chunk {
                district,
                ids,
                ..whole(0)
            };
            split(chunk, size, out);
        }
    }

    /// A name that is unique among the chunks of a database: the step in the bookkeeping table.
    pub fn step(&self) -> String {
        let (first, last) = self.ids;
        format!(
            "{} {}/{} {first}-{last}",
            self.table.name(),
            self.warehouse,
            self.district
        )
    }

    /// Appends the rows of the chunk in the text format of COPY; returns their number.
    pub fn write(&self, content: &Content, out: &mut Vec<u8>) -> u64 {
        let mut row = Row { out, first: true };
        match self.table {
            Table::OrderLine => return self.write_lines(content, &mut row),
            Table::Orders | Table::NewOrder => self.write_orders(content, &mut row),
            _ => {
                for id in self.ids.0..=self.ids.1 {
                    self.write_row(content, id, &mut row);
                }
            }
        }
        u64::from(self.ids.1 - self.ids.0 + 1)
    }

    fn stream(&self, content: &Content, id: u32) -> Prng {
        let place = [self.warehouse, self.district, id].map(u64::from);
        let [warehouse, district, id] = place;
        stream(
            content.seed,
            &[self.table as u64 + 1, warehouse, district, id],
        )
    }

    fn write_row(&self, content: &Content, id: u32, row: &mut Row<'_>) {
        let prng = &mut self.stream(content, id);
        match self.table {
            Table::Warehouse => {
                let ytd_cents = content.scale.warehouse_ytd_cents(self.districts);
                write_warehouse(self.warehouse, ytd_cents, prng, row);
            }
            Table::District => write_district(self.warehouse, id, content, prng, row),
            Table::Customer => {
                write_customer((self.warehouse, self.district, id), content, prng, row);
            }
            Table::History => {
                write_history((self.warehouse, self.district, id), content, prng, row);
            }
            Table::Item => write_item(id, prng, row),
            Table::Stock => write_stock(self.warehouse, id, prng, row),
            Table::Orders | Table::NewOrder | Table::OrderLine => {
                unreachable!("orders are written from their heads")
            }
        }
        row.end();
    }

    fn write_orders(&self, content: &Content, row: &mut Row<'_>) {
        let heads = order_heads(content, self.warehouse, self.district);
        for id in self.ids.0..=self.ids.1 {
            let head = &heads[id as usize - 1];
            row.int(id).int(self.district).int(self.warehouse);
            if self.table == Table::Orders {
                row.int(head.customer).time(content.now_us);
                match head.carrier {
                    Some(carrier) => row.int(carrier),
                    None => row.null(),
                };
                row.int(head.lines).int(1);
            }
            row.end();
        }
    }

    fn write_lines(&self, content: &Content, row: &mut Row<'_>) -> u64 {
        let heads = order_heads(content, self.warehouse, self.district);
        let mut rows = 0;
        for id in self.ids.0..=self.ids.1 {
            let head = &heads[id as usize - 1];
            let prng = &mut self.stream(content, id);
            for number in 1..=head.lines {
                let item = prng.between(1, i64::from(content.scale.items)) as u32;
                row.int(id).int(self.district).int(self.warehouse);
                row.int(number).int(item).int(self.warehouse);
                // OL_DELIVERY_D and OL_AMOUNT of a delivered order: the entry date and 0.00.
                match head.carrier {
                    Some(_) => row.time(content.now_us).int(5).cents(0),
                    None => row.null().int(5).cents(prng.between(1, 999_999)),
                };
                row.letters(prng, 24, 24).end();
                rows += 1;
            }
        }
        rows
    }
}

/// Cuts a chunk into chunks of at most `size` ids; one without ids into none.
fn split(whole: Chunk, size: u32, out: &mut Vec<Chunk>) {
    let (mut first, end) = whole.ids;
    while first <= end {
        let last = end.min((first - 1).saturating_add(size));
        let ids = (first, last);
        out.push(Chunk { ids, ..whole });
        first = last + 1;
    }
}

/// Rows that all chunks of `scale` write together, ORDER-LINE counted at its mean of ten an order.
pub fn rows_expected(scale: &Scale) -> u64 {
    let district = u64::from(scale.customers) * 2
        + u64::from(scale.orders) * 11
        + u64::from(scale.undelivered());
    let districts = scale.districts().sum(scale.warehouses);
    let warehouses = u64::from(scale.warehouses) * (1 + u64::from(scale.items));
    u64::from(scale.items) + warehouses + districts * (1 + district)
}

/// What ORDER, NEW-ORDER and ORDER-LINE of one loaded order have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderHead {
    /// O_C_ID, from a permutation of the customers.
    pub customer: u32,
    /// O_CARRIER_ID: 1 to 10, `None` for the last 30 % of the orders.
    pub carrier: Option<u32>,
    /// O_OL_CNT: 5 to 15.
    pub lines: u32,
}

/// The heads of all loaded orders of a district; entry 0 is order 1.
pub fn order_heads(content: &Content, warehouse: u32, district: u32) -> Vec<OrderHead> {
    let scale = &content.scale;
    let tags = [0x6865_6164, u64::from(warehouse), u64::from(district)];
    let prng = &mut stream(content.seed, &tags);
    let customers = permutation(prng, scale.customers);
    (0..scale.orders)
        .map(|at| {
            let carrier = prng.between(1, 10) as u32;
            OrderHead {
                customer: customers[(at % scale.customers) as usize],
                carrier: (at < scale.delivered()).then_some(carrier),
                lines: prng.between(5, 15) as u32,
            }
        })
        .collect()
}

fn write_warehouse(id: u32, ytd_cents: i64, prng: &mut Prng, row: &mut Row<'_>) {
    row.int(id).letters(prng, 6, 10).address(prng);
    row.rate(prng.between(0, 2_000)).cents(ytd_cents);
}

fn write_district(warehouse: u32, id: u32, content: &Content, prng: &mut Prng, row: &mut Row<'_>) {
    row.int(id).int(warehouse);
    row.letters(prng, 6, 10).address(prng);
    row.rate(prng.between(0, 2_000))
        .cents(content.scale.district_ytd_cents());
    row.int(content.scale.orders + 1);
}

fn write_customer(key: (u32, u32, u32), content: &Content, prng: &mut Prng, row: &mut Row<'_>) {
    let (warehouse, district, id) = key;
    // The first thousand customers have all names once; the others draw theirs (clause 4.3.3.1).
    let name = match id <= content.scale.last_names() {
        true => id - 1,
        false => last_name_number(prng, content.constants.c_last, &content.scale),
    };
    row.int(id).int(district).int(warehouse);
    row.letters(prng, 8, 16);
    row.text("OE")
        .text(&last_name(name))
        .address(prng)
        .digits(prng, 16)
        .time(content.now_us);
    row.text(if prng.below(10) == 0 { "BC" } else { "GC" });
    row.cents(5_000_000).rate(prng.between(0, 5_000));
    row.cents(-1_000)
        .cents(1_000)
        .int(1)
        .int(0)
        .letters(prng, 300, 500);
}

fn write_history(key: (u32, u32, u32), content: &Content, prng: &mut Prng, row: &mut Row<'_>) {
    let (warehouse, district, id) = key;
    row.int(id)
        .int(district)
        .int(warehouse)
        .int(district)
        .int(warehouse);
    row.time(content.now_us).cents(1_000).letters(prng, 12, 24);
}

fn write_item(id: u32, prng: &mut Prng, row: &mut Row<'_>) {
    row.int(id)
        .int(prng.between(1, 10_000) as u32)
        .letters(prng, 14, 24);
    row.cents(prng.between(100, 10_000)).brand(prng);
}

fn write_stock(warehouse: u32, id: u32, prng: &mut Prng, row: &mut Row<'_>) {
    row.int(id).int(warehouse).int(prng.between(10, 100) as u32);
    for _ in 0..DISTRICTS {
        row.letters(prng, 24, 24);
    }
    row.int(0).int(0).int(0).brand(prng);
}

/// One row in COPY's text format: tabs between columns, `\N` for NULL, a newline at the end.
/// No generated text holds a character that needs an escape.
struct Row<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Row<'_> {
    fn next(&mut self) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b'\t');
        }
        self.first = false;
        self.out
    }

    fn end(&mut self) {
        self.out.push(b'\n');
        self.first = true;
    }

    fn int(&mut self, value: u32) -> &mut Self {
        push_int(i64::from(value), self.next());
        self
    }

    fn cents(&mut self, value: i64) -> &mut Self {
        push_cents(value, self.next());
        self
    }

    fn rate(&mut self, value: i64) -> &mut Self {
        push_fixed(value, 4, self.next());
        self
    }

    fn time(&mut self, unix_us: u64) -> &mut Self {
        push_timestamp(unix_us, self.next());
        self
    }

    fn null(&mut self) -> &mut Self {
        self.next().extend_from_slice(b"\\N");
        self
    }

    fn text(&mut self, value: &str) -> &mut Self {
        self.next().extend_from_slice(value.as_bytes());
        self
    }

    fn letters(&mut self, prng: &mut Prng, low: u32, high: u32) -> &mut Self {
        push_a_string(prng, low, high, self.next());
        self
    }

    fn digits(&mut self, prng: &mut Prng, count: u32) -> &mut Self {
        push_n_string(prng, count, self.next());
        self
    }

    fn brand(&mut self, prng: &mut Prng) -> &mut Self {
        push_brand_text(prng, self.next());
        self
    }

    /// Two streets, city, state, zip (clause 4.3.2.7).
    fn address(&mut self, prng: &mut Prng) -> &mut Self {
        self.letters(prng, 10, 20)
            .letters(prng, 10, 20)
            .letters(prng, 10, 20);
        self.letters(prng, 2, 2);
        push_zip(prng, self.next());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::Skew;
    use std::collections::{BTreeMap, BTreeSet};

    fn content(scale: Scale) -> Content {
        let constants = Constants::for_load(5);
        Content {
            scale,
            seed: 5,
            constants,
            now_us: 1_700_000_000_000_000,
        }
    }

    /// All rows of all chunks by table, split into columns.
    fn load(content: &Content) -> BTreeMap<Table, Vec<Vec<String>>> {
        let mut tables: BTreeMap<Table, Vec<Vec<String>>> = BTreeMap::new();
        for chunk in Chunk::all(&content.scale) {
            let mut bytes = Vec::new();
            let rows = chunk.write(content, &mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            assert_eq!(text.lines().count() as u64, rows, "{}", chunk.step());
            tables.entry(chunk.table).or_default().extend(
                text.lines()
                    .map(|l| l.split('\t').map(String::from).collect()),
            );
        }
        tables
    }

    #[test]
    fn tables_have_the_rows_of_the_clause() {
        let scale = Scale {
            warehouses: 2,
            items: 150,
            customers: 1_100,
            orders: 1_000,
            skew: Skew::NONE,
        };
        let tables = load(&content(scale));
        let rows = |table| tables[&table].len();
        assert_eq!(rows(Table::Warehouse), 2);
        assert_eq!(rows(Table::District), 20);
        assert_eq!(rows(Table::Customer), 22_000);
        assert_eq!(rows(Table::History), 22_000);
        assert_eq!(rows(Table::Orders), 20_000);
        assert_eq!(rows(Table::NewOrder), 6_000);
        assert_eq!(rows(Table::Item), 150);
        assert_eq!(rows(Table::Stock), 300);
        let total: usize = tables.values().map(Vec::len).sum();
        let expected = rows_expected(&scale) as f64;
        assert!(
            (total as f64 / expected - 1.0).abs() < 0.01,
            "{total} {expected}"
        );
        for (table, rows) in &tables {
            let columns = table.create(&super::super::schema::SchemaOptions::default());
            let columns = columns
                .split("PRIMARY")
                .next()
                .unwrap()
                .matches(", ")
                .count();
            let expected = if *table == Table::History {
                columns + 1
            } else {
                columns
            };
            assert!(rows.iter().all(|row| row.len() == expected), "{table:?}");
        }
    }

    #[test]
    fn the_standard_counts_chunks_of_bounded_size() {
        let scale = Scale::standard(1);
        assert_eq!(rows_expected(&scale), 100_000 + 1 + 10 + 100_000 + 399_000);
        let steps: BTreeSet<String> = Chunk::all(&scale).iter().map(Chunk::step).collect();
        assert_eq!(steps.len(), Chunk::all(&scale).len());
        assert!(
            Chunk::all(&scale)
                .iter()
                .all(|c| c.ids.1 - c.ids.0 < 10_000)
        );
        assert!(steps.iter().all(|step| step.len() <= 60));
    }

    #[test]
    fn every_last_name_exists_and_a_tenth_has_bad_credit() {
        let scale = Scale {
            warehouses: 1,
            items: 10,
            customers: 3_000,
            orders: 10,
            skew: Skew::NONE,
        };
        let tables = load(&content(scale));
        let names: BTreeSet<&String> = tables[&Table::Customer]
            .iter()
            .filter(|row| row[1] == "1")
            .map(|row| &row[5])
            .collect();
        assert_eq!(names.len(), 1_000);
        let bad = tables[&Table::Customer]
            .iter()
            .filter(|row| row[13] == "BC")
            .count();
        assert!((2_800..3_200).contains(&bad), "{bad}");
    }

    #[test]
    fn undelivered_orders_have_no_carrier_no_date_and_an_amount() {
        let content = content(Scale {
            warehouses: 1,
            items: 50,
            customers: 100,
            orders: 100,
            skew: Skew::NONE,
        });
        let tables = load(&content);
        let waiting: BTreeSet<(String, String)> = tables[&Table::NewOrder]
            .iter()
            .map(|r| (r[1].clone(), r[0].clone()))
            .collect();
        let mut lines: BTreeMap<(String, String), usize> = BTreeMap::new();
        for row in &tables[&Table::OrderLine] {
            let order = (row[1].clone(), row[0].clone());
            assert_eq!(row[6] == "\\N", waiting.contains(&order));
            assert_eq!(row[8] == "0.00", !waiting.contains(&order));
            assert!((1..=50).contains(&row[4].parse::<u32>().unwrap()));
            assert_eq!(row[9].len(), 24);
            *lines.entry(order).or_default() += 1;
        }
        for row in &tables[&Table::Orders] {
            let order = (row[1].clone(), row[0].clone());
            assert_eq!(row[5] == "\\N", waiting.contains(&order));
            assert_eq!(row[6], lines[&order].to_string());
            assert!((5..=15).contains(&lines[&order]));
        }
        let customers: BTreeSet<&String> = tables[&Table::Orders]
            .iter()
            .filter(|r| r[1] == "3")
            .map(|r| &r[3])
            .collect();
        assert_eq!(customers.len(), 100, "O_C_ID is a permutation");
    }

    #[test]
    fn chunks_are_the_same_in_any_order() {
        let content = content(Scale::reduced(2));
        let chunk = Chunk::all(&content.scale).pop().unwrap();
        let (mut first, mut again) = (Vec::new(), Vec::new());
        chunk.write(&content, &mut first);
        load(&content);
        chunk.write(&content, &mut again);
        assert_eq!(first, again);
    }
}
