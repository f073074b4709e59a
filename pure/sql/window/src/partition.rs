//! The values of window functions over one partition, row by row.

use crate::call::{WindowCall, WindowFunc};
use crate::frame::{Edge, Frame, Key, Stretches, Units, stretches};
use crate::reach;
use crate::sliding::Sliding;
use base::{Datum, Pieces, SqlError, SqlState};
use core::cmp::Ordering;
use core::future::Future;
use core::ops::Range;
use expr::rows::compare_rows;
use expr::{Env, Expr, eval};
use std::borrow::Cow;

/// The rows of a partition, in the order of its window.
pub type PartitionRows = Pieces<Vec<Datum>>;

/// What the executor lends.
pub trait Host {
    /// Takes memory from the statement's budget. It is given back with the partition.
    ///
    /// # Errors
    /// 53200, 54000 if there is not enough.
    fn charge(&self, bytes: usize) -> Result<(), SqlError>;
    /// What expressions over one row see.
    fn env(&self) -> Env<'_>;
    /// Counts work, and lets other work of the shard run when there was much.
    fn breathe(&self, units: usize) -> impl Future<Output = ()>;
}

/// A partition on its way from the first row to the last.
pub struct Partition<'c> {
    calls: &'c [WindowCall],
    len: usize,
    /// First rows of the groups of equal rows, and the end of the last one.
    groups: Pieces<u32>,
    /// The current row and its group.
    at: usize,
    group: usize,
    states: Vec<State>,
}

/// What is known of one call.
struct State {
    /// Offsets of the frame.
    offsets: [Option<Datum>; 2],
    /// The frame of the row before, for RANGE with an offset.
    reached: Range<usize>,
    own: Own,
}

enum Own {
    Nothing,
    Ntile(Option<Buckets>),
    Aggregate(Box<Sliding>),
}

/// How rows are dealt out by `ntile`.
struct Buckets {
    number: i32,
    /// Rows of the current one so far, and at most.
    rows: i64,
    most: i64,
    /// Buckets that have one row more.
    larger: i64,
}

/// The value of an expression over a row.
pub(crate) fn value<'r>(
    expr: &Expr,
    row: &'r [Datum],
    env: &Env<'_>,
) -> Result<Cow<'r, Datum>, SqlError> {
    match expr {
        Expr::Column(column, _) => Ok(Cow::Borrowed(&row[*column as usize])),
        other => eval(other, &row, env).map(Cow::Owned),
    }
}

/// A row that is there.
pub(crate) fn row(rows: &PartitionRows, at: usize) -> &[Datum] {
    rows.get(at).expect("frames end with the partition")
}

