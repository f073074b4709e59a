//! Faults at servers of another machine, which is this one by way of a real sshd, and at a
//! container, which is a process that a stand-in for docker tells of.

use crate::fault::{is_cut, is_stopped, shop, shop_with, state, text};
use crate::local::Local;
use crate::support::{PROGRAM, READY_LIMIT, free_ports, wait_until};
use peer::again;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// An sshd on loopback with a key for this test, and a folder whose `ssh` uses that key.
struct Sshd {
    child: Child,
    folder: PathBuf,
    port: u16,
    user: String,
}

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

impl Sshd {
    /// `None`: it is not installed.
    fn start(local: &Local) -> Option<Sshd> {
        let (sshd, ssh) = (peer::program("sshd")?, peer::program("ssh")?);
        let folder = local.folder.path().join("ssh");
        std::fs::create_dir(&folder).unwrap();
        for key in ["host", "user"] {
            let mut make = Command::new("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            succeeds(make.arg(folder.join(key)));
        }
        let shown = folder.display();
        let user = succeeds(Command::new("id").arg("-un"));
        let port = free_ports(1);
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host\nPidFile none\n\
             AuthorizedKeysFile {shown}/user.pub\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\n"
        );
        std::fs::write(folder.join("sshd_config"), settings).unwrap();
        let host = std::fs::read_to_string(folder.join("host.pub")).unwrap();
        let known = format!("[127.0.0.1]:{port} {host}");
        std::fs::write(folder.join("known"), known).unwrap();
        let settings = format!(
            "IdentityFile {shown}/user\nIdentitiesOnly yes\nUserKnownHostsFile {shown}/known\n"
        );
        std::fs::write(folder.join("config"), settings).unwrap();
        std::fs::create_dir(folder.join("bin")).unwrap();
        let script = format!(
            "#!/bin/sh\nexec {} -F {shown}/config \"$@\"\n",
            ssh.display()
        );
        write_program(&folder.join("bin/ssh"), &script);
        // Where it locks itself in; only root may make it.
        let _ = std::fs::create_dir_all("/run/sshd");
        let mut command = Command::new(sshd);
        command.args(["-D", "-E"]).arg(folder.join("log")).arg("-f");
        let child = command.arg(folder.join("sshd_config")).spawn().unwrap();
        let sshd = Sshd {
            child,
            folder,
            port,
            user,
        };
        wait_until("sshd", READY_LIMIT, || {
            std::net::TcpStream::connect(("127.0.0.1", sshd.port)).is_ok()
        });
        Some(sshd)
    }

    /// The nodes of a local cluster as targets of another machine: far1, far2 and far3.
    fn aim(&self, local: &Local, bench: &mut Command) {
        self.aim_with(local, bench, |_| String::new());
    }

