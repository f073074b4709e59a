//! Runs whose transactions touch nodes as they are told ([`workload::dike`]): what was drawn, what
//! has committed, and what the server says of it.

mod options;
mod report;

pub use options::DikeOptions;
pub use report::{Degrees, DistributionReport};

use super::contention::{Contention, hot_rows};
use super::imbalance::{Drawn, ImbalanceReport};
use super::told::Told;
use crate::shape::{Done, Ending, Failure};
use links::error::{DriveError, While};
use links::homes::nodes_of;
use links::link::Link;
use links::server::Server;
use links::url::Target;
use report::{input_finding, server_finding};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use workload::dike::dynamics::Dynamics;
use workload::dike::imbalance::{Homes, Imbalance};
use workload::dike::{Controls, Mode, Placement, expectation};
use workload::finding::{Finding, Verdict};
use workload::stats::binomial_interval;
use workload::tpcc::input::Input;
use workload::tpcc::{Kind, Scale};

/// How often what follows the time is told it.
const TELL_EVERY: Duration = Duration::from_millis(10);

/// Transactions by the number of nodes of their inputs.
#[derive(Debug)]
struct Counts {
    /// By that number, from 0 to the most that are possible.
    degrees: Vec<AtomicU64>,
    new_orders: AtomicU64,
}

impl Counts {
    fn new(degree_max: usize) -> Counts {
        let degrees = std::iter::repeat_with(AtomicU64::default);
        Counts {
            degrees: degrees.take(degree_max + 1).collect(),
            new_orders: AtomicU64::new(0),
        }
    }

