//! Sequences: blocks of numbers drawn from a durable counter row.
//!
//! The counter of a sequence is the one row of its own key space. A shard draws a block of numbers
//! from it in a transaction of its own: a rollback leaves a gap, and no user transaction waits for
//! another one's lock. After a crash the rest of a block is lost: a gap again, never a repetition.

use base::key::Slot;
use base::{Datum, IndexId, Key, SLOT_COUNT, SqlError, SqlState, Tag, Type};
use catalog::Sequence;
use exec::port::OpFuture;
use exec::{Port, Running};
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

/// The blocks of one shard and the draws that are wanted.
#[derive(Default)]
pub(crate) struct SequenceDraws {
    blocks: BTreeMap<IndexId, Block>,
    failed: BTreeMap<IndexId, OpError>,
    /// Sequences for which a block is to be drawn; the machine starts the transactions.
    pub(crate) wanted: Vec<Sequence>,
    drawing: Vec<IndexId>,
}

impl SequenceDraws {
    /// A draw has ended: statements that wait try again.
    pub(crate) fn on_drawn(&mut self, id: IndexId, result: Result<(), OpError>) {
        self.drawing.retain(|drawing| *drawing != id);
        if let Err(error) = result {
            self.failed.insert(id, error);
        }
    }
}

/// Takes the next number of the shard's block, or asks for a block.
pub(crate) fn draw(
    draws: &Rc<RefCell<SequenceDraws>>,
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
        draws.wanted.push(sequence.clone());
    }
    Poll::Pending
}

/// The transaction that draws a block for this shard.
pub(crate) fn draw_block(
    port: Rc<dyn Port>,
    draws: Rc<RefCell<SequenceDraws>>,
    sequence: Sequence,
) -> Running {
    Box::pin(async move {
        let slot = Slot((sequence.id.0 % u32::from(SLOT_COUNT)) as u16);
        let key = Key {
            index: sequence.id,
            slot,
            bytes: Vec::new(),
        };
        let to = port.home(slot);
        let planned = port.catalog().version;
        let program = expr::program::whole_row(&[Type::Int8]);
        let read = Read::Lock(LockMode::Exclusive);
        let get = Op::Get {
            key: key.clone(),
            read,
            program,
        };
        let found = OpFuture::start(&*port, to, planned, get, false).await?;
        let OpResult::Rows { batch, .. } = found else {
            unreachable!("a get answers rows")
        };
        let next = match batch.iter().next() {
            Some([Datum::Int(next)]) => *next,
            Some(row) => unreachable!("a counter row is one number, not {row:?}"),
            None => sequence.first.unwrap_or(sequence.start),
        };
        let count = numbers_left(&sequence, next).min(BLOCK_COUNT);
        if count == 0 {
            return Err(OpError::Sql(exhausted(&sequence)));
        }
        let after = next.wrapping_add(sequence.increment.wrapping_mul(count));
        let mut row = Vec::new();
        base::row::encode(&[Datum::Int(after)], &mut row);
        let op = Op::Write {
            key,
            write: Write::Put(row),
        };
        OpFuture::start(&*port, to, planned, op, false).await?;
        let block = Block {
            next,
            left: count,
            increment: sequence.increment,
            min: sequence.min,
            max: sequence.max,
        };
        // The block counts only after the commit. After a failed commit another block is drawn, and
        // the numbers of this one are never given out.
        draws.borrow_mut().blocks.insert(sequence.id, block);
        Ok(Tag::Word("NEXTVAL"))
    })
}

/// How many numbers the sequence has left, with `next` (at most `i64::MAX`).
fn numbers_left(sequence: &Sequence, next: i64) -> i64 {
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
