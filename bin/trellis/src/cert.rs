//! `trellis cert`: certificates of servers, nodes and clients, signed by an authority of its own.

use anyhow::{Context, Result, bail};
use base::NodeId;
use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber, date_time_ymd,
};
use runtime::ClusterFile;
use runtime::access::write_secret;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a list of revoked certificates is good: servers do not look at that.
const LIST_DAYS: u32 = 3650;

/// Arguments of `trellis cert`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis cert ./tls --host db.example.com --host 10.0.0.7   server.crt and server.key\n  \
    trellis cert ./tls --cluster cluster.toml                  node-1.crt, node-1.key, ...\n  \
    trellis cert ./tls --role alice --days 90                  alice.crt and alice.key\n  \
    trellis cert ./tls --revoke ./tls/alice.crt                revoked.crl\n\n\
    Clients verify the server with ca.crt (psql: sslmode=verify-full sslrootcert=ca.crt). \
    The same command again makes new certificates of the same authority. Whoever has ca.key can \
    make certificates that your clients and nodes believe: keep it away from servers.")]
pub(crate) struct CertArgs {
    /// Directory of ca.crt, ca.key and what is made
    dir: PathBuf,
    /// For a server: name or address under which clients reach it; may be repeated
    #[arg(long = "host", value_name = "HOST",
        required_unless_present_any = ["cluster", "roles", "revoke"])]
    hosts: Vec<String>,
    /// For the nodes of a cluster file: by these they prove to each other who they are
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// For a client that logs in as this role; may be repeated
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// Certificate that is not to be believed any more; may be repeated
    #[arg(long, value_name = "FILE")]
    revoke: Vec<PathBuf>,
    /// How long what is made is good [default: for ever]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,
}

/// Makes a certificate authority, unless the directory has one, and what is asked for.
///
/// # Errors
/// A file cannot be read or written, a host is no name, or a role's files would be those of others.
pub(crate) fn run(args: &CertArgs) -> Result<()> {
    let CertArgs {
        dir,
        hosts,
        cluster,
        roles,
        revoke,
        days,
    } = args;
    // Whatever is wrong with the arguments is said before anything is written.
    let file = cluster.as_deref().map(ClusterFile::read).transpose()?;
    CertificateParams::new(hosts.as_slice()).context("a host is no name")?;
    roles.iter().try_for_each(|role| check_role(role))?;
    let numbers = revoke.iter().map(|path| runtime::serial_number(path));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let workshop = Workshop {
        issuer: authority(dir)?,
        dir,
        days: *days,
    };
    let mut out = std::io::stdout();
    let shown = dir.display();
    if !hosts.is_empty() {
        let uses = vec![ExtendedKeyUsagePurpose::ServerAuth];
        workshop.certify("server", &hosts[0], hosts, uses)?;
        writeln!(
            out,
            "{shown}/server.crt and {shown}/server.key are for `[access]` of the\n\
             cluster file, {shown}/ca.crt is for clients, {shown}/ca.key for nobody."
        )?;
    }
    if let Some(file) = file {
        for node in &file.nodes {
            workshop.certify_node(file.cluster, NodeId(node.id))?;
        }
        writeln!(
            out,
            "{shown} is for `[peers]` of the cluster file: `certificates`. Node 1 needs ca.crt,\n\
             node-1.crt and node-1.key of it, and so do the others; ca.key is for none of them."
        )?;
    }
    for role in roles {
        let uses = vec![ExtendedKeyUsagePurpose::ClientAuth];
        workshop.certify(role, role, &[], uses)?;
        writeln!(
            out,
            "{shown}/{role}.crt and {shown}/{role}.key are for clients of role {role}."
        )?;
    }
    if !numbers.is_empty() {
        workshop.revoke(&numbers)?;
        writeln!(out, "{shown}/revoked.crl is for servers and nodes.")?;
    }
    Ok(())
}

