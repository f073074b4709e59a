//! Grouping and aggregates, of rows or of the partial states that shards send.

use super::long::{Long, Shrink};
use super::ordered::{OrderedRows, own_orders};
use super::source::{Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use bind::rel::Aggregate;
use expr::aggregate::AggState;
use expr::hashed::{Groups, KeyTable};
use expr::rows::datums_heap_bytes;
use expr::{Expr, eval, eval_bool, list};
use plan::step::{Step, StepOp};
use txn::OpError;

/// Bytes that states gather before they are charged.
const CHARGE_BYTES: usize = 16 << 10;
/// A batch with larger values is large.
const LARGE_BYTES: usize = 64 << 10;
/// Groups that are given in the order of their keys; more are given as they have come.
const IN_ORDER_MAX: usize = 1_000;

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
    groups: Long<'a, OwnGroups>,
    /// The order in which few groups are given.
    order: Vec<u32>,
    /// Groups that have been given.
    given: usize,
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
        let groups = Groups::new(group.iter().map(Expr::ty), aggregates.len());
        AggregateRows {
            cx,
            input: Some(open(cx, input, slots)),
            group,
            aggregates,
            merge: *merge,
            always,
            units: if *merge { 1 } else { units(group, aggregates) },
            slots: slots.clone(),
            groups: Long::new(cx.port, OwnGroups(groups)),
            order: Vec::new(),
            given: 0,
            charge: Charge::new(cx.port),
        }
    }

    /// The group of a key; a new one is charged.
    fn enter(&mut self, key: &mut Vec<Datum>) -> Result<usize, SqlError> {
        let (aggregates, merge) = (self.aggregates, self.merge);
        let (number, grown) = self.groups.0.enter(key, || states(aggregates, merge));
        if grown > 0 {
            self.charge.add(grown)?;
        }
        Ok(number)
    }

    async fn collect(&mut self) -> Result<(), OpError> {
        let mut input = self.input.take().expect("collected once");
        let (mut key, mut args) = (Vec::new(), Vec::new());
        let mut gathered = 0usize;
        while let Some(batch) = input.next().await? {
            // Making a large answer was enough for a turn.
            if self.merge && is_large(&batch) {
                self.cx.breathe(BATCH_ROWS).await;
            }
            let mut done = 0;
            for row in batch.iter() {
                self.key(row, &mut key)?;
                let number = self.enter(&mut key)?;
                let before = held_bytes(self.groups.0.states(number));
                if self.merge {
                    self.merge_row(number, row, &mut done).await?;
                } else {
                    self.update(number, row, &mut args)?;
                }
                // A shorter value may have taken the place of a longer one.
                let held = held_bytes(self.groups.0.states(number));
                gathered += held.saturating_sub(before);
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
        if self.group.is_empty() && self.groups.0.is_empty() {
            self.enter(&mut Vec::new())?;
        }
        for key in self.always {
            self.enter(&mut key.clone())?;
        }
        Ok(())
    }

    /// Adds the partial results of a shard's group. Values that count once are added in turns.
    async fn merge_row(
        &mut self,
        number: usize,
        row: &[Datum],
        done: &mut usize,
    ) -> Result<(), OpError> {
        let mut at = self.group.len();
        for (place, aggregate) in self.aggregates.iter().enumerate() {
            let width = aggregate.func.partial_width(keeps_distinct(aggregate));
            let partial = &row[at..at + width];
            at += width;
            let State::Plain(state) = &mut self.groups.0.states(number)[place] else {
                unreachable!("shards send no parts of ordered aggregates")
            };
            let growth = state.growth_bytes(partial) + datums_heap_bytes(partial);
            ask(&self.charge, growth)?;
            if !state.is_distinct() {
                state.merge(partial)?;
                continue;
            }
            for part in partial[0].as_array().unwrap_or_default() {
                let State::Plain(state) = &mut self.groups.0.states(number)[place] else {
                    unreachable!("just seen")
                };
                *done += state.merge_part(part)?;
                if *done >= BATCH_ROWS {
                    self.cx.breathe(core::mem::take(done)).await;
                }
            }
        }
        Ok(())
    }

    /// The key of a row.
    fn key(&self, row: &[Datum], key: &mut Vec<Datum>) -> Result<(), SqlError> {
        key.clear();
        if self.merge {
            key.extend_from_slice(&row[..self.group.len()]);
            return Ok(());
        }
        let env = self.cx.env(&self.slots);
        for expr in self.group {
            key.push(eval(expr, &row, &env)?);
        }
        Ok(())
    }

    /// Adds a row to the states of a group.
    fn update(
        &mut self,
        number: usize,
        row: &[Datum],
        args: &mut Vec<Datum>,
    ) -> Result<(), SqlError> {
        let env = self.cx.env(&self.slots);
        let states = self.groups.0.states(number);
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
                    ask(&self.charge, state.growth_bytes(args))?;
                    state.update(args)?;
                }
                State::Ordered(rows) => {
                    let keys = aggregate.order.iter();
                    let keys = keys.map(|(key, _, _)| eval(key, &row, &env));
                    let keys = keys.collect::<Result<Vec<_>, _>>()?;
                    ask(&self.charge, rows.growth_bytes())?;
                    rows.add(aggregate, keys, args);
                }
            }
        }
        Ok(())
    }

    /// All groups are there and will be given.
    fn close(&mut self) {
        let groups = &mut self.groups.0;
        if groups.len() <= IN_ORDER_MAX {
            self.order = groups.in_order();
        }
        let table = groups.take_table();
        let bytes = table.bytes();
        drop(Long::<KeyTable>::new(self.cx.port, table));
        self.give_back(bytes);
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
            self.collect().await?;
            self.close();
        }
        let mut out = RowBatch::new(self.group.len() + self.aggregates.len());
        let mut bytes = 0;
        while (out.rows as usize) < BATCH_ROWS
            && bytes < BATCH_BYTES
            && self.given < self.groups.0.len()
        {
            let number = match self.order.get(self.given) {
                Some(number) => *number as usize,
                None => self.given,
            };
            let mut size = held_bytes(self.groups.0.states(number));
            for (place, aggregate) in self.aggregates.iter().enumerate() {
                loop {
                    let state = &mut self.groups.0.states(number)[place];
                    match state.fold(aggregate, BATCH_ROWS)? {
                        0 => break,
                        done => self.cx.breathe(done).await,
                    }
                }
            }
            let start = out.datums.len();
            let (key, states) = self.groups.0.parts(number);
            size += datums_heap_bytes(key);
            out.datums.extend(key.iter_mut().map(core::mem::take));
            for (aggregate, state) in self.aggregates.iter().zip(states) {
                out.datums.push(match core::mem::take(state) {
                    State::Plain(state) => state.finish()?,
                    State::Ordered(rows) => rows.finish(aggregate)?,
                });
            }
            out.rows += 1;
            bytes += datums_heap_bytes(&out.datums[start..]);
            self.given += 1;
            size += self.groups.0.free_before(self.given);
            self.give_back(size);
        }
        self.cx.breathe(out.rows as usize).await;
        Ok((out.rows > 0).then_some(out))
    }
}

