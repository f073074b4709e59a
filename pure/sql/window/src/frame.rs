//! Frames: which rows of the partition an aggregate or `first_value` of a row is over.

use base::{SqlError, SqlState};
use core::ops::Range;
use expr::Expr;

/// What the edges of a frame count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Units {
    /// Rows.
    Rows,
    /// The values by which rows are ordered.
    Range,
    /// Groups of rows that are equal in the order of the window.
    Groups,
}

/// Where a frame starts or ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Edge {
    /// The first row of the partition.
    First,
    /// This much before the current row.
    Preceding(Expr),
    /// The current row, or its group.
    Current,
    /// This much behind the current row.
    Following(Expr),
    /// The last row of the partition.
    Last,
}

/// Rows that are taken out of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exclusion {
    /// None.
    Nothing,
    /// The current row.
    Current,
    /// The current row and those that are equal in the order of the window.
    Group,
    /// Those that are equal to the current row, without it.
    Ties,
}

/// A frame.
#[derive(Clone, PartialEq, Debug)]
pub struct Frame {
    /// What is counted.
    pub units: Units,
    /// Where it starts.
    pub start: Edge,
    /// Where it ends.
    pub end: Edge,
    /// What is taken out of it.
    pub exclusion: Exclusion,
    /// For RANGE with an offset: the value by which rows are ordered, with the offset subtracted
    /// or added, at the start and at the end. `None`: numbers, which [`crate::reach`] adds.
    pub sums: [Option<Expr>; 2],
    /// For RANGE with an offset: what rows are ordered by.
    pub key: Option<Key>,
}

/// What the rows of a partition are ordered by.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The value.
    pub value: Expr,
    /// Larger ones come first.
    pub descending: bool,
    /// NULLs come first.
    pub nulls_first: bool,
}

/// An error of a window.
pub fn windowing(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::WINDOWING, message)
}

impl Frame {
    /// The frame of a window without a frame clause.
    pub fn usual() -> Frame {
        Frame::new(Units::Range, Edge::First, Edge::Current)
    }

    /// A frame that nothing is taken out of.
    pub fn new(units: Units, start: Edge, end: Edge) -> Frame {
        Frame {
            units,
            start,
            end,
            exclusion: Exclusion::Nothing,
            sums: [None, None],
            key: None,
        }
    }

    /// The offset of the start and that of the end.
    pub fn offsets(&self) -> [Option<&Expr>; 2] {
        [&self.start, &self.end].map(|edge| match edge {
            Edge::Preceding(offset) | Edge::Following(offset) => Some(offset),
            Edge::First | Edge::Current | Edge::Last => None,
        })
    }

    /// Its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let sums = self.sums.iter().flatten();
        let key = self.key.iter().map(|key| &key.value);
        self.offsets().into_iter().flatten().chain(sums).chain(key)
    }

    /// As [`Frame::exprs`], to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let edges = [&mut self.start, &mut self.end].map(|edge| match edge {
            Edge::Preceding(offset) | Edge::Following(offset) => Some(offset),
            Edge::First | Edge::Current | Edge::Last => None,
        });
        let key = self.key.iter_mut().map(|key| &mut key.value);
        let sums = self.sums.iter_mut().flatten();
        edges.into_iter().flatten().chain(sums).chain(key)
    }

    /// Refuses edges that cannot stand together.
    ///
    /// # Errors
    /// 42P20.
    pub fn check_edges(start: &Edge, end: Option<&Edge>) -> Result<(), SqlError> {
        let message = match (start, end) {
            (Edge::Last, _) => "frame start cannot be UNBOUNDED FOLLOWING",
            (_, Some(Edge::First)) => "frame end cannot be UNBOUNDED PRECEDING",
            (Edge::Following(_), None) => {
                "frame starting from following row cannot end with current row"
            }
            (Edge::Current, Some(Edge::Preceding(_))) => {
                "frame starting from current row cannot have preceding rows"
            }
            (Edge::Following(_), Some(Edge::Preceding(_) | Edge::Current)) => {
                "frame starting from following row cannot have preceding rows"
            }
            _ => return Ok(()),
        };
        Err(windowing(message))
    }

    /// Whether the rows of the frame of a row are those of the row before it and perhaps more.
    pub fn grows(&self) -> bool {
        self.start == Edge::First && self.exclusion == Exclusion::Nothing
    }
}

/// Rows of a frame: up to three stretches, from the first to the last.
pub type Stretches = [Range<usize>; 3];

/// A frame from row `frame.start` to before `frame.end`, without what is excluded around the
/// current row `at`, whose group is `peers`.
pub fn stretches(
    frame: Range<usize>,
    at: usize,
    peers: Range<usize>,
    exclusion: Exclusion,
) -> Stretches {
    let end = frame.end.max(frame.start);
    let within = |from: usize, to: usize| {
        let (from, to) = (from.clamp(frame.start, end), to.clamp(frame.start, end));
        from..to.max(from)
    };
    let none = || end..end;
    match exclusion {
        Exclusion::Nothing => [frame.start..end, none(), none()],
        Exclusion::Current => [within(0, at), within(at + 1, end), none()],
        Exclusion::Group => [within(0, peers.start), within(peers.end, end), none()],
        Exclusion::Ties => [
            within(0, peers.start),
            within(at, at + 1),
            within(peers.end, end),
        ],
    }
}
