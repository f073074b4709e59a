//! TLS for connections to servers: what a URL asks for, and how a server's certificate is checked.
//!
//! | PostgreSQL | MySQL | means |
//! |---|---|---|
//! | `sslmode=disable` (the default) | `ssl-mode=DISABLED` (the default) | no TLS |
//! | `sslmode=allow` | | no TLS, unless the server lets nobody in without it |
//! | `sslmode=prefer` | `ssl-mode=PREFERRED` | TLS if the server has it, no matter whose |
//! | `sslmode=require` | `ssl-mode=REQUIRED` | TLS, no matter whose |
//! | `sslmode=verify-ca` | `ssl-mode=VERIFY_CA` | the certificate is signed by one of the file |
//! | `sslmode=verify-full` | `ssl-mode=VERIFY_IDENTITY` | and it is for the host of the URL |
//!
//! The file is `sslrootcert=FILE` or `ssl-ca=FILE`, in PEM. With `sslmode=require` it has the
//! effect of `verify-ca`, as with libpq. A certificate that is itself in the file is trusted as it
//! is, without a look at its dates.

use crate::link::LinkError;
use crate::url::{UrlError, Wire};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// How much TLS is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// None.
    #[default]
    Disable,
    /// None, unless the server lets nobody in without it.
    Allow,
    /// If the server has it, no matter whose.
    Prefer,
    /// In any case, no matter whose.
    Require,
    /// Signed by a certificate of the file.
    VerifyCa,
    /// And for the host of the URL.
    VerifyFull,
}

/// What a URL says of TLS. Equal by what it says.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    mode: Mode,
    /// The value in the URL, for messages.
    said: String,
    root: Option<String>,
    /// `None` without TLS.
    config: Option<Arc<ClientConfig>>,
}

impl PartialEq for Tls {
    fn eq(&self, other: &Tls) -> bool {
        (self.mode, &self.root) == (other.mode, &other.root)
    }
}

impl Eq for Tls {}

/// Names of the modes in URLs of a wire; and the parameters for mode and file.
type Words = (&'static str, &'static str, &'static [(&'static str, Mode)]);

const POSTGRES: Words = (
    "sslmode",
    "sslrootcert",
    &[
        ("disable", Mode::Disable),
        ("allow", Mode::Allow),
        ("prefer", Mode::Prefer),
        ("require", Mode::Require),
        ("verify-ca", Mode::VerifyCa),
        ("verify-full", Mode::VerifyFull),
    ],
);
const MYSQL: Words = (
    "ssl-mode",
    "ssl-ca",
    &[
        ("DISABLED", Mode::Disable),
        ("PREFERRED", Mode::Prefer),
        ("REQUIRED", Mode::Require),
        ("VERIFY_CA", Mode::VerifyCa),
        ("VERIFY_IDENTITY", Mode::VerifyFull),
    ],
);

impl Tls {
    /// Reads the parameters of a URL, with their escapes undone, and the file that they name.
    pub(crate) fn of_parameters(
        wire: Wire,
        parameters: &[(String, String)],
    ) -> Result<Tls, UrlError> {
        let unknown = |name: &str, value: &str| UrlError::Parameter(format!("{name}={value}"));
        let (mode_name, root_name, modes) = match wire {
            Wire::Postgres => POSTGRES,
            Wire::MySql => MYSQL,
            _ => ("", "", &[][..]),
        };
        let (mut said, mut root) = (None, None);
        for (name, value) in parameters {
            let place = match name.as_str() {
                "" => return Err(unknown(name, value)),
                name if name == mode_name => &mut said,
                name if name == root_name => &mut root,
                name => return Err(unknown(name, value)),
            };
            if place.replace(value.clone()).is_some() {
                return Err(UrlError::Twice(name.clone()));
            }
        }
        let said = said.unwrap_or_else(|| modes.first().map_or("", |(name, _)| name).to_owned());
        let known = modes.iter().find(|(name, _)| *name == said);
        let mode = match (known, wire) {
            (Some((_, mode)), _) => *mode,
            (None, wire) if !wire.has_sql() => Mode::Disable,
            (None, _) => return Err(unknown(mode_name, &said)),
        };
        let mode = match (mode, &root, wire) {
            (Mode::Require, Some(_), Wire::Postgres) => Mode::VerifyCa,
            (Mode::VerifyCa | Mode::VerifyFull, None, _) => {
                let text = format!("{mode_name}={said} needs {root_name}=FILE");
                return Err(UrlError::Tls(text));
            }
            (Mode::Disable | Mode::Allow | Mode::Prefer | Mode::Require, Some(_), _) => {
                let text = format!(
                    "{root_name} is for modes that look at the server's certificate, and \
                     {mode_name} is {said}"
                );
                return Err(UrlError::Tls(text));
            }
            (mode, _, _) => mode,
        };
        let config = match mode {
            Mode::Disable => None,
            _ => Some(config(mode, root.as_deref()).map_err(UrlError::Tls)?),
        };
        Ok(Tls {
            mode,
            said: format!("{mode_name}={said}"),
            root,
            config,
        })
    }

