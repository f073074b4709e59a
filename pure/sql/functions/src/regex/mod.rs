//! Regular expressions: PostgreSQL's "advanced" syntax without back references and look-around,
//! matched in time proportional to text times pattern, whatever the pattern.
//!
//! A pattern is parsed (`parse`) to a tree, compiled to instructions, and run as a set of threads
//! that advance through the text together. The match is the leftmost one and of these the longest,
//! or the shortest if the pattern's first quantifier is a lazy one (`*?`), which is PostgreSQL's
//! rule. Groups take what a greedy reading from the left gives them.
//!
//! Is not: a cache. A pattern is compiled for each use; patterns of queries are short.

mod compile;
mod parse;

use super::string::{lower, upper};
use base::{SqlError, SqlState};
use compile::Inst;
use parse::CharSet;

/// A compiled pattern.
pub struct Regex {
    program: Vec<Inst>,
    sets: Vec<CharSet>,
    groups: usize,
    shortest: bool,
    fold_case: bool,
    newline_sensitive: bool,
}

/// Byte ranges of a match: the whole at 0, then each group; `None` for groups not taken part.
pub type Captures = Vec<Option<(usize, usize)>>;

/// `invalid regular expression: ...`, 2201B.
fn invalid(reason: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_REGEX,
        format!("invalid regular expression: {reason}"),
    )
}

/// One position in the program with the groups seen on the way to it.
#[derive(Clone)]
struct Thread {
    pc: usize,
    start: usize,
    slots: Vec<Option<usize>>,
}

/// The threads of one text position, without two at one instruction, in order of preference.
struct Threads {
    list: Vec<Thread>,
    seen: Vec<bool>,
}

