//! The history of a TPC-C run itself, from the counters that TPC-C keeps in its rows.
//!
//! TPC-C numbers the versions of its rows: D_NEXT_O_ID those of a district, S_ORDER_CNT those of a
//! row of STOCK, C_PAYMENT_CNT + C_DELIVERY_CNT those of a customer, W_YTD and D_YTD grow with
//! every payment. So a run needs no tables of its own to be judged for isolation: who returns a
//! counter knows which version it has overwritten and which it has written.
//!
//! | item | its version | read by | written by |
//! |---|---|---|---|
//! | `w_ytd` of a warehouse | W_YTD in cents | NewOrder | Payment |
//! | `d_next_o_id` of a district | D_NEXT_O_ID | StockLevel | NewOrder |
//! | `d_ytd` of a district | D_YTD in cents | | Payment |
//! | `customer` | C_PAYMENT_CNT + C_DELIVERY_CNT | NewOrder, OrderStatus | Payment, Delivery |
//! | `stock` | S_ORDER_CNT | | NewOrder |
//! | `order` | 1: entered, 2: delivered | OrderStatus | NewOrder, Delivery |
//! | `order_lines` of an order | the same, by OL_DELIVERY_D | OrderStatus | NewOrder, Delivery |
//! | `last_order` of a customer | its O_ID | OrderStatus | NewOrder |
//! | `oldest_new_order` of a district | its NO_O_ID | | Delivery |
//!
//! [`Noted`] is a connection that takes down what the answers of its rounds show; statements return
//! the counters beside what they return anyway ([`with_counters`]). A [`Book`] keeps this of all
//! attempts, up to a bound. [`Book::judge`] makes registers of it, which [`check`] judges.
//!
//! What has no version is compared beside it ([`Book::judge_stock`], [`Book::judge_payments`]):
//! S_QUANTITY and S_YTD from one order to the next, and the rows of HISTORY with the payments. Not
//! seen are ITEM, which no transaction writes, and the rows that StockLevel counts.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod book;
mod entry;
mod item;
mod noted;
mod promised;
mod registers;
mod sighting;

pub use book::{Attempt, Book, Judged, OPERATIONS_MAX, Seen, outcome_of};
pub use entry::{Entry, Payment};
pub use item::{DISTRICTS_MAX, WAREHOUSES_MAX};
pub use noted::Noted;
pub use promised::promised;
pub use registers::name_keys;
pub use sighting::{Access, with_counters};
