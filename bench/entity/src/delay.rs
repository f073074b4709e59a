//! A store that takes longer: a delay before each call, as a network would have it.

use crate::db::{Abilities, EntityDb, Failure, Outcome, Range, Scope, Stamp};
use crate::model::EntityType;
use crate::policy::Pace;
use crate::value::{Row, Value};
use alloc::vec::Vec;

/// A connection with a delay before each of its calls.
#[derive(Debug)]
pub struct Delayed<D, P> {
    db: D,
    pace: P,
    delay_us: u64,
}

impl<D: EntityDb, P: Pace> Delayed<D, P> {
    /// The connection, delayed by so many microseconds a call.
    pub fn new(db: D, pace: P, delay_us: u64) -> Delayed<D, P> {
        Delayed { db, pace, delay_us }
    }

    /// The connection itself.
    pub fn db(&mut self) -> &mut D {
        &mut self.db
    }
}

impl<D: EntityDb, P: Pace> EntityDb for Delayed<D, P> {
    fn abilities(&self) -> Abilities {
        self.db.abilities()
    }

    async fn begin(&mut self, scope: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.begin(scope, stamp).await
    }

    async fn get(&mut self, kind: &EntityType, id: &[Value]) -> Result<Option<Row>, Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.get(kind, id).await
    }

    async fn create(&mut self, kind: &EntityType, row: &mut [Value]) -> Result<(), Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.create(kind, row).await
    }

    async fn update(&mut self, kind: &EntityType, row: &[Value]) -> Result<(), Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.update(kind, row).await
    }

    async fn delete(&mut self, kind: &EntityType, id: &[Value]) -> Result<(), Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.delete(kind, id).await
    }

    async fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> Result<Vec<Row>, Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.by_index(kind, index, key).await
    }

    async fn range(&mut self, kind: &EntityType, range: Range<'_>) -> Result<Vec<Row>, Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.range(kind, range).await
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.commit().await
    }

    async fn abort(&mut self) -> Result<(), Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.abort().await
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        self.pace.sleep_us(self.delay_us).await;
        self.db.outcome(stamp).await
    }

    fn round_trips(&self) -> u64 {
        self.db.round_trips()
    }
}
