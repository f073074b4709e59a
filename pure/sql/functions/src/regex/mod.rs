//! Regular expressions: PostgreSQL's "advanced" syntax without look-around, matched in time
//! proportional to text times pattern, whatever the pattern. Only patterns with back references may
//! take longer, up to a bound (`back`).
//!
//! A pattern is parsed (`parse`) to a tree, compiled to instructions, and run as a set of threads
//! that advance through the text together. The match is the leftmost one and of these the longest,
//! or the shortest if the pattern's first quantifier is a lazy one (`*?`), which is PostgreSQL's
//! rule. Groups take what a greedy reading from the left gives them. Places where no match can
//! begin are passed without a thread.
//!
//! Is not: a cache. A pattern is compiled for each use; patterns of queries are short.

mod back;
mod compile;
mod parse;

use super::overtime;
use super::string::{lower, upper};
use base::{SqlError, SqlState};
use compile::Inst;
use core::cell::RefCell;
use parse::CharSet;

/// A compiled pattern.
pub struct Regex {
    program: Vec<Inst>,
    sets: Vec<CharSet>,
    groups: usize,
    shortest: bool,
    fold_case: bool,
    /// There are back references.
    looks_back: bool,
    /// `^` and `$` match at line ends.
    newline_anchors: bool,
    /// `.` and sets that are negated do not match line ends.
    newline_stops: bool,
    scratch: RefCell<Scratch>,
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
#[derive(Default)]
struct Threads {
    list: Vec<Thread>,
    /// For each instruction the round in which a thread came to it.
    seen: Vec<u32>,
    round: u32,
}

impl Threads {
    fn clear(&mut self, size: usize) {
        self.list.clear();
        if self.seen.len() != size || self.round == u32::MAX {
            self.seen = vec![0; size];
            self.round = 0;
        }
        self.round += 1;
    }

    /// Whether this is the first thread of the round that comes to an instruction.
    fn enters(&mut self, pc: usize) -> bool {
        core::mem::replace(&mut self.seen[pc], self.round) != self.round
    }
}

/// What is kept from one match to the next.
#[derive(Default)]
struct Scratch {
    now: Threads,
    moved: Vec<Thread>,
    /// Threads that have not been followed yet: patterns may nest deeply.
    stack: Vec<Thread>,
    /// Whether [`Scratch::first`] has been computed.
    has_first: bool,
    first: Option<First>,
    /// Work of all matches so far: characters, and threads that went on with them.
    work: u64,
    /// Why nothing more is found: the work is more than is allowed, or the time is over.
    stopped: Option<SqlError>,
}

/// Work that is allowed for a text of any length.
const WORK_FREE: u64 = 4 << 20;

/// Work between two looks whether the statement's time is over.
const WORK_TOLD: u64 = 4_096;

/// Work that is allowed for each byte of a text beside that of the instructions of the pattern. One
/// pass over the text takes less; a pattern of which each match is looked for up to the end of the
/// text would take as much as the square of its length.
const WORK_PER_BYTE: u64 = 64;

/// The characters with which a match can begin, if it takes any.
struct First {
    ascii: [bool; 128],
    others: bool,
}

/// Where a thread stands in the text.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    before: Option<char>,
    after: Option<char>,
}

impl First {
    /// The first place from `at` on at which a match can begin, or the end.
    fn pass(&self, text: &[u8], mut at: usize) -> usize {
        while let Some(byte) = text.get(at) {
            let may_begin = match self.ascii.get(usize::from(*byte)) {
                Some(can) => *can,
                // Bytes within a character are passed with it.
                None => self.others && *byte >= 0xc0,
            };
            if may_begin {
                break;
            }
            at += 1;
        }
        at
    }
}

