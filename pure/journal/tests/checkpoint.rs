//! Checkpoint files: round trips through the store, and every corruption noticed.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use base::{IndexId, KeyRange, KeyRef, NodeId, Position, Prng, ShardId, Slot, Ts, TxnId};
use journal::{
    Away, CheckpointHeader, CheckpointReader, CheckpointTables, CheckpointWriter, Fault, Held,
    Holding, JournalError, Otag, Owed, Ownership, Prepared, Shipment, Shipped, fuzz_checkpoint,
    fuzz_manifest, fuzz_record, fuzz_segment,
};
use std::sync::Arc;
use store::{CheckpointCursor, Formula, Store, Write};

const INDEX: IndexId = IndexId(16384);

fn header() -> CheckpointHeader {
    CheckpointHeader {
        cluster: 5,
        shard: ShardId(17),
        number: 3,
        start: Position(1234),
        clock_floor: Ts(99),
    }
}

fn ownership() -> Ownership {
    let otag = |grant| Otag {
        incarnation: 3,
        grant,
    };
    let key = |n| base::Key::new(INDEX, Slot(7), vec![n]);
    let held = |n, holding| Held {
        key: key(n),
        otag: otag(u64::from(n)),
        holding,
    };
    Ownership {
        held: vec![
            held(1, Holding::Owned),
            held(2, Holding::Released(ShardId(33))),
        ],
        away: vec![Away {
            key: key(5),
            owner: ShardId(33),
            otag: otag(5),
        }],
        open: vec![otag(6)],
        next: otag(9),
        shipped: vec![Shipped {
            txn: TxnId {
                shard: ShardId(17),
                incarnation: 3,
                counter: 8,
            },
            commit_ts: Ts(98),
            formulas: vec![Shipment {
                owner: ShardId(33),
                key: key(6),
                formula: Formula(vec![]),
            }],
        }],
    }
}

#[test]
fn claims_older_than_the_checkpoint_must_be_listed() {
    let ownership = ownership();
    let otag = |grant| Otag {
        incarnation: 3,
        grant,
    };
    let key = |n| base::Key::new(INDEX, Slot(7), vec![n]);
    assert!(ownership.admits(&key(5), otag(5)), "in the owner table");
    assert!(!ownership.admits(&key(5), otag(4)), "an older owner");
    assert!(!ownership.admits(&key(8), otag(5)), "it has come home");
    assert!(ownership.admits(&key(8), otag(6)), "it was under way");
    assert!(ownership.admits(&key(8), otag(9)), "granted later");
    let next_life = Otag {
        incarnation: 4,
        grant: 1,
    };
    assert!(ownership.admits(&key(8), next_life), "granted later");
}

fn tables() -> CheckpointTables {
    let txn = TxnId {
        shard: ShardId(17),
        incarnation: 1,
        counter: 2,
    };
    let key = base::Key {
        index: INDEX,
        slot: Slot(4),
        bytes: vec![1, 2],
    };
    let prepared = Prepared {
        txn,
        attempt: 2,
        shard: ShardId(17),
        prepare_ts: Ts(44),
        coordinator: ShardId(0),
        participants: vec![ShardId(0), ShardId(17)],
        writes: vec![(key, Write::Delete)],
    };
    let owed = Owed {
        txn,
        commit_ts: Ts(50),
        participants: vec![ShardId(33)],
    };
    CheckpointTables {
        prepared: vec![prepared],
        owed: vec![owed],
        ownership: ownership(),
        ..CheckpointTables::default()
    }
}

fn filled(rows: u64) -> Store {
    let (mut store, mut prng) = (Store::new(), Prng::new(1));
    for n in 0..rows {
        let slot = Slot(prng.below(5) as u16);
        let row = Write::Insert(vec![n as u8; prng.below(2000) as usize]);
        store.apply(
            KeyRef::new(INDEX, slot, &n.to_be_bytes()),
            &row,
            Ts(n + 1),
            Ts::ZERO,
        );
        if n % 5 == 0 {
            store.apply(
                KeyRef::new(INDEX, slot, &n.to_be_bytes()),
                &Write::Delete,
                Ts(rows + n + 1),
                Ts::ZERO,
            );
        }
    }
    store
}

fn write(store: &Store) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = CheckpointWriter::new(header(), &mut out);
    let mut cursor = CheckpointCursor::default();
    while !store.checkpoint_next(&mut cursor, 10_000, &mut |row| writer.row(row, &mut out)) {}
    writer.finish(&tables(), &mut out);
    out
}

