//! The auction of the paper (sections 5.3 and 8.5): users sell, look, bid and buy.
//!
//! ```text
//! auction_item   a group with its bids; found by its seller (an index out of the group)
//!   bid          found by its item (in the group) and by its bidder (out of it)
//! sale_item      a group with its purchase; found by its seller
//!   purchase     found by its buyer
//! ```
//!
//! A session is one user, drawn from a pool of its own. What a list has shown is what it bids on or
//! buys next. The check counts bids and purchases of every item that was touched, and compares its
//! highest bid with what it says.

mod check;
mod entities;
mod items;
mod plans;
mod sql;

pub use items::{AuctionItem, Bid, Purchase, SaleItem};
pub use plans::{Buy, Item, Offer, Sell, StoreBid, View, ViewItem, ViewOwn};
pub use sql::statements;

use crate::access::Access;
use crate::distribution::{Ranks, dealt, letters};
use crate::document::{Problem, Section};
use crate::interaction::{Changed, Changes, Failure, Interaction, Performed, Session, dispatch};
use crate::run::{Part, Workload};
use crate::table::{Known, Table};
use entity::{Entity, Schema, Value};
use serde_json::json;
use workload::dike::imbalance::Access as Dealt;
use workload::stream;

/// The most users.
const USERS_MAX: u64 = 10_000_000;
/// Tag of the generator of what is loaded.
const LOAD: u64 = 0x6175_6374;
/// The highest price at which an item begins, in cents.
const PRICE_CENTS_MAX: u64 = 100_000;

const INTERACTIONS: [(&str, &[&str]); 11] = [
    ("SELL_AUCTION_ITEM", &[]),
    ("SELL_SALE_ITEM", &[]),
    ("VIEW_AUCTION_ITEMS_BY_SELLER", &["EMPTY"]),
    ("VIEW_SALE_ITEMS_BY_SELLER", &["EMPTY"]),
    ("VIEW_AUCTION_ITEM", &[]),
    ("STORE_BID", &["LOST"]),
    ("BUY_SALE_ITEM", &["SOLD"]),
    ("VIEW_BIDS_BY_BIDDER", &["EMPTY"]),
    ("VIEW_WINNING_BIDS_BY_BIDDER", &["EMPTY"]),
    ("VIEW_SALE_ITEMS_BY_BUYER", &["EMPTY"]),
    ("VIEW_OWN_AUCTION_ITEMS", &["EMPTY"]),
];

/// The workload.
#[derive(Clone, Debug)]
pub struct Auction {
    users: u64,
    sellers: Ranks,
    items_per_user: u64,
    content_bytes: usize,
    pools: u64,
}

impl Auction {
    /// Reads `users`, `items_per_user` (2 of each kind), `content_bytes` (100) and `seller_access`
    /// (`uniform`). `pools` is the population's sessions.
    ///
    /// # Errors
    /// A key that is not known, a number out of its bounds, fewer users than sessions.
    pub fn read(mut section: Section<'_>, pools: u64) -> Result<Auction, Problem> {
        let users = section.count("users", 1..=USERS_MAX)?;
        let users = users.unwrap_or(10 * pools.max(10));
        if users < pools {
            let text = format!("{users} users are too few for {pools} sessions");
            return Err(section.problem("users", text));
        }
        let items_per_user = section.count("items_per_user", 0..=1_000)?.unwrap_or(2);
        let content_bytes = section.count("content_bytes", 0..=1 << 20)?.unwrap_or(100);
        let dealt = dealt(&mut section, "seller_access", Dealt::Uniform)?;
        section.finish()?;
        Ok(Auction {
            users,
            sellers: Ranks::new(dealt, users, dealt != Dealt::Uniform),
            items_per_user,
            content_bytes: content_bytes as usize,
            pools,
        })
    }

    /// The types of its entities.
    pub fn schema() -> Schema {
        let mut schema = Schema::new();
        for kind in [AuctionItem::TYPE, Bid::TYPE, SaleItem::TYPE, Purchase::TYPE] {
            schema.add(kind).expect("the types fit together");
        }
        schema
    }

    fn offer(&self, seller_id: i64, prng: &mut base::Prng) -> Offer {
        Offer {
            seller_id,
            cents: prng.below(PRICE_CENTS_MAX) as i64 + 1,
            content: letters(prng, self.content_bytes),
        }
    }
}

