//! Who may log in, and how: the section `[access]` of the cluster file.
//!
//! ```toml
//! [access]
//! roles = "roles"             # lines of `name verifier`; `trellis role` writes them
//! certificate = "server.crt"  # PEM; with a key, TLS is offered
//! key = "server.key"
//! loopback = "password"       # or "trust": no password for clients on this machine
//! rules = "rules"             # what is asked of whom, see `crate::rules`
//! client_authority = "ca.crt" # whose certificates of clients are believed, PEM
//! client_revoked = "revoked.crl"
//! ```
//!
//! A relative path begins at the cluster file's folder. A file that has changed is read again when
//! a client connects.

use crate::RuntimeError;
use crate::credentials::Trust;
use crate::rules::{Method, Rules};
use crate::tls;
use rustls::ServerConfig;
use scram::{Binding, Secret, Verifier};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The section as it is written.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessEntry {
    /// File of the roles and what is kept of their passwords.
    pub roles: PathBuf,
    /// Certificate of the server and of those that vouch for it, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// The certificate's private key, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// What is asked of clients on this machine.
    #[serde(default)]
    pub loopback: Loopback,
    /// File of the rules which proof is asked of whom. Without it: of all a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<PathBuf>,
    /// Certificates of the authorities whose certificates of clients are believed, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_authority: Option<PathBuf>,
    /// Lists of the certificates of clients that are revoked, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_revoked: Option<PathBuf>,
}

/// What is asked of clients that connect by a loopback address. Others need TLS and a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loopback {
    /// A password, with or without TLS.
    #[default]
    Password,
    /// Nothing: who has an account on the machine is any role.
    Trust,
}

impl AccessEntry {
    /// Paths become relative to `folder`.
    pub(crate) fn resolve(&mut self, folder: &Path) {
        let AccessEntry {
            roles,
            certificate,
            key,
            loopback: _,
            rules,
            client_authority,
            client_revoked,
        } = self;
        let paths = [
            Some(roles),
            certificate.as_mut(),
            key.as_mut(),
            rules.as_mut(),
            client_authority.as_mut(),
            client_revoked.as_mut(),
        ];
        for path in paths.into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }

    /// Whether TLS is offered.
    pub(crate) fn encrypts(&self) -> bool {
        self.certificate.is_some() && self.key.is_some()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        match (&self.certificate, &self.key) {
            (Some(_), None) => Err("key `access.key` is missing: the certificate's".into()),
            (None, Some(_)) => Err("key `access.certificate` is missing: the key's".into()),
            (None, None) if self.client_authority.is_some() => {
                Err("key `access.certificate` is missing: clients show theirs by TLS only".into())
            }
            _ if self.client_revoked.is_some() && self.client_authority.is_none() => {
                Err("key `access.client_authority` is missing: it signs the revoked list".into())
            }
            _ if self.rules.is_some() && self.loopback == Loopback::Trust => {
                Err("keys `access.rules` and `access.loopback`: rules trust nobody".into())
            }
            _ => Ok(()),
        }
    }
}

/// A file, and when it was changed last, as far as is known.
#[derive(Clone, Debug)]
struct Watched(PathBuf, Option<SystemTime>);

impl Watched {
    /// Call it before the file is read: what is changed between the two is read once more.
    fn new(path: &Path) -> Watched {
        Watched(path.to_owned(), changed(path))
    }

