//! A PostgreSQL 15 of our own: fresh files, its own port, started and stopped by its own programs.

use super::{CERTIFICATE, Folder, KEY, Tls, USER, free_ports};
use crate::{install, shell};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One setting of the server: name and value, as in its configuration file.
pub(crate) type Setting = (&'static str, &'static str);

/// A running server; stopped when dropped.
pub(crate) struct Postgres {
    folder: Folder,
    pub(crate) port: u16,
    running: bool,
}

impl Postgres {
    /// Makes the files, starts the server and waits until it answers.
    pub(crate) fn start(settings: &[Setting]) -> Result<Postgres> {
        Self::start_as(settings, None)
    }

    /// The same, with TLS.
    pub(crate) fn start_with_tls(settings: &[Setting], tls: &Tls) -> Result<Postgres> {
        Self::start_as(settings, Some(tls))
    }

    fn start_as(settings: &[Setting], tls: Option<&Tls>) -> Result<Postgres> {
        let folder = Folder::new("postgres")?;
        if shell::is_root() {
            shell::run(Command::new("chown").arg(USER).arg(folder.path()))?;
        }
        let mut server = Postgres {
            folder,
            port: free_ports(1, 0)?,
            running: false,
        };
        let data = server.data();
        let mut initdb = server.program("initdb");
        initdb
            .arg("-D")
            .arg(&data)
            .args(["-U", USER, "-A", "trust", "-N", "-E", "UTF8"]);
        shell::output(initdb.args(["--locale", "C.UTF-8"]))?;
        let mut config = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\n\
             timezone = 'UTC'\nlc_messages = 'C'\n",
            server.port
        );
        for (name, value) in settings {
            config.push_str(&format!("{name} = '{value}'\n"));
        }
        if let Some(tls) = tls {
            config.push_str("ssl = on\n");
            server.take_certificate(tls)?;
        }
        std::fs::write(data.join("postgresql.auto.conf"), config)?;
        let mut start = server.program("pg_ctl");
        start
            .arg("-D")
            .arg(&data)
            .arg("-l")
            .arg(server.log())
            .args(["-w", "start"]);
        // The server would keep a pipe of ours open for ever.
        start.stdout(Stdio::null()).stderr(Stdio::null());
        shell::run(&mut start).with_context(|| {
            shell::tail(
                &std::fs::read_to_string(server.log()).unwrap_or_default(),
                20,
            )
        })?;
        server.running = true;
        Ok(server)
    }

    /// Puts certificate and key where the server looks for them; its user must own the key.
    fn take_certificate(&self, tls: &Tls) -> Result<()> {
        let (certificate, key) = (self.data().join(CERTIFICATE), self.data().join(KEY));
        std::fs::copy(&tls.certificate, &certificate)?;
        std::fs::copy(&tls.key, &key)?;
        shell::run(Command::new("chmod").arg("600").arg(&key))?;
        if shell::is_root() {
            shell::run(Command::new("chown").arg(USER).arg(certificate).arg(key))?;
        }
        Ok(())
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Stops the server; does nothing the second time.
    pub(crate) fn stop(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.running) {
            return Ok(());
        }
        let mut stop = self.program("pg_ctl");
        stop.arg("-D")
            .arg(self.data())
            .args(["-m", "fast", "-w", "stop"]);
        shell::run(stop.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of the server. It refuses to run as root, so its own user runs it then.
    fn program(&self, name: &str) -> Command {
        let path = Path::new(install::POSTGRES_PROGRAMS).join(name);
        let mut command = match shell::is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", USER, "--"]).arg(path);
                command
            }
            false => Command::new(path),
        };
        command
            .current_dir(self.folder.path())
            .env("LC_ALL", "C.UTF-8");
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
