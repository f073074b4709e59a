//! Histories in files, in the public form that other checkers read and write.

use check::History;
use check::text::Format;
use links::error::DriveError;
use std::path::Path;

/// The form of a file, by the end of its name.
fn format_of(path: &Path) -> Result<Format, DriveError> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("edn") => Ok(Format::Edn),
        Some("json") => Ok(Format::Json),
        _ => {
            let path = path.display();
            Err(DriveError::Option(format!(
                "{path}: a history ends in .edn or .json"
            )))
        }
    }
}

/// Reads a history.
///
/// # Errors
/// The file cannot be read, or line and column of what is wrong with it.
pub fn read(path: &Path) -> Result<History, DriveError> {
    let format = format_of(path)?;
    let told = |error: String| DriveError::File(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
    check::text::read(&text, format).map_err(|error| told(error.to_string()))
}

/// Writes a history.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, history: &History) -> Result<(), DriveError> {
    let format = format_of(path)?;
    let mut text = String::new();
    check::text::write(history, format, &mut text).expect("a text takes everything");
    let written = std::fs::write(path, text);
    written.map_err(|error| DriveError::File(format!("{}: {error}", path.display())))
}
