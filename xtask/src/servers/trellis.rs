//! A local Trellis cluster, started by the program as a user would.

use super::{Folder, Tls, client, free_ports};
use crate::{repo, shell};
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A cluster must answer by then.
const START_LIMIT: Duration = Duration::from_secs(60);
/// SIGTERM drains and writes checkpoints; both together may take this long.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Ports between nodes lie this far above those for clients.
const PEER_OFFSET: u16 = 1_000;

/// A running cluster; stopped when dropped.
pub(crate) struct Trellis {
    folder: Folder,
    pub(crate) ports: Vec<u16>,
    child: Option<Child>,
}

impl Trellis {
    /// The program of the release build.
    pub(crate) fn program() -> Result<PathBuf> {
        let program = repo::target_dir().join("release/trellis");
        ensure!(
            program.is_file(),
            "{} is missing: cargo build --release",
            program.display()
        );
        Ok(program)
    }

    /// Starts `nodes` nodes with the default number of shards, and waits until all answer.
    pub(crate) fn start(nodes: u16) -> Result<Trellis> {
        let folder = Folder::new("cluster")?;
        let base = free_ports(nodes, PEER_OFFSET)?;
        let mut command = Command::new(Self::program()?);
        command.args([
            "start",
            "--nodes",
            &nodes.to_string(),
            "--port",
            &base.to_string(),
        ]);
        command.arg("--data").arg(folder.path().join("data"));
        Self::launch(folder, &mut command, (base..base + nodes).collect())
    }

    /// Starts `nodes` nodes of one shard each, which offer TLS and ask for no password.
    pub(crate) fn start_with_tls(nodes: u16, tls: &Tls) -> Result<Trellis> {
        let folder = Folder::new("cluster")?;
        let base = free_ports(nodes, PEER_OFFSET)?;
        let data = folder.path().join("data");
        std::fs::create_dir(&data)?;
        std::fs::write(data.join("roles"), "")?;
        let mut file = format!(
            "cluster = {}\nshards = 1\nconnections = 1000\n\n[access]\nroles = \"roles\"\n\
             certificate = \"{}\"\nkey = \"{}\"\nloopback = \"trust\"\n",
            std::process::id(),
            tls.certificate.display(),
            tls.key.display()
        );
        for node in 1..=nodes {
            let port = base + node - 1;
            let peer = port + PEER_OFFSET;
            file.push_str(&format!(
                "\n[[node]]\nid = {node}\nsql = \"127.0.0.1:{port}\"\n\
                 peer = \"127.0.0.1:{peer}\"\ndata = \"node-{node}\"\n"
            ));
        }
        std::fs::write(data.join("cluster.toml"), file)?;
        let mut command = Command::new(Self::program()?);
        command.arg("start").arg("--data").arg(&data);
        Self::launch(folder, &mut command, (base..base + nodes).collect())
    }

    /// Starts the server that `command` tells of, with its log in `folder`, and waits until it
    /// answers on all `ports`.
    pub(crate) fn launch(
        folder: Folder,
        command: &mut Command,
        ports: Vec<u16>,
    ) -> Result<Trellis> {
        let mut server = Trellis {
            folder,
            ports,
            child: None,
        };
        let log = File::create(server.log()).context("cannot create the log")?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // A group of its own, so that no node outlives a cluster that had to be killed.
        let child = command
            .process_group(0)
            .spawn()
            .context("cannot start trellis")?;
        server.child = Some(child);
        let deadline = Instant::now() + START_LIMIT;
        for port in server.ports.clone() {
            server.wait_for(port, deadline)?;
        }
        Ok(server)
    }

    /// The process that was started.
    pub(crate) fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    fn wait_for(&mut self, port: u16, deadline: Instant) -> Result<()> {
        loop {
            let mut ask = client("psql", port, "postgres");
            let error = match shell::output(ask.args(["-X", "-A", "-t", "-c", "SELECT 1"])) {
                Ok(answer) if answer.trim() == "1" => return Ok(()),
                Ok(answer) => format!("SELECT 1 answers {answer:?}"),
                Err(error) => format!("{error:#}"),
            };
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().transpose());
            if let Some(status) = ended {
                bail!("trellis start ended with {}\n{}", status?, self.log_text());
            }
            if Instant::now() >= deadline {
                bail!("no answer on port {port}: {error}\n{}", self.log_text());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub(crate) fn log_text(&self) -> String {
        shell::tail(&std::fs::read_to_string(self.log()).unwrap_or_default(), 20)
    }

    /// Stops the cluster by SIGTERM; does nothing the second time.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let group = format!("-{}", child.id());
        let ended_well = shell::terminate(&mut child, STOP_LIMIT)?;
        if !ended_well {
            // Whatever is left of our group; nothing may be.
            let _ = shell::output(Command::new("kill").args(["-KILL", "--", &group]));
            bail!("the cluster did not end well\n{}", self.log_text());
        }
        Ok(())
    }
}

impl Drop for Trellis {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