/// Counts `more` work; an error if it is more than `most`, or if the statement's time is over.
fn add_work(work: &mut u64, more: u64, most: u64) -> Result<(), SqlError> {
    let before = *work;
    *work += more;
    if *work > most {
        let message = "matching a regular expression takes too long";
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
            .hint("Match parts of the text, or write a pattern whose matches end early."));
    }
    match *work / WORK_TOLD == before / WORK_TOLD {
        true => Ok(()),
        false => overtime::work(WORK_TOLD),
    }
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// 2201B if it is malformed or too large, 0A000 for look-around.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Regex, SqlError> {
        let parsed = parse::parse(pattern)?;
        let mut regex = Regex {
            program: Vec::new(),
            sets: Vec::new(),
            groups: parsed.groups,
            shortest: parsed.shortest,
            fold_case: ignore_case || parsed.ignore_case,
            looks_back: parsed.looks_back,
            newline_anchors: parsed.newline_sensitive,
            newline_stops: parsed.newline_sensitive,
            scratch: RefCell::default(),
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
        self.set_lines(true, true);
    }

    /// Whether `.` stops at line ends, and whether `^` and `$` match there.
    pub fn set_lines(&mut self, stops: bool, anchors: bool) {
        self.newline_stops = stops;
        self.newline_anchors = anchors;
        self.scratch.take();
    }

    /// Whether some part of `text` matches.
    ///
    /// # Errors
    /// As [`Regex::check`].
    pub fn is_match(&self, text: &str) -> Result<bool, SqlError> {
        let mut scratch = self.scratch.borrow_mut();
        (scratch.work, scratch.stopped) = (0, None);
        drop(scratch);
        let found = self.search(text, 0, false).is_some();
        self.check().map(|()| found)
    }

    /// Whether all matches have been found that were looked for.
    ///
    /// # Errors
    /// 54001 if that was too much work: no other statement of the shard runs meanwhile. 57014 if
    /// the statement's time was over.
    pub fn check(&self) -> Result<(), SqlError> {
        match &self.scratch.borrow().stopped {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// The first match that begins at byte `from` or later; `from` must lie between characters.
    /// [`Regex::check`] tells whether there is none because the search was given up.
    pub fn find_at(&self, text: &str, from: usize) -> Option<Captures> {
        self.search(text, from, true)
    }

    /// Without `captures` it stops at the first sign of a match.
    fn search(&self, text: &str, from: usize, captures: bool) -> Option<Captures> {
        match self.looks_back {
            true => self.run_back(text, from, captures),
            false => self.run(text, from, captures),
        }
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

    /// The characters with which a match can begin; `None`: one may be empty.
    fn first(&self) -> Option<First> {
        let mut first = First {
            ascii: [false; 128],
            others: false,
        };
        let mut seen = vec![false; self.program.len()];
        let mut stack = vec![0];
        while let Some(pc) = stack.pop() {
            if core::mem::replace(&mut seen[pc], true) {
                continue;
            }
            match &self.program[pc] {
                Inst::Match | Inst::Back(_) => return None,
                Inst::Jump(to) => stack.push(*to),
                Inst::Split(one, other) => stack.extend([*one, *other]),
                Inst::Save(_) | Inst::Assert(_) => stack.push(pc + 1),
                Inst::Char(_) | Inst::Any | Inst::Set(_) => {
                    for (code, can) in (0u8..).zip(&mut first.ascii) {
                        *can |= self.accepts(pc, char::from(code));
                    }
                    let ascii = |c: &char| c.is_ascii() && !self.fold_case;
                    first.others |= !matches!(&self.program[pc], Inst::Char(c) if ascii(c));
                }
            }
        }
        Some(first)
    }

    /// Runs the threads. Without `captures` it stops at the first sign of a match.
    fn run(&self, text: &str, from: usize, captures: bool) -> Option<Captures> {
        let size = self.program.len();
        let mut scratch = self.scratch.borrow_mut();
        let Scratch {
            now,
            moved,
            stack,
            has_first,
            first,
            work,
            stopped,
        } = &mut *scratch;
        let work_max = (WORK_PER_BYTE + size as u64) * text.len() as u64 + WORK_FREE;
        if !core::mem::replace(has_first, true) {
            *first = self.first();
        }
        now.clear(size);
        let mut best: Option<(Thread, usize)> = None;
        let mut before = text[..from].chars().next_back();
        let mut at = from;
        loop {
            if let Some(first) = first
                && now.list.is_empty()
                && best.is_none()
            {
                let passed = first.pass(text.as_bytes(), at);
                if passed > at {
                    at = passed;
                    before = text[..at].chars().next_back();
                }
            }
            let after = text[at..].chars().next();
            let place = Place { at, before, after };
            if best.is_none() {
                self.add(now, stack, self.thread_from(at, captures), place);
            }
            if now.list.is_empty() && best.is_some() {
                break;
            }
            if let Err(error) = add_work(work, 1 + now.list.len() as u64, work_max) {
                stopped.get_or_insert(error);
                return None;
            }
            moved.clear();
            if self.advance(now, moved, &mut best, place) && !captures {
                return Some(Captures::new());
            }
            let Some(c) = after else { break };
            at += c.len_utf8();
            before = after;
            // Follow the jumps behind every accepted character, keeping the order.
            now.clear(size);
            let place = Place {
                at,
                before,
                after: text[at..].chars().next(),
            };
            for thread in moved.drain(..) {
                self.add(now, stack, thread, place);
            }
        }
        let (thread, end) = best?;
        let pairs = thread.slots.chunks(2);
        let groups = pairs.map(|pair| Some((pair[0]?, pair[1]?)));
        let whole = core::iter::once(Some((thread.start, end)));
        Some(whole.chain(groups).collect())
    }

    /// Has all threads take the next character: those that can are then in `moved`. Those that are
    /// at the end of the pattern have found a match; whether there is such a one.
    fn advance(
        &self,
        now: &mut Threads,
        moved: &mut Vec<Thread>,
        best: &mut Option<(Thread, usize)>,
        place: Place,
    ) -> bool {
        let mut any = false;
        for thread in now.list.drain(..) {
            if matches!(self.program[thread.pc], Inst::Match) {
                any = true;
                if best.as_ref().is_none_or(|(found, end)| {
                    thread.start < found.start || thread.start == found.start && place.at > *end
                }) {
                    *best = Some((thread, place.at));
                }
                if self.shortest {
                    // The threads after this one are less wanted.
                    break;
                }
            } else if let Some(c) = place.after
                && self.accepts(thread.pc, c)
                && best
                    .as_ref()
                    .is_none_or(|(found, _)| thread.start <= found.start)
            {
                moved.push(Thread {
                    pc: thread.pc + 1,
                    ..thread
                });
            }
        }
        any
    }

    /// Adds a thread after following everything that takes no character. `stack` is empty before
    /// and after.
    fn add(&self, threads: &mut Threads, stack: &mut Vec<Thread>, thread: Thread, place: Place) {
        stack.push(thread);
        while let Some(mut thread) = stack.pop() {
            if !threads.enters(thread.pc) {
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
                Inst::Char(_) | Inst::Any | Inst::Set(_) | Inst::Back(_) | Inst::Match => {
                    threads.list.push(thread);
                }
            }
        }
    }

    fn holds(&self, assertion: parse::Assertion, place: Place) -> bool {
        use parse::Assertion;
        let newline = |c: Option<char>| self.newline_anchors && c == Some('\n');
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
            Inst::Any => !(self.newline_stops && c == '\n'),
            Inst::Set(set) => {
                let set = &self.sets[*set];
                let found = set.contains(c)
                    || self.fold_case && (set.contains(lower(c)) || set.contains(upper(c)));
                found != set.negated && !(set.negated && self.newline_stops && c == '\n')
            }
            Inst::Match
            | Inst::Jump(_)
            | Inst::Split(..)
            | Inst::Save(_)
            | Inst::Assert(_)
            | Inst::Back(_) => {
                unreachable!("only instructions that take a character hold threads")
            }
        }
    }
}

#[cfg(test)]
mod tests;
