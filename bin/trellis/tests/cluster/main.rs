//! Tests against real processes: clusters of the built program on loopback, killed, filled up and
//! fed with rubbish.
//!
//! Every test has a cluster of its own in a temporary directory; all waits have deadlines, and
//! what a test starts it ends, by process number.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod access;
mod audit_log;
mod bank;
mod blocks_kill;
mod bulk;
mod client_certificates;
mod commands;
mod connections;
mod contention;
mod copies;
mod cost;
mod crash;
mod disk_full;
mod distribution;
mod dump;
mod entities;
mod errors;
mod fault;
mod fault_elsewhere;
mod frames;
mod function;
mod give_way;
mod histories;
mod in_doubt;
mod interrupted;
mod large_values;
mod leap;
mod load;
mod local;
mod locks;
mod matrix;
mod memory_limit;
mod metrics;
mod missing;
mod nodes;
mod peers;
mod pending;
mod pipeline;
mod restart;
mod row_version;
mod schema;
mod schema_kill;
mod signals;
mod slow_log;
mod sql_client;
mod starting;
mod starved;
mod supervised;
mod support;
mod table_locks_kill;
mod waits;
mod workers;
