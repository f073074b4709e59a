//! The simulated disk: what is synced stays, what is not may go.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base::Prng;
use sim::disk::{SimDisk, SyncStop};
use storage::{Disk, DiskFault};

fn write(disk: &SimDisk, name: &str, bytes: &[u8]) {
    let file = disk.create(name).unwrap();
    disk.write_all_at(&file, 0, bytes).unwrap();
}

#[test]
fn what_is_synced_survives_and_the_rest_is_a_prefix() {
    let (mut none, mut some, mut all) = (0, 0, 0);
    for seed in 0..200 {
        let disk = SimDisk::new();
        let file = disk.create("a").unwrap();
        disk.write_all_at(&file, 0, b"synced").unwrap();
        disk.sync(&file).unwrap();
        disk.sync_directory().unwrap();
        disk.write_all_at(&file, 6, b"12345678").unwrap();
        disk.cut_power(&mut Prng::new(seed), false);
        let content = disk.read_all("a").unwrap();
        assert_eq!(&content[..6], b"synced");
        let rest = &content[6..];
        let kept = rest
            .iter()
            .zip(b"12345678")
            .take_while(|(a, b)| a == b)
            .count();
        assert!(rest[kept..].iter().all(|byte| *byte == 0), "{rest:?}");
        match kept {
            0 => none += 1,
            8 => all += 1,
            _ => some += 1,
        }
    }
    assert!(none > 10 && some > 10 && all > 10, "{none} {some} {all}");
}

#[test]
fn what_was_overwritten_may_come_back() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new();
        write(&disk, "a", b"old!");
        let file = disk.open("a").unwrap();
        disk.sync(&file).unwrap();
        disk.sync_directory().unwrap();
        disk.set_length(&file, 2).unwrap();
        disk.write_all_at(&file, 0, b"NEW").unwrap();
        disk.cut_power(&mut Prng::new(seed), false);
        seen.insert(String::from_utf8(disk.read_all("a").unwrap()).unwrap());
    }
    for wanted in ["old!", "ol", "NEW", "Nl"] {
        assert!(seen.contains(wanted), "{wanted} is not in {seen:?}");
    }
}

#[test]
fn names_are_lost_in_order_or_in_any_order() {
    let run = |any_names| {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let disk = SimDisk::new();
            write(&disk, "a", b"a");
            write(&disk, "b", b"b");
            disk.rename("b", "c").unwrap();
            disk.cut_power(&mut Prng::new(seed), any_names);
            seen.insert(disk.list().unwrap().join(","));
        }
        seen
    };
    let ordered = run(false);
    assert_eq!(
        ordered.into_iter().collect::<Vec<_>>(),
        ["", "a", "a,b", "a,c"]
    );
    assert!(
        run(true).contains("c"),
        "a rename without the creation before it"
    );
}

#[test]
fn a_sync_can_fail_and_be_the_last() {
    let disk = SimDisk::new();
    write(&disk, "a", b"a");
    let file = disk.open("a").unwrap();
    disk.fail_next_sync();
    assert!(disk.sync(&file).is_err());
    disk.sync(&file).unwrap();
    disk.stop_at(2, SyncStop::Before);
    assert!(disk.sync(&file).is_err());
    assert!(disk.is_dead() && disk.take_stopped() && !disk.take_stopped());
    assert!(disk.read_all("a").is_err());
    disk.revive();
    assert_eq!(disk.read_all("a").unwrap(), b"a");
    assert_eq!((disk.counts().syncs, disk.counts().syncs_failed), (1, 1));
}

#[test]
fn a_full_disk_takes_a_part_and_has_room_again_after_a_cut() {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    disk.write_all_at(&file, 0, &[1; 10]).unwrap();
    disk.set_room(Some(4));
    assert_eq!(disk.write_at(&file, 10, &[2; 10]).unwrap(), 4);
    let error = disk.write_at(&file, 14, &[2; 10]).unwrap_err();
    assert_eq!(error.fault, DiskFault::NoRoom);
    // What does not grow a file needs no room.
    disk.write_all_at(&file, 0, &[3; 14]).unwrap();
    disk.set_length(&file, 8).unwrap();
    assert_eq!(disk.write_at(&file, 8, &[4; 10]).unwrap(), 6);
}
