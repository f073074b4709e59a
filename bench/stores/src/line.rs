//! The connection of a client to one of the endpoints of a target: made when it is needed, given
//! up when it broke. The next one is to the next endpoint.

use crate::kv::lost;
use entity::Failure;
use links::link::LinkError;
use links::url::{Endpoint, Target};
use std::time::Duration;

/// What an error means if the connection broke, or the server does not know.
pub(crate) type Broken = fn(&LinkError) -> Failure;

/// What is different from protocol to protocol.
pub(crate) trait Wire: Sized {
    /// Connects to an endpoint of the target. `timeout` bounds every wait.
    fn connect(endpoint: &Endpoint, target: &Target, timeout: Duration) -> Result<Self, LinkError>;

    /// What an error means.
    fn failure_of(error: &LinkError, broken: Broken) -> Failure;
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Line<L> {
    pub(crate) target: Target,
    timeout: Duration,
    link: Option<L>,
    /// The endpoint that is asked next, by its place in the URL.
    endpoint: usize,
    /// Requests that travelled and came back.
    pub(crate) round_trips: u64,
}

impl<L: Wire> Line<L> {
    /// Nothing is connected yet. Clients are spread over the endpoints.
    pub(crate) fn new(target: Target, timeout: Duration, client: u64) -> Line<L> {
        let endpoints = target.endpoints.len().max(1) as u64;
        Line {
            target,
            timeout,
            link: None,
            endpoint: (client % endpoints) as usize,
            round_trips: 0,
        }
    }

    /// A connection of its own, to the next endpoint that answers. It waits for `least` at least.
    pub(crate) fn reach(&mut self, least: Duration) -> Result<L, Failure> {
        let (count, timeout) = (self.target.endpoints.len(), self.timeout.max(least));
        let mut first = None;
        for _ in 0..count {
            let endpoint = &self.target.endpoints[self.endpoint % count];
            match L::connect(endpoint, &self.target, timeout) {
                Ok(link) => return Ok(link),
                Err(error @ LinkError::Server(_)) => return Err(L::failure_of(&error, lost)),
                Err(error) => first = first.or(Some(lost(&error))),
            }
            self.endpoint += 1;
        }
        Err(first.unwrap_or_else(|| Failure::Lost(String::from("no endpoint"))))
    }

    /// The connection; made, if there is none.
    pub(crate) fn link(&mut self) -> Result<&mut L, Failure> {
        if self.link.is_none() {
            self.link = Some(self.reach(Duration::ZERO)?);
        }
        let gone = || Failure::Lost(String::from("no connection"));
        self.link.as_mut().ok_or_else(gone)
    }

    /// Whether there is a connection.
    pub(crate) fn is_open(&self) -> bool {
        self.link.is_some()
    }

    /// Gives the connection up.
    pub(crate) fn close(&mut self) {
        self.link = None;
    }

    /// What an answer is to who has asked. A connection that is of no more use is given up.
    pub(crate) fn answered<T>(
        &mut self,
        answer: Result<T, LinkError>,
        broken: Broken,
    ) -> Result<T, Failure> {
        self.round_trips += 1;
        answer.map_err(|error| {
            if !matches!(error, LinkError::Server(_)) {
                self.close();
                self.endpoint += 1;
            }
            L::failure_of(&error, broken)
        })
    }
}
