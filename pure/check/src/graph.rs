//! The graph of dependencies between transactions, compact enough for millions of edges.
//!
//! Nodes below `txn_count` are transactions, by their index in the history. The others are
//! *joints*: they stand for "all that come after this point", so that n transactions before and m
//! after a point need n + m edges and not n * m. Edges out of a joint are mostly glue, which means
//! nothing by itself: what a path through a joint means is said by the edge that led into it.

use crate::level::Basis;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// What an edge means: its target comes after its source, because it...
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Dependency {
    /// overwrote what the source wrote.
    Ww,
    /// read what the source wrote.
    Wr,
    /// overwrote what the source read.
    Rw,
    /// overwrote what the source read in a range.
    RwRange,
    /// is a later transaction of the same process.
    Session,
    /// began after the source had ended.
    RealTime,
    /// is behind the same joint.
    Glue,
}

impl Dependency {
    const ALL: [Dependency; 7] = [
        Dependency::Ww,
        Dependency::Wr,
        Dependency::Rw,
        Dependency::RwRange,
        Dependency::Session,
        Dependency::RealTime,
        Dependency::Glue,
    ];

    pub(crate) const fn bit(self) -> Mask {
        1 << self as u8
    }

    /// Whether it is an anti-dependency.
    pub(crate) fn is_rw(self) -> bool {
        matches!(self, Dependency::Rw | Dependency::RwRange)
    }
}

/// A set of dependencies.
pub(crate) type Mask = u8;

/// Writes only; glue and order belong to every set.
pub(crate) const WRITES: Mask = Dependency::Ww.bit()
    | Dependency::Session.bit()
    | Dependency::RealTime.bit()
    | Dependency::Glue.bit();
/// All but anti-dependencies.
pub(crate) const FORWARD: Mask = WRITES | Dependency::Wr.bit();
/// All but anti-dependencies on ranges.
pub(crate) const ITEMS: Mask = FORWARD | Dependency::Rw.bit();
pub(crate) const EVERYTHING: Mask = ITEMS | Dependency::RwRange.bit();

/// Kind, basis and key of an edge in one word: 3, 2 and 27 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(u32);

/// The key of an edge that has none.
pub(crate) const NO_KEY: u32 = (1 << 27) - 1;

impl Label {
    pub(crate) fn new(dependency: Dependency, basis: Basis, key: u32) -> Label {
        assert!(key <= NO_KEY, "fewer than 134 million keys");
        Label(key << 5 | (basis as u32) << 3 | dependency as u32)
    }

    pub(crate) fn dependency(self) -> Dependency {
        Dependency::ALL[(self.0 & 7) as usize]
    }

    pub(crate) fn basis(self) -> Basis {
        match self.0 >> 3 & 3 {
            0 => Basis::Values,
            1 => Basis::Session,
            _ => Basis::RealTime,
        }
    }

    pub(crate) fn key(self) -> u32 {
        self.0 >> 5
    }
}

/// Collects edges.
#[derive(Debug)]
pub(crate) struct GraphBuilder {
    nodes: u32,
    edges: Vec<(u32, u32, Label)>,
}

/// Edges by source.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Where the edges of each node begin, and one more.
    starts: Vec<u32>,
    targets: Vec<u32>,
    labels: Vec<Label>,
}

impl GraphBuilder {
    pub(crate) fn new(txn_count: usize) -> GraphBuilder {
        let nodes = u32::try_from(txn_count).expect("fewer than 4 billion transactions");
        GraphBuilder {
            nodes,
            edges: Vec::new(),
        }
    }