/// A role's files have its name, and must not take the place of others.
fn check_role(role: &str) -> Result<()> {
    if role.is_empty() || role.contains(['/', '\0']) {
        bail!("a certificate's file has its role's name: without / and not empty");
    }
    // Some file systems do not tell capitals from small letters.
    let small = role.to_ascii_lowercase();
    let number = small.strip_prefix("node-");
    let is_number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let is_node = number.is_some_and(is_number);
    if is_node || ["ca", "server"].contains(&&*small) {
        bail!(
            "--role {role}: {role}.crt and {role}.key are the files of an authority, a server or a \
             node"
        );
    }
    Ok(())
}

/// Where certificates are made.
struct Workshop<'a> {
    issuer: Issuer<'static, KeyPair>,
    dir: &'a Path,
    days: Option<u32>,
}

impl Workshop<'_> {
    /// Writes `FILE.crt` and `FILE.key`.
    fn certify(
        &self,
        file: &str,
        name: &str,
        hosts: &[String],
        uses: Vec<ExtendedKeyUsagePurpose>,
    ) -> Result<()> {
        let mut params = CertificateParams::new(hosts).context("a host is no name")?;
        params.distinguished_name = named(name);
        params.extended_key_usages = uses;
        params.use_authority_key_identifier_extension = true;
        if let Some(days) = self.days {
            let now = now()?;
            // Clocks of others may be behind.
            params.not_before = date_time_ymd(1970, 1, 1) + now.saturating_sub(DAY);
            params.not_after = date_time_ymd(1970, 1, 1) + now + DAY * days;
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        keep_secret(&self.dir.join(format!("{file}.key")), &key.serialize_pem())?;
        write(&self.dir.join(format!("{file}.crt")), &certificate.pem())
    }

    fn certify_node(&self, cluster: u64, node: NodeId) -> Result<()> {
        let name = runtime::node_name(cluster, node);
        // A node accepts connections, and makes some.
        let uses = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let file = format!("node-{}", node.0);
        self.certify(&file, &name, std::slice::from_ref(&name), uses)
    }

    /// Adds to the serial numbers in `ca.revoked`, and writes them as a list that is signed.
    fn revoke(&self, serials: &[Vec<u8>]) -> Result<()> {
        let path = self.dir.join("ca.revoked");
        let mut numbers = match path.exists() {
            true => std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?,
            false => String::new(),
        };
        for serial in serials {
            let number = hex(serial);
            if !numbers.lines().any(|line| line == number) {
                let _ = writeln!(numbers, "{number}");
            }
        }
        write(&path, &numbers)?;
        let now = date_time_ymd(1970, 1, 1) + now()?;
        let revoked = numbers.lines().map(|line| {
            let bytes = from_hex(line);
            let bytes = bytes.with_context(|| format!("{}: {line:?}", path.display()))?;
            Ok(RevokedCertParams {
                serial_number: SerialNumber::from_slice(&bytes),
                revocation_time: now,
                reason_code: None,
                invalidity_date: None,
            })
        });
        let list = CertificateRevocationListParams {
            this_update: now,
            next_update: now + DAY * LIST_DAYS,
            crl_number: SerialNumber::from(numbers.lines().count() as u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect::<Result<_>>()?,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer)?;
        write(&self.dir.join("revoked.crl"), &list.pem()?)
    }
}

fn now() -> Result<Duration> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.context("the clock shows a time before 1970")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    bytes.collect()
}

/// The authority of a directory, which is made if it is missing.
fn authority(dir: &Path) -> Result<Issuer<'static, KeyPair>> {
    let path = dir.join("ca.key");
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = named("Trellis certificate authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if path.exists() {
        let pem = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let key = KeyPair::from_pem(&pem).with_context(|| format!("{}", path.display()))?;
        return Ok(Issuer::new(params, key));
    }
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    keep_secret(&path, &key.serialize_pem())?;
    write(&dir.join("ca.crt"), &certificate.pem())?;
    Ok(Issuer::new(params, key))
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// In one step: a server that reads the file meanwhile reads the old or the new one.
fn write(path: &Path, text: &str) -> Result<()> {
    let draft = path.with_extension("draft");
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn keep_secret(path: &Path, text: &str) -> Result<()> {
    let draft = path.with_extension("draft");
    let written = write_secret(&draft, text.as_bytes());
    let written = written.and_then(|()| std::fs::rename(&draft, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}