impl Threads {
    fn new(size: usize) -> Threads {
        Threads {
            list: Vec::new(),
            seen: vec![false; size],
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seen.fill(false);
    }
}

/// Where a thread stands in the text.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    before: Option<char>,
    after: Option<char>,
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// 2201B if it is malformed or too large, 0A000 for back references and look-around.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Regex, SqlError> {
        let parsed = parse::parse(pattern)?;
        let mut regex = Regex {
            program: Vec::new(),
            sets: Vec::new(),
            groups: parsed.groups,
            shortest: parsed.shortest,
            fold_case: ignore_case || parsed.ignore_case,
            newline_sensitive: parsed.newline_sensitive,
        };
        compile::compile(&parsed.root, &mut regex)?;
        Ok(regex)
    }

    /// Number of groups in parentheses.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Makes `^` and `$` match at line ends, and `.` not match a line end (option `n`).
    pub fn set_newline_sensitive(&mut self) {
        self.newline_sensitive = true;
    }

    /// Whether some part of `text` matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.run(text, 0, false).is_some()
    }

    /// The first match that begins at byte `from` or later; `from` must lie between characters.
    pub fn find_at(&self, text: &str, from: usize) -> Option<Captures> {
        self.run(text, from, true)
    }

    /// A thread that looks for a match from here on.
    fn thread_from(&self, start: usize, captures: bool) -> Thread {
        let slots = if captures { self.groups * 2 } else { 0 };
        Thread {
            pc: 0,
            start,
            slots: vec![None; slots],
        }
    }

    /// Runs the threads. Without `captures` it stops at the first sign of a match.
    fn run(&self, text: &str, from: usize, captures: bool) -> Option<Captures> {
        let size = self.program.len();
        let (mut now, mut next) = (Threads::new(size), Threads::new(size));
        let mut best: Option<(Thread, usize)> = None;
        let mut before = text[..from].chars().next_back();
        let mut at = from;
        loop {
            let after = text[at..].chars().next();
            let place = Place { at, before, after };
            if best.is_none() {
                self.add(&mut now, self.thread_from(at, captures), place);
            }
            if now.list.is_empty() && best.is_some() {
                break;
            }
            next.clear();
            for thread in now.list.drain(..) {
                if matches!(self.program[thread.pc], Inst::Match) {
                    if !captures {
                        return Some(Captures::new());
                    }
                    if best.as_ref().is_none_or(|(found, end)| {
                        thread.start < found.start || thread.start == found.start && at > *end
                    }) {
                        best = Some((thread, at));
                    }
                    if self.shortest {
                        // The threads after this one are less wanted.
                        break;
                    }
                } else if let Some(c) = after
                    && self.accepts(thread.pc, c)
                    && best
                        .as_ref()
                        .is_none_or(|(found, _)| thread.start <= found.start)
                {
                    next.list.push(Thread {
                        pc: thread.pc + 1,
                        ..thread
                    });
                }
            }
            let Some(c) = after else { break };
            at += c.len_utf8();
            before = after;
            // Follow the jumps behind every accepted character, keeping the order.
            let moved = core::mem::take(&mut next.list);
            now.clear();
            let place = Place {
                at,
                before,
                after: text[at..].chars().next(),
            };
            for thread in moved {
                self.add(&mut now, thread, place);
            }
        }
        let (thread, end) = best?;
        let pairs = thread.slots.chunks(2);
        let groups = pairs.map(|pair| Some((pair[0]?, pair[1]?)));
        let whole = core::iter::once(Some((thread.start, end)));
        Some(whole.chain(groups).collect())
    }

    /// Adds a thread after following everything that takes no character.
    fn add(&self, threads: &mut Threads, thread: Thread, place: Place) {
        // An explicit stack: patterns may nest deeply.
        let mut stack = vec![thread];
        while let Some(mut thread) = stack.pop() {
            if core::mem::replace(&mut threads.seen[thread.pc], true) {
                continue;
            }
            match &self.program[thread.pc] {
                Inst::Jump(to) => stack.push(Thread { pc: *to, ..thread }),
                Inst::Split(first, second) => {
                    stack.push(Thread {
                        pc: *second,
                        ..thread.clone()
                    });
                    stack.push(Thread {
                        pc: *first,
                        ..thread
                    });
                }
                Inst::Save(slot) => {
                    if let Some(entry) = thread.slots.get_mut(*slot) {
                        *entry = Some(place.at);
                    }
                    thread.pc += 1;
                    stack.push(thread);
                }
                Inst::Assert(assertion) => {
                    if self.holds(*assertion, place) {
                        thread.pc += 1;
                        stack.push(thread);
                    }
                }
                Inst::Char(_) | Inst::Any | Inst::Set(_) | Inst::Match => {
                    threads.list.push(thread);
                }
            }
        }
    }

    fn holds(&self, assertion: parse::Assertion, place: Place) -> bool {
        use parse::Assertion;
        let newline = |c: Option<char>| self.newline_sensitive && c == Some('\n');
        match assertion {
            Assertion::LineStart => place.before.is_none() || newline(place.before),
            Assertion::LineEnd => place.after.is_none() || newline(place.after),
            Assertion::TextStart => place.before.is_none(),
            Assertion::TextEnd => place.after.is_none(),
            Assertion::WordStart => !is_word(place.before) && is_word(place.after),
            Assertion::WordEnd => is_word(place.before) && !is_word(place.after),
            Assertion::WordEdge => is_word(place.before) != is_word(place.after),
            Assertion::NoWordEdge => is_word(place.before) == is_word(place.after),
        }
    }

    fn accepts(&self, pc: usize, c: char) -> bool {
        match &self.program[pc] {
            Inst::Char(wanted) if self.fold_case => lower(*wanted) == lower(c),
            Inst::Char(wanted) => *wanted == c,
            Inst::Any => !(self.newline_sensitive && c == '\n'),
            Inst::Set(set) => {
                let set = &self.sets[*set];
                let found = set.contains(c)
                    || self.fold_case && (set.contains(lower(c)) || set.contains(upper(c)));
                found != set.negated && !(set.negated && self.newline_sensitive && c == '\n')
            }
            Inst::Match | Inst::Jump(_) | Inst::Split(..) | Inst::Save(_) | Inst::Assert(_) => {
                unreachable!("only instructions that take a character hold threads")
            }
        }
    }
}

#[cfg(test)]
mod tests;
