//! Grouping and aggregates, of rows or of the partial states that shards send.

use super::long::{Long, Shrink};
use super::ordered::{OrderedRows, own_orders};
use super::source::{Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use bind::rel::Aggregate;
use expr::aggregate::AggState;
use expr::rows::{GroupKey, datums_heap_bytes, group_bytes};
use expr::{Expr, eval, eval_bool, list};
use plan::step::{Step, StepOp};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use txn::OpError;

/// Bytes that states gather before they are charged.
const CHARGE_BYTES: usize = 16 << 10;
/// A batch with larger values is large.
const LARGE_BYTES: usize = 64 << 10;

pub(super) struct AggregateRows<'a> {
    cx: &'a Cx<'a>,
    input: Option<Source<'a>>,
    group: &'a [Expr],
    aggregates: &'a [Aggregate],
    merge: bool,
    /// Keys of groups that are there without a row.
    always: &'a [Vec<Datum>],
    /// Units of work for a row.
    units: u32,
    slots: Slots,
    groups: Long<'a, Groups>,
    charge: Charge<'a>,
}

impl<'a> AggregateRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> AggregateRows<'a> {
        let StepOp::Aggregate {
            input,
            group,
            aggregates,
            merge,
            always,
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
            always,
            units: if *merge { 1 } else { units(group, aggregates) },
            slots: slots.clone(),
            groups: Long::new(cx.port, Groups::default()),
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

    async fn collect(&mut self) -> Result<Long<'a, Groups>, OpError> {
        let mut input = self.input.take().expect("collected once");
        let mut groups = Long::new(self.cx.port, Groups::default());
        let mut gathered = 0usize;
        while let Some(batch) = input.next().await? {
            // Making a large answer was enough for a turn.
            if self.merge && is_large(&batch) {
                self.cx.breathe(BATCH_ROWS).await;
            }
            let mut done = 0;
            for row in batch.iter() {
                let key = self.key(row)?;
                let states = match groups.0.entry(key) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        let size = group_bytes::<State>(entry.key(), self.aggregates.len());
                        self.charge.add(size)?;
                        entry.insert(self.states())
                    }
                };
                let before = held_bytes(states);
                if self.merge {
                    let mut at = self.group.len();
                    for (aggregate, state) in self.aggregates.iter().zip(states.iter_mut()) {
                        let width = aggregate.func.partial_width(keeps_distinct(aggregate));
                        let State::Plain(state) = state else {
                            unreachable!("shards send no parts of ordered aggregates")
                        };
                        let partial = &row[at..at + width];
                        let growth = state.growth_bytes(partial) + datums_heap_bytes(partial);
                        self.ask(growth)?;
                        at += width;
                        if !state.is_distinct() {
                            state.merge(partial)?;
                            continue;
                        }
                        for part in partial[0].as_array().unwrap_or_default() {
                            done += state.merge_part(part)?;
                            if done >= BATCH_ROWS {
                                self.cx.breathe(core::mem::take(&mut done)).await;
                            }
                        }
                    }
                } else {
                    self.update(states, row)?;
                }
                // A shorter value may have taken the place of a longer one.
                gathered += held_bytes(states).saturating_sub(before);
                if gathered >= CHARGE_BYTES {
                    self.charge.add(core::mem::take(&mut gathered))?;
                }
                done += self.units as usize;
                if done >= BATCH_ROWS {
                    self.cx.breathe(core::mem::take(&mut done)).await;
                }
            }
            self.charge.add(core::mem::take(&mut gathered))?;
            self.cx.breathe(done).await;
        }
        if self.group.is_empty() && groups.0.is_empty() {
            groups.0.insert(GroupKey(Vec::new()), self.states());
        }
        for key in self.always {
            let key = GroupKey(key.clone());
            groups.0.entry(key).or_insert_with(|| self.states());
        }
        Ok(groups)
    }

    fn key(&self, row: &[Datum]) -> Result<GroupKey, SqlError> {
        if self.merge {
            return Ok(GroupKey(row[..self.group.len()].to_vec()));
        }
        let env = self.cx.env(&self.slots);
        let mut key = Vec::with_capacity(self.group.len());
        for expr in self.group {
            key.push(eval(expr, &row, &env)?);
        }
        Ok(GroupKey(key))
    }

    /// Adds a row to the states.
    fn update(&self, states: &mut [State], row: &[Datum]) -> Result<(), SqlError> {
        let env = self.cx.env(&self.slots);
        let mut args = Vec::with_capacity(2);
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
                State::Plain(state) => {
                    self.ask(state.growth_bytes(&args))?;
                    state.update(&args)?;
                }
                State::Ordered(rows) => {
                    let keys = aggregate.order.iter();
                    let keys = keys.map(|(key, _, _)| eval(key, &row, &env));
                    let keys = keys.collect::<Result<Vec<_>, _>>()?;
                    self.ask(rows.growth_bytes())?;
                    rows.add(aggregate, keys, &args);
                }
            }
        }
        Ok(())
    }

    /// Asks for room for what a state is about to take.
    fn ask(&self, bytes: usize) -> Result<(), SqlError> {
        match bytes >= CHARGE_BYTES {
            true => self.charge.room(bytes),
            false => Ok(()),
        }
    }

    /// A group has left: its memory is given back, as far as it was charged (states that have
    /// become smaller were charged with what they held at most).
    fn give_back(&mut self, size: usize) {
        let size = size.min(self.charge.bytes as usize);
        self.charge.sub(size);
    }
}

