//! Sequences: blocks of numbers drawn from a durable counter row.
//!
//! The counter of a sequence is the one row of its own key space. A shard draws a block of numbers
//! from it in a transaction of its own: a rollback leaves a gap, and no user transaction waits for
//! another one's lock. After a crash the rest of a block is lost: a gap again, never a repetition.
//!
//! `setval` writes the row in such a transaction, and then all shards forget their blocks. A second
//! column tells that the next number is the one which `setval` named, not one behind it (true), or
//! that the row holds the last number, behind which there is none of 64 bits (false).

use base::key::Slot;
use base::row::encode;
use base::{Datum, IndexId, Key, SLOT_COUNT, SqlError, SqlState, Tag, Type};
use catalog::Sequence;
use exec::port::{OpFuture, SequenceAsk};
use exec::{Port, Running};
use session::message::{SessionEffects, SessionFacts};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Poll;
use store::Write;
use txn::{LockMode, Op, OpError, OpResult, Read};

/// Numbers in a block: each block costs one extra transaction.
pub(crate) const BLOCK_COUNT: i64 = 32;

#[derive(Clone, Debug)]
struct Block {
    next: i64,
    left: i64,
    increment: i64,
    min: i64,
    max: i64,
}

impl Block {
    /// Whether the sequence counts as it did when the block was drawn. What is left of another
    /// block is a gap.
    fn fits(&self, sequence: &Sequence) -> bool {
        let counts = (sequence.increment, sequence.min, sequence.max);
        (self.increment, self.min, self.max) == counts
    }
}

/// Answers to statements that do not wait for them any more, beyond which the oldest go.
const ANSWERS_MAX: usize = 10_000;

/// A transaction on a counter that is to be started.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    sequence: Sequence,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A block for this shard, as long as the shard has not forgotten this many times.
    Block(u64),
    /// What the statement with this ticket asks.
    Ask(u64, SequenceAsk),
}

/// The blocks of one shard and the draws that are wanted.
#[derive(Default)]
pub(crate) struct SequenceDraws {
    blocks: BTreeMap<IndexId, Block>,
    failed: BTreeMap<IndexId, OpError>,
    /// What the machine is to start.
    pub(crate) wanted: Vec<Wanted>,
    drawing: Vec<IndexId>,
    /// How often blocks were forgotten: a block that was under way then does not count.
    forgotten: u64,
    tickets: u64,
    answers: BTreeMap<u64, Result<(i64, bool), OpError>>,
}

impl SequenceDraws {
    /// A transaction has ended: statements that wait try again.
    pub(crate) fn on_done(&mut self, wanted: &Wanted, result: Result<(), OpError>) {
        let id = wanted.sequence.id;
        match (wanted.what, result) {
            (What::Block(_), result) => {
                self.drawing.retain(|drawing| *drawing != id);
                if let Err(error) = result {
                    self.failed.insert(id, error);
                }
            }
            (What::Ask(ticket, _), Err(error)) => drop(self.answers.insert(ticket, Err(error))),
            (What::Ask(..), Ok(())) => {}
        }
        while self.answers.len() > ANSWERS_MAX {
            self.answers.pop_first();
        }
    }

    /// Forgets the numbers that this shard has drawn.
    pub(crate) fn forget(&mut self, sequence: IndexId) {
        self.blocks.remove(&sequence);
        self.forgotten += 1;
    }

