//! Runs whose transactions touch nodes as they are told ([`workload::dike`]): what was drawn, what
//! has committed, and what the server says of it.

use crate::answers::Answers;
use crate::error::{DriveError, While};
use crate::homes::nodes_of;
use crate::link::{Link, LinkError};
use crate::server::Server;
use crate::url::Target;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use workload::dike::{Controls, Distribution, Mix, Mode, Placement, Wanted, expectation};
use workload::finding::{Finding, Verdict};
use workload::stats::binomial_interval;
use workload::tpcc::Scale;
use workload::tpcc::input::Input;

/// The most nodes that an order can touch, and one more.
const DEGREES: usize = 17;

/// How long the server may take to say what it has counted.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// What is controlled of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DikeOptions {
    /// How transactions are distributed; `None`: each stays at its home warehouse's node.
    pub distribution: Option<Wanted>,
    /// Nodes among which the warehouses are spread evenly, where the server does not tell which
    /// lies where.
    pub nodes: Option<u32>,
    /// Shares of the transactions.
    pub mix: Mix,
}

/// Transactions by the number of nodes that they touch.
pub type Degrees = BTreeMap<u64, u64>;

/// How the transactions of a run were distributed.
#[derive(Clone, Debug)]
pub struct DistributionReport {
    /// What was asked for.
    pub requested: Wanted,
    /// Mean number of warehouses of a distributed transaction.
    pub keys: f64,
    /// The nodes that the paper's equation 2 expects of so many, rounded down.
    pub paper_degree: f64,
    /// Nodes with a warehouse.
    pub nodes: usize,
    /// Share of the drawn NewOrders that are distributed.
    pub drawn_ratio: f64,
    /// Of committed transactions, by their inputs; `None`: nobody knows where warehouses lie.
    pub committed: Option<Degrees>,
    /// The same of transactions with an unknown outcome.
    pub unknown: Option<Degrees>,
    /// Of committed transactions, as the server has counted them; `None`: it does not, or a node
    /// was away or has started anew.
    pub observed_by_server: Option<Degrees>,
}

impl DistributionReport {
    /// Transactions of which the server says another number of nodes than their inputs; `None`:
    /// one of both is not known.
    pub fn wrong(&self) -> Option<u64> {
        let (committed, unknown) = (self.committed.as_ref()?, self.unknown.as_ref()?);
        let server = self.observed_by_server.as_ref()?;
        let count = |all: &Degrees, nodes: u64| all.get(&nodes).copied().unwrap_or(0);
        let wrong = (1..DEGREES as u64).map(|nodes| {
            let least = count(committed, nodes);
            let most = least + count(unknown, nodes);
            let seen = count(server, nodes);
            least.saturating_sub(seen) + seen.saturating_sub(most)
        });
        Some(wrong.sum())
    }

    /// The share of transactions that touch several nodes.
    pub fn ratio(histogram: &Degrees) -> f64 {
        let of = |wanted: fn(u64) -> bool| -> u64 {
            let some = histogram.iter().filter(|(nodes, _)| wanted(**nodes));
            some.map(|(_, count)| count).sum()
        };
        of(|nodes| nodes > 1) as f64 / of(|nodes| nodes > 0).max(1) as f64
    }
}

/// What `SHOW DISTRIBUTION` said.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counted {
    degrees: Degrees,
    /// Each node with how often it has started; `None`: it cannot be reached.
    nodes: Vec<(Option<i64>, Option<i64>)>,
}

impl Counted {
    /// What was counted between the two; `None`: a node was away or has started anew, and its
    /// counts are lost.
    fn gain(before: &Counted, after: &Counted) -> Option<Degrees> {
        let is_up = |(_, starts): &(Option<i64>, Option<i64>)| starts.is_some();
        if before.nodes != after.nodes || !after.nodes.iter().all(is_up) {
            return None;
        }
        let gain = |(nodes, count): (&u64, &u64)| {
            let gained = count.saturating_sub(before.degrees.get(nodes).copied().unwrap_or(0));
            (*nodes > 0 && gained > 0).then_some((*nodes, gained))
        };
        Some(after.degrees.iter().filter_map(gain).collect())
    }
}

/// What the server has counted, as the first and as the last of several questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    first: Option<Counted>,
    last: Option<Counted>,
}

impl Told {
    /// Asks before and after `between`, which asks the server other things.
    pub(crate) fn around<T>(
        target: &Target,
        server: &Server,
        between: impl FnOnce() -> Result<T, DriveError>,
    ) -> Result<(T, Told), DriveError> {
        let ask = || match server.is_trellis {
            true => ask(target).map(Some).during("asking for the distribution"),
            false => Ok(None),
        };
        let first = ask()?;
        let result = between()?;
        let last = ask()?;
        Ok((result, Told { first, last }))
    }
}

