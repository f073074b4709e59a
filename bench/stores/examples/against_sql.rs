//! Entities against hand-written SQL that takes the same rounds, on a server of yours:
//! `cargo run --release -p stores --example against_sql -- URL [ROUNDS [SECONDS]]`.
//!
//! The transaction reads four items of a user, one after the other, and updates all of them. Both
//! forms send the same statements in five rounds. Runs alternate A B B A; the ratio of their rates
//! has an interval. `URL count FORM TRANSACTIONS` runs one form only, for a count of instructions.
#![allow(clippy::print_stdout, reason = "what it is for")]

use entity::{Client, Entity, Failure, NoWait, Policy, Schema};
use links::link::{Link, ready};
use links::server::Server;
use links::url::Target;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use stores::{Db, Options, Store};
use sweeps::compare::compare;
use workload::wire::{self, Isolation, ParamType, Session};

/// Clients at a time, each with users of its own.
const CLIENTS: u64 = 4;
/// Users of a client, and items of a user.
const USERS: i64 = 100;
const ITEMS: i64 = 4;

/// An item of a user.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Item {
    #[id]
    #[group]
    user_id: i64,
    #[id]
    item_no: i64,
    changes: i64,
    content: String,
}

/// Which form runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Sql,
    Entity,
}

type Told<T> = Result<T, Box<dyn Error>>;

fn main() -> Told<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [url, "count", form, transactions] => {
            let form = match form {
                "sql" => Form::Sql,
                "entity" => Form::Entity,
                _ => return Err("count is followed by sql or entity".into()),
            };
            load(url)?;
            let mut work = work(url, form, 0)?;
            (0..transactions.parse()?).try_for_each(&mut work)
        }
        [url] => measure(url, 8, 2.0),
        [url, rounds] => measure(url, rounds.parse()?, 2.0),
        [url, rounds, seconds] => measure(url, rounds.parse()?, seconds.parse()?),
        _ => Err("against_sql URL [ROUNDS [SECONDS]], or URL count FORM TRANSACTIONS".into()),
    }
}

fn store(url: &str) -> Result<Store, Failure> {
    let mut schema = Schema::new();
    schema.add(Item::TYPE).map_err(Failure::Refused)?;
    let options = Options {
        mapping: Some(String::from("tables")),
        ..Options::default()
    };
    Store::open(url, options, Arc::new(schema))
}

fn client(url: &str, number: u64) -> Result<Client<Db, NoWait>, Failure> {
    let db = ready(store(url)?.connect(number))?;
    Ok(Client::new(
        db,
        NoWait::default(),
        Policy::default(),
        number,
        number,
    ))
}

fn load(url: &str) -> Told<()> {
    ready(store(url)?.reset())?;
    let mut client = client(url, 1)?;
    for user_id in 0..USERS * CLIENTS as i64 {
        let filled = client.run_in::<Item, ()>(&user_id, async |tx| {
            for item_no in 0..ITEMS {
                let content = content(0);
                tx.create(&mut Item {
                    user_id,
                    item_no,
                    changes: 0,
                    content,
                })
                .await?;
            }
            Ok(())
        });
        ready(filled)?;
    }
    Ok(())
}

/// A hundred letters.
fn content(number: u64) -> String {
    let letter = char::from(b'a' + (number % 26) as u8);
    std::iter::repeat_n(letter, 100).collect()
}

/// A client's transactions, by their number.
type Work = Box<dyn FnMut(u64) -> Told<()>>;

fn work(url: &str, form: Form, number: u64) -> Told<Work> {
    let user = move |at: u64| number as i64 * USERS + at as i64 % USERS;
    // Names of clients that no other run has.
    let since = std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64;
    let name = (since << 8 | number) >> 1 | 1;
    match form {
        Form::Entity => {
            let mut client = client(url, name)?;
            Ok(Box::new(move |at| {
                Ok(ready(by_entities(&mut client, user(at), at))?)
            }))
        }
        Form::Sql => {
            let mut session = session(url)?;
            Ok(Box::new(move |at| {
                by_sql(&mut session, user(at), (name, at))
            }))
        }
    }
}

async fn by_entities(client: &mut Client<Db, NoWait>, user: i64, at: u64) -> Result<(), Failure> {
    let content = content(at);
    let change = client.run_in::<Item, ()>(&user, async |tx| {
        for number in 0..ITEMS {
            let item: Option<Item> = tx.get(&(user, number)).await?;
            let mut item = item.ok_or(Failure::Stopped("an item is missing"))?;
            item.changes += 1;
            item.content.clone_from(&content);
            tx.update(&item).await?;
        }
        Ok(())
    });
    change.await
}

const BEGIN: usize = 0;
const READ: usize = 1;
const UPDATE: usize = 2;
const STAMP: usize = 3;
const COMMIT: usize = 4;

