//! Ranges of ids.

use super::kinds::{Item, Lot, Note};
use super::{Bed, Checked, Shown, client, fails, same};
use crate::db::{EntityDb, Failure, Range};
use crate::value::Value;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Bounds, the limit, and the numbers that are found.
type Case<'a> = (Option<i64>, Option<i64>, usize, &'a [i64]);

pub(super) async fn range<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    let numbers = [i64::MIN, -300, -1, 0, 1, 2, 255, 256, i64::MAX];
    for owner in [13_000, 13_001] {
        for &number in numbers.iter().rev() {
            let mut item = Item {
                owner,
                number,
                content: String::new(),
                count: 0,
            };
            client.create(&mut item).await?;
        }
    }
    let prefix = [Value::Int(13_000)];
    let cases: [Case<'_>; 7] = [
        (None, None, 100, &numbers),
        (None, None, 2, &numbers[..2]),
        (Some(-1), None, 3, &[-1, 0, 1]),
        (None, Some(0), 100, &[i64::MIN, -300, -1]),
        (Some(2), Some(256), 100, &[2, 255]),
        (Some(3), Some(3), 100, &[]),
        (Some(5), Some(-5), 100, &[]),
    ];
    for (from, to, limit, wanted) in cases {
        let (from, to) = (from.map(Value::Int), to.map(Value::Int));
        let range = Range {
            prefix: &prefix,
            from: from.as_ref(),
            to: to.as_ref(),
            limit,
        };
        let found = client.range::<Item>(range).await?;
        let found: Vec<i64> = found.iter().map(|item| item.number).collect();
        same("numbers in a range", found, wanted.to_vec())?;
    }
    let changed = client.run_in::<Item, _>(&13_000, async |tx| {
        tx.delete::<Item>(&(13_000, 0)).await?;
        let range = Range {
            prefix: &prefix,
            from: Some(&Value::Int(-1)),
            to: None,
            limit: 2,
        };
        tx.range::<Item>(range).await
    });
    let changed: Vec<i64> = changed.await?.iter().map(|item| item.number).collect();
    same(
        "numbers after a deletion in the transaction",
        changed,
        vec![-1, 1],
    )?;
    refused(&mut client).await
}

/// Ranges over the groups of [`Lot`]s and [`Item`]s, whose first ids are their groups'.
async fn over_groups<D: EntityDb>(client: &mut Checked<D>) -> Shown {
    let (first, second) = (Value::Int(13_000), Value::Int(13_002));
    let all = Range {
        prefix: &[],
        from: Some(&first),
        to: Some(&second),
        limit: 100,
    };
    let numbers = [i64::MIN, -300, -1, 0, 1, 2, 255, 256, i64::MAX];
    let mut wanted: Vec<(i64, i64)> = Vec::new();
    wanted.extend(numbers.iter().map(|number| (13_000, *number)));
    wanted.extend(numbers.iter().map(|number| (13_001, *number)));
    // What a transaction before has deleted.
    wanted.retain(|id| *id != (13_000, 0));
    for limit in [100, 17, 9, 8, 1] {
        let found = client.range::<Item>(Range { limit, ..all }).await?;
        let found: Vec<_> = found.iter().map(|it| (it.owner, it.number)).collect();
        let wanted = wanted.iter().copied().take(limit).collect();
        same("items in a range over groups", found, wanted)?;
    }
    for (seller, amounts) in [(13_010, 3), (13_011, 2), (13_009, 1)] {
        for amount in 0..amounts {
            let mut lot = Lot {
                seller,
                lot_no: 0,
                price: f64::from(amount),
            };
            client.create(&mut lot).await?;
        }
    }
    let prefix = [Value::Int(13_010)];
    let of_one = Range {
        prefix: &prefix,
        from: None,
        to: None,
        limit: 100,
    };
    let found = client.range::<Lot>(of_one).await?;
    let is_ordered = found.is_sorted_by_key(|lot| lot.lot_no);
    let sum: f64 = found.iter().map(|lot| lot.price).sum();
    let found = (found.len(), is_ordered, sum);
    same(
        "lots of one seller, ordered, and prices",
        found,
        (3, true, 3.0),
    )?;
    let empty = Range {
        from: Some(&second),
        to: Some(&first),
        ..all
    };
    let found = client.range::<Item>(empty).await?;
    same("items in an empty range over groups", found.len(), 0)
}

/// Ranges that no store takes, or not this one.
async fn refused<D: EntityDb>(client: &mut Checked<D>) -> Shown {
    let prefix = [Value::Int(13_000)];
    let is_wanted = |failure: &Failure| matches!(failure, Failure::Refused(_));
    let refused = [
        (&prefix[..], Some(Value::from("1")), 5),
        (&prefix[..], None, 0),
        (&[Value::Int(1), Value::Int(2), Value::Int(3)][..], None, 5),
    ];
    for (prefix, from, limit) in refused {
        let range = Range {
            prefix,
            from: from.as_ref(),
            to: None,
            limit,
        };
        fails(
            "a range that cannot be",
            client.range::<Item>(range).await,
            is_wanted,
        )?;
    }
    if client.abilities().ranges_over_groups {
        return over_groups(client).await;
    }
    let range = Range {
        prefix: &[Value::from("a title")],
        from: None,
        to: None,
        limit: 5,
    };
    let found = client.range::<Note>(range).await;
    fails(
        "a range over groups on a store that has none",
        found,
        is_wanted,
    )
}
