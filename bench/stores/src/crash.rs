//! A load under which a server is killed: no acknowledged update may be lost, and what became of
//! each commit without an answer must be found out.
//!
//! Every client counts up an entity of its own and one that all share, in one transaction. So what
//! each client was told is in the store to the unit, and a torn group shows in the sum.

use crate::{Clock, Db, Options, Store};
use entity::{BackOff, Client, Entity, Failure, Policy, Schema, Shape, Tally};
use links::link::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Clients, each with a thread.
pub const CLIENTS: i64 = 4;
/// How often the server is killed.
const KILLS: u32 = 2;
/// How long clients work at least before the server is killed, and after it runs again.
const WORK: Duration = Duration::from_millis(700);
/// Updates that are acknowledged in such a time at least: where a disk stands still, it is longer.
const UPDATES: i64 = 2 * CLIENTS;
/// How long a client tries: some servers take a minute to find out what they have kept.
const PATIENCE_US: u64 = 180_000_000;
/// How long a client waits when nobody answers.
const AGAIN: Duration = Duration::from_millis(10);
/// What an update says when its entity is not there.
const GONE: &str = "it has gone";

/// What one client has done.
#[derive(Clone, Debug, PartialEq, Entity)]
struct Own {
    #[id]
    #[group]
    all: i64,
    #[id]
    client: i64,
    count: i64,
}

/// What all have done: an entity of the same group.
#[derive(Clone, Debug, PartialEq, Entity)]
#[entity(parent = Own)]
struct Sum {
    #[id]
    #[group]
    all: i64,
    #[id]
    number: i64,
    count: i64,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aftermath {
    /// Updates that were acknowledged, by client.
    pub acknowledged: Vec<i64>,
    /// The counts that are there, by client.
    pub counts: Vec<i64>,
    /// The sum that is there.
    pub sum: i64,
    /// Commits whose answer was lost, and of these, those that were resolved.
    pub unknown: u64,
    /// See `unknown`.
    pub resolved: u64,
}

impl Aftermath {
    /// What contradicts that the store is durable, in sentences.
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        if self.acknowledged != self.counts {
            findings.push(format!(
                "acknowledged were {:?} updates, and {:?} are there",
                self.acknowledged, self.counts
            ));
        }
        let counts: i64 = self.counts.iter().sum();
        if self.sum != counts {
            let sum = self.sum;
            findings.push(format!(
                "a group is torn: {counts} counts, and {sum} in all"
            ));
        }
        if self.unknown != self.resolved {
            let (unknown, resolved) = (self.unknown, self.resolved);
            findings.push(format!(
                "{resolved} of {unknown} unknown outcomes were resolved"
            ));
        }
        if self.sum <= CLIENTS {
            findings.push(format!("only {} updates", self.sum));
        }
        findings
    }
}

/// Loads a store, lets clients work and `kill` the server twice meanwhile (it must run again when
/// that returns), and reads what is there then.
///
/// # Errors
/// The store cannot be reached before or after, or a client was told what it must not be told.
pub fn under_load(
    url: &str,
    mapping: Option<&str>,
    mut kill: impl FnMut(),
) -> Result<Aftermath, Failure> {
    let store = open(url, mapping)?;
    load(&store)?;
    let course = Course::default();
    let done: Vec<Result<(i64, Tally), Failure>> = std::thread::scope(|scope| {
        let (store, course) = (&store, &course);
        let spawn = |number| scope.spawn(move || work(store, number, course));
        let clients: Vec<_> = (0..CLIENTS).map(spawn).collect();
        for _ in 0..KILLS {
            course.wait(&clients);
            kill();
        }
        course.wait(&clients);
        course.is_over.store(true, Ordering::Relaxed);
        let done = clients.into_iter().map(|client| client.join());
        done.map(|done| done.expect("a client does not panic"))
            .collect()
    });
    let mut reader = client(&store, 2)?;
    let mut aftermath = Aftermath {
        acknowledged: Vec::new(),
        counts: Vec::new(),
        sum: 0,
        unknown: 0,
        resolved: 0,
    };
    for (number, done) in done.into_iter().enumerate() {
        let (acknowledged, tally) = done?;
        let own: Option<Own> = ready(reader.get(&(0, number as i64)))?;
        aftermath.acknowledged.push(acknowledged);
        aftermath.counts.push(own.map_or(0, |own| own.count));
        aftermath.unknown += tally.unknown;
        aftermath.resolved += tally.found_committed + tally.found_not_committed;
    }
    let sum: Option<Sum> = ready(reader.get(&(0, 1)))?;
    aftermath.sum = sum.map_or(0, |sum| sum.count);
    Ok(aftermath)
}

