//! Aggregates over frames that move forward.
//!
//! | frame | how |
//! |---|---|
//! | starts with the partition | rows are taken in as they come |
//! | of counts, and sums of integers | rows are taken in where it ends and out where it starts |
//! | short, or the result has all values | all of its rows are taken in, for each row anew |
//! | long | a tree has the states of 16 rows, of 32, of 64, ...: some of them make up the frame |

use crate::call::WindowCall;
use crate::frame::{Exclusion, Frame, Stretches};
use crate::partition::{Host, PartitionRows, row, value};
use base::{Datum, Pieces, SqlError};
use core::ops::Range;
use expr::aggregate::{AggFunc, AggState};
use expr::eval_bool;
use expr::rows::{datums_heap_bytes, heap_bytes};

/// Rows of a frame that are taken in anew for each row.
const DIRECT_ROWS: usize = 64;
/// Rows of a leaf of a tree.
const LEAF_ROWS: usize = 16;
/// Rows after which other work may run.
const BREATH_ROWS: usize = 128;

/// The state of one aggregate over the frames of a partition.
pub(crate) struct Sliding {
    func: AggFunc,
    how: How,
    /// Of the rows `taken`.
    state: AggState,
    taken: Range<usize>,
    /// The frame of the row before and its value.
    last: Option<(Stretches, Datum)>,
    tree: Option<Tree>,
    /// Bytes that the state has held at most.
    charged: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Grows,
    TakesOut,
    Direct,
    Tree,
}

impl Sliding {
    pub(crate) fn new(func: AggFunc, frame: &Frame) -> Sliding {
        let whole = frame.exclusion == Exclusion::Nothing;
        let how = if frame.grows() {
            How::Grows
        } else if whole && func.takes_out() {
            How::TakesOut
        } else if func.keeps_values() {
            How::Direct
        } else {
            How::Tree
        };
        Sliding {
            func,
            how,
            state: AggState::new(func, false),
            taken: 0..0,
            last: None,
            tree: None,
            charged: 0,
        }
    }

    /// The value over a frame.
    pub(crate) async fn value<H: Host>(
        &mut self,
        host: &H,
        rows: &PartitionRows,
        call: &WindowCall,
        frame: Stretches,
    ) -> Result<Datum, SqlError> {
        if let Some((known, value)) = &self.last
            && *known == frame
        {
            return Ok(value.clone());
        }
        let value = match self.how {
            How::Grows | How::TakesOut => {
                self.slide(host, rows, call, frame[0].clone()).await?;
                self.state.clone().finish()?
            }
            How::Direct | How::Tree => self.made(host, rows, call, &frame).await?,
        };
        self.last = Some((frame, value.clone()));
        Ok(value)
    }

    /// Moves the state to the frame.
    async fn slide<H: Host>(
        &mut self,
        host: &H,
        rows: &PartitionRows,
        call: &WindowCall,
        frame: Range<usize>,
    ) -> Result<(), SqlError> {
        if frame.start >= self.taken.end || frame.end < self.taken.end {
            self.state = AggState::new(self.func, false);
            self.taken = frame.start..frame.start;
        }
        let mut args = Vec::new();
        let mut done = 0;
        for at in self.taken.start..frame.start {
            if taken_args(host, rows, call, at, &mut args)? {
                self.state.take_out(&args);
            }
            breathe(host, &mut done).await;
        }
        let from = self.taken.end.max(frame.start);
        take(
            host,
            rows,
            call,
            from..frame.end,
            &mut self.state,
            &mut self.charged,
        )
        .await?;
        self.taken = frame;
        Ok(())
    }

    /// The value of a frame whose rows are taken in anew.
    async fn made<H: Host>(
        &mut self,
        host: &H,
        rows: &PartitionRows,
        call: &WindowCall,
        frame: &Stretches,
    ) -> Result<Datum, SqlError> {
        let mut state = AggState::new(self.func, false);
        let count: usize = frame.iter().map(ExactSizeIterator::len).sum();
        let direct = self.how == How::Direct || count <= DIRECT_ROWS;
        if !direct && self.tree.is_none() {
            self.tree = Some(Tree::new(host, rows, call, self.func).await?);
        }
        for part in frame {
            match &self.tree {
                Some(tree) if !direct => {
                    let charged = &mut self.charged;
                    tree.add((host, rows, call), part, &mut state, charged)
                        .await?;
                }
                _ => {
                    let charged = &mut self.charged;
                    take(host, rows, call, part.clone(), &mut state, charged).await?;
                }
            }
        }
        state.finish()
    }
}

