//! What a node writes to disk and reads again: journal records, checkpoint files, and the decisions
//! of recovery.
//!
//! ```text
//! journal segment   header | record | record | ...          one endless journal per node
//! checkpoint file   header | rows | rows | ... | tables | footer   one per shard
//! manifest          header | which checkpoint is current, catalog, clock bound
//! ```
//!
//! `docs/formats.md` describes the formats. This crate turns values into bytes, and bytes into
//! values or errors that name file and offset. It does no I/O and keeps no files open: the host
//! writes, syncs, names directories and hands over what it has read. `postcard` encodes what is
//! small or rare through `base::codec`; rows of checkpoints have a layout of their own.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

extern crate alloc;

pub mod checkpoint;
pub mod fault;
mod fold_order;
mod fuzz;
pub mod manifest;
pub mod ownership;
mod parse;
pub mod reader;
pub mod record;
mod recovered;
pub mod recovery;
pub mod segment;
pub mod verdict;
pub mod vote;

pub use checkpoint::{
    CheckpointHeader, CheckpointReader, CheckpointTables, CheckpointWriter, Owed, Prepared,
    Unfolded,
};
pub use fault::{Fault, JournalError};
pub use fuzz::{fuzz_checkpoint, fuzz_manifest, fuzz_record, fuzz_segment};
pub use manifest::Manifest;
pub use ownership::{Away, Held, Holding, Otag, Ownership, Shipment, Shipped};
pub use reader::{Entry, Reader, Tail};
pub use record::{
    ChunkRef, CommitRef, DecisionRef, PrepareRef, RECORD_BYTES_MAX, Record, ShardWrites, Writes,
    WritesRef, encode_chunk, encode_commit, encode_decision, encode_prepare, frame,
};
pub use recovered::RecoveredShard;
pub use recovery::{Recovery, Redo, Replay, ReplayStart, recover};
pub use segment::{FORMAT_VERSION, SEGMENT_HEADER_BYTES, SegmentHeader};
pub use verdict::{Evidence, Verdict, judge};
pub use vote::{Accepted, Ballot, Vote};
