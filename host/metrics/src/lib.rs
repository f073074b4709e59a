//! What a node tells to a system that watches it, in the text format of Prometheus, and the small
//! HTTP server that hands it out. docs/metrics.md lists the metrics.
//!
//! The numbers are those of SHOW: shards are asked for the same rows, and a table says which
//! column becomes which metric. A request is answered by one thread; the shards are asked at most
//! once a second, whoever asks and however slowly the answer is read.

mod collect;
mod families;
mod page;
mod server;

pub use collect::{NodeFacts, page};
pub use families::{Family, Kind, all};
pub use server::serve;