    /// Starts a transaction on the counter, or returns its answer.
    pub(crate) fn ask(
        &mut self,
        sequence: &Sequence,
        ask: SequenceAsk,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<(i64, bool), OpError>> {
        if let Some(ticket) = ticket {
            return self
                .answers
                .remove(ticket)
                .map_or(Poll::Pending, Poll::Ready);
        }
        self.tickets += 1;
        *ticket = Some(self.tickets);
        self.wanted.push(Wanted {
            sequence: sequence.clone(),
            what: What::Ask(self.tickets, ask),
        });
        Poll::Pending
    }
}

/// Notes the number that a statement has drawn, for `currval`.
fn note_drawn(effects: &RefCell<Option<Box<SessionEffects>>>, sequence: &Sequence, value: i64) {
    let mut effects = effects.borrow_mut();
    let currval = &mut effects.get_or_insert_default().currval;
    match currval.iter_mut().find(|(id, _)| *id == sequence.id) {
        Some((_, last)) => *last = value,
        None => currval.push((sequence.id, value)),
    }
}

/// The answer to `setval` of a number, and whether it counts as drawn.
pub(crate) fn set_drawn(
    effects: &RefCell<Option<Box<SessionEffects>>>,
    sequence: &Sequence,
    done: Poll<Result<(), OpError>>,
    (value, given): (i64, bool),
) -> Poll<Result<(i64, bool), OpError>> {
    if given && matches!(done, Poll::Ready(Ok(()))) {
        note_drawn(effects, sequence, value);
    }
    done.map(|done| done.map(|()| (value, given)))
}

/// The number that the session drew last.
pub(crate) fn last_drawn(
    effects: &RefCell<Option<Box<SessionEffects>>>,
    facts: &SessionFacts,
    sequence: &Sequence,
) -> Option<i64> {
    let own = effects.borrow();
    let own = own.iter().flat_map(|own| &own.currval);
    let mut known = own.chain(&facts.currval);
    let (_, value) = known.find(|(id, _)| *id == sequence.id)?;
    Some(*value)
}

/// Takes the next number of the shard's block, or asks for a block.
pub(crate) fn draw(
    draws: &Rc<RefCell<SequenceDraws>>,
    effects: &RefCell<Option<Box<SessionEffects>>>,
    sequence: &Sequence,
    ticket: &mut Option<u64>,
) -> Poll<Result<i64, OpError>> {
    let mut draws = draws.borrow_mut();
    if let Some(block) = draws
        .blocks
        .get_mut(&sequence.id)
        .filter(|block| block.left > 0 && block.fits(sequence))
    {
        let value = block.next;
        block.left -= 1;
        block.next = block.next.wrapping_add(block.increment);
        drop(draws);
        note_drawn(effects, sequence, value);
        effects.borrow_mut().get_or_insert_default().drawn_last = Some(sequence.id);
        return Poll::Ready(Ok(value));
    }
    if ticket.is_some()
        && let Some(error) = draws.failed.remove(&sequence.id)
    {
        return Poll::Ready(Err(error));
    }
    *ticket = Some(0);
    if !draws.drawing.contains(&sequence.id) {
        draws.drawing.push(sequence.id);
        let what = What::Block(draws.forgotten);
        draws.wanted.push(Wanted {
            sequence: sequence.clone(),
            what,
        });
    }
    Poll::Pending
}

/// Where a counter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counter {
    /// The next number, which is behind one that was given.
    Next(i64),
    /// The next number, which `setval` or the beginning has named.
    Named(i64),
    /// The last number that was given, if the next one has more than 64 bits.
    Last(i64),
}

impl Counter {
    /// Behind a number that was given.
    fn behind(last: i64, increment: i64) -> Counter {
        let next = last.checked_add(increment);
        next.map_or(Counter::Last(last), Counter::Next)
    }

    /// The next number, if there is one. The increment may have changed since.
    fn next(self, increment: i64) -> Option<i64> {
        match self {
            Counter::Next(next) | Counter::Named(next) => Some(next),
            Counter::Last(last) => last.checked_add(increment),
        }
    }

    /// The last number and true; or the next one and false, if none was given.
    fn told(self, increment: i64) -> (i64, bool) {
        match self {
            Counter::Next(next) => (next.wrapping_sub(increment), true),
            Counter::Named(next) => (next, false),
            Counter::Last(last) => (last, true),
        }
    }
}

