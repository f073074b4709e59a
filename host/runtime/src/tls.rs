//! TLS of client connections.

use crate::RuntimeError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use scram::Binding;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use wire::Decoder;

/// Bytes that are encrypted at once: so much memory a client that does not read costs besides what
/// waits for encryption.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes that are decrypted at once.
const PLAIN_BYTES: usize = 16 << 10;

/// The settings of a server, and what logins are bound to.
pub(crate) fn server(
    certificate: &Path,
    key: &Path,
) -> Result<(Arc<ServerConfig>, Binding), RuntimeError> {
    let wrong = |path: &Path, what: &dyn std::fmt::Display| {
        RuntimeError::Foreign(format!("{}: {what}", path.display()))
    };
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    let first = chain.first();
    let first = first.ok_or_else(|| wrong(certificate, &"there is no certificate in it"))?;
    let digest = scram::certificate_digest(first.as_ref());
    let binding = digest.map_or(Binding::None, Binding::Certificate);
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the suites of both versions")
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| wrong(key, &error))?;
    Ok((Arc::new(config), binding))
}

/// The encrypted side of a connection.
pub(crate) struct Tls {
    session: ServerConnection,
    /// The other side knows that nothing follows.
    said_goodbye: bool,
}

impl Tls {
    pub(crate) fn new(config: Arc<ServerConfig>) -> Result<Tls, rustls::Error> {
        let mut session = ServerConnection::new(config)?;
        session.set_buffer_limit(Some(2 * PIECE_BYTES));
        Ok(Tls {
            session,
            said_goodbye: false,
        })
    }

    /// Decrypts what was read. `false`: it is not TLS, or was changed on its way; what is to be
    /// sent then says so.
    pub(crate) fn take(&mut self, mut bytes: &[u8], decoder: &mut Decoder) -> bool {
        let mut plain = [0; PLAIN_BYTES];
        while !bytes.is_empty() {
            if self.session.read_tls(&mut bytes).is_err() {
                return false;
            }
            if let Err(error) = self.session.process_new_packets() {
                tracing::info!(%error, "TLS with a client");
                return false;
            }
            while let Ok(count @ 1..) = self.session.reader().read(&mut plain) {
                decoder.push(&plain[..count]);
            }
        }
        true
    }

    /// Whether there is something to send besides what the caller has.
    pub(crate) fn has_output(&self) -> bool {
        self.session.wants_write()
    }

    /// Encrypts and sends `out[*sent..]`; true if everything went out, false if the socket is full.
    pub(crate) fn write_some(
        &mut self,
        stream: &mut impl Write,
        out: &mut Vec<u8>,
        sent: &mut usize,
        last: bool,
    ) -> io::Result<bool> {
        loop {
            while self.session.wants_write() {
                match self.session.write_tls(stream) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            if *sent < out.len() {
                let end = out.len().min(*sent + PIECE_BYTES);
                match self.session.writer().write(&out[*sent..end])? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    count => *sent += count,
                }
            } else if last && !self.said_goodbye {
                self.said_goodbye = true;
                self.session.send_close_notify();
            } else {
                out.clear();
                *sent = 0;
                return Ok(true);
            }
        }
    }
}
