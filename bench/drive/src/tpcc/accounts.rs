//! Loads the accounts of Dike's transactions, also into a database that holds TPC-C already.

use super::LoadOptions;
use super::load::{Book, DUPLICATE_TABLE, load_chunk};
use links::error::{DriveError, While};
use links::homes::Homes;
use links::link::{Link, LinkError};
use links::server::Server;
use links::url::Target;
use links::view::Progress;
use workload::dialect::Dialect;
use workload::dike::further::tables;

/// Creates and fills the accounts, if they are asked for, and goes on where an earlier load
/// stopped. More than [`tables::WAREHOUSES_MAX`] warehouses have none.
pub(super) fn load(
    (mut link, target): (Link, &Target),
    server: &Server,
    book: &Book,
    options: &LoadOptions,
    progress: &mut dyn Progress,
) -> Result<(), DriveError> {
    let warehouses = options.scale.warehouses;
    if !options.accounts || book.has_accounts() || warehouses > tables::WAREHOUSES_MAX {
        link.close();
        return Ok(());
    }
    progress.stage("loading accounts");
    for statement in tables::create(server.is_trellis, !options.without.binding) {
        match link.command(&server.dialect.table(&statement)) {
            Err(LinkError::Server(error)) if error.sqlstate == DUPLICATE_TABLE => {}
            result => result.during("creating the accounts")?,
        }
    }
    fill(&mut link, (target, server), book, warehouses).during("loading the accounts")?;
    if !server.is_trellis {
        let [account, balance] = tables::TABLES;
        let sql = match server.dialect {
            Dialect::Postgres => format!("VACUUM ANALYZE {account}, {balance}"),
            Dialect::MySql => format!("ANALYZE TABLE {account}, {balance}"),
        };
        link.command(&sql).during("collecting statistics")?;
    }
    let step = tables::STEP;
    link.command(&format!(
        "INSERT INTO tpcc_load (step, value) VALUES ('{step}', '{warehouses}')"
    ))
    .during("finishing the load of the accounts")?;
    link.close();
    Ok(())
}

/// Each warehouse by way of its home, where the server tells it.
fn fill(
    link: &mut Link,
    (target, server): (&Target, &Server),
    book: &Book,
    warehouses: u32,
) -> Result<(), LinkError> {
    let homes = match server.is_trellis {
        true => Homes::ask(link, target, warehouses)?,
        false => Homes::default(),
    };
    let mut links: Vec<Option<Link>> = target.endpoints.iter().map(|_| None).collect();
    let mut bytes = Vec::new();
    for warehouse in 0..=warehouses {
        let of_all = warehouse == 0;
        let table = tables::TABLES[usize::from(!of_all)];
        let step = format!("{table} {warehouse}");
        if book.has(&step) {
            continue;
        }
        bytes.clear();
        let rows = match of_all {
            true => tables::write_accounts(warehouses, &mut bytes),
            false => tables::write_balances(warehouse, warehouses, &mut bytes),
        };
        let at = homes.of(warehouse).unwrap_or(0);
        let home = match &mut links[at] {
            Some(home) => home,
            none => none.insert(Link::connect(&target.endpoints[at], target, None)?),
        };
        load_chunk(home, (table, &step), &bytes, rows)?;
    }
    links.into_iter().flatten().for_each(Link::close);
    Ok(())
}
