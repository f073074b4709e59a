//! Transactions that only read, sent to replicas (the paper's read-write separation).
//!
//! A terminal's connection is two then: one to the servers that are written, one to a replica. What
//! a replica shows may be old, and is one state: the checks of the transactions hold there, too.

use super::Isolation;
use crate::shape::Connected;
use links::answers::Answers;
use links::error::{DriveError, While};
use links::link::{Link, LinkError};
use links::server::Server;
use links::stream::Stream;
use links::url::{Endpoint, Target};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use versions::Noted;
use workload::dialect::Dialect;
use workload::tpcc::Kind;
use workload::wire::Session;

/// The connections of a terminal.
#[derive(Debug)]
pub struct Sessions {
    /// For all transactions, or for those that write.
    pub(super) main: Session<Noted<Link>>,
    /// For those that only read.
    pub(super) reads: Option<Session<Noted<Link>>>,
    /// Its number among the connections whose history is recorded.
    pub(super) process: u32,
}

impl Sessions {
    /// The one for transactions of this kind.
    pub(super) fn of(&mut self, kind: Kind) -> &mut Session<Noted<Link>> {
        match (&mut self.reads, reads_only(kind)) {
            (Some(reads), true) => reads,
            _ => &mut self.main,
        }
    }
}

impl Connected for Sessions {
    fn stream(&mut self) -> &mut Stream {
        self.main.link().link().stream()
    }

    fn other_stream(&mut self) -> Option<&mut Stream> {
        self.reads
            .as_mut()
            .map(|reads| reads.link().link().stream())
    }
}

/// Whether transactions of a kind begin with READ ONLY.
fn reads_only(kind: Kind) -> bool {
    let all = [
        Kind::OrderStatus,
        Kind::StockLevel,
        Kind::DStockLevel,
        Kind::DSelectBalance,
    ];
    all.contains(&kind)
}

/// The replicas, to which connections go in turn.
#[derive(Debug)]
pub(super) struct Replicas {
    pub(super) target: Target,
    next: AtomicUsize,
}

impl Replicas {
    /// Asks each server whether it is a replica.
    ///
    /// # Errors
    /// One is none, or cannot tell, or the isolation level is not to be had there.
    pub(super) fn new(
        url: &str,
        of: (&mut Link, &Server),
        isolation: Isolation,
        timeout: Duration,
    ) -> Result<Replicas, DriveError> {
        let (link, server) = of;
        let refuse = |text: String| Err(DriveError::Option(format!("--read-urls {text}")));
        let target = Target::parse(url)?.of_sql()?;
        if server.is_trellis {
            return refuse(String::from(
                "names replicas: this server has none that can be read, each node reads its rows \
                 where they are",
            ));
        }
        if server.dialect == Dialect::Postgres && isolation == Isolation::Serializable {
            return refuse(String::from(
                "names replicas, on which PostgreSQL has no SERIALIZABLE: say --isolation \
                 repeatable-read",
            ));
        }
        let own = identity(link, server.dialect).during("asking the server who it is")?;
        for endpoint in &target.endpoints {
            let connected = Link::connect(endpoint, &target, Some(timeout));
            let mut link = connected.during("connecting to a replica")?;
            let there = Server::identify(&mut link).during("asking a replica for its version")?;
            if there.dialect != server.dialect || there.is_trellis {
                return refuse(format!("{endpoint} is {}", there.name()));
            }
            let replicates = is_replica(&mut link, server.dialect);
            if !replicates.during("asking a server whether it is a replica")? {
                return refuse(format!("{endpoint} says that it is no replica"));
            }
            let theirs = identity(&mut link, server.dialect);
            if theirs.during("asking a replica who it is")? != own {
                return refuse(format!("{endpoint} is a replica of another server"));
            }
            link.close();
        }
        Ok(Replicas {
            target,
            next: AtomicUsize::new(0),
        })
    }

    /// The endpoints, from the next one on.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = &Endpoint> {
        let all = &self.target.endpoints;
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        (0..all.len()).map(move |step| &all[(first + step) % all.len()])
    }

    /// For the description of a run.
    pub(super) fn describe(&self) -> String {
        let all = self.target.endpoints.iter().map(ToString::to_string);
        all.collect::<Vec<String>>().join(",")
    }
}

/// What a server and its replicas have in common, where they tell.
fn identity(link: &mut Link, dialect: Dialect) -> Result<String, LinkError> {
    if dialect == Dialect::MySql {
        return Ok(String::new());
    }
    let mut answers = Answers::new();
    link.query(
        "SELECT system_identifier FROM pg_control_system()",
        &mut answers,
    )?;
    Ok(answers.text(0, 0, 0).to_string())
}

fn is_replica(link: &mut Link, dialect: Dialect) -> Result<bool, LinkError> {
    let mut answers = Answers::new();
    match dialect {
        Dialect::Postgres => {
            link.query("SELECT pg_is_in_recovery()", &mut answers)?;
            Ok(answers.text(0, 0, 0) == "t")
        }
        Dialect::MySql => {
            link.query("SHOW REPLICA STATUS", &mut answers)?;
            Ok(answers.rows(0) > 0)
        }
    }
}
