//! A PostgreSQL server of our own for a test: fresh cluster, free port, gone afterwards.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A running server; stopped and deleted when dropped.
pub struct Peer {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Peer {
    /// Starts a server. `None` where PostgreSQL is not installed; with `TRELLIS_REQUIRE_PEERS` set
    /// that is a failure, so that CI cannot skip by mistake; without it the caller checks nothing.
    pub fn start() -> Option<Peer> {
        let Some(programs) = find_programs() else {
            let required = std::env::var_os("TRELLIS_REQUIRE_PEERS").is_some();
            assert!(
                !required,
                "TRELLIS_REQUIRE_PEERS is set and PostgreSQL is not installed"
            );
            return None;
        };
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trellis-drive-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
        if is_root() {
            let owner = Command::new("chown").arg("postgres").arg(&folder).status();
            assert!(owner.expect("chown runs").success());
        }
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = listener.expect("this machine has a free port").port();
        let peer = Peer {
            programs,
            folder,
            port,
        };
        let data = peer.data();
        let data = text(&data);
        peer.must(
            "initdb",
            &[
                "-D", data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8",
            ],
        );
        let hba = "host all scram_user 127.0.0.1/32 scram-sha-256\n\
                   host all md5_user 127.0.0.1/32 md5\n\
                   host all plain_user 127.0.0.1/32 password\n\
                   host all all 127.0.0.1/32 trust\n";
        let written = std::fs::write(peer.data().join("pg_hba.conf"), hba);
        written.expect("the folder of the cluster is writable");
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off \
             -c max_connections=200 -c max_pred_locks_per_transaction=256"
        );
        let log = peer.folder.join("log");
        let log = text(&log);
        peer.must(
            "pg_ctl",
            &["-D", data, "-o", &options, "-l", log, "-w", "start"],
        );
        Some(peer)
    }

    /// Of a database, as its superuser.
    pub fn url(&self, database: &str) -> String {
        self.url_of("postgres", database)
    }

    /// Of a database, as this user.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements by psql, which shares no code with the client under test.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let port = self.port.to_string();
        let args = [
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "postgres",
            "-d",
            database,
        ];
        let more = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql];
        let output = self.must("psql", &[&args[..], &more[..]].concat());
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn must(&self, program: &str, args: &[&str]) -> Output {
        let output = self.run(program, args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {args:?}: {text}");
        output
    }

    /// PostgreSQL refuses to run as root; then its own user runs it. The output goes through files,
    /// because a started server would keep a pipe open for ever.
    fn run(&self, program: &str, args: &[&str]) -> Output {
        let path = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(path);
                command
            }
            false => Command::new(path),
        };
        command
            .args(args)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        if program == "pg_ctl" {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command.output().expect("the program starts")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let data = self.data();
        self.run(
            "pg_ctl",
            &["-D", text(&data), "-m", "immediate", "-w", "stop"],
        );
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn text(path: &Path) -> &str {
    path.to_str()
        .expect("temporary folders have names in UTF-8")
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id runs");
    id.stdout.starts_with(b"0\n")
}

/// The newest server programs: Debian keeps them outside of PATH.
fn find_programs() -> Option<PathBuf> {
    let wanted = ["initdb", "pg_ctl", "psql"];
    let holds = |folder: &Path| wanted.iter().all(|program| folder.join(program).is_file());
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(folder) = std::env::split_paths(&on_path).find(|folder| holds(folder)) {
        return Some(folder);
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    folders.sort();
    folders.into_iter().rev().find(|folder| holds(folder))
}
