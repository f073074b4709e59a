//! How far a store is away: `store.link_ms`, the time of a message one way.
//!
//! | store | what delays |
//! |---|---|
//! | a server | a proxy of this process ([`links::delay`]), which every connection passes |
//! | memory | after each call as long as its round trips would have taken |
//!
//! Only the phases in which users ask have the delay: loading and checking do not.

use super::Phase;
use crate::document::Problem;
use entity::{
    Abilities, EntityDb, EntityType, Failure, Outcome, Range, Row, Scope, Stamp, Value as Cell,
};
use links::delay::DelayProxy;
use links::url::Target;
use serde_json::{Value, json};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest link, in milliseconds.
pub(crate) const LINK_MS_MAX: f64 = 1_000.0;
/// Connections that pass the proxy; it has room for a few more, which load and describe.
const CONNECTIONS_MAX: u64 = 1_000;
const KEY: &str = "store.link_ms";

/// The way to a store.
#[derive(Debug)]
pub struct Distance {
    link: Duration,
    /// Of the store, or of the proxy before it.
    url: String,
    proxy: Option<DelayProxy>,
    /// What a round trip of a store in memory takes now, in microseconds.
    trip_us: Arc<AtomicU64>,
}

impl Distance {
    /// The way to the store of a URL for so many threads.
    ///
    /// # Errors
    /// More connections than the proxy has room for, or a server without an address.
    pub(crate) fn to(url: &str, link: Duration, threads: u64) -> Result<Distance, Problem> {
        let mut distance = Distance {
            link,
            url: url.to_string(),
            proxy: None,
            trip_us: Arc::default(),
        };
        if link.is_zero() || url.starts_with("memory:") {
            return Ok(distance);
        }
        let wrong = |text: String| Problem::new("store.url", text);
        let target = Target::parse(url).map_err(|error| wrong(error.to_string()))?;
        if threads.saturating_mul(target.endpoints.len() as u64) > CONNECTIONS_MAX {
            let text = format!(
                "links have room for {CONNECTIONS_MAX} connections, and each of {threads} threads \
                 has one to each server: take fewer threads, or leave the key out"
            );
            return Err(Problem::new(KEY, text));
        }
        let address = |host: &str, port: u16| -> Result<SocketAddr, Problem> {
            let found = (host, port).to_socket_addrs();
            let mut found = found.map_err(|error| wrong(format!("{host}: {error}")))?;
            found
                .next()
                .ok_or_else(|| wrong(format!("{host} has no address")))
        };
        let targets = target.endpoints.iter();
        let targets: Result<Vec<SocketAddr>, Problem> =
            targets.map(|it| address(&it.host, it.port)).collect();
        let proxy = DelayProxy::start(&targets?, Duration::ZERO);
        let proxy = proxy.map_err(|error| Problem::new(KEY, error.to_string()))?;
        let hosts: Vec<String> = proxy.addresses().iter().map(ToString::to_string).collect();
        distance.url = with_hosts(url, &hosts.join(","));
        distance.proxy = Some(proxy);
        Ok(distance)
    }

    /// What to connect to.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What a round trip of a store in memory takes.
    pub(crate) fn trip_us(&self) -> Arc<AtomicU64> {
        self.trip_us.clone()
    }

    /// Takes note of what the run does now.
    pub(crate) fn enter(&self, phase: Phase) {
        let link = match phase {
            Phase::WarmUp | Phase::Measure => self.link,
            Phase::Load | Phase::Check => Duration::ZERO,
        };
        let trip_us = 2 * link.as_micros() as u64;
        self.trip_us.store(trip_us, Ordering::Relaxed);
        if let Some(proxy) = &self.proxy {
            proxy.set_delay(link);
        }
    }

    /// What a report says of it; null without a link.
    pub(crate) fn describe(&self) -> Value {
        if self.link.is_zero() {
            return Value::Null;
        }
        let counts = self.proxy.as_ref().map(DelayProxy::counts);
        let late = counts.map(|it| it.late_ns as f64 / 1e6 / it.reads.max(1) as f64);
        json!({
            "one_way_ms": self.link.as_secs_f64() * 1e3,
            "late_ms_mean": late,
        })
    }
}