    /// Whether to use TLS, in the order in which it is tried.
    fn attempts(&self) -> &'static [bool] {
        match self.mode {
            Mode::Disable => &[false],
            Mode::Allow => &[false, true],
            Mode::Prefer => &[true, false],
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => &[true],
        }
    }

    /// Connects with TLS or without, as it is to be, and the other way round if that may be and the
    /// error is about it.
    pub(crate) fn connect<T>(
        &self,
        attempt: impl Fn(bool) -> Result<T, LinkError>,
        is_about_tls: impl Fn(&LinkError) -> bool,
    ) -> Result<T, LinkError> {
        let mut first = None;
        for is_secure in self.attempts() {
            match attempt(*is_secure) {
                Err(error) if is_about_tls(&error) => first = first.or(Some(error)),
                ended => return ended,
            }
        }
        Err(first.unwrap_or(LinkError::Protocol("no attempt")))
    }

    /// What to do with a server that has no TLS.
    ///
    /// # Errors
    /// TLS is asked for.
    pub(crate) fn without(&self) -> Result<(), LinkError> {
        match self.mode {
            Mode::Disable | Mode::Prefer => Ok(()),
            Mode::Allow | Mode::Require | Mode::VerifyCa | Mode::VerifyFull => {
                let text = format!("the server has no TLS, and {} asks for it", self.said);
                Err(LinkError::Tls(text))
            }
        }
    }

    /// Makes TLS over a connection whose server waits for it.
    pub(crate) fn begin(&self, socket: &mut TcpStream, host: &str) -> Result<Session, LinkError> {
        let failed = |why: String| LinkError::Tls(format!("TLS with {host}: {why}"));
        let config = self.config.as_ref();
        let config = config.ok_or(LinkError::Protocol("TLS without being asked"))?;
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| failed(String::from("that is no name for a certificate")))?;
        let connection = ClientConnection::new(Arc::clone(config), name);
        let mut connection = connection.map_err(|error| failed(error.to_string()))?;
        while connection.is_handshaking() {
            connection.complete_io(socket).map_err(|error| {
                let inner = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
                match inner {
                    Some(inner) => failed(self.reason(inner, host)),
                    None if error.kind() == ErrorKind::UnexpectedEof => {
                        failed(String::from("the server closed the connection"))
                    }
                    None => LinkError::from(error),
                }
            })?;
        }
        Ok(Session(connection))
    }

    /// Why a server is not believed.
    fn reason(&self, error: &Error, host: &str) -> String {
        let Error::InvalidCertificate(wrong) = error else {
            return error.to_string();
        };
        let file = self.root.as_deref().unwrap_or_default();
        match wrong {
            CertificateError::UnknownIssuer => {
                format!("the server's certificate is not signed by one in {file}")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!(
                    "the server's certificate is not for {host}, and {} asks for that ({error})",
                    self.said
                )
            }
            _ => error.to_string(),
        }
    }
}

/// The settings of all connections: TLS 1.2 or 1.3.
fn config(mode: Mode, root: Option<&str>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier {
        roots: root.map(Roots::read).transpose()?,
        checks_name: mode == Mode::VerifyFull,
        provider: Arc::clone(&provider),
    };
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let builder = builder.dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(verifier));
    Ok(Arc::new(builder.with_no_client_auth()))
}

/// The certificates of a file.
#[derive(Debug)]
struct Roots {
    store: RootCertStore,
    all: Vec<CertificateDer<'static>>,
}

impl Roots {
    fn read(path: &str) -> Result<Roots, String> {
        let pem = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let certificates = CertificateDer::pem_slice_iter(&pem);
        let mut roots = Roots {
            store: RootCertStore::empty(),
            all: Vec::new(),
        };
        for certificate in certificates {
            let wrong = |error: &dyn std::fmt::Display| {
                format!("{path}: certificate {}: {error}", roots.all.len() + 1)
            };
            let certificate = certificate.map_err(|error| wrong(&error))?;
            roots.all.push(certificate);
        }
        if roots.all.is_empty() {
            return Err(format!("{path} holds no certificate in PEM"));
        }
        // One that can sign nothing may still be the server's own.
        for certificate in &roots.all {
            let _ = roots.store.add(certificate.clone());
        }
        Ok(roots)
    }
}

/// Another authority may have the name of one in the file: then its signature is wrong.
fn not_by_these(error: Error) -> Error {
    match error {
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            Error::InvalidCertificate(CertificateError::UnknownIssuer)
        }
        error => error,
    }
}

