//! `cargo xtask stores`: stores of entities that really run, each in every mapping. The judge is
//! `bench/sessions/examples/stores.rs`; here is what it needs: packages of Debian, FerretDB, and
//! the jars of Cassandra and HBase, which `test/stores` pins. These are kept outside of the
//! checkout, in the folder that `TRELLIS_STORES` names or in the cache of the user.

use crate::{ci, ferretdb, install, packages, repo, shell};
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;

/// Where a store comes from.
#[derive(Clone, Copy)]
enum From {
    /// It is there.
    Here,
    /// PostgreSQL's packages.
    Postgres,
    /// A package of Debian, with a program of it.
    Debian(&'static str, &'static str),
    /// Jars, whose folder stands in this variable.
    Jars(&'static str),
    /// A program that is built from its Go module, and found in the path.
    Go,
}

/// All stores, in the order in which they are judged.
const STORES: [(&str, From); 8] = [
    ("memory", From::Here),
    ("postgres", From::Postgres),
    (
        "mariadb",
        From::Debian("mariadb-server", "/usr/sbin/mariadbd"),
    ),
    (
        "redis",
        From::Debian("redis-server", "/usr/bin/redis-server"),
    ),
    ("etcd", From::Debian("etcd-server", "/usr/bin/etcd")),
    ("cassandra", From::Jars("TRELLIS_CASSANDRA_JARS")),
    ("hbase", From::Jars("TRELLIS_HBASE_JARS")),
    ("ferretdb", From::Go),
];

/// Runs the command.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let known = STORES.map(|(name, _)| name);
    if let Some(name) = args.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no store is called {name}; there are {}", known.join(", "));
    }
    let is_wanted = |name: &str| args.is_empty() || args.iter().any(|wanted| wanted == name);
    let mut judge = ci::cargo();
    judge.args([
        "run",
        "--quiet",
        "-p",
        "sessions",
        "--example",
        "stores",
        "--",
    ]);
    let (mut there, mut missing) = (0, Vec::new());
    for (name, from) in STORES.iter().filter(|(name, _)| is_wanted(name)) {
        match get(name, *from) {
            Ok(named) => {
                there += 1;
                judge.arg(name);
                if let Some((variable, value)) = named {
                    judge.env(variable, value);
                }
            }
            Err(error) => {
                println!("{name} is not installed: {error:#}");
                missing.push(*name);
            }
        }
    }
    let judged = match there {
        0 => Ok(()),
        _ => shell::run(&mut judge),
    };
    if !missing.is_empty() {
        println!("not installed, and so not judged: {}", missing.join(", "));
    }
    judged?;
    if is_wanted("ferretdb") && !missing.contains(&"ferretdb") {
        ferretdb::tests()?;
    }
    ensure!(
        args.is_empty() || missing.is_empty(),
        "{} could not be installed",
        missing.join(", ")
    );
    ensure!(there > 0, "no store could be installed");
    Ok(())
}

/// Installs a store where it is missing. Of one that is no package: which variable tells where it
/// is, and its value.
fn get(name: &str, from: From) -> Result<Option<(&'static str, PathBuf)>> {
    match from {
        From::Here => Ok(None),
        From::Postgres => install::postgres().map(|()| None),
        From::Debian(package, program) => install::package(package, program).map(|()| None),
        From::Go => Ok(Some(("PATH", ferretdb::path()?))),
        From::Jars(variable) => {
            // Whoever has them already tells where.
            if let Some(folder) = std::env::var_os(variable) {
                return Ok(Some((variable, folder.into())));
            }
            let folder = kept()?.join(name);
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            let project = repo::root().join("test/stores").join(name);
            Ok(Some((variable, packages::jars(&project, &folder)?)))
        }
    }
}

/// Where jars are kept.
fn kept() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("TRELLIS_STORES") {
        return Ok(folder.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = cache
        .or_else(home)
        .context("neither HOME nor TRELLIS_STORES is set")?;
    Ok(cache.join("trellis/stores"))
}
