//! Installs what the tests with real clients and peers need, where it is missing: Debian's packages
//! of PostgreSQL 15 (server, psql, pgbench), MariaDB, Redis and etcd, valgrind, OpenSSH, a Java
//! runtime and the JDBC driver, and Python's drivers and ORM in an environment of their own. What
//! comes by npm, Go modules and Maven is in `packages`.

use crate::{repo, shell};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian keeps the programs of PostgreSQL 15, most of them outside of PATH.
pub(crate) const POSTGRES_PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Where Debian keeps the JDBC driver.
pub(crate) const JDBC_JAR: &str = "/usr/share/java/postgresql.jar";
/// The Python packages that are tested, each with the name of its module.
const PYTHON: [(&str, &str); 5] = [
    ("psycopg[binary]==3.2.3", "psycopg"),
    ("asyncpg==0.30.0", "asyncpg"),
    ("SQLAlchemy==2.0.36", "sqlalchemy"),
    ("Django==5.1.4", "django"),
    ("Jinja2==3.1.4", "jinja2"),
];
/// Keeps Debian's scripts from making and starting a server that nobody asked for.
const NO_MAIN_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/no-main-cluster.conf";

/// Installs everything that is missing.
pub(crate) fn all() -> Result<()> {
    postgres()?;
    let mut packages = Vec::new();
    if shell::find("java").is_none() || shell::find("javac").is_none() {
        packages.push("default-jdk-headless");
    }
    if !Path::new(JDBC_JAR).is_file() {
        packages.push("libpostgresql-jdbc-java");
    }
    for (program, package) in [
        ("/usr/sbin/mariadbd", "mariadb-server"),
        ("/usr/bin/redis-server", "redis-server"),
        ("/usr/bin/etcd", "etcd-server"),
        ("/usr/sbin/sshd", "openssh-server"),
        ("/usr/bin/ssh", "openssh-client"),
    ] {
        if !Path::new(program).is_file() {
            packages.push(package);
        }
    }
    apt(&packages)?;
    callgrind()?;
    network_tools()?;
    python()?;
    crate::packages::all()
}

/// Installs Node.js and its package manager, if they are missing.
pub(crate) fn node() -> Result<()> {
    let tools = [("node", "nodejs"), ("npm", "npm")];
    let missing = tools.iter().filter(|(tool, _)| shell::find(tool).is_none());
    apt(&missing.map(|(_, package)| *package).collect::<Vec<_>>())
}

/// The compiler of Go; installed, if it is missing.
pub(crate) fn go() -> Result<PathBuf> {
    // Where its own releases are put, which may not be on PATH.
    let released = Path::new("/usr/local/go/bin/go");
    if let Some(found) = shell::find("go") {
        return Ok(found);
    }
    if !released.is_file() {
        apt(&["golang-go"])?;
        return shell::find("go").context("Go is installed and not on PATH");
    }
    Ok(released.to_path_buf())
}

/// Installs Maven, a compiler of Java and the JDBC driver, if they are missing.
pub(crate) fn maven() -> Result<()> {
    let tools = [("mvn", "maven"), ("javac", "default-jdk-headless")];
    let missing = tools.iter().filter(|(tool, _)| shell::find(tool).is_none());
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if !Path::new(JDBC_JAR).is_file() {
        packages.push("libpostgresql-jdbc-java");
    }
    apt(&packages)
}

/// Installs PostgreSQL's server and clients, if they are missing.
pub(crate) fn postgres() -> Result<()> {
    let programs = Path::new(POSTGRES_PROGRAMS);
    if ["initdb", "pg_ctl", "pgbench", "psql"]
        .iter()
        .all(|name| programs.join(name).is_file())
    {
        return Ok(());
    }
    apt(&["postgresql-common"])?;
    let config = Path::new(NO_MAIN_CLUSTER);
    if let Some(folder) = config.parent() {
        std::fs::create_dir_all(folder)?;
        std::fs::write(config, "create_main_cluster = false\n")?;
    }
    apt(&["postgresql-15", "postgresql-client-15"])
}

/// Installs what counts instructions.
pub(crate) fn callgrind() -> Result<()> {
    match shell::find("callgrind_control") {
        Some(_) => Ok(()),
        None => apt(&["valgrind"]),
    }
}

/// Installs what parts nodes of one machine from each other: network namespaces and the packet
/// filter.
pub(crate) fn network_tools() -> Result<()> {
    let tools = [
        ("ip", "iproute2"),
        ("nft", "nftables"),
        ("iptables", "iptables"),
        ("unshare", "util-linux"),
    ];
    let missing = tools.iter().filter(|(name, _)| {
        // They stand where only root looks.
        let path = Path::new("/usr/sbin").join(name);
        shell::find(name).is_none() && !path.is_file()
    });
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    apt(&packages)
}

/// The Python of an environment that has the packages; made on first use.
pub(crate) fn python() -> Result<PathBuf> {
    let folder = repo::cache_dir()?.join("python");
    let python = folder.join("bin/python");
    let modules: Vec<&str> = PYTHON.iter().map(|(_, module)| *module).collect();
    let import = format!("import {}", modules.join(", "));
    let is_complete = |python: &Path| {
        python.is_file() && shell::output(Command::new(python).args(["-c", &import])).is_ok()
    };
    if is_complete(&python) {
        return Ok(python);
    }
    let make = || shell::run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    if make().is_err() {
        apt(&["python3", "python3-venv"])?;
        make()?;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    shell::run(pip.args(PYTHON.iter().map(|(package, _)| package)))?;
    ensure!(
        is_complete(&python),
        "the packages of Python are installed and cannot be imported"
    );
    Ok(python)
}

/// Installs a package of Debian, if this program of it is missing.
pub(crate) fn package(name: &str, program: &str) -> Result<()> {
    match Path::new(program).is_file() {
        true => Ok(()),
        false => apt(&[name]),
    }
}

/// Installs Debian packages; does nothing for an empty list.
fn apt(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    ensure!(
        shell::is_root(),
        "please install {} as root",
        packages.join(" ")
    );
    // Lists may be older than the packages that the server still has.
    shell::run(apt_get().args(["update", "--quiet"])).context("cannot update package lists")?;
    let mut install = apt_get();
    install
        .args(["install", "--quiet", "--yes", "--no-install-recommends"])
        .args(packages);
    shell::run(&mut install)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