type Loaded = (Store, CheckpointHeader, CheckpointTables);

fn read(bytes: &[u8], piece: usize) -> Result<Loaded, JournalError> {
    let mut store: Store = Store::new();
    let mut reader = CheckpointReader::new("c.ckp");
    for piece in bytes.chunks(piece) {
        reader.push(piece, &mut |row| store.load(row))?;
    }
    let (header, tables) = reader.finish()?;
    Ok((store, header, tables))
}

#[test]
fn a_store_survives_the_trip() {
    let store = filled(2000);
    let bytes = write(&store);
    for piece in [1 << 20, 4096, 1001] {
        let (mut loaded, read_header, read_tables) = read(&bytes, piece).unwrap();
        loaded.validate();
        assert_eq!((read_header, read_tables), (header(), tables()));
        let digest = |store: &Store| store.digest(INDEX, None, &KeyRange::all(), Ts::MAX);
        assert_eq!(digest(&loaded), digest(&store));
        assert_eq!(loaded.counts().rows, store.counts().rows);
        let tombstone = loaded.newest_ts(KeyRef::new(INDEX, Slot(0), &0u64.to_be_bytes()));
        loaded.collect(&store::Horizons::at(Ts::MAX), usize::MAX);
        assert_eq!(loaded.counts().versions, store.counts().rows, "{tombstone}");
    }
}

/// Rows that are away are written in pieces, before what else is known of ownership.
#[test]
fn pieces_of_ownership_are_put_together() {
    let mut tables = tables();
    let key = |n: u8| base::Key::new(INDEX, Slot(7), vec![9, n]);
    let otag = |n| Otag {
        incarnation: 3,
        grant: u64::from(n),
    };
    let mut bytes = Vec::new();
    let mut writer = CheckpointWriter::new(header(), &mut bytes);
    let mut whole = Ownership::default();
    for from in [10, 13, 16] {
        let held = |n| Held {
            key: key(n),
            otag: otag(n),
            holding: Holding::Owned,
        };
        let away = |n| Away {
            key: key(n + 100),
            owner: ShardId(33),
            otag: otag(n),
        };
        let piece = Ownership {
            held: (from..from + 3).map(held).collect(),
            away: (from..from + 3).map(away).collect(),
            ..Ownership::default()
        };
        assert_eq!(piece.rows(), 6);
        writer.away(&piece, &mut bytes);
        whole.append(piece);
    }
    // What was open at the start stands behind them.
    tables.ownership.away.clear();
    tables.ownership.next = otag(50);
    writer.finish(&tables, &mut bytes);
    whole.append(tables.ownership.clone());
    let (_, _, found) = read(&bytes, 999).unwrap();
    assert_eq!(found.ownership, whole);
    assert!(
        found.ownership.admits(&key(114), otag(14)) && found.ownership.admits(&key(1), otag(6))
    );
    assert!(!found.ownership.admits(&key(114), otag(13)));
}

/// Large promises are written slice by slice, and are whole again when they are read.
#[test]
fn slices_of_promises_are_put_together() {
    let whole = tables();
    let mut tables = tables();
    let promise = tables.prepared.remove(0);
    let other = Prepared {
        attempt: 3,
        shard: ShardId(18),
        ..promise.clone()
    };
    let slice = |from: u8| {
        let key = |n| base::Key::new(INDEX, Slot(4), vec![from, n]);
        let writes = (0..100).map(|n| (key(n), Write::Put(vec![n; 50])));
        Arc::new(writes.collect::<Vec<_>>())
    };
    let bare = |promise: &Prepared| Prepared {
        writes: Vec::new(),
        ..promise.clone()
    };
    for from in 1..4 {
        tables.sliced.push((bare(&promise), slice(from)));
    }
    tables.sliced.push((bare(&other), slice(7)));
    let mut bytes = Vec::new();
    let mut writer = CheckpointWriter::new(header(), &mut bytes);
    for (promise, writes) in &tables.sliced[..2] {
        writer.slice(promise, writes, &mut bytes);
    }
    let rest = CheckpointTables {
        sliced: tables.sliced[2..].to_vec(),
        ..tables.clone()
    };
    writer.finish(&rest, &mut bytes);
    let (_, _, found) = read(&bytes, 999).unwrap();
    let all = (1..4).flat_map(|from| slice(from).to_vec());
    assert_eq!(found.prepared[0].writes, all.collect::<Vec<_>>());
    assert_eq!(found.prepared[1].writes, *slice(7));
    assert_eq!((found.prepared.len(), &found.owed), (2, &whole.owed));
    assert_eq!(found, tables.joined());
}

