//! How nodes prove to each other who they are: the section `[peers]` of the cluster file.
//!
//! ```toml
//! [peers]
//! certificates = "tls"  # folder of ca.crt, node-1.crt, node-1.key, ..., and maybe revoked.crl
//! ```
//!
//! The certificate of node 2 of cluster 4711 is for the name `node-2.cluster-4711.trellis`, so an
//! authority that certifies other things, too, makes nobody a node by that. Both sides show one.
//! The files are read again when they have changed.

use crate::RuntimeError;
use crate::tls::{Tls, chain_of, key_of, wrong};
use base::NodeId;
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The section as it is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeersEntry {
    /// Folder of the authority's certificate, those of the nodes and their keys. A node needs its
    /// own key only.
    pub certificates: PathBuf,
}

/// The name in the certificate of a node.
pub fn node_name(cluster: u64, node: NodeId) -> String {
    format!("node-{}.cluster-{cluster}.trellis", node.0)
}

/// The serial number of the first certificate in a PEM file.
///
/// # Errors
/// The file cannot be read or has no certificate.
pub fn serial_number(path: &Path) -> Result<Vec<u8>, RuntimeError> {
    let chain = chain_of(path)?;
    let first = webpki::EndEntityCert::try_from(&chain[0]).map_err(|error| wrong(path, &error))?;
    Ok(first.serial().to_vec())
}

/// The first common name in the first certificate: for whom it is.
pub(crate) fn common_name(chain: &[CertificateDer<'_>]) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(chain.first()?).ok()?;
    let mut names = certificate.subject();
    while let Some((_, set, rest)) = next_value(names) {
        let (_, pair, _) = next_value(set)?;
        let (_, kind, value) = next_value(pair)?;
        if kind == COMMON_NAME {
            let (_, text, _) = next_value(value)?;
            return String::from_utf8(text.to_vec()).ok();
        }
        names = rest;
    }
    None
}

/// The kind of name 2.5.4.3, as DER writes it.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// Tag and contents of the value in front, and what follows it. DER; names are short.
fn next_value(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, bytes) = bytes.split_first()?;
    let (length, bytes) = bytes.split_first()?;
    let (length, bytes) = match length {
        0..=0x7f => (usize::from(*length), bytes),
        0x81 => {
            let (length, bytes) = bytes.split_first()?;
            (usize::from(*length), bytes)
        }
        0x82 => {
            let (length, bytes) = bytes.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), bytes)
        }
        _ => return None,
    };
    let (contents, rest) = bytes.split_at_checked(length)?;
    Some((*tag, contents, rest))
}

/// Where the files of a node are.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    pub(crate) cluster: u64,
    node: NodeId,
}

/// When the files were changed last, as far as is known.
pub(crate) type Changed = [Option<SystemTime>; 4];

impl Files {
    pub(crate) fn new(entry: &PeersEntry, cluster: u64, node: NodeId) -> Files {
        Files {
            folder: entry.certificates.clone(),
            cluster,
            node,
        }
    }

    /// Authority, certificate, key, list of what was revoked.
    fn paths(&self) -> [PathBuf; 4] {
        let own = |end: &str| self.folder.join(format!("node-{}.{end}", self.node.0));
        let common = |name: &str| self.folder.join(name);
        [
            common("ca.crt"),
            own("crt"),
            own("key"),
            common("revoked.crl"),
        ]
    }

    pub(crate) fn changed(&self) -> Changed {
        self.paths()
            .map(|path| std::fs::metadata(path).ok()?.modified().ok())
    }

    /// Reads them.
    ///
    /// # Errors
    /// One is missing or has another form; the list of what was revoked may be missing.
    pub(crate) fn read(&self) -> Result<Credentials, RuntimeError> {
        let [authority, certificate, key, revoked] = self.paths();
        let chain = chain_of(&certificate)?;
        let is_own = is_of(&chain, self.cluster, self.node);
        if !is_own {
            let name = node_name(self.cluster, self.node);
            return Err(wrong(
                &certificate,
                &format_args!("the certificate is not for {name}"),
            ));
        }
        let trust = Trust::read(&authority, revoked.exists().then_some(&*revoked))?;
        let (incoming, outgoing) = (trust.of_clients(Shown::Always)?, trust.of_servers()?);
        let both = "the provider has the suites of TLS 1.3";
        let mut server = ServerConfig::builder_with_provider(trust.provider.clone())
            .with_protocol_versions(&[&TLS13])
            .expect(both)
            .with_client_cert_verifier(incoming.clone())
            .with_single_cert(chain.clone(), key_of(&key)?)
            .map_err(|error| wrong(&key, &error))?;
        // Each connection is proved anew: what was revoked meanwhile counts.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(trust.provider)
            .with_protocol_versions(&[&TLS13])
            .expect(both)
            .with_webpki_verifier(outgoing)
            .with_client_auth_cert(chain, key_of(&key)?)
            .map_err(|error| wrong(&key, &error))?;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        Ok(Credentials {
            cluster: self.cluster,
            server: Arc::new(server),
            client: Arc::new(client),
            verifier: incoming,
        })
    }
}

