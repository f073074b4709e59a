//! Patterns with back references: what a group took must come again. A set of threads that advance
//! together does not do, because threads at one instruction differ by what their groups took. So
//! the ways through the pattern are tried one after the other, the preferred ones first, up to a
//! bound of work.

use super::compile::Inst;
use super::{Captures, Place, Regex, add_work, lower};

/// Work that is allowed for a text of any length: a step, or four places of groups that are kept.
const WORK_FREE: u64 = 256 << 10;
/// Work that is allowed for each byte of the text beside that.
const WORK_PER_BYTE: u64 = 64;
/// Places of groups that are kept for one unit of work.
const SLOTS_PER_WORK: u64 = 4;

/// A way through the pattern that has not been followed to its end.
#[derive(Clone)]
struct Way {
    pc: usize,
    at: usize,
    slots: Vec<Option<usize>>,
    /// Loops that began again since the last character.
    loops: Vec<usize>,
}

impl Regex {
    /// As [`Regex::find_at`]. Without `captures` it stops at the first match.
    pub(super) fn run_back(&self, text: &str, from: usize, captures: bool) -> Option<Captures> {
        let starts = text[from..].char_indices().map(|(at, _)| from + at);
        let starts = starts.chain(core::iter::once(text.len()));
        for start in starts {
            if let Some((end, slots)) = self.match_from(text, start, captures) {
                let pairs = slots.chunks(2);
                let groups = pairs.map(|pair| Some((pair[0]?, pair[1]?)));
                let whole = core::iter::once(Some((start, end)));
                return Some(whole.chain(groups).collect());
            }
            if self.scratch.borrow().stopped.is_some() {
                return None;
            }
        }
        None
    }

    /// Counts work; whether it may go on.
    fn works(&self, text: &str, amount: u64) -> bool {
        let mut scratch = self.scratch.borrow_mut();
        let most = WORK_PER_BYTE * text.len() as u64 + WORK_FREE;
        if let Err(error) = add_work(&mut scratch.work, amount, most) {
            scratch.stopped.get_or_insert(error);
        }
        scratch.stopped.is_none()
    }

    /// The longest match that begins at `start`, or the shortest one, with the places of its
    /// groups.
    fn match_from(
        &self,
        text: &str,
        start: usize,
        captures: bool,
    ) -> Option<(usize, Vec<Option<usize>>)> {
        let mut best: Option<(usize, Vec<Option<usize>>)> = None;
        let mut open = vec![Way {
            pc: 0,
            at: start,
            slots: vec![None; self.groups * 2],
            loops: Vec::new(),
        }];
        while let Some(mut way) = open.pop() {
            loop {
                let size = (way.slots.len() + way.loops.len()) as u64;
                let splits = matches!(self.program[way.pc], Inst::Split(..));
                let kept = if splits { size / SLOTS_PER_WORK } else { 0 };
                if !self.works(text, 1 + kept) {
                    return None;
                }
                match self.step(text, &mut way) {
                    Step::On => {}
                    Step::Both(other) => open.push(other),
                    Step::Dead => break,
                    Step::Found => {
                        let better = |(end, _): &(usize, _)| match self.shortest {
                            true => way.at < *end,
                            false => way.at > *end,
                        };
                        if best.as_ref().is_none_or(better) {
                            best = Some((way.at, way.slots));
                        }
                        let is_last = match self.shortest {
                            true => best.as_ref().is_some_and(|(end, _)| *end == start),
                            false => best.as_ref().is_some_and(|(end, _)| *end == text.len()),
                        };
                        if !captures || is_last {
                            return best;
                        }
                        break;
                    }
                }
            }
        }
        best
    }

    /// Follows one instruction.
    fn step(&self, text: &str, way: &mut Way) -> Step {
        let after = || text[way.at..].chars().next();
        match &self.program[way.pc] {
            Inst::Match => return Step::Found,
            Inst::Jump(to) => {
                if *to <= way.pc {
                    // Once more around without a character leads nowhere new.
                    if way.loops.contains(to) {
                        return Step::Dead;
                    }
                    way.loops.push(*to);
                }
                way.pc = *to;
                return Step::On;
            }
            Inst::Split(first, second) => {
                let other = Way {
                    pc: *second,
                    ..way.clone()
                };
                way.pc = *first;
                return Step::Both(other);
            }
            Inst::Save(slot) => way.slots[*slot] = Some(way.at),
            Inst::Assert(assertion) => {
                let place = Place {
                    at: way.at,
                    before: text[..way.at].chars().next_back(),
                    after: after(),
                };
                if !self.holds(*assertion, place) {
                    return Step::Dead;
                }
            }
            Inst::Back(group) => {
                let (Some(first), Some(end)) = (way.slots[group * 2], way.slots[group * 2 + 1])
                else {
                    return Step::Dead;
                };
                match self.again(&text[first..end], &text[way.at..]) {
                    Some(0) => {}
                    Some(length) => {
                        way.at += length;
                        way.loops.clear();
                    }
                    None => return Step::Dead,
                }
            }
            Inst::Char(_) | Inst::Any | Inst::Set(_) => match after() {
                Some(c) if self.accepts(way.pc, c) => {
                    way.at += c.len_utf8();
                    way.loops.clear();
                }
                _ => return Step::Dead,
            },
        }
        way.pc += 1;
        Step::On
    }

    /// Bytes at the start of `text` that are what a group took.
    fn again(&self, taken: &str, text: &str) -> Option<usize> {
        if !self.fold_case {
            return text.starts_with(taken).then_some(taken.len());
        }
        let mut rest = text.chars();
        for c in taken.chars() {
            if lower(rest.next()?) != lower(c) {
                return None;
            }
        }
        Some(text.len() - rest.as_str().len())
    }
}

/// What came of an instruction.
enum Step {
    On,
    /// There is another way beside this one.
    Both(Way),
    Dead,
    Found,
}