impl<'c> Partition<'c> {
    /// Looks at all rows for those that are equal in the order of the window: columns with
    /// whether they descend and NULLs come first.
    ///
    /// # Errors
    /// 22004, 22013 for offsets of frames; those of memory.
    pub async fn new<H: Host>(
        calls: &'c [WindowCall],
        rows: &PartitionRows,
        order: &[(u32, bool, bool)],
        host: &H,
    ) -> Result<Partition<'c>, SqlError> {
        let len = rows.len();
        let mut groups = Pieces::new();
        let mut before: Option<&Vec<Datum>> = None;
        let mut charged = 0;
        for (at, row) in rows.iter().enumerate() {
            let equal = before
                .is_some_and(|before| compare_rows(before, row, order.iter().copied()).is_eq());
            if !equal {
                groups.push(at as u32);
            }
            before = Some(row);
            if at % CHARGED_ROWS == CHARGED_ROWS - 1 {
                let bytes = groups.capacity_bytes();
                host.charge(bytes - charged)?;
                charged = bytes;
                host.breathe(CHARGED_ROWS).await;
            }
        }
        groups.push(len as u32);
        host.charge(groups.capacity_bytes() - charged)?;
        host.breathe(len % CHARGED_ROWS).await;
        let first = rows.get(0).map_or(&[][..], Vec::as_slice);
        let states = calls.iter().map(|call| State::new(call, first, host));
        Ok(Partition {
            states: states.collect::<Result<_, _>>()?,
            calls,
            len,
            groups,
            at: 0,
            group: 0,
        })
    }

    /// The current row, if there is one.
    pub fn current(&self) -> Option<usize> {
        (self.at < self.len).then_some(self.at)
    }

    fn group_rows(&self, group: usize) -> Range<usize> {
        let edge = |group: usize| *self.groups.get(group).expect("a group or the end") as usize;
        edge(group)..edge(group + 1)
    }

    /// Adds the values of all calls for the current row, and goes on to the next row.
    ///
    /// # Errors
    /// Those of the functions.
    pub async fn next<H: Host>(
        &mut self,
        rows: &PartitionRows,
        host: &H,
        out: &mut Vec<Datum>,
    ) -> Result<(), SqlError> {
        while self.group_rows(self.group).end <= self.at {
            self.group += 1;
        }
        for number in 0..self.calls.len() {
            let value = self.value(number, rows, host).await?;
            out.push(value);
        }
        self.at += 1;
        Ok(())
    }

    async fn value<H: Host>(
        &mut self,
        number: usize,
        rows: &PartitionRows,
        host: &H,
    ) -> Result<Datum, SqlError> {
        let calls = self.calls;
        let call = &calls[number];
        let peers = self.group_rows(self.group);
        let count = self.len;
        Ok(match call.func {
            WindowFunc::RowNumber => Datum::Int(self.at as i64 + 1),
            WindowFunc::Rank => Datum::Int(peers.start as i64 + 1),
            WindowFunc::DenseRank => Datum::Int(self.group as i64 + 1),
            WindowFunc::PercentRank if count <= 1 => Datum::Float(0.0),
            WindowFunc::PercentRank => Datum::Float(peers.start as f64 / (count - 1) as f64),
            WindowFunc::CumeDist => Datum::Float(peers.end as f64 / count as f64),
            WindowFunc::Ntile => self.ntile(number, rows, host)?,
            WindowFunc::Lag => self.shifted(call, rows, host, true)?,
            WindowFunc::Lead => self.shifted(call, rows, host, false)?,
            WindowFunc::FirstValue | WindowFunc::LastValue | WindowFunc::NthValue => {
                let frame = self.frame(number, rows, host).await?;
                self.picked(call, rows, host, frame)?
            }
            WindowFunc::Aggregate(_) => {
                let frame = self.frame(number, rows, host).await?;
                let Own::Aggregate(sliding) = &mut self.states[number].own else {
                    unreachable!("made for an aggregate");
                };
                sliding.value(host, rows, call, frame).await?
            }
        })
    }

    fn arg<H: Host>(
        &self,
        call: &WindowCall,
        number: usize,
        rows: &PartitionRows,
        at: usize,
        host: &H,
    ) -> Result<Datum, SqlError> {
        value(&call.args[number], row(rows, at), &host.env()).map(Cow::into_owned)
    }

    fn ntile<H: Host>(
        &mut self,
        number: usize,
        rows: &PartitionRows,
        host: &H,
    ) -> Result<Datum, SqlError> {
        let calls = self.calls;
        let call = &calls[number];
        let count = self.len as i64;
        if let Own::Ntile(None) = self.states[number].own {
            let wanted = match self.arg(call, 0, rows, self.at, host)?.as_int() {
                None => return Ok(Datum::Null),
                Some(wanted) if wanted > 0 => wanted,
                Some(_) => {
                    let message = "argument of ntile must be greater than zero";
                    return Err(SqlError::new(SqlState::INVALID_NTILE, message));
                }
            };
            let most = count / wanted;
            let larger = if most == 0 { 0 } else { count % wanted };
            self.states[number].own = Own::Ntile(Some(Buckets {
                number: 1,
                rows: 0,
                most: most.max(1) + i64::from(larger > 0),
                larger,
            }));
        }
        let Own::Ntile(Some(buckets)) = &mut self.states[number].own else {
            unreachable!("made for ntile");
        };
        buckets.rows += 1;
        if buckets.rows > buckets.most {
            if buckets.larger > 0 && i64::from(buckets.number) == buckets.larger {
                buckets.larger = 0;
                buckets.most -= 1;
            }
            buckets.number += 1;
            buckets.rows = 1;
        }
        Ok(Datum::Int(buckets.number.into()))
    }

    /// `lag` and `lead`.
    fn shifted<H: Host>(
        &self,
        call: &WindowCall,
        rows: &PartitionRows,
        host: &H,
        back: bool,
    ) -> Result<Datum, SqlError> {
        let by = match call.args.len() {
            1 => 1,
            _ => match self.arg(call, 1, rows, self.at, host)?.as_int() {
                None => return Ok(Datum::Null),
                Some(by) => by,
            },
        };
        let by = if back { -by } else { by };
        let place = usize::try_from(self.at as i64 + by).ok();
        match place.filter(|place| *place < self.len) {
            Some(place) => self.arg(call, 0, rows, place, host),
            None if call.args.len() > 2 => self.arg(call, 2, rows, self.at, host),
            None => Ok(Datum::Null),
        }
    }

    /// The value of one row of the frame.
    fn picked<H: Host>(
        &self,
        call: &WindowCall,
        rows: &PartitionRows,
        host: &H,
        frame: Stretches,
    ) -> Result<Datum, SqlError> {
        let mut parts = frame.into_iter().filter(|part| !part.is_empty());
        let place = match call.func {
            WindowFunc::FirstValue => parts.next().map(|part| part.start),
            WindowFunc::LastValue => parts.next_back().map(|part| part.end - 1),
            _ => {
                let nth = match self.arg(call, 1, rows, self.at, host)?.as_int() {
                    None => return Ok(Datum::Null),
                    Some(nth) if nth > 0 => nth as usize - 1,
                    Some(_) => {
                        let message = "argument of nth_value must be greater than zero";
                        return Err(SqlError::new(SqlState::INVALID_NTH_VALUE, message));
                    }
                };
                let mut left = nth;
                parts.find_map(|part| match part.len() > left {
                    true => Some(part.start + left),
                    false => {
                        left -= part.len();
                        None
                    }
                })
            }
        };
        place.map_or(Ok(Datum::Null), |at| self.arg(call, 0, rows, at, host))
    }

    /// The rows of the frame of a call for the current row.
    async fn frame<H: Host>(
        &mut self,
        number: usize,
        rows: &PartitionRows,
        host: &H,
    ) -> Result<Stretches, SqlError> {
        let calls = self.calls;
        let frame = &calls[number].frame;
        let start = self.edge(number, frame, true, rows, host).await?;
        let end = self.edge(number, frame, false, rows, host).await?;
        let peers = self.group_rows(self.group);
        Ok(stretches(start..end, self.at, peers, frame.exclusion))
    }

    /// The first row of a frame, or the end behind its last row.
    async fn edge<H: Host>(
        &mut self,
        number: usize,
        frame: &Frame,
        starts: bool,
        rows: &PartitionRows,
        host: &H,
    ) -> Result<usize, SqlError> {
        let edge = if starts { &frame.start } else { &frame.end };
        let back = match edge {
            Edge::First => return Ok(0),
            Edge::Last => return Ok(self.len),
            Edge::Current => {
                let peers = self.group_rows(self.group);
                return Ok(match (frame.units, starts) {
                    (Units::Rows, true) => self.at,
                    (Units::Rows, false) => self.at + 1,
                    (_, true) => peers.start,
                    (_, false) => peers.end,
                });
            }
            Edge::Preceding(_) => true,
            Edge::Following(_) => false,
        };
        if frame.units == Units::Range {
            return self
                .reached(number, frame, (starts, back), rows, host)
                .await;
        }
        let offset = self.states[number].offsets[usize::from(!starts)].as_ref();
        let offset = offset.and_then(Datum::as_int).unwrap_or_default();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let last_group = self.groups.len() - 1;
        Ok(match (frame.units, back) {
            (Units::Rows, true) if starts => self.at.saturating_sub(offset),
            (Units::Rows, true) => (self.at + 1).saturating_sub(offset),
            (Units::Rows, false) => {
                let at = if starts { self.at } else { self.at + 1 };
                at.saturating_add(offset).min(self.len)
            }
            (_, true) => match self.group.checked_sub(offset) {
                Some(group) if starts => self.group_rows(group).start,
                Some(group) => self.group_rows(group).end,
                None => 0,
            },
            (_, false) => match self.group.saturating_add(offset) {
                beyond if beyond >= last_group => self.len,
                group if starts => self.group_rows(group).start,
                group => self.group_rows(group).end,
            },
        })
    }

    /// The edge of a RANGE with an offset: it moves forward from where it was for the row before.
    async fn reached<H: Host>(
        &mut self,
        number: usize,
        frame: &Frame,
        (starts, back): (bool, bool),
        rows: &PartitionRows,
        host: &H,
    ) -> Result<usize, SqlError> {
        let side = usize::from(!starts);
        let key = frame.key.as_ref().expect("bound for one order column");
        let state = &self.states[number];
        let offset = state.offsets[side].as_ref().expect("bound with an offset");
        let mut edge = if starts {
            state.reached.start
        } else {
            state.reached.end
        };
        let current = row(rows, self.at);
        let base = value(&key.value, current, &host.env())?;
        let sum = match &frame.sums[side] {
            Some(sum) if !base.is_null() => Some(eval(sum, &current, &host.env())?),
            _ => None,
        };
        let mut looked = 0;
        while edge < self.len {
            let other = value(&key.value, row(rows, edge), &host.env())?;
            let order = match &sum {
                Some(sum) => other.compare(sum),
                // Backwards in an order that descends is up.
                None => reach::compare(&other, &base, offset, back != key.descending),
            };
            if !is_before(starts, key, (&other, &base), order) {
                break;
            }
            edge += 1;
            looked += 1;
            if looked == CHARGED_ROWS {
                host.breathe(core::mem::take(&mut looked)).await;
            }
        }
        let reached = &mut self.states[number].reached;
        match starts {
            true => reached.start = edge,
            false => reached.end = edge,
        }
        Ok(edge)
    }
}

