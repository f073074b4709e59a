//! Certificates for servers with TLS: made for one test, by an authority of their own.

use crate::nanos;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The user that servers run as where this is root.
const NOBODY: u32 = 65_534;

/// A server's certificate with its key, and the authority that has signed it, as files in PEM.
/// They are removed when dropped.
#[derive(Debug)]
pub struct Certificates(PathBuf);

impl Certificates {
    /// For a server with these names: of hosts, or addresses.
    pub fn new(names: &[&str]) -> Certificates {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trellis-tls-{}-{number}-{}", std::process::id(), nanos());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).expect("nobody else has made this folder");
        let made = Certificates(folder);
        let authority_key = KeyPair::generate().expect("there are random numbers");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let root = authority.self_signed(&authority_key);
        let root = root.expect("an authority signs itself");
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("there are random numbers");
        let names: Vec<String> = names.iter().map(|name| String::from(*name)).collect();
        let server = CertificateParams::new(names).expect("names are names");
        let server = server.signed_by(&key, &issuer).expect("it can be signed");
        made.write("root.pem", &root.pem());
        made.write("server.pem", &server.pem());
        made.write("key.pem", &key.serialize_pem());
        made
    }

    /// Writes a file that only the server's user reads.
    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        let mut file = File::create_new(&path).expect("the folder is new");
        file.write_all(text.as_bytes()).expect("it is writable");
        let private = Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, private).expect("the file is ours");
        let own = std::fs::metadata("/proc/self").expect("this process runs");
        if own.uid() == 0 {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
    }

    /// The authority's certificate.
    pub fn root(&self) -> PathBuf {
        self.0.join("root.pem")
    }

    /// The server's.
    pub fn server(&self) -> PathBuf {
        self.0.join("server.pem")
    }

    /// Its key.
    pub fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        // Best effort: small files that stay behind do no harm.
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}