    /// Whether it has changed since the last call.
    fn has_changed(&mut self) -> bool {
        let now = changed(&self.0);
        std::mem::replace(&mut self.1, now) != now
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// Who may log in at one shard, and how.
#[derive(Clone)]
pub(crate) struct Access {
    entry: AccessEntry,
    tls: Option<Arc<ServerConfig>>,
    /// What a login over TLS is bound to.
    pub(crate) binding: Binding,
    pub(crate) loopback: Loopback,
    roles: Roles,
    /// Of the same roles. Drawn when they are read: a login takes as long whether its role exists.
    secret: Secret,
    rules: Option<Rules>,
    roles_file: Watched,
    rules_file: Option<Watched>,
    certificates: Vec<Watched>,
}

impl Access {
    /// Reads the files that the section names.
    pub(crate) fn read(entry: &AccessEntry) -> Result<Access, RuntimeError> {
        let certificates = [
            &entry.certificate,
            &entry.key,
            &entry.client_authority,
            &entry.client_revoked,
        ];
        let certificates = certificates.into_iter().flatten();
        let certificates = certificates.map(|path| Watched::new(path)).collect();
        let roles_file = Watched::new(&entry.roles);
        let rules_file = entry.rules.as_deref().map(Watched::new);
        let roles = Roles::read(&entry.roles)?;
        let (tls, binding) = read_tls(entry)?;
        Ok(Access {
            tls,
            binding,
            loopback: entry.loopback,
            secret: roles.secret(),
            roles,
            rules: read_rules(entry)?,
            entry: entry.clone(),
            roles_file,
            rules_file,
            certificates,
        })
    }

    /// Whether TLS is offered.
    pub(crate) fn encrypts(&self) -> bool {
        self.tls.is_some()
    }

    /// The settings of TLS, as the files have them now.
    pub(crate) fn tls(&mut self) -> Option<Arc<ServerConfig>> {
        let changed = self.certificates.iter_mut().map(Watched::has_changed);
        if changed.fold(false, |any, changed| any | changed) {
            match read_tls(&self.entry) {
                Ok((tls, binding)) => (self.tls, self.binding) = (tls, binding),
                // They are written one after the other: the last one changes them once more.
                Err(error) => tracing::warn!(%error, "the certificates stay as they were"),
            }
        }
        self.tls.clone()
    }

    /// What is asked of a client; `None`: no rule fits.
    pub(crate) fn method(
        &mut self,
        database: &str,
        role: &str,
        from: Option<IpAddr>,
    ) -> Option<Method> {
        if self.rules_file.as_mut().is_some_and(Watched::has_changed) {
            match read_rules(&self.entry) {
                Ok(rules) => self.rules = rules,
                Err(error) => tracing::warn!(%error, "the rules stay as they were"),
            }
        }
        match &self.rules {
            None => Some(Method::Scram),
            Some(rules) => rules.method(database, role, from),
        }
    }

    /// The verifier of a role, or a made-up one for a role that does not exist. `true`: it exists.
    pub(crate) fn verifier(&mut self, role: &str) -> (Verifier, bool) {
        if self.roles_file.has_changed() {
            match Roles::read(&self.roles_file.0) {
                Ok(roles) => (self.secret, self.roles) = (roles.secret(), roles),
                // Half a file must lock nobody out: it will change once more.
                Err(error) => tracing::warn!(%error, "the roles stay as they were"),
            }
        }
        match self.roles.verifiers.get(role) {
            Some(verifier) => (verifier.clone(), true),
            None => (Verifier::mock(&self.secret, role), false),
        }
    }
}

fn read_tls(entry: &AccessEntry) -> Result<(Option<Arc<ServerConfig>>, Binding), RuntimeError> {
    let (Some(certificate), Some(key)) = (&entry.certificate, &entry.key) else {
        return Ok((None, Binding::None));
    };
    let authority = entry.client_authority.as_deref();
    let clients = authority.map(|path| Trust::read(path, entry.client_revoked.as_deref()));
    let (config, binding) = tls::server(certificate, key, clients.transpose()?.as_ref())?;
    Ok((Some(config), binding))
}

fn read_rules(entry: &AccessEntry) -> Result<Option<Rules>, RuntimeError> {
    let Some(path) = &entry.rules else {
        return Ok(None);
    };
    let rules = Rules::read(path)?;
    if rules.ask_certificates() && entry.client_authority.is_none() {
        let what = "a rule asks for a certificate, and `access.client_authority` is missing";
        return Err(tls::wrong(path, &what));
    }
    Ok(Some(rules))
}

/// The roles of a file.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Roles {
    /// What is kept of the password of each.
    pub verifiers: BTreeMap<String, Verifier>,
}

impl Roles {
    /// Reads a file of lines `name verifier`. Empty lines and those that begin with `#` are for
    /// its readers.
    ///
    /// # Errors
    /// The file cannot be read, or a line has another form; the error names it.
    pub fn read(path: &Path) -> Result<Roles, RuntimeError> {
        let text = std::fs::read_to_string(path).map_err(RuntimeError::file("read", path))?;
        Roles::parse(&text).map_err(|message| RuntimeError::Cluster {
            path: path.to_path_buf(),
            message,
        })
    }

