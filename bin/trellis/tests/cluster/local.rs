//! A local cluster with its supervisor, for tests.

use crate::support::{Folder, PROGRAM, READY_LIMIT, connect, free_ports, print_tail, wait_until};
use links::link::Link;
use runtime::ClusterFile;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `trellis start` with three nodes, and what it says.
pub(crate) struct Local {
    pub(crate) child: Child,
    pub(crate) folder: Folder,
}

impl Local {
    pub(crate) fn start(name: &str) -> Local {
        Local::start_with(name, &[])
    }

    /// The same with further options.
    pub(crate) fn start_with(name: &str, options: &[&str]) -> Local {
        let folder = Folder::new(name);
        let log = File::create(folder.path().join("log")).unwrap();
        let port = free_ports(3).to_string();
        let mut command = Command::new(PROGRAM);
        command.args(["start", "--nodes", "3", "--shards", "1", "--port", &port]);
        command.arg("--data").arg(folder.path().join("cluster"));
        command.args(options);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap());
        let child = command.stderr(log).spawn().unwrap();
        let local = Local { child, folder };
        wait_until("the welcome", READY_LIMIT, || local.says("Ctrl-C stops"));
        local
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap()
    }

    pub(crate) fn says(&self, part: &str) -> bool {
        self.said().contains(part)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("cluster")
    }

    /// A connection to a node, counted from 1.
    pub(crate) fn link(&self, node: usize, database: &str) -> Option<Link> {
        connect(self.file().nodes[node - 1].sql, database).ok()
    }

    pub(crate) fn file(&self) -> ClusterFile {
        ClusterFile::read(&self.data().join("cluster.toml")).unwrap()
    }

    pub(crate) fn pid(&self, node: usize) -> u32 {
        let file = self.data().join(format!("node-{node}/PID"));
        std::fs::read_to_string(file).unwrap().parse().unwrap()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print_tail(&self.log());
        }
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            stop(&self.data());
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// `trellis stop`.
pub(crate) fn stop(data: &Path) {
    let mut command = Command::new(PROGRAM);
    let _ = command.args(["stop", "--data"]).arg(data).output();
}
