//! The start of a connection: startup message, authentication, first parameters.
//!
//! Trust, cleartext, MD5 and SCRAM-SHA-256 (RFC 5802 and 7677, without channel binding).

use crate::answers::ServerError;
use crate::digest::{base64, from_base64, hex, hmac, md5, sha256, stretch};
use crate::link::{Link, LinkError, frame, push_text};
use crate::url::Target;

const PROTOCOL_3_0: u32 = 196_608;

/// Logs in on a fresh connection; returns after the first ReadyForQuery.
pub(crate) fn log_in(link: &mut Link, target: &Target) -> Result<(), LinkError> {
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
    link.flush()?;
    loop {
        match link.receive()? {
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

fn authenticate(link: &mut Link, target: &Target, request: &[u8]) -> Result<(), LinkError> {
    let (method, rest) = request
        .split_first_chunk::<4>()
        .ok_or(LinkError::Protocol("login"))?;
    let password = || target.password.as_deref().unwrap_or("");
    match u32::from_be_bytes(*method) {
        0 => Ok(()),
        3 => send_password(link, password()),
        5 => {
            let inner = hex(&md5(format!("{}{}", password(), target.user).as_bytes()));
            let mut salted = inner.into_bytes();
            salted.extend_from_slice(rest);
            send_password(link, &format!("md5{}", hex(&md5(&salted))))
        }
        10 => scram(link, password()),
        _ => Err(LinkError::Protocol(
            "an authentication method that this client does not know",
        )),
    }
}

fn send_password(link: &mut Link, password: &str) -> Result<(), LinkError> {
    frame(link.out(), b'p', |out| push_text(password, out));
    link.flush()
}

/// The exchange of SCRAM-SHA-256 from the client's first message to the server's proof.
fn scram(link: &mut Link, password: &str) -> Result<(), LinkError> {
    // The nonce must not repeat between logins; time and address space give enough for that.
    let nonce = base64(&sha256(
        format!("{:?}{:p}", std::time::SystemTime::now(), &link).as_bytes(),
    ));
    let first = format!("n=,r={nonce}");
    frame(link.out(), b'p', |out| {
        push_text("SCRAM-SHA-256", out);
        let message = format!("n,,{first}");
        out.extend_from_slice(&(message.len() as u32).to_be_bytes());
        out.extend_from_slice(message.as_bytes());
    });
    link.flush()?;
    let challenge = sasl_answer(link, 11)?;
    let field = |name: char| {
        challenge
            .split(',')
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    };
    let bad = LinkError::Protocol("SCRAM challenge");
    let (Some(combined), Some(salt), Some(count)) = (field('r'), field('s'), field('i')) else {
        return Err(bad);
    };
    let (Some(salt), Ok(iterations)) = (from_base64(salt), count.parse::<u32>()) else {
        return Err(bad);
    };
    if !combined.starts_with(&nonce) || !(1..=10_000_000).contains(&iterations) {
        return Err(bad);
    }
    let salted = stretch(password.as_bytes(), &salt, iterations);
    let client_key = hmac(&salted, b"Client Key");
    let last = format!("c=biws,r={combined}");
    let signed = format!("{first},{challenge},{last}");
    let signature = hmac(&sha256(&client_key), signed.as_bytes());
    let proof: Vec<u8> = client_key
        .iter()
        .zip(signature)
        .map(|(key, s)| key ^ s)
        .collect();
    frame(link.out(), b'p', |out| {
        out.extend_from_slice(format!("{last},p={}", base64(&proof)).as_bytes());
    });
    link.flush()?;
    let outcome = sasl_answer(link, 12)?;
    let expected = hmac(&hmac(&salted, b"Server Key"), signed.as_bytes());
    match outcome.strip_prefix("v=").and_then(from_base64) {
        Some(given) if given == expected => Ok(()),
        _ => Err(LinkError::Protocol("the server does not know the password")),
    }
}

fn sasl_answer(link: &mut Link, method: u32) -> Result<String, LinkError> {
    match link.receive()? {
        (b'R', body) => match link.bytes(body).split_first_chunk::<4>() {
            Some((kind, text)) if u32::from_be_bytes(*kind) == method => {
                Ok(String::from_utf8_lossy(text).into_owned())
            }
            _ => Err(LinkError::Protocol("SCRAM step")),
        },
        (b'E', body) => Err(LinkError::Server(server_error(link.bytes(body)))),
        _ => Err(LinkError::Protocol("SCRAM step")),
    }
}