    /// A new joint.
    pub(crate) fn joint(&mut self) -> u32 {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds an edge that rests on values alone. An edge to itself says nothing and is left out.
    pub(crate) fn edge(&mut self, from: u32, to: u32, dependency: Dependency, key: u32) {
        self.edge_on(Basis::Values, from, to, dependency, key);
    }

    /// Adds an edge that holds only if the order of `basis` is kept.
    pub(crate) fn edge_on(
        &mut self,
        basis: Basis,
        from: u32,
        to: u32,
        dependency: Dependency,
        key: u32,
    ) {
        if from != to {
            self.edges
                .push((from, to, Label::new(dependency, basis, key)));
        }
    }

    /// Adds glue.
    pub(crate) fn glue(&mut self, from: u32, to: u32) {
        self.edge(from, to, Dependency::Glue, NO_KEY);
    }

    /// Sorts the edges by source; edges of one source keep their order.
    pub(crate) fn build(self) -> Graph {
        Graph::from_edges(self.nodes, &self.edges)
    }
}

impl Graph {
    fn from_edges(nodes: u32, edges: &[(u32, u32, Label)]) -> Graph {
        assert!(u32::try_from(edges.len()).is_ok(), "fewer than 4 billion");
        let mut starts = vec![0u32; nodes as usize + 1];
        for (from, _, _) in edges {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes as usize {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; edges.len()];
        let mut labels = vec![Label(0); edges.len()];
        for (from, to, label) in edges {
            let place = &mut next[*from as usize];
            targets[*place as usize] = *to;
            labels[*place as usize] = *label;
            *place += 1;
        }
        Graph {
            starts,
            targets,
            labels,
        }
    }

    pub(crate) fn node_count(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    /// The edges out of `node`, by their places.
    pub(crate) fn edges(&self, node: u32) -> Range<u32> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    pub(crate) fn target(&self, edge: u32) -> u32 {
        self.targets[edge as usize]
    }

    pub(crate) fn label(&self, edge: u32) -> Label {
        self.labels[edge as usize]
    }

    /// The part that consists of the given nodes and the edges between nodes of one part. Its nodes
    /// are numbered in the order given: `parts` in sequence.
    pub(crate) fn restricted(&self, parts: &[Vec<u32>]) -> Graph {
        let absent = u32::MAX;
        let mut place = vec![(absent, absent); self.node_count() as usize];
        let mut count = 0;
        for (part, nodes) in parts.iter().enumerate() {
            for node in nodes {
                place[*node as usize] = (part as u32, count);
                count += 1;
            }
        }
        let mut edges = Vec::new();
        for node in parts.iter().flatten() {
            let (part, from) = place[*node as usize];
            for edge in self.edges(*node) {
                let (target_part, to) = place[self.target(edge) as usize];
                if part == target_part {
                    edges.push((from, to, self.label(edge)));
                }
            }
        }
        Graph::from_edges(count, &edges)
    }
}

/// A graph seen through a filter.
///
/// Its *states* are nodes; or, with a [`Turn`], pairs of a node and how it was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lens<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) mask: Mask,
    pub(crate) basis: Basis,
    pub(crate) turn: Turn,
}

/// Where an anti-dependency may follow in a way through the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Anywhere.
    Free,
    /// Not behind another one. A cycle like that is exactly what snapshot isolation forbids.
    NotTwice,
    /// Only behind the order of time. What its reader missed became visible after the reader had
    /// begun, so after the end of the transaction before it in the way: like all other edges, the
    /// two together lead forward in time, where statements see all that was acknowledged.
    AfterTime,
}

impl Lens<'_> {
    fn state_bits(&self) -> u32 {
        u32::from(self.turn != Turn::Free)
    }

    pub(crate) fn state_count(&self) -> u32 {
        self.graph.node_count() << self.state_bits()
    }

    pub(crate) fn node(&self, state: u32) -> u32 {
        state >> self.state_bits()
    }

    /// The edges out of a state; [`Lens::follow`] says which of them count.
    pub(crate) fn edges(&self, state: u32) -> Range<u32> {
        self.graph.edges(self.node(state))
    }

    /// The state behind `edge` when it is taken from `state`; `None`: it is filtered out.
    pub(crate) fn follow(&self, state: u32, edge: u32) -> Option<u32> {
        let label = self.graph.label(edge);
        let dependency = label.dependency();
        if self.mask & dependency.bit() == 0 || label.basis() > self.basis {
            return None;
        }
        let target = self.graph.target(edge);
        // What the way before says about the next anti-dependency.
        let (barred, by_rw, by_time) = match self.turn {
            Turn::Free => return Some(target),
            Turn::NotTwice => (1, 1, 0),
            Turn::AfterTime => (0, 0, 1),
        };
        let mark = match dependency {
            Dependency::Rw | Dependency::RwRange if state & 1 == barred => return None,
            Dependency::Rw | Dependency::RwRange => by_rw,
            Dependency::Glue => state & 1,
            Dependency::Ww | Dependency::Wr => 0,
            Dependency::Session | Dependency::RealTime => by_time,
        };
        Some(target << 1 | mark)
    }
}

