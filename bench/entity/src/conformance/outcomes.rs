//! Retries, and answers that are lost.

use super::kinds::Item;
use super::{Bed, Ended, Shown, client, fails, same};
use crate::db::Failure;
use crate::memory::Loss;
use crate::policy::{BackOff, Policy, Shape};
use alloc::format;

fn item(owner: i64) -> Item {
    Item {
        owner,
        number: 0,
        content: "item".into(),
        count: 0,
    }
}

pub(super) async fn retry_budget<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    client.create(&mut item(8_000)).await?;
    let back_off = BackOff {
        shape: Shape::Linear,
        base_us: 1_000,
        cap_us: 1_000_000,
        jitter_percent: 0,
    };
    for (attempts, total_us, wanted) in [(1, u64::MAX, 1), (4, u64::MAX, 4), (100, 6_500, 4)] {
        client.set_policy(Policy {
            attempts,
            total_us,
            back_off,
        });
        let before = client.tally();
        let result = client.run_in::<Item, _>(&8_000, async |tx| {
            let mut item = item(8_000);
            item.count = 1;
            tx.update(&item).await?;
            Err::<(), _>(Failure::conflict("always"))
        });
        let result = result.await;
        fails(
            "a task that always conflicts",
            result,
            Failure::is_retryable,
        )?;
        let after = client.tally();
        let made = after.attempts - before.attempts;
        same("attempts", made, wanted)?;
        same("conflicts", after.conflicts - before.conflicts, wanted)?;
        same("runs given up", after.given_up - before.given_up, 1)?;
        let waited_us = after.wait_us - before.wait_us;
        same(
            "microseconds waited",
            waited_us,
            500 * wanted * (wanted - 1),
        )?;
    }
    let found = client.get::<Item>(&(8_000, 0)).await?;
    same("an item after it", found, Some(item(8_000)))
}

pub(super) async fn lost_answer<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    client.create(&mut item(9_000)).await?;
    let mut count = 0;
    for loss in [Loss::OfAnswer, Loss::OfRequest, Loss::OfAnswer] {
        if !bed.lose_next(client.db(), loss) {
            return Err(Ended::Skipped("nobody can lose its answers"));
        }
        let before = client.tally();
        let counted = client.run_in::<Item, _>(&9_000, async |tx| {
            let found = tx.get::<Item>(&(9_000, 0)).await?;
            let mut item = found.ok_or_else(|| Failure::Missing("item".into()))?;
            item.count += 1;
            tx.update(&item).await
        });
        counted.await?;
        count += 1;
        let after = client.tally();
        same("answers lost", after.unknown - before.unknown, 1)?;
        let found = client.get::<Item>(&(9_000, 0)).await?;
        let what = format!("changes of an item after {loss:?}");
        same(&what, found.map(|item| item.count), Some(count))?;
    }
    Ok(())
}
