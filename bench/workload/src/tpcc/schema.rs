//! The nine tables (clause 1.3), their keys, and the placement that Trellis is asked for.
//!
//! Clause 1.3 leaves types and physical design open. Ids are `integer`, money `numeric`, texts
//! `varchar` or `char`. HISTORY has no primary key (clause 1.3.1).

use alloc::{format, string::String, vec::Vec};

/// A table of TPC-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// WAREHOUSE, one row per warehouse.
    Warehouse,
    /// DISTRICT, ten rows per warehouse.
    District,
    /// CUSTOMER, 3,000 rows per district.
    Customer,
    /// HISTORY, a row per payment.
    History,
    /// NEW-ORDER, a row per order that waits for delivery.
    NewOrder,
    /// ORDER, a row per order.
    Orders,
    /// ORDER-LINE, 5 to 15 rows per order.
    OrderLine,
    /// ITEM, 100,000 rows for the whole database.
    Item,
    /// STOCK, 100,000 rows per warehouse.
    Stock,
}

impl Table {
    /// All tables; a table follows those that its foreign keys name.
    pub const ALL: [Table; 9] = [
        Table::Warehouse,
        Table::District,
        Table::Customer,
        Table::History,
        Table::Orders,
        Table::NewOrder,
        Table::Item,
        Table::Stock,
        Table::OrderLine,
    ];

    /// The name in SQL. ORDER is a reserved word, hence `orders`.
    pub fn name(self) -> &'static str {
        match self {
            Table::Warehouse => "warehouse",
            Table::District => "district",
            Table::Customer => "customer",
            Table::History => "history",
            Table::NewOrder => "new_order",
            Table::Orders => "orders",
            Table::OrderLine => "order_line",
            Table::Item => "item",
            Table::Stock => "stock",
        }
    }

    /// The column that holds the warehouse, by which the rows are placed; `None` for ITEM.
    pub fn warehouse_column(self) -> Option<&'static str> {
        match self {
            Table::Warehouse => Some("w_id"),
            Table::District => Some("d_w_id"),
            Table::Customer => Some("c_w_id"),
            Table::History => Some("h_w_id"),
            Table::NewOrder => Some("no_w_id"),
            Table::Orders => Some("o_w_id"),
            Table::OrderLine => Some("ol_w_id"),
            Table::Item => None,
            Table::Stock => Some("s_w_id"),
        }
    }

    /// Columns with types, in the order in which the loader writes them.
    fn columns(self) -> &'static str {
        match self {
            Table::Warehouse => {
                "w_id integer NOT NULL, w_name varchar(10), w_street_1 varchar(20), \
                 w_street_2 varchar(20), w_city varchar(20), w_state char(2), w_zip char(9), \
                 w_tax numeric(4,4), w_ytd numeric(12,2)"
            }
            Table::District => {
                "d_id integer NOT NULL, d_w_id integer NOT NULL, d_name varchar(10), \
                 d_street_1 varchar(20), d_street_2 varchar(20), d_city varchar(20), \
                 d_state char(2), d_zip char(9), d_tax numeric(4,4), d_ytd numeric(12,2), \
                 d_next_o_id integer"
            }
            Table::Customer => {
                "c_id integer NOT NULL, c_d_id integer NOT NULL, c_w_id integer NOT NULL, \
                 c_first varchar(16), c_middle char(2), c_last varchar(16), \
                 c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), \
                 c_state char(2), c_zip char(9), c_phone char(16), c_since timestamp, \
                 c_credit char(2), c_credit_lim numeric(12,2), c_discount numeric(4,4), \
                 c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt integer, \
                 c_delivery_cnt integer, c_data varchar(500)"
            }
            Table::History => {
                "h_c_id integer, h_c_d_id integer, h_c_w_id integer, h_d_id integer, \
                 h_w_id integer, h_date timestamp, h_amount numeric(6,2), h_data varchar(24)"
            }
            Table::NewOrder => {
                "no_o_id integer NOT NULL, no_d_id integer NOT NULL, no_w_id integer NOT NULL"
            }
            Table::Orders => {
                "o_id integer NOT NULL, o_d_id integer NOT NULL, o_w_id integer NOT NULL, \
                 o_c_id integer, o_entry_d timestamp, o_carrier_id integer, o_ol_cnt integer, \
                 o_all_local integer"
            }
            Table::OrderLine => {
                "ol_o_id integer NOT NULL, ol_d_id integer NOT NULL, ol_w_id integer NOT NULL, \
                 ol_number integer NOT NULL, ol_i_id integer, ol_supply_w_id integer, \
                 ol_delivery_d timestamp, ol_quantity integer, ol_amount numeric(6,2), \
                 ol_dist_info char(24)"
            }
            Table::Item => {
                "i_id integer NOT NULL, i_im_id integer, i_name varchar(24), \
                 i_price numeric(5,2), i_data varchar(50)"
            }
            Table::Stock => {
                "s_i_id integer NOT NULL, s_w_id integer NOT NULL, s_quantity integer, \
                 s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), s_dist_04 char(24), \
                 s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), \
                 s_dist_09 char(24), s_dist_10 char(24), s_ytd integer, s_order_cnt integer, \
                 s_remote_cnt integer, s_data varchar(50)"
            }
        }
    }

    /// The names of the columns, in the order in which the loader writes them.
    pub fn column_names(self) -> Vec<&'static str> {
        let columns = self.columns().split(", ");
        let name = |column: &'static str| column.split(' ').next().unwrap_or("");
        columns.map(name).collect()
    }

    fn primary_key(self) -> Option<&'static str> {
        match self {
            Table::Warehouse => Some("w_id"),
            Table::District => Some("d_w_id, d_id"),
            Table::Customer => Some("c_w_id, c_d_id, c_id"),
            Table::History => None,
            Table::NewOrder => Some("no_w_id, no_d_id, no_o_id"),
            Table::Orders => Some("o_w_id, o_d_id, o_id"),
            Table::OrderLine => Some("ol_w_id, ol_d_id, ol_o_id, ol_number"),
            Table::Item => Some("i_id"),
            Table::Stock => Some("s_w_id, s_i_id"),
        }
    }

    /// The foreign keys of clause 1.3, as table constraints.
    fn foreign_keys(self) -> &'static [&'static str] {
        match self {
            Table::Warehouse | Table::Item => &[],
            Table::District => &["FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)"],
            Table::Customer => &["FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)"],
            Table::History => &[
                "FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) \
                 REFERENCES customer (c_w_id, c_d_id, c_id)",
                "FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)",
            ],
            Table::NewOrder => &[
                "FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
            ],
            Table::Orders => {
                &["FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)"]
            }
            Table::OrderLine => &[
                "FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
                "FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)",
            ],
            Table::Stock => &[
                "FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id)",
                "FOREIGN KEY (s_i_id) REFERENCES item (i_id)",
            ],
        }
    }

    /// The statement that creates the table.
    pub fn create(self, options: &SchemaOptions) -> String {
        let mut body = String::from(self.columns());
        if let Some(key) = self.primary_key() {
            body.push_str(&format!(", PRIMARY KEY ({key})"));
        }
        if options.foreign_keys {
            for key in self.foreign_keys() {
                body.push_str(&format!(", {key}"));
            }
        }
        let placement = match (self.warehouse_column(), self.primary_key()) {
            _ if !options.placement => String::new(),
            (Some(column), _) if options.binding => format!(" PARTITION BY ({column})"),
            (Some(_), Some(key)) => format!(" PARTITION BY ({key})"),
            (None, _) if options.broadcast => String::from(" WITH (replicated = true)"),
            _ => String::new(),
        };
        format!("CREATE TABLE {} ({body}){placement}", self.name())
    }
}

