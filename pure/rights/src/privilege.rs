//! Sets of privileges.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A set of privileges.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash, Serialize, Deserialize,
)]
pub struct Privileges(pub u16);

/// Letter and word of each privilege, in the order of the bits.
const NAMES: [(char, &str); 12] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
];

#[allow(missing_docs)]
impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    pub const INSERT: Privileges = Privileges(1);
    pub const SELECT: Privileges = Privileges(1 << 1);
    pub const UPDATE: Privileges = Privileges(1 << 2);
    pub const DELETE: Privileges = Privileges(1 << 3);
    pub const TRUNCATE: Privileges = Privileges(1 << 4);
    pub const REFERENCES: Privileges = Privileges(1 << 5);
    pub const TRIGGER: Privileges = Privileges(1 << 6);
    pub const EXECUTE: Privileges = Privileges(1 << 7);
    pub const USAGE: Privileges = Privileges(1 << 8);
    pub const CREATE: Privileges = Privileges(1 << 9);
    pub const TEMPORARY: Privileges = Privileges(1 << 10);
    pub const CONNECT: Privileges = Privileges(1 << 11);
}

impl Privileges {
    /// The privilege of this word, in upper case; TEMP is short for TEMPORARY.
    pub fn of_word(word: &str) -> Option<Privileges> {
        let word = if word == "TEMP" { "TEMPORARY" } else { word };
        let place = NAMES.iter().position(|(_, name)| *name == word)?;
        Some(Privileges(1 << place))
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// Those that are not in the other.
    #[must_use]
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether all of the other are in it.
    pub const fn has(self, other: Privileges) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each by itself, with its letter and its word.
    pub fn each(self) -> impl Iterator<Item = (Privileges, char, &'static str)> {
        let all = NAMES.iter().enumerate();
        all.map(|(bit, (letter, word))| (Privileges(1 << bit), *letter, *word))
            .filter(move |(one, ..)| self.has(*one))
    }

    /// The words, as they stand in a list.
    pub fn words(self) -> String {
        let words: Vec<&str> = self.each().map(|(_, _, word)| word).collect();
        words.join(", ")
    }
}
