//! Servers of others for a test: a PostgreSQL that psql asks, too, and those that no test may skip
//! in CI. None of them waits for the disk, which may stand still for seconds; [`longer`] and
//! [`again`] make a run anew in which nothing has happened for such a reason.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod certificates;
mod tries;

pub use certificates::Certificates;
pub use tries::{again, longer};

use servers::{Kind, Server};
use std::fs::File;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How a server is told to force nothing to the disk. What it acknowledges is there after SIGKILL
/// all the same, because the system has it by then; a test needs no more than that.
fn unforced(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Postgres => &["-c", "fsync=off"],
        Kind::MariaDb => &[
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-flush-method=nosync",
            // Where the log would go past the system's memory; older servers do not know it.
            "--loose-innodb-log-file-buffering=ON",
        ],
        Kind::Redis => &["--appendfsync", "no"],
        Kind::Etcd => &["--unsafe-no-fsync"],
        Kind::Cassandra | Kind::HBase | Kind::FerretDb => &[],
    }
}

/// Starts a server that forces nothing to the disk, with these arguments besides.
/// `None` where it is not installed; with `TRELLIS_REQUIRE_PEERS` set that is a failure, so that CI
/// cannot skip by mistake; without it the caller checks nothing.
pub fn start(kind: Kind, arguments: &[&str]) -> Option<Server> {
    start_forced(kind, &[unforced(kind), arguments].concat())
}

/// As [`start`], but every commit is on the disk before it is answered.
pub fn start_forced(kind: Kind, arguments: &[&str]) -> Option<Server> {
    let started = Server::start(kind, arguments).unwrap_or_else(|error| panic!("{error}"));
    let required = std::env::var_os("TRELLIS_REQUIRE_PEERS").is_some();
    assert!(
        started.is_some() || !required,
        "TRELLIS_REQUIRE_PEERS is set and {} is not installed",
        kind.name()
    );
    started
}

/// A program that a test needs. `None` where it is not installed; with `TRELLIS_REQUIRE_PEERS` set
/// that is a failure, so that CI cannot skip by mistake; without it the caller checks nothing.
pub fn program(name: &str) -> Option<std::path::PathBuf> {
    let found = servers::find(name);
    let required = std::env::var_os("TRELLIS_REQUIRE_PEERS").is_some();
    assert!(
        found.is_some() || !required,
        "TRELLIS_REQUIRE_PEERS is set and {name} is not installed"
    );
    found
}

/// A running PostgreSQL; stopped and deleted when dropped.
pub struct Peer {
    server: Server,
}

/// Who logs in how.
const ACCESS: &str = "\
host all scram_user 127.0.0.1/32 scram-sha-256
host all md5_user 127.0.0.1/32 md5
host all plain_user 127.0.0.1/32 password
host all all 127.0.0.1/32 trust
";

/// The part of the time that no name of an earlier process has.
fn nanos() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().subsec_nanos()
}

impl Peer {
    /// Starts a server; see [`start`].
    pub fn start() -> Option<Peer> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trellis-access-{}-{number}-{}", std::process::id(), nanos());
        let access = std::env::temp_dir().join(name);
        let mut file = File::create_new(&access).expect("nobody else has made this file");
        file.write_all(ACCESS.as_bytes())
            .expect("the temporary folder is writable");
        let settings = [
            "max_connections=200".to_owned(),
            "max_pred_locks_per_transaction=256".to_owned(),
            format!("hba_file={}", access.display()),
        ];
        let arguments = settings.iter().flat_map(|setting| ["-c", setting.as_str()]);
        let server = start(Kind::Postgres, &arguments.collect::<Vec<_>>());
        // It has been read. Best effort: a small file that stays behind does no harm.
        let _ = std::fs::remove_file(access);
        server.map(|server| Peer { server })
    }

    /// Of a database, as its superuser.
    pub fn url(&self, database: &str) -> String {
        self.server.url(database)
    }

    /// Of a database, as this user.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@{}/{database}", self.server.address())
    }

    /// Runs statements by psql, which shares no code with the client under test.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let address = self.server.address();
        let psql = servers::find("psql").expect("psql comes with PostgreSQL");
        let mut command = Command::new(psql);
        command.args(["-h", "127.0.0.1", "-p", &address.port().to_string()]);
        command.args(["-U", "postgres", "-d", database, "-X", "-A", "-t", "-q"]);
        command.args(["-v", "ON_ERROR_STOP=1", "-c", sql]);
        let output = command.output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {text}");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }
}
