//! The twelve conditions of a database behind a URL.

use super::load::Book;
use crate::shape::{CheckReport, CheckedCondition};
use links::error::{DriveError, While};
use links::link::{Link, ready};
use links::server::Server;
use links::url::Target;
use links::view::Progress;
use std::time::Instant;
use workload::dialect::Dialect;
use workload::tpcc::check::{self, Ledger};
use workload::tpcc::conditions::{TITLES, Verifier};

/// Checks a loaded database. All reads see one snapshot.
pub(crate) fn check(
    target: &Target,
    progress: &mut dyn Progress,
) -> Result<CheckReport, DriveError> {
    let started = Instant::now();
    let (mut link, server) = Server::reach(target, None)?;
    let content = Book::read(&mut link)?.finished_content()?;
    progress.stage("checking the 12 consistency conditions");
    if server.dialect == Dialect::MySql {
        // At weaker levels the server ignores that a snapshot is asked for.
        link.command("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            .during("asking for a snapshot")?;
    }
    let begin = match (server.is_trellis, server.dialect) {
        (true, _) => "BEGIN READ ONLY",
        (false, Dialect::Postgres) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        (false, Dialect::MySql) => "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    };
    let checked = ready(check::check(&mut link, content.scale, begin));
    let verifier = checked.during("reading for the check")?;
    link.close();
    Ok(report(&verifier, started.elapsed().as_millis() as u64))
}

fn report(verifier: &Verifier, took_ms: u64) -> CheckReport {
    let conditions = verifier.conditions().iter().zip(TITLES).enumerate();
    let checked = conditions.map(|(at, (condition, title))| CheckedCondition {
        number: at + 1,
        clause: format!("3.3.2.{}", at + 1),
        title,
        compared: condition.compared,
        failures: condition.failures,
        counterexample: condition.counterexample.clone(),
    });
    CheckReport {
        conditions: checked.collect(),
        took_ms,
    }
}

pub(super) fn read_ledger(target: &Target) -> Result<Ledger, DriveError> {
    let mut link = Link::connect_any(target, None).during("connecting")?;
    let ledger = ready(check::read_ledger(&mut link)).during("reading the ledger")?;
    link.close();
    Ok(ledger)
}