/// What the clients and who waits for them tell each other.
#[derive(Default)]
struct Course {
    is_over: AtomicBool,
    /// Updates of all clients.
    acknowledged: AtomicI64,
}

impl Course {
    /// Waits until enough has been done, for as long as a client may try. Clients that have ended
    /// are not waited for.
    fn wait<T>(&self, clients: &[ScopedJoinHandle<'_, T>]) {
        let enough = self.acknowledged.load(Ordering::Relaxed) + UPDATES;
        let began = Instant::now();
        loop {
            std::thread::sleep(WORK);
            if self.acknowledged.load(Ordering::Relaxed) >= enough
                || clients.iter().all(ScopedJoinHandle::is_finished)
                || began.elapsed() >= Duration::from_micros(PATIENCE_US)
            {
                return;
            }
        }
    }
}

fn open(url: &str, mapping: Option<&str>) -> Result<Store, Failure> {
    let mut schema = Schema::new();
    for kind in [Own::TYPE, Sum::TYPE] {
        schema.add(kind).expect("the types fit together");
    }
    let options = Options {
        mapping: mapping.map(String::from),
        timeout: Duration::from_secs(5),
        ..Options::default()
    };
    Store::open(url, options, Arc::new(schema))
}

fn load(store: &Store) -> Result<(), Failure> {
    ready(store.reset())?;
    let mut loader = client(store, 1)?;
    for client in 0..CLIENTS {
        let mut own = Own {
            all: 0,
            client,
            count: 0,
        };
        ready(loader.create(&mut own))?;
    }
    let mut sum = Sum {
        all: 0,
        number: 1,
        count: 0,
    };
    ready(loader.create(&mut sum))
}

fn client(store: &Store, number: u64) -> Result<Client<Db, Clock>, Failure> {
    let policy = Policy {
        attempts: 20_000,
        total_us: PATIENCE_US,
        back_off: BackOff {
            shape: Shape::Constant,
            base_us: 10_000,
            cap_us: 10_000,
            jitter_percent: 100,
        },
    };
    let db = ready(store.connect(number))?;
    Ok(Client::new(db, Clock::default(), policy, number, number))
}

/// One update: of a client's own count and of the sum.
async fn update(client: &mut Client<Db, Clock>, number: i64) -> Result<(), Failure> {
    let change = client.run_in::<Own, ()>(&0, async |tx| {
        let missing = || Failure::Refused(GONE.to_string());
        let mut own: Own = tx.get(&(0, number)).await?.ok_or_else(missing)?;
        let mut sum: Sum = tx.get(&(0, 1)).await?.ok_or_else(missing)?;
        own.count += 1;
        sum.count += 1;
        tx.update(&own).await?;
        tx.update(&sum).await
    });
    change.await
}

/// The life of a client: acknowledged updates, and what its transactions came to.
fn work(store: &Store, number: i64, course: &Course) -> Result<(i64, Tally), Failure> {
    let mut client = client(store, 10 + number as u64)?;
    let mut acknowledged = 0;
    while !course.is_over.load(Ordering::Relaxed) {
        match ready(update(&mut client, number)) {
            Ok(()) => {
                acknowledged += 1;
                course.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            // Nothing has happened, and the server is not there.
            Err(Failure::Lost(_)) => std::thread::sleep(AGAIN),
            // A server that has lost everything: the counts will tell.
            Err(Failure::Refused(text)) if text == GONE => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok((acknowledged, client.tally()))
}
