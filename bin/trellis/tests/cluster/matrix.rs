//! `trellis bench matrix` is killed while a fault lasts: the next one undoes it and goes on.

use crate::local::Local;
use crate::support::{PROGRAM, READY_LIMIT, url, wait_until};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// State of a process, by one letter.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim().chars().next()
}

fn cells(folder: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder.join("my.results/cells"));
    let files = files.into_iter().flatten().flatten();
    files
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(file.path()).unwrap())
        })
        .filter(|(name, _)| name.ends_with(".json"))
        .collect()
}

#[test]
fn a_killed_sweep_is_undone_and_goes_on() {
    let local = Local::start("matrix");
    let mut link = local.link(1, "postgres").unwrap();
    link.command("CREATE DATABASE shop WITH (protocol = 'two_phase')")
        .unwrap();
    let nodes = local.file().nodes;
    let folder = local.folder.path();
    let text = format!(
        "workload = 'counter'\nurl = '{}'\ntarget-data = '{}'\nrate = 60\nclients = [8, 16]\n\
         seconds = 3\nwarmup = 1\nfault = [false, 'pause@node2:1+1']\n[matrix]\norder = 'file'\n",
        url(nodes.iter().map(|node| node.sql), "shop"),
        local.data().display()
    );
    std::fs::write(folder.join("my.toml"), text).unwrap();
    let matrix = || {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "matrix", "my.toml"]);
        // Other tests undo what they find among the temporary files.
        command.current_dir(folder).env("TMPDIR", folder);
        command.stdin(Stdio::null());
        command
    };
    let mut killed = matrix().stdout(Stdio::null()).spawn().unwrap();
    wait_until("node 2 is stopped", READY_LIMIT, || {
        state(local.pid(2)) == Some('T')
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let before = cells(folder);
    assert_eq!(before.len(), 1, "the cell without fault has a result");
    assert_eq!(state(local.pid(2)), Some('T'));
    let output = matrix().output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let warned = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}{warned}");
    assert!(
        warned.contains("an earlier run left a fault; undone"),
        "{warned}"
    );
    assert_ne!(state(local.pid(2)), Some('T'));
    assert!(told.contains("4 cells, 1 done before"), "{told}");
    assert!(told.contains("[3 of 3"), "{told}");
    let after = cells(folder);
    assert_eq!(after.len(), 4);
    for (name, text) in &before {
        assert_eq!(after.get(name), Some(text), "a result is not made again");
    }
    let json = std::fs::read_to_string(folder.join("my.results/summary.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(
        (rows.len(), json["failed"].as_u64()),
        (4, Some(0)),
        "{json}"
    );
    for row in rows {
        let rate = row["committed_per_s"]["mean"].as_f64().unwrap();
        assert!((20.0..80.0).contains(&rate), "{row}");
        let is_broken = row["settings"]["fault"] != "none";
        assert_eq!(row["depth"].is_object(), is_broken, "{row}");
        assert!(row["relative_to_no_fault"].is_number(), "{row}");
    }
    let page = std::fs::read_to_string(folder.join("my.results/index.html")).unwrap();
    assert!(page.contains("all 4 cells have a result") && page.contains("class=\"heat\""));
    // Nothing is left to do, and another file is refused.
    let again = matrix().output().unwrap();
    assert!(String::from_utf8_lossy(&again.stdout).contains("4 done before"));
    std::fs::write(
        folder.join("my.toml"),
        "workload = 'bank'\nurl = 'postgres://a@b/c'\n",
    )
    .unwrap();
    let refused = matrix().output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("of other settings"), "{refused}");
}
