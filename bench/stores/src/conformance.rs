//! The conformance suite of entities on a store.

use crate::{Db, Description, Options, Store};
use entity::conformance::{Bed, Check, Verdict, schema};
use entity::memory::Loss;
use entity::{Abilities, EntityDb, EntityType, Failure, Outcome, Range, Row, Scope, Stamp, Value};
use links::link::ready;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Verdicts of checks, each behind its name.
pub type Verdicts = Vec<(&'static str, Verdict)>;

/// Empties the store of a URL and runs all checks on it; see [`run`].
///
/// # Errors
/// It cannot be reached, or cannot do this mapping.
pub fn judge(
    url: &str,
    options: Options,
    is_optimistic: bool,
) -> Result<(Description, Verdicts), Failure> {
    let store = Store::open(url, options, Arc::new(schema()))?;
    ready(store.reset())?;
    let description = ready(store.describe())?;
    Ok((description, run(&store, is_optimistic)))
}

/// Runs all checks on a store, which has the types of [`entity::conformance::schema`], and is
/// empty. Answers to commits are lost at the client. `is_optimistic`: no transaction waits for
/// another one; else checks that would need two threads are skipped.
///
/// Every verdict is behind the name of its check.
pub fn run(store: &Store, is_optimistic: bool) -> Verdicts {
    let mut bed = Tested {
        store: store.clone(),
        clients: 0,
        is_optimistic,
    };
    let mut verdicts = Vec::new();
    for check in Check::ALL {
        verdicts.push((check.name(), done(check.run(&mut bed))));
    }
    verdicts
}

/// A connection that may lose the answer to its next commit, or the commit itself.
struct Lossy {
    db: Db,
    loss: Option<Loss>,
    has_written: bool,
}

impl EntityDb for Lossy {
    fn abilities(&self) -> Abilities {
        self.db.abilities()
    }

    async fn begin(&mut self, scope: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        self.has_written = false;
        self.db.begin(scope, stamp).await
    }

    async fn get(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        self.db.get(kind, id).await
    }

    async fn create(&mut self, kind: &EntityType, row: &mut [Value]) -> Result<(), Failure> {
        self.has_written = true;
        self.db.create(kind, row).await
    }

    async fn update(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        self.has_written = true;
        self.db.update(kind, row).await
    }

    async fn delete(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        self.has_written = true;
        self.db.delete(kind, id).await
    }

    async fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.db.by_index(kind, index, key).await
    }

    async fn range(&mut self, kind: &EntityType, range: Range<'_>) -> Result<Vec<Row>, Failure> {
        self.db.range(kind, range).await
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        let loss = self.loss.take_if(|_| self.has_written);
        let lost = |what: &str| Err(Failure::Unknown(format!("the {what} was lost")));
        match loss {
            None => self.db.commit().await,
            Some(Loss::OfAnswer) => {
                self.db.commit().await?;
                lost("answer")
            }
            Some(Loss::OfRequest) => {
                self.db.abort().await?;
                lost("request")
            }
        }
    }

    async fn abort(&mut self) -> Result<(), Failure> {
        self.db.abort().await
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        self.db.outcome(stamp).await
    }
}

/// A store under test.
struct Tested {
    store: Store,
    clients: u64,
    is_optimistic: bool,
}

impl Bed for Tested {
    type Db = Lossy;

    async fn open(&mut self) -> Result<Lossy, Failure> {
        let number = self.client();
        Ok(Lossy {
            db: self.store.connect(number).await?,
            loss: None,
            has_written: false,
        })
    }

    fn client(&mut self) -> u64 {
        self.clients += 1;
        self.clients
    }

    fn lose_next(&mut self, db: &mut Lossy, loss: Loss) -> bool {
        // Some know only of what they have seen themselves: they lose it where it happens.
        if !db.db.lose_next(loss) {
            db.loss = Some(loss);
        }
        true
    }

    fn is_optimistic(&self) -> bool {
        self.is_optimistic
    }
}

/// Polls until it is done: checks give way to each other between operations.
fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
    }
}
