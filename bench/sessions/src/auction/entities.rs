//! The entity half.

use super::plans::Own;
use super::{AuctionItem, Bid, Buy, Item, Offer, Purchase, SaleItem};
use super::{Sell, StoreBid, View, ViewItem, ViewOwn};
use crate::access::counted;
use crate::interaction::{Effort, Failure, Interaction};
use entity::{Client, EntityDb, Pace, Value};

impl From<&AuctionItem> for Item {
    fn from(item: &AuctionItem) -> Item {
        Item {
            seller_id: item.seller_id,
            item_no: item.item_no,
            cents: item.max_bid_cents,
        }
    }
}

impl From<&SaleItem> for Item {
    fn from(item: &SaleItem) -> Item {
        Item {
            seller_id: item.seller_id,
            item_no: item.item_no,
            cents: item.cents,
        }
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Sell<'_> {
    async fn execute(
        &self,
        param: &Offer,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        let offer = param.clone();
        counted(access, effort, async |client| match self.is_auction {
            true => client.create(&mut offer.auction_item()).await,
            false => client.create(&mut offer.sale_item()).await,
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for View<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<Vec<Item>, Failure> {
        let key = [Value::Int(*param)];
        counted(access, effort, async |client| {
            if self.is_auction {
                let items: Vec<AuctionItem> = client.by_index("seller_id", &key).await?;
                return Ok(items.iter().map(Item::from).collect());
            }
            let items: Vec<SaleItem> = client.by_index("seller_id", &key).await?;
            Ok(items.iter().map(Item::from).collect())
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for ViewItem<'_> {
    async fn execute(
        &self,
        param: &Item,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<(Item, i64), Failure> {
        let id = (param.seller_id, param.item_no);
        let key = [Value::Int(id.0), Value::Int(id.1)];
        counted(access, effort, async |client| {
            client
                .run_in::<AuctionItem, _>(&id, async |tx| {
                    let item = tx.get::<AuctionItem>(&id).await?.ok_or(NO_ITEM)?;
                    let bids: Vec<Bid> = tx.by_index("seller_id_item_no", &key).await?;
                    if bids.len() as i64 != item.bids {
                        return Err(TORN);
                    }
                    Ok((Item::from(&item), item.bids))
                })
                .await
        })
        .await
    }
}

/// An item is not there, though none is ever deleted.
const NO_ITEM: entity::Failure = entity::Failure::Stopped("an item is missing");
/// An item and its bids were not read of one state.
const TORN: entity::Failure = entity::Failure::Stopped("an item has other bids than it says");

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for StoreBid<'_> {
    async fn execute(
        &self,
        (bid, user_id): &(Item, i64),
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        let id = (bid.seller_id, bid.item_no);
        counted(access, effort, async |client| {
            client
                .run_in::<AuctionItem, _>(&id, async |tx| {
                    let mut item = tx.get::<AuctionItem>(&id).await?.ok_or(NO_ITEM)?;
                    if bid.cents <= item.max_bid_cents {
                        return Ok(false);
                    }
                    let mut new = Bid {
                        seller_id: id.0,
                        item_no: id.1,
                        bid_no: 0,
                        user_id: *user_id,
                        cents: bid.cents,
                    };
                    tx.create(&mut new).await?;
                    item.max_bid_cents = bid.cents;
                    item.bids += 1;
                    tx.update(&item).await?;
                    Ok(true)
                })
                .await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for Buy<'_> {
    async fn execute(
        &self,
        (item, buyer_id): &(Item, i64),
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        let id = (item.seller_id, item.item_no);
        counted(access, effort, async |client| {
            client
                .run_in::<SaleItem, _>(&id, async |tx| {
                    let mut item = tx.get::<SaleItem>(&id).await?.ok_or(NO_ITEM)?;
                    if item.sold != 0 {
                        return Ok(false);
                    }
                    let mut purchase = Purchase {
                        seller_id: id.0,
                        item_no: id.1,
                        buyer_id: *buyer_id,
                    };
                    tx.create(&mut purchase).await?;
                    item.sold = 1;
                    tx.update(&item).await?;
                    Ok(true)
                })
                .await
        })
        .await
    }
}

impl<S: EntityDb, P: Pace> Interaction<Client<S, P>> for ViewOwn<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Client<S, P>,
        effort: &mut Effort,
    ) -> Result<Vec<Item>, Failure> {
        let key = [Value::Int(*param)];
        counted(access, effort, async |client| {
            let mut found = Vec::new();
            if self.own == Own::Purchases {
                let purchases: Vec<Purchase> = client.by_index("buyer_id", &key).await?;
                for purchase in purchases {
                    let id = (purchase.seller_id, purchase.item_no);
                    let item = client.get::<SaleItem>(&id).await?.ok_or(NO_ITEM)?;
                    found.push(Item::from(&item));
                }
                return Ok(found);
            }
            let bids: Vec<Bid> = client.by_index("user_id", &key).await?;
            for bid in bids {
                let id = (bid.seller_id, bid.item_no);
                let item = client.get::<AuctionItem>(&id).await?.ok_or(NO_ITEM)?;
                if self.own == Own::Bids || item.max_bid_cents == bid.cents {
                    found.push(Item::from(&item));
                }
            }
            Ok(found)
        })
        .await
    }
}
