//! Each kind at a process of the test's own: put in, proven, undone. What this machine does not
//! have must be refused by name.

mod lag;

use super::network::Deed;
use super::process::Sockets;
use super::*;
use links::lock;
use peer::again;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names the file into which a server of this test writes its port.
const SERVE: &str = "TRELLIS_FAULT_TEST_SERVE";

/// A folder of its own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trellis-fault-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process of the test, ended with its children when dropped.
struct Dummy(Child);

impl Dummy {
    fn shell(script: &str) -> Dummy {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        Dummy(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    fn process(&self) -> Process {
        Process::of(self.0.id()).unwrap()
    }

    fn target(&self, more: &str) -> FaultTarget {
        format!("dummy=pid:{}{more}", self.0.id()).parse().unwrap()
    }
}

impl Drop for Dummy {
    fn drop(&mut self) {
        for process in Process::of(self.0.id()).iter().flat_map(Process::tree) {
            let _ = process.signal(nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.0.wait();
    }
}

/// Not a test, but a server that other tests start: it answers each byte by itself.
#[test]
fn serves_where_it_is_told_to() {
    let Some(file) = std::env::var_os(SERVE) else {
        return;
    };
    let port: u16 = std::fs::read_to_string(&file).map_or(0, |text| text.parse().unwrap());
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::fs::write(format!("{}.new", file.to_str().unwrap()), port.to_string()).unwrap();
    std::fs::rename(format!("{}.new", file.to_str().unwrap()), &file).unwrap();
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || {
            let (mut near, mut byte) = (stream, [0]);
            while near.read_exact(&mut byte).is_ok() && near.write_all(&byte).is_ok() {}
        });
    }
}

/// Waits until it is so, for far longer than it takes.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts that server. Answers its command, too.
fn server(folder: &Path) -> (Dummy, String) {
    let file = folder.join("port");
    let program = std::env::current_exe().unwrap();
    let command = format!(
        "{SERVE}='{}' exec '{}' --exact tests::serves_where_it_is_told_to",
        file.display(),
        program.display()
    );
    let dummy = Dummy::shell(&command);
    wait_until("the server has started", || file.exists());
    (dummy, command)
}

/// Has these faults within four seconds, while `during` is called all the time, with the seconds
/// that have passed.
fn broken(
    plans: &[&str],
    target: &FaultTarget,
    during: &mut dyn FnMut(f64),
) -> Result<Vec<Fault>, String> {
    // One after the other: a slow disk is one for the journals of the others, too.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = lock(&TURN);
    let faults = Faults {
        plans: plans.iter().map(|plan| plan.parse().unwrap()).collect(),
        targets: vec![target.clone()],
        journal: None,
    };
    let nowhere = Target::parse("postgres://a@127.0.0.1:1/b").unwrap();
    let length = Duration::from_secs(4);
    let prepared = prepare(&faults, &nowhere, length).map_err(|error| error.to_string())?;
    let (mut injection, _) = prepared.unwrap();
    let path = lock(&injection.journal).path().to_path_buf();
    assert!(path.exists());
    let began = Instant::now();
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let clock = || Some(began.elapsed().as_secs_f64()).filter(|now_s| *now_s < 4.0);
            injection.run(&clock)
        });
        while !run.is_finished() {
            during(began.elapsed().as_secs_f64());
            std::thread::sleep(Duration::from_millis(20));
        }
        run.join().unwrap()
    });
    assert!(!path.exists(), "the journal of a run that undid all goes");
    ended.map_err(|error| error.to_string())
}

/// One fault that must work, and what was seen of it. Where the machine stood still it may be too
/// late or not be seen, and is put in again.
fn one<T: Default>(
    plan: &str,
    target: &FaultTarget,
    mut during: impl FnMut(f64, &mut T),
    is_seen: impl Fn(&T) -> bool,
) -> (Fault, T) {
    let attempt = || {
        let mut seen = T::default();
        let told = broken(&[plan], target, &mut |now_s| during(now_s, &mut seen));
        (told.map(|mut told| told.remove(0)), seen)
    };
    let is_in_time = |fault: &Fault| fault.undo_s < 2.0 && (0.2..0.6).contains(&fault.begin_s);
    let (fault, seen) = again(attempt, |(fault, seen)| {
        fault.as_ref().is_ok_and(is_in_time) && is_seen(seen)
    });
    let fault = fault.unwrap();
    assert!(is_in_time(&fault) && !fault.proof.is_empty(), "{fault:?}");
    assert!(is_seen(&seen), "nobody has seen {fault:?}");
    (fault, seen)
}

