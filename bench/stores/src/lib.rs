//! Stores of entities: databases that have nothing in common but that a client reaches them.
//!
//! | module | content |
//! |---|---|
//! | [`open`] | a store by its URL, and its clients |
//! | [`conformance`] | what every store must show, run on one |
//! | [`crash`] | servers that are killed under load |
//! | [`Clock`] | time and sleep of this machine |
//! | [`mapping`] | which store can keep entities in which way |
//! | [`redis`] | groups on Redis: a hash with WATCH or a script, or rows |
//! | [`tables`] | tables on PostgreSQL, MySQL and what speaks their protocols |
//! | [`routed`] | the same on several databases |
//! | [`packed_sql`] | packed groups there |
//! | [`sql`] | what these three share |
//! | [`etcd`] | groups on etcd: rows or one value |
//! | [`mongo`] | groups on MongoDB: one document |
//! | [`kv`], [`spread`] | what adapters of groups share: open transactions; several servers |
//! | [`grouped`] | groups that are changed one at a time, on the condition of their version |
//! | [`cassandra`] | those of Cassandra: partitions |
//! | [`hbase`] | those of HBase: rows |
//! | [`crash`] | what a store must show when its server is killed |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cassandra;
mod clock;
pub mod conformance;
pub mod crash;
pub mod etcd;
pub mod grouped;
pub mod hbase;
pub mod kv;
mod line;
pub mod mapping;
pub mod mongo;
pub mod open;
pub mod packed_sql;
pub mod redis;
pub mod routed;
pub mod spread;
pub mod sql;
pub mod tables;

pub use clock::Clock;
pub use mapping::{Kind, Mapping};
pub use open::{Db, Description, Options, Store};