    fn count(&self, degree: usize, kind: Kind) {
        self.degrees[degree].fetch_add(1, Ordering::Relaxed);
        if kind == Kind::NewOrder {
            self.new_orders.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn new_orders(&self) -> u64 {
        self.new_orders.load(Ordering::Relaxed)
    }

    fn degrees(&self) -> Degrees {
        let counts = (0..).zip(&self.degrees);
        let counts = counts.map(|(nodes, count)| (nodes, count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

/// The controls of a run, and what has become of its transactions.
#[derive(Debug)]
pub(super) struct Dike {
    pub(super) controls: Arc<Controls>,
    /// Whether the placement was read and not assumed.
    knows_placement: bool,
    /// Where orders compete for rows.
    pub(super) contention: Option<Contention>,
    imbalance: Imbalance,
    homes: Drawn,
    drawn: [AtomicU64; 2],
    committed: Counts,
    unknown: Counts,
}

impl Dike {
    /// Whether the run is watched.
    pub(super) fn attends(&self) -> bool {
        self.contention.is_some() || self.is_dynamic()
    }

    /// Whether the run is to change in its course.
    pub(super) fn changes(&self) -> bool {
        let contention = self.contention.as_ref();
        contention.is_some_and(Contention::changes) || self.is_dynamic()
    }

    /// Whether inputs depend on the second of the run.
    fn is_dynamic(&self) -> bool {
        let moves = self.controls.homes.as_ref().is_some_and(Homes::moves);
        moves || !self.controls.dynamics.is_still()
    }

    /// Steers what competes, and tells the time to what follows it.
    pub(super) fn attend(
        &self,
        target: &Target,
        server: &Server,
        second: &dyn Fn() -> Option<f64>,
    ) {
        let told = || {
            let now = second()?;
            self.controls.dynamics.set_second(now);
            Some(now)
        };
        match &self.contention {
            Some(contention) => contention.attend(target, server, &told),
            None => {
                while told().is_some() {
                    std::thread::sleep(TELL_EVERY);
                }
            }
        }
    }

    /// How unevenly transactions were dealt; `None`: that was not asked for.
    pub(super) fn imbalance(&self, scale: &Scale) -> Option<ImbalanceReport> {
        let homes = self.controls.homes.as_ref();
        let follows_curve = self.controls.dynamics.hot_share().is_some();
        let is_asked_for = self.imbalance != Imbalance::default();
        is_asked_for
            .then(|| ImbalanceReport::new(self.imbalance, scale, homes, follows_curve, &self.homes))
    }

    /// Reads where the warehouses lie, and prepares what is wanted.
    pub(super) fn new(
        link: &mut Link,
        server: &Server,
        scale: &Scale,
        options: &DikeOptions,
    ) -> Result<Dike, DriveError> {
        let known = match server.is_trellis && options.distribution.is_some() {
            true => Some(read_placement(link, scale)?),
            false => None,
        };
        Dike::of(known, scale, options)
    }

    /// The same with what the server has told of the placement.
    fn of(
        known: Option<Placement>,
        scale: &Scale,
        options: &DikeOptions,
    ) -> Result<Dike, DriveError> {
        let knows_placement = known.is_some();
        let distribution = options.distribution(known, scale.warehouses)?;
        let placement = distribution.as_ref().map(|it| it.placement());
        let degree_max = placement.map_or(0, Placement::degree_max);
        let hot_rows = hot_rows(options.contention.len(), scale, distribution.as_deref());
        let contention = Contention::new(&hot_rows, &options.contention, options.control);
        Ok(Dike {
            controls: Arc::new(Controls {
                distribution,
                hot_rows,
                mix: options.mix,
                homes: options
                    .imbalance
                    .access
                    .map(|access| Homes::new(access, scale.warehouses)),
                dynamics: Dynamics::new(options.mix_curves.clone(), options.hot_curve.clone()),
            }),
            imbalance: options.imbalance,
            homes: Drawn::new(scale.warehouses),
            contention,
            knows_placement,
            drawn: Default::default(),
            committed: Counts::new(degree_max),
            unknown: Counts::new(degree_max),
        })
    }

    /// For the description of the run.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("mix", self.controls.mix.to_string())];
        all.extend(self.controls.dynamics.describe());
        if let Some(skew) = self.imbalance.data {
            all.push(("data", format!("zipf:{skew}")));
        }
        if let Some(homes) = &self.controls.homes {
            all.push(("access", homes.describe()));
        }
        if let Some(contention) = &self.contention {
            all.push(("contention", contention.describe()));
        }
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

    /// Runs `between`, and where transactions are distributed asks the server before and after it
    /// what it has counted.
    pub(super) fn told_around<T>(
        &self,
        target: &Target,
        server: &Server,
        between: impl FnOnce() -> Result<T, DriveError>,
    ) -> Result<(T, Told), DriveError> {
        match server.is_trellis && self.controls.distribution.is_some() {
            true => Told::around(target, between),
            false => Ok((between()?, Told::nothing())),
        }
    }

    /// An input was drawn.
    pub(super) fn note_drawn(&self, input: &Input) {
        if self.imbalance != Imbalance::default() {
            self.homes.note(input);
        }
        if let Input::NewOrder(order) = input {
            let home = order.warehouse;
            let distribution = self.controls.distribution.as_ref();
            let is_hot_near = |warehouse: u32| {
                let hot = order.hot.as_ref().map(|hot| hot.row().warehouse);
                let placement = distribution.map(|it| it.placement());
                hot == Some(warehouse)
                    && placement.is_some_and(|it| it.is_one_node(home, warehouse))
            };
            let mut suppliers = order.lines.iter().map(|line| line.supply_warehouse);
            let distributed = suppliers.any(|it| it != home && !is_hot_near(it));
            self.drawn[usize::from(distributed)].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Has an order wait for others, where it must.
    pub(super) async fn wait_turn(&self, input: &Input) {
        if let Some(contention) = &self.contention {
            contention.wait_turn(input).await;
        }
    }

    /// Grows when orders that wait may go on.
    pub(super) fn turns(&self) -> Option<u64> {
        self.contention.as_ref()?.turns()
    }

    /// An attempt has ended. It counts if it has committed, or may have.
    pub(super) fn note_ended(&self, input: &Input, result: &Result<Done, Failure>) {
        if let Some(contention) = &self.contention {
            let runs_again = matches!(
                result,
                Err(Failure::Aborted(_) | Failure::Conflict(_) | Failure::Lost(_))
            );
            contention.note_attempt(input, !runs_again);
            if result.is_ok() {
                contention.note_ended(input);
            }
        }
        let Some(distribution) = &self.controls.distribution else {
            return;
        };
        let counts = match result {
            Ok(done) => match done.ending {
                Ending::Committed => &self.committed,
                Ending::RolledBack => return,
            },
            // Some wrong answers are seen when COMMIT has been answered, others before.
            Err(Failure::Unknown(_) | Failure::Wrong(_)) => &self.unknown,
            Err(Failure::Aborted(_) | Failure::Conflict(_) | Failure::Lost(_)) => return,
        };
        counts.count(distribution.placement().degree(input), input.kind());
    }

    /// What the run has shown, with what the server said before and after it.
    pub(super) fn report(&self, before: &Told, after: &Told) -> Option<DistributionReport> {
        let distribution = self.controls.distribution.as_ref()?;
        let placement = distribution.placement();
        let known = |counts: &Counts| self.knows_placement.then(|| counts.degrees());
        let (observed_by_server, not_told) = match Told::gain(before, after) {
            Ok(degrees) => (Some(degrees), None),
            Err(reason) => (None, Some(reason)),
        };
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
            new_orders: self.committed.new_orders(),
            new_orders_unknown: self.unknown.new_orders(),
            committed: known(&self.committed),
            unknown: known(&self.unknown),
            observed_by_server,
            not_told,
        })
    }

    /// The share of distributed NewOrders, their nodes by their inputs where these are exact, and
    /// the nodes as the server counts them.
    pub(super) fn findings(&self, report: &DistributionReport) -> Vec<Finding> {
        let mut findings = vec![self.share_finding(report)];
        if report.requested.mode == Mode::Exact {
            findings.push(input_finding(report));
        }
        findings.push(server_finding(report));
        findings
    }

    fn share_finding(&self, report: &DistributionReport) -> Finding {
        let drawn = [0, 1].map(|at| self.drawn[at].load(Ordering::Relaxed));
        let orders = drawn[0] + drawn[1];
        let wanted = report.requested.ratio;
        let (low, high) = binomial_interval(orders, wanted, 0.999);
        let percent = |count: u64| 100.0 * count as f64 / orders.max(1) as f64;
        Finding {
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
        }
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
    use crate::run::RunnerOptions;
    use links::link::LinkError;
    use std::io::ErrorKind;
    use workload::dike::Wanted;
    use workload::tpcc::input::{Line, NewOrder, StockLevel};

    fn degrees(counts: &[(u64, u64)]) -> Degrees {
        counts.iter().copied().collect()
    }

    fn options(mode: Mode, degree: u32) -> DikeOptions {
        DikeOptions {
            distribution: Some(Wanted {
                mode,
                ratio: 0.5,
                degree,
            }),
            ..DikeOptions::default()
        }
    }

    fn report(server: &[(u64, u64)]) -> DistributionReport {
        DistributionReport {
            requested: options(Mode::Exact, 3).distribution.unwrap(),
            keys: 3.0,
            paper_degree: 2.0,
            nodes: 3,
            drawn_ratio: 0.5,
            new_orders: 20,
            new_orders_unknown: 2,
            committed: Some(degrees(&[(1, 10), (3, 10)])),
            unknown: Some(degrees(&[(3, 2)])),
            observed_by_server: Some(degrees(server)),
            not_told: None,
        }
    }

    /// An order of warehouse 1 to which these supply a line each.
    fn order(suppliers: &[u32]) -> Input {
        let line = |warehouse: &u32| Line {
            item: 1,
            supply_warehouse: *warehouse,
            quantity: 1,
        };
        Input::NewOrder(NewOrder {
            warehouse: 1,
            district: 1,
            customer: 1,
            lines: suppliers.iter().map(line).collect(),
            hot: None,
        })
    }

    /// A run on this many nodes with a warehouse each.
    fn dike(nodes: u32, options: &DikeOptions) -> Dike {
        Dike::of(
            Some(Placement::even(nodes, nodes)),
            &Scale::standard(nodes),
            options,
        )
        .unwrap()
    }

    fn nothing(dike: &Dike) -> DistributionReport {
        dike.report(&Told::nothing(), &Told::nothing()).unwrap()
    }

    fn verdict_of(findings: &[Finding], title: &str) -> Option<Verdict> {
        let mut found = findings.iter().filter(|it| it.title.starts_with(title));
        found.next().map(|finding| finding.verdict)
    }

    #[test]
    fn wrong_degrees_are_counted() {
        for (server, wrong) in [
            (&[(1, 10), (3, 10)][..], 0),
            // Of unknown outcome, and committed.
            (&[(1, 10), (3, 12)], 0),
            (&[(1, 10), (3, 13)], 1),
            (&[(1, 9), (2, 1), (3, 10)], 2),
            // More nodes than any order has lines.
            (&[(1, 10), (3, 10), (17, 1), (200, 4)], 5),
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

    #[test]
    fn many_nodes_are_counted_as_they_are() {
        let dike = dike(25, &options(Mode::Exact, 2));
        let all: Vec<u32> = (1..=25).collect();
        for suppliers in [&all[..17], &all[..16], &all] {
            dike.note_ended(&order(suppliers), &Ok(Done::committed(1)));
        }
        let committed = nothing(&dike).committed;
        assert_eq!(committed, Some(degrees(&[(16, 1), (17, 1), (25, 1)])));
    }

    #[test]
    fn an_input_with_another_degree_than_requested_is_found() {
        let told = |mode, ended: &[(&[u32], bool)]| {
            let dike = dike(5, &options(mode, 3));
            for (suppliers, is_known) in ended {
                let lost = LinkError::Io(ErrorKind::BrokenPipe, String::new());
                let result = match is_known {
                    true => Ok(Done::committed(1)),
                    false => Err(Failure::Unknown(lost)),
                };
                dike.note_ended(&order(suppliers), &result);
            }
            verdict_of(&dike.findings(&nothing(&dike)), "nodes of the inputs")
        };
        let right: &[u32] = &[2, 3, 1];
        let wrong: &[u32] = &[2, 2];
        let passed = told(Mode::Exact, &[(right, true), (&[1], true), (right, false)]);
        assert_eq!(passed, Some(Verdict::Passed));
        let failed = told(Mode::Exact, &[(right, true), (wrong, true)]);
        assert_eq!(failed, Some(Verdict::Failed));
        assert_eq!(told(Mode::Exact, &[(wrong, false)]), Some(Verdict::Failed));
        assert_eq!(told(Mode::Statistical, &[(wrong, true)]), None);
    }

    /// A wrong answer may be that of a transaction that has committed: whether the server counts it
    /// or not, no degree is wrong.
    #[test]
    fn a_wrong_answer_makes_no_degree_wrong() {
        let dike = dike(3, &options(Mode::Exact, 2));
        let level = Input::StockLevel(StockLevel {
            warehouse: 1,
            district: 1,
            threshold: 10,
        });
        dike.note_ended(&level, &Err(Failure::Wrong("no count".into())));
        dike.note_ended(&order(&[2]), &Err(Failure::Wrong("no stock".into())));
        dike.note_ended(&order(&[1]), &Ok(Done::committed(1)));
        dike.note_ended(&order(&[2]), &Err(Failure::Conflict("overtaken")));
        let told = nothing(&dike);
        assert_eq!((told.new_orders, told.new_orders_unknown), (1, 1));
        for server in [&[(1, 1)][..], &[(1, 2)], &[(1, 2), (2, 1)]] {
            let told = DistributionReport {
                observed_by_server: Some(degrees(server)),
                ..told.clone()
            };
            assert_eq!(told.wrong(), Some(0), "{server:?}");
        }
    }

    /// Only NewOrders are distributed, so shares are theirs, as the requested one is.
    #[test]
    fn ratios_are_shares_of_new_orders() {
        let report = DistributionReport {
            new_orders: 20,
            new_orders_unknown: 0,
            committed: Some(degrees(&[(1, 90), (3, 10)])),
            ..report(&[(1, 85), (2, 5), (3, 10)])
        };
        assert_eq!(report.ratio_committed(), Some(0.5));
        assert_eq!(report.ratio_observed(), Some(0.75));
        let unknown = DistributionReport {
            new_orders_unknown: 10,
            observed_by_server: None,
            ..report.clone()
        };
        assert_eq!(unknown.ratio_committed(), Some(0.5));
        assert_eq!(unknown.ratio_observed(), None);
        let unknown = DistributionReport {
            new_orders_unknown: 10,
            ..report
        };
        assert_eq!(unknown.ratio_observed(), Some(0.5));
    }

    #[test]
    fn a_distribution_needs_new_orders() {
        let options = |mix: &str, is_distributed: bool| {
            let options = options(Mode::Exact, 2);
            let distribution = options.distribution.filter(|_| is_distributed);
            let mix = mix.parse().unwrap();
            DikeOptions {
                distribution,
                mix,
                ..options
            }
        };
        let refused = options("payment:1,delivery:2", true).validate(&RunnerOptions::default());
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("payment:1") && text.contains("new_order"),
            "{text}"
        );
        assert!(
            options("payment:1", false)
                .validate(&RunnerOptions::default())
                .is_ok()
        );
        assert!(
            options("new_order:1", true)
                .validate(&RunnerOptions::default())
                .is_ok()
        );
    }

    #[test]
    fn without_a_distribution_the_server_is_not_asked() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Target::parse(&format!("postgres://127.0.0.1:{port}/shop")).unwrap();
        let server = Server {
            is_trellis: true,
            ..Server::default()
        };
        let options = DikeOptions {
            distribution: None,
            ..options(Mode::Exact, 2)
        };
        let dike = Dike::of(None, &Scale::standard(3), &options).unwrap();
        let (seven, told) = dike.told_around(&target, &server, || Ok(7)).unwrap();
        assert_eq!((seven, told), (7, Told::nothing()));
        let asked = listener.accept().map(|_| ()).unwrap_err();
        assert_eq!(asked.kind(), ErrorKind::WouldBlock);
    }
}
