//! Transactions: isolation, atomicity, scope.

use super::kinds::{Item, Lot, Offer};
use super::{Bed, Checked, Ended, Shown, client, fails, same};
use crate::db::{EntityDb, Failure, Scope, Stamp};
use crate::derived::Entity;
use crate::value::Value;
use alloc::format;
use alloc::vec;

async fn items<D: EntityDb>(client: &mut Checked<D>, owner: i64, count: i64) -> Shown {
    for number in 0..count {
        let mut item = Item {
            owner,
            number,
            content: "item".into(),
            count: 0,
        };
        client.create(&mut item).await?;
    }
    Ok(())
}

async fn count_of<D: EntityDb>(client: &mut Checked<D>, owner: i64, number: i64) -> Shown<i64> {
    let found = client.get::<Item>(&(owner, number)).await?;
    let item = found.ok_or_else(|| Ended::Failed("an item is missing".into()))?;
    Ok(item.count)
}

/// Counts items of an owner up by `by`, in one transaction.
async fn count_up<D: EntityDb>(
    client: &mut Checked<D>,
    owner: i64,
    numbers: &[i64],
    by: i64,
) -> Result<(), Failure> {
    let counted = client.run_in::<Item, _>(&owner, async |tx| {
        for &number in numbers {
            let found = tx.get::<Item>(&(owner, number)).await?;
            let mut item = found.ok_or_else(|| Failure::Missing("item".into()))?;
            item.count += by;
            tx.update(&item).await?;
        }
        Ok(())
    });
    counted.await
}

/// A transaction of two statements, held open between them.
async fn read_count<D: EntityDb>(
    client: &mut Checked<D>,
    stamp: Stamp,
    owner: i64,
) -> Result<Item, Failure> {
    let key = [Value::Int(owner)];
    let scope = Scope::Group(&Item::TYPE.group_name, &key);
    client.db().begin(scope, stamp).await?;
    let id = [Value::Int(owner), Value::Int(0)];
    let row = client.db().get(Item::TYPE, &id).await?;
    let row = row.ok_or_else(|| Failure::Missing("item".into()))?;
    Item::from_row(row).map_err(|mismatch| Failure::Refused(format!("{mismatch}")))
}

async fn write_count<D: EntityDb>(client: &mut Checked<D>, mut item: Item) -> Result<(), Failure> {
    item.count += 1;
    client.db().update(Item::TYPE, &item.row()).await?;
    client.db().commit().await
}

pub(super) async fn lost_update<B: Bed>(bed: &mut B) -> Shown {
    if !bed.is_optimistic() {
        return Err(Ended::Skipped("its transactions wait for one another"));
    }
    let (mut first, mut second) = (client(bed).await?, client(bed).await?);
    items(&mut first, 6_000, 1).await?;
    let stamp = Stamp {
        client: bed.client(),
        sequence: 1,
    };
    let read = read_count(&mut first, stamp, 6_000).await?;
    count_up(&mut second, 6_000, &[0], 1).await?;
    let is_done = match write_count(&mut first, read).await {
        Ok(()) => true,
        Err(Failure::Conflict(_)) => {
            first.db().abort().await?;
            false
        }
        Err(failure) => return Err(failure.into()),
    };
    let by = if is_done { &mut first } else { &mut second };
    let found = count_of(by, 6_000, 0).await?;
    same("changes of an item", found, 1 + i64::from(is_done))
}

pub(super) async fn phantom<B: Bed>(bed: &mut B) -> Shown {
    if !bed.is_optimistic() {
        return Err(Ended::Skipped("its transactions wait for one another"));
    }
    let (mut first, mut second) = (client(bed).await?, client(bed).await?);
    let mut lot = Lot {
        seller: 7_000,
        lot_no: 0,
        price: 0.0,
    };
    first.create(&mut lot).await?;
    let offer = |amount| Offer {
        seller: 7_000,
        lot_no: lot.lot_no,
        offer_no: 0,
        amount,
        bidder: 7_001,
        token: None,
    };
    let key = [Value::Int(7_000), Value::Int(lot.lot_no)];
    let stamp = Stamp {
        client: bed.client(),
        sequence: 1,
    };
    let db = first.db();
    let scope = Scope::Group(&Lot::TYPE.group_name, &key);
    db.begin(scope, stamp).await?;
    let before = db.by_index(Offer::TYPE, 0, &key).await?.len();
    second.create(&mut offer(1.0)).await?;
    lot.price = before as f64;
    let mut result = db.update(Lot::TYPE, &lot.row()).await;
    if result.is_ok() {
        result = db.create(Offer::TYPE, &mut offer(2.0).row()).await;
    }
    match result {
        Ok(()) => result = db.commit().await,
        Err(_) => db.abort().await?,
    }
    match result {
        Err(Failure::Conflict(_)) => {}
        // In the order first, second both are right.
        Ok(()) => {
            let words = "two transactions each created the first offer of a lot";
            let found = second.by_index::<Offer>("seller_lot_no", &key).await?;
            let has_read_none = before == 0 && found.len() == 2;
            if has_read_none
                && found
                    .iter()
                    .any(|offer| offer.offer_no == 1 && offer.amount < 2.0)
            {
                return Err(Ended::Failed(words.into()));
            }
        }
        Err(failure) => return Err(failure.into()),
    }
    Ok(())
}