    /// The same with further parts of each node's target.
    fn aim_with(&self, local: &Local, bench: &mut Command, more: impl Fn(u32) -> String) {
        let (user, port, data) = (&self.user, self.port, local.data());
        let data = data.display();
        for node in 1..=3 {
            bench.arg("--target").arg(format!(
                "far{node}=ssh:{user}@127.0.0.1:{port},pidfile:{data}/node-{node}/PID,\
                 hold:{data}/node-{node}.held,{}data:{},trellis:{PROGRAM}",
                more(node),
                self.folder.join("small").display()
            ));
        }
        let path = std::env::var("PATH").unwrap();
        let folder = self.folder.join("bin");
        bench.env("PATH", format!("{}:{path}", folder.display()));
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg(self.folder.join("small"))
            .output();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn faults_elsewhere_are_proven_and_undone_there_and_servers_are_sampled() {
    let local = shop("fault-ssh");
    let Some(sshd) = Sshd::start(&local) else {
        return;
    };
    let small = sshd.folder.join("small");
    std::fs::create_dir(&small).unwrap();
    let mut faults = vec!["pause@far2,far3:2+1", "kill@far2:5+1"];
    if is_cut(0).is_some() {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "trellis-test"]);
        succeeds(mount.arg(&small));
        faults.extend(["cut@far3:9+1.5", "loss=20%@far1:12+1", "cpu=2%@far2:14+2"]);
        faults.extend(["disk_full@far1:17+0.5", "memory=1MB@far3:18+2"]);
    }
    let before = local.pid(2);
    let attempt = || {
        let mut bench = local.bench(&faults, 21);
        sshd.aim(&local, &mut bench);
        let output = bench.output().unwrap();
        wait_until("all nodes answer", READY_LIMIT, || {
            (1..=3).all(|node| local.answers(node))
        });
        (output.status.success().then(|| local.json()), output)
    };
    let is_in_time = |fault: &serde_json::Value| {
        let number = |name: &str| fault[name].as_f64().unwrap_or(f64::NAN);
        let planned_s = fault["planned"]["begin_s"].as_f64().unwrap_or(f64::NAN);
        (-0.05..0.3).contains(&(number("begin_s") - planned_s)) && number("undo_s") < 2.0
    };
    let is_as_planned = |json: &serde_json::Value| {
        let faults = json["faults"].as_array().unwrap();
        faults.iter().all(is_in_time) && faults[0]["depth"].as_f64() > Some(0.5)
    };
    // Where the machine stands still a fault is late, or no probe sees it.
    let (json, output) = again(attempt, |(json, _)| {
        json.as_ref().is_some_and(is_as_planned)
    });
    let json = json.unwrap_or_else(|| panic!("{}", text(&output)));
    assert!(is_as_planned(&json), "{}", json["faults"]);
    assert_ne!(local.pid(2), before);
    assert!(local.said().contains("node 2 was killed by signal 9"));
    let told = json["faults"].as_array().unwrap();
    assert_eq!(told.len(), faults.len() + 1);
    for (fault, proof) in told.iter().zip([
        "processes in state T",
        "processes in state T",
        "is gone, port",
        "packets dropped",
        "packets dropped",
        "throttled in",
        "no space left",
        "no more than 1048576 bytes",
    ]) {
        assert!(fault["proof"].as_str().unwrap().contains(proof), "{fault}");
    }
    let servers = json["servers"]["series"].as_array().unwrap();
    assert_eq!(servers.len(), 3);
    for server in servers {
        let host = format!("{}@127.0.0.1:{}", sshd.user, sshd.port);
        assert_eq!(
            (&server["host"], &server["ended"]),
            (&host.into(), &().into())
        );
        let seconds = server["seconds"].as_array().unwrap().len();
        assert!((15..=24).contains(&seconds), "{server}");
        assert!(server["mean"]["cpu"].as_f64().unwrap() > 0.0, "{server}");
        let memory = server["max"]["memory_bytes"].as_f64().unwrap();
        assert!((1e6..1e9).contains(&memory), "{server}");
    }
    let gaps = |at: usize| servers[at]["gaps"].as_u64().unwrap();
    assert!(gaps(0) == 0 && gaps(1) > 0, "{} {}", gaps(0), gaps(1));
}

