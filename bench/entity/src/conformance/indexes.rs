//! Indexes of both kinds.

use super::kinds::{Lot, Offer};
use super::{Bed, Checked, Shown, client, fails, same};
use crate::db::{EntityDb, Failure};
use crate::value::Value;
use alloc::vec;
use alloc::vec::Vec;

async fn lot<D: EntityDb>(client: &mut Checked<D>, seller: i64) -> Shown<i64> {
    let mut lot = Lot {
        seller,
        lot_no: 0,
        price: 0.0,
    };
    client.create(&mut lot).await?;
    Ok(lot.lot_no)
}

fn offer(seller: i64, lot_no: i64, bidder: i64) -> Offer {
    Offer {
        seller,
        lot_no,
        offer_no: 0,
        amount: 1.0,
        bidder,
        token: None,
    }
}

fn key(values: &[i64]) -> Vec<Value> {
    values.iter().map(|&value| Value::Int(value)).collect()
}

pub(super) async fn inner_index<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    let seller = 3_000;
    let lots = [
        lot(&mut client, seller).await?,
        lot(&mut client, seller).await?,
    ];
    for lot_no in lots {
        for bidder in 3_001..3_003 {
            client.create(&mut offer(seller, lot_no, bidder)).await?;
        }
    }
    let of_lot = key(&[seller, lots[0]]);
    let group = (seller, lots[0]);
    let counted = client.run_in::<Lot, _>(&group, async |tx| {
        let before = tx.by_index::<Offer>("seller_lot_no", &of_lot).await?;
        tx.create(&mut offer(seller, lots[0], 3_003)).await?;
        let created = tx.by_index::<Offer>("seller_lot_no", &of_lot).await?;
        let id = (seller, lots[0], before[0].offer_no);
        tx.delete::<Offer>(&id).await?;
        let deleted = tx.by_index::<Offer>("seller_lot_no", &of_lot).await?;
        Ok([before.len(), created.len(), deleted.len()])
    });
    let counted = counted.await?;
    same(
        "offers before, after a creation, after a deletion",
        counted,
        [2, 3, 2],
    )?;
    let found = client.by_index::<Offer>("seller_lot_no", &of_lot).await?;
    let bidders: Vec<i64> = found.iter().map(|offer| offer.bidder).collect();
    same("bidders of the first lot", bidders, vec![3_002, 3_003])?;
    let other = key(&[seller, lots[1]]);
    let found = client.by_index::<Offer>("seller_lot_no", &other).await?;
    same("offers for the other lot", found.len(), 2)?;
    let none = key(&[seller, 1 << 40]);
    let found = client.by_index::<Offer>("seller_lot_no", &none).await?;
    same("offers for no lot", found.len(), 0)
}

pub(super) async fn outer_index<B: Bed>(bed: &mut B) -> Shown {
    let (mut client, mut other) = (client(bed).await?, client(bed).await?);
    let seller = 4_000;
    let mut offers = Vec::new();
    for bidder in [4_001, 4_002, 4_001] {
        let lot_no = lot(&mut client, seller).await?;
        let mut offer = offer(seller, lot_no, bidder);
        client.create(&mut offer).await?;
        offers.push(offer);
    }
    let bidders = |bidder: i64| {
        let of_bidder = offers.iter().filter(move |offer| offer.bidder == bidder);
        of_bidder.cloned().collect::<Vec<Offer>>()
    };
    for bidder in [4_001, 4_002, 4_003] {
        let found = other.by_index::<Offer>("bidder", &key(&[bidder])).await?;
        same("offers of a bidder", found, bidders(bidder))?;
    }
    let found = other.by_index::<Lot>("seller", &key(&[seller])).await?;
    same("lots of a seller", found.len(), 3)?;
    let id = (seller, offers[0].lot_no, offers[0].offer_no);
    client.delete::<Offer>(&id).await?;
    let found = other.by_index::<Offer>("bidder", &key(&[4_001])).await?;
    same(
        "offers of a bidder after a deletion",
        found,
        bidders(4_001)[1..].to_vec(),
    )?;
    let of_none = key(&[1, 2]);
    let found = client.by_index::<Offer>("bidder", &of_none).await;
    let is_wanted = |failure: &Failure| matches!(failure, Failure::Refused(_));
    fails("a key with too many values", found, is_wanted)
}

pub(super) async fn dangling_entry<B: Bed>(bed: &mut B) -> Shown {
    let (mut client, mut other) = (client(bed).await?, client(bed).await?);
    let (seller, bidder) = (5_000, 5_001);
    let lot_no = lot(&mut client, seller).await?;
    let group = (seller, lot_no);
    let stopped = client.run_in::<Lot, _>(&group, async |tx| {
        tx.create(&mut offer(seller, lot_no, bidder)).await?;
        Err::<(), _>(Failure::Stopped("after a creation"))
    });
    let stopped = stopped.await;
    fails("a stopped transaction", stopped, |failure| {
        matches!(failure, Failure::Stopped(_))
    })?;
    for client in [&mut client, &mut other] {
        let found = client.by_index::<Offer>("bidder", &key(&[bidder])).await?;
        same("offers that were never created", found, Vec::new())?;
    }
    // What the stopped transaction has left does not stand in the way of another one.
    let mut second = offer(seller, lot_no, bidder + 1);
    client.create(&mut second).await?;
    let found = other.by_index::<Offer>("bidder", &key(&[bidder])).await?;
    same("offers that were never created", found, Vec::new())?;
    let found = other
        .by_index::<Offer>("bidder", &key(&[bidder + 1]))
        .await?;
    same("the offer of another bidder", found, vec![second])
}
