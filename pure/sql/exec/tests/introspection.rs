//! The queries that psql, pgbench, psycopg and JDBC send to find out about a database, run word for
//! word (`test/sql/introspection/*.sql`) over the tables of `schema.sql`.
//!
//! Each file has its answers beside it (`*.out`); `UPDATE=1` rewrites them, and a person reads the
//! difference. Statements about rows and transactions, which the recordings hold too, are left out:
//! there are no rows here, only the catalog.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its scripts and may write them"
)]

mod fake;

use base::{Datum, RowBatch, SqlError, Time, Type};
use catalog::Catalog;
use fake::Cluster;
use parse::show::Show;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    PathBuf::from("../../../test/sql/introspection")
}

/// A database with the tables of `schema.sql`, no rows and one session.
fn shop() -> Cluster {
    let cluster = Cluster::named("shop");
    let schema = std::fs::read_to_string(folder().join("schema.sql")).expect("the schema");
    for statement in parse::parse(&schema).expect("the schema parses") {
        cluster.run(statement.text()).expect("the schema is legal");
    }
    // Two shards, each with some of every key space.
    let mut sizes = RowBatch::new(2);
    for id in 16_384..16_500 {
        sizes.push([Datum::Int(id), Datum::Int(8_192)]);
        sizes.push([Datum::Int(id), Datum::Int(32_768)]);
    }
    let mut sessions = RowBatch::new(12);
    let text = |text: &str| Datum::Text(text.into());
    sessions.push([
        Datum::Int(7),
        text("alice"),
        text("shop"),
        text("psql"),
        text("127.0.0.1"),
        Datum::Int(40_000),
        Datum::Timestamp(1),
        Datum::Null,
        Datum::Timestamp(2),
        Datum::Timestamp(3),
        text("active"),
        text("SELECT 1"),
    ]);
    let shows = vec![
        (Show::Sizes, sizes),
        (Show::Activity, sessions),
        (Show::Locks, locks(catalog_oids(&cluster))),
    ];
    *cluster.state.shows.borrow_mut() = shows;
    cluster
}

/// Oids of the database and of a table of it.
fn catalog_oids(cluster: &Cluster) -> [i64; 2] {
    let database = cluster.catalog().databases["shop"].clone();
    [database.id.0, database.tables["orders"].id.0].map(i64::from)
}

/// Session 7 holds a row for which session 9 waits; a transaction of no session waits for a range.
fn locks([database, relation]: [i64; 2]) -> RowBatch {
    let text = |text: &str| Datum::Text(text.into());
    let mut batch = RowBatch::new(9);
    let session = |txn: &str, pid: i64| {
        let mut row = vec![text(txn), Datum::Int(pid)];
        row.resize(9, Datum::Null);
        row
    };
    let lock = |txn: &str, kind: &str, tuple: Datum, since: Datum| {
        let mut row = vec![text(txn), Datum::Null, text(kind)];
        row.extend([database, relation, 77].map(Datum::Int));
        row.extend([tuple, text("AccessExclusiveLock"), since]);
        row
    };
    let one = || Datum::Int(1);
    batch.push(lock("t1.0.1.2", "tuple", one(), Datum::Null));
    batch.push(session("t1.0.1.2", 7));
    batch.push(lock("t2.0.1.4", "tuple", one(), Datum::Timestamp(5)));
    batch.push(lock("t3.0.1.6", "page", Datum::Null, Datum::Timestamp(6)));
    batch.push(session("t2.0.1.4", 9));
    batch
}

#[test]
fn locks_that_are_awaited_are_a_table() {
    let cluster = shop();
    let all = "SELECT locktype, relation::regclass, page, tuple, virtualtransaction, pid, mode, \
        granted, waitstart IS NULL, coalesce(virtualxid, classid::text, objid::text) FROM pg_locks";
    assert_eq!(
        run(&cluster, all, &[])
            .unwrap()
            .lines()
            .skip(1)
            .collect::<Vec<_>>(),
        [
            "tuple | orders | 77 | 1 | t1.0.1.2 | 7 | AccessExclusiveLock | t | t | NULL",
            "tuple | orders | 77 | 1 | t2.0.1.4 | 9 | AccessExclusiveLock | f | f | NULL",
            "page | orders | 77 | NULL | t3.0.1.6 | NULL | AccessExclusiveLock | f | f | NULL",
        ]
    );
    // The query of PostgreSQL's wiki.
    let blocked = "SELECT blocked.pid, blocking.pid FROM pg_catalog.pg_locks blocked \
        JOIN pg_catalog.pg_locks blocking ON blocking.locktype = blocked.locktype \
        AND blocking.database IS NOT DISTINCT FROM blocked.database \
        AND blocking.relation IS NOT DISTINCT FROM blocked.relation \
        AND blocking.page IS NOT DISTINCT FROM blocked.page \
        AND blocking.tuple IS NOT DISTINCT FROM blocked.tuple \
        AND blocking.virtualxid IS NOT DISTINCT FROM blocked.virtualxid \
        AND blocking.transactionid IS NOT DISTINCT FROM blocked.transactionid \
        AND blocking.classid IS NOT DISTINCT FROM blocked.classid \
        AND blocking.objid IS NOT DISTINCT FROM blocked.objid \
        AND blocking.objsubid IS NOT DISTINCT FROM blocked.objsubid \
        AND blocking.pid != blocked.pid WHERE NOT blocked.granted AND blocking.granted";
    assert_eq!(run(&cluster, blocked, &[]).unwrap(), "pid | pid\n9 | 7\n");
}

