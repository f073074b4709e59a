//! VACUUM and ANALYZE: which tables they treat, and what the client is told of that.
//!
//! Tables of others are passed over with a warning, as in PostgreSQL. All shards look at all tables
//! of the database, whatever is named, unless nothing is left.

use super::Cx;
use super::show::{RowCounts, analyze};
use base::full_name::{own, schema_of};
use base::{SqlError, SqlState, TableId, Tag};
use catalog::objects::is_own_table;
use plan::step::{Upkeep, UpkeepOf};
use txn::OpError;

/// Runs the statement.
pub(super) async fn run(cx: &Cx<'_>, upkeep: &Upkeep) -> Result<Tag, OpError> {
    let mut left = match upkeep.named.is_empty() {
        true => of_database(cx),
        false => upkeep.named.clone(),
    };
    let verb = if upkeep.vacuums { "vacuum" } else { "analyze" };
    let all = left.len();
    left.retain(|named| match refusal(cx, named, verb) {
        Some(warning) => {
            cx.port.warn(SqlError::new(SqlState::WARNING, warning));
            false
        }
        None => true,
    });
    if upkeep.verbose {
        left.iter().for_each(|named| tell(cx, upkeep, named));
    }
    if upkeep.analyzes && (all == 0 || !left.is_empty()) {
        let counts = analyze(cx).await?;
        if upkeep.verbose {
            left.iter().for_each(|named| tell_rows(cx, named, &counts));
        }
    }
    Ok(Tag::Word(match upkeep.vacuums {
        true => "VACUUM",
        false => "ANALYZE",
    }))
}

/// All tables of the database.
fn of_database(cx: &Cx<'_>) -> Vec<UpkeepOf> {
    let tables = cx.port.database().tables.values();
    let tables = tables.filter(|table| !is_own_table(&table.name));
    tables
        .map(|table| UpkeepOf {
            name: own(&table.name).to_owned(),
            relation: Some(table.id.0),
            is_view: false,
        })
        .collect()
}

/// Why a relation is passed over.
fn refusal(cx: &Cx<'_>, named: &UpkeepOf, verb: &str) -> Option<String> {
    let (catalog, name) = (cx.port.catalog(), &named.name);
    let role = catalog.rights.acting(&cx.port.session_user());
    let owns = |relation: u32| catalog.owns(role, cx.port.database(), relation);
    let why = match named.relation {
        None if catalog.rights.is_superuser(role) => return None,
        None => format!("only superuser can {verb} it"),
        Some(relation) if !owns(relation) => {
            format!("only table or database owner can {verb} it")
        }
        Some(_) if named.is_view => {
            format!("cannot {verb} non-tables or special system tables")
        }
        Some(_) => return None,
    };
    Some(format!("skipping \"{name}\" --- {why}"))
}

/// Tells that a table is treated now.
fn tell(cx: &Cx<'_>, upkeep: &Upkeep, named: &UpkeepOf) {
    let database = cx.port.database();
    let table = named.relation.and_then(|id| {
        let mut tables = database.tables.values();
        tables.find(|table| table.id.0 == id)
    });
    let schema = match table {
        Some(table) => database.schema_name(schema_of(&table.name)),
        None => "pg_catalog",
    };
    let name = &named.name;
    if upkeep.vacuums {
        let database = &database.name;
        note(cx, format!("vacuuming \"{database}.{schema}.{name}\""));
    }
    if upkeep.analyzes {
        note(cx, format!("analyzing \"{schema}.{name}\""));
    }
}

/// Tells how many rows a table has.
fn tell_rows(cx: &Cx<'_>, named: &UpkeepOf, counts: &RowCounts) {
    let Some(id) = named.relation else {
        return;
    };
    let rows = counts.rows.get(&TableId(id)).copied().unwrap_or(0);
    note(cx, format!("\"{}\": {rows} live rows", named.name));
}

/// A line of VERBOSE, which every client gets.
fn note(cx: &Cx<'_>, text: String) {
    cx.port.warn(SqlError::new(SqlState::SUCCESS, text));
}
