//! The four messages of a login.

use crate::verifier::Verifier;
use crate::{KEY_BYTES, Key, MECHANISM, MECHANISM_PLUS, NONCE_BYTES, digest, equal, mac};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Longest message of a client that is looked at.
const MESSAGE_BYTES_MAX: usize = 4096;

/// What the channel has that a proof can be bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Binding {
    /// Nothing: the channel is not encrypted.
    None,
    /// The digest of the server's certificate (`tls-server-end-point`).
    Certificate(Vec<u8>),
}

/// Why a login ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Not a message of SCRAM; what is wrong with it.
    Malformed(&'static str),
    /// The client names a mechanism that was not offered.
    Mechanism,
    /// The two sides do not agree on what the proof is bound to: somebody may be between them.
    Binding,
    /// The proof is not one of this password.
    Proof,
}

/// A login under way. Dropped when it is refused: there is no second try.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    binding: Binding,
    own_nonce: [u8; NONCE_BYTES],
    state: State,
}

#[derive(Debug)]
enum State {
    First,
    /// What was said so far, and what the last message must repeat.
    Final {
        client_first: String,
        server_first: String,
        nonce: String,
        /// Header and binding, as the client has to send them.
        bound: String,
    },
    Over,
}

impl Exchange {
    /// `own_nonce`: random bytes, never used before.
    pub fn new(verifier: Verifier, binding: Binding, own_nonce: [u8; NONCE_BYTES]) -> Exchange {
        Exchange {
            verifier,
            binding,
            own_nonce,
            state: State::First,
        }
    }

    /// The mechanisms that a client may choose from, best first.
    pub fn mechanisms(binding: &Binding) -> &'static [&'static str] {
        match binding {
            Binding::Certificate(_) => &[MECHANISM_PLUS, MECHANISM],
            Binding::None => &[MECHANISM],
        }
    }

    /// Takes the first message with the mechanism that the client has chosen; returns the answer.
    ///
    /// # Errors
    /// The login is over.
    pub fn first(&mut self, mechanism: &str, message: &[u8]) -> Result<String, Refused> {
        if !Self::mechanisms(&self.binding).contains(&mechanism) {
            return Err(Refused::Mechanism);
        }
        let text = text(message)?;
        let (header, bare) = self.header(mechanism == MECHANISM_PLUS, text)?;
        let mut parts = bare.split(',');
        // The name is the one of the startup packet; clients of PostgreSQL leave this one empty.
        attribute(parts.next(), "n=")?;
        let client_nonce = attribute(parts.next(), "r=")?;
        let printable = |byte: u8| (0x21..0x7f).contains(&byte);
        if client_nonce.is_empty() || !client_nonce.bytes().all(printable) {
            return Err(Refused::Malformed("The nonce is empty or not printable."));
        }
        let nonce = format!("{client_nonce}{}", BASE64_STANDARD.encode(self.own_nonce));
        let salt = BASE64_STANDARD.encode(&self.verifier.salt);
        let server_first = format!("r={nonce},s={salt},i={}", self.verifier.rounds);
        let mut bound = header.as_bytes().to_vec();
        if let (true, Binding::Certificate(digest)) = (header.starts_with('p'), &self.binding) {
            bound.extend_from_slice(digest);
        }
        self.state = State::Final {
            client_first: bare.to_string(),
            server_first: server_first.clone(),
            nonce,
            bound: BASE64_STANDARD.encode(bound),
        };
        Ok(server_first)
    }

    /// The header of the first message, with its commas, and what follows it.
    fn header<'a>(&self, plus: bool, text: &'a str) -> Result<(&'a str, &'a str), Refused> {
        let end = text.match_indices(',').nth(1).map(|(at, _)| at + 1);
        let end = end.ok_or(Refused::Malformed("The header is not complete."))?;
        let (header, bare) = text.split_at(end);
        let (flag, identity) = header.split_once(',').expect("it has two commas");
        if identity != "," {
            return Err(Refused::Malformed(
                "Logging in for another role is not supported.",
            ));
        }
        match (flag, plus) {
            ("n", false) => {}
            // The client could bind and believes that the server cannot: if that is wrong,
            // somebody has changed the list of mechanisms.
            ("y", false) if self.binding == Binding::None => {}
            ("y", false) => return Err(Refused::Binding),
            ("p=tls-server-end-point", true) => {}
            (_, true) if flag.starts_with("p=") => {
                return Err(Refused::Malformed(
                    "The type of channel binding is unknown.",
                ));
            }
            (_, true) => {
                return Err(Refused::Malformed(
                    "The mechanism needs channel binding, and the message has none.",
                ));
            }
            _ => {
                return Err(Refused::Malformed(
                    "The message has channel binding, and the mechanism none.",
                ));
            }
        }
        Ok((header, bare))
    }

    /// Takes the last message; returns the answer if the client has proved that it knows the
    /// password.
    ///
    /// # Errors
    /// The login is over.
    pub fn last(&mut self, message: &[u8]) -> Result<String, Refused> {
        let State::Final {
            client_first,
            server_first,
            nonce,
            bound,
        } = core::mem::replace(&mut self.state, State::Over)
        else {
            return Err(Refused::Malformed("The message comes out of turn."));
        };
        let text = text(message)?;
        let (without_proof, proof) = text
            .rsplit_once(",p=")
            .ok_or(Refused::Malformed("The proof is missing."))?;
        let mut parts = without_proof.split(',');
        if attribute(parts.next(), "c=")? != bound {
            return Err(Refused::Binding);
        }
        if attribute(parts.next(), "r=")? != nonce {
            return Err(Refused::Malformed("The nonce is another one."));
        }
        let proof: Option<Key> = BASE64_STANDARD
            .decode(proof)
            .ok()
            .and_then(|p| p.try_into().ok());
        let proof = proof.ok_or(Refused::Malformed("The proof has another length."))?;
        let said = [&*client_first, ",", &*server_first, ",", without_proof].map(str::as_bytes);
        let signature = mac(&self.verifier.stored, &said);
        let mut client_key = [0; KEY_BYTES];
        for index in 0..KEY_BYTES {
            client_key[index] = proof[index] ^ signature[index];
        }
        if !equal(&digest(&[&client_key]), &self.verifier.stored) {
            return Err(Refused::Proof);
        }
        let signature = mac(&self.verifier.server, &said);
        Ok(format!("v={}", BASE64_STANDARD.encode(signature)))
    }
}