/// Runs one statement to its end; rows as text.
fn run(cluster: &Cluster, text: &str, values: &[String]) -> Result<String, String> {
    let shown = |error: SqlError| error.to_string();
    let plan = cluster.plan(text, &[]).map_err(shown)?;
    let catalog = cluster.catalog();
    let read = |(ty, value): (&Type, &String)| {
        with_catalog(&catalog, |cx| pg_catalog::output::read(cx, *ty, value))
    };
    let params = plan.params.iter().zip(values).map(read);
    let params: Vec<Datum> = params.collect::<Result<_, _>>().map_err(shown)?;
    let ops = cluster.state.ops.get();
    let outcome = cluster.execute(&plan, &params, "").map_err(shown)?;
    assert_eq!(cluster.state.ops.get(), ops, "it asks for rows: {text}");
    let names: Vec<&str> = outcome.columns.iter().map(|(name, _)| &**name).collect();
    let mut out = names.join(" | ") + "\n";
    for row in outcome.rows {
        let _ = writeln!(out, "{}", row.join(" | ").replace('\n', "\\n"));
    }
    Ok(out)
}

fn with_catalog<T>(catalog: &Catalog, call: impl FnOnce(&pg_catalog::CatalogCx<'_>) -> T) -> T {
    call(&pg_catalog::CatalogCx {
        catalog,
        database: &catalog.databases["shop"],
        pid: 1,
        user: "trellis",
        txn_time: Time(0),
        setting: &|_| None,
        size_bytes: &|_| None,
        told: None,
    })
}

/// A query of a recording: its text and the values of its parameters.
struct Recorded {
    text: String,
    values: Vec<String>,
}

/// The queries over the catalog of a recording. `':name'` stands for the oid of that relation.
fn recorded(catalog: &Catalog, path: &Path) -> Vec<Recorded> {
    let database = &catalog.databases["shop"];
    let oid = |name: &str| {
        let table = database.tables.get(name).map(|table| table.id.0);
        let sequence = || database.sequences.get(name).map(|sequence| sequence.id.0);
        let index = || {
            let mut indexes = database.tables.values().flat_map(|table| table.indexes());
            indexes
                .find(|index| index.name == name)
                .map(|index| index.id.0)
        };
        table
            .or_else(sequence)
            .or_else(index)
            .expect("a relation of the schema")
    };
    let mut queries = Vec::new();
    let content = std::fs::read_to_string(path).expect("a readable recording");
    for piece in content.split(";\n") {
        let mut text = String::new();
        let mut values = Vec::new();
        for line in piece.lines() {
            match line.strip_prefix("-- $1 = ") {
                Some(rest) => {
                    let rest = rest.trim_matches('\'');
                    values = rest.split("', '").map(str::to_owned).collect();
                    values = values
                        .iter()
                        .flat_map(|v| v.split("', $"))
                        .map(strip)
                        .collect();
                }
                None if line.starts_with("--") => {}
                None => text += &format!("{line}\n"),
            }
        }
        for name in ["orders_by_customer", "orders_id_seq", "customer", "orders"] {
            if text.contains(&format!("':{name}'")) {
                text = text.replace(&format!("':{name}'"), &format!("'{}'", oid(name)));
            }
        }
        // The oid that PostgreSQL had given to `customer` in the recorded session.
        text = text.replace("16385", &oid("customer").to_string());
        // pgbench asks about its own tables.
        let text = text.trim().replace("'pgbench_accounts'", "'orders'");
        if text.contains("pg_") {
            queries.push(Recorded { text, values });
        }
    }
    queries
}

/// `2 = 'orders` is the value `orders`.
fn strip(value: &str) -> String {
    value
        .split_once("= '")
        .map_or(value, |(_, value)| value)
        .to_owned()
}

#[test]
fn recorded_queries_are_answered() {
    let cluster = shop();
    let mut failures = String::new();
    let mut count = 0;
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder of recordings")
        .map(|file| file.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .filter(|path| !path.ends_with("schema.sql"))
        .collect();
    paths.sort();
    for path in paths {
        let mut answers = String::new();
        for query in recorded(&cluster.catalog(), &path) {
            count += 1;
            let first = query.text.lines().next().unwrap_or("").trim();
            let first: String = first.chars().take(60).collect();
            match run(&cluster, &query.text, &query.values) {
                Ok(rows) => answers += &format!("> {first}\n{rows}\n"),
                Err(error) => {
                    failures += &format!("{}: {first}\n    {error}\n", path.display());
                }
            }
        }
        let answer_path = path.with_extension("out");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&answer_path, &answers).expect("the answers can be written");
        } else if std::fs::read_to_string(&answer_path).unwrap_or_default() != answers {
            failures += &format!(
                "{}: answers differ from *.out:\n{answers}\n",
                path.display()
            );
        }
    }
    assert!(failures.is_empty(), "of {count} queries:\n{failures}");
    assert!(count > 80, "only {count} queries were found");
}
