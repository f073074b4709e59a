//! `cargo xtask clients` and `cargo xtask slt`: real clients against a cluster of three nodes, or
//! against PostgreSQL, where all of them must pass too.
//!
//! The clients and what they expect are in `test/clients`, the SQL files in `test/sql`.

mod dumps;
mod pgbench;
mod programs;
mod psql;

use crate::servers::{self, Folder, Postgres, Server, Trellis};
use crate::{install, repo};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest time for one client.
const CLIENT_LIMIT: Duration = Duration::from_secs(240);
/// Nodes of the cluster.
const NODES: u16 = 3;

/// What a client test gets.
struct Ground {
    server: Server,
    /// For logs.
    folder: Folder,
}

impl Ground {
    fn start(peer: bool) -> Result<Ground> {
        install::postgres()?;
        let server = match peer {
            true => Server::Postgres(Postgres::start(&[("fsync", "off")])?),
            false => Server::Trellis(Trellis::start(NODES)?),
        };
        Ok(Ground {
            server,
            folder: Folder::new("clients")?,
        })
    }

    /// A server with a certificate.
    fn start_with_tls(peer: bool) -> Result<Ground> {
        install::postgres()?;
        let folder = Folder::new("clients")?;
        let tls = servers::certificate(folder.path())?;
        let server = match peer {
            true => Server::Postgres(Postgres::start_with_tls(&[("fsync", "off")], &tls)?),
            false => Server::Trellis(Trellis::start_with_tls(NODES, &tls)?),
        };
        Ok(Ground { server, folder })
    }

    /// The certificate of the server, which is its own authority.
    fn certificate(&self) -> PathBuf {
        self.folder.path().join(servers::CERTIFICATE)
    }

    /// The URL of a database for a client that is to encrypt, and to look at the certificate.
    fn tls_url(&self, database: &str) -> String {
        let certificate = self.certificate();
        format!(
            "{}?sslmode=verify-full&sslrootcert={}",
            self.server.url(database),
            certificate.display()
        )
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// One client: its name, and its test, which answers the number of checks that passed. Each gets
/// an empty database of its own name.
type Client = (&'static str, fn(&Ground, &str) -> Result<usize>);

const CLIENTS: &[Client] = &[
    ("psql_session", psql::session),
    ("psql_describe", psql::describe),
    ("psql_errors", psql::errors),
    ("psql_list", psql::list),
    ("psql_nodes", psql::nodes),
    ("pgbench", pgbench::all),
    ("pg_dump", dumps::there_and_back),
    ("pg_dumpall", dumps::globals),
    ("wire", programs::wire),
    ("tokio_postgres", programs::tokio_postgres),
    ("psycopg", programs::psycopg),
    ("asyncpg", programs::asyncpg),
    ("sqlalchemy", programs::sqlalchemy),
    ("django", programs::django),
    ("jdbc", programs::jdbc),
    ("pgadmin", programs::pgadmin),
];

/// Those that connect to a server with TLS, and look at its certificate.
const ENCRYPTED: &[Client] = &[
    ("jdbc_objects", programs::jdbc_objects),
    ("hibernate", programs::hibernate),
    ("node_postgres", programs::node_postgres),
    ("typeorm", programs::typeorm),
    ("pgx", programs::pgx),
    ("gorm", programs::gorm),
];

/// Runs `cargo xtask clients`.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let (peer, names) = options(args)?;
    let all: Vec<&str> = [CLIENTS, ENCRYPTED]
        .concat()
        .iter()
        .map(|(name, _)| *name)
        .collect();
    if let Some(name) = names.iter().find(|name| !all.contains(&name.as_str())) {
        bail!(
            "no client test is called {name}; there are {}",
            all.join(", ")
        );
    }
    install::all()?;
    run(peer, &names).map(drop)
}

/// The step of CI: the peer first, which proves the tests themselves, then the cluster.
pub(crate) fn run_all() -> Result<usize> {
    let peer = run(true, &[]);
    let cluster = run(false, &[]);
    Ok(peer? + cluster?)
}

/// `--peer postgres`, and the names that follow.
fn options(args: &[String]) -> Result<(bool, Vec<String>)> {
    match args {
        [flag, peer, names @ ..] if flag == "--peer" => {
            ensure!(peer == "postgres", "the only peer is postgres, not {peer}");
            Ok((true, names.to_vec()))
        }
        names => Ok((false, names.to_vec())),
    }
}

fn run(peer: bool, names: &[String]) -> Result<usize> {
    let wanted = |all: &[Client]| -> Vec<Client> {
        let mut all = all.to_vec();
        all.retain(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name));
        all
    };
    let plain = run_on(|| Ground::start(peer), &wanted(CLIENTS));
    let encrypted = run_on(|| Ground::start_with_tls(peer), &wanted(ENCRYPTED));
    Ok(plain? + encrypted?)
}

/// Runs clients against a server of their own.
fn run_on(start: impl FnOnce() -> Result<Ground>, clients: &[Client]) -> Result<usize> {
    if clients.is_empty() {
        return Ok(0);
    }
    let mut ground = start()?;
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, client) in clients {
        let begin = Instant::now();
        let database = format!("{name}_db");
        let result = ground
            .server
            .create_database(&database)
            .and_then(|()| client(&ground, &database));
        let time = begin.elapsed().as_secs_f64();
        match result {
            Ok(checks) => {
                println!(
                    "{} {name}: {checks} checks passed, {time:.1} s",
                    ground.server.name()
                );
                passed += checks;
            }
            Err(error) => {
                println!(
                    "{} {name}: FAILED, {time:.1} s\n{error:#}",
                    ground.server.name()
                );
                failed.push(*name);
            }
        }
    }
    if !failed.is_empty() {
        println!("server log:\n{}", ground.server.log_tail());
    }
    ground.server.stop()?;
    ensure!(
        failed.is_empty(),
        "{} failed against {}",
        failed.join(", "),
        ground.server.name()
    );
    Ok(passed)
}

/// Runs `cargo xtask slt`.
pub(crate) fn slt_main(args: &[String]) -> Result<()> {
    let (peer, files) = options(args)?;
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    run_slt_files(peer, &files).map(drop)
}

/// The step of CI: files that promise what PostgreSQL does run against PostgreSQL too.
pub(crate) fn run_slt() -> Result<usize> {
    let compatible = run_slt_files(true, &[])?;
    Ok(compatible + run_slt_files(false, &[])?)
}

fn run_slt_files(peer: bool, files: &[PathBuf]) -> Result<usize> {
    let files = match files {
        [] => slt_files(&repo::root().join("test/sql"), peer)?,
        files => files.to_vec(),
    };
    ensure!(!files.is_empty(), "there is no file test/sql/*.slt");
    let mut ground = Ground::start(peer)?;
    let mut failed = 0;
    for (number, file) in files.iter().enumerate() {
        let database = format!("slt_{number}");
        let result = ground
            .server
            .create_database(&database)
            .and_then(|()| programs::slt(&ground, &database, file));
        if let Err(error) = result {
            println!("{} {}: {error:#}", ground.server.name(), file.display());
            failed += 1;
        }
    }
    ground.server.stop()?;
    ensure!(failed == 0, "{failed} of {} files failed", files.len());
    println!(
        "{}: {} files of SQL passed",
        ground.server.name(),
        files.len()
    );
    Ok(files.len())
}

/// The files of a folder; for a peer only those that promise to be compatible.
fn slt_files(folder: &Path, only_compatible: bool) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let fits = !only_compatible || name.starts_with("pg_compat_");
        if name.ends_with(".slt") && fits {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
