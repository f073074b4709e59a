//! SCRAM-SHA-256, the server's side: verifiers of passwords, and the exchange that proves to both
//! sides that the other knows one (RFC 5802, RFC 7677, channel binding of RFC 5929).
//!
//! ```text
//! client  n,,n=,r=NONCE          server  r=NONCE+OWN,s=SALT,i=COUNT
//! client  c=BINDING,r=..,p=PROOF server  v=SIGNATURE
//! ```
//!
//! The server never learns the password, and what it keeps does not serve to log in. A role that
//! does not exist gets an exchange with a made-up verifier: what it sees, and what it costs the
//! server, is the same as with a wrong password.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod certificate;
mod exchange;
mod verifier;

pub use certificate::certificate_digest;
pub use exchange::{Binding, Exchange, Refused};
pub use verifier::{Secret, Verifier, VerifierError, salt};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Bytes of a key, a digest, a proof.
pub const KEY_BYTES: usize = 32;

/// Name of the mechanism, and the scheme of a verifier's text.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// Name of the mechanism whose proof is bound to the channel's certificate.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Random bytes of a nonce, as in PostgreSQL.
pub const NONCE_BYTES: usize = 18;

type Key = [u8; KEY_BYTES];

fn mac(key: &[u8], parts: &[&[u8]]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn digest(parts: &[&[u8]]) -> Key {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().into()
}

/// Compares without telling by its time where the two differ.
fn equal(a: &Key, b: &Key) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b));
    core::hint::black_box(differ) == 0
}
