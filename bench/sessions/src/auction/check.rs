//! What must hold after a run.

use super::{Auction, AuctionItem, Bid, Purchase, SaleItem};
use crate::access::Access;
use crate::interaction::{Changed, Failure};
use entity::{Entity, Value};

/// Items that a seller has offered by auction and for a price; bids and purchases of an item.
pub(super) const OFFERED: &str = "auction items of seller";
pub(super) const FOR_SALE: &str = "sale items of seller";
pub(super) const BIDS: &str = "bids on item";
pub(super) const BOUGHT: &str = "purchases of item";

/// Bits of the item's number in the key of an item.
const NUMBER_BITS: u32 = 36;

/// An item as one number.
pub(super) fn key(seller_id: i64, item_no: i64) -> u64 {
    (seller_id as u64) << NUMBER_BITS | item_no as u64 & ((1 << NUMBER_BITS) - 1)
}

fn item_of(key: u64) -> [Value; 2] {
    let number = key & ((1 << NUMBER_BITS) - 1);
    [
        Value::Int((key >> NUMBER_BITS) as i64),
        Value::Int(number as i64),
    ]
}

/// Compares one group with what was acknowledged.
pub(super) async fn one<D: Access>(
    auction: &Auction,
    kind: &str,
    key: u64,
    changed: Changed,
    access: &mut D,
) -> Result<Vec<String>, Failure> {
    let seller = [Value::Int(key as i64)];
    let mut findings = Vec::new();
    let found = match kind {
        OFFERED | FOR_SALE => {
            let kind = if kind == OFFERED {
                AuctionItem::TYPE
            } else {
                SaleItem::TYPE
            };
            let rows = access.rows_by_index(kind, 0, &seller).await?;
            rows.len() as i64 - auction.items_per_user as i64
        }
        BIDS => {
            let id = item_of(key);
            let items = access.rows(AuctionItem::TYPE, &id).await?;
            let bids = access.rows(Bid::TYPE, &id).await?;
            let number = |row: Option<&entity::Row>, column: usize| {
                row.and_then(|row| row[column].as_int()).unwrap_or(-1)
            };
            let highest = bids.iter().map(|bid| number(Some(bid), 4)).max();
            let (said, count) = (number(items.first(), 2), number(items.first(), 3));
            // Without bids it says at which price they begin.
            let is_wrong = highest.is_some_and(|highest| highest != said);
            if is_wrong || count != bids.len() as i64 {
                let there = bids.len();
                findings.push(format!(
                    "item {id:?} says {count} bids up to {said}, and there are {there} up to \
                     {highest:?}"
                ));
            }
            bids.len() as i64
        }
        _ => {
            let id = item_of(key);
            let items = access.rows(SaleItem::TYPE, &id).await?;
            let sold = items.first().and_then(|row| row[3].as_int()).unwrap_or(-1);
            let purchases = access.rows(Purchase::TYPE, &id).await?.len() as i64;
            if sold != purchases {
                findings.push(format!(
                    "item {id:?}: sold {sold}, and {purchases} purchases"
                ));
            }
            purchases
        }
    };
    findings.extend(changed.finding(format_args!("{kind} {key}"), found, "came in the run"));
    Ok(findings)
}
