//! `cargo xtask package`: a Debian package of the program, and what a container is made of. Its
//! check installs the package into a folder, starts a node by the command line of the unit file,
//! and removes it.

use crate::{repo, shell};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo xtask package --out DIR [--program FILE]";
/// A node answers by then.
const START_LIMIT: Duration = Duration::from_secs(30);
/// What of the manual goes with the program. Pages in folders of `docs` are for those who have the
/// sources.
const PAGES: [&str; 23] = [
    "access.md",
    "admission.md",
    "advisory.md",
    "audit.md",
    "blocks.md",
    "formats.md",
    "formulas.md",
    "grafana.json",
    "limits.md",
    "memory.md",
    "metrics.md",
    "migrations.md",
    "operations.md",
    "peers.md",
    "pg_locks.md",
    "rights.md",
    "row_security.md",
    "sessions.md",
    "show.md",
    "stages.md",
    "statements.md",
    "table_locks.md",
    "waits.md",
];

/// Runs the command.
///
/// # Errors
/// A file is missing, or `dpkg-deb` fails.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let (mut out, mut program) = (None, release_program());
    let mut rest = args.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().context(USAGE)?;
        match flag.as_str() {
            "--out" => out = Some(PathBuf::from(value)),
            "--program" => program = PathBuf::from(value),
            _ => bail!("{USAGE}"),
        }
    }
    let out = out.context(USAGE)?;
    let made = make(&program, &out)?;
    println!("{}", made.display());
    Ok(())
}

fn release_program() -> PathBuf {
    repo::target_dir().join("release/trellis")
}

/// Puts package and container file into `out`.
fn make(program: &Path, out: &Path) -> Result<PathBuf> {
    let tree = out.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let parts = repo::root().join("xtask/package");
    let part = |name: &str| fs::read(parts.join(name)).with_context(|| name.to_owned());
    put(
        &tree,
        "usr/bin/trellis",
        &fs::read(program).with_context(|| program.display().to_string())?,
        0o755,
    )?;
    put(
        &tree,
        "lib/systemd/system/trellis.service",
        &part("trellis.service")?,
        0o644,
    )?;
    put(&tree, "etc/default/trellis", &part("default")?, 0o644)?;
    fs::create_dir_all(tree.join("etc/trellis"))?;
    let doc = "usr/share/doc/trellis";
    put(
        &tree,
        &format!("{doc}/cluster.toml"),
        &part("cluster.toml")?,
        0o644,
    )?;
    let license = fs::read(repo::root().join("LICENSE"))?;
    put(&tree, &format!("{doc}/copyright"), &license, 0o644)?;
    for page in PAGES {
        let text = fs::read(repo::root().join("docs").join(page)).context(page)?;
        put(&tree, &format!("{doc}/{page}"), &text, 0o644)?;
    }
    for (shell, file) in [
        ("bash", "usr/share/bash-completion/completions/trellis"),
        ("zsh", "usr/share/zsh/vendor-completions/_trellis"),
        ("fish", "usr/share/fish/vendor_completions.d/trellis.fish"),
    ] {
        let script = shell::output(Command::new(program).args(["completions", shell]))?;
        put(&tree, file, script.as_bytes(), 0o644)?;
    }
    for script in ["postinst", "prerm", "postrm"] {
        put(&tree, &format!("DEBIAN/{script}"), &part(script)?, 0o755)?;
    }
    put(&tree, "DEBIAN/conffiles", b"/etc/default/trellis\n", 0o644)?;
    put(
        &tree,
        "DEBIAN/control",
        control(program, &tree)?.as_bytes(),
        0o644,
    )?;
    let package = out.join("trellis.deb");
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zgzip", "--build"]);
    shell::output(build.arg(&tree).arg(&package))?;
    fs::remove_dir_all(&tree)?;
    fs::write(out.join("Containerfile"), part("Containerfile")?)?;
    Ok(package)
}

