//! Client libraries from the registries of Node.js, Go, Java and Python, as `test/clients` pins
//! them. They are kept beside cargo's build cache, and fetched where they are missing.

use crate::{install, repo, shell};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The plugin that fetches the jars of a project, with its version.
const COPY_JARS: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// pgAdmin, of which only the templates of SQL are kept.
const PGADMIN: &str = "pgadmin4==8.14";
/// Takes them out of the package.
const TAKE_TEMPLATES: &str = "import sys, zipfile\n\
    package = zipfile.ZipFile(sys.argv[1])\n\
    names = [name for name in package.namelist() if name.endswith('.sql')]\n\
    package.extractall(sys.argv[2], names)\n";

/// Fetches and builds all of them.
pub(crate) fn all() -> Result<()> {
    node()?;
    go()?;
    java()?;
    pgadmin()?;
    Ok(())
}

fn source(name: &str) -> PathBuf {
    repo::root().join("test/clients").join(name)
}

/// A folder of the cache.
pub(crate) fn kept(name: &str) -> Result<PathBuf> {
    let folder = repo::cache_dir()?.join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// Copies files into a folder. Whether they were there already, all the same.
fn copied(files: &[PathBuf], folder: &Path) -> Result<bool> {
    let mut same = true;
    for file in files {
        let name = file.file_name().context("a file has a name")?;
        let wanted = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let copy = folder.join(name);
        if fs::read(&copy).is_ok_and(|found| found == wanted) {
            continue;
        }
        same = false;
        fs::write(&copy, wanted).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    Ok(same)
}

/// Does the work that makes a folder complete, unless that is done; `done` is a file that tells.
fn once(done: &Path, current: bool, work: impl FnOnce() -> Result<()>) -> Result<()> {
    if current && done.is_file() {
        return Ok(());
    }
    let _ = fs::remove_file(done);
    work()?;
    fs::write(done, "").with_context(|| format!("cannot write {}", done.display()))
}

/// The program of test/clients/node, beside its packages.
pub(crate) fn node() -> Result<PathBuf> {
    install::node()?;
    let folder = kept("node")?;
    let locked = ["package.json", "package-lock.json"].map(|name| source("node").join(name));
    let current = copied(&locked, &folder)?;
    once(&folder.join("installed"), current, || {
        let mut npm = Command::new("npm");
        npm.args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--silent",
        ]);
        shell::run(npm.current_dir(&folder))
    })?;
    let scripts = ["checks.mjs", "clients.mjs", "driver.mjs", "orm.mjs"];
    copied(&scripts.map(|name| source("node").join(name)), &folder)?;
    Ok(folder.join("clients.mjs"))
}

/// The program of test/clients/go, built.
pub(crate) fn go() -> Result<PathBuf> {
    let compiler = install::go()?;
    let folder = kept("go")?;
    let program = folder.join("clients");
    let mut build = Command::new(compiler);
    build.args(["build", "-mod=readonly", "-o"]).arg(&program);
    build
        .env("GOMODCACHE", folder.join("modules"))
        .env("GOCACHE", folder.join("objects"))
        .env("GOTOOLCHAIN", "local")
        .env_remove("GOFLAGS");
    // A module that is not what go.sum says fails the build.
    shell::run(build.arg(".").current_dir(source("go")))?;
    Ok(program)
}

/// The jars of a project of Maven, which its file `jars.sha256` pins, in a folder that is kept.
pub(crate) fn jars(project: &Path, folder: &Path) -> Result<PathBuf> {
    install::maven()?;
    let sums = "jars.sha256";
    let pinned = ["pom.xml", sums].map(|name| project.join(name));
    let jars = folder.join("jars");
    let current = copied(&pinned, folder)?;
    once(&folder.join("installed"), current, || {
        let _ = fs::remove_dir_all(&jars);
        let mut maven = Command::new("mvn");
        maven.args(["--batch-mode", "--quiet", COPY_JARS]);
        maven.arg("--file").arg(&pinned[0]);
        maven.arg("-DincludeScope=runtime");
        maven.arg(format!("-DoutputDirectory={}", jars.display()));
        let local = folder.join("repository");
        shell::run(maven.arg(format!("-Dmaven.repo.local={}", local.display())))?;
        check_jars(&jars, &folder.join(sums))
    })?;
    Ok(jars)
}

/// The class path of test/clients/hibernate, compiled.
pub(crate) fn java() -> Result<String> {
    let folder = kept("hibernate")?;
    let jars = jars(&source("hibernate"), &folder)?;
    let classes = folder.join("classes");
    let libraries = format!("{}/*:{}", jars.display(), install::JDBC_JAR);
    let program = source("hibernate").join("Clients.java");
    let current = copied(std::slice::from_ref(&program), &folder)?;
    once(&folder.join("compiled"), current, || {
        let mut compiler = Command::new("javac");
        compiler.args(["-nowarn", "-cp", &libraries, "-d"]);
        shell::run(compiler.arg(&classes).arg(&program))
    })?;
    Ok(format!("{libraries}:{}", classes.display()))
}

/// The folder with pgAdmin's templates.
pub(crate) fn pgadmin() -> Result<PathBuf> {
    let python = install::python()?;
    let folder = kept("pgadmin")?;
    let (package, templates) = (folder.join("package"), folder.join(PGADMIN));
    once(&folder.join("installed"), templates.is_dir(), || {
        let mut pip = Command::new(&python);
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            PGADMIN,
            "--dest",
        ]);
        shell::run(pip.arg(&package))?;
        let wheel = fs::read_dir(&package)?
            .next()
            .context("pip left nothing")??;
        let mut take = Command::new(&python);
        take.args(["-c", TAKE_TEMPLATES]);
        shell::run(take.arg(wheel.path()).arg(&templates))?;
        fs::remove_dir_all(&package).context("cannot remove the package")
    })?;
    Ok(templates)
}

/// The jars must be those of the list, no more and no others.
fn check_jars(jars: &Path, sums: &Path) -> Result<()> {
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "--quiet"]).arg(sums);
    shell::output(check.current_dir(jars))?;
    let listed = fs::read_to_string(sums)?.lines().count();
    let found = fs::read_dir(jars)?.count();
    ensure!(
        listed == found,
        "{found} jars were fetched, {listed} are listed in {}",
        sums.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_again_when_what_it_is_made_of_has_changed() {
        let folder = std::env::temp_dir().join(format!("xtask-packages-{}", std::process::id()));
        fs::create_dir_all(folder.join("kept")).unwrap();
        let (file, kept) = (folder.join("list"), folder.join("kept"));
        let done = kept.join("done");
        let mut runs = 0;
        for text in ["a", "a", "b"] {
            fs::write(&file, text).unwrap();
            let current = copied(std::slice::from_ref(&file), &kept).unwrap();
            let work = || {
                runs += 1;
                Ok(())
            };
            once(&done, current, work).unwrap();
        }
        let failed = once(&done, false, || anyhow::bail!("no"));
        assert!(failed.is_err() && !done.is_file());
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(runs, 2);
    }
}
