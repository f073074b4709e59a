//! Connections and the clock of a simulated cluster.

use entity::sql::Dialect;
use entity::{Failure, Pace};
use sim::{LinkError, SimCx, SimError, SimLink, is_excusable};
use std::fmt;
use stores::sql::Reach;
use workload::wire::{Isolation, ServerError};

/// Connections to nodes that are drawn anew each time.
pub(crate) struct SimReach(pub(crate) SimCx);

impl fmt::Debug for SimReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a simulated cluster")
    }
}

/// Why a connection was not made.
pub(crate) fn refused(error: &SimError) -> Failure {
    match error {
        SimError::Sql(refused) if !is_excusable(refused.state().as_str()) => {
            Failure::Refused(error.to_string())
        }
        SimError::Sql(_) | SimError::Lost => Failure::Lost(error.to_string()),
    }
}

/// A connection whose reads of one statement take locks, too: its answers are true whatever the
/// clocks say.
pub(crate) async fn connect(cx: &SimCx) -> Result<SimLink, SimError> {
    let settings = [("read_policy", "pessimistic")];
    let conn = cx.connect_with(cx.any_node(), &settings).await?;
    Ok(SimLink::over(conn, cx))
}

impl Reach for SimReach {
    type Link = SimLink;

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn open(&mut self, _: Isolation) -> Result<SimLink, Failure> {
        connect(&self.0).await.map_err(|error| refused(&error))
    }

    async fn is_durable(&self, _: &mut SimLink) -> Result<bool, Failure> {
        Ok(true)
    }

    fn words(error: &LinkError) -> Option<&ServerError> {
        match error {
            LinkError::Server(error) => Some(error),
            LinkError::Lost => None,
        }
    }
}

/// Virtual time.
pub(crate) struct SimPace(pub(crate) SimCx);

impl Pace for SimPace {
    fn now_us(&self) -> u64 {
        self.0.now().0
    }

    async fn sleep_us(&mut self, length_us: u64) {
        self.0.sleep(length_us).await;
    }
}
