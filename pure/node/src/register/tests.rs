//! Nodes agree on what follows a closed catalog, whatever gets lost and whichever node dies when.

use super::*;
use base::{Prng, ShardId};
use catalog::{ChangeId, Closing, Stage};
use std::collections::BTreeMap;

const BASE: u64 = 7;

/// A catalog that is told from others by its number.
fn catalog(version: u64, number: u64) -> Arc<Catalog> {
    let change = ChangeId {
        by: ShardId(0),
        number,
    };
    let stage = Stage::Done;
    Arc::new(Catalog {
        version,
        closing: Some(Closing { change, stage }),
        ..Catalog::default()
    })
}

fn number(catalog: &Catalog) -> u64 {
    catalog.closing.expect("it has a number").change.number
}

/// A vote, and the words that wait for it.
type Unwritten = (Option<Vote>, Vec<(NodeId, Word)>);

/// A node: what is on its disk, and what it has in memory while it lives.
struct Node {
    disk: Option<Vote>,
    /// Appended and not durable, with what waits for it.
    unwritten: Vec<Unwritten>,
    lives: u32,
    register: Register,
}

struct World {
    prng: Prng,
    now: Time,
    nodes: BTreeMap<NodeId, Node>,
    wire: Vec<(NodeId, NodeId, Word)>,
    /// What was chosen, as the nodes have seen it.
    chosen: Vec<u64>,
    begun: u64,
}

impl World {
    fn new(seed: u64, count: u16) -> World {
        let all: Vec<NodeId> = (1..=count).map(NodeId).collect();
        let node = |id: NodeId| Node {
            disk: None,
            unwritten: Vec::new(),
            lives: 1,
            register: Register::new(id, all.clone(), 1, BASE, None),
        };
        World {
            prng: Prng::new(seed),
            now: Time(1),
            nodes: all.iter().map(|id| (*id, node(*id))).collect(),
            wire: Vec::new(),
            chosen: Vec::new(),
            begun: 0,
        }
    }

    fn pick(&mut self) -> NodeId {
        let count = self.nodes.len() as u64;
        NodeId(1 + self.prng.below(count) as u16)
    }

    fn said(&mut self, by: NodeId, said: Said) {
        let (held, free): (Vec<_>, Vec<_>) = said
            .words
            .into_iter()
            .partition(|(_, word)| word.needs_vote());
        let free = free.into_iter().map(|(to, word)| (by, to, word));
        self.wire.extend(free);
        let node = self.nodes.get_mut(&by).expect("a node");
        node.unwritten.push((said.vote, held));
        if let Some(next) = said.chosen {
            self.chosen.push(number(&next));
        }
    }

    /// A node begins an attempt: node 1 the first one of its life with its own value.
    fn begin(&mut self, by: NodeId) {
        self.begun += 1;
        let (own, now) = (self.begun, self.now);
        let node = self.nodes.get_mut(&by).expect("a node");
        if node.register.is_busy() {
            let said = node.register.again(now);
            return self.said(by, said);
        }
        let closed = catalog(BASE, own);
        let said = if by == CATALOG_NODE && node.lives == 1 && self.begun == 1 {
            node.register.propose(catalog(BASE + 1, own), now)
        } else {
            let said = node.register.settle(&closed, now);
            // `opened` of a catalog in which nothing is closed is the catalog itself.
            let attempt = node.register.attempt.as_mut().expect("just begun");
            if let Phase::Preparing { own: value, .. } = &mut attempt.phase {
                *value = catalog(BASE + 1, own);
            }
            said
        };
        self.said(by, said);
    }

    fn flush(&mut self, id: NodeId) {
        let node = self.nodes.get_mut(&id).expect("a node");
        for (vote, words) in std::mem::take(&mut node.unwritten) {
            node.disk = vote.or(node.disk.take());
            self.wire
                .extend(words.into_iter().map(|(to, word)| (id, to, word)));
        }
    }

    /// Some of what it has appended may have become durable.
    fn crash(&mut self, id: NodeId) {
        let all: Vec<NodeId> = self.nodes.keys().copied().collect();
        let kept = self.prng.below(4) as usize;
        let node = self.nodes.get_mut(&id).expect("a node");
        for (vote, _) in std::mem::take(&mut node.unwritten).into_iter().take(kept) {
            node.disk = vote.or(node.disk.take());
        }
        node.lives += 1;
        node.register = Register::new(id, all, node.lives, BASE, node.disk.clone());
    }