impl<D> Workload<D> for Auction
where
    D: Access,
    for<'a> Sell<'a>: Interaction<D>,
    for<'a> View<'a>: Interaction<D>,
    for<'a> ViewItem<'a>: Interaction<D>,
    for<'a> StoreBid<'a>: Interaction<D>,
    for<'a> Buy<'a>: Interaction<D>,
    for<'a> ViewOwn<'a>: Interaction<D>,
{
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])] {
        &INTERACTIONS
    }

    fn default_table(&self) -> Table {
        let states = json!({
            "START": {"HOME": 1},
            "HOME": {"does": "none", "next": {
                "SELL_AUCTION_ITEM": 0.1, "SELL_SALE_ITEM": 0.1,
                "VIEW_AUCTION_ITEMS_BY_SELLER": 0.3, "VIEW_SALE_ITEMS_BY_SELLER": 0.15,
                "VIEW_BIDS_BY_BIDDER": 0.05, "VIEW_WINNING_BIDS_BY_BIDDER": 0.05,
                "VIEW_SALE_ITEMS_BY_BUYER": 0.05, "VIEW_OWN_AUCTION_ITEMS": 0.1, "END": 0.1,
            }},
            "SELL_AUCTION_ITEM": {"HOME": 1},
            "SELL_SALE_ITEM": {"HOME": 1},
            "VIEW_AUCTION_ITEMS_BY_SELLER": {"VIEW_AUCTION_ITEM": 1},
            "VIEW_AUCTION_ITEMS_BY_SELLER:EMPTY": {"HOME": 1},
            "VIEW_AUCTION_ITEM": {"STORE_BID": 0.8, "HOME": 0.2},
            "STORE_BID": {"HOME": 1},
            "STORE_BID:LOST": {"VIEW_AUCTION_ITEM": 0.5, "HOME": 0.5},
            "VIEW_SALE_ITEMS_BY_SELLER": {"BUY_SALE_ITEM": 0.5, "HOME": 0.5},
            "VIEW_SALE_ITEMS_BY_SELLER:EMPTY": {"HOME": 1},
            "BUY_SALE_ITEM": {"HOME": 1},
            "VIEW_BIDS_BY_BIDDER": {"HOME": 1},
            "VIEW_WINNING_BIDS_BY_BIDDER": {"HOME": 1},
            "VIEW_SALE_ITEMS_BY_BUYER": {"HOME": 1},
            "VIEW_OWN_AUCTION_ITEMS": {"HOME": 1},
        });
        let known = Known {
            interactions: &INTERACTIONS,
        };
        Table::read("states", &states, known).expect("the workload's own table is right")
    }

    async fn perform(
        &self,
        interaction: usize,
        session: &mut Session,
        access: &mut D,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> Performed {
        let auction = self;
        dispatch!(interaction, (session, access, changes, now_ns), {
            0 | 1 => Sell {
                auction,
                is_auction: interaction == 0,
            },
            2 | 3 | 10 => View {
                auction,
                is_auction: interaction != 3,
                is_own: interaction == 10,
            },
            4 => ViewItem { auction },
            5 => StoreBid { auction },
            6 => Buy { auction },
            7..=9 => ViewOwn {
                auction,
                own: plans::Own::ALL[interaction - 7],
            },
        })
    }

    async fn load(&self, part: Part, access: &mut D) -> Result<(), Failure> {
        for seller in part.dealt(self.users) {
            let mut prng = stream(LOAD, &[seller]);
            for _ in 0..self.items_per_user {
                let mut row = self.offer(seller as i64, &mut prng).auction_item().row();
                row[1] = Value::Null;
                access.fill(AuctionItem::TYPE, vec![row]).await?;
                let mut row = self.offer(seller as i64, &mut prng).sale_item().row();
                row[1] = Value::Null;
                access.fill(SaleItem::TYPE, vec![row]).await?;
            }
        }
        Ok(())
    }

    async fn judge(
        &self,
        (kind, key): (&'static str, u64),
        changed: Changed,
        access: &mut D,
        findings: &mut Vec<String>,
    ) -> Result<(), Failure> {
        findings.extend(check::one(self, kind, key, changed, access).await?);
        Ok(())
    }
}
