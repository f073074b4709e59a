//! What a user asks for, and what is remembered of the answer: the same on every store.

use super::items::{AuctionItem, SaleItem};
use super::{Auction, check};
use crate::interaction::{Changes, Plan, Session};
use crate::state::Datum;

/// What a session calls its user, the auction item that it looks at (seller, number, highest bid),
/// and the sale item.
const USER: &str = "user";
const AUCTION_ITEM: &str = "auction_item";
const SALE_ITEM: &str = "sale_item";
/// The most by which a bid is higher than the highest one that the user saw, in cents.
const STEP_CENTS_MAX: u64 = 500;

/// An item as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Who sells it.
    pub seller_id: i64,
    /// The seller's item.
    pub item_no: i64,
    /// The highest bid, or the price.
    pub cents: i64,
}

impl Item {
    fn store(self, name: &str, session: &mut Session) {
        let all = [self.seller_id, self.item_no, self.cents];
        let list = all.into_iter().map(Datum::Int).collect();
        session.state.set(name, Datum::List(list));
    }

    fn load(name: &str, session: &Session) -> Option<Item> {
        match session.state.list(name) {
            [seller_id, item_no, cents] => Some(Item {
                seller_id: seller_id.int()?,
                item_no: item_no.int()?,
                cents: cents.int()?,
            }),
            _ => None,
        }
    }
}

fn user_of(auction: &Auction, session: &mut Session) -> i64 {
    if let Some(user) = session.state.int(USER) {
        return user;
    }
    let place = session.place % auction.pools;
    let pool = (auction.users - place).div_ceil(auction.pools);
    let user = (place + auction.pools * session.draws.below(pool)) as i64;
    session.state.set(USER, Datum::Int(user));
    user
}

/// What somebody wants to sell.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Who sells it.
    pub seller_id: i64,
    /// In cents.
    pub cents: i64,
    /// Letters.
    pub content: String,
}

impl Offer {
    /// As an item of an auction, its number not given yet.
    pub fn auction_item(self) -> AuctionItem {
        AuctionItem {
            seller_id: self.seller_id,
            item_no: 0,
            max_bid_cents: self.cents,
            bids: 0,
            content: self.content,
        }
    }

    /// As an item with a price.
    pub fn sale_item(self) -> SaleItem {
        SaleItem {
            seller_id: self.seller_id,
            item_no: 0,
            cents: self.cents,
            sold: 0,
            content: self.content,
        }
    }
}

/// Offers an item.
#[derive(Clone, Copy, Debug)]
pub struct Sell<'a> {
    /// Sizes.
    pub auction: &'a Auction,
    /// By auction; else for a price.
    pub is_auction: bool,
}

impl Plan for Sell<'_> {
    type Param = Offer;
    type Answer = ();

    fn prepare(&self, session: &mut Session) -> Option<Offer> {
        let user = user_of(self.auction, session);
        Some(self.auction.offer(user, &mut session.draws))
    }

    fn complete(&self, _: &Offer, (): (), _: &mut Session) -> &'static str {
        ""
    }

    fn note(&self, param: &Offer, answer: Option<&()>, changes: &mut Changes) {
        let kind = if self.is_auction {
            check::OFFERED
        } else {
            check::FOR_SALE
        };
        changes.note(kind, param.seller_id as u64, 1, answer.is_some());
    }
}

/// Lists the items of a seller. One of them is looked at next.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Sizes.
    pub auction: &'a Auction,
    /// Auction items; else those for a price.
    pub is_auction: bool,
    /// Those of the user.
    pub is_own: bool,
}

impl Plan for View<'_> {
    /// The seller.
    type Param = i64;
    type Answer = Vec<Item>;

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(match self.is_own {
            true => user_of(self.auction, session),
            false => self.auction.sellers.draw(&mut session.draws) as i64,
        })
    }

    fn complete(&self, _: &i64, answer: Vec<Item>, session: &mut Session) -> &'static str {
        if answer.is_empty() {
            return "EMPTY";
        }
        if !self.is_own {
            let place = session.draws.below(answer.len() as u64) as usize;
            let name = if self.is_auction {
                AUCTION_ITEM
            } else {
                SALE_ITEM
            };
            answer[place].store(name, session);
        }
        ""
    }
}