impl Rows for AggregateRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if self.input.is_some() {
            self.groups = self.collect().await?;
        }
        let mut out = RowBatch::new(self.group.len() + self.aggregates.len());
        let mut bytes = 0;
        while (out.rows as usize) < BATCH_ROWS
            && bytes < BATCH_BYTES
            && let Some(mut first) = self.groups.0.first_entry()
        {
            let held = held_bytes(first.get());
            for (aggregate, state) in self.aggregates.iter().zip(first.get_mut()) {
                while let done = state.fold(aggregate, BATCH_ROWS)?
                    && done > 0
                {
                    self.cx.breathe(done).await;
                }
            }
            let (key, states) = first.remove_entry();
            let size = group_bytes::<State>(&key, self.aggregates.len()) + held;
            let mut row = key.0;
            for (aggregate, state) in self.aggregates.iter().zip(states) {
                row.push(match state {
                    State::Plain(state) => state.finish()?,
                    State::Ordered(rows) => rows.finish(aggregate)?,
                });
            }
            bytes += datums_heap_bytes(&row);
            out.push(row);
            self.give_back(size);
        }
        self.cx.breathe(out.rows as usize).await;
        Ok((out.rows > 0).then_some(out))
    }
}

/// What is known of an aggregate while its rows come.
enum State {
    Plain(AggState),
    /// The rows come in another order than it asks for.
    Ordered(OrderedRows),
}

impl State {
    /// Entries that are freed one by one.
    fn entries(&self) -> usize {
        match self {
            State::Plain(state) => state.seen_count(),
            State::Ordered(rows) => rows.len(),
        }
    }

    /// Takes at most `most` of the values that were kept into the result. Gives their number.
    fn fold(&mut self, aggregate: &Aggregate, most: usize) -> Result<usize, SqlError> {
        match self {
            State::Plain(state) => state.fold(most),
            State::Ordered(rows) => rows.fold(aggregate, most),
        }
    }

    /// Forgets a limited number of entries.
    fn shrink(&mut self, most: usize) {
        match self {
            State::Plain(state) => state.forget(most),
            State::Ordered(rows) => rows.forget(most),
        }
    }
}

/// The states of groups; one of them alone may hold millions of entries.
#[derive(Default)]
struct Groups(BTreeMap<GroupKey, Vec<State>>);

impl Shrink for Groups {
    fn entries(&self) -> usize {
        let large = |states: &Vec<State>| states.iter().map(State::entries).sum::<usize>();
        match self.0.len() {
            few @ 0..1_000 => few + self.0.values().map(large).sum::<usize>(),
            many => many,
        }
    }

    fn shrink(&mut self, most: usize) {
        let mut left = most;
        while left > 0
            && let Some(mut last) = self.0.last_entry()
        {
            for state in last.get_mut() {
                let some = state.entries().min(left);
                state.shrink(some);
                left -= some;
            }
            if left > 0 {
                last.remove();
                left -= 1;
            }
        }
    }
}

fn held_bytes(states: &[State]) -> usize {
    let held = states.iter().map(|state| match state {
        State::Plain(state) => state.held_bytes(),
        State::Ordered(rows) => rows.held_bytes(),
    });
    held.sum()
}

/// Units of work for a row that goes into one of the groups.
fn units(group: &[Expr], aggregates: &[Aggregate]) -> u32 {
    let own = aggregates.iter().flat_map(|aggregate| {
        let keys = aggregate.order.iter().map(|(key, _, _)| key);
        aggregate.args.iter().chain(&aggregate.filter).chain(keys)
    });
    list::units_of_row(group.iter().chain(own).map(list::nodes).sum())
}

/// Whether a batch of partial results takes much of a turn.
fn is_large(batch: &RowBatch) -> bool {
    batch.rows as usize >= BATCH_ROWS / 4 || datums_heap_bytes(&batch.datums) > LARGE_BYTES
}

/// Whether a state must keep the values that it has seen.
fn keeps_distinct(aggregate: &Aggregate) -> bool {
    aggregate.distinct && !aggregate.func.ignores_repetition()
}