#[test]
fn faults_elsewhere_are_undone_when_the_benchmark_is_killed() {
    let local = shop("fault-ssh-killed");
    let Some(sshd) = Sshd::start(&local) else {
        return;
    };
    let mut bench = local.bench(&["pause@far2:1+300", "kill@far3:1+300"], 400);
    sshd.aim(&local, &mut bench);
    let mut bench = bench.stdout(Stdio::null()).spawn().unwrap();
    let pids = [local.pid(2), local.pid(3)];
    wait_until("the faults are in", READY_LIMIT, || {
        is_stopped(pids[0]) && matches!(state(pids[1]), None | Some('Z'))
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_stopped(pids[0]));
    bench.kill().unwrap();
    bench.wait().unwrap();
    wait_until("node 2 goes on", READY_LIMIT, || !is_stopped(pids[0]));
    wait_until("all nodes answer", READY_LIMIT, || {
        (1..=3).all(|node| local.answers(node))
    });
    // Nothing is left for the next one, here or there.
    let undo = Command::new(PROGRAM)
        .args(["bench", "undo"])
        .env("TMPDIR", local.folder.path())
        .output()
        .unwrap();
    assert!(
        text(&undo).contains("nothing was left to undo"),
        "{}",
        text(&undo)
    );
}

/// A process that reads or writes a file past the system's memory, in many children.
struct Busy(Child);

impl Busy {
    fn start(file: &Path, copies: &str) -> Busy {
        let file = file.display();
        let script = format!("while :; do dd bs=64k count=16 {copies} 2>&-; done");
        let script = script.replace("FILE", &file.to_string());
        Busy(Command::new("sh").args(["-c", &script]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn servers_elsewhere_start_anew_their_clocks_jump_and_their_disks_are_slow() {
    let local = shop_with("fault-ssh-more", &["--clock-faults"]);
    let Some(sshd) = Sshd::start(&local) else {
        return;
    };
    let mut faults = vec!["clock=+90s@far2:1+2", "restart@far3:4+1.5"];
    let file = local.folder.path().join("busy");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    let mut busy = Vec::new();
    if is_cut(0).is_some() {
        // What may filter packets may make control groups.
        let write = "if=/dev/zero of=FILE oflag=direct conv=notrunc";
        busy.push(Busy::start(&file, write));
        busy.push(Busy::start(&file, "if=FILE of=/dev/null iflag=direct"));
        faults.extend(["disk_write=2MB@far4:1+2.5", "disk_read=2MB@far5:4+2.5"]);
    }
    let before = local.pid(3);
    let attempt = || {
        let mut bench = local.bench(&faults, 8);
        sshd.aim_with(&local, &mut bench, |node| {
            format!("clock:{}/node-{node}.clock,", local.data().display())
        });
        for (number, busy) in (4..).zip(&busy) {
            bench.arg("--target").arg(format!(
                "far{number}=ssh:{}@127.0.0.1:{},pid:{},data:{},trellis:{PROGRAM}",
                sshd.user,
                sshd.port,
                busy.0.id(),
                local.folder.path().display()
            ));
        }
        let output = bench.output().unwrap();
        wait_until("all nodes answer", READY_LIMIT, || {
            (1..=3).all(|node| local.answers(node))
        });
        output
    };
    // Where the machine stands still no probe may see a fault.
    let output = again(attempt, |output| output.status.success());
    assert!(output.status.success(), "{}", text(&output));
    assert_ne!(local.pid(3), before);
    local.expect_faults(faults.len(), |kind| match kind {
        "clock" => "times with",
        "restart" => "is gone, port",
        _ => "of 2097152 allowed",
    });
}

#[test]
fn what_is_not_possible_elsewhere_is_refused_before_the_run() {
    let local = shop("fault-ssh-refused");
    let Some(sshd) = Sshd::start(&local) else {
        return;
    };
    let (user, port, data) = (&sshd.user, sshd.port, local.data().display().to_string());
    let pid_file = format!("pidfile:{data}/node-2/PID");
    let silent = free_ports(1);
    let host = format!("ssh:{user}@127.0.0.1:{port}");
    for (target, fault, told) in [
        (
            format!("far=ssh:{user}@127.0.0.1:{silent},{pid_file}"),
            "pause@far:1+1",
            "Connection refused",
        ),
        (
            format!("far={host},pidfile:{data}/none,trellis:{PROGRAM}"),
            "pause@far:1+1",
            "it does not run",
        ),
        (
            format!("far={host},{pid_file},trellis:/nowhere/trellis"),
            "pause@far:1+1",
            "/nowhere/trellis: No such file",
        ),
        (
            format!("far={host},{pid_file},trellis:{PROGRAM}"),
            "kill@far:1+1",
            "kill is not possible at far; it needs a command",
        ),
        (
            format!("far={host},{pid_file},trellis:{PROGRAM}"),
            "delay=50ms@far:1+1",
            "delay=50ms@far:1+1 is not possible; it needs a server on this machine",
        ),
    ] {
        let mut bench = local.bench(&[fault], 8);
        sshd.aim(&local, &mut bench);
        let output = bench.args(["--target", &target]).output().unwrap();
        let said = text(&output);
        assert!(
            !output.status.success() && said.contains(told),
            "{target}: {said}"
        );
        assert!(!said.contains("committed"), "{said}");
    }
}

#[test]
fn a_container_is_found_by_its_name_and_started_again_by_its_runtime() {
    let local = shop("fault-container");
    let folder = local.folder.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let data = local.data().display().to_string();
    let said = local.folder.path().join("docker-said");
    // Knows one container, node 2, whose supervisor starts it when docker would.
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {}\nfor name; do :; done\n\
         [ \"$name\" = db-2 ] || {{ echo \"Error: No such object: $name\" >&2; exit 1; }}\n\
         case $1 in inspect) cat {data}/node-2/PID;; start) rm -f {data}/node-2.held;; esac\n",
        said.display()
    );
    write_program(&folder.join("docker"), &script);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let bench = |target: &str, fault: &str, seconds| {
        let mut bench = local.bench(&[fault], seconds);
        bench.args(["--target", target]).env("PATH", &path);
        bench.output().unwrap()
    };
    let pause = || bench("far=container:db-2", "pause@far:1+1", 4);
    let output = again(pause, |output| output.status.success());
    assert!(output.status.success(), "{}", text(&output));
    let json = local.json();
    let proof = json["faults"][0]["proof"].as_str().unwrap();
    assert!(proof.contains("processes in state T"), "{json}");
    assert_eq!(json["servers"]["series"][0]["name"], "far");
    let before = local.pid(2);
    let kill = || {
        std::fs::write(format!("{data}/node-2.held"), "").unwrap();
        let output = bench("far=container:db-2", "kill@far:1+1", 6);
        wait_until("all nodes answer", READY_LIMIT, || {
            (1..=3).all(|node| local.answers(node))
        });
        output
    };
    let output = again(kill, |output| output.status.success());
    assert!(output.status.success(), "{}", text(&output));
    assert_ne!(local.pid(2), before);
    let said = std::fs::read_to_string(said).unwrap();
    assert!(said.contains("start db-2"), "{said}");
    assert!(said.contains("inspect -f {{.State.Pid}} -- db-2"), "{said}");
    let output = bench("far=container:db-9", "pause@far:1+1", 4);
    let refused = text(&output);
    assert!(
        !output.status.success() && refused.contains("No such object: db-9"),
        "{refused}"
    );
}