fn session(url: &str) -> Told<Session<Link>> {
    use ParamType::{BigInt, Text};
    let target = Target::parse(url)?;
    let mut link = Link::connect_any(&target, Some(Duration::from_secs(30)))?;
    Server::identify(&mut link)?.tune(&mut link, Some(Isolation::Serializable))?;
    let statements = [
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", vec![]),
        (
            "SELECT user_id, item_no, changes, content FROM item \
             WHERE user_id = $1 AND item_no = $2",
            vec![BigInt, BigInt],
        ),
        (
            "UPDATE item SET changes = $3, content = $4 WHERE user_id = $1 AND item_no = $2",
            vec![BigInt, BigInt, BigInt, Text],
        ),
        (
            "INSERT INTO entity_stamp (client, sequence) VALUES ($1, $2)",
            vec![BigInt, BigInt],
        ),
        ("COMMIT", vec![]),
    ];
    let statements = statements.map(|(sql, params)| (sql.to_string(), params));
    Ok(ready(Session::open(link, &statements))?)
}

/// The same transaction by hand, again after a conflict.
fn by_sql(session: &mut Session<Link>, user: i64, stamp: (u64, u64)) -> Told<()> {
    loop {
        match ready(attempt(session, user, stamp)) {
            Ok(()) => return Ok(()),
            Err(wire::Failure::Aborted(error)) if error.sqlstate == "40001" => {}
            Err(failure) => return Err(format!("{failure:?}").into()),
        }
    }
}

async fn attempt(
    session: &mut Session<Link>,
    user: i64,
    (name, at): (u64, u64),
) -> Result<(), wire::Failure<links::link::LinkError>> {
    let mut items: Vec<Item> = Vec::with_capacity(ITEMS as usize);
    let new = content(at);
    for number in 0..ITEMS {
        if number == 0 {
            session.bind(BEGIN).send();
        }
        session.bind(READ).big(user).big(number).send();
        session.round().await?;
        let row = usize::from(number == 0);
        let int = |column| session.answers.int(row, 0, column);
        let (Some(user_id), Some(item_no), Some(changes)) = (int(0), int(1), int(2)) else {
            return Err(session.wrong(String::from("an item is missing")).await);
        };
        let mut item = Item {
            user_id,
            item_no,
            changes,
            content: session.answers.text(row, 0, 3).to_string(),
        };
        item.changes += 1;
        item.content.clone_from(&new);
        items.push(item);
    }
    for item in &items {
        let bind = session.bind(UPDATE).big(item.user_id).big(item.item_no);
        bind.big(item.changes).text(&item.content).send();
    }
    session.bind(STAMP).big(name as i64).big(at as i64).send();
    session.bind(COMMIT).send();
    session.commits_block();
    session.round().await?;
    let all = 0..items.len();
    match all.into_iter().all(|at| session.answers.affected(at) == 1) {
        true => Ok(()),
        false => Err(wire::Failure::Wrong(String::from("an item has gone"))),
    }
}

/// Transactions a second of all clients.
fn rate(url: &str, form: Form, seconds: f64) -> Told<f64> {
    let (done, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let began = Instant::now();
    let ended: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let (done, is_over) = (&done, &is_over);
        let one = |number| {
            let run = move || -> Told<()> {
                let mut work = work(url, form, number)?;
                let mut at = 1;
                while !is_over.load(Ordering::Relaxed) {
                    work(at)?;
                    at += 1;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            };
            scope.spawn(move || run().map_err(|error| error.to_string()))
        };
        let clients: Vec<_> = (0..CLIENTS).map(one).collect();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        is_over.store(true, Ordering::Relaxed);
        let ended = clients.into_iter().map(|client| client.join());
        ended
            .map(|ended| ended.expect("a client does not panic"))
            .collect()
    });
    ended.into_iter().collect::<Result<(), String>>()?;
    Ok(done.into_inner() as f64 / began.elapsed().as_secs_f64())
}

fn measure(url: &str, rounds: usize, seconds: f64) -> Told<()> {
    load(url)?;
    for form in [Form::Sql, Form::Entity] {
        rate(url, form, seconds)?;
    }
    let mut found = Vec::new();
    for round in 0..rounds {
        let order = [Form::Sql, Form::Entity, Form::Entity, Form::Sql];
        let mut rates = [0.0; 4];
        for (at, form) in order.into_iter().enumerate() {
            rates[at] = rate(url, form, seconds)?;
        }
        println!("round {}: {rates:.0?} transactions a second", round + 1);
        found.push(rates);
    }
    let found = compare(&found).ok_or("two rounds at least")?;
    println!(
        "entities {:.3} of hand-written SQL, {:.3} to {:.3}",
        found.ratio, found.low, found.high
    );
    Ok(())
}
