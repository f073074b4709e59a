//! Searches the graph for cycles, names them, and has them told.
//!
//! Whether a level is violated is decided by tangles (strongly connected parts) under the lens of
//! that level, in linear time, and never by the search for a small cycle: that one has a budget,
//! and only makes the story short.
//!
//! | lens | a tangle in it proves |
//! |---|---|
//! | writes | G0 |
//! | writes and reads-from | G1c |
//! | everything, no two adjacent anti-dependencies | that it is not snapshot isolation |
//! | everything, anti-dependencies behind time alone | that statements miss what was acknowledged |
//! | everything but ranges | that it is not PL-2.99 |
//! | everything | that it is not serializable |
//!
//! Each is looked at without order, then with the order of sessions, then with real time.

use crate::found::{Found, Name};
use crate::graph::{
    Dependency, EVERYTHING, FORWARD, Graph, ITEMS, Label, Lens, Mask, Turn, WRITES, tangles,
};
use crate::ledger::Ledger;
use crate::level::{Basis, Kind};
use crate::story::{self, Step};
use alloc::vec;
use alloc::vec::Vec;

/// Edges that the search for small cycles may look at, in all. About a second.
const LOOKS_MAX: u64 = 100_000_000;
/// So many places to begin from are tried under each lens.
const BEGINNINGS_MAX: usize = 20_000;
/// Lengths of the way back that are tried, short ones first. The last finds whatever there is.
const LENGTHS: [u32; 8] = [1, 2, 3, 4, 6, 10, 30, u32::MAX];

/// One way to look at the graph.
struct View {
    mask: Mask,
    turn: Turn,
    /// What a cycle must hold, where no order is required of it.
    required: Mask,
    /// The way back is looked for in this, if not in the lens itself.
    back: Option<Mask>,
}

const ANY_RW: Mask = Dependency::Rw.bit() | Dependency::RwRange.bit();

const VIEWS: [View; 7] = [
    View {
        mask: WRITES,
        turn: Turn::Free,
        required: Dependency::Ww.bit(),
        back: None,
    },
    View {
        mask: FORWARD,
        turn: Turn::Free,
        required: Dependency::Wr.bit(),
        back: None,
    },
    // One anti-dependency and a way back without: G-single by its proper name, where there is one.
    View {
        mask: EVERYTHING,
        turn: Turn::NotTwice,
        required: ANY_RW,
        back: Some(FORWARD),
    },
    View {
        mask: EVERYTHING,
        turn: Turn::NotTwice,
        required: ANY_RW,
        back: None,
    },
    View {
        mask: ITEMS,
        turn: Turn::Free,
        required: Dependency::Rw.bit(),
        back: None,
    },
    View {
        mask: EVERYTHING,
        turn: Turn::Free,
        required: Dependency::RwRange.bit(),
        back: None,
    },
    View {
        mask: EVERYTHING,
        turn: Turn::AfterTime,
        required: ANY_RW,
        back: None,
    },
];

/// Finds the cycles of `graph` and tells them to `found`.
pub(crate) fn judge(ledger: &Ledger<'_>, graph: &Graph, found: &mut Found) {
    let everything = |graph, basis| Lens {
        graph,
        mask: EVERYTHING,
        basis,
        turn: Turn::Free,
    };
    let parts = tangles(&everything(graph, Basis::RealTime));
    if parts.is_empty() {
        return;
    }
    // What is on no cycle is of no interest any more.
    let tangled = graph.restricted(&parts);
    let nodes: Vec<u32> = parts.into_iter().flatten().collect();
    let mut looks = LOOKS_MAX;
    for basis in [Basis::Values, Basis::Session, Basis::RealTime] {
        if tangles(&everything(&tangled, basis)).is_empty() {
            continue;
        }
        for view in &VIEWS {
            let Some(cycle) = find(&tangled, view, basis, &mut looks) else {
                continue;
            };
            let edges: Vec<Label> = cycle.iter().map(|(_, e)| tangled.label(*e)).collect();
            let mut name = name_of(&edges);
            if view.turn == Turn::AfterTime {
                name.kind = Kind::StaleRead;
            }
            let mut steps = steps(ledger, &tangled, &nodes, &cycle);
            let first = (0..steps.len()).min_by_key(|place| steps[*place].from);
            steps.rotate_left(first.unwrap_or(0));
            let txns: Vec<u32> = steps.iter().map(|step| step.from).collect();
            found.note(name, &txns, || story::cycle(ledger, &steps));
        }
    }
}

/// A cycle as (node, edge out of it).
type Cycle = Vec<(u32, u32)>;