    fn parse(text: &str) -> Result<Roles, String> {
        let mut verifiers = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| format!("line {}: {what}", index + 1);
            // A name may have blanks in it, a verifier has none.
            let (name, verifier) = line
                .rsplit_once(char::is_whitespace)
                .ok_or_else(|| wrong("not of the form `name verifier`"))?;
            let verifier = Verifier::parse(verifier)
                .map_err(|error| wrong(&format!("the verifier is {error}")))?;
            let name = name.trim_end().to_owned();
            if verifiers.insert(name, verifier).is_some() {
                return Err(wrong("the role stands in the file twice"));
            }
        }
        Ok(Roles { verifiers })
    }

    fn secret(&self) -> Secret {
        Secret::of(self.verifiers.values())
    }

    /// Sets what is kept of a role's password.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn set_password(&mut self, role: &str, password: &str) -> Result<(), RuntimeError> {
        let verifier = Verifier::new(password, random_bytes()?);
        self.verifiers.insert(role.to_owned(), verifier);
        Ok(())
    }

    /// Writes the file in one step: a server that reads it meanwhile reads the old or the new one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RuntimeError> {
        let mut text =
            String::from("# Roles, and what is kept of their passwords (`trellis role`)\n");
        for (name, verifier) in &self.verifiers {
            let _ = writeln!(text, "{name} {verifier}");
        }
        let draft = path.with_extension("draft");
        let written = write_secret(&draft, text.as_bytes());
        written.map_err(RuntimeError::file("write", &draft))?;
        std::fs::rename(&draft, path).map_err(RuntimeError::file("write", path))
    }
}

/// Writes a file that only its owner can read, from its first byte on, and that is durable then.
///
/// # Errors
/// It cannot be written.
pub fn write_secret(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}

/// Bytes for secrets.
///
/// # Errors
/// The system gives none.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], RuntimeError> {
    let mut bytes = [0; N];
    let random = rustls::crypto::ring::default_provider().secure_random;
    let none = |_| RuntimeError::Foreign("the system gives no random bytes".into());
    random.fill(&mut bytes).map_err(none)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_go_both_ways() {
        let folder = std::env::temp_dir().join(format!("roles-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("roles");
        let mut roles = Roles::default();
        for name in ["trellis", "a name with blanks", "Größe"] {
            let verifier = Verifier::new(name, [7; 16]);
            roles.verifiers.insert(name.to_owned(), verifier);
        }
        roles.write(&path).unwrap();
        assert_eq!(Roles::read(&path).unwrap(), roles);
        let mode = std::fs::metadata(&path).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
        assert_eq!(mode & 0o077, 0, "others can read it");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn wrong_lines_are_named() {
        let good = Verifier::new("x", [7; 16]);
        for (text, part) in [
            ("# one\ntrellis".to_owned(), "line 2: not of the form"),
            (
                "trellis secret".to_owned(),
                "line 1: the verifier is not of the form",
            ),
            (format!("a {good}\n\na {good}"), "line 3: the role stands"),
        ] {
            let error = Roles::parse(&text).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