fn ask(target: &Target) -> Result<Counted, LinkError> {
    let mut link = Link::connect_any(target, Some(ANSWER_LIMIT))?;
    let mut answers = Answers::new();
    link.query("SHOW NODES", &mut answers)?;
    let rows = 0..answers.rows(0);
    let nodes = rows.map(|row| (answers.int(0, row, 0), answers.int(0, row, 2)));
    let nodes = nodes.collect();
    let mut answers = Answers::new();
    link.query("SHOW DISTRIBUTION", &mut answers)?;
    let rows = 0..answers.rows(0);
    let number = |row: usize, column: usize| {
        let number = answers.int(0, row, column).unwrap_or(0);
        u64::try_from(number).unwrap_or(0)
    };
    let degrees = rows.map(|row| (number(row, 0), number(row, 1))).collect();
    link.close();
    Ok(Counted { degrees, nodes })
}

/// The controls of a run, and what has become of its transactions.
#[derive(Debug)]
pub(super) struct Dike {
    pub(super) controls: Arc<Controls>,
    /// Whether the placement was read and not assumed.
    knows_placement: bool,
    drawn: [AtomicU64; 2],
    committed: [AtomicU64; DEGREES],
    unknown: [AtomicU64; DEGREES],
}

impl Dike {
    /// Reads where the warehouses lie, and prepares what is wanted.
    pub(super) fn new(
        link: &mut Link,
        server: &Server,
        scale: &Scale,
        options: &DikeOptions,
    ) -> Result<Dike, DriveError> {
        let refuse = |text: String| Err(DriveError::Option(text));
        let known = match server.is_trellis {
            true => Some(read_placement(link, scale)?),
            false => None,
        };
        let knows_placement = known.is_some();
        let distribution = match (options.distribution, known, options.nodes) {
            (None, ..) => None,
            (Some(_), Some(_), Some(_)) => {
                return refuse("the server tells where warehouses lie: leave --nodes out".into());
            }
            (Some(wanted), None, None) if wanted.mode == Mode::Statistical => {
                return refuse(
                    "the server does not tell how many nodes it has: say --nodes".into(),
                );
            }
            (Some(wanted), None, _) if wanted.mode == Mode::Exact => {
                let text = "the server does not tell which node is home of a warehouse: only \
                            --distribution statistical is possible";
                return refuse(text.into());
            }
            (Some(wanted), known, nodes) => {
                let even = || Placement::even(scale.warehouses, nodes.unwrap_or(1));
                let placement = known.unwrap_or_else(even);
                let distribution = Distribution::new(wanted, placement);
                let distribution = distribution.map_err(|it| DriveError::Option(it.to_string()))?;
                Some(Arc::new(distribution))
            }
        };
        Ok(Dike {
            controls: Arc::new(Controls {
                distribution,
                mix: options.mix,
            }),
            knows_placement,
            drawn: Default::default(),
            committed: Default::default(),
            unknown: Default::default(),
        })
    }

