//! The checkout: where it is and which files belong to it.

use crate::shell;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// One file of the repository that can be read as text.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Path from the root of the checkout, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> SourceFile {
        SourceFile {
            path: path.to_string(),
            text: text.to_string(),
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_document(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }
}

/// The root of the checkout that runs this: not of the one that built it, for checkouts may share
/// a build cache. `cargo xtask` sets the variable.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let manifest = manifest.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest
        .parent()
        .expect("xtask lies inside the checkout")
        .to_path_buf()
}

/// All text files that are tracked, or new and not ignored, in order of their paths.
pub(crate) fn files() -> Result<Vec<SourceFile>> {
    let mut list = Command::new("git");
    list.args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
    ]);
    let listed = shell::output(list.current_dir(root()))?;
    let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        let full = root().join(path);
        if !full.is_file() {
            continue; // deleted in the work tree
        }
        let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile {
                path: path.to_string(),
                text,
            });
        }
    }
    Ok(files)
}

/// The folder where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A folder for what the chores fetch and keep, beside cargo's.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    let folder = target_dir().join("xtask");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
