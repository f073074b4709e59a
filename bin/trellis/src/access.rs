//! `trellis role`: who may log in.

use anyhow::{Context, Result, bail};
use clap::Args;
use local_cluster::login::generated;
use runtime::access::Roles;
use std::io::{BufRead, Write};
use std::path::PathBuf;

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
