//! A store that scripts start, reset and stop.

use crate::conductor::Surroundings;
use crate::document::Scripts;
use crate::keep::{Keeper, Kept};
use links::url::Target;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How often is looked whether a store can be used.
const LOOK: Duration = Duration::from_millis(50);
/// How long one attempt at a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// What a script says in front of the address of the store.
const URL: &str = "url=";

/// Why a script has not done what it should.
#[derive(Debug)]
pub(crate) enum ScriptError {
    /// In words.
    Failed(String),
    /// The experiment was stopped.
    Stopped,
}

/// A folder for what a store writes, which goes with it.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, ScriptError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let ns = since.map_or(0, |since| since.subsec_nanos());
        let name = format!("trellis-store-{}-{count}-{ns}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // It must be new: what lies there already is somebody else's.
        let made = std::fs::create_dir(&path);
        let failed = |error| ScriptError::Failed(format!("{}: {error}", path.display()));
        made.map_err(failed)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A store that a script has started.
#[derive(Debug)]
pub(crate) struct Standing {
    scripts: Scripts,
    /// The address that the document names, which the script may have replaced.
    asked: String,
    url: String,
    /// The output of the script that has started it.
    folder: PathBuf,
    // In this order: the processes end before their files go.
    kept: Kept,
    scratch: Scratch,
}

/// What a script is told.
fn variables(
    around: &Surroundings<'_>,
    url: &str,
    scratch: Option<&Path>,
) -> Vec<(&'static str, String)> {
    let path = |path: &Path| {
        let full = std::path::absolute(path);
        full.unwrap_or_else(|_| path.to_owned())
            .display()
            .to_string()
    };
    let mut all = vec![
        ("TRELLIS_STORE_URL", url.to_owned()),
        ("TRELLIS_FOLDER", path(around.folder)),
        ("TRELLIS_DOCUMENT", path(around.document_file)),
        ("TRELLIS_PROGRAM", path(&around.keeper.program)),
    ];
    all.extend(scratch.map(|scratch| ("TRELLIS_SCRATCH", path(scratch))));
    all
}

impl Standing {
    /// Starts the store of these scripts, which have a `start`, and waits until it takes
    /// connections.
    pub(crate) fn start(
        scripts: &Scripts,
        url: &str,
        around: &Surroundings<'_>,
    ) -> Result<Standing, ScriptError> {
        let command = scripts.start.as_deref().unwrap_or_default();
        let scratch = Scratch::new()?;
        let file = around.folder.join("start.log");
        let variables = variables(around, url, Some(&scratch.0));
        let kept = Kept::start(&around.keeper, command, &variables, (&file, &file));
        let kept = kept.map_err(|why| ScriptError::Failed(format!("store.start: {why}")))?;
        let mut standing = Standing {
            scripts: scripts.clone(),
            asked: url.to_owned(),
            url: url.to_owned(),
            folder: around.folder.to_owned(),
            kept,
            scratch,
        };
        standing.wait_until_ready(around.stop)?;
        Ok(standing)
    }

    fn failed(&self, what: &str) -> ScriptError {
        ScriptError::Failed(told("store.start", what, &self.kept))
    }

    /// Waits until the script has said where the store is, or has ended well, and the store takes
    /// connections.
    fn wait_until_ready(&mut self, stop: &AtomicBool) -> Result<(), ScriptError> {
        let until = Instant::now() + self.scripts.limit;
        let limit_s = self.scripts.limit.as_secs_f64();
        let mut unreached = String::from("it has neither ended nor said url=URL");
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(ScriptError::Stopped);
            }
            let ended = self.kept.ended();
            if let Some(code) = ended.filter(|code| *code != 0) {
                return Err(self.failed(&format!("it has ended with {code}")));
            }
            let said = self.kept.output();
            let lines = said.lines().rev();
            let url = lines
                .filter_map(|line| line.trim().strip_prefix(URL))
                .next();
            if let Some(url) = url {
                self.url = url.trim().to_owned();
            }
            if url.is_some() || ended.is_some() {
                match reach(&self.url) {
                    Ok(()) => return Ok(()),
                    Err(why) => unreached = why,
                }
            }
            if Instant::now() >= until {
                let what = format!("the store cannot be used after {limit_s} s: {unreached}");
                return Err(self.failed(&what));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The process below which all of it is.
    pub(crate) fn pid(&self) -> u32 {
        self.kept.pid()
    }

    /// Whether a run of these scripts finds it as it needs it, after a reset.
    pub(crate) fn serves(&self, scripts: &Scripts, url: &str) -> bool {
        scripts.reset.is_some() && self.scripts == *scripts && self.asked == url
    }

    /// Ends it: by its script, if there is one, and then whatever is left.
    pub(crate) fn end(self, keeper: &Keeper) -> Result<(), ScriptError> {
        let Some(command) = &self.scripts.stop else {
            return Ok(());
        };
        let file = self.folder.join("stop.log");
        // It ends although the experiment is stopped.
        let (none, document) = (AtomicBool::new(false), self.folder.join("resolved.json"));
        let around = Surroundings {
            keeper: keeper.clone(),
            folder: &self.folder,
            document_file: &document,
            stop: &none,
        };
        let variables = variables(&around, &self.url, Some(&self.scratch.0));
        run_script(
            &around,
            "store.stop",
            command,
            &variables,
            self.scripts.limit,
            &file,
        )
    }
}

/// Makes a store as it was before, by the `reset` of these scripts.
pub(crate) fn reset(
    scripts: &Scripts,
    url: &str,
    standing: Option<&Standing>,
    around: &Surroundings<'_>,
) -> Result<(), ScriptError> {
    let Some(command) = &scripts.reset else {
        return Ok(());
    };
    let scratch = standing.map(|standing| standing.scratch.0.as_path());
    let variables = variables(around, url, scratch);
    let file = around.folder.join("reset.log");
    run_script(
        around,
        "store.reset",
        command,
        &variables,
        scripts.limit,
        &file,
    )
}

fn told(name: &str, what: &str, kept: &Kept) -> String {
    match kept.last_lines() {
        lines if lines.is_empty() => format!("{name}: {what}; it has written nothing"),
        lines => format!("{name}: {what}; the last that it has written:\n{lines}"),
    }
}

/// Runs a script to its end. What it leaves behind is ended.
fn run_script(
    around: &Surroundings<'_>,
    name: &str,
    command: &str,
    variables: &[(&str, String)],
    limit: Duration,
    file: &Path,
) -> Result<(), ScriptError> {
    let kept = Kept::start(&around.keeper, command, variables, (file, file));
    let kept = kept.map_err(|why| ScriptError::Failed(format!("{name}: {why}")))?;
    match kept.wait(limit, around.stop) {
        Some(0) => Ok(()),
        Some(code) => {
            let what = format!("it has ended with {code}");
            Err(ScriptError::Failed(told(name, &what, &kept)))
        }
        None if around.stop.load(Ordering::Relaxed) => Err(ScriptError::Stopped),
        None => {
            let what = format!("it takes longer than {} s", limit.as_secs_f64());
            Err(ScriptError::Failed(told(name, &what, &kept)))
        }
    }
}

/// Whether all servers of an address take connections. An address that cannot be read is left to
/// the run, which says why.
fn reach(url: &str) -> Result<(), String> {
    let Ok(target) = Target::parse(url) else {
        return Ok(());
    };
    for endpoint in &target.endpoints {
        let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
        let found = found.map_err(|error| format!("{endpoint}: {error}"))?;
        let mut last = format!("{endpoint}: no address");
        let mut reached = found.map(|address| TcpStream::connect_timeout(&address, CONNECT_MAX));
        let is_reached = reached.any(|it| match it {
            Ok(_) => true,
            Err(error) => {
                last = format!("{endpoint}: {error}");
                false
            }
        });
        if !is_reached {
            return Err(last);
        }
    }
    Ok(())
}