    /// For the description of the run.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("mix", self.controls.mix.to_string())];
        if let Some(distribution) = &self.controls.distribution {
            let wanted = distribution.wanted();
            all.extend([
                ("distribution", wanted.mode.name().to_string()),
                ("ratio_percent", (wanted.ratio * 100.0).to_string()),
                ("degree", wanted.degree.to_string()),
                (
                    "nodes_with_warehouses",
                    distribution.placement().nodes().to_string(),
                ),
            ]);
        }
        all
    }

    /// An input was drawn.
    pub(super) fn note_drawn(&self, input: &Input) {
        if let Input::NewOrder(order) = input {
            let home = order.warehouse;
            let mut lines = order.lines.iter();
            let distributed = lines.any(|line| line.supply_warehouse != home);
            self.drawn[usize::from(distributed)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A transaction has committed, or nobody knows whether it has.
    pub(super) fn note_ended(&self, input: &Input, committed: bool) {
        let Some(distribution) = &self.controls.distribution else {
            return;
        };
        let degree = distribution.placement().degree(input).min(DEGREES - 1);
        let counts = match committed {
            true => &self.committed,
            false => &self.unknown,
        };
        counts[degree].fetch_add(1, Ordering::Relaxed);
    }

    /// What the run has shown, with what the server said before and after it.
    pub(super) fn report(&self, before: &Told, after: &Told) -> Option<DistributionReport> {
        let distribution = self.controls.distribution.as_ref()?;
        let placement = distribution.placement();
        let histogram = |counts: &[AtomicU64; DEGREES]| {
            let counts = (0..).zip(counts);
            let counts = counts.map(|(nodes, count)| (nodes, count.load(Ordering::Relaxed)));
            let all: Degrees = counts.filter(|(_, count)| *count > 0).collect();
            self.knows_placement.then_some(all)
        };
        let server = before.last.as_ref().zip(after.first.as_ref());
        let drawn = [0, 1].map(|at| self.drawn[at].load(Ordering::Relaxed) as f64);
        Some(DistributionReport {
            requested: distribution.wanted(),
            keys: distribution.keys(),
            paper_degree: expectation::with_replacement(
                &placement.sizes(),
                distribution.keys() as u32,
            ),
            nodes: placement.nodes(),
            drawn_ratio: drawn[1] / (drawn[0] + drawn[1]).max(1.0),
            committed: histogram(&self.committed),
            unknown: histogram(&self.unknown),
            observed_by_server: server.and_then(|(before, after)| Counted::gain(before, after)),
        })
    }

    /// The share of distributed NewOrders, and the nodes as the server counts them.
    pub(super) fn findings(&self, report: &DistributionReport) -> Vec<Finding> {
        let drawn = [0, 1].map(|at| self.drawn[at].load(Ordering::Relaxed));
        let orders = drawn[0] + drawn[1];
        let wanted = report.requested.ratio;
        let (low, high) = binomial_interval(orders, wanted, 0.999);
        let percent = |count: u64| 100.0 * count as f64 / orders.max(1) as f64;
        let ratio = Finding {
            clause: "4.2.1",
            title: "distributed new orders",
            samples: orders,
            observed: format!("{:.2} %", percent(drawn[1])),
            allowed: format!("{:.2} to {:.2} %", percent(low), percent(high)),
            verdict: match (orders, (low..=high).contains(&drawn[1])) {
                (0, _) => Verdict::NotApplicable,
                (_, true) => Verdict::Passed,
                (_, false) => Verdict::Failed,
            },
        };
        let server: u64 = report
            .observed_by_server
            .iter()
            .flatten()
            .map(|it| it.1)
            .sum();
        let degrees = Finding {
            clause: "4.2.1",
            title: "nodes touched, as the server counts",
            samples: server,
            observed: match report.wrong() {
                Some(wrong) => format!("{wrong} wrong"),
                None => "not told".into(),
            },
            allowed: "0 wrong".into(),
            verdict: match report.wrong() {
                Some(0) => Verdict::Passed,
                Some(_) => Verdict::Failed,
                None => Verdict::NotApplicable,
            },
        };
        vec![ratio, degrees]
    }
}

/// Where the warehouses lie, and the items where they have homes.
fn read_placement(link: &mut Link, scale: &Scale) -> Result<Placement, DriveError> {
    let mut nodes = |table, count| -> Result<Option<Vec<u32>>, DriveError> {
        let nodes = nodes_of(link, table, count).during("reading the placement")?;
        let numbers = nodes.into_iter().map(|node| u32::try_from(node?).ok());
        let numbers: Option<Vec<u32>> = numbers.collect();
        Ok(numbers.filter(|all| all.len() == count as usize))
    };
    let Some(warehouses) = nodes("warehouse", scale.warehouses)? else {
        return Err(DriveError::NotLoaded(
            "the server does not know the home of each warehouse".into(),
        ));
    };
    let placement = Placement::new(&warehouses);
    Ok(match nodes("item", scale.items)? {
        Some(items) => placement.with_items(items),
        None => placement,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(counts: &[(u64, u64)]) -> Degrees {
        counts.iter().copied().collect()
    }

    fn counted(counts: &[(u64, u64)], starts: Option<i64>) -> Counted {
        Counted {
            degrees: degrees(counts),
            nodes: vec![(Some(1), Some(1)), (Some(2), starts)],
        }
    }

    #[test]
    fn what_was_counted_before_does_not_count() {
        let before = counted(&[(0, 5), (1, 10)], Some(1));
        let after = counted(&[(0, 9), (1, 17), (3, 2)], Some(1));
        let gain = Counted::gain(&before, &after);
        assert_eq!(gain, Some(degrees(&[(1, 7), (3, 2)])));
        // A node has started anew, or cannot be reached.
        for starts in [Some(2), None] {
            let after = counted(&[(1, 20)], starts);
            assert_eq!(Counted::gain(&before, &after), None);
            assert_eq!(Counted::gain(&after, &after).is_some(), starts.is_some());
        }
    }

    #[test]
    fn wrong_degrees_are_counted() {
        let report = |server: &[(u64, u64)]| DistributionReport {
            requested: Wanted {
                mode: Mode::Exact,
                ratio: 0.5,
                degree: 3,
            },
            keys: 3.0,
            paper_degree: 2.0,
            nodes: 3,
            drawn_ratio: 0.5,
            committed: Some(degrees(&[(1, 10), (3, 10)])),
            unknown: Some(degrees(&[(3, 2)])),
            observed_by_server: Some(degrees(server)),
        };
        for (server, wrong) in [
            (&[(1, 10), (3, 10)][..], 0),
            // Of unknown outcome, and committed.
            (&[(1, 10), (3, 12)], 0),
            (&[(1, 10), (3, 13)], 1),
            (&[(1, 9), (2, 1), (3, 10)], 2),
            (&[], 20),
        ] {
            assert_eq!(report(server).wrong(), Some(wrong), "{server:?}");
        }
        let nobody = DistributionReport {
            observed_by_server: None,
            ..report(&[])
        };
        assert_eq!(nobody.wrong(), None);
    }
}