    fn deliver(&mut self) {
        if self.wire.is_empty() {
            return;
        }
        let at = self.prng.below(self.wire.len() as u64) as usize;
        let (from, to, word) = match self.prng.below(10) {
            // Once more, later.
            0 => self.wire[at].clone(),
            _ => self.wire.swap_remove(at),
        };
        let now = self.now;
        let node = self.nodes.get_mut(&to).expect("a node");
        let said = node.register.on_word(from, word, now);
        self.said(to, said);
    }

    fn step(&mut self) {
        self.now = self.now.after(self.prng.below(AGAIN_US / 10));
        let id = self.pick();
        match self.prng.below(100) {
            0..2 => self.crash(id),
            2..6 => self.begin(id),
            6..8 => self.wire.clear(),
            8..30 => self.flush(id),
            _ => self.deliver(),
        }
        let first = self.chosen.first();
        assert!(
            self.chosen.iter().all(|one| Some(one) == first),
            "two outcomes: {:?}",
            self.chosen
        );
    }
}

#[test]
fn nodes_agree_whatever_gets_lost() {
    let (mut decided, mut values) = (0, BTreeSet::new());
    for seed in 0..400 {
        let mut world = World::new(seed, 2 + (seed % 5) as u16);
        if seed % 2 == 0 {
            world.begin(CATALOG_NODE);
        }
        (0..600).for_each(|_| world.step());
        decided += u64::from(!world.chosen.is_empty());
        values.extend(world.chosen.first().copied());
    }
    assert!(
        decided > 300 && values.len() > 3,
        "{decided} of 400 decided, {values:?}: proves little"
    );
}

#[test]
fn majorities_meet() {
    for count in 1..=7u16 {
        let all: Vec<NodeId> = (1..=count).map(NodeId).collect();
        let register = Register::new(NodeId(1), all.clone(), 1, BASE, None);
        let sets: Vec<BTreeSet<NodeId>> = (0..1u32 << count)
            .map(|set| {
                let chosen = all.iter().filter(|node| set >> (node.0 - 1) & 1 == 1);
                chosen.copied().collect()
            })
            .collect();
        let majorities: Vec<_> = sets
            .iter()
            .filter(|set| register.is_majority(set))
            .collect();
        for one in &majorities {
            let meets = |other: &&BTreeSet<NodeId>| !one.is_disjoint(other);
            assert!(majorities.iter().all(meets), "{one:?}");
        }
        // All but node 1 suffice from three nodes on; of two, node 1 alone does.
        let others: BTreeSet<NodeId> = all[1..].iter().copied().collect();
        assert_eq!(register.is_majority(&others), count >= 3, "{count} nodes");
        let alone = BTreeSet::from([NodeId(1)]);
        assert_eq!(register.is_majority(&alone), count <= 2, "{count} nodes");
    }
}

/// Node 1 dies when one other node has accepted what it proposed: the rest must take that, if they
/// ask this node, and may not take anything else.
#[test]
fn what_a_minority_has_accepted_is_found() {
    let mut world = World::new(1, 3);
    world.begin(CATALOG_NODE);
    let proposed = world.begun;
    let (one, two, three) = (NodeId(1), NodeId(2), NodeId(3));
    let only = |world: &mut World, to: NodeId| {
        world.wire.retain(|(_, at, _)| *at == to);
        while let Some((from, to, word)) = world.wire.pop() {
            let said = world.nodes.get_mut(&to).expect("a node");
            let said = said.register.on_word(from, word, Time(1));
            world.said(to, said);
            world.flush(to);
            world.wire.retain(|(_, to, _)| *to != one);
        }
    };
    only(&mut world, three);
    assert!(world.chosen.is_empty(), "node 1 has not heard of it");
    world.begin(two);
    while !world.wire.is_empty() {
        world.wire.retain(|(_, to, _)| *to != one);
        world.deliver();
        [two, three].into_iter().for_each(|node| world.flush(node));
    }
    assert_eq!(world.chosen, [proposed]);
}