/// Whether a frame starts (or ends) behind a row with the value `other`, which is in `order` to
/// the farthest value that it has.
fn is_before(starts: bool, key: &Key, (other, base): (&Datum, &Datum), order: Ordering) -> bool {
    match (other.is_null(), base.is_null()) {
        (false, false) => match (starts, key.descending) {
            (true, false) => order.is_lt(),
            (true, true) => order.is_gt(),
            (false, false) => order.is_le(),
            (false, true) => order.is_ge(),
        },
        (other, base) => match (starts, key.nulls_first) {
            (true, true) => other && !base,
            (true, false) => !other && base,
            (false, true) => other || !base,
            (false, false) => !other || base,
        },
    }
}

/// Rows after which memory is charged and other work may run.
const CHARGED_ROWS: usize = 256;

impl State {
    fn new<H: Host>(call: &WindowCall, first: &[Datum], host: &H) -> Result<State, SqlError> {
        let mut offsets = [None, None];
        for (side, offset) in call.frame.offsets().into_iter().enumerate() {
            if let Some(offset) = offset {
                let name = if side == 0 { "starting" } else { "ending" };
                let offset = value(offset, first, &host.env())?.into_owned();
                check_offset(call.frame.units, &offset, name)?;
                offsets[side] = Some(offset);
            }
        }
        Ok(State {
            offsets,
            reached: 0..0,
            own: match call.func {
                WindowFunc::Ntile => Own::Ntile(None),
                WindowFunc::Aggregate(func) => {
                    Own::Aggregate(Box::new(Sliding::new(func, &call.frame)))
                }
                _ => Own::Nothing,
            },
        })
    }
}

fn check_offset(units: Units, offset: &Datum, name: &str) -> Result<(), SqlError> {
    if offset.is_null() {
        let message = format!("frame {name} offset must not be null");
        return Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, message));
    }
    if units == Units::Range {
        return reach::check(offset);
    }
    match offset.as_int() {
        Some(count) if count < 0 => {
            let message = format!("frame {name} offset must not be negative");
            Err(SqlError::new(SqlState::INVALID_FRAME_OFFSET, message))
        }
        _ => Ok(()),
    }
}
