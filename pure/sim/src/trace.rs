//! The trace of a run: a hash always, lines for people on demand.

use std::fmt;

/// Takes a line for people.
pub type Sink = Box<dyn FnMut(&str)>;

/// Order-dependent hash of everything that happened, and a reader of it, if there is one.
pub(crate) struct Trace {
    hash: u64,
    sink: Option<Sink>,
}

impl Trace {
    pub(crate) fn new(sink: Option<Sink>) -> Trace {
        Trace { hash: 0, sink }
    }

    /// Takes note of a number.
    pub(crate) fn mix(&mut self, value: u64) {
        let mixed = (self.hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash = mixed.rotate_left(29) ^ (mixed >> 32);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Writes a line if there is a reader.
    pub(crate) fn say(&mut self, now_ns: u64, line: impl FnOnce() -> String) {
        if let Some(sink) = &mut self.sink {
            sink(&format!("{:>13} {}", Stamp(now_ns), line()));
        }
    }
}

/// A point in virtual time as milliseconds with six digits.
struct Stamp(u64);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        f.pad(&text)
    }
}
