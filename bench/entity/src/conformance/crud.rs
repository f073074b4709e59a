//! Single entities: values, generated ids, immutable columns.

use super::kinds::{Item, Lot, Note, Offer};
use super::{Bed, Ended, OthersFirst, POLICY, Shown, client, fails, interleave, same};
use crate::client::Client;
use crate::db::{EntityDb, Failure};
use crate::delay::Delayed;
use crate::policy::NoWait;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;

fn notes() -> Vec<Note> {
    let note = |title: &str, body: Option<&str>, picture: Vec<u8>, weight: Option<f64>| Note {
        title: title.into(),
        folder: "it's \\ a \"folder\"".into(),
        body: body.map(String::from),
        picture,
        is_read: weight.is_some(),
        weight,
    };
    vec![
        note("", None, vec![], None),
        note(" a ", Some(""), vec![0, 255, 39], Some(0.1)),
        note("ü€\u{1F40C}", Some("NULL"), vec![92; 300], Some(-1e300)),
        note("A", Some("%_\n\t;--"), vec![10, 13, 26], Some(0.0)),
        note(
            "a",
            Some(&"long ".repeat(2000)),
            vec![0; 20_000],
            Some(5e-324),
        ),
    ]
}

pub(super) async fn crud<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    for note in &mut notes() {
        client.create(note).await?;
    }
    for note in &mut notes() {
        let id = (note.title.clone(), note.folder.clone());
        let found = client.get::<Note>(&id).await?;
        same("a created entity", found.as_ref(), Some(&*note))?;
        let created = client.create(note).await;
        let is_wanted = |failure: &Failure| matches!(failure, Failure::Exists(_));
        fails("an entity created twice", created, is_wanted)?;
        note.body = note.body.is_none().then(|| "changed".into());
        note.is_read = !note.is_read;
        client.update(note).await?;
        let found = client.get::<Note>(&id).await?;
        same("an updated entity", found.as_ref(), Some(&*note))?;
        client.delete::<Note>(&id).await?;
        let found = client.get::<Note>(&id).await?;
        same("a deleted entity", found.as_ref(), None)?;
        let is_wanted = |failure: &Failure| matches!(failure, Failure::Missing(_));
        fails(
            "a missing entity updated",
            client.update(note).await,
            is_wanted,
        )?;
        let deleted = client.delete::<Note>(&id).await;
        fails("a missing entity deleted", deleted, is_wanted)?;
    }
    let mut long = notes().remove(0);
    long.title = "x".repeat(256);
    fails(
        "an id of 256 bytes",
        client.create(&mut long).await,
        |failure| matches!(failure, Failure::Refused(_)),
    )?;
    long.title.pop();
    client.create(&mut long).await?;
    for number in [i64::MIN, -1, i64::MAX] {
        let mut item = Item {
            owner: number,
            number,
            content: String::new(),
            count: number,
        };
        client.create(&mut item).await?;
        let found = client.get::<Item>(&(number, number)).await?;
        same("a number at its end", found, Some(item))?;
    }
    Ok(())
}

pub(super) async fn generated_keys<B: Bed>(bed: &mut B) -> Shown {
    const CLIENTS: usize = 4;
    const EACH: usize = 6;
    let mut first = client(bed).await?;
    let mut lot = Lot {
        seller: 2_000,
        lot_no: 0,
        price: 0.0,
    };
    first.create(&mut lot).await?;
    let lot_no = lot.lot_no;
    let mut futures = Vec::new();
    for _ in 0..CLIENTS {
        let (db, name) = (bed.open().await?, bed.client());
        let made = create_many(db, name, lot_no, EACH);
        futures.push(Box::pin(made) as Pin<Box<dyn Future<Output = _>>>);
    }
    let results = interleave(11, futures).await;
    let (mut lots, mut offers) = (vec![lot_no], Vec::new());
    for result in results {
        let (of_lots, of_offers) = result?;
        lots.extend(of_lots);
        offers.extend(of_offers);
    }
    for (what, mut ids, count) in [
        ("lots of a seller", lots, CLIENTS * EACH + 1),
        ("offers for a lot", offers, CLIENTS * EACH),
    ] {
        ids.sort_unstable();
        ids.dedup();
        same(
            &format!("different generated ids of {what}"),
            ids.len(),
            count,
        )?;
        if ids.first().is_some_and(|&id| id < 1) {
            return Err(Ended::Failed(format!(
                "a generated id of {what} is below 1"
            )));
        }
    }
    let mut set = Lot {
        lot_no: 77,
        ..lot.clone()
    };
    let created = first.create(&mut set).await;
    fails(
        "a generated id that the client has set",
        created,
        |failure| matches!(failure, Failure::Refused(_)),
    )
}

async fn create_many<D: EntityDb>(
    db: D,
    name: u64,
    lot_no: i64,
    count: usize,
) -> Shown<(Vec<i64>, Vec<i64>)> {
    let db = Delayed::new(db, OthersFirst, 0);
    let mut client = Client::new(db, NoWait::default(), POLICY, name, name);
    let (mut lots, mut offers) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut lot = Lot {
            seller: 2_000,
            lot_no: 0,
            price: 0.0,
        };
        client.create(&mut lot).await?;
        lots.push(lot.lot_no);
        let mut offer = Offer {
            seller: 2_000,
            lot_no,
            offer_no: 0,
            amount: 1.0,
            bidder: 2_000,
            token: None,
        };
        client.create(&mut offer).await?;
        offers.push(offer.offer_no);
    }
    Ok((lots, offers))
}

pub(super) async fn immutable<B: Bed>(bed: &mut B) -> Shown {
    let mut client = client(bed).await?;
    let mut lot = Lot {
        seller: 12_000,
        lot_no: 0,
        price: 0.0,
    };
    client.create(&mut lot).await?;
    let mut offer = Offer {
        seller: 12_000,
        lot_no: lot.lot_no,
        offer_no: 0,
        amount: 1.0,
        bidder: 12_001,
        token: Some(vec![1, 2]),
    };
    client.create(&mut offer).await?;
    let changes: [fn(&mut Offer); 3] = [
        |offer| offer.bidder += 1,
        |offer| offer.token = None,
        |offer| offer.token = Some(vec![1, 3]),
    ];
    for change in changes {
        let mut changed = offer.clone();
        change(&mut changed);
        changed.amount = 9.0;
        let updated = client.update(&changed).await;
        let is_wanted = |failure: &Failure| matches!(failure, Failure::Refused(_));
        fails("an immutable column changed", updated, is_wanted)?;
    }
    offer.amount = 2.0;
    client.update(&offer).await?;
    let id = (offer.seller, offer.lot_no, offer.offer_no);
    same(
        "a changed amount",
        client.get::<Offer>(&id).await?,
        Some(offer),
    )
}