/// The transaction that draws a block for this shard, reads the counter or sets it.
pub(crate) fn on_counter(
    port: Rc<dyn Port>,
    draws: Rc<RefCell<SequenceDraws>>,
    wanted: Wanted,
) -> Running {
    Box::pin(async move {
        let Wanted { sequence, what } = wanted;
        let counter = read(&*port, &sequence).await?;
        match what {
            What::Block(forgotten) => {
                let (block, after) = block(&sequence, counter)?;
                write(&*port, &sequence, after).await?;
                // The block counts only after the commit. After a failed commit another block is
                // drawn, and the numbers of this one are never given out.
                let mut draws = draws.borrow_mut();
                if draws.forgotten == forgotten {
                    draws.blocks.insert(sequence.id, block);
                }
            }
            What::Ask(ticket, SequenceAsk::Set { value, given }) => {
                let counter = match given {
                    true => Counter::behind(value, sequence.increment),
                    false => Counter::Named(value),
                };
                write(&*port, &sequence, counter).await?;
                draws
                    .borrow_mut()
                    .answers
                    .insert(ticket, Ok((value, given)));
            }
            What::Ask(ticket, SequenceAsk::Read | SequenceAsk::Forget { .. }) => {
                let told = counter.told(sequence.increment);
                draws.borrow_mut().answers.insert(ticket, Ok(told));
            }
        }
        Ok(Tag::Word("NEXTVAL"))
    })
}

/// The key of a sequence's counter.
fn key_of(sequence: &Sequence) -> Key {
    Key {
        index: sequence.id,
        slot: Slot((sequence.id.0 % u32::from(SLOT_COUNT)) as u16),
        bytes: Vec::new(),
    }
}

async fn read(port: &dyn Port, sequence: &Sequence) -> Result<Counter, OpError> {
    let key = key_of(sequence);
    let (to, planned) = (port.home(key.slot), port.catalog().version);
    let program = expr::program::whole_row(&[Type::Int8, Type::Bool]);
    let read = Read::Lock(LockMode::Exclusive);
    let get = Op::Get { key, read, program };
    let found = OpFuture::start(port, to, planned, get, false).await?;
    let OpResult::Rows { batch, .. } = found else {
        unreachable!("a get answers rows")
    };
    Ok(match batch.iter().next() {
        Some([Datum::Int(number), flag]) => match flag.as_bool() {
            Some(true) => Counter::Named(*number),
            Some(false) => Counter::Last(*number),
            None => Counter::Next(*number),
        },
        Some(row) => unreachable!("a counter row is a number and a flag, not {row:?}"),
        None => Counter::Named(sequence.first.unwrap_or(sequence.start)),
    })
}

async fn write(port: &dyn Port, sequence: &Sequence, counter: Counter) -> Result<(), OpError> {
    let key = key_of(sequence);
    let (to, planned) = (port.home(key.slot), port.catalog().version);
    let mut row = Vec::new();
    match counter {
        Counter::Named(next) => encode(&[Datum::Int(next), Datum::Bool(true)], &mut row),
        Counter::Next(next) => encode(&[Datum::Int(next)], &mut row),
        Counter::Last(last) => encode(&[Datum::Int(last), Datum::Bool(false)], &mut row),
    }
    let write = Write::Put(row);
    let op = Op::Write { key, write };
    OpFuture::start(port, to, planned, op, false).await?;
    Ok(())
}

/// The next block and where the counter is behind it.
fn block(sequence: &Sequence, counter: Counter) -> Result<(Block, Counter), SqlError> {
    let next = counter.next(sequence.increment);
    let next = next.filter(|next| numbers_left(sequence, *next) > 0);
    let again = match sequence.increment > 0 {
        true => sequence.min,
        false => sequence.max,
    };
    let next = next.or(sequence.cycle.then_some(again));
    let next = next.ok_or_else(|| exhausted(sequence))?;
    let count = numbers_left(sequence, next).min(BLOCK_COUNT);
    // The last number of the block lies between the bounds.
    let last = next.wrapping_add(sequence.increment.wrapping_mul(count - 1));
    let after = Counter::behind(last, sequence.increment);
    let block = Block {
        next,
        left: count,
        increment: sequence.increment,
        min: sequence.min,
        max: sequence.max,
    };
    Ok((block, after))
}