pub(super) async fn atomicity<B: Bed>(bed: &mut B) -> Shown {
    let (mut writer, mut reader) = (client(bed).await?, client(bed).await?);
    items(&mut writer, 10_000, 2).await?;
    for _ in 0..8 {
        count_up(&mut writer, 10_000, &[0, 1], 1).await?;
        let counts = reader.run_in::<Item, _>(&10_000, async |tx| {
            let first = tx.get::<Item>(&(10_000, 0)).await?;
            let second = tx.get::<Item>(&(10_000, 1)).await?;
            Ok((first.map(|item| item.count), second.map(|item| item.count)))
        });
        let (first, second) = counts.await?;
        same(
            "counts of two items that are changed together",
            first,
            second,
        )?;
    }
    Ok(())
}

pub(super) async fn stopped<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    items(&mut client, 11_000, 2).await?;
    let stopped = client.run_in::<Item, _>(&11_000, async |tx| {
        let mut item = Item {
            owner: 11_000,
            number: 0,
            content: "changed".into(),
            count: 5,
        };
        tx.update(&item).await?;
        tx.delete::<Item>(&(11_000, 1)).await?;
        item.number = 2;
        tx.create(&mut item).await?;
        Err::<(), _>(Failure::Stopped("by its task"))
    });
    let stopped = stopped.await;
    let is_wanted = |failure: &Failure| matches!(failure, Failure::Stopped("by its task"));
    fails("a stopped transaction", stopped, is_wanted)?;
    // A failed operation ends the transaction, though the task goes on.
    let ended = client.run_in::<Item, _>(&11_000, async |tx| {
        tx.delete::<Item>(&(11_000, 0)).await?;
        let missing = tx.delete::<Item>(&(11_000, 9)).await;
        Ok(missing.is_err())
    });
    let ended = ended.await;
    fails("a transaction with a failed operation", ended, |failure| {
        matches!(failure, Failure::Missing(_))
    })?;
    let mut found = vec![];
    for number in 0..3 {
        let item = client.get::<Item>(&(11_000, number)).await?;
        found.push(item.map(|item| item.count));
    }
    same("items after it", found, vec![Some(0), Some(0), None])
}

pub(super) async fn fresh_read<B: Bed>(bed: &mut B) -> Shown {
    let (mut writer, mut reader) = (client(bed).await?, client(bed).await?);
    items(&mut writer, 14_000, 1).await?;
    for count in 1..8 {
        count_up(&mut writer, 14_000, &[0], 1).await?;
        let found = count_of(&mut reader, 14_000, 0).await?;
        same("changes that another client sees", found, count)?;
    }
    Ok(())
}

pub(super) async fn scope<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    items(&mut client, 15_000, 1).await?;
    items(&mut client, 15_001, 1).await?;
    let is_wanted = |failure: &Failure| matches!(failure, Failure::Refused(_));
    let read = client.run_in::<Item, _>(&15_000, async |tx| tx.get::<Item>(&(15_001, 0)).await);
    fails("an entity of another group read", read.await, is_wanted)?;
    let deleted =
        client.run_in::<Item, _>(&15_000, async |tx| tx.delete::<Item>(&(15_001, 0)).await);
    fails(
        "an entity of another group deleted",
        deleted.await,
        is_wanted,
    )?;
    let early = client.run(Scope::New, async |tx| tx.get::<Item>(&(15_000, 0)).await);
    fails(
        "an entity read before the group is known",
        early.await,
        is_wanted,
    )?;
    let outer = client.run_in::<Lot, _>(&(15_000, 1), async |tx| {
        tx.by_index::<Offer>("bidder", &[Value::Int(1)]).await
    });
    fails("an index outside of the group read", outer.await, is_wanted)?;
    let lot = client.run(Scope::New, async |tx| {
        let mut lot = Lot {
            seller: 15_000,
            lot_no: 0,
            price: 1.0,
        };
        tx.create(&mut lot).await?;
        let mut offer = Offer {
            seller: 15_000,
            lot_no: lot.lot_no,
            offer_no: 0,
            amount: 1.0,
            bidder: 15_000,
            token: None,
        };
        tx.create(&mut offer).await?;
        tx.get::<Lot>(&(15_000, lot.lot_no)).await
    });
    let price = lot.await?.map(|lot| lot.price);
    same(
        "a lot in the transaction that created its group",
        price,
        Some(1.0),
    )
}

pub(super) async fn several_groups<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    for owner in [16_000, 16_001] {
        items(&mut client, owner, 1).await?;
    }
    let has_several = client.abilities().several_groups;
    let moved = client.run(Scope::Several, async |tx| {
        for (owner, by) in [(16_000, -1), (16_001, 1)] {
            let found = tx.get::<Item>(&(owner, 0)).await?;
            let mut item = found.ok_or_else(|| Failure::Missing("item".into()))?;
            item.count += by;
            tx.update(&item).await?;
        }
        Ok(())
    });
    let moved = moved.await;
    let wanted = match has_several {
        true => {
            moved?;
            [-1, 1]
        }
        false => {
            let is_wanted = |failure: &Failure| matches!(failure, Failure::Refused(_));
            fails("several groups on a store that has none", moved, is_wanted)?;
            [0, 0]
        }
    };
    let counts = [
        count_of(&mut client, 16_000, 0).await?,
        count_of(&mut client, 16_001, 0).await?,
    ];
    same("counts of items in two groups", counts, wanted)
}
