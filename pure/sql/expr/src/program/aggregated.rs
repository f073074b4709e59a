//! Partial aggregates of the rows that one shard has.

use super::{Body, PartialAggregate, passes};
use crate::aggregate::AggState;
use crate::hashed::Groups;
use crate::{EncodedRow, Env, Expr, eval};
use base::row::RowRef;
use base::{Datum, RowBatch, SqlError};
use std::sync::Arc;
use txn::RowTask;

/// Groups of one run of an aggregating program.
pub(super) struct AggregateTask {
    body: Arc<Body>,
    params: Box<[Datum]>,
    groups: Groups<AggState>,
    /// Room for the key of a row.
    key: Vec<Datum>,
    memory_bytes: usize,
}

fn states(aggregates: &[PartialAggregate]) -> impl Iterator<Item = AggState> {
    aggregates
        .iter()
        .map(|aggregate| AggState::new(aggregate.func, aggregate.distinct))
}

impl AggregateTask {
    /// A run of `body`, which aggregates.
    pub(super) fn new(body: Arc<Body>, params: Box<[Datum]>) -> AggregateTask {
        let Body::Aggregate {
            group, aggregates, ..
        } = &*body
        else {
            unreachable!("made for this body");
        };
        let types = group.iter().map(Expr::ty);
        let mut groups = Groups::new(types, aggregates.len());
        if group.is_empty() {
            // A query without GROUP BY has a group without rows, too.
            groups.enter(&mut Vec::new(), || states(aggregates));
        }
        AggregateTask {
            body,
            params,
            groups,
            key: Vec::new(),
            memory_bytes: 0,
        }
    }
}

impl RowTask for AggregateTask {
    fn row(&mut self, _: &[u8], row: &[u8]) -> Result<(), SqlError> {
        let Body::Aggregate {
            filter,
            group,
            aggregates,
        } = &*self.body
        else {
            unreachable!("made for this body");
        };
        let env = Env::of_program(&self.params);
        let row = EncodedRow(RowRef::new(row));
        if !passes(filter, &row, &env)? {
            return Ok(());
        }
        let number = if group.is_empty() {
            0
        } else {
            self.key.clear();
            for expr in group {
                self.key.push(eval(expr, &row, &env)?);
            }
            let (number, grown) = self.groups.enter(&mut self.key, || states(aggregates));
            self.memory_bytes += grown;
            number
        };
        let mut args: [Datum; 2] = [Datum::Null, Datum::Null];
        for (aggregate, state) in aggregates.iter().zip(self.groups.states(number)) {
            if !passes(&aggregate.filter, &row, &env)? {
                continue;
            }
            assert!(
                aggregate.args.len() <= args.len(),
                "aggregates take at most two arguments"
            );
            for (place, arg) in args.iter_mut().zip(&aggregate.args) {
                *place = eval(arg, &row, &env)?;
            }
            let before = state.held_bytes();
            state.update(&args[..aggregate.args.len()])?;
            self.memory_bytes += state.held_bytes();
            self.memory_bytes -= before;
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn finish(mut self: Box<Self>, out: &mut RowBatch) -> Result<(), SqlError> {
        for group in 0..self.groups.len() {
            let (key, states) = self.groups.parts(group);
            let mut row: Vec<Datum> = key.iter_mut().map(core::mem::take).collect();
            for state in states {
                row.extend(core::mem::take(state).partial()?);
            }
            out.push(row);
        }
        Ok(())
    }
}