/// One that must work, of which the test itself sees nothing.
fn unseen(plan: &str, target: &FaultTarget) -> Fault {
    one(plan, target, |_, _: &mut ()| {}, |_| true).0
}

/// Whether the system lets us do this; where not, the fault must be refused by its name.
fn possible(plan: &str, target: &FaultTarget, is_there: bool) -> bool {
    if !is_there {
        let name = plan.split(['=', '@']).next().unwrap();
        let refused = broken(&[plan], target, &mut |_| {}).unwrap_err();
        assert!(
            refused.contains(name) && refused.contains("it needs"),
            "{refused}"
        );
    }
    is_there
}

fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0
}

fn has_filter() -> bool {
    let listed = Command::new("nft").args(["list", "tables"]).output();
    listed.is_ok_and(|output| output.status.success())
}

fn has_tables() -> bool {
    let listed = Command::new("iptables").args(["-w", "-S"]).output();
    listed.is_ok_and(|output| output.status.success())
}

#[test]
fn a_pause_stops_a_process_with_its_children() {
    let dummy = Dummy::shell("sleep 60 & sleep 60");
    let process = dummy.process();
    let look = |_, stopped: &mut usize| {
        let tree = process.tree();
        let now = tree.iter().filter(|one| one.is_stopped()).count();
        *stopped = now.max(*stopped);
    };
    let plan = "pause@dummy:0.2+0.5";
    let (fault, _) = one(plan, &dummy.target(""), look, |stopped| *stopped == 3);
    assert_eq!(fault.proof, "3 processes in state T");
    assert!(
        process
            .tree()
            .iter()
            .all(|one| one.is_alive() && !one.is_stopped())
    );
}

#[test]
fn a_killed_server_is_started_again_and_found_for_the_next_fault() {
    let plans = [
        "kill@dummy:0.2+0.3",
        "restart@dummy:1.5+0.3",
        "pause@dummy:3+0.3",
    ];
    // A server that takes long to start is not back for the next fault.
    let attempt = || {
        let folder = Folder::new();
        let (dummy, command) = server(&folder.0);
        let target = dummy.target(&format!(",start:{command}"));
        let before = dummy.process();
        let told = broken(&plans, &target, &mut |_| {});
        (told, before, folder, dummy)
    };
    let (told, before, folder, _dummy) = again(attempt, |(told, ..)| told.is_ok());
    let told = told.unwrap();
    assert!(told[0].proof.contains("is gone, port"), "{told:?}");
    assert!(told[1].proof.contains("is gone, port"), "{told:?}");
    assert!(told[2].proof.contains("state T"), "{told:?}");
    assert!(!before.is_alive());
    let port: u16 = std::fs::read_to_string(folder.0.join("port"))
        .unwrap()
        .parse()
        .unwrap();
    let now = process::listener(port).unwrap();
    assert_ne!(now, before);
    now.signal(nix::sys::signal::Signal::SIGKILL).unwrap();
    let refused = broken(
        &plans[..1],
        &Dummy::shell("sleep 60").target(""),
        &mut |_| {},
    );
    assert!(
        refused
            .unwrap_err()
            .contains("kill is not possible at dummy; it needs a command")
    );
}