fn put(tree: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
    let path = tree.join(name);
    let mut folder = tree.to_owned();
    fs::create_dir_all(&folder)?;
    // Whatever the mask of the caller: these folders become those of a system.
    for part in Path::new(name).parent().into_iter().flat_map(Path::iter) {
        folder.push(part);
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
    }
    fs::write(&path, bytes).with_context(|| path.display().to_string())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn control(program: &Path, tree: &Path) -> Result<String> {
    let version = shell::output(Command::new(program).arg("--version"))?;
    let version = version.split_whitespace().last().context("a version")?;
    let architecture = shell::output(Command::new("dpkg").arg("--print-architecture"))?;
    let size = shell::output(Command::new("du").arg("-sk").arg(tree))?;
    let kilobytes = size.split_whitespace().next().context("a size")?;
    let library = library_version(&fs::read(program)?).context("it needs no C library")?;
    Ok(format!(
        "Package: trellis\n\
         Version: {version}\n\
         Architecture: {}\n\
         Maintainer: The Trellis project <trellis@localhost>\n\
         Installed-Size: {kilobytes}\n\
         Depends: libc6 (>= {library}), libgcc-s1, passwd\n\
         Section: database\n\
         Priority: optional\n\
         Description: distributed database that speaks the protocol of PostgreSQL\n \
         A transactional SQL database whose transaction protocol is a choice per\n \
         database, with its client, its dump and its benchmark.\n",
        architecture.trim()
    ))
}

/// The newest version of the C library of which the program names a symbol.
fn library_version(program: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"GLIBC_2.";
    let starts = program.windows(NAME.len()).enumerate();
    let starts = starts
        .filter(|(_, bytes)| *bytes == NAME)
        .map(|(at, _)| at + NAME.len());
    let numbers = starts.filter_map(|start| {
        let digits = program[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit());
        let text: String = digits.map(|byte| char::from(*byte)).collect();
        text.parse::<u32>().ok()
    });
    numbers.max().map(|minor| format!("2.{minor}"))
}

/// Installs into a folder, starts by the unit file's command line, removes.
///
/// # Errors
/// Something of that fails.
pub(crate) fn check() -> Result<usize> {
    check_program(&release_program())
}

fn check_program(program: &Path) -> Result<usize> {
    let folder = repo::target_dir().join("package-check");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let package = make(program, &folder)?;
    let root = folder.join("root");
    for part in [
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
        "var/lib/dpkg/triggers",
    ] {
        fs::create_dir_all(root.join(part))?;
    }
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    let dpkg = || {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()));
        dpkg.args([
            "--force-not-root",
            "--force-script-chrootless",
            "--force-depends",
        ]);
        dpkg.arg(format!("--log={}", folder.join("log").display()));
        dpkg
    };
    shell::output(dpkg().arg("--install").arg(&package))?;
    ensure!(
        root.join("usr/bin/trellis").exists(),
        "the program is installed"
    );
    let data = root.join("var/lib/trellis/node-1");
    let port = free_port()?;
    let text = fs::read_to_string(root.join("usr/share/doc/trellis/cluster.toml"))?;
    let text = text.replace("/var/lib/trellis/node-1", &data.display().to_string());
    let text = text.replace("5433", &port.to_string());
    let text = text.replace("6433", &free_port()?.to_string());
    fs::write(root.join("etc/trellis/cluster.toml"), text)?;
    for options in ["--new", "", ""] {
        let mut node = start(&root, options)?;
        let answered = wait_for(&root, port);
        shell::output(Command::new("kill").arg(node.id().to_string()))?;
        let status = node.wait()?;
        answered?;
        ensure!(status.success(), "the node ended with {status}");
    }
    shell::output(dpkg().args(["--purge", "trellis"]))?;
    ensure!(
        !root.join("usr/bin/trellis").exists(),
        "the program is removed"
    );
    ensure!(data.join("MANIFEST").exists(), "the data stays");
    fs::remove_dir_all(&folder)?;
    Ok(4)
}

fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}

/// The command line of the unit file, of the program in `root`.
fn start(root: &Path, options: &str) -> Result<Child> {
    let unit = fs::read_to_string(root.join("lib/systemd/system/trellis.service"))?;
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let line = line.context("the unit has a command line")?;
    let line = line
        .replace("${TRELLIS_NODE}", "1")
        .replace("$TRELLIS_OPTIONS", options);
    ensure!(!line.contains('$'), "{line}: a variable that nobody sets");
    let inside = |word: &str| match word.starts_with('/') {
        true => format!("{}{word}", root.display()),
        false => word.to_owned(),
    };
    let words: Vec<String> = line.split_whitespace().map(inside).collect();
    let (program, arguments) = words.split_first().context("a program")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.spawn().context("the node starts")
}

/// Waits until the node answers a client.
fn wait_for(root: &Path, port: u16) -> Result<()> {
    let until = Instant::now() + START_LIMIT;
    loop {
        let mut client = Command::new(root.join("usr/bin/trellis"));
        client.args([
            "sql",
            "--url",
            &format!("postgres://trellis@127.0.0.1:{port}/postgres"),
        ]);
        client.args(["--command", "SELECT 1"]);
        match shell::output(&mut client) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_pages_are_packaged() {
        for page in PAGES {
            let text = fs::read_to_string(repo::root().join("docs").join(page)).unwrap();
            let links = text
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split([')', '#']).next());
            for link in links.filter(|link| !link.is_empty() && !link.contains(['/', ':'])) {
                assert!(PAGES.contains(&link), "{page} links to {link}");
            }
        }
    }

    #[test]
    fn the_newest_symbol_counts() {
        let program = b"x GLIBC_2.17\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_PRIVATE";
        assert_eq!(library_version(program).as_deref(), Some("2.34"));
        assert_eq!(library_version(b"nothing"), None);
    }
}
