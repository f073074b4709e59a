//! What a node does when some of its files are missing, cut or damaged.

use base::{NodeId, Position, ShardId, Time, Ts};
use journal::checkpoint::checkpoint_name;
use journal::manifest::MANIFEST_NAME;
use journal::segment::segment_name;
use journal::{CheckpointHeader, CheckpointTables, CheckpointWriter, Fault, Manifest, Record};
use journal::{SEGMENT_HEADER_BYTES, frame};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use storage::mark::MARK_NAME;
use storage::{Acquaintances, Introduction, Stranger};
use storage::{Disk, DiskError, DiskFault, Identity, JournalLimits, Missing, Recovered};
use storage::{StorageError, open};

/// Files in memory; all is durable at once.
#[derive(Clone, Default)]
struct MemDisk(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

fn not_found(name: &str) -> DiskError {
    DiskError {
        action: "find",
        file: name.into(),
        fault: DiskFault::NotFound,
    }
}

impl Disk for MemDisk {
    type File = String;

    fn list(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.0.borrow().keys().cloned().collect())
    }
    fn read(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<(), DiskError> {
        let files = self.0.borrow();
        take(files.get(name).ok_or_else(|| not_found(name))?);
        Ok(())
    }
    fn open(&self, name: &str) -> Result<String, DiskError> {
        let found = self.0.borrow().contains_key(name);
        found.then(|| name.into()).ok_or_else(|| not_found(name))
    }
    fn create(&self, name: &str) -> Result<String, DiskError> {
        self.0.borrow_mut().insert(name.into(), Vec::new());
        Ok(name.into())
    }
    fn write_at(&self, file: &String, offset: u64, bytes: &[u8]) -> Result<usize, DiskError> {
        let mut files = self.0.borrow_mut();
        // A file that has got another name in the meantime, as on a real disk.
        let name = if files.contains_key(file) {
            file
        } else {
            MARK_NAME
        };
        let content = files.get_mut(name).ok_or_else(|| not_found(file))?;
        let end = offset as usize + bytes.len();
        content.resize(content.len().max(end), 0);
        content[offset as usize..end].copy_from_slice(bytes);
        Ok(bytes.len())
    }
    fn set_length(&self, file: &String, length: u64) -> Result<(), DiskError> {
        let mut files = self.0.borrow_mut();
        let content = files.get_mut(file).ok_or_else(|| not_found(file))?;
        content.resize(length as usize, 0);
        Ok(())
    }
    fn sync(&self, _file: &String) -> Result<(), DiskError> {
        Ok(())
    }
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let content = self.0.borrow_mut().remove(from);
        let content = content.ok_or_else(|| not_found(from))?;
        self.0.borrow_mut().insert(to.into(), content);
        Ok(())
    }
    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let removed = self.0.borrow_mut().remove(name);
        removed.map(|_| ()).ok_or_else(|| not_found(name))
    }
    fn sync_directory(&self) -> Result<(), DiskError> {
        Ok(())
    }
}

impl MemDisk {
    fn copy(&self) -> MemDisk {
        MemDisk(Rc::new(RefCell::new(self.0.borrow().clone())))
    }
    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> &MemDisk {
        change(
            self.0
                .borrow_mut()
                .get_mut(name)
                .expect("the file is there"),
        );
        self
    }
}

fn start(disk: &MemDisk, begin: bool) -> Result<Recovered<MemDisk>, StorageError> {
    let identity = Identity {
        cluster: 7,
        node: NodeId(2),
        shards: 1,
        begin,
        directory: 99,
    };
    let now = Time(1_000_000);
    open(disk, identity, JournalLimits::default(), now, &mut |_| {})
}

fn refusal(disk: &MemDisk, begin: bool) -> StorageError {
    match start(disk, begin) {
        Ok(_) => panic!("it starts"),
        Err(error) => error,
    }
}

fn missing(disk: &MemDisk, begin: bool) -> Missing {
    match refusal(disk, begin) {
        StorageError::Missing { what, .. } => what,
        other => panic!("{other}"),
    }
}

/// One record as it stands in a segment.
fn framed() -> Vec<u8> {
    let mut payload = Vec::new();
    Record::ClockBound { ts: Ts(9) }.encode(&mut payload);
    let mut bytes = Vec::new();
    frame(&payload, &mut bytes);
    bytes
}

/// A node that was started twice and has journaled ten records since, the first five of which are
/// marked. The second value is the position of the mark.
fn used() -> (MemDisk, Position) {
    let disk = MemDisk::default();
    assert_eq!(start(&disk, true).expect("it is new").incarnation, 1);
    let mut node = start(&disk, false).expect("it was begun");
    assert_eq!(node.incarnation, 2);
    assert_eq!(node.mark.directory(), 99);
    let mut marked = Position(0);
    for number in 0..10 {
        node.writer.write(&framed()).expect("memory takes it");
        let durable = node.writer.sync().expect("memory takes it");
        if number < 5 {
            node.mark.note(durable).expect("memory takes it");
            marked = durable;
        }
    }
    (disk, marked)
}

