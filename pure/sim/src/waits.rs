//! The judge of waits: while nodes are dead, standing still or cut off, statements of clients at
//! the others end.
//!
//! "All ends once everything is healed" (`run`) lets a statement wait as long as a fault lasts. A
//! run that is judged here has calm links and disks, and long outages, one after the other:
//!
//! ```text
//! outage begins ─── all who can notice it have ─── T ──── statements that began before T + bound
//!                   (`on_peer_down` at every shard)       end before T + bound, others in `bound`
//! ```
//!
//! What is judged is a statement of a client whose node lives: whatever its rows, it ends, with a
//! result or with an error. Whether it could have had a result is not judged here; `test/faults`
//! does that on real nodes.
//!
//! Not judged are clients of a node that stands still, and what happens until the outage is known.
//! A process that ends says so. That nothing comes over a connection any more is noticed by
//! heartbeats (`links`).

use crate::hosted::LinkState;
use crate::queue::Event;
use crate::world::World;
use std::collections::BTreeMap;
use wire::ClientMessage;

/// How often the judge looks. Virtual time.
const LOOK_NS: u64 = 50_000_000;
/// A statement ends so soon after it has begun, and after the last change of who reaches whom. The
/// longest single wait for a node that is away is one second (leap: for read locks of its
/// transactions; two_phase: for one that is in doubt), looked at every 0.2 s. A statement may meet
/// two of them, the first while it queues behind another one's.
const BOUND_NS: u64 = 2_500_000_000;

/// The same where schema changes close the database: one lasts up to 2 s with what it undoes, and
/// what comes meanwhile waits for it.
const BOUND_CLOSED_NS: u64 = BOUND_NS + 2_000_000_000;

/// A statement that has not been answered.
struct Waiting {
    node: usize,
    since_ns: u64,
    text: String,
}

/// What the judge knows.
#[derive(Default)]
pub(crate) struct Waits {
    /// It judges this run, at this time.
    pub(crate) is_on: bool,
    begun: BTreeMap<u32, Waiting>,
    /// Who reaches whom, and since when.
    view: Vec<u64>,
    since_ns: u64,
    /// Statements of clients at live nodes that have ended while an outage was known.
    pub(crate) judged: u64,
    /// The longest of them.
    pub(crate) longest_ns: u64,
}

impl World {
    /// Judges from now on, if the plan is one for that.
    pub(crate) fn judge_waits(&mut self) {
        if self.plan.has_outages() {
            self.waits.is_on = true;
            self.push(LOOK_NS, Event::Look);
        }
    }

    /// A client has asked something.
    pub(crate) fn note_question(&mut self, conn: u32, messages: &[ClientMessage]) {
        if !self.waits.is_on {
            return;
        }
        let Some(node) = self.clients.get(&conn).map(|link| link.node) else {
            return;
        };
        let text = messages.iter().find_map(|message| match message {
            ClientMessage::Query(text) => Some(text.clone()),
            _ => None,
        });
        let waiting = Waiting {
            node,
            since_ns: self.now_ns,
            text: text.unwrap_or_else(|| "a prepared statement".to_owned()),
        };
        self.waits.begun.insert(conn, waiting);
    }

    /// It has its answer, or its connection is gone.
    pub(crate) fn note_answer(&mut self, conn: u32) {
        let Some(waiting) = self.waits.begun.remove(&conn) else {
            return;
        };
        if self.has_outage() && self.is_steady() && self.is_live(waiting.node) {
            let from_ns = waiting.since_ns.max(self.waits.since_ns);
            self.waits.judged += 1;
            let waited_ns = self.now_ns - from_ns;
            self.waits.longest_ns = self.waits.longest_ns.max(waited_ns);
        }
    }

    pub(crate) fn is_live(&self, node: usize) -> bool {
        self.nodes[node].running.is_some() && !self.nodes[node].is_paused(self.now_ns)
    }

    /// Whether some node cannot do its work, or two cannot reach each other.
    fn has_outage(&self) -> bool {
        let count = self.nodes.len();
        (0..count).any(|node| !self.is_live(node) || (0..count).any(|to| self.is_cut_off(node, to)))
    }

    /// Whether nothing gets from one node to the other and back.
    pub(crate) fn is_cut_off(&self, from: usize, to: usize) -> bool {
        self.network.is_cut(from, to) || self.network.is_cut(to, from)
    }

    /// Whether every live shard knows whom it reaches.
    fn is_steady(&self) -> bool {
        let live = (0..self.nodes.len()).filter(|node| self.is_live(*node));
        live.into_iter().all(|node| {
            let running = self.nodes[node].running.as_ref().expect("it is live");
            let links = running.shards.iter().flat_map(|shard| &shard.links);
            links.into_iter().all(|(peer, link)| {
                let reaches = self.is_live(*peer) && !self.is_cut_off(node, *peer);
                matches!(link.state, LinkState::Up(_)) == reaches
            })
        })
    }

    /// Who lives and who is connected to whom, as numbers.
    fn view(&self) -> Vec<u64> {
        let mut view = Vec::new();
        for node in 0..self.nodes.len() {
            view.push(u64::from(self.is_live(node)));
            for to in 0..self.nodes.len() {
                view.push(u64::from(self.is_cut_off(node, to)));
            }
            let Some(running) = &self.nodes[node].running else {
                continue;
            };
            view.push(u64::from(running.life.0) + u64::from(running.is_accepting()) * 1_000);
            for link in running.shards.iter().flat_map(|shard| shard.links.values()) {
                view.push(match link.state {
                    LinkState::Up(life) => 1 + u64::from(life.0),
                    // Attempts that come to nothing change nothing.
                    LinkState::Idle | LinkState::Opening => 0,
                });
            }
        }
        view
    }

    pub(crate) fn on_look(&mut self) {
        if !self.waits.is_on {
            return;
        }
        let view = self.view();
        if view != self.waits.view {
            (self.waits.view, self.waits.since_ns) = (view, self.now_ns);
        }
        self.push(LOOK_NS, Event::Look);
        if !self.is_steady() {
            self.waits.since_ns = self.now_ns;
            self.closed.unsteady();
            return;
        }
        self.look_for_closed();
        let bound_ns = match self.plan.workload {
            "waits-switch" => BOUND_CLOSED_NS,
            _ => BOUND_NS,
        };
        let late = self.waits.begun.values().find(|waiting| {
            let from_ns = waiting.since_ns.max(self.waits.since_ns);
            self.is_live(waiting.node) && self.now_ns - from_ns > bound_ns
        });
        if let Some(waiting) = late {
            let text = format!(
                "endless wait: {:?} at n{} waits for {} ms, {} ms of them since who reaches whom \
                 is known{}",
                waiting.text,
                waiting.node + 1,
                (self.now_ns - waiting.since_ns) / 1_000_000,
                (self.now_ns - self.waits.since_ns) / 1_000_000,
                self.left_over()
            );
            self.broken.get_or_insert(text);
        }
    }
}
