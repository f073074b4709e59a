//! `trellis bench matrix` is killed while a fault lasts: the next one undoes it and goes on.

use crate::local::Local;
use crate::support::{PROGRAM, READY_LIMIT, url, wait_until};
use drive::tpcc::csv;
use links::answers::Answers;
use links::view::Silent;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use workload::tpcc::Scale;

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
        // Of 60 that come each second; fewer where the machine stood still.
        let rate = row["committed_per_s"]["mean"].as_f64().unwrap();
        assert!(rate > 0.0 && rate < 80.0, "{row}");
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

/// Steps of a load that are done.
fn steps(local: &Local) -> u64 {
    let Some(mut link) = local.link(1, "shop") else {
        return 0;
    };
    let mut answers = Answers::new();
    match link.query("SELECT count(*) FROM tpcc_load", &mut answers) {
        Ok(()) => answers.int(0, 0, 0).unwrap_or(0) as u64,
        Err(_) => 0,
    }
}

#[test]
fn a_sweep_loads_what_is_missing_and_goes_on_with_a_load() {
    let local = Local::start("matrix-load");
    let mut link = local.link(1, "postgres").unwrap();
    link.command("CREATE DATABASE shop WITH (protocol = 'two_phase')")
        .unwrap();
    let nodes = local.file().nodes;
    let folder = local.folder.path();
    let rows = folder.join("rows");
    csv::write(&rows, Scale::reduced(6), 1, 1 << 50, &mut Silent).unwrap();
    let url = url(nodes.iter().map(|node| node.sql), "shop");
    let file = |more: &str| {
        let text = format!(
            "workload = ['tpcc', 'dike']\nurl = '{url}'\nseconds = 1\nwarmup = 0\nclients = 4\n\
             {more}"
        );
        std::fs::write(folder.join("load.toml"), text).unwrap();
    };
    let matrix = || {
        let mut command = Command::new(PROGRAM);
        command.args(["bench", "matrix", "load.toml"]);
        command.current_dir(folder).env("TMPDIR", folder);
        command.stdin(Stdio::null());
        command
    };
    let refused = |more: &str, why: &str| {
        file(more);
        let output = matrix().output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{said}");
        assert!(!folder.join("load.results").exists());
    };
    refused(
        "[load]\nwarehouses = 0\n",
        "load.toml, line 7, key load.warehouses: invalid value '0'",
    );
    refused(
        "warehouses = 5\n[load]\nwarehouses = 3\n",
        "3 are loaded, and a cell wants 5",
    );
    refused("[load]\nfrom = 'nowhere'\n", "--from needs a folder");
    refused(
        "warehouses = [3, 5]\n[load]\n",
        "cells of one database need different tables",
    );
    refused("[load]\nurl = 'here'\n", "key url: there is no such key");

    file("[load]\nfrom = 'rows'\njobs = 1\n");
    let mut killed = matrix().stdout(Stdio::null()).spawn().unwrap();
    wait_until("a part is loaded", READY_LIMIT, || steps(&local) > 20);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let before = steps(&local);
    let output = matrix().output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let warned = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}{warned}");
    assert!(told.contains("tables of database 1 of 1"), "{told}");
    // Twice it could not be loaded: all rows have keys. A run checks what is there.
    assert!(told.find("loading") < told.find("[1 of 2"), "{told}");
    assert!(before > 20 && steps(&local) > before, "{before}");
    let page = std::fs::read_to_string(folder.join("load.results/index.html")).unwrap();
    assert!(page.contains("all 2 cells have a result"));
    // All is there: nothing is loaded again. What is there and is other data fails its cells.
    file("seed = 2\n[load]\nfrom = 'rows'\n");
    let again = matrix().args(["--out", "again"]).output().unwrap();
    let told = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(
        again.status.success() && told.contains("6 warehouses loaded before"),
        "{told}"
    );
    file("seed = 3\n[load]\nwarehouses = 1\n");
    let other = matrix().args(["--out", "other"]).output().unwrap();
    let told = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(!other.status.success(), "{told}");
    assert_eq!(
        told.matches("loading: the database holds another load")
            .count(),
        2,
        "{told}"
    );
}
