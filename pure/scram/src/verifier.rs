//! What a server keeps of a password.

use crate::{KEY_BYTES, Key, MECHANISM, digest, equal, mac};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use core::fmt;

/// Rounds of the function that makes a key of a password, as in PostgreSQL.
const ROUNDS: u32 = 4096;
/// Most rounds that a verifier may ask of a client.
const ROUNDS_MAX: u32 = 10_000_000;
/// Bytes of a salt that this side draws, as in PostgreSQL.
pub(crate) const SALT_BYTES: usize = 16;
/// Longest salt of a verifier that was made elsewhere.
const SALT_BYTES_MAX: usize = 1024;

/// What a server keeps of a password; its text is that of PostgreSQL's `pg_authid.rolpassword`.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    pub(crate) salt: Vec<u8>,
    pub(crate) rounds: u32,
    pub(crate) stored: Key,
    pub(crate) server: Key,
}

/// A salt that is another one for each seed.
pub fn salt(seed: &[u8]) -> [u8; SALT_BYTES] {
    let mut salt = [0; SALT_BYTES];
    salt.copy_from_slice(&digest(&[b"salt", seed])[..SALT_BYTES]);
    salt
}

/// A text that is no verifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifierError;

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not of the form {MECHANISM}$ROUNDS:SALT$STORED_KEY:SERVER_KEY"
        )
    }
}

/// What a server draws verifiers of roles from that do not exist. It is the same for as long as
/// the passwords are the same, or else the made-up salts of such roles would change between
/// attempts, and those of others not.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Key);

impl Secret {
    /// From all verifiers of a server.
    pub fn of<'a>(verifiers: impl Iterator<Item = &'a Verifier>) -> Secret {
        let keys: Vec<&[u8]> = verifiers.map(|v| &v.stored[..]).collect();
        Secret(mac(b"roles that do not exist", &keys))
    }
}

impl Verifier {
    /// For `password`, with 16 random bytes.
    ///
    /// Cost: some milliseconds, on purpose.
    pub fn new(password: &str, salt: [u8; SALT_BYTES]) -> Verifier {
        let salted = salted(&prepared(password), &salt, ROUNDS);
        Verifier {
            salt: salt.to_vec(),
            rounds: ROUNDS,
            stored: digest(&[&mac(&salted, &[b"Client Key"])]),
            server: mac(&salted, &[b"Server Key"]),
        }
    }

    /// For a role that does not exist: no password fits.
    pub fn mock(secret: &Secret, role: &str) -> Verifier {
        let drawn = |what: &str| mac(&secret.0, &[what.as_bytes(), role.as_bytes()]);
        Verifier {
            salt: drawn("salt")[..SALT_BYTES].to_vec(),
            rounds: ROUNDS,
            stored: drawn("stored"),
            server: drawn("server"),
        }
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// The text has another form, or its numbers are out of range.
    pub fn parse(text: &str) -> Result<Verifier, VerifierError> {
        let parts = || {
            let rest = text.strip_prefix(MECHANISM)?.strip_prefix('$')?;
            let (head, keys) = rest.split_once('$')?;
            let (rounds, salt) = head.split_once(':')?;
            let (stored, server) = keys.split_once(':')?;
            let rounds = rounds.parse().ok()?;
            let salt = BASE64_STANDARD.decode(salt).ok()?;
            let fits =
                (1..=ROUNDS_MAX).contains(&rounds) && (1..=SALT_BYTES_MAX).contains(&salt.len());
            fits.then_some(Verifier {
                salt,
                rounds,
                stored: key(stored)?,
                server: key(server)?,
            })
        };
        parts().ok_or(VerifierError)
    }

    /// Whether this is the verifier of `password`. Cost: some milliseconds.
    pub fn fits(&self, password: &str) -> bool {
        let salted = salted(&prepared(password), &self.salt, self.rounds);
        equal(&self.server, &mac(&salted, &[b"Server Key"]))
    }
}

fn key(text: &str) -> Option<Key> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| -> String { BASE64_STANDARD.encode(bytes) };
        let (salt, stored, server) = (text(&self.salt), text(&self.stored), text(&self.server));
        write!(f, "{MECHANISM}${}:{salt}${stored}:{server}", self.rounds)
    }
}

/// The keys stay out of logs.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verifier of {} rounds", self.rounds)
    }
}

/// As clients do: a password that SASLprep refuses is taken as it is.
fn prepared(password: &str) -> Cow<'_, str> {
    stringprep::saslprep(password).unwrap_or(Cow::Borrowed(password))
}

/// `Hi` of RFC 5802: PBKDF2 with one block.
fn salted(password: &str, salt: &[u8], rounds: u32) -> Key {
    let mut last = mac(password.as_bytes(), &[salt, &1u32.to_be_bytes()]);
    let mut sum = last;
    for _ in 1..rounds {
        last = mac(password.as_bytes(), &[&last]);
        for index in 0..KEY_BYTES {
            sum[index] ^= last[index];
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn texts_go_both_ways() {
        let made = Verifier::new("secret", *b"0123456789abcdef");
        let text = made.to_string();
        assert!(text.starts_with("SCRAM-SHA-256$4096:MDEyMzQ1Njc4OWFiY2RlZg==$"));
        assert_eq!(Verifier::parse(&text), Ok(made.clone()));
        assert!(made.fits("secret"));
        assert!(!made.fits("Secret"));
    }

    /// The verifier that PostgreSQL 15 keeps of the password `pencil` under this salt: its keys
    /// follow from RFC 7677, section 3.
    #[test]
    fn a_published_password() {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let made = Verifier::new("pencil", salt.try_into().unwrap());
        assert_eq!(
            made.to_string(),
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
             WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:\
             wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
        );
    }

    #[test]
    fn hostile_texts_are_refused() {
        let good = Verifier::new("x", [7; 16]).to_string();
        for (from, to) in [
            ("SCRAM-SHA-256", "SCRAM-SHA-1"),
            ("$4096:", "$0:"),
            ("$4096:", "$99999999999:"),
            ("$4096:", "$-1:"),
            ("==$", "=$"),
            ("$", ":"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert_eq!(Verifier::parse(&bad), Err(VerifierError), "{bad}");
        }
        for end in 0..good.len() {
            assert_eq!(Verifier::parse(&good[..end]), Err(VerifierError));
        }
    }

    #[test]
    fn roles_that_do_not_exist_keep_their_salt() {
        let known = Verifier::new("x", [7; 16]);
        let secret = Secret::of([&known].into_iter());
        let first = Verifier::mock(&secret, "nobody");
        assert_eq!(first, Verifier::mock(&secret, "nobody"));
        assert_ne!(first.salt, Verifier::mock(&secret, "somebody").salt);
        assert_eq!(
            (first.salt.len(), first.rounds),
            (known.salt.len(), known.rounds)
        );
    }
}
