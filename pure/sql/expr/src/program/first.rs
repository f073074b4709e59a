//! The first rows in the order of keys, found where the rows are.
//!
//! A scan shows the rows of one slot in the order of their keys, and slot after slot. As soon as
//! enough rows are known, a slot is left at the first key that lies behind all of them: what is
//! read does not grow with the table.

use super::{Body, passes, project, wanted_rows};
use crate::rows::{datums_heap_bytes, heap_bytes};
use crate::{EncodedRow, Env};
use base::row::RowRef;
use base::{Datum, RowBatch, SqlError};
use core::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use txn::RowTask;

/// Wanted rows above which slots are visited to their ends: the state would grow too large to be
/// answered at once.
pub const FIRST_ROWS_MAX: usize = 1_000;

/// A row and its key.
struct KeyedRow {
    key: Box<[u8]>,
    reverse: bool,
    row: Box<[Datum]>,
}

impl KeyedRow {
    fn memory_bytes(&self) -> usize {
        let row = heap_bytes(size_of_val::<[Datum]>(&self.row)) + datums_heap_bytes(&self.row);
        size_of::<KeyedRow>() + heap_bytes(self.key.len()) + row
    }
}

impl Ord for KeyedRow {
    fn cmp(&self, other: &KeyedRow) -> Ordering {
        directed(self.key.cmp(&other.key), self.reverse)
    }
}

impl PartialOrd for KeyedRow {
    fn partial_cmp(&self, other: &KeyedRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyedRow {
    fn eq(&self, other: &KeyedRow) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for KeyedRow {}

fn directed(order: Ordering, reverse: bool) -> Ordering {
    if reverse { order.reverse() } else { order }
}

/// The best rows so far of one run of [`Body::First`], the worst of them on top.
pub(super) struct FirstTask {
    body: Arc<Body>,
    params: Box<[Datum]>,
    /// Rows that are wanted at most.
    count: Result<usize, SqlError>,
    rows: BinaryHeap<KeyedRow>,
    memory_bytes: usize,
}

impl FirstTask {
    pub(super) fn new(body: Arc<Body>, params: Box<[Datum]>) -> FirstTask {
        let Body::First { count, .. } = &*body else {
            unreachable!("made for this body")
        };
        let count = wanted_rows(count, &params);
        FirstTask {
            body,
            params,
            count,
            rows: BinaryHeap::new(),
            memory_bytes: 0,
        }
    }
}

impl RowTask for FirstTask {
    fn row(&mut self, key: &[u8], row: &[u8]) -> Result<(), SqlError> {
        let count = self.count.clone()?;
        if !self.wants(key) {
            return Ok(());
        }
        let Body::First {
            filter,
            projection,
            reverse,
            ..
        } = &*self.body
        else {
            unreachable!("made for this body");
        };
        let env = Env::of_program(&self.params);
        let row = EncodedRow(RowRef::new(row));
        if !passes(filter, &row, &env)? {
            return Ok(());
        }
        let mut out = RowBatch::new(projection.len());
        project(projection, &row, &env, &mut out)?;
        let kept = KeyedRow {
            key: key.into(),
            reverse: *reverse,
            row: out.datums.into(),
        };
        self.memory_bytes += kept.memory_bytes();
        self.rows.push(kept);
        if self.rows.len() > count {
            let dropped = self.rows.pop();
            self.memory_bytes -= dropped.map_or(0, |row| row.memory_bytes());
        }
        Ok(())
    }

    fn first_rows(&self) -> Option<usize> {
        let count = self.count.as_ref().ok().copied();
        count.filter(|count| *count <= FIRST_ROWS_MAX)
    }

    fn wants(&self, key: &[u8]) -> bool {
        let enough = |count: &usize| self.rows.len() >= *count;
        if !self.count.as_ref().is_ok_and(enough) {
            return true;
        }
        let worst = self.rows.peek();
        worst.is_some_and(|worst| directed(key.cmp(&worst.key), worst.reverse).is_lt())
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn finish(self: Box<Self>, out: &mut RowBatch) -> Result<(), SqlError> {
        let Body::First { keyed, .. } = &*self.body else {
            unreachable!("made for this body")
        };
        for KeyedRow { key, row, .. } in self.rows.into_sorted_vec() {
            let key = keyed.then(|| Datum::Bytes(key));
            out.push(row.into_vec().into_iter().chain(key));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Expr;
    use base::Type;

    fn task(count: i64, reverse: bool, filter: Option<Expr>) -> Box<FirstTask> {
        let body = Body::First {
            filter,
            projection: vec![Expr::Column(0, Type::Int8)],
            count: Expr::Const(Datum::Int(count), Type::Int8),
            reverse,
            keyed: false,
        };
        Box::new(FirstTask::new(Arc::new(body), Box::default()))
    }

    /// Shows slots of rows to a task as a scan does: the rows that were shown, and the result.
    fn run(mut task: Box<FirstTask>, slots: &[&[u8]], reverse: bool) -> (usize, Vec<i64>) {
        let mut shown = 0;
        for slot in slots {
            let mut keys = slot.to_vec();
            keys.sort_unstable();
            if reverse {
                keys.reverse();
            }
            for key in keys {
                let row = base::row::to_vec(&[Datum::Int(i64::from(key))]);
                task.row(&[key], &row).expect("a plain column");
                shown += 1;
                if !task.wants(&[key]) {
                    break;
                }
            }
        }
        let mut out = RowBatch::new(1);
        task.finish(&mut out).expect("no error is left");
        let values = out.datums.iter().filter_map(Datum::as_int);
        (shown, values.collect())
    }

    #[test]
    fn the_first_rows_of_all_slots_are_found_and_slots_are_left_early() {
        let slots: [&[u8]; 3] = [&[5, 9, 14, 20, 31], &[1, 2, 3, 4, 6, 7], &[8, 10, 12]];
        let up = run(task(3, false, None), &slots, false);
        assert_eq!(up, (3 + 3 + 1, vec![1, 2, 3]));
        let down = run(task(2, true, None), &slots, true);
        assert_eq!(down, (2 + 1 + 1, vec![31, 20]));
        assert_eq!(run(task(0, false, None), &slots, false).1, [0i64; 0]);
        assert_eq!(run(task(50, false, None), &slots, false).0, 14);
    }

    #[test]
    fn a_row_that_does_not_pass_ends_a_slot_when_it_lies_behind_the_wanted_ones() {
        let slots: [&[u8]; 2] = [&[3, 4], &[5, 6, 7, 8]];
        let even = Expr::Call(
            crate::Func::Compare(crate::Compare::Ge),
            vec![
                Expr::Column(0, Type::Int8),
                Expr::Const(Datum::Int(4), Type::Int8),
            ],
            Type::Bool,
        );
        let found = run(task(1, false, Some(even)), &slots, false);
        assert_eq!(found, (2 + 1, vec![4]));
    }

    #[test]
    fn large_counts_read_slots_to_their_ends() {
        assert_eq!(task(1_000, false, None).first_rows(), Some(1_000));
        assert_eq!(task(1_001, false, None).first_rows(), None);
        assert_eq!(task(-1, false, None).first_rows(), Some(0));
    }
}
