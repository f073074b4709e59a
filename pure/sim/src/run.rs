//! One run: a cluster comes up, clients work under faults, everything is healed, and the result is
//! judged.

use crate::executor::{Join, SimCx, Task};
use crate::hosted::LinkState;
use crate::plan::{Kind, Plan};
use crate::queue::Event;
use crate::trace::Sink;
use crate::workload::{Entry, Scale, Verdict, Workload, find};
use crate::world::World;
use base::{Key, Prng, ShardId, Ts};
use node::Shard;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What happened in a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Virtual nanoseconds.
    pub virtual_ns: u64,
    /// Steps of all machines.
    pub steps: u64,
    /// Starts of nodes.
    pub starts: u64,
    /// Checkpoints that came into use.
    pub checkpoints: u64,
    /// Faults that happened, by kind.
    pub happened: BTreeMap<Kind, u64>,
    /// Syncs of each node's disk.
    pub syncs: Vec<u64>,
    /// Syncs of each node's disk when the tables were made.
    pub syncs_before: Vec<u64>,
    /// Power cuts that lost unsynced writes, and those that left half of one.
    pub lost: u64,
    /// See `lost`.
    pub torn: u64,
    /// The longest wait of a statement during an outage that was known. Virtual nanoseconds.
    pub longest_wait_ns: u64,
    /// What the run was, as numbers: hash of the trace, digest of all rows, next random number.
    pub prints: [u64; 3],
}

/// A run and its judgement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The judgement.
    pub verdict: Verdict,
    /// What happened.
    pub report: Report,
}

const SECOND_NS: u64 = 1_000_000_000;
/// Longest virtual times of the parts of a run. Without faults each takes a few seconds; the
/// longest wait in the product is that for a silent participant, 10 s, a few times over.
const BOOT_NS: u64 = 60 * SECOND_NS;
const SETUP_NS: u64 = 300 * SECOND_NS;
const END_NS: u64 = 180 * SECOND_NS;
/// Statements that must have ended during an outage for their waits to be judged.
const JUDGED_MIN: u64 = 20;
const TASK_NS: u64 = 1_000 * 3_600 * SECOND_NS;

/// Who takes part in a run besides its plan.
#[derive(Default)]
pub struct Options {
    /// Reads the trace.
    pub sink: Option<Sink>,
    /// In place of the workload that the plan names.
    pub workload: Option<Rc<dyn Workload>>,
    /// Workloads of others that the plan may name.
    pub more: &'static [Entry],
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Outcome {
    run_with(plan, Options::default())
}

/// Runs a plan with more than it says.
pub fn run_with(plan: &Plan, options: Options) -> Outcome {
    let Options {
        sink,
        workload,
        more,
    } = options;
    let mut world = World::new(plan.clone(), sink, None);
    let mut report = Report::default();
    let verdict = match world.play((workload, more), &mut report) {
        Ok(verdict) => verdict,
        Err(text) => Verdict::Fail(text),
    };
    let verdict = match (world.broken.take(), verdict) {
        (Some(text), _) => Verdict::Fail(text),
        (None, verdict) => verdict,
    };
    world.fill(&mut report);
    Outcome { verdict, report }
}

/// Brings up the cluster of a plan, runs one task on it without faults until it ends, and gives its
/// result. Then nothing may be left over.
///
/// # Errors
/// A text: the cluster does not come up, the task does not end, or it leaves something behind.
pub fn alone<T: 'static>(plan: &Plan, task: impl FnOnce(SimCx) -> Task<T>) -> Result<T, String> {
    let mut world = World::new(plan.clone(), None, None);
    world.boot()?;
    world.healed = true;
    let cx = SimCx::new(world.shared.clone(), Prng::new(plan.seed ^ 0x007a_5c00));
    let running = cx.spawn(task(cx.fork()));
    if !world.within(TASK_NS, &mut |_| running.is_finished()) {
        return Err(world.stuck("the task does not end"));
    }
    let result = world.result_of(&cx, running);
    world.settle()?;
    world.broken.take().map_or(Ok(result), Err)
}

/// Rows and their commit timestamps.
type Rows = BTreeMap<Key, (Ts, Vec<u8>)>;

