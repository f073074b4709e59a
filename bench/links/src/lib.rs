//! Connections of the benchmark to servers, whichever wire they speak, and what every part of it
//! needs beside them: which servers there are, their answers, delays, words for the screen.
//!
//! | module | content |
//! |---|---|
//! | [`link`], [`answers`], [`url`] | a connection, whichever wire the server speaks |
//! | [`stream`] | its bytes, waiting or suspended |
//! | [`tls`] | TLS: what a URL asks for, certificates |
//! | [`postgres`] | the PostgreSQL wire: a lean client with pipelined rounds and COPY |
//! | [`mysql`] | the protocol of MySQL and MariaDB |
//! | [`redis`] | that of Redis |
//! | [`etcd`] | transactions of etcd, over its JSON gateway |
//! | [`cassandra`] | the native protocol of Cassandra |
//! | [`hbase`], [`thrift`] | rows of HBase, by its Thrift 2 gateway |
//! | [`mongo`], [`bson`] | commands of MongoDB, and its documents |
//! | [`raw`] | the PostgreSQL wire message by message, and cancel requests |
//! | [`echo`] | a server that answers at once, to measure the client |
//! | [`server`] | which server, and its counters |
//! | [`homes`] | which node is home of a row |
//! | [`cpu`] | processor time of the client itself |
//! | [`delay`] | a proxy that delays, for links of one machine |
//! | [`view`] | live view and plain lines |
//! | [`metrics`] | metrics of a run while it goes on, for Prometheus |
//! | [`error`] | what ends a command, and what it did meanwhile |
//!
//! Every server is measured by the same client code through the same wire.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod answers {
    //! Rows, tags and errors of a round.
    pub use workload::wire::{Answers, ServerError};
}
pub mod bson;
pub mod cassandra;
pub mod cpu;
pub mod delay;
pub mod echo;
pub mod error;
pub mod etcd;
pub mod hbase;
pub mod homes;
pub mod link;
mod login;
pub mod metrics;
pub mod mongo;
pub mod mysql;
pub mod postgres;
pub mod raw;
pub mod redis;
pub mod server;
pub mod stream;
pub mod thrift;
pub mod tls;
pub mod url;
pub mod view;

pub use error::DriveError;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock means that another client thread panicked; its counts are still counts, and the
/// panic itself surfaces at `join`.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
