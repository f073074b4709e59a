//! Clients that are programs of their own: they get a URL, assert, and print `passed: N`.

use super::{CLIENT_LIMIT, Ground};
use crate::{ci, install, packages, repo, shell};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// tokio-postgres: test/clients/rust.
pub(super) fn tokio_postgres(ground: &Ground, database: &str) -> Result<usize> {
    let mut command = Command::new(rust_program("clients")?);
    command.arg(ground.server.url(database));
    checks(ground, "tokio_postgres", &mut command)
}

/// Messages one by one: test/clients/wire, recorded from PostgreSQL. `UPDATE=1` with the peer
/// records again; a person reads the difference.
pub(super) fn wire(ground: &Ground, database: &str) -> Result<usize> {
    let folder = repo::root().join("test/clients/wire");
    let mut passed = 0;
    for script in ["at_once.txt", "calls.txt", "startup.txt", "random.txt"] {
        let program = || -> Result<Command> {
            let mut command = Command::new(install::python()?);
            command.arg("-B").arg(folder.join("wire.py"));
            Ok(command)
        };
        let path = folder.join(script);
        let url = ground.server.url(database);
        if std::env::var_os("UPDATE").is_some() {
            let mut record = program()?;
            record.arg("record").arg(&url).arg(&path);
            shell::run_logged(&mut record, &ground.log("wire"), CLIENT_LIMIT)?;
        }
        let mut play = program()?;
        play.arg("play").arg(&url).arg(&path);
        passed += checks(ground, "wire", &mut play)?;
    }
    Ok(passed)
}

/// psycopg 3: test/clients/psycopg.
pub(super) fn psycopg(ground: &Ground, database: &str) -> Result<usize> {
    python(ground, database, "psycopg")
}

/// asyncpg: test/clients/asyncpg.
pub(super) fn asyncpg(ground: &Ground, database: &str) -> Result<usize> {
    python(ground, database, "asyncpg")
}

/// SQLAlchemy 2: test/clients/sqlalchemy.
pub(super) fn sqlalchemy(ground: &Ground, database: &str) -> Result<usize> {
    python(ground, database, "sqlalchemy")
}

/// Django 5: test/clients/django.
pub(super) fn django(ground: &Ground, database: &str) -> Result<usize> {
    python(ground, database, "django")
}

/// A program in Python: `test/clients/NAME/clients.py`.
fn python(ground: &Ground, database: &str, name: &str) -> Result<usize> {
    let mut command = Command::new(install::python()?);
    let folder = repo::root().join("test/clients").join(name);
    command.arg("-B").arg(folder.join("clients.py"));
    command.arg(ground.server.url(database));
    checks(ground, name, &mut command)
}

/// JDBC: test/clients/jdbc, a program of one file.
pub(super) fn jdbc(ground: &Ground, database: &str) -> Result<usize> {
    let url = format!(
        "jdbc:postgresql://127.0.0.1:{}/{database}?user={}&sslmode=disable",
        ground.server.port(),
        crate::servers::USER
    );
    let mut command = Command::new("java");
    command.args(["-cp", install::JDBC_JAR]);
    command
        .arg(repo::root().join("test/clients/jdbc/Clients.java"))
        .arg(url);
    checks(ground, "jdbc", &mut command)
}

/// node-postgres: test/clients/node.
pub(super) fn node_postgres(ground: &Ground, database: &str) -> Result<usize> {
    node(ground, database, "driver")
}

/// TypeORM: test/clients/node.
pub(super) fn typeorm(ground: &Ground, database: &str) -> Result<usize> {
    node(ground, database, "mapper")
}

fn node(ground: &Ground, database: &str, part: &str) -> Result<usize> {
    let mut command = Command::new("node");
    command.arg(packages::node()?);
    command.arg(ground.tls_url(database)).arg(part);
    checks(ground, "node", &mut command)
}

/// pgx: test/clients/go.
pub(super) fn pgx(ground: &Ground, database: &str) -> Result<usize> {
    go(ground, database, "driver")
}

/// GORM: test/clients/go.
pub(super) fn gorm(ground: &Ground, database: &str) -> Result<usize> {
    go(ground, database, "mapper")
}

fn go(ground: &Ground, database: &str, part: &str) -> Result<usize> {
    let mut command = Command::new(packages::go()?);
    command.arg(ground.tls_url(database)).arg(part);
    checks(ground, "go", &mut command)
}

/// What of JDBC needs TLS or calls functions by number: test/clients/hibernate.
pub(super) fn jdbc_objects(ground: &Ground, database: &str) -> Result<usize> {
    java(ground, database, "driver")
}

/// Hibernate: test/clients/hibernate.
pub(super) fn hibernate(ground: &Ground, database: &str) -> Result<usize> {
    java(ground, database, "mapper")
}

fn java(ground: &Ground, database: &str, part: &str) -> Result<usize> {
    let url = format!(
        "jdbc:postgresql://127.0.0.1:{}/{database}?user={}&sslmode=verify-full&sslrootcert={}",
        ground.server.port(),
        crate::servers::USER,
        ground.certificate().display()
    );
    let mut command = Command::new("java");
    // It ends before compiled code would pay.
    command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
    command.args(["-cp", &packages::java()?, "Clients", &url, part]);
    checks(ground, "java", &mut command)
}

/// What pgAdmin asks: test/clients/pgadmin.
pub(super) fn pgadmin(ground: &Ground, database: &str) -> Result<usize> {
    let mut command = Command::new(install::python()?);
    let folder = repo::root().join("test/clients/pgadmin");
    command.arg("-B").arg(folder.join("clients.py"));
    command.arg(ground.server.url(database));
    command.arg(packages::pgadmin()?).arg(ground.server.name());
    checks(ground, "pgadmin", &mut command)
}

/// One file of SQL.
pub(super) fn slt(ground: &Ground, database: &str, file: &Path) -> Result<()> {
    let mut command = Command::new(rust_program("slt")?);
    command
        .arg(ground.server.url(database))
        .arg(file)
        .arg(ground.server.name());
    command.current_dir(repo::root());
    shell::run_logged(&mut command, &ground.log("slt"), CLIENT_LIMIT)?;
    Ok(())
}

/// Builds the Rust clients, if they are not built yet, and answers where the program is.
fn rust_program(name: &str) -> Result<PathBuf> {
    shell::run(ci::cargo().args(["build", "--quiet", "--package", "clients", "--bins"]))?;
    Ok(repo::target_dir().join("debug").join(name))
}

/// Runs a client and reads the number of its checks from its last line.
fn checks(ground: &Ground, name: &str, command: &mut Command) -> Result<usize> {
    let text = shell::run_logged(command, &ground.log(name), CLIENT_LIMIT)?;
    let last = text.lines().last().unwrap_or("");
    let count = last
        .strip_prefix("passed: ")
        .and_then(|count| count.parse().ok());
    let count = count.filter(|count| *count > 0);
    count.with_context(|| format!("{name} does not tell how many checks passed\n{text}"))
}
