//! Files that an experiment is read from: which ones may be, and how large they are.

use crate::mistake::Mistake;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of one file at most.
pub(crate) const FILE_BYTES_MAX: usize = 256 * 1024;
/// Files of one experiment at most, templates among them.
pub(crate) const FILES_MAX: usize = 64;
/// What imports and `extends` put in front of the name of a template.
pub(crate) const TEMPLATE: &str = "template:";

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Yaml,
    Json,
    Jsonnet,
}

impl Language {
    /// By the end of a file's name.
    pub(crate) fn of(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "yaml" | "yml" => Some(Language::Yaml),
            "json" => Some(Language::Json),
            "jsonnet" | "libsonnet" => Some(Language::Jsonnet),
            _ => None,
        }
    }
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Mistake> {
    let name = path.display().to_string();
    let wrong = |text: String| Mistake::of_file(&name, text);
    let about = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !about.is_file() {
        return Err(wrong(String::from("this is no file")));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let read = file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| wrong(error.to_string()))?;
    if bytes.len() > FILE_BYTES_MAX {
        let text = format!("the file is larger than {FILE_BYTES_MAX} bytes");
        return Err(wrong(text));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to());
        let mut mistake = wrong(String::from("this is no UTF-8"));
        mistake.line = 1 + before.filter(|byte| **byte == b'\n').count();
        mistake
    })
}

/// The file that `from` names in `path`. It must lie in the folder `root` or below it.
pub(crate) fn beside(root: &Path, from: &Path, path: &str) -> Result<PathBuf, String> {
    let folder = from.parent().unwrap_or(Path::new("."));
    let found = folder.join(path);
    let real = found.canonicalize().map_err(|error| error.to_string())?;
    let root = match root.as_os_str().is_empty() {
        true => Path::new("."),
        false => root,
    };
    let root = root.canonicalize().map_err(|error| error.to_string())?;
    match real.starts_with(&root) {
        true => Ok(found),
        false => Err(String::from(
            "it lies outside of the folder of the experiment's file",
        )),
    }
}