const FIRST: Position = Position(0);

#[test]
fn an_empty_directory_is_refused_unless_it_is_asked_for() {
    let disk = MemDisk::default();
    assert_eq!(missing(&disk, false), Missing::All);
    assert!(disk.list().expect("a directory").is_empty(), "untouched");
    // A first start that a crash ended before anything was durable.
    disk.create(&segment_name(FIRST)).expect("memory takes it");
    assert_eq!(missing(&disk, false), Missing::All);
    assert_eq!(start(&disk, true).expect("asked for").incarnation, 1);
    // Asked for again: there is something, which counts.
    assert_eq!(start(&disk, true).expect("it is there").incarnation, 2);
}

#[test]
fn a_missing_journal_is_refused() {
    let (disk, _) = used();
    let without = disk.copy();
    without.remove(&segment_name(FIRST)).expect("it was there");
    for begin in [false, true] {
        let wanted = Missing::Journal {
            wanted: FIRST,
            found: None,
        };
        assert_eq!(missing(&without, begin), wanted);
    }
    // Beside a manifest, too, and if only its beginning is gone.
    let manifest = Manifest {
        cluster: 7,
        node: NodeId(2),
        journal_from: Position(30),
        incarnation: 2,
        ..Manifest::default()
    };
    let put = |disk: &MemDisk| {
        let file = disk.create(MANIFEST_NAME).expect("memory takes it");
        disk.write_all_at(&file, 0, &manifest.encode())
            .expect("memory takes it");
    };
    put(&disk);
    assert_eq!(
        start(&disk.copy(), false)
            .expect("all is there")
            .incarnation,
        3
    );
    put(&without);
    let wanted = Position(30);
    assert_eq!(
        missing(&without, true),
        Missing::Journal {
            wanted,
            found: None
        }
    );
    let later = Position(31);
    without
        .create(&segment_name(later))
        .expect("memory takes it");
    let found = Some(later);
    assert_eq!(missing(&without, false), Missing::Journal { wanted, found });
    without.remove(MANIFEST_NAME).expect("it was there");
    assert_eq!(missing(&without, false), Missing::Manifest);
}

#[test]
fn a_cut_of_what_was_durable_is_refused_and_a_later_one_is_told() {
    let (disk, marked) = used();
    let name = segment_name(FIRST);
    let length = disk.read_all(&name).expect("it is there").len();
    let record = framed().len();
    for cut in 1..length - SEGMENT_HEADER_BYTES {
        let copy = disk.copy();
        copy.change(&name, |bytes| bytes.truncate(length - cut));
        let left = (length - cut - SEGMENT_HEADER_BYTES) as u64;
        if left < marked.0 {
            match refusal(&copy, true) {
                StorageError::Cut { end, known, .. } => {
                    assert_eq!(known, marked);
                    assert!(end.0 <= left, "{cut} bytes cut");
                }
                other => panic!("{cut} bytes cut: {other}"),
            }
            assert_eq!(copy.read_all(&name).expect("untouched").len(), length - cut);
            continue;
        }
        let started = start(&copy, false).expect("nobody was told of the rest");
        assert_eq!(started.incarnation, 3);
        match started.torn {
            None => assert_eq!(cut % record, 0),
            Some(torn) => {
                assert_eq!(torn.bytes as usize, record - cut % record);
                assert_eq!(torn.end.0, left - torn.bytes);
            }
        }
    }
}

#[test]
fn what_was_only_hinted_at_is_known_unless_it_is_lost() {
    let (disk, marked) = used();
    let mut node = start(&disk, false).expect("it was begun");
    let begun = node.writer.position();
    assert!(begun > marked, "a start is a mark, too");
    let mut hinted = begun;
    for _ in 0..7 {
        node.writer.write(&framed()).expect("memory takes it");
        hinted = node.writer.sync().expect("memory takes it");
        node.mark.hint(hinted).expect("memory takes it");
    }
    let name = segment_name(FIRST);
    disk.change(&name, |bytes| bytes.truncate(SEGMENT_HEADER_BYTES));
    let known = |disk: &MemDisk| match refusal(disk, true) {
        StorageError::Cut { known, .. } => known,
        other => panic!("{other}"),
    };
    assert_eq!(known(&disk), hinted);
    // A hint that is torn by a power cut leaves what was durable, however many came before.
    let slots = [0, 4096].map(|slot| {
        let copy = disk.copy();
        copy.change(MARK_NAME, |bytes| bytes[slot + 20] ^= 1);
        known(&copy)
    });
    assert!(
        slots.contains(&hinted) && slots.contains(&begun),
        "{slots:?}"
    );
    // Made durable after hints, it is so.
    node.mark.note(hinted).expect("memory takes it");
    assert_eq!(known(&disk), hinted);
}

