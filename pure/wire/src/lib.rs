//! The PostgreSQL wire protocol, version 3.0: messages, replies, and their bytes, nothing more.
//!
//! ```text
//! bytes of a socket -> Decoder -> Incoming -> session
//! session -> Reply -> encode -> bytes of the socket's buffer
//! ```
//!
//! Invariants:
//! * no input makes the decoder panic, reserve more than has arrived (rounded up), or lose its
//!   place without saying so (`Malformed { fatal: true }`, after which it yields nothing);
//! * the split of the bytes into reads does not change the messages ([`fuzz()`] checks both);
//! * a row is encoded without allocating beyond the growth of the output buffer.
//!
//! It keeps no session state: what a message means at a given moment is the session's matter.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod authentication;
mod body;
mod decode;
mod encode;
mod fuzz;
mod message;

pub use base::Tag;
pub use decode::{Decoder, Incoming, MESSAGE_BYTES_MAX, STARTUP_BYTES_MAX, cancel_request};
pub use encode::encode;
pub use fuzz::fuzz;
pub use message::{ClientMessage, Format, Reply, Severity, TxnStatus};