/// A small cycle under one view, if there is a cycle.
fn find(graph: &Graph, view: &View, basis: Basis, looks: &mut u64) -> Option<Cycle> {
    let lens = Lens {
        graph,
        mask: view.mask,
        basis,
        turn: view.turn,
    };
    let parts = tangles(&lens);
    let mut part_of = vec![u32::MAX; lens.state_count() as usize];
    for (part, states) in parts.iter().enumerate() {
        for state in states {
            part_of[*state as usize] = part as u32;
        }
    }
    let required = |label: Label| match basis {
        // Time is on the cycle anyway.
        _ if view.turn == Turn::AfterTime => view.required & label.dependency().bit() != 0,
        Basis::Values => view.required & label.dependency().bit() != 0,
        Basis::Session | Basis::RealTime => {
            label.basis() == basis
                && (view.back.is_none() || view.required & label.dependency().bit() != 0)
        }
    };
    let mut beginnings: Vec<(u32, u32, u32)> = Vec::new();
    'collect: for state in parts.iter().flatten() {
        for edge in lens.edges(*state) {
            if let Some(next) = lens.follow(*state, edge)
                && part_of[next as usize] == part_of[*state as usize]
                && required(graph.label(edge))
            {
                beginnings.push((*state, edge, next));
                if beginnings.len() == BEGINNINGS_MAX {
                    break 'collect;
                }
            }
        }
    }
    let back = match view.back {
        None => lens,
        Some(mask) => Lens {
            mask,
            turn: Turn::Free,
            ..lens
        },
    };
    let parts = (view.back.is_none()).then_some(&part_of[..]);
    let mut search = Search::new(back, parts);
    for length in LENGTHS {
        for (state, edge, next) in &beginnings {
            if *looks == 0 {
                break;
            }
            let (from, to) = match view.back {
                None => (*next, *state),
                Some(_) => (lens.node(*next), lens.node(*state)),
            };
            if let Some(way) = search.shortest(from, to, length, looks) {
                return Some(closed(&lens, *state, *edge, way));
            }
        }
    }
    // Out of budget: the first beginning certainly closes, if the way back is under the same lens.
    let (state, edge, next) = beginnings.first().filter(|_| view.back.is_none())?;
    let way = search.shortest(*next, *state, u32::MAX, &mut u64::MAX.clone())?;
    Some(closed(&lens, *state, *edge, way))
}

fn closed(lens: &Lens<'_>, state: u32, edge: u32, way: Cycle) -> Cycle {
    let mut cycle = vec![(lens.node(state), edge)];
    cycle.extend(way);
    cycle
}

/// Breadth-first search under a lens, with memory that is used again.
struct Search<'g> {
    lens: Lens<'g>,
    /// If given, only states of one part are entered.
    part_of: Option<&'g [u32]>,
    /// For each state: the round in which it was reached, from where, by which edge.
    reached: Vec<(u32, u32, u32)>,
    round: u32,
}

impl<'g> Search<'g> {
    fn new(lens: Lens<'g>, part_of: Option<&'g [u32]>) -> Search<'g> {
        Search {
            lens,
            part_of,
            reached: vec![(0, 0, 0); lens.state_count() as usize],
            round: 0,
        }
    }

    /// The shortest way from one state to another, of at most `length` edges, as (node, edge).
    fn shortest(&mut self, from: u32, to: u32, length: u32, looks: &mut u64) -> Option<Cycle> {
        self.round += 1;
        if from == to {
            return Some(Vec::new());
        }
        self.reached[from as usize] = (self.round, from, 0);
        let mut front = vec![from];
        for _ in 0..length {
            let mut next_front = Vec::new();
            for state in front {
                for edge in self.lens.edges(state) {
                    *looks = looks.saturating_sub(1);
                    let Some(next) = self.lens.follow(state, edge) else {
                        continue;
                    };
                    let elsewhere = self
                        .part_of
                        .is_some_and(|part_of| part_of[next as usize] != part_of[from as usize]);
                    if elsewhere || self.reached[next as usize].0 == self.round {
                        continue;
                    }
                    self.reached[next as usize] = (self.round, state, edge);
                    if next == to {
                        return Some(self.way(from, to));
                    }
                    next_front.push(next);
                }
            }
            if next_front.is_empty() || *looks == 0 {
                break;
            }
            front = next_front;
        }
        None
    }

    /// The way on which `to` was reached.
    fn way(&self, from: u32, to: u32) -> Cycle {
        let mut way = Vec::new();
        let mut state = to;
        while state != from {
            let (_, before, edge) = self.reached[state as usize];
            way.push((self.lens.node(before), edge));
            state = before;
        }
        way.reverse();
        way
    }
}

