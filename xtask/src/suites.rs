//! `cargo xtask suites`: the own tests of SQLAlchemy and Django, on one node and on PostgreSQL 15.
//! `test/clients/suites/suites.py` says which tests those are and how they are compared. They take
//! many minutes, so they are run by hand.

use crate::servers::{Postgres, Server, Trellis};
use crate::{install, repo, shell};
use anyhow::{Result, ensure};
use std::process::Command;

/// What is run if nothing is named.
const SUITES: [&str; 2] = ["sqlalchemy", "django"];
/// What can be named: the tests of dialects are a part of SQLAlchemy's.
const KNOWN: [&str; 3] = ["sqlalchemy", "sqlalchemy-dialect", "django"];

pub(crate) fn main(args: &[String]) -> Result<()> {
    for name in args {
        let known = KNOWN.contains(&name.as_str());
        ensure!(
            known,
            "suites does not know {name}, but {}",
            KNOWN.join(", ")
        );
    }
    let trellis = Server::Trellis(Trellis::start(1)?);
    let postgres = Server::Postgres(Postgres::start(&[])?);
    let folder = repo::target_dir().join("xtask/suites");
    let mut command = Command::new(install::python()?);
    command.arg("-B");
    command.arg(repo::root().join("test/clients/suites/suites.py"));
    command
        .arg(&folder)
        .arg(trellis.url(""))
        .arg(postgres.url(""));
    match args.is_empty() {
        true => command.args(SUITES),
        false => command.args(args),
    };
    shell::run(&mut command)
}
