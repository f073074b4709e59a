//! The SQL half: joins where there are two types, and a bid that compares in the server.

use super::plans::Own;
use super::{Buy, Item, Offer, Sell, StoreBid, View, ViewItem, ViewOwn};
use crate::access::{Attempt, BEGIN, OWN, Sql, Statement};
use crate::interaction::{Effort, Failure, Interaction};
use entity::Pace;
use workload::wire::{Connection, ParamType};

const OFFER: usize = OWN;
const OFFER_FOR_SALE: usize = OWN + 1;
const BY_SELLER: usize = OWN + 2;
const FOR_SALE_BY_SELLER: usize = OWN + 3;
const READ_ITEM: usize = OWN + 4;
const READ_BIDS: usize = OWN + 5;
const RAISE: usize = OWN + 6;
const ADD_BID: usize = OWN + 7;
const MARK_SOLD: usize = OWN + 8;
const ADD_PURCHASE: usize = OWN + 9;
/// Three, in the order of [`Own`].
const READ_OWN: usize = OWN + 10;

/// All statements with the types of their parameters, in the order of their places.
pub fn statements() -> Vec<(String, Vec<ParamType>)> {
    use ParamType::{BigInt as N, Text as T};
    let bids = "SELECT i.seller_id, i.item_no, i.max_bid_cents FROM bid b JOIN auction_item i \
                ON i.seller_id = b.seller_id AND i.item_no = b.item_no WHERE b.user_id = $1";
    let winning = format!("{bids} AND b.cents = i.max_bid_cents");
    let all: [(&str, &[ParamType]); 13] = [
        (
            "INSERT INTO auction_item (seller_id, max_bid_cents, bids, content) \
             VALUES ($1, $2, 0, $3)",
            &[N, N, T],
        ),
        (
            "INSERT INTO sale_item (seller_id, cents, sold, content) VALUES ($1, $2, 0, $3)",
            &[N, N, T],
        ),
        (
            "SELECT seller_id, item_no, max_bid_cents, bids, content FROM auction_item \
             WHERE seller_id = $1 ORDER BY item_no",
            &[N],
        ),
        (
            "SELECT seller_id, item_no, cents, sold, content FROM sale_item \
             WHERE seller_id = $1 ORDER BY item_no",
            &[N],
        ),
        (
            "SELECT seller_id, item_no, max_bid_cents, bids, content FROM auction_item \
             WHERE seller_id = $1 AND item_no = $2",
            &[N, N],
        ),
        (
            "SELECT bid_no, user_id, cents FROM bid WHERE seller_id = $1 AND item_no = $2",
            &[N, N],
        ),
        (
            "UPDATE auction_item SET max_bid_cents = $3, bids = bids + 1 \
             WHERE seller_id = $1 AND item_no = $2 AND max_bid_cents < $4",
            &[N, N, N, N],
        ),
        (
            "INSERT INTO bid (seller_id, item_no, user_id, cents) VALUES ($1, $2, $3, $4)",
            &[N, N, N, N],
        ),
        (
            "UPDATE sale_item SET sold = 1 WHERE seller_id = $1 AND item_no = $2 AND sold = 0",
            &[N, N],
        ),
        (
            "INSERT INTO purchase (seller_id, item_no, buyer_id) VALUES ($1, $2, $3)",
            &[N, N, N],
        ),
        (bids, &[N]),
        (&winning, &[N]),
        (
            "SELECT i.seller_id, i.item_no, i.cents FROM purchase p JOIN sale_item i \
             ON i.seller_id = p.seller_id AND i.item_no = p.item_no WHERE p.buyer_id = $1",
            &[N],
        ),
    ];
    let owned = all
        .into_iter()
        .map(|(sql, params)| (sql.to_string(), params.to_vec()));
    owned.collect()
}

/// An item of the last round.
fn item<C: Connection>(statement: &Statement<'_, C>, place: usize, row: usize) -> Attempt<Item, C> {
    let number = |column| statement.number((place, row, column), "an item");
    Ok(Item {
        seller_id: number(0)?,
        item_no: number(1)?,
        cents: number(2)?,
    })
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Sell<'_> {
    async fn execute(
        &self,
        param: &Offer,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<(), Failure> {
        let insert = if self.is_auction {
            OFFER
        } else {
            OFFER_FOR_SALE
        };
        access
            .run(effort, async |statement| {
                let session = statement.session();
                let bind = session.bind(insert).big(param.seller_id).big(param.cents);
                bind.text(&param.content).send();
                statement.single().await
            })
            .await
    }
}

/// A list of items by one statement.
async fn list<C: Connection, P: Pace>(
    access: &mut Sql<C, P>,
    effort: &mut Effort,
    read: usize,
    of: i64,
) -> Result<Vec<Item>, Failure> {
    access
        .run(effort, async |statement| {
            statement.session().bind(read).big(of).send();
            statement.round().await?;
            let rows = 0..statement.answers().rows(0);
            rows.map(|row| item(statement, 0, row)).collect()
        })
        .await
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for View<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<Vec<Item>, Failure> {
        let read = if self.is_auction {
            BY_SELLER
        } else {
            FOR_SALE_BY_SELLER
        };
        list(access, effort, read, *param).await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for ViewItem<'_> {
    async fn execute(
        &self,
        param: &Item,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<(Item, i64), Failure> {
        access
            .run(effort, async |statement| {
                let session = statement.session();
                session.bind(BEGIN).send();
                for read in [READ_ITEM, READ_BIDS] {
                    session
                        .bind(read)
                        .big(param.seller_id)
                        .big(param.item_no)
                        .send();
                }
                statement.commit().await?;
                let bids = statement.answers().rows(2) as i64;
                Ok((item(statement, 1, 0)?, bids))
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for StoreBid<'_> {
    async fn execute(
        &self,
        (bid, user_id): &(Item, i64),
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        access
            .run(effort, async |statement| {
                let session = statement.session();
                session.bind(BEGIN).send();
                let bind = session.bind(RAISE).big(bid.seller_id).big(bid.item_no);
                bind.big(bid.cents).big(bid.cents).send();
                statement.round().await?;
                let is_highest = statement.answers().affected(1) == 1;
                if is_highest {
                    let bind = statement.session().bind(ADD_BID).big(bid.seller_id);
                    bind.big(bid.item_no).big(*user_id).big(bid.cents).send();
                }
                statement.commit().await?;
                Ok(is_highest)
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for Buy<'_> {
    async fn execute(
        &self,
        (item, buyer_id): &(Item, i64),
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<bool, Failure> {
        access
            .run(effort, async |statement| {
                let session = statement.session();
                session.bind(BEGIN).send();
                session
                    .bind(MARK_SOLD)
                    .big(item.seller_id)
                    .big(item.item_no)
                    .send();
                statement.round().await?;
                let is_there = statement.answers().affected(1) == 1;
                if is_there {
                    let bind = statement.session().bind(ADD_PURCHASE).big(item.seller_id);
                    bind.big(item.item_no).big(*buyer_id).send();
                }
                statement.commit().await?;
                Ok(is_there)
            })
            .await
    }
}

impl<C: Connection, P: Pace> Interaction<Sql<C, P>> for ViewOwn<'_> {
    async fn execute(
        &self,
        param: &i64,
        access: &mut Sql<C, P>,
        effort: &mut Effort,
    ) -> Result<Vec<Item>, Failure> {
        let place = Own::ALL.iter().position(|own| *own == self.own);
        list(access, effort, READ_OWN + place.unwrap_or(0), *param).await
    }
}
