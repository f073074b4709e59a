//! The types that the checks use: all kinds of values, keys, groups and indexes.

use crate::model::Schema;
use alloc::string::String;
use alloc::vec::Vec;
use entity::Entity;

/// One of several entities of an owner's group.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "check_item")]
pub struct Item {
    /// The group.
    #[id]
    #[group]
    pub owner: i64,
    /// Unique in the group.
    #[id]
    pub number: i64,
    /// Any text.
    pub content: String,
    /// Counts changes.
    pub count: i64,
}

/// The root of a group whose key is generated.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "check_lot", index(seller))]
pub struct Lot {
    /// Part of the group's key, and of an index outside of it.
    #[id]
    #[group]
    pub seller: i64,
    /// Unique for the seller.
    #[id]
    #[group]
    #[generated]
    pub lot_no: i64,
    /// The highest amount offered.
    pub price: f64,
}

/// A child in the group of a [`Lot`], with an index of each kind.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "check_offer", parent = Lot, index(seller, lot_no), index(bidder))]
pub struct Offer {
    /// The lot's.
    #[id]
    #[group]
    pub seller: i64,
    /// The lot's.
    #[id]
    #[group]
    pub lot_no: i64,
    /// Unique for the lot.
    #[id]
    #[generated]
    pub offer_no: i64,
    /// The amount.
    pub amount: f64,
    /// Who offers; a key outside of the group.
    pub bidder: i64,
    /// Set at creation.
    #[immutable]
    pub token: Option<Vec<u8>>,
}

/// An entity with texts as its ids, whose group is the second of them.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(name = "check_note")]
pub struct Note {
    /// Unique in the folder.
    #[id]
    pub title: String,
    /// The group.
    #[id]
    #[group]
    pub folder: String,
    /// Any text, or none.
    pub body: Option<String>,
    /// Any bytes.
    pub picture: Vec<u8>,
    /// A truth value.
    pub is_read: bool,
    /// Any number.
    pub weight: Option<f64>,
}

/// The types of all checks.
pub fn schema() -> Schema {
    let mut schema = Schema::new();
    for kind in [Item::TYPE, Lot::TYPE, Offer::TYPE, Note::TYPE] {
        schema.add(kind).expect("derived types are valid");
    }
    schema
}
