//! The messages of a login by SASL.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// AuthenticationSASL: what the client may choose from, best first.
pub fn sasl(mechanisms: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for mechanism in mechanisms {
        body.extend_from_slice(mechanism.as_bytes());
        body.push(0);
    }
    body.push(0);
    message(10, &body)
}

/// AuthenticationSASLContinue.
pub fn sasl_continue(data: &str) -> Vec<u8> {
    message(11, data.as_bytes())
}

/// AuthenticationSASLFinal. AuthenticationOk follows.
pub fn sasl_final(data: &str) -> Vec<u8> {
    message(12, data.as_bytes())
}

fn message(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([b'R']);
    bytes.extend_from_slice(&(body.len() as u32 + 8).to_be_bytes());
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// SASLInitialResponse: the mechanism that the client has chosen, and its first message. `None`:
/// it is none.
pub fn initial_response(body: &[u8]) -> Option<(String, Vec<u8>)> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let mechanism = core::str::from_utf8(&body[..end]).ok()?;
    let (length, data) = body[end + 1..].split_first_chunk::<4>()?;
    let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
    (length == data.len()).then(|| (mechanism.to_owned(), data.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_messages() {
        assert_eq!(sasl(&["A", "BC"]), b"R\0\0\0\x0e\0\0\0\x0aA\0BC\0\0");
        assert_eq!(sasl_continue("r=x"), b"R\0\0\0\x0b\0\0\0\x0br=x");
        assert_eq!(sasl_final(""), b"R\0\0\0\x08\0\0\0\x0c");
    }

    #[test]
    fn first_answers() {
        let good = b"SCRAM\0\0\0\0\x02n,";
        assert_eq!(
            initial_response(good),
            Some(("SCRAM".into(), b"n,".to_vec()))
        );
        for end in 0..good.len() {
            assert_eq!(initial_response(&good[..end]), None);
        }
        assert_eq!(initial_response(b"SCRAM\0\xff\xff\xff\xff"), None);
        assert_eq!(initial_response(b"SCRAM\0\x7f\xff\xff\xffx"), None);
    }
}