/// The first row in which two sets differ.
fn difference(before: &Rows, after: &Rows) -> Option<String> {
    let lost = before.iter().find(|(key, row)| after.get(key) != Some(row));
    if let Some((key, (ts, _))) = lost {
        let now = after.get(key).map(|(ts, _)| *ts);
        return Some(format!("had {key:?} of {ts}, and now of {now:?}"));
    }
    let new = after.iter().find(|(key, _)| !before.contains_key(key));
    new.map(|(key, (ts, _))| format!("had no {key:?}, and now one of {ts}"))
}

impl World {
    fn play(
        &mut self,
        (workload, more): (Option<Rc<dyn Workload>>, &'static [Entry]),
        report: &mut Report,
    ) -> Result<Verdict, String> {
        self.boot()?;
        let mut draw = Prng::new(self.plan.seed ^ 0x006f_10ad);
        let scale = Scale {
            nodes: self.plan.nodes,
            shards: self.plan.shards,
            clients: self.plan.clients,
            run_us: self.plan.run_us,
            clocks_agree: self.plan.clocks_agree(),
        };
        let named = |draw: &mut Prng| {
            let name = self.plan.workload;
            let entry = find(name).or_else(|| more.iter().find(|entry| entry.name == name));
            let entry = entry.ok_or("there is no such workload")?;
            Ok::<_, String>((entry.make)(draw, scale))
        };
        let workload = workload.map_or_else(|| named(&mut draw), Ok)?;
        let cx = SimCx::new(self.shared.clone(), draw.fork());
        let setup = cx.spawn(workload.clone().setup(cx.fork()));
        if !self.within(SETUP_NS, &mut |_| setup.is_finished()) {
            return Err(self.stuck("making the tables"));
        }
        let made = self.result_of(&cx, setup);
        if let Err(text) = &made
            && self.plan.stop_at.is_none()
        {
            return Err(format!("tables could not be made: {text}"));
        }
        report.syncs_before = self.syncs();
        let mut clients = Vec::new();
        if made.is_ok() {
            for client in 0..self.plan.clients {
                let task = workload.clone().client(cx.fork(), client);
                clients.push(cx.spawn(task));
            }
            for index in 0..self.plan.faults.len() {
                let after = self.plan.faults[index].at_us * 1_000;
                self.push(after, Event::Fault(index));
            }
            self.judge_waits();
            self.within(self.plan.run_us * 1_000, &mut |_| false);
        }
        self.waits.is_on = false;
        self.heal();
        self.shared.stopping.set(true);
        let ended = self.within(END_NS, &mut |_| {
            clients.iter().all(|task| task.is_finished())
        });
        if !ended {
            let left = clients.iter().filter(|task| !task.is_finished()).count();
            return Err(self.stuck(&format!("{left} clients after everything was healed")));
        }
        self.settle()?;
        let mut verdict = Verdict::Pass;
        if made.is_ok() {
            let finish = cx.spawn(workload.finish(cx.fork()));
            if !self.within(SETUP_NS, &mut |_| finish.is_finished()) {
                return Err(self.stuck("the final check"));
            }
            verdict = self.result_of(&cx, finish);
            self.settle()?;
        }
        self.restart_all()?;
        Ok(self.enough_waits(verdict))
    }

    /// A run whose outages nobody has noticed says nothing about waits.
    fn enough_waits(&self, verdict: Verdict) -> Verdict {
        let outages = self.plan.has_outages() && !self.plan.faults.is_empty();
        let judged = self.waits.judged;
        if verdict == Verdict::Pass && outages && judged < JUDGED_MIN {
            let text = format!("{judged} statements ended during outages that were known");
            return Verdict::Inconclusive(text);
        }
        verdict
    }

    /// Runs at most so long; whether it is done.
    pub(crate) fn within(&mut self, for_ns: u64, done: &mut dyn FnMut(&mut World) -> bool) -> bool {
        let limit = self.now_ns + for_ns;
        self.run_until(limit, done)
    }

    pub(crate) fn stuck(&mut self, what: &str) -> String {
        let broken = self.broken.take().or_else(|| self.lost_row());
        broken.unwrap_or_else(|| format!("no progress: {what}{}", self.left_over()))
    }

    /// Nodes that are down, and what shards hold, wait for or owe; a line each.
    pub(crate) fn left_over(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let Some(running) = &node.running else {
                text.push_str(&format!("\nn{} is down", node.id.0));
                continue;
            };
            for (index, shard) in running.shards.iter().enumerate() {
                if !shard.machine.is_idle() {
                    let state = shard.machine.describe();
                    text.push_str(&format!("\nn{}.{index}: {state}", node.id.0));
                }
            }
        }
        text
    }

