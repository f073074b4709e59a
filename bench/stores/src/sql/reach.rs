//! How a store's connections are made: over the network, or in a simulation.

use super::says::{dialect_of, failure_of, is_durable, is_passing};
use entity::Failure;
use entity::sql::Dialect;
use links::link::{Link, LinkError};
use links::server::Server;
use links::url::Target;
use std::fmt::Debug;
use std::time::Duration;
use workload::wire::{Connection, Isolation, ServerError};

/// Makes the connections of one client.
pub trait Reach: Debug {
    /// A connection.
    type Link: Connection + Debug;

    /// The SQL that the server takes.
    fn dialect(&self) -> Dialect;

    /// Opens a connection. Its transactions will begin at this level.
    ///
    /// # Errors
    /// `Lost`: not now. `Refused`: never.
    fn open(&mut self, level: Isolation) -> impl Future<Output = Result<Self::Link, Failure>>;

    /// Whether the server says that a commit is on disk before it is answered.
    ///
    /// # Errors
    /// `Lost`.
    fn is_durable(&self, link: &mut Self::Link) -> impl Future<Output = Result<bool, Failure>>;

    /// The server's own words, where an error of a connection has them.
    fn words(error: &<Self::Link as Connection>::Error) -> Option<&ServerError>;
}

/// What an error of a connection means when nothing was to be committed.
pub(crate) fn failure_of_error<R: Reach>(error: &<R::Link as Connection>::Error) -> Failure {
    match R::words(error) {
        Some(refused) => failure_of(refused, Failure::Lost),
        None => Failure::Lost(error.to_string()),
    }
}

/// Connections over the network, to the first endpoint of a URL that answers.
#[derive(Debug)]
pub struct Network {
    target: Target,
    timeout: Duration,
    /// The endpoint that is tried first.
    endpoint: usize,
    /// What each connection begins with.
    first: Option<String>,
}

impl Network {
    /// Begins with the endpoint of this number. `timeout` bounds every wait.
    pub fn new(target: Target, timeout: Duration, endpoint: usize) -> Network {
        Network {
            target,
            timeout,
            endpoint,
            first: None,
        }
    }

    /// Has each connection begin with a statement.
    pub(crate) fn begin_with(mut self, statement: String) -> Network {
        self.first = Some(statement);
        self
    }

    /// Connects to the endpoint that is tried first, or to the next one that lets somebody in. That
    /// one is tried first then.
    pub(crate) fn connect(&mut self) -> Result<Link, Failure> {
        let count = self.target.endpoints.len();
        let mut result = Err(Failure::Lost(String::from("no endpoint")));
        for _ in 0..count {
            let endpoint = &self.target.endpoints[self.endpoint % count];
            result = match Link::connect(endpoint, &self.target, Some(self.timeout)) {
                Ok(link) => return Ok(link),
                Err(LinkError::Server(error)) if !is_passing(&error) => {
                    Err(Failure::Refused(error.to_string()))
                }
                Err(error) => Err(Failure::Lost(error.to_string())),
            };
            self.endpoint += 1;
        }
        result
    }
}

impl Reach for Network {
    type Link = Link;

    fn dialect(&self) -> Dialect {
        dialect_of(&self.target)
    }

    async fn open(&mut self, level: Isolation) -> Result<Link, Failure> {
        let mut link = self.connect()?;
        let server =
            Server::identify(&mut link).map_err(|error| failure_of_error::<Self>(&error))?;
        let tuned = server.tune(&mut link, Some(level));
        tuned.map_err(|error| failure_of_error::<Self>(&error))?;
        if let Some(first) = &self.first {
            let done = link.command(first);
            done.map_err(|error| failure_of_error::<Self>(&error))?;
        }
        Ok(link)
    }

    async fn is_durable(&self, link: &mut Link) -> Result<bool, Failure> {
        is_durable(link, self.dialect()).await
    }

    fn words(error: &LinkError) -> Option<&ServerError> {
        match error {
            LinkError::Server(error) => Some(error),
            LinkError::Io(..) | LinkError::Tls(_) | LinkError::Protocol(_) => None,
        }
    }
}