/// Whether those that connect show a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Always,
    Maybe,
}

/// An authority, and what it has revoked.
pub(crate) struct Trust {
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
    path: PathBuf,
}

impl Trust {
    /// Reads the certificates of authorities and their lists of revoked ones.
    ///
    /// # Errors
    /// A file cannot be read or has another form.
    pub(crate) fn read(authority: &Path, revoked: Option<&Path>) -> Result<Trust, RuntimeError> {
        let mut roots = RootCertStore::empty();
        for root in chain_of(authority)? {
            roots.add(root).map_err(|error| wrong(authority, &error))?;
        }
        let lists = revoked.map(|path| {
            CertificateRevocationListDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|error| wrong(path, &error))
        });
        Ok(Trust {
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            roots: Arc::new(roots),
            revoked: lists.transpose()?.unwrap_or_default(),
            path: revoked.unwrap_or(authority).to_owned(),
        })
    }

    /// Judges those that connect.
    pub(crate) fn of_clients(
        &self,
        shown: Shown,
    ) -> Result<Arc<dyn ClientCertVerifier>, RuntimeError> {
        let provider = self.provider.clone();
        let judge = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider)
            .with_crls(self.revoked.clone())
            .only_check_end_entity_revocation()
            .allow_unknown_revocation_status();
        let judge = match shown {
            Shown::Always => judge,
            Shown::Maybe => judge.allow_unauthenticated(),
        };
        judge.build().map_err(|error| wrong(&self.path, &error))
    }

    /// Judges those that are connected to.
    fn of_servers(&self) -> Result<Arc<WebPkiServerVerifier>, RuntimeError> {
        let provider = self.provider.clone();
        WebPkiServerVerifier::builder_with_provider(self.roots.clone(), provider)
            .with_crls(self.revoked.clone())
            .only_check_end_entity_revocation()
            .allow_unknown_revocation_status()
            .build()
            .map_err(|error| wrong(&self.path, &error))
    }
}

/// Whether the first certificate is for this node.
fn is_of(chain: &[CertificateDer<'_>], cluster: u64, node: NodeId) -> bool {
    let name = ServerName::try_from(node_name(cluster, node));
    let first = chain.first().map(ParsedCertificate::try_from);
    let (Ok(name), Some(Ok(first))) = (name, first) else {
        return false;
    };
    verify_server_name(&first, &name).is_ok()
}

/// What a node shows, and whom it believes.
pub(crate) struct Credentials {
    cluster: u64,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Credentials {
    /// For a connection to a node.
    pub(crate) fn connect(&self, node: NodeId) -> Result<Tls, rustls::Error> {
        let name = ServerName::try_from(node_name(self.cluster, node));
        let name = name.map_err(|error| rustls::Error::General(error.to_string()))?;
        Tls::connect(self.client.clone(), name)
    }

    /// For a connection that somebody opened.
    pub(crate) fn accept(&self) -> Result<Tls, rustls::Error> {
        Tls::accept(self.server.clone())
    }

    /// Whether what the other side has shown is the certificate of this node.
    pub(crate) fn is_of(&self, tls: &Tls, node: NodeId) -> bool {
        is_of(tls.shown(), self.cluster, node)
    }

    /// Whether what the other side has shown would be believed today.
    pub(crate) fn recheck(&self, tls: &Tls) -> Result<(), rustls::Error> {
        let Some((first, others)) = tls.shown().split_first() else {
            // It has not shown anything yet: that is judged when it does.
            return Ok(());
        };
        let judged = self
            .verifier
            .verify_client_cert(first, others, UnixTime::now());
        judged.map(|_| ())
    }
}