#[test]
fn one_torn_slot_of_the_mark_leaves_the_other_and_two_are_refused() {
    let (disk, marked) = used();
    let mut known = Vec::new();
    for slot in [0, 4096] {
        let copy = disk.copy();
        copy.change(MARK_NAME, |bytes| bytes[slot + 20] ^= 1);
        start(&copy.copy(), false).expect("the other slot is whole");
        // The journal is gone but for its header: what the mark knows is in the message.
        copy.change(&segment_name(FIRST), |bytes| {
            bytes.truncate(SEGMENT_HEADER_BYTES);
        });
        match refusal(&copy, true) {
            StorageError::Cut { known: mark, .. } => known.push(mark),
            other => panic!("{other}"),
        }
    }
    known.sort();
    assert_eq!(known[1], marked);
    assert_eq!(known[0].0, marked.0 - framed().len() as u64);
    disk.change(MARK_NAME, |bytes| bytes.fill(7));
    assert!(matches!(refusal(&disk, false), StorageError::Journal(_)));
}

#[test]
fn a_mark_of_another_node_is_refused() {
    let (disk, _) = used();
    let identity = Identity {
        cluster: 7,
        node: NodeId(3),
        shards: 1,
        begin: false,
        directory: 1,
    };
    let limits = JournalLimits::default();
    let refused = open(&disk, identity, limits, Time(1), &mut |_| {}).err();
    assert!(matches!(refused, Some(StorageError::Foreign { .. })));
}

/// A file of another checkpoint, shard, node or cluster under the name that the manifest asks for.
#[test]
fn a_checkpoint_that_the_manifest_does_not_mean_is_refused() {
    let shard = ShardId::new(NodeId(2), 0);
    let meant = CheckpointHeader {
        cluster: 7,
        shard,
        number: 1,
        start: Position(0),
        clock_floor: Ts(9),
    };
    let begun = |header: CheckpointHeader| {
        let (disk, _) = used();
        let mut bytes = Vec::new();
        let writer = CheckpointWriter::new(header, &mut bytes);
        writer.finish(&CheckpointTables::default(), &mut bytes);
        let manifest = Manifest {
            cluster: 7,
            node: NodeId(2),
            number: 1,
            shards: vec![(shard, Position(0))],
            incarnation: 2,
            ..Manifest::default()
        };
        let mut files = disk.0.borrow_mut();
        files.insert(checkpoint_name(1, shard), bytes);
        files.insert(MANIFEST_NAME.into(), manifest.encode());
        drop(files);
        start(&disk, false).map(|node| node.incarnation)
    };
    assert_eq!(begun(meant).expect("it is the right one"), 3);
    let (cluster, number, start) = (8, 2, Position(1));
    let other_node = ShardId::new(NodeId(1), 0);
    let other_shard = ShardId::new(NodeId(2), 1);
    let others = [
        ("cluster", CheckpointHeader { cluster, ..meant }),
        (
            "node",
            CheckpointHeader {
                shard: other_node,
                ..meant
            },
        ),
        (
            "shard",
            CheckpointHeader {
                shard: other_shard,
                ..meant
            },
        ),
        ("checkpoint", CheckpointHeader { number, ..meant }),
        ("checkpoint", CheckpointHeader { start, ..meant }),
    ];
    for (what, header) in others {
        let Err(StorageError::Journal(error)) = begun(header) else {
            panic!("{what}");
        };
        assert_eq!(error.fault, Fault::Foreign(what));
    }
}

#[test]
fn who_was_met_is_remembered() {
    let disk = MemDisk::default();
    let who = |directory, incarnation| Introduction {
        directory,
        incarnation,
    };
    let meet = |now| {
        let mut met = Acquaintances::read(&disk).expect("it is whole");
        met.meet(NodeId(2), now).expect("memory takes it")
    };
    assert_eq!(meet(who(5, 3)), Ok(()));
    assert_eq!(meet(who(5, 3)), Ok(()));
    assert_eq!(meet(who(5, 4)), Ok(()));
    assert_eq!(meet(who(5, 3)), Err(Stranger::EarlierLife(4)));
    assert_eq!(meet(who(6, 5)), Err(Stranger::OtherDirectory));
    assert_eq!(meet(who(5, 4)), Ok(()));
    disk.change("PEERS", |bytes| bytes[9] ^= 1);
    assert!(Acquaintances::read(&disk).is_err());
}
