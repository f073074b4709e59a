//! FerretDB, which speaks the protocol of MongoDB: built from its Go module.

use crate::{ci, install, packages, shell};
use anyhow::{Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The module, its release and the sum of its files.
const MODULE: &str = "github.com/FerretDB/FerretDB";
const RELEASE: &str = "v1.24.0";
const SUM: &str = "h1:7WJmezL48Bj9bYWnhT/bEJgX5gjT5s7LFdHTqkN25rA=";
/// Where the module lies in Go's cache.
const CACHED: &str = "github.com/!ferret!d!b/!ferret!d!b@v1.24.0";

/// A search path that finds the server first, built if it is not there.
pub(crate) fn path() -> Result<PathBuf> {
    let program = server()?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(folders)?.into())
}

/// The tests that are for it alone.
pub(crate) fn tests() -> Result<()> {
    let mut tests = ci::cargo();
    tests.args([
        "test",
        "-p",
        "stores",
        "--features",
        "ferretdb",
        "--test",
        "mongo",
    ]);
    shell::run(tests.env("PATH", path()?))
}

/// The server, built if it is not there.
fn server() -> Result<PathBuf> {
    let folder = packages::kept("ferretdb")?;
    let program = folder.join("bin").join("ferretdb");
    if program.is_file() {
        return Ok(program);
    }
    let compiler = install::go()?;
    let modules = folder.join("modules");
    let go = |at: &Path| {
        let mut go = Command::new(&compiler);
        go.env("GOMODCACHE", &modules)
            .env("GOCACHE", folder.join("objects"))
            .env("GOTOOLCHAIN", "local")
            .env_remove("GOFLAGS")
            .current_dir(at);
        go
    };
    let named = format!("{MODULE}@{RELEASE}");
    let told = shell::output(go(&folder).args(["mod", "download", "-json", &named]))?;
    ensure!(told.contains(SUM), "{named} is not what it was: {told}");
    // A build from the cache does not know its release, and ends at once.
    let source = folder.join("source");
    let _ = fs::remove_dir_all(&source);
    let copy = [modules.join(CACHED), source.clone()];
    shell::run(
        Command::new("cp")
            .args(["-r", "--no-preserve=mode"])
            .args(copy),
    )?;
    fs::write(source.join("build/version/version.txt"), RELEASE)?;
    let mut build = go(&source);
    build.args(["build", "-mod=readonly", "-o"]).arg(&program);
    shell::run(build.arg("./cmd/ferretdb"))?;
    Ok(program)
}
