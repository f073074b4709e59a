//! Keeps the nodes of a local cluster running: says why one has ended, and starts it again.
//!
//! The other nodes go on meanwhile. The pause before a start doubles with each death that comes
//! soon after the start before; after a few of those the node is given up, loudly.

use anyhow::{Result, bail};
use local_cluster::{Ended, LocalCluster};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A node that ends sooner than this after its first answer has not recovered from its trouble.
const SOON: Duration = Duration::from_secs(60);
/// So many deaths soon after a start, one after the other, and a node is given up.
const SOON_MAX: u32 = 5;
/// Pause before a node is started again; it doubles with every death that came soon.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// How often a node has died soon after its start, without a good life in between.
#[derive(Default)]
struct Deaths {
    soon: u32,
}

impl Deaths {
    /// The node has died after it served for `served` (`None`: it never did). How long to wait
    /// until it is started again; `None`: no more.
    fn on_death(&mut self, served: Option<Duration>) -> Option<Duration> {
        if served.is_some_and(|served| served >= SOON) {
            self.soon = 0;
        }
        self.soon += 1;
        (self.soon < SOON_MAX).then(|| FIRST_PAUSE * 2_u32.pow(self.soon - 1))
    }
}

/// Looks after a running cluster.
pub(crate) struct Supervisor {
    cluster: LocalCluster,
    deaths: BTreeMap<u16, Deaths>,
    /// Nodes that will be started again, and when.
    pausing: Vec<(Instant, Ended)>,
    given_up: Vec<u16>,
}

impl Supervisor {
    /// Of a cluster whose nodes all answer.
    pub(crate) fn new(cluster: LocalCluster) -> Supervisor {
        Supervisor {
            cluster,
            deaths: BTreeMap::new(),
            pausing: Vec::new(),
            given_up: Vec::new(),
        }
    }

    /// Runs until `is_told` to stop, or no node is left.
    ///
    /// # Errors
    /// A node was given up, or does not end well.
    pub(crate) fn run(mut self, dir: &Path, is_told: &mut dyn FnMut() -> bool) -> Result<()> {
        while !is_told() && !local_cluster::nodes::is_asked(dir) {
            while let Some(ended) = self.cluster.take_ended()? {
                self.on_ended(ended, dir);
            }
            self.start_due(dir);
            for node in self.cluster.take_returned() {
                say(&format!("node {node} answers again"));
            }
            if self.cluster.is_empty() && self.pausing.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.cluster.stop()?;
        if !self.given_up.is_empty() {
            let nodes: Vec<String> = self.given_up.iter().map(u16::to_string).collect();
            bail!("given up: node {}", nodes.join(", node "));
        }
        Ok(())
    }

    fn on_ended(&mut self, ended: Ended, dir: &Path) {
        let id = ended.node.id;
        let hold = local_cluster::nodes::hold_file(dir, id);
        if hold.exists() {
            // Its end was wanted, and says nothing about the node.
            say(&format!(
                "{ended}; it is started again when {} is removed",
                hold.display()
            ));
            return self.pausing.push((Instant::now(), ended));
        }
        if ended.status.success() {
            // Somebody has stopped this node in good order; `trellis stop` stops all.
            return say(&format!("node {id} has stopped"));
        }
        say(&ended.to_string());
        for line in &ended.last_lines {
            say(&format!("node {id} | {line}"));
        }
        let deaths = self.deaths.entry(id).or_default();
        match deaths.on_death(ended.served) {
            Some(pause) => {
                let seconds = pause.as_secs_f64();
                say(&format!("node {id} is started again in {seconds} s"));
                self.pausing.push((Instant::now() + pause, ended));
            }
            None => self.give_up(id),
        }
    }

    fn give_up(&mut self, id: u16) {
        say(&format!(
            "node {id} ended {SOON_MAX} times soon after its start and is GIVEN UP; the reason is \
             in the lines above. The other nodes go on without its rows"
        ));
        self.given_up.push(id);
    }

    fn start_due(&mut self, dir: &Path) {
        let now = Instant::now();
        let (due, later) = self.pausing.drain(..).partition(|(at, ended)| {
            *at <= now && !local_cluster::nodes::hold_file(dir, ended.node.id).exists()
        });
        self.pausing = later;
        let due: Vec<(Instant, Ended)> = due;
        for (_, Ended { node, path, .. }) in due {
            let id = node.id;
            if let Err(error) = self.cluster.start_again(node, path) {
                say(&format!("node {id}: {error:#}"));
                self.give_up(id);
            }
        }
    }
}

fn say(line: &str) {
    // A terminal that is gone hears nothing; the cluster goes on.
    let _ = writeln!(std::io::stderr(), "trellis: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_node_is_given_up_or_has_served_well() {
        let mut deaths = Deaths::default();
        let millis = |pause: Option<Duration>| pause.map(|pause| pause.as_millis());
        let brief = Some(Duration::from_secs(2));
        assert_eq!(millis(deaths.on_death(brief)), Some(250));
        assert_eq!(millis(deaths.on_death(None)), Some(500));
        assert_eq!(millis(deaths.on_death(brief)), Some(1_000));
        assert_eq!(millis(deaths.on_death(Some(SOON))), Some(250));
        for expected in [Some(500), Some(1_000), Some(2_000), None] {
            assert_eq!(millis(deaths.on_death(None)), expected);
        }
    }
}