/// What the created schema has beyond tables and primary keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct SchemaOptions {
    /// Trellis' placement clauses. Off for any other database.
    pub placement: bool,
    /// Of these, all rows of a warehouse together; without it each lies where its key says.
    pub binding: bool,
    /// Of these, ITEM on every node (the paper's broadcast table).
    pub broadcast: bool,
    /// The foreign keys of clause 1.3.
    pub foreign_keys: bool,
}

/// The two secondary indexes: customers by last name, orders by customer.
pub const INDEXES: [(&str, &str); 2] = [
    (
        "customer_by_name",
        "CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    ),
    (
        "orders_by_customer",
        "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
    ),
];

/// The bookkeeping table: scale, seed, constants and finished steps of the load.
pub const BOOKKEEPING: &str = "CREATE TABLE tpcc_load (step varchar(60) NOT NULL, \
     value varchar(60), PRIMARY KEY (step))";

/// Every statement that creates the schema, in order, without the bookkeeping table.
pub fn create_all(options: &SchemaOptions) -> Vec<String> {
    let mut statements: Vec<String> = Table::ALL
        .iter()
        .map(|table| table.create(options))
        .collect();
    statements.extend(
        INDEXES
            .iter()
            .map(|(_, statement)| String::from(*statement)),
    );
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_is_only_said_when_asked_for() {
        let plain = create_all(&SchemaOptions::default()).join(";");
        assert!(!plain.contains("PARTITION") && !plain.contains("replicated"));
        assert!(!plain.contains("FOREIGN"));
        let placed = SchemaOptions {
            placement: true,
            binding: true,
            broadcast: true,
            foreign_keys: true,
        };
        assert!(
            Table::Stock
                .create(&placed)
                .ends_with(") PARTITION BY (s_w_id)")
        );
        assert!(
            Table::Item
                .create(&placed)
                .ends_with(") WITH (replicated = true)")
        );
        let unbound = SchemaOptions {
            binding: false,
            broadcast: false,
            ..placed
        };
        let ends = |table: Table, end: &str| table.create(&unbound).ends_with(end);
        assert!(ends(Table::Stock, ") PARTITION BY (s_w_id, s_i_id)"));
        assert!(ends(Table::Item, "PRIMARY KEY (i_id))"));
        assert_eq!(
            create_all(&placed).join(";").matches("FOREIGN KEY").count(),
            10
        );
    }

    #[test]
    fn tables_follow_those_they_refer_to() {
        for (at, table) in Table::ALL.iter().enumerate() {
            for key in table.foreign_keys() {
                let target = key
                    .split("REFERENCES ")
                    .nth(1)
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap();
                let earlier = Table::ALL[..at].iter().any(|t| t.name() == target);
                assert!(earlier, "{table:?} before {target}");
            }
        }
    }

    #[test]
    fn every_table_is_created_once_with_its_columns() {
        for table in Table::ALL {
            let columns = table.columns().split(", ").count();
            let expected = match table {
                Table::Warehouse => 9,
                Table::District => 11,
                Table::Customer => 21,
                Table::History | Table::Orders => 8,
                Table::NewOrder => 3,
                Table::OrderLine => 10,
                Table::Item => 5,
                Table::Stock => 17,
            };
            assert_eq!(columns, expected, "{table:?}");
            assert_eq!(table.column_names().len(), expected, "{table:?}");
        }
    }
}