    pub(crate) fn result_of<T: 'static>(&mut self, cx: &SimCx, task: Join<T>) -> T {
        let slot = Rc::new(RefCell::new(None));
        let filled = slot.clone();
        cx.spawn(async move { *filled.borrow_mut() = Some(task.join().await) });
        self.executor.run();
        slot.take().expect("a finished task has a result")
    }

    pub(crate) fn boot(&mut self) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            let after = self.prng.below(50_000_000);
            self.push(after, Event::Start { node });
        }
        if self.within(BOOT_NS, &mut |world| world.is_up()) {
            return Ok(());
        }
        Err(self.stuck("the cluster does not come up"))
    }

    /// Whether all nodes serve clients and see each other.
    fn is_up(&self) -> bool {
        self.nodes.iter().enumerate().all(|(index, node)| {
            let Some(running) = &node.running else {
                return false;
            };
            let mut links = running.shards.iter().flat_map(|shard| &shard.links);
            let up = links.all(|(peer, link)| {
                let life = self.nodes[*peer].running.as_ref().map(|other| other.life);
                matches!(link.state, LinkState::Up(to) if Some(to) == life)
            });
            assert!(!running.shards[0].links.contains_key(&index));
            up && running.is_accepting()
        })
    }

    /// All nodes are up, nothing runs, nothing is locked or owed, everything is durable.
    fn settle(&mut self) -> Result<(), String> {
        let done = self.within(END_NS, &mut |world| world.is_up() && world.is_idle());
        if done {
            self.validate();
            return self.check_owners(true);
        }
        Err(self.stuck("something is left over"))
    }

    fn is_idle(&self) -> bool {
        self.nodes.iter().all(|node| {
            let Some(running) = &node.running else {
                return false;
            };
            !running.flushing
                && running.buffer.borrow().is_empty()
                && !running.checkpointer.is_running()
                && running.shards.iter().all(|shard| shard.machine.is_idle())
        })
    }

    /// The machines of all nodes that are up.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &Shard> {
        let running = self.nodes.iter().filter_map(|node| node.running.as_ref());
        let shards = running.flat_map(|running| &running.shards);
        shards.map(|shard| &shard.machine)
    }

    fn validate(&self) {
        self.machines().for_each(Shard::validate);
    }

    /// Ends all processes at once: what they had in memory must be what is on disk.
    fn restart_all(&mut self) -> Result<(), String> {
        let before = self.rows();
        for node in 0..self.nodes.len() {
            self.crash(node, true);
            let after = self.prng.below(20_000_000);
            self.push(after, Event::Start { node });
        }
        self.settle()?;
        let after = self.rows();
        let named = before.iter().find_map(|(shard, rows)| {
            let now = after.get(shard)?;
            let found = difference(rows, now)?;
            Some(format!("{shard} {found}"))
        });
        named.map_or(Ok(()), |named| {
            Err(format!(
                "rows before the last restart and after it differ: {named}"
            ))
        })
    }

    /// The newest rows of each shard, without copies.
    fn rows(&self) -> BTreeMap<ShardId, Rows> {
        let rows = |shard: &Shard| (shard.id(), shard.rows(Ts::MAX));
        self.machines().map(rows).collect()
    }

    /// Digest of the newest rows of each shard.
    fn digests(&self) -> Vec<u64> {
        let digests = self.machines().map(|shard| shard.digest(Ts::MAX));
        digests.collect()
    }

    fn syncs(&self) -> Vec<u64> {
        self.nodes
            .iter()
            .map(|node| node.disk.counts().syncs)
            .collect()
    }

    fn fill(&mut self, report: &mut Report) {
        report.virtual_ns = self.now_ns;
        report.steps = self.steps;
        report.starts = self.starts;
        report.checkpoints = self.checkpoints;
        report.happened = self.happened.clone();
        report.longest_wait_ns = self.waits.longest_ns;
        report.syncs = self.syncs();
        for node in &self.nodes {
            let counts = node.disk.counts();
            report.lost += counts.lost;
            report.torn += counts.torn;
        }
        let digest = self.digests().iter().fold(0, |sum: u64, digest| {
            sum.rotate_left(7).wrapping_add(*digest)
        });
        report.prints = [self.trace.hash(), digest, self.prng.next_u64()];
    }
}
