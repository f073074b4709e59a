//! The twelve conditions of a database behind a URL, the one of its stock, and those of Dike's
//! accounts where it has them.

use super::load::Book;
use crate::shape::{CheckReport, CheckedCondition};
use links::error::{DriveError, While};
use links::link::{Link, ready};
use links::server::Server;
use links::url::Target;
use links::view::Progress;
use std::time::Instant;
use workload::dialect::Dialect;
use workload::dike::further::tables;
use workload::tpcc::check::{self, Ledger};
use workload::tpcc::conditions::{Condition, TITLES, Verifier};
use workload::tpcc::stock;

/// Checks a loaded database. The twelve conditions are read from one snapshot, the stock and the
/// accounts from others.
pub(crate) fn check(
    target: &Target,
    progress: &mut dyn Progress,
) -> Result<CheckReport, DriveError> {
    let started = Instant::now();
    let (mut link, server) = Server::reach(target, None)?;
    let book = Book::read(&mut link)?;
    let content = book.finished_content()?;
    progress.stage("checking the 12 consistency conditions, and the stock");
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
    let supplied = ready(stock::check(&mut link, content.scale, begin));
    let supplied = supplied.during("reading the stock for the check")?;
    let mut accounts = Vec::new();
    if book.has_accounts() {
        progress.stage("checking the accounts");
        let checked = ready(tables::check(&mut link, content.scale.warehouses, begin));
        accounts.extend(checked.during("reading the accounts for the check")?);
    }
    link.close();
    let mut report = report(&verifier, &supplied, &accounts);
    report.took_ms = started.elapsed().as_millis() as u64;
    Ok(report)
}

fn report(verifier: &Verifier, supplied: &Condition, accounts: &[Condition]) -> CheckReport {
    let twelve = verifier.conditions().iter().zip(TITLES).enumerate();
    let twelve = twelve.map(|(at, (condition, title))| {
        let clause = format!("3.3.2.{}", at + 1);
        (condition, clause, title)
    });
    let stock = (supplied, String::from(stock::CLAUSE), stock::TITLE);
    let accounts = accounts.iter().zip(tables::TITLES).enumerate();
    let accounts = accounts.map(|(at, (condition, title))| {
        let clause = format!("dike {}", at + 1);
        (condition, clause, title)
    });
    let all = twelve.chain([stock]).chain(accounts).zip(1..);
    let checked = all.map(|((condition, clause, title), number)| CheckedCondition {
        number,
        clause,
        title,
        compared: condition.compared,
        failures: condition.failures,
        counterexample: condition.counterexample.clone(),
    });
    CheckReport {
        conditions: checked.collect(),
        took_ms: 0,
    }
}

/// Sums that committed transactions add to, and the transfers between accounts, if there are any.
pub(super) fn read_ledger(
    target: &Target,
    has_accounts: bool,
) -> Result<(Ledger, i64), DriveError> {
    let mut link = Link::connect_any(target, None).during("connecting")?;
    let ledger = ready(check::read_ledger(&mut link)).during("reading the ledger")?;
    let transfers = match has_accounts {
        true => ready(tables::read_transfers(&mut link)).during("reading the transfers")?,
        false => 0,
    };
    link.close();
    Ok((ledger, transfers))
}
