//! Nodes whose data is not there any more: they do not start, or are refused by the others.

use crate::support::{Cluster, READY_LIMIT, number, wait_until};
use std::fs;
use std::io::Write;

fn cluster(name: &str) -> Cluster {
    let cluster = Cluster::start(name, 3, 1);
    cluster.create("shop", &["CREATE TABLE t (id int PRIMARY KEY)"]);
    let mut link = cluster.link(0, "shop");
    let values: Vec<String> = (0..300).map(|id| format!("({id})")).collect();
    link.command(&format!("INSERT INTO t VALUES {}", values.join(", ")))
        .unwrap();
    cluster.wait_connected();
    cluster
}

#[test]
fn a_node_without_its_directory_does_not_start_and_is_not_taken_for_the_old_one() {
    let mut cluster = cluster("unmounted");
    cluster.kill(1);
    let data = cluster.file.nodes[1].data.clone();
    let kept = data.with_extension("kept");
    fs::rename(&data, &kept).unwrap();
    // Not there, and empty like a place where nothing is mounted.
    for round in 0..2 {
        cluster.spawn(1);
        cluster.wait_ended(1);
        let said = cluster.said(1);
        assert_eq!(
            said.matches("Is a disk not mounted?").count(),
            round + 1,
            "{said}"
        );
        fs::create_dir_all(&data).unwrap();
    }
    // Begun anew by name: the others know that there were rows, whichever of them it asks.
    for other in [0, 2] {
        cluster.forget_begun(1);
        cluster.spawn(1);
        cluster.wait_ended(1);
        let said = cluster.said(1);
        assert!(said.contains("refuses this node"), "{said}");
        assert!(said.contains("another data directory"), "{said}");
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir_all(&data).unwrap();
        cluster.kill(other);
        cluster.spawn(other);
        cluster.wait_ready(other);
    }
    let mut link = cluster.link(0, "shop");
    link.command("SET statement_timeout = '3s'").unwrap();
    assert!(
        link.command("SELECT count(*) FROM t").is_err(),
        "a third of them is away"
    );
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&kept, &data).unwrap();
    cluster.spawn(1);
    cluster.wait_ready(1);
    cluster.wait_connected();
    wait_until("all rows answer", READY_LIMIT, || {
        link.command("SELECT * FROM t").is_ok()
    });
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), 300);
}

#[test]
fn an_older_copy_of_a_directory_is_refused_by_the_others() {
    let mut cluster = cluster("older");
    let data = cluster.file.nodes[2].data.clone();
    let backup = data.with_extension("backup");
    cluster.stop(2);
    fs::create_dir_all(&backup).unwrap();
    for entry in fs::read_dir(&data).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), backup.join(entry.file_name())).unwrap();
    }
    for _ in 0..2 {
        cluster.spawn(2);
        cluster.wait_ready(2);
        cluster.wait_connected();
        cluster.kill(2);
    }
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&backup, &data).unwrap();
    cluster.spawn(2);
    cluster.wait_ended(2);
    let said = cluster.said(2);
    assert!(said.contains("it has come back with older data"), "{said}");
}

#[test]
fn a_node_without_its_journal_does_not_start() {
    let mut cluster = cluster("nojournal");
    // A checkpoint comes with the end in good order.
    cluster.stop(1);
    let data = cluster.file.nodes[1].data.clone();
    let names = fs::read_dir(&data).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
    let is = |path: &std::path::Path, part: &str| path.to_str().unwrap().contains(part);
    assert!(names.iter().any(|path| is(path, "MANIFEST")));
    for path in names.iter().filter(|path| is(path, "/journal-")) {
        fs::remove_file(path).unwrap();
    }
    cluster.spawn(1);
    cluster.wait_ended(1);
    let said = cluster.said(1);
    assert!(
        said.contains("its journal is missing from position"),
        "{said}"
    );
}

#[test]
fn a_journal_whose_end_is_cut_says_where_and_how_much() {
    let mut cluster = cluster("torn");
    cluster.kill(1);
    let data = cluster.file.nodes[1].data.clone();
    let names = fs::read_dir(&data).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.to_str().unwrap().contains("/journal-"));
    names.sort();
    let last = names.last().expect("there is a journal");
    let before = fs::metadata(last).unwrap().len();
    // Part of a record that was being written.
    let mut file = fs::File::options().append(true).open(last).unwrap();
    file.write_all(&[0x5a; 57]).unwrap();
    drop(file);
    cluster.spawn(1);
    cluster.wait_ready(1);
    let said = cluster.said(1);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(": cut "))
        .collect();
    let [line] = lines.as_slice() else {
        panic!("{said}");
    };
    assert!(line.contains("WARN"), "{line}");
    let name = last.file_name().unwrap().to_str().unwrap();
    let (_, rest) = line.split_once(&format!("{name}: cut ")).expect(line);
    let words: Vec<&str> = rest.split([' ', ',']).collect();
    let [
        bytes,
        "bytes",
        "at",
        "offset",
        offset,
        "",
        "position",
        position,
        ..,
    ] = words[..]
    else {
        panic!("{line}");
    };
    let [bytes, offset] = [bytes, offset].map(|text| text.parse::<u64>().unwrap());
    // Files are longer than what has been written; what was written is not cut.
    assert_eq!(offset + bytes, before + 57, "{line}");
    assert!(offset > 1_000, "{line}");
    assert!(position.ends_with(':'), "{line}");
    cluster.wait_connected();
    let mut link = cluster.link(0, "shop");
    assert_eq!(number(&mut link, "SELECT count(*) FROM t"), 300);
}