/// Looks at the server's certificate as far as the mode asks for that.
#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate will do.
    roots: Option<Roots>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            if !roots.all.iter().any(|root| root == end_entity) {
                verify_server_cert_signed_by_trust_anchor(
                    &certificate,
                    &roots.store,
                    intermediates,
                    now,
                    self.provider.signature_verification_algorithms.all,
                )
                .map_err(not_by_these)?;
            }
            if self.checks_name {
                verify_server_name(&certificate, server_name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}

/// TLS over a connection, whose socket waits or does not.
#[derive(Debug)]
pub(crate) struct Session(ClientConnection);

impl Session {
    /// Reads plain bytes; 0: the server has closed the connection.
    pub(crate) fn read(&mut self, socket: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // It was cut off without a farewell, as without TLS.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if self.0.read_tls(socket)? == 0 {
                return Ok(0);
            }
            let processed = self.0.process_new_packets();
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            if self.0.wants_write() {
                // New keys are answered. What does not fit goes with what is sent next.
                match self.flush(socket) {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }

    /// Takes plain bytes, as many as there is room for. They are sent by this or by the next call,
    /// at the latest by [`Session::flush`].
    pub(crate) fn write(&mut self, socket: &mut TcpStream, from: &[u8]) -> io::Result<usize> {
        let taken = self.0.writer().write(from)?;
        match self.flush(socket) {
            Err(error) if taken > 0 && error.kind() == ErrorKind::WouldBlock => Ok(taken),
            Err(error) => Err(error),
            // There was no room before.
            Ok(()) if taken == 0 => self.0.writer().write(from),
            Ok(()) => Ok(taken),
        }
    }

    /// Sends what was taken.
    pub(crate) fn flush(&mut self, socket: &mut TcpStream) -> io::Result<()> {
        while self.0.wants_write() {
            if self.0.write_tls(socket)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls(wire: Wire, parameters: &[(&str, &str)]) -> Result<Tls, String> {
        let owned = |(name, value): &(&str, &str)| (String::from(*name), String::from(*value));
        let parameters: Vec<_> = parameters.iter().map(owned).collect();
        Tls::of_parameters(wire, &parameters).map_err(|error| error.to_string())
    }

    #[test]
    fn modes_are_those_of_the_servers_own_clients() {
        let mode = |wire, parameters: &[_]| tls(wire, parameters).map(|tls| tls.mode);
        for (name, known) in POSTGRES.2 {
            if *known < Mode::VerifyCa {
                assert_eq!(mode(Wire::Postgres, &[("sslmode", name)]), Ok(*known));
            }
        }
        for (name, known) in MYSQL.2 {
            if *known < Mode::VerifyCa {
                assert_eq!(mode(Wire::MySql, &[("ssl-mode", name)]), Ok(*known));
            }
        }
        for wire in [
            Wire::Postgres,
            Wire::MySql,
            Wire::Redis,
            Wire::Etcd,
            Wire::Mongo,
        ] {
            assert_eq!(mode(wire, &[]), Ok(Mode::Disable));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        for (wire, parameters, why) in [
            (Wire::Postgres, &[("sslmode", "yes")][..], "\"sslmode=yes\""),
            (
                Wire::Postgres,
                &[("ssl-mode", "REQUIRED")],
                "\"ssl-mode=REQUIRED\"",
            ),
            (
                Wire::MySql,
                &[("sslmode", "require")],
                "\"sslmode=require\"",
            ),
            (
                Wire::MySql,
                &[("ssl-mode", "required")],
                "\"ssl-mode=required\"",
            ),
            (
                Wire::Redis,
                &[("sslmode", "disable")],
                "\"sslmode=disable\"",
            ),
            (Wire::Postgres, &[("sslcert", "f")], "\"sslcert=f\""),
            (Wire::Postgres, &[("", "")], "is not known"),
            (
                Wire::Postgres,
                &[("sslmode", "require"), ("sslmode", "disable")],
                "sslmode is said twice",
            ),
            (
                Wire::Postgres,
                &[("sslmode", "verify-full")],
                "sslmode=verify-full needs sslrootcert=FILE",
            ),
            (
                Wire::MySql,
                &[("ssl-mode", "VERIFY_CA")],
                "VERIFY_CA needs ssl-ca=FILE",
            ),
            (
                Wire::MySql,
                &[("ssl-mode", "REQUIRED"), ("ssl-ca", "f")],
                "ssl-mode is REQUIRED",
            ),
            (
                Wire::Postgres,
                &[("sslrootcert", "f")],
                "sslmode is disable",
            ),
            (
                Wire::Postgres,
                &[("sslmode", "require"), ("sslrootcert", "/no/such/file")],
                "/no/such/file: No such file",
            ),
            (
                Wire::Postgres,
                &[("sslmode", "verify-ca"), ("sslrootcert", "Cargo.toml")],
                "Cargo.toml holds no certificate",
            ),
        ] {
            let error = tls(wire, parameters).unwrap_err();
            assert!(error.contains(why), "{parameters:?}: {error}");
        }
    }
}