/// How many numbers the sequence has left, with `next` (at most `i64::MAX`).
fn numbers_left(sequence: &Sequence, next: i64) -> i64 {
    if !(sequence.min..=sequence.max).contains(&next) {
        return 0;
    }
    let (next, step) = (i128::from(next), i128::from(sequence.increment));
    let room = if step > 0 {
        i128::from(sequence.max) - next
    } else {
        next - i128::from(sequence.min)
    };
    if room < 0 {
        0
    } else {
        (room / step.abs() + 1).min(i128::from(i64::MAX)) as i64
    }
}

fn exhausted(sequence: &Sequence) -> SqlError {
    let (bound, value) = if sequence.increment > 0 {
        ("maximum", sequence.max)
    } else {
        ("minimum", sequence.min)
    };
    let text = format!(
        "nextval: reached {bound} value of sequence \"{}\" ({value})",
        sequence.name
    );
    SqlError::new(SqlState(*b"2200H"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(increment: i64) -> Sequence {
        Sequence {
            id: IndexId(7),
            name: "s".to_owned(),
            start: 1,
            first: None,
            ty: Type::Int8,
            increment,
            min: i64::MIN,
            max: i64::MAX,
            cycle: false,
            owned_by: None,
        }
    }

    /// All numbers from `counter` on, at most `most`.
    fn numbers(sequence: &Sequence, mut counter: Counter, most: usize) -> Vec<i64> {
        let mut all = Vec::new();
        while all.len() < most
            && let Ok((block, after)) = block(sequence, counter)
        {
            let numbers = (0..block.left).map(|i| block.next + i * block.increment);
            all.extend(numbers);
            counter = after;
        }
        all
    }

    #[test]
    fn no_sequence_goes_round_at_the_ends_of_64_bits() {
        let up = sequence(1);
        let first = i64::MAX - 40;
        let all = numbers(&up, Counter::Named(first), 100);
        assert_eq!(all, (first..=i64::MAX).collect::<Vec<_>>());
        let down = sequence(-1);
        let all = numbers(&down, Counter::Named(i64::MIN + 2), 100);
        assert_eq!(all, [i64::MIN + 2, i64::MIN + 1, i64::MIN]);
        // A step so large that what wraps around lies between the bounds.
        let leaps = sequence(1 << 62);
        let all = numbers(&leaps, Counter::Named(1), 100);
        assert_eq!(all, [1, (1 << 62) + 1]);
    }

    #[test]
    fn a_cycling_sequence_begins_again() {
        let round = |increment: i64| Sequence {
            min: 1,
            max: 5,
            cycle: true,
            ..sequence(increment)
        };
        let all = numbers(&round(2), Counter::Named(2), 7);
        assert_eq!(all[..6], [2, 4, 1, 3, 5, 1]);
        let all = numbers(&round(-2), Counter::Named(1), 7);
        assert_eq!(all[..5], [1, 5, 3, 1, 5]);
    }

    #[test]
    fn setval_to_the_last_number_leaves_none() {
        let up = sequence(1);
        let counter = Counter::behind(i64::MAX, 1);
        assert_eq!(counter.told(1), (i64::MAX, true));
        let error = block(&up, counter).map(|_| ()).unwrap_err();
        assert_eq!(error.state().as_str(), "2200H");
        // Counted the other way from now on.
        assert_eq!(numbers(&sequence(-1), counter, 1)[0], i64::MAX - 1);
    }
}
