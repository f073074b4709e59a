//! Clients of a database for a terminal: `trellis sql`, interactive or for scripts, and
//! `trellis dump`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backslash;
mod catalog;
pub mod client;
mod commands;
mod complete;
mod connection;
mod copy;
mod database;
pub mod dump;
mod interrupts;
mod lexer;
mod lines;
mod names;
mod output;
mod report;
mod shell;
mod syntax;
mod table;