/// The URL with other hosts.
fn with_hosts(url: &str, hosts: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((account, _)) => format!("{scheme}://{account}@{hosts}{after}"),
        None => format!("{scheme}://{hosts}{after}"),
    }
}

/// A connection whose round trips take time.
#[derive(Debug)]
pub struct Far<D> {
    db: D,
    /// 0 wherever something else delays, and while nothing shall.
    trip_us: Arc<AtomicU64>,
}

impl<D: EntityDb> Far<D> {
    pub(crate) fn new(db: D, trip_us: Arc<AtomicU64>) -> Far<D> {
        Far { db, trip_us }
    }

    /// Waits for the round trips since there were `before`.
    fn pass(&self, before: u64) {
        let trip_us = self.trip_us.load(Ordering::Relaxed);
        if trip_us > 0 {
            let trips = self.db.round_trips().saturating_sub(before);
            std::thread::sleep(Duration::from_micros(trips * trip_us));
        }
    }
}

/// A call, and the time that it takes.
macro_rules! far {
    ($far:ident.$call:ident($($argument:expr),*)) => {{
        let before = $far.db.round_trips();
        let result = $far.db.$call($($argument),*).await;
        $far.pass(before);
        result
    }};
}

impl<D: EntityDb> EntityDb for Far<D> {
    fn abilities(&self) -> Abilities {
        self.db.abilities()
    }

    async fn begin(&mut self, scope: Scope<'_>, stamp: Stamp) -> Result<(), Failure> {
        far!(self.begin(scope, stamp))
    }

    async fn get(&mut self, kind: &EntityType, id: &[Cell]) -> Result<Option<Row>, Failure> {
        far!(self.get(kind, id))
    }

    async fn create(&mut self, kind: &EntityType, row: &mut [Cell]) -> Result<(), Failure> {
        far!(self.create(kind, row))
    }

    async fn update(&mut self, kind: &EntityType, row: &[Cell]) -> Result<(), Failure> {
        far!(self.update(kind, row))
    }

    async fn delete(&mut self, kind: &EntityType, id: &[Cell]) -> Result<(), Failure> {
        far!(self.delete(kind, id))
    }

    async fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Cell],
    ) -> Result<Vec<Row>, Failure> {
        far!(self.by_index(kind, index, key))
    }

    async fn range(&mut self, kind: &EntityType, range: Range<'_>) -> Result<Vec<Row>, Failure> {
        far!(self.range(kind, range))
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        far!(self.commit())
    }

    async fn abort(&mut self) -> Result<(), Failure> {
        far!(self.abort())
    }

    async fn outcome(&mut self, stamp: Stamp) -> Result<Outcome, Failure> {
        far!(self.outcome(stamp))
    }

    fn round_trips(&self) -> u64 {
        self.db.round_trips()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hosts_of_a_url_change() {
        for (url, wanted) in [
            ("redis://a:1,b:2", "redis://H"),
            ("mysql://u:p@a/db", "mysql://u:p@H/db"),
            (
                "postgres://u@a,b/db?sslmode=disable",
                "postgres://u@H/db?sslmode=disable",
            ),
            ("etcd://a?x=1", "etcd://H?x=1"),
        ] {
            assert_eq!(with_hosts(url, "H"), wanted);
        }
    }

    #[test]
    fn a_proxy_has_room_or_refuses() {
        let link = Duration::from_millis(1);
        let refused = Distance::to("redis://127.0.0.1:1,127.0.0.1:2", link, 501);
        assert_eq!(refused.expect_err("no room").path, KEY);
        let near = Distance::to("redis://127.0.0.1:1", Duration::ZERO, 4_000);
        assert_eq!(near.expect("no proxy").url(), "redis://127.0.0.1:1");
        let far = Distance::to("redis://127.0.0.1:1", link, 4).expect("a proxy");
        assert_ne!(far.url(), "redis://127.0.0.1:1");
        assert_eq!(far.describe()["one_way_ms"], 1.0);
    }

    #[test]
    fn memory_is_far_only_while_users_ask() {
        let far = Distance::to("memory:", Duration::from_millis(2), 4).expect("no proxy");
        let trip_us = far.trip_us();
        for (phase, us) in [(Phase::WarmUp, 4_000), (Phase::Check, 0)] {
            far.enter(phase);
            assert_eq!(trip_us.load(Ordering::Relaxed), us);
        }
    }
}
