//! `trellis role` and `trellis cert`: what a server needs so that others may log in.

use anyhow::{Context, Result, bail};
use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use runtime::access::{Roles, random_bytes, write_secret};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

/// Characters of a password that is made up: without those that look alike.
const CHARACTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// Its length: 143 bits.
const PASSWORD_LENGTH: usize = 25;

/// Arguments of `trellis role`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis role alice --file roles --generate      prints the password that it has made\n  \
    trellis role bob --file roles < password.txt    the first line is the password\n  \
    trellis role alice --file roles --drop          alice cannot log in any more\n\n\
    A running server reads the file again at the next login.")]
pub(crate) struct RoleArgs {
    /// Name of the role
    name: String,
    /// The file that `access.roles` of the cluster file names
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Make a password and print it; without this it is the first line of the standard input
    #[arg(long, conflicts_with = "drop")]
    generate: bool,
    /// Remove the role; its sessions go on until they end
    #[arg(long)]
    drop: bool,
}

/// Adds a role to a file, changes its password, or removes it.
///
/// # Errors
/// The file has lines of another form, or cannot be written; there is no password.
pub(crate) fn run_role(args: &RoleArgs) -> Result<()> {
    let name = &*args.name;
    let is_plain = name == name.trim() && !name.contains(char::is_control);
    if name.is_empty() || name.starts_with('#') || !is_plain {
        bail!(
            "a role's name is not empty, has no control characters, does not begin with # and has \
             no blanks at its ends"
        );
    }
    let mut roles = match args.file.exists() {
        true => Roles::read(&args.file)?,
        false => Roles::default(),
    };
    if args.drop {
        if roles.verifiers.remove(name).is_none() {
            bail!("{} has no role \"{name}\"", args.file.display());
        }
        return Ok(roles.write(&args.file)?);
    }
    let password = match args.generate {
        true => generated()?,
        false => read_password()?,
    };
    roles.set_password(name, &password)?;
    roles.write(&args.file)?;
    if args.generate {
        writeln!(std::io::stdout(), "{password}")?;
    }
    Ok(())
}

fn generated() -> Result<String> {
    let mut password = String::new();
    while password.len() < PASSWORD_LENGTH {
        // Bytes above the last whole multiple would make some characters likelier.
        let limit = 256 / CHARACTERS.len() * CHARACTERS.len();
        let fits = random_bytes::<32>()?.into_iter().map(usize::from);
        let fits = fits.filter(|byte| *byte < limit);
        let drawn = fits.map(|byte| char::from(CHARACTERS[byte % CHARACTERS.len()]));
        password.extend(drawn.take(PASSWORD_LENGTH - password.len()));
    }
    Ok(password)
}

fn read_password() -> Result<String> {
    use std::io::IsTerminal;
    if std::io::stdin().is_terminal() {
        bail!("the password would be seen: give it by the standard input, or take --generate");
    }
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("cannot read the password")?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        bail!("the first line of the standard input is the password, and it is empty");
    }
    Ok(password.to_owned())
}

/// Arguments of `trellis cert`.
#[derive(Args)]
#[command(after_help = "Example:\n  \
    trellis cert ./cluster --host db.example.com --host 10.0.0.7\n\n\
    Clients verify the server with ca.crt (psql: sslmode=verify-full sslrootcert=ca.crt). \
    The same command with other hosts makes a new certificate of the same authority. Whoever has \
    ca.key can make certificates that your clients believe.")]
pub(crate) struct CertArgs {
    /// Directory of ca.crt, ca.key, server.crt and server.key
    dir: PathBuf,
    /// Name or address under which clients reach the server; may be repeated
    #[arg(long = "host", value_name = "HOST", required = true)]
    hosts: Vec<String>,
}

/// Makes a certificate authority, unless the directory has one, and a server's certificate.
///
/// # Errors
/// A file cannot be written, or a host is no name.
pub(crate) fn run_cert(args: &CertArgs) -> Result<()> {
    std::fs::create_dir_all(&args.dir)
        .with_context(|| format!("cannot make {}", args.dir.display()))?;
    let issuer = authority(&args.dir)?;
    let mut params = CertificateParams::new(args.hosts.clone()).context("a host is no name")?;
    params.distinguished_name = named(&args.hosts[0]);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    keep_secret(&args.dir.join("server.key"), &key.serialize_pem())?;
    write(&args.dir.join("server.crt"), &certificate.pem())?;
    let dir = args.dir.display();
    writeln!(
        std::io::stdout(),
        "{dir}/server.crt and {dir}/server.key are for `[access]` of the"
    )?;
    writeln!(
        std::io::stdout(),
        "cluster file, {dir}/ca.crt is for clients, {dir}/ca.key for nobody."
    )?;
    Ok(())
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

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn keep_secret(path: &Path, text: &str) -> Result<()> {
    write_secret(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}
