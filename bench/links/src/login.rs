//! The start of a connection: startup message, authentication, first parameters.
//!
//! Trust, cleartext, MD5 and SCRAM-SHA-256 (RFC 5802 and 7677, without channel binding).

use crate::answers::ServerError;
use crate::link::{LinkError, ready};
use crate::postgres::{Postgres, frame, push_text};
use crate::url::Target;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

const PROTOCOL_3_0: u32 = 196_608;

/// Code of a request for TLS, in the place of a protocol version.
const SSL_REQUEST: u32 = 80_877_103;

/// Asks a server on a fresh connection for TLS. Returns whether it waits for it now.
pub(crate) fn ask_for_tls(link: &mut Postgres) -> Result<bool, LinkError> {
    let out = link.out();
    out.extend_from_slice(&8u32.to_be_bytes());
    out.extend_from_slice(&SSL_REQUEST.to_be_bytes());
    ready(link.flush())?;
    ready(link.stream.fill(1))?;
    match link.stream.unread()[0] {
        b'S' => {
            link.stream.take(1);
            Ok(true)
        }
        b'N' => {
            link.stream.take(1);
            Ok(false)
        }
        // It is full, or ends.
        b'E' => match ready(link.receive())? {
            (b'E', body) => Err(LinkError::Server(server_error(link.bytes(body)))),
            _ => Err(LinkError::Protocol("an answer to the request for TLS")),
        },
        _ => Err(LinkError::Protocol("an answer to the request for TLS")),
    }
}

/// Logs in on a fresh connection; returns after the first ReadyForQuery.
pub(crate) fn log_in(link: &mut Postgres, target: &Target) -> Result<(), LinkError> {
    let out = link.out();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&PROTOCOL_3_0.to_be_bytes());
    for (name, value) in [
        ("user", target.user.as_str()),
        ("database", &target.database),
        ("application_name", target.application_name),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO"),
    ] {
        push_text(name, out);
        push_text(value, out);
    }
    out.push(0);
    let length = (out.len() as u32).to_be_bytes();
    out[..4].copy_from_slice(&length);
    ready(link.flush())?;
    loop {
        match ready(link.receive())? {
            (b'R', body) => {
                let request = link.bytes(body).to_vec();
                authenticate(link, target, &request)?;
            }
            (b'S', body) => {
                let mut parts = link.bytes(body).split(|&byte| byte == 0);
                if parts.next() == Some(b"server_version") {
                    let version = parts.next().unwrap_or_default();
                    link.server_version = String::from_utf8_lossy(version).into_owned();
                }
            }
            (b'K', body) => link.backend_key = link.bytes(body).try_into().ok(),
            (b'E', body) => return Err(LinkError::Server(server_error(link.bytes(body)))),
            (b'Z', _) => return Ok(()),
            _ => {}
        }
    }
}

/// Reads an ErrorResponse.
pub(crate) fn server_error(body: &[u8]) -> ServerError {
    let mut error = ServerError {
        sqlstate: String::new(),
        message: String::new(),
    };
    for field in body.split(|&byte| byte == 0) {
        let Some((kind, text)) = field.split_first() else {
            continue;
        };
        let text = String::from_utf8_lossy(text).into_owned();
        match kind {
            b'C' => error.sqlstate = text,
            b'M' => error.message = text,
            _ => {}
        }
    }
    error
}

fn authenticate(link: &mut Postgres, target: &Target, request: &[u8]) -> Result<(), LinkError> {
    let (method, rest) = request
        .split_first_chunk::<4>()
        .ok_or(LinkError::Protocol("login"))?;
    let password = target.password.as_deref().unwrap_or("");
    match u32::from_be_bytes(*method) {
        0 => Ok(()),
        3 => send_password(link, password),
        5 => {
            let salt = rest.try_into().map_err(|_| LinkError::Protocol("salt"))?;
            let hash = md5_hash(target.user.as_bytes(), password.as_bytes(), salt);
            send_password(link, &hash)
        }
        10 => scram(link, password),
        _ => Err(LinkError::Protocol(
            "an authentication method that this client does not know",
        )),
    }
}

fn send_password(link: &mut Postgres, password: &str) -> Result<(), LinkError> {
    frame(link.out(), b'p', |out| push_text(password, out));
    ready(link.flush())
}

/// The exchange of SCRAM-SHA-256 from the client's first message to the server's proof.
fn scram(link: &mut Postgres, password: &str) -> Result<(), LinkError> {
    let mut exchange = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    frame(link.out(), b'p', |out| {
        push_text(SCRAM_SHA_256, out);
        let message = exchange.message();
        out.extend_from_slice(&(message.len() as u32).to_be_bytes());
        out.extend_from_slice(message);
    });
    ready(link.flush())?;
    let challenge = sasl_answer(link, 11)?;
    let taken = exchange.update(&challenge);
    taken.map_err(|_| LinkError::Protocol("SCRAM challenge"))?;
    frame(link.out(), b'p', |out| {
        out.extend_from_slice(exchange.message());
    });
    ready(link.flush())?;
    let proof = sasl_answer(link, 12)?;
    let proven = exchange.finish(&proof);
    proven.map_err(|_| LinkError::Protocol("the server does not know the password"))
}

fn sasl_answer(link: &mut Postgres, method: u32) -> Result<Vec<u8>, LinkError> {
    match ready(link.receive())? {
        (b'R', body) => match link.bytes(body).split_first_chunk::<4>() {
            Some((kind, text)) if u32::from_be_bytes(*kind) == method => Ok(text.to_vec()),
            _ => Err(LinkError::Protocol("SCRAM step")),
        },
        (b'E', body) => Err(LinkError::Server(server_error(link.bytes(body)))),
        _ => Err(LinkError::Protocol("SCRAM step")),
    }
}
