//! The files that a command leaves behind. A path that cannot be written is told before the work
//! of minutes, not after it.

use links::DriveError;
use std::fs::OpenOptions;
use std::path::Path;

/// Whether all of these can be written, later. What is there stays as it is, and nothing new is
/// left behind.
///
/// # Errors
/// One cannot be written; the message names it.
pub fn check<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<(), DriveError> {
    for path in paths {
        let is_new = !path.exists();
        let opened = OpenOptions::new().append(true).create(true).open(path);
        let checked = opened.and_then(|_| match is_new {
            true => std::fs::remove_file(path),
            false => Ok(()),
        });
        checked.map_err(|error| cannot(path, &error))?;
    }
    Ok(())
}

/// Writes a file.
///
/// # Errors
/// It cannot be written; the message names it.
pub fn write(path: &Path, text: &str) -> Result<(), DriveError> {
    std::fs::write(path, text).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> DriveError {
    DriveError::File(format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_changes_nothing() {
        let name = format!("trellis-outputs-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir).expect("a fresh folder");
        let (old, new) = (dir.join("old"), dir.join("new"));
        write(&old, "kept").expect("it can be written");
        check([old.as_path(), &new]).expect("both can be written");
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).ok().as_deref(), Some("kept"));
        for wrong in [dir.clone(), dir.join("missing/file"), old.join("below")] {
            let error = check([wrong.as_path()]).expect_err("no file can be there");
            assert!(error.to_string().contains("cannot write"), "{error}");
        }
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }
}
