//! Which files of a node are there, and whether it may start with them: the table in
//! docs/formats.md, whose rows a test walks.
//!
//! A node that starts without a file that it once had goes on as another one: rows are missing
//! that were acknowledged, and numbers are given out twice. So what is missing stops it.

use base::Position;
use core::fmt;

/// What a directory holds, before any record is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Presence {
    /// From which position the manifest wants the journal read, if there is one.
    pub manifest: Option<Position>,
    /// Position where the first segment begins, if there is one.
    pub first_segment: Option<Position>,
    /// There are files of checkpoints.
    pub checkpoints: bool,
    /// There is a mark.
    pub marked: bool,
}

/// What is missing in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Everything: the node was never started here, or its disk is not mounted.
    All,
    /// The journal, or its beginning: the manifest wants it from this position on.
    Journal {
        /// First position that is needed.
        wanted: Position,
        /// Where the first segment begins, if there is one.
        found: Option<Position>,
    },
    /// The manifest: the journal does not begin at 0, so there was one.
    Manifest,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::All => f.write_str(
                "it is empty. Is a disk not mounted? The node starts here with no rows only if it \
                 is told so by name: trellis start --new",
            ),
            Missing::Journal { wanted, found } => {
                write!(f, "its journal is missing from position {}", wanted.0)?;
                match found {
                    Some(found) => write!(f, " to {}", found.0)?,
                    None => f.write_str(" on")?,
                }
                f.write_str("; what was acknowledged is in there")
            }
            Missing::Manifest => f.write_str("its MANIFEST is missing beside the journal"),
        }
    }
}

/// Whether a node may start with these files. `Ok(true)`: with nothing, as a new node. `begin`: it
/// was told that there may be nothing.
///
/// # Errors
/// What is missing.
pub fn judge(found: Presence, begin: bool) -> Result<bool, Missing> {
    let Presence {
        manifest,
        first_segment,
        checkpoints,
        marked,
    } = found;
    match (manifest, first_segment) {
        (None, None) if !checkpoints && !marked => {
            if begin {
                Ok(true)
            } else {
                Err(Missing::All)
            }
        }
        (None, Some(first)) if first > Position(0) => Err(Missing::Manifest),
        (None, Some(_)) => Ok(false),
        (None, None) => Err(Missing::Journal {
            wanted: Position(0),
            found: None,
        }),
        (Some(wanted), Some(first)) if first <= wanted => Ok(false),
        (Some(wanted), found) => Err(Missing::Journal { wanted, found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table() {
        let at = |position| Some(Position(position));
        let gone = |wanted, found| {
            Err(Missing::Journal {
                wanted: Position(wanted),
                found,
            })
        };
        // Manifest, first segment, checkpoint files, mark, told to begin: verdict.
        let rows = [
            (None, None, false, false, false, Err(Missing::All)),
            (None, None, false, false, true, Ok(true)),
            (None, None, true, false, true, gone(0, None)),
            (None, None, false, true, true, gone(0, None)),
            (None, None, true, true, false, gone(0, None)),
            (None, at(0), false, false, false, Ok(false)),
            (None, at(0), true, true, false, Ok(false)),
            (None, at(0), false, true, true, Ok(false)),
            (None, at(9), false, true, false, Err(Missing::Manifest)),
            (None, at(9), true, true, true, Err(Missing::Manifest)),
            (at(7), None, true, true, false, gone(7, None)),
            (at(7), None, true, true, true, gone(7, None)),
            (at(7), at(8), true, true, false, gone(7, at(8))),
            (at(7), at(7), true, true, false, Ok(false)),
            (at(7), at(0), true, true, true, Ok(false)),
        ];
        for (manifest, first_segment, checkpoints, marked, begin, verdict) in rows {
            let found = Presence {
                manifest,
                first_segment,
                checkpoints,
                marked,
            };
            assert_eq!(judge(found, begin), verdict, "{found:?}, begin {begin}");
        }
    }
}