fn text(message: &[u8]) -> Result<&str, Refused> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(Refused::Malformed("The message is too long."));
    }
    core::str::from_utf8(message).map_err(|_| Refused::Malformed("The message is not text."))
}

fn attribute<'a>(part: Option<&'a str>, name: &str) -> Result<&'a str, Refused> {
    part.and_then(|part| part.strip_prefix(name))
        .ok_or(Refused::Malformed("An attribute is missing."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// The exchange of RFC 7677, section 3. Its server's part of the nonce is not the one that
    /// this server would make, so the state is set by hand.
    fn published() -> Exchange {
        let verifier = Verifier::parse(
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$\
             WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:\
             wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
        );
        let verifier = verifier.unwrap();
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let mut exchange = Exchange::new(verifier, Binding::None, [0; NONCE_BYTES]);
        exchange.state = State::Final {
            client_first: "n=user,r=rOprNGfwEbeRWgbNEkqO".into(),
            server_first: format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
            nonce: nonce.into(),
            bound: "biws".into(),
        };
        exchange
    }

    const LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    #[test]
    fn the_published_exchange_passes() {
        let answer = published().last(LAST.as_bytes());
        let expected = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(answer.as_deref(), Ok(expected));
    }

    #[test]
    fn each_changed_byte_of_it_is_refused() {
        for at in 0..LAST.len() {
            let mut changed = LAST.as_bytes().to_vec();
            changed[at] ^= 1;
            assert!(published().last(&changed).is_err(), "byte {at}");
            assert!(published().last(&changed[..at]).is_err());
        }
        let mut exchange = published();
        assert!(exchange.last(LAST.as_bytes()).is_ok());
        let again = exchange.last(LAST.as_bytes());
        assert!(
            matches!(again, Err(Refused::Malformed(_))),
            "no proof serves twice"
        );
    }

    fn first(binding: Binding, mechanism: &str, message: &str) -> Result<String, Refused> {
        let verifier = Verifier::new("x", [7; 16]);
        Exchange::new(verifier, binding, [1; NONCE_BYTES]).first(mechanism, message.as_bytes())
    }

    #[test]
    fn first_messages() {
        let tls = || Binding::Certificate(vec![3; 32]);
        let answer = first(Binding::None, MECHANISM, "n,,n=,r=abc").unwrap();
        assert_eq!(
            answer,
            "r=abcAQEBAQEBAQEBAQEBAQEBAQEB,s=BwcHBwcHBwcHBwcHBwcHBw==,i=4096"
        );
        assert!(first(Binding::None, MECHANISM, "y,,n=,r=abc").is_ok());
        assert!(first(tls(), MECHANISM, "n,,n=,r=abc").is_ok());
        let plus = "p=tls-server-end-point,,n=,r=abc";
        assert!(first(tls(), MECHANISM_PLUS, plus).is_ok());
        let downgraded = first(tls(), MECHANISM, "y,,n=,r=abc");
        assert_eq!(downgraded, Err(Refused::Binding));
        let none = first(Binding::None, MECHANISM_PLUS, plus);
        assert_eq!(none, Err(Refused::Mechanism));
        for bad in [
            "",
            "n,,",
            "n,,n=",
            "n,,r=abc",
            "n,a=other,n=,r=abc",
            "p=tls-unique,,n=,r=abc",
            "n,,n=,r=",
            "n,,n=,r=a\u{e9}",
            "n,,m=ext,n=,r=abc",
            plus,
        ] {
            let refused = first(tls(), MECHANISM, bad);
            assert!(matches!(refused, Err(Refused::Malformed(_))), "{bad}");
        }
        let long = format!("n,,n=,r={}", "a".repeat(MESSAGE_BYTES_MAX));
        assert!(first(Binding::None, MECHANISM, &long).is_err());
    }
}
