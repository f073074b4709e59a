//! Servers that a chore starts, uses and stops: a Trellis cluster and a PostgreSQL of our own.

mod postgres;
mod trellis;

pub(crate) use postgres::{Postgres, Setting};
pub(crate) use trellis::Trellis;

use crate::{install, shell};
use anyhow::{Context, Result};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The user that clients log in as, on either server.
pub(crate) const USER: &str = "postgres";

/// A running server. Stopped when dropped; [`Server::stop`] also tells whether it ended well.
pub(crate) enum Server {
    Trellis(Trellis),
    Postgres(Postgres),
}

impl Server {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Server::Trellis(_) => "trellis",
            Server::Postgres(_) => "postgres",
        }
    }

    /// The SQL port of each node.
    pub(crate) fn ports(&self) -> &[u16] {
        match self {
            Server::Trellis(server) => &server.ports,
            Server::Postgres(server) => std::slice::from_ref(&server.port),
        }
    }

    /// The SQL port of the first node.
    pub(crate) fn port(&self) -> u16 {
        self.ports()[0]
    }

    /// How a client names a database of the first node.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port())
    }

    /// A program of PostgreSQL that will connect to node `node` (from 0).
    pub(crate) fn client(&self, program: &str, node: usize, database: &str) -> Command {
        client(program, self.ports()[node], database)
    }

    /// Makes an empty database. On Trellis it has the baseline protocol.
    pub(crate) fn create_database(&self, name: &str) -> Result<()> {
        let clause = match self {
            Server::Trellis(_) => " WITH (protocol = 'two_phase')",
            Server::Postgres(_) => "",
        };
        let sql = format!("CREATE DATABASE {name}{clause}");
        let mut command = self.client("psql", 0, "postgres");
        shell::output(command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", &sql]))?;
        Ok(())
    }

    /// Stops the server.
    ///
    /// # Errors
    /// It did not end in time, or not with exit code 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        match self {
            Server::Trellis(server) => server.stop(),
            Server::Postgres(server) => server.stop(),
        }
    }

    /// The last lines that the server wrote, for a report of a failure.
    pub(crate) fn log_tail(&self) -> String {
        let log = match self {
            Server::Trellis(server) => server.log(),
            Server::Postgres(server) => server.log(),
        };
        shell::tail(&std::fs::read_to_string(log).unwrap_or_default(), 20)
    }
}

pub(crate) fn client(program: &str, port: u16, database: &str) -> Command {
    let mut command = Command::new(Path::new(install::POSTGRES_PROGRAMS).join(program));
    command
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", port.to_string());
    command
        .env("PGUSER", USER)
        .env("PGDATABASE", database)
        .env("PGCONNECT_TIMEOUT", "10");
    command
        .env("LC_ALL", "C.UTF-8")
        .env("PGTZ", "UTC")
        .env_remove("PGOPTIONS");
    command
}

/// File of a server's certificate.
pub(crate) const CERTIFICATE: &str = "server.crt";
/// File of its key.
const KEY: &str = "server.key";

/// Certificate and key of a server on this machine.
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
}

/// Makes both in a folder.
pub(crate) fn certificate(folder: &Path) -> Result<Tls> {
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    let mut make = Command::new("openssl");
    make.args([
        "req",
        "-x509",
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=localhost",
    ]);
    make.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    make.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    make.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    shell::output(&mut make)?;
    Ok(Tls { certificate, key })
}

/// A fresh folder that everybody may enter; removed with everything in it when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Result<Folder> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trellis-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Folder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Set where two processes start servers at a time: 0 or 1.
pub(crate) const LANE: &str = "TRELLIS_LANE";

/// The first of `count` ports in a row that nobody listens on; `also` above each is free as well.
pub(crate) fn free_ports(count: u16, also: u16) -> Result<u16> {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let lane: u16 = std::env::var(LANE).map_or(Ok(0), |lane| lane.parse())?;
    let first = 17_000 + lane * 6_000 + (std::process::id() % 100) as u16 * 50;
    let mut bases = (first..30_000).step_by(10);
    let base = bases.find(|base| (0..count).all(|at| free(base + at) && free(base + at + also)));
    base.context("no free ports")
}