/// The parts of more than one state in which every state reaches every other (Tarjan 1972, with a
/// stack of its own). States are in no particular order, parts in the order in which they close.
pub(crate) fn tangles(lens: &Lens<'_>) -> Vec<Vec<u32>> {
    const NEW: u32 = u32::MAX;
    let count = lens.state_count() as usize;
    let mut order = vec![NEW; count];
    let mut low = vec![NEW; count];
    let mut open: Vec<u32> = Vec::new();
    let mut is_open = vec![false; count];
    let mut path: Vec<(u32, u32)> = Vec::new();
    let mut found = Vec::new();
    let mut clock = 0;
    for root in 0..count as u32 {
        if order[root as usize] != NEW || lens.edges(root).is_empty() {
            continue;
        }
        path.push((root, lens.edges(root).start));
        while let Some((state, edge)) = path.pop() {
            let at = state as usize;
            if order[at] == NEW {
                order[at] = clock;
                low[at] = clock;
                clock += 1;
                open.push(state);
                is_open[at] = true;
            }
            let mut edge = edge;
            let mut below = None;
            while edge < lens.edges(state).end && below.is_none() {
                if let Some(next) = lens.follow(state, edge) {
                    if order[next as usize] == NEW {
                        below = Some(next);
                        // The edge is looked at once more when `next` is done, to take its low.
                        break;
                    }
                    if is_open[next as usize] {
                        low[at] = low[at].min(low[next as usize]);
                    }
                }
                edge += 1;
            }
            if let Some(next) = below {
                path.push((state, edge));
                path.push((next, lens.edges(next).start));
                continue;
            }
            if low[at] == order[at] {
                let begin = open
                    .iter()
                    .rposition(|other| *other == state)
                    .expect("a state is open until its part closes");
                let part = open.split_off(begin);
                for other in &part {
                    is_open[*other as usize] = false;
                }
                if part.len() > 1 {
                    found.push(part);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    fn graph(nodes: usize, edges: &[(u32, u32, Dependency)]) -> Graph {
        let mut builder = GraphBuilder::new(nodes);
        for (from, to, dependency) in edges {
            builder.edge(*from, *to, *dependency, 0);
        }
        builder.build()
    }

    fn lens(graph: &Graph, mask: Mask, turn: Turn) -> Lens<'_> {
        Lens {
            graph,
            mask,
            basis: Basis::RealTime,
            turn,
        }
    }

    #[test]
    fn labels_keep_what_they_are_given() {
        for dependency in Dependency::ALL {
            for basis in [Basis::Values, Basis::Session, Basis::RealTime] {
                for key in [0, 1, 77_777, NO_KEY] {
                    let label = Label::new(dependency, basis, key);
                    assert_eq!(
                        (label.dependency(), label.basis(), label.key()),
                        (dependency, basis, key)
                    );
                }
            }
        }
    }

    #[test]
    fn tangles_are_mutual_reachability() {
        let mut prng = Prng::new(3);
        for _ in 0..2_000 {
            let nodes = 1 + prng.below(8) as usize;
            let edges: Vec<(u32, u32, Dependency)> = (0..prng.below(14))
                .map(|_| {
                    let from = prng.below(nodes as u64) as u32;
                    let to = prng.below(nodes as u64) as u32;
                    (from, to, Dependency::ALL[prng.below(4) as usize])
                })
                .collect();
            let graph = graph(nodes, &edges);
            for turn in [Turn::Free, Turn::NotTwice, Turn::AfterTime] {
                let lens = lens(&graph, EVERYTHING, turn);
                let count = lens.state_count() as usize;
                let mut reach = vec![vec![false; count]; count];
                for state in 0..count as u32 {
                    for edge in lens.edges(state) {
                        if let Some(next) = lens.follow(state, edge) {
                            reach[state as usize][next as usize] = true;
                        }
                    }
                }
                for middle in 0..count {
                    for from in 0..count {
                        for to in 0..count {
                            reach[from][to] |= reach[from][middle] && reach[middle][to];
                        }
                    }
                }
                let found = tangles(&lens);
                let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
                for (a, b) in pairs {
                    let together = found
                        .iter()
                        .any(|part| part.contains(&(a as u32)) && part.contains(&(b as u32)));
                    assert_eq!(together, reach[a][b] && reach[b][a], "{edges:?} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn a_split_lens_sees_no_anti_dependencies_in_a_row() {
        let skew = graph(2, &[(0, 1, Dependency::Rw), (1, 0, Dependency::Rw)]);
        assert_eq!(tangles(&lens(&skew, EVERYTHING, Turn::NotTwice)).len(), 0);
        assert_eq!(tangles(&lens(&skew, EVERYTHING, Turn::Free)).len(), 1);
        let single = graph(2, &[(0, 1, Dependency::Rw), (1, 0, Dependency::Wr)]);
        assert_eq!(tangles(&lens(&single, EVERYTHING, Turn::NotTwice)).len(), 1);
        assert_eq!(tangles(&lens(&single, FORWARD, Turn::NotTwice)).len(), 0);
    }

    #[test]
    fn a_lens_may_want_anti_dependencies_behind_time_alone() {
        use Dependency::{RealTime, Rw, Wr};
        let stale = graph(2, &[(0, 1, RealTime), (1, 0, Rw)]);
        assert_eq!(tangles(&lens(&stale, EVERYTHING, Turn::AfterTime)).len(), 1);
        // It looked once before the writer's commit and once behind it: statements may.
        let twice = graph(3, &[(2, 1, RealTime), (1, 0, Rw), (0, 1, Wr)]);
        assert_eq!(tangles(&lens(&twice, EVERYTHING, Turn::Free)).len(), 1);
        assert_eq!(tangles(&lens(&twice, EVERYTHING, Turn::AfterTime)).len(), 0);
    }

    #[test]
    fn a_long_path_needs_no_deep_stack() {
        let mut builder = GraphBuilder::new(300_000);
        for node in 0..300_000 {
            builder.edge(node, (node + 1) % 300_000, Dependency::Ww, 0);
        }
        let graph = builder.build();
        let found = tangles(&lens(&graph, WRITES, Turn::Free));
        assert_eq!((found.len(), found[0].len()), (1, 300_000));
        assert_eq!(graph.restricted(&found).node_count(), 300_000);
    }
}