#[test]
fn a_share_of_a_core_is_proven_by_what_was_held_up() {
    let busy = Dummy::shell("while :; do :; done");
    let home = |process: Process| {
        std::fs::read_to_string(format!("/proc/{}/cgroup", process.pid)).unwrap()
    };
    let before = home(busy.process());
    let plan = "cpu=20%@dummy:0.2+1";
    if !possible(plan, &busy.target(""), is_root()) {
        return;
    }
    let look = |_, inside: &mut bool| *inside |= home(busy.process()) != before;
    let (fault, _) = one(plan, &busy.target(""), look, |inside| *inside);
    assert!(fault.proof.contains("throttled in"), "{fault:?}");
    assert_eq!(home(busy.process()), before);
    // It runs as before, although it left while it was held up.
    let used = || {
        let path = format!("/proc/{}/schedstat", busy.process().pid);
        let text = std::fs::read_to_string(path).unwrap();
        text.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let used_ns = used();
    wait_until("it runs", || used() - used_ns > 100_000_000);
    // Who does nothing is not held up: then there is no number.
    let idle = Dummy::shell("exec sleep 60");
    let error = broken(&[plan], &idle.target(""), &mut |_| {}).unwrap_err();
    assert!(error.contains("no probe has seen it"), "{error}");
    assert_eq!(home(idle.process()), before);
}

#[test]
fn who_needs_more_memory_than_is_left_waits_and_is_not_killed() {
    let folder = Folder::new();
    let done = folder.0.join("done");
    // 32 MiB of its own each time, and a line when it has had them.
    let script = format!(
        "while :; do dd if=/dev/zero of=/dev/null bs=32M count=1 && echo >> '{}'; done",
        done.display()
    );
    let rounds = || std::fs::read_to_string(&done).map_or(0, |text| text.lines().count());
    let plan = "memory=4MB@dummy:0.2+1.5";
    if !possible(plan, &Dummy::shell(&script).target(""), is_root()) {
        return;
    }
    let home = |process: Process| {
        std::fs::read_to_string(format!("/proc/{}/cgroup", process.pid)).unwrap()
    };
    let attempt = |_| {
        let greedy = Dummy::shell(&script);
        let before = home(greedy.process());
        let mut seen = Vec::new();
        let told = broken(&[plan], &greedy.target(""), &mut |now_s| {
            if (0.7..1.4).contains(&now_s) {
                seen.push(rounds());
            }
        });
        match told {
            // The kernel had no memory for a process more, and a shell that cannot fork ends.
            Err(error) if error.ends_with("dummy does not run") => None,
            // The machine stood still.
            _ if seen.len() <= 10 => None,
            told => Some((greedy, before, seen, told.unwrap().remove(0))),
        }
    };
    let (greedy, before, seen, fault) = (0..5).find_map(attempt).expect("the shell goes on");
    assert!(fault.undo_s < 20.0, "{fault:?}");
    assert!(
        fault.proof.contains("no more than 4194304 bytes"),
        "{fault:?}"
    );
    assert!(
        fault.proof.ends_with("held up, and the server itself"),
        "{fault:?}"
    );
    assert!(seen.first() == seen.last(), "{seen:?}");
    wait_until("it goes on with what it waited for", || {
        rounds() > seen[0] + 1
    });
    assert_eq!(home(greedy.process()), before);
    // A server that needs no more is not held up, and the limit is there all the same.
    let idle = Dummy::shell("exec sleep 60");
    let fault = unseen("memory=64MB@dummy:0.2+1", &idle.target(""));
    assert!(
        fault.proof.ends_with("held up, but not the server itself"),
        "{fault:?}"
    );
    // So much is never asked for.
    let error = broken(
        &["memory=900000GB@dummy:0.2+1"],
        &idle.target(""),
        &mut |_| {},
    );
    let error = error.unwrap_err();
    assert!(error.contains("it needs a limit of at most"), "{error}");
}

/// Has a process move bytes between the disk and its memory all the time, with this limit.
fn throttled(plan: &str, told: &str, script: &dyn Fn(&Path) -> String) {
    let folder = Folder::new();
    let file = folder.0.join("file");
    std::fs::write(&file, vec![7; 1 << 20]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let dummy = Dummy::shell(&script(&file));
    let target = dummy.target(&format!(",data:{}", folder.0.display()));
    let has_disk = group::disk_of(&folder.0).is_ok();
    if possible(plan, &target, is_root() && has_disk) {
        let fault = unseen(plan, &target);
        assert!(fault.proof.contains(told), "{fault:?}");
    }
}

#[test]
fn reads_are_slowed_down_to_what_is_allowed() {
    // Around the system's memory, from which reading takes no disk.
    let told = "of 1048576 allowed";
    throttled("disk_read=1MB@dummy:0.2+3", told, &|file| {
        let file = file.display();
        format!("while :; do dd if='{file}' of=/dev/null bs=64k iflag=direct; done")
    });
}

#[test]
fn writes_are_slowed_down_to_what_is_allowed() {
    let told = "of 1048576 allowed";
    throttled("disk_write=1MB@dummy:0.2+3", told, &|file| {
        let file = file.display();
        format!("while :; do dd if=/dev/zero of='{file}' bs=64k count=1 conv=fdatasync; done")
    });
}

/// As a node does that waits for others between two writes.
#[test]
fn a_process_that_writes_less_than_it_may_is_held_up_by_each_write() {
    throttled("disk_write=64kB@dummy:0.2+3", "for the disk; ", &|file| {
        let file = file.display();
        let write = format!("dd if=/dev/zero of='{file}' bs=16k count=1 conv=fdatasync");
        format!("while :; do {write}; sleep 0.5; done")
    });
}

/// A process that reads its clock all the time, with the library loaded. It writes down what it
/// reads.
fn clocked(folder: &Path) -> Dummy {
    let library = write_clock_library(folder).unwrap();
    let (file, told) = (folder.join("clock"), folder.join("told"));
    let script = format!(
        "export LD_PRELOAD='{}' {}='{}'; exec bash -c \
         'while sleep 0.01; do printf \"%(%s)T\\n\" -1 >> {}; done'",
        library.display(),
        CLOCK_VARIABLE,
        file.display(),
        told.display()
    );
    let dummy = Dummy::shell(&script);
    wait_until("the library is loaded", || {
        clock::is_loaded(&dummy.process(), &file)
    });
    dummy
}

#[test]
fn a_clock_jumps_and_is_right_again() {
    let folder = Folder::new();
    let dummy = clocked(&folder.0);
    let target = dummy.target(&format!(",clock:{}", folder.0.join("clock").display()));
    let now_s = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        now.as_secs() as i64
    };
    let last = || -> i64 {
        let text = std::fs::read_to_string(folder.0.join("told")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().last().map_or(0, |line| line.parse().unwrap())
    };
    for (plan, offset_s) in [
        ("clock=+30s@dummy:0.2+0.5", 30),
        ("clock=-40s@dummy:0.2+0.5", -40),
    ] {
        let look = |_, seen: &mut BTreeSet<i64>| {
            seen.insert((last() - now_s() + 1).div_euclid(3));
        };
        let jump = (offset_s + 1_i64).div_euclid(3);
        let (fault, _) = one(plan, &target, look, |seen| {
            seen.contains(&jump) || seen.contains(&(jump - 1))
        });
        assert!(fault.proof.contains("times with"), "{fault:?}");
        wait_until("the clock is right again", || (last() - now_s()).abs() <= 1);
    }
    // One that is wrong already is not taken.
    let clock = clock::Clock::open(&folder.0.join("clock")).unwrap();
    clock.set(5_000).unwrap();
    let error = broken(&["clock=+1s@dummy:0.2+0.5"], &target, &mut |_| {}).unwrap_err();
    assert!(error.contains("wrong by 5000 ms"), "{error}");
}

#[test]
fn a_clock_is_refused_where_the_server_does_not_use_it() {
    let folder = Folder::new();
    let _clocked = clocked(&folder.0);
    let plain = Dummy::shell("exec sleep 60");
    let refused = |more: &str| {
        broken(
            &["clock=+1s@dummy:0.2+0.5"],
            &plain.target(more),
            &mut |_| {},
        )
        .unwrap_err()
    };
    assert!(refused("").contains("trellis bench clock-shim"));
    let file = folder.0.join("clock").display().to_string();
    let error = refused(&format!(",clock:{file}"));
    assert!(
        error.contains("does not use") && error.contains(&file),
        "{error}"
    );
    // Nobody reads the clock: then there is no number.
    let library = folder.0.join("libtrellis_clock.so");
    let (library, idle) = (library.display(), folder.0.join("idle"));
    let script = format!(
        "LD_PRELOAD='{library}' {}='{}' exec sleep 60",
        CLOCK_VARIABLE,
        idle.display()
    );
    let sleeper = Dummy::shell(&script);
    wait_until("the library is loaded", || {
        clock::is_loaded(&sleeper.process(), &idle)
    });
    let target = sleeper.target(&format!(",clock:{}", idle.display()));
    let error = broken(&["clock=+1s@dummy:0.2+0.5"], &target, &mut |_| {});
    assert!(error.unwrap_err().contains("no probe has seen it"));
    assert_eq!(clock::Clock::open(&idle).unwrap().offset_ms(), Ok(0));
}

#[test]
fn a_full_disk_has_no_room_and_then_room_again() {
    let folder = Folder::new();
    let dummy = Dummy::shell("exec sleep 60");
    let target = dummy.target(&format!(",data:{}", folder.0.display()));
    // The temporary files lie on no small file system of their own.
    assert!(!possible("disk_full@dummy:0.2+0.5", &target, false));
    let mount = |arguments: &[&str]| {
        let ran = Command::new(arguments[0])
            .args(&arguments[1..])
            .arg(&folder.0)
            .output();
        ran.is_ok_and(|output| output.status.success())
    };
    if !mount(&[
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=1m",
        "trellis-fault-test",
    ]) {
        assert!(!is_root());
        return;
    }
    let more = folder.0.join("more");
    let room = || {
        let has_room = std::fs::write(&more, [1; 20_000]).is_ok();
        std::fs::remove_file(&more).unwrap();
        has_room
    };
    let look = |_, was_full: &mut bool| *was_full |= !room();
    let (fault, _) = one("disk_full@dummy:0.2+0.5", &target, look, |full| *full);
    assert!(fault.proof.contains("no space left"), "{fault:?}");
    assert!(room());
    assert!(mount(&["umount"]));
}

/// Whether a byte comes back soon, over a new connection.
fn echoes(port: u16) -> bool {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let patience = Duration::from_millis(150);
    let answered = TcpStream::connect_timeout(&address, patience).and_then(|mut stream| {
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(&[7])?;
        stream.read_exact(&mut [0])
    });
    answered.is_ok()
}

#[test]
fn a_cut_lets_nothing_through_and_a_loss_something() {
    let folder = Folder::new();
    let (dummy, _) = server(&folder.0);
    let target = dummy.target("");
    let port: u16 = std::fs::read_to_string(folder.0.join("port"))
        .unwrap()
        .parse()
        .unwrap();
    for name in ["cut", "cut_in", "cut_out", "loss=50%"] {
        let plan = format!("{name}@dummy:0.2+1.5");
        if !possible(&plan, &target, is_root() && has_filter()) {
            return;
        }
        let look = |asked_s: f64, answered: &mut [u32; 2]| {
            let asked = Instant::now();
            let is_it = echoes(port);
            // It is in from 0.6 s, if it is in time, to 1.7 s.
            let ended_s = asked_s + asked.elapsed().as_secs_f64();
            if asked_s > 0.7 && ended_s < 1.65 {
                answered[usize::from(is_it)] += 1;
            }
        };
        let is_seen = |answered: &[u32; 2]| answered[0] > 0;
        let (fault, answered) = one(&plan, &target, look, is_seen);
        assert!(fault.proof.ends_with("packets dropped"), "{fault:?}");
        assert!(
            name.starts_with("loss") || answered[1] == 0,
            "{name}: {answered:?}"
        );
        wait_until(&format!("{name} is undone"), || echoes(port));
    }
}

#[test]
fn an_open_connection_of_the_server_to_another_is_cut_too() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Bash alone connects by itself; it sends a byte now and then, and listens nowhere.
    let mut command = Command::new("bash");
    let script =
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; while :; do echo >&3; sleep 0.05; done");
    let caller = Dummy(command.args(["-c", &script]).spawn().unwrap());
    let (mut near, _) = listener.accept().unwrap();
    near.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let found = Sockets::of(&caller.process().tree()).unwrap();
    assert_eq!(found.outgoing.len(), 1, "{found:?}");
    let (dummy, _) = server(&folder.0);
    if !(is_root() && has_filter()) {
        return;
    }
    let mut table = network::Table::plan(
        "trellis_fault_test".into(),
        &dummy.process(),
        Deed::Drop(Ways::Both, 100.0),
    )
    .unwrap();
    table.add().unwrap();
    near.read_exact(&mut [0]).unwrap();
    // As if that process had made the connection after the cut.
    table.refresh(&caller.process()).unwrap();
    wait_until("packets are dropped", || table.met().unwrap() > 0);
    // What was on its way comes, and then nothing.
    near.set_read_timeout(Some(Duration::from_millis(400)))
        .unwrap();
    while near.read_exact(&mut [0]).is_ok() {}
    network::remove(&table.name, None).unwrap();
    near.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    near.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_server_in_a_network_of_its_own_is_cut_there() {
    if !(is_root() && has_filter()) {
        return;
    }
    let folder = Folder::new();
    let dummy = Dummy::shell("exec unshare -n bash -c 'exec 3<>/dev/null; sleep 60'");
    wait_until("it has a network of its own", || {
        dummy.process().is_in_other_network()
    });
    // It listens nowhere, so there is nothing to drop by.
    let process = dummy.process();
    let deed = Deed::Drop(Ways::In, 5.0);
    let needs = network::Table::plan("trellis_fault_own".into(), &process, deed);
    assert!(needs.unwrap_err().contains("a TCP port"));
    let (server, _) = server(&folder.0);
    let mut table =
        network::Table::plan("trellis_fault_own".into(), &server.process(), deed).unwrap();
    table.of = Some(process);
    table.try_it().unwrap();
    table.add().unwrap();
    assert!(network::exists(&table.name, Some(&process)));
    assert!(!network::exists(&table.name, None));
    assert_eq!(table.met(), Ok(0));
    network::remove(&table.name, Some(&process)).unwrap();
    assert!(!network::exists(&table.name, Some(&process)));
}

#[test]
fn a_server_that_ends_in_the_middle_of_a_pause_gives_no_number() {
    let attempt = || {
        let dummy = Dummy::shell("exec sleep 60");
        let process = dummy.process();
        let plan = "pause@dummy:0.2+3";
        let told = broken(&[plan], &dummy.target(""), &mut |now_s| {
            if now_s > 1.0 {
                process.signal(nix::sys::signal::Signal::SIGKILL).unwrap();
            }
        });
        told.unwrap_err()
    };
    // It may end before the pause, where that comes late.
    let is_that = |error: &String| error.contains("the process has ended");
    let error = again(attempt, is_that);
    assert!(is_that(&error), "{error}");
}

#[test]
fn nothing_is_put_in_once_the_benchmark_was_told_to_end() {
    let dummy = Dummy::shell("exec sleep 60");
    let journal = Journal::create(None).unwrap();
    lock(&journal).close().unwrap();
    let server = Server::find(&dummy.target("")).unwrap();
    let context = Context {
        token: "test".into(),
        delays: Vec::new(),
        target: Target::parse("postgres://a@127.0.0.1:1/b").unwrap(),
    };
    let refused = context.put_in(0, Kind::Pause, &server, &journal);
    assert!(refused.is_err_and(|error| error.contains("told to end")));
    assert!(!dummy.process().is_stopped());
    journal::forget(&journal);
}

#[test]
fn a_journal_with_half_a_line_is_undone_up_to_there() {
    let folder = Folder::new();
    let path = folder.0.join("journal");
    let file = folder.0.join("fill");
    std::fs::write(&file, "x").unwrap();
    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id();
    ended.wait().unwrap();
    let lines = format!(
        "{{\"benchmark\":[{pid},1]}}\n{{\"entry\":0,\"undo\":{}}}\n{{\"entry\":1,\"undo\":{{\"rem",
        undo::Undo::Remove(file.clone()).to_json()
    );
    std::fs::write(&path, lines).unwrap();
    assert_eq!(undo(&path).unwrap().len(), 1);
    assert!(!file.exists() && !path.exists());
    std::fs::write(&path, "else\n").unwrap();
    assert!(undo(&path).unwrap_err().to_string().contains("no journal"));
}

/// An agent without ssh: what it is told, and what it says.
fn agent_of(task: &serde_json::Value) -> (UnixStream, std::io::Lines<BufReader<UnixStream>>) {
    let (near, far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut output = far.try_clone().unwrap();
        // Nobody may listen any more.
        let _ = agent(far, &mut output);
    });
    let mut near = near;
    near.write_all(format!("{task}\n").as_bytes()).unwrap();
    let lines = BufReader::new(near.try_clone().unwrap()).lines();
    (near, lines)
}

fn told(lines: &mut std::io::Lines<BufReader<UnixStream>>) -> serde_json::Value {
    serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
}

#[test]
fn an_agent_has_its_faults_by_the_clock_that_it_is_told() {
    let dummy = Dummy::shell("sleep 60 & sleep 60");
    let task = json!({
        "targets": [format!("far=pid:{}", dummy.0.id())],
        "plans": ["pause@far:1+1.5"],
        "length_s": 30.0,
    });
    let (mut near, mut lines) = agent_of(&task);
    assert_eq!(told(&mut lines), json!({ "ready": true }));
    std::thread::sleep(Duration::from_millis(100));
    assert!(!dummy.process().is_stopped());
    // It is told once, and goes on by itself.
    near.write_all(b"{\"second\":0.9}\n").unwrap();
    wait_until("it is stopped", || dummy.process().is_stopped());
    let answer = told(&mut lines);
    let fault = &answer["faults"][0];
    assert_eq!(fault["proof"], "3 processes in state T", "{answer}");
    let begin_s = fault["begin_s"].as_f64().unwrap();
    assert!((1.0..10.0).contains(&begin_s), "{answer}");
    assert!(fault["undo_s"].as_f64().unwrap() < 20.0, "{answer}");
    assert!(!dummy.process().is_stopped());
}

#[test]
fn an_agent_whose_benchmark_is_gone_undoes_what_is_in() {
    let dummy = Dummy::shell("exec sleep 60");
    let task = json!({
        "targets": [format!("far=pid:{}", dummy.0.id())],
        "plans": ["pause@far:0.1+500"],
        "length_s": 600.0,
    });
    let (mut near, mut lines) = agent_of(&task);
    assert_eq!(told(&mut lines), json!({ "ready": true }));
    near.write_all(b"{\"second\":0.0}\n").unwrap();
    wait_until("it is put in", || dummy.process().is_stopped());
    near.shutdown(std::net::Shutdown::Write).unwrap();
    wait_until("it is undone", || !dummy.process().is_stopped());
}

#[test]
fn an_agent_refuses_what_is_not_possible_there() {
    let dummy = Dummy::shell("exec sleep 60");
    let refused = |target: &str, plan: &str| {
        let task = json!({ "targets": [target], "plans": [plan], "length_s": 9.0 });
        told(&mut agent_of(&task).1)["error"]
            .as_str()
            .unwrap()
            .to_string()
    };
    let target = format!("far=pid:{}", dummy.0.id());
    assert!(refused(&target, "kill@far:1+1").contains("it needs a command"));
    assert!(refused("far=pid:4194305", "pause@far:1+1").contains("no process 4194305"));
    assert!(refused(&target, "fire@far:1+1").contains("there is no fault"));
    let answer = told(&mut agent_of(&json!({ "targets": [] })).1);
    assert_eq!(answer["error"], "another release of trellis asks");
}

#[test]
fn a_delay_is_refused_where_the_server_is_elsewhere() {
    let target: FaultTarget = "far=ssh:nowhere.invalid,pid:1".parse().unwrap();
    let error = broken(&["delay=5ms@far:1+1"], &target, &mut |_| {}).unwrap_err();
    assert!(
        error.contains("it needs a server on this machine"),
        "{error}"
    );
}
