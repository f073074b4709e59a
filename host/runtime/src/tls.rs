//! TLS of connections, of clients and between nodes.

use crate::RuntimeError;
use crate::credentials::{Shown, Trust};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use scram::Binding;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes that are encrypted at once: so much memory a client that does not read costs besides what
/// waits for encryption.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes that are decrypted at once.
const PLAIN_BYTES: usize = 16 << 10;

/// The settings of a server, and what logins are bound to. `clients`: whose certificates are
/// believed if clients show some.
pub(crate) fn server(
    certificate: &Path,
    key: &Path,
    clients: Option<&Trust>,
) -> Result<(Arc<ServerConfig>, Binding), RuntimeError> {
    let chain = chain_of(certificate)?;
    let first = chain.first();
    let first = first.expect("a chain has a certificate");
    let digest = scram::certificate_digest(first.as_ref());
    let binding = digest.map_or(Binding::None, Binding::Certificate);
    let secret = key_of(key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the suites of both versions");
    let config = match clients {
        None => config.with_no_client_auth(),
        Some(trust) => config.with_client_cert_verifier(trust.of_clients(Shown::Maybe)?),
    };
    let mut config = config
        .with_single_cert(chain, secret)
        .map_err(|error| wrong(key, &error))?;
    if clients.is_some() {
        // A session that goes on would bring a certificate that was good when the session began:
        // each connection is proved anew.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok((Arc::new(config), binding))
}

/// What is wrong with a file.
pub(crate) fn wrong(path: &Path, what: &dyn std::fmt::Display) -> RuntimeError {
    RuntimeError::Foreign(format!("{}: {what}", path.display()))
}

/// The certificates of a PEM file, of which there is one at least.
pub(crate) fn chain_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, RuntimeError> {
    let chain = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let chain: Vec<_> = chain.map_err(|error| wrong(path, &error))?;
    match chain.is_empty() {
        true => Err(wrong(path, &"there is no certificate in it")),
        false => Ok(chain),
    }
}

/// The private key of a PEM file.
pub(crate) fn key_of(path: &Path) -> Result<PrivateKeyDer<'static>, RuntimeError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| wrong(path, &error))
}

/// The encrypted side of a connection.
pub(crate) struct Tls {
    session: Connection,
    /// The other side knows that nothing follows.
    said_goodbye: bool,
}

impl Tls {
    /// The side of who was connected to.
    pub(crate) fn accept(config: Arc<ServerConfig>) -> Result<Tls, rustls::Error> {
        Ok(Tls::new(ServerConnection::new(config)?.into()))
    }

    /// The side of who connects: to the holder of a certificate with this name.
    pub(crate) fn connect(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Tls, rustls::Error> {
        Ok(Tls::new(ClientConnection::new(config, name)?.into()))
    }

    fn new(mut session: Connection) -> Tls {
        session.set_buffer_limit(Some(2 * PIECE_BYTES));
        Tls {
            session,
            said_goodbye: false,
        }
    }

    /// Whether the two sides have not agreed on keys.
    pub(crate) fn is_opening(&self) -> bool {
        self.session.is_handshaking()
    }

    /// The certificates that the other side has shown and proved to have the key of.
    pub(crate) fn shown(&self) -> &[CertificateDer<'static>] {
        self.session.peer_certificates().unwrap_or_default()
    }

    /// Decrypts what was read and hands it to `sink`.
    ///
    /// # Errors
    /// It is not TLS, was changed on its way, or the other side is refused; what is to be sent
    /// then says so.
    pub(crate) fn take(
        &mut self,
        mut bytes: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(), rustls::Error> {
        let mut plain = [0; PLAIN_BYTES];
        while !bytes.is_empty() {
            if self.session.read_tls(&mut bytes).is_err() {
                return Err(rustls::Error::General("too much at once".into()));
            }
            self.session.process_new_packets()?;
            while let Ok(count @ 1..) = self.session.reader().read(&mut plain) {
                sink(&plain[..count]);
            }
        }
        Ok(())
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