/// Looks at an auction item and all of its bids.
#[derive(Clone, Copy, Debug)]
pub struct ViewItem<'a> {
    /// Sizes.
    pub auction: &'a Auction,
}

impl Plan for ViewItem<'_> {
    type Param = Item;
    /// The item as it is now, and how many bids were read.
    type Answer = (Item, i64);

    fn prepare(&self, session: &mut Session) -> Option<Item> {
        Item::load(AUCTION_ITEM, session)
    }

    fn complete(&self, _: &Item, answer: (Item, i64), session: &mut Session) -> &'static str {
        answer.0.store(AUCTION_ITEM, session);
        ""
    }
}

/// Bids more than the highest bid that the user saw.
#[derive(Clone, Copy, Debug)]
pub struct StoreBid<'a> {
    /// Sizes.
    pub auction: &'a Auction,
}

impl Plan for StoreBid<'_> {
    /// The item with the bid, and who bids.
    type Param = (Item, i64);
    /// Whether it is the highest.
    type Answer = bool;

    fn prepare(&self, session: &mut Session) -> Option<(Item, i64)> {
        let mut item = Item::load(AUCTION_ITEM, session)?;
        item.cents += session.draws.below(STEP_CENTS_MAX) as i64 + 1;
        Some((item, user_of(self.auction, session)))
    }

    fn complete(&self, _: &(Item, i64), answer: bool, _: &mut Session) -> &'static str {
        if answer { "" } else { "LOST" }
    }

    fn note(&self, param: &(Item, i64), answer: Option<&bool>, changes: &mut Changes) {
        if answer != Some(&false) {
            let key = check::key(param.0.seller_id, param.0.item_no);
            changes.note(check::BIDS, key, 1, answer.is_some());
        }
    }
}

/// Buys the sale item that the user has seen.
#[derive(Clone, Copy, Debug)]
pub struct Buy<'a> {
    /// Sizes.
    pub auction: &'a Auction,
}

impl Plan for Buy<'_> {
    /// The item, and who buys.
    type Param = (Item, i64);
    /// Whether it was still there.
    type Answer = bool;

    fn prepare(&self, session: &mut Session) -> Option<(Item, i64)> {
        let item = Item::load(SALE_ITEM, session)?;
        Some((item, user_of(self.auction, session)))
    }

    fn complete(&self, _: &(Item, i64), answer: bool, session: &mut Session) -> &'static str {
        session.state.forget(SALE_ITEM);
        if answer { "" } else { "SOLD" }
    }

    fn note(&self, param: &(Item, i64), answer: Option<&bool>, changes: &mut Changes) {
        if answer != Some(&false) {
            let key = check::key(param.0.seller_id, param.0.item_no);
            changes.note(check::BOUGHT, key, 1, answer.is_some());
        }
    }
}

/// What a user looks at of the own affairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Bids, with their items.
    Bids,
    /// Bids that are the highest of their items.
    WinningBids,
    /// Items that the user has bought.
    Purchases,
}

impl Own {
    /// In the order of the interactions.
    pub const ALL: [Own; 3] = [Own::Bids, Own::WinningBids, Own::Purchases];
}

/// Lists the user's bids or purchases with their items: a join.
#[derive(Clone, Copy, Debug)]
pub struct ViewOwn<'a> {
    /// Sizes.
    pub auction: &'a Auction,
    /// Which.
    pub own: Own,
}

impl Plan for ViewOwn<'_> {
    /// The user.
    type Param = i64;
    type Answer = Vec<Item>;

    fn prepare(&self, session: &mut Session) -> Option<i64> {
        Some(user_of(self.auction, session))
    }

    fn complete(&self, _: &i64, answer: Vec<Item>, _: &mut Session) -> &'static str {
        if answer.is_empty() { "EMPTY" } else { "" }
    }
}
