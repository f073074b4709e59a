//! What a login over TLS is bound to.

use alloc::vec::Vec;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// `tls-server-end-point` (RFC 5929, section 4.1): the digest of the server's certificate, made
/// with the digest of its signature; SHA-256 where that is MD5 or SHA-1. `None`: the certificate
/// cannot be read, or its signature has no digest of its own.
pub fn certificate_digest(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, whole, _) = element(certificate)?;
    let (_, _, behind_body) = element(whole)?;
    let (_, algorithm, _) = element(behind_body)?;
    let (_, name, _) = element(algorithm)?;
    Some(match signature_bits(name)? {
        256 => Sha256::digest(certificate).to_vec(),
        384 => Sha384::digest(certificate).to_vec(),
        _ => Sha512::digest(certificate).to_vec(),
    })
}

/// Bits of the digest of an algorithm by its DER name.
fn signature_bits(name: &[u8]) -> Option<u32> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4];
    if let Some(rest) = name.strip_prefix(RSA) {
        return match rest {
            [4 | 5 | 11] => Some(256),
            [12] => Some(384),
            [13] => Some(512),
            _ => None,
        };
    }
    match name.strip_prefix(ECDSA)? {
        [1] | [3, 2] => Some(256),
        [3, 3] => Some(384),
        [3, 4] => Some(512),
        _ => None,
    }
}

/// The first element of DER: its tag, its content, what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, short], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (long, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            let length = long
                .iter()
                .fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
            (usize::try_from(length).ok()?, rest)
        }
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A certificate in form only.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let body = [0x30, 3, 2, 1, 7];
        let mut name = vec![0x30, algorithm.len() as u8 + 2, 6, algorithm.len() as u8];
        name.extend_from_slice(algorithm);
        let mut whole = vec![0x30, 0x81, (body.len() + name.len()) as u8];
        whole.extend_from_slice(&body);
        whole.extend_from_slice(&name);
        whole
    }

    #[test]
    fn the_digest_is_that_of_the_signature() {
        let rsa = |last| certificate(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last]);
        let ecdsa = |last| certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, last]);
        for (certificate, length) in [
            (rsa(5), Some(32)),
            (rsa(11), Some(32)),
            (rsa(12), Some(48)),
            (rsa(13), Some(64)),
            (rsa(10), None),
            (ecdsa(2), Some(32)),
            (ecdsa(3), Some(48)),
            (ecdsa(4), Some(64)),
            (certificate(&[0x2b, 0x65, 0x70]), None),
        ] {
            let digest = certificate_digest(&certificate);
            assert_eq!(digest.map(|digest| digest.len()), length);
        }
    }

    #[test]
    fn hostile_bytes_are_no_certificate() {
        let good = certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]);
        for end in 0..good.len() {
            assert_eq!(certificate_digest(&good[..end]), None);
        }
        assert_eq!(
            certificate_digest(&[0x30, 0x84, 255, 255, 255, 255, 1]),
            None
        );
        assert_eq!(certificate_digest(&[0x30, 0x80, 1]), None);
    }
}