/// The arguments of a row; whether it is taken in.
fn taken_args<H: Host>(
    host: &H,
    rows: &PartitionRows,
    call: &WindowCall,
    at: usize,
    args: &mut Vec<Datum>,
) -> Result<bool, SqlError> {
    let row = row(rows, at);
    let env = host.env();
    if let Some(filter) = &call.filter
        && eval_bool(filter, &row, &env)? != Some(true)
    {
        return Ok(false);
    }
    args.clear();
    for arg in &call.args {
        args.push(value(arg, row, &env)?.into_owned());
    }
    Ok(true)
}

async fn breathe<H: Host>(host: &H, done: &mut usize) {
    *done += 1;
    if *done >= BREATH_ROWS {
        host.breathe(core::mem::take(done)).await;
    }
}

/// Takes rows into a state.
async fn take<H: Host>(
    host: &H,
    rows: &PartitionRows,
    call: &WindowCall,
    part: Range<usize>,
    state: &mut AggState,
    charged: &mut usize,
) -> Result<(), SqlError> {
    let mut args = Vec::new();
    let mut done = 0;
    for at in part {
        if taken_args(host, rows, call, at, &mut args)? {
            let wanted = state.held_bytes() + state.growth_bytes(&args);
            if wanted > *charged {
                host.charge(wanted - *charged)?;
                *charged = wanted;
            }
            state.update(&args)?;
        }
        breathe(host, &mut done).await;
    }
    host.breathe(done).await;
    Ok(())
}

/// Partial results of stretches of rows. Those of level 0 are of [`LEAF_ROWS`] rows, those of
/// each further level of two of the level below.
struct Tree {
    levels: Vec<Pieces<Box<[Datum]>>>,
}

impl Tree {
    async fn new<H: Host>(
        host: &H,
        rows: &PartitionRows,
        call: &WindowCall,
        func: AggFunc,
    ) -> Result<Tree, SqlError> {
        let mut leaves = Pieces::new();
        let (mut from, mut charged) = (0, 0);
        while from < rows.len() {
            let to = (from + LEAF_ROWS).min(rows.len());
            let mut state = AggState::new(func, false);
            take(host, rows, call, from..to, &mut state, &mut charged).await?;
            push(host, &mut leaves, state)?;
            from = to;
        }
        let mut levels = vec![leaves];
        while let Some(below) = levels.last()
            && below.len() > 1
        {
            let mut above = Pieces::new();
            for at in (0..below.len()).step_by(2) {
                let mut state = AggState::new(func, false);
                for child in [below.get(at), below.get(at + 1)].into_iter().flatten() {
                    state.merge(child)?;
                }
                push(host, &mut above, state)?;
                host.breathe(2).await;
            }
            levels.push(above);
        }
        Ok(Tree { levels })
    }

    /// Takes a stretch of rows into a state.
    async fn add<H: Host>(
        &self,
        (host, rows, call): (&H, &PartitionRows, &WindowCall),
        part: &Range<usize>,
        state: &mut AggState,
        charged: &mut usize,
    ) -> Result<(), SqlError> {
        let (first, last) = (part.start.div_ceil(LEAF_ROWS), part.end / LEAF_ROWS);
        if first >= last {
            return take(host, rows, call, part.clone(), state, charged).await;
        }
        let head = part.start..first * LEAF_ROWS;
        take(host, rows, call, head, state, charged).await?;
        let nodes = nodes(first, last);
        host.breathe(nodes.len()).await;
        for (level, at) in nodes {
            let node = self.levels[level].get(at);
            state.merge(node.expect("a stretch ends with the partition"))?;
        }
        let tail = last * LEAF_ROWS..part.end;
        take(host, rows, call, tail, state, charged).await
    }
}

fn push<H: Host>(
    host: &H,
    level: &mut Pieces<Box<[Datum]>>,
    state: AggState,
) -> Result<(), SqlError> {
    let before = level.capacity_bytes();
    let node: Box<[Datum]> = state.partial()?.into();
    let own = heap_bytes(size_of_val::<[Datum]>(&node)) + datums_heap_bytes(&node);
    level.push(node);
    host.charge(own + level.capacity_bytes() - before)
}

/// The nodes of a tree, as level and place, that make up the leaves from `first` to before `last`,
/// in the order of their rows.
pub(crate) fn nodes(first: usize, last: usize) -> Vec<(usize, usize)> {
    let (mut from, mut to, mut level) = (first, last, 0);
    let (mut nodes, mut behind) = (Vec::new(), Vec::new());
    while from < to {
        if from % 2 == 1 {
            nodes.push((level, from));
            from += 1;
        }
        if to % 2 == 1 {
            to -= 1;
            behind.push((level, to));
        }
        from /= 2;
        to /= 2;
        level += 1;
    }
    nodes.extend(behind.into_iter().rev());
    nodes
}