fn name_of(edges: &[Label]) -> Name {
    let kinds = edges.iter().map(|label| label.dependency());
    let kinds: Vec<Dependency> = kinds.filter(|kind| *kind != Dependency::Glue).collect();
    let rws = kinds.iter().filter(|kind| kind.is_rw()).count();
    let rotated = kinds.iter().skip(1).chain(kinds.first());
    let in_a_row = kinds
        .iter()
        .zip(rotated)
        .any(|(a, b)| a.is_rw() && b.is_rw());
    let predicate = kinds.contains(&Dependency::RwRange);
    let mut keyed = edges
        .iter()
        .filter(|label| label.dependency() != Dependency::Glue);
    let first_key = edges.first().map(|label| label.key());
    let one_key = keyed.all(|label| Some(label.key()) == first_key);
    let updates = kinds
        .iter()
        .all(|kind| kind.is_rw() || *kind == Dependency::Ww);
    let kind = match rws {
        0 if kinds.contains(&Dependency::Wr) => Kind::G1c,
        0 => Kind::G0,
        1 if one_key && updates => Kind::LostUpdate,
        1 => Kind::GSingle,
        _ if !in_a_row => Kind::GNonadjacent,
        _ if predicate => Kind::G2,
        _ => Kind::G2Item,
    };
    let basis = edges.iter().map(|label| label.basis()).max();
    Name {
        kind,
        basis: basis.unwrap_or(Basis::Values),
        predicate,
    }
}

/// The cycle from transaction to transaction, joints left out.
fn steps(ledger: &Ledger<'_>, graph: &Graph, nodes: &[u32], cycle: &Cycle) -> Vec<Step> {
    let real = |node: u32| nodes[node as usize];
    let is_txn = |node: u32| (real(node) as usize) < ledger.history.txns.len();
    let begin = cycle
        .iter()
        .position(|(node, _)| is_txn(*node))
        .expect("joints alone are not connected in a circle");
    let mut steps: Vec<Step> = Vec::new();
    let mut by = Vec::new();
    let mut from = real(cycle[begin].0);
    for place in 0..cycle.len() {
        let (_, edge) = cycle[(begin + place) % cycle.len()];
        let label = graph.label(edge);
        if label.dependency() != Dependency::Glue {
            by.push((label.dependency(), label.key()));
        }
        let to = graph.target(edge);
        if is_txn(to) {
            let to = real(to);
            let by = core::mem::take(&mut by);
            steps.push(Step { from, to, by });
            from = to;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(dependency: Dependency, basis: Basis, key: u32) -> Label {
        Label::new(dependency, basis, key)
    }

    #[test]
    fn cycles_are_named_by_their_edges() {
        use Dependency::{Glue, RealTime, Rw, RwRange, Wr, Ww};
        let name = |kinds: &[(Dependency, u32)]| {
            let edges: Vec<Label> = kinds
                .iter()
                .map(|(kind, key)| {
                    let basis = match kind {
                        RealTime => Basis::RealTime,
                        _ => Basis::Values,
                    };
                    label(*kind, basis, *key)
                })
                .collect();
            name_of(&edges).text()
        };
        assert_eq!(name(&[(Ww, 1), (Ww, 2)]), "G0");
        assert_eq!(name(&[(Ww, 1), (Wr, 2)]), "G1c");
        assert_eq!(name(&[(Rw, 1), (Wr, 2)]), "G-single");
        assert_eq!(name(&[(Rw, 1), (Ww, 1)]), "lost-update");
        assert_eq!(name(&[(Rw, 1), (Ww, 2)]), "G-single");
        assert_eq!(name(&[(Rw, 1), (Glue, 9), (Ww, 1)]), "lost-update");
        assert_eq!(name(&[(Rw, 1), (Wr, 2), (Rw, 1), (Wr, 2)]), "G-nonadjacent");
        assert_eq!(name(&[(Rw, 1), (Rw, 2)]), "G2-item");
        // In a row around the end, and across a joint.
        assert_eq!(name(&[(Rw, 1), (Wr, 3), (Rw, 2)]), "G2-item");
        assert_eq!(name(&[(Rw, 1), (Glue, 0), (RwRange, 2), (Wr, 1)]), "G2");
        assert_eq!(name(&[(RealTime, 0), (Rw, 2)]), "G-single-realtime");
        assert_eq!(name(&[(RealTime, 0), (Ww, 2)]), "G0-realtime");
    }
}