/// Asks for room for what a state is about to take.
fn ask(charge: &Charge<'_>, bytes: usize) -> Result<(), SqlError> {
    match bytes >= CHARGE_BYTES {
        true => charge.room(bytes),
        false => Ok(()),
    }
}

/// The states of a new group.
fn states(aggregates: &[Aggregate], merge: bool) -> Vec<State> {
    let own = own_orders(aggregates);
    let states = aggregates.iter().zip(own).map(|(aggregate, own)| {
        if own && !merge {
            State::Ordered(OrderedRows::default())
        } else {
            State::Plain(AggState::new(aggregate.func, keeps_distinct(aggregate)))
        }
    });
    states.collect()
}

/// What is known of an aggregate while its rows come.
enum State {
    Plain(AggState),
    /// The rows come in another order than it asks for.
    Ordered(OrderedRows),
}

impl Default for State {
    /// What stands for a state that was taken away.
    fn default() -> State {
        State::Plain(AggState::default())
    }
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

/// The groups; the states of one alone may hold millions of entries.
#[derive(Default)]
struct OwnGroups(Groups<State>);

impl Shrink for OwnGroups {
    fn entries(&self) -> usize {
        let groups = &self.0;
        let large = |group: usize| {
            groups
                .states_of(group)
                .iter()
                .map(State::entries)
                .sum::<usize>()
        };
        match groups.len() {
            few @ 0..1_000 => few + (0..few).map(large).sum::<usize>(),
            many => many,
        }
    }

    fn shrink(&mut self, most: usize) {
        let mut left = most;
        while left > 0
            && let Some(last) = self.0.len().checked_sub(1)
        {
            for state in self.0.states(last) {
                let some = state.entries().min(left);
                state.shrink(some);
                left -= some;
            }
            if left > 0 {
                self.0.pop();
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
