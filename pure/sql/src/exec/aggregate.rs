//! Grouping and aggregates, of rows or of the partial states that shards send.

use super::ordered::{OrderedRows, own_orders};
use super::source::{Rows, Source, open};
use super::step::{Step, StepOp};
use super::{BATCH_ROWS, Charge, Cx, Local, Slots};
use crate::bind::rel::Aggregate;
use crate::expr::aggregate::AggState;
use crate::expr::{Expr, eval, eval_bool};
use crate::port::ExecError;
use crate::rows::GroupKey;
use base::{Datum, RowBatch, SqlError};
use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, IntoIter};

/// Rough size of a state, in bytes.
const STATE_BYTES: usize = 96;

pub(super) struct AggregateRows<'a> {
    cx: &'a Cx<'a>,
    input: Option<Source<'a>>,
    group: &'a [Expr],
    aggregates: &'a [Aggregate],
    merge: bool,
    slots: Slots,
    done: IntoIter<GroupKey, Vec<State>>,
    charge: Charge<'a>,
}

impl<'a> AggregateRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> AggregateRows<'a> {
        let StepOp::Aggregate {
            input,
            group,
            aggregates,
            merge,
        } = &step.op
        else {
            unreachable!("opened for an aggregation");
        };
        AggregateRows {
            cx,
            input: Some(open(cx, input, slots)),
            group,
            aggregates,
            merge: *merge,
            slots: slots.clone(),
            done: BTreeMap::new().into_iter(),
            charge: Charge::new(cx.port),
        }
    }

    fn states(&self) -> Vec<State> {
        let own = own_orders(self.aggregates);
        let states = self.aggregates.iter().zip(own).map(|(aggregate, own)| {
            if own && !self.merge {
                State::Ordered(OrderedRows::default())
            } else {
                State::Plain(AggState::new(aggregate.func, keeps_distinct(aggregate)))
            }
        });
        states.collect()
    }

    async fn collect(&mut self) -> Result<BTreeMap<GroupKey, Vec<State>>, ExecError> {
        let mut input = self.input.take().expect("collected once");
        let mut groups: BTreeMap<GroupKey, Vec<State>> = BTreeMap::new();
        while let Some(batch) = input.next().await? {
            for row in batch.iter() {
                let key = self.key(row)?;
                let states = match groups.entry(key) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        let size = entry.key().bytes() + STATE_BYTES * (1 + self.aggregates.len());
                        self.charge.add(size)?;
                        entry.insert(self.states())
                    }
                };
                if self.merge {
                    let mut at = self.group.len();
                    for (aggregate, state) in self.aggregates.iter().zip(states) {
                        let width = aggregate.func.partial_width(keeps_distinct(aggregate));
                        let State::Plain(state) = state else {
                            unreachable!("shards send no parts of ordered aggregates")
                        };
                        state.merge(&row[at..at + width])?;
                        at += width;
                    }
                } else {
                    let kept = self.update(states, row)?;
                    if kept > 0 {
                        self.charge.add(kept)?;
                    }
                }
            }
            self.cx.breathe(batch.rows as usize).await;
        }
        if self.group.is_empty() && groups.is_empty() {
            groups.insert(GroupKey(Vec::new()), self.states());
        }
        Ok(groups)
    }

    fn key(&self, row: &[Datum]) -> Result<GroupKey, SqlError> {
        if self.merge {
            return Ok(GroupKey(row[..self.group.len()].to_vec()));
        }
        let env = self.cx.env(&self.slots);
        let key = self.group.iter().map(|key| eval(key, &row, &env));
        Ok(GroupKey(key.collect::<Result<_, _>>()?))
    }

    /// Adds a row to the states; gives the bytes of what must be kept until all rows are there.
    fn update(&self, states: &mut [State], row: &[Datum]) -> Result<usize, SqlError> {
        let env = self.cx.env(&self.slots);
        let mut args = Vec::with_capacity(2);
        let mut kept = 0;
        for (aggregate, state) in self.aggregates.iter().zip(states) {
            if let Some(filter) = &aggregate.filter
                && eval_bool(filter, &row, &env)? != Some(true)
            {
                continue;
            }
            args.clear();
            for arg in &aggregate.args {
                args.push(eval(arg, &row, &env)?);
            }
            match state {
                State::Plain(state) => state.update(&args)?,
                State::Ordered(rows) => {
                    let keys = aggregate.order.iter();
                    let keys = keys.map(|(key, _, _)| eval(key, &row, &env));
                    let keys = keys.collect::<Result<Vec<_>, _>>()?;
                    kept += rows.add(keys, &args);
                }
            }
        }
        Ok(kept)
    }

    async fn pull(&mut self) -> Result<Option<RowBatch>, ExecError> {
        if self.input.is_some() {
            self.done = self.collect().await?.into_iter();
        }
        let mut out = RowBatch::new(self.group.len() + self.aggregates.len());
        for (key, states) in self.done.by_ref().take(BATCH_ROWS) {
            let mut row = key.0;
            for (aggregate, state) in self.aggregates.iter().zip(states) {
                row.push(match state {
                    State::Plain(state) => state.finish()?,
                    State::Ordered(rows) => rows.finish(aggregate)?,
                });
            }
            out.push(row);
        }
        Ok((out.rows > 0).then_some(out))
    }
}

/// What is known of an aggregate while its rows come.
enum State {
    Plain(AggState),
    /// The rows come in another order than it asks for.
    Ordered(OrderedRows),
}

/// Whether a state must keep the values that it has seen.
fn keeps_distinct(aggregate: &Aggregate) -> bool {
    aggregate.distinct && !aggregate.func.ignores_repetition()
}

impl Rows for AggregateRows<'_> {
    fn next(&mut self) -> Local<'_, Result<Option<RowBatch>, ExecError>> {
        Box::pin(self.pull())
    }
}
