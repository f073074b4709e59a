//! How a command ended, as clients are told.

use core::fmt;

/// A command tag without formatting: most are a word and a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    /// `SELECT n`, `UPDATE n`, ...
    Count(&'static str, u64),
    /// `INSERT 0 n`
    Insert(u64),
    /// `BEGIN`, `CREATE TABLE`, ...
    Word(&'static str),
}

impl Tag {
    /// Rows that were returned or changed; 0 if the tag has no count.
    pub fn count(self) -> u64 {
        match self {
            Tag::Count(_, count) | Tag::Insert(count) => count,
            Tag::Word(_) => 0,
        }
    }

    /// The same with another count, if it has one.
    pub fn with_count(self, count: u64) -> Tag {
        match self {
            Tag::Count(word, _) => Tag::Count(word, count),
            Tag::Insert(_) => Tag::Insert(count),
            Tag::Word(word) => Tag::Word(word),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tag::Count(word, count) => write!(f, "{word} {count}"),
            Tag::Insert(count) => write!(f, "INSERT 0 {count}"),
            Tag::Word(word) => f.write_str(word),
        }
    }
}
