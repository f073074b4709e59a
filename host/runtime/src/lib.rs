//! Runs the shards of one node: threads, sockets, disk, timers. But for the server of `metrics` no
//! other crate of a node has system calls.
//!
//! ```text
//!            clients          other nodes
//!               |                  |
//!   shard thread: mio poll -> wire -> node::Shard::step -> effects -> one write per socket
//!               |                                               |
//!          mailbox of the other shards              journal buffer -> flusher thread -> fdatasync
//! ```
//!
//! * One thread per shard; it owns its sockets. Shards talk through mailboxes; nothing is shared
//!   but the journal's buffer, which is locked for the copy of one record.
//! * An effect that waits for a journal position is held until the flusher has reported it.
//! * A panic ends the process, whichever thread it is on; only those of parsing and planning end
//!   at the barrier.
//! * A failed write or sync of the journal ends the process: nothing after it can be promised.

pub mod access;
mod audit_log;
mod barrier;
mod beats;
pub mod checkpoint;
mod clock_watch;
pub mod cluster;
mod conn;
mod credentials;
pub mod data_dir;
mod decoding;
mod door;
mod ears;
pub mod error;
mod few_lines;
pub mod fs_disk;
mod gauges;
pub mod journal_file;
mod knocking;
mod linger;
mod login;
mod mailbox;
pub mod memory;
pub mod node_process;
mod outgoing;
mod peer_in;
mod peers;
mod preparing;
mod removal;
mod rules;
mod session_counts;
mod shard_thread;
mod slow_log;
mod tls;
mod watched;

pub use access::{AccessEntry, Loopback};
pub use barrier::end_on_panic;
pub use cluster::{ClusterFile, NodeEntry};
pub use credentials::{PeersEntry, node_name, serial_number};
pub use error::RuntimeError;
pub use memory::MemoryLimit;
pub use node::{connections_default, frame};
pub use node_process::{NodeOptions, NodeProcess, Shutdown};