#[test]
fn an_empty_store_has_a_checkpoint() {
    let (loaded, ..) = read(&write(&Store::new()), 7).unwrap();
    assert_eq!(loaded.counts().rows, 0);
}

#[test]
fn every_flipped_bit_and_every_cut_is_an_error_with_its_place() {
    let bytes = write(&filled(8));
    let mut broken = bytes.clone();
    for bit in 0..bytes.len() * 8 {
        broken[bit / 8] ^= 1 << (bit % 8);
        let error = read(&broken, 1 << 20)
            .err()
            .unwrap_or_else(|| panic!("bit {bit}"));
        assert_eq!(error.file, "c.ckp");
        assert!(error.offset <= (bit / 8) as u64, "bit {bit}: {error}");
        broken[bit / 8] ^= 1 << (bit % 8);
    }
    for len in 0..bytes.len() {
        let error = read(&bytes[..len], 1 << 20)
            .err()
            .unwrap_or_else(|| panic!("cut {len}"));
        assert_eq!(error.fault, Fault::Truncated);
    }
    broken.push(0);
    let error = read(&broken, 1 << 20).err().expect("a byte follows");
    assert_eq!(error.fault, Fault::Trailing);
}

#[test]
fn lost_and_swapped_blocks_are_noticed() {
    // Blocks behind the header, each with 9 bytes of frame.
    let bytes = write(&filled(2000));
    let (head, mut rest) = bytes.split_at(journal::checkpoint::CHECKPOINT_HEADER_BYTES);
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[1..5].try_into().unwrap()) as usize;
        let (block, behind) = rest.split_at(9 + len);
        blocks.push(block);
        rest = behind;
    }
    assert!(blocks.len() > 5);
    let join = |blocks: &[&[u8]]| [head, &blocks.concat()].concat();
    assert!(read(&join(&blocks), 1 << 20).is_ok());
    let footer = (bytes.len() - blocks[blocks.len() - 1].len()) as u64;
    let lost = read(&join(&[&blocks[..1], &blocks[2..]].concat()), 1 << 20)
        .err()
        .unwrap();
    assert_eq!(
        (lost.fault, lost.offset),
        (Fault::Count, footer - blocks[1].len() as u64)
    );
    blocks.swap(0, 1);
    let swapped = read(&join(&blocks), 1 << 20).err().unwrap();
    assert_eq!((swapped.fault, swapped.offset), (Fault::Count, footer));
}

/// Random and mutated bytes: nothing panics.
#[test]
fn hostile_bytes_are_refused_quietly() {
    let checkpoint = write(&filled(20));
    let mut segment = journal::SegmentHeader {
        cluster: 1,
        node: NodeId(1),
        start: Position(0),
    }
    .encode()
    .to_vec();
    let txn = TxnId {
        shard: ShardId(0),
        incarnation: 1,
        counter: 2,
    };
    let mut payloads = Vec::new();
    for record in [
        journal::Record::NodeStart {
            incarnation: 1,
            clock_bound: Ts(5),
            view: 1,
        },
        journal::Record::Commit {
            txn,
            commit_ts: Ts(9),
            writes: vec![(ShardId(0), tables().prepared[0].writes.clone())],
            chunks: vec![(ShardId(1), 3)],
        },
        journal::Record::Resolved {
            txn,
            shard: ShardId(0),
            commit_ts: Some(Ts(1)),
        },
    ] {
        let mut payload = Vec::new();
        record.encode(&mut payload);
        journal::frame(&payload, &mut segment);
        payloads.push(payload);
    }
    let manifest = journal::Manifest::default().encode();
    let mut prng = Prng::new(9);
    for _ in 0..3000 {
        let pick = prng.below(payloads.len() as u64) as usize;
        fuzz_record(&mutated(&mut prng, &payloads[pick]));
        fuzz_segment(&mutated(&mut prng, &segment));
        fuzz_manifest(&mutated(&mut prng, &manifest));
    }
    for _ in 0..300 {
        fuzz_checkpoint(&mutated(&mut prng, &checkpoint));
    }
}

fn mutated(prng: &mut Prng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..prng.below(4) {
        let at = prng.below(bytes.len() as u64) as usize;
        match prng.below(4) {
            0 => bytes[at] = prng.next_u64() as u8,
            1 => bytes.truncate(at + 1),
            2 => bytes.insert(at, prng.next_u64() as u8),
            _ => bytes[at] ^= 1 << prng.below(8),
        }
    }
    bytes
}
