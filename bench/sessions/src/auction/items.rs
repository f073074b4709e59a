//! What is sold, and who wants it.

use entity::Entity;

/// An item that the highest bid gets.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(index(seller_id))]
pub struct AuctionItem {
    /// Who sells it.
    #[id]
    #[group]
    pub seller_id: i64,
    /// Given by the store, unique for the seller.
    #[id]
    #[group]
    #[generated]
    pub item_no: i64,
    /// The highest bid, or the price at which it begins, in cents.
    pub max_bid_cents: i64,
    /// How many bids there are.
    pub bids: i64,
    /// Letters.
    pub content: String,
}

/// A bid that was the highest when it was made.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(parent = AuctionItem, index(seller_id, item_no), index(user_id))]
pub struct Bid {
    /// Who sells the item.
    #[id]
    #[group]
    pub seller_id: i64,
    /// The seller's item.
    #[id]
    #[group]
    pub item_no: i64,
    /// Given by the store, unique for the item.
    #[id]
    #[generated]
    pub bid_no: i64,
    /// Who bids.
    pub user_id: i64,
    /// In cents.
    pub cents: i64,
}

/// An item with a price: who comes first gets it.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(index(seller_id))]
pub struct SaleItem {
    /// Who sells it.
    #[id]
    #[group]
    pub seller_id: i64,
    /// Given by the store, unique for the seller.
    #[id]
    #[group]
    #[generated]
    pub item_no: i64,
    /// The price in cents.
    pub cents: i64,
    /// 1 when it is sold.
    pub sold: i64,
    /// Letters.
    pub content: String,
}

/// That an item was bought.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(parent = SaleItem, index(buyer_id))]
pub struct Purchase {
    /// Who sold the item.
    #[id]
    #[group]
    pub seller_id: i64,
    /// The seller's item.
    #[id]
    #[group]
    pub item_no: i64,
    /// Who bought it.
    pub buyer_id: i64,
}
