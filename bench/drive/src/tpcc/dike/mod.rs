//! Runs whose transactions touch nodes as they are told ([`workload::dike`]): what was drawn, what
//! has committed, and what the server says of it.

mod options;
mod report;

pub use options::DikeOptions;
pub use report::{Broadcasts, Degrees, DistributionReport};

use super::contention::{Contention, hot_rows};
use super::imbalance::{Drawn, ImbalanceReport};
use super::told::Told;
use crate::shape::{Done, Ending, Failure, Steering};
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
use workload::dike::further::{Groups, OneSnapshot};
use workload::dike::imbalance::{Homes, Imbalance};
use workload::dike::{Controls, Mode, Placement, expectation};
use workload::finding::{Finding, Verdict};
use workload::stats::binomial_interval;
use workload::tpcc::input::{Input, NewOrder};
use workload::tpcc::{Kind, Scale};
use workload::wire::Isolation;

/// How often what follows the time is told it.
const TELL_EVERY: Duration = Duration::from_millis(10);

/// Transactions by the number of nodes of their inputs.
#[derive(Debug)]
struct Counts {
    /// By that number, from 0 to the most that are possible.
    degrees: Vec<AtomicU64>,
    /// By kind.
    kinds: [AtomicU64; Kind::ALL.len()],
}

impl Counts {
    fn new(degree_max: usize) -> Counts {
        let degrees = std::iter::repeat_with(AtomicU64::default);
        Counts {
            degrees: degrees.take(degree_max + 1).collect(),
            kinds: Default::default(),
        }
    }

    fn count(&self, degree: usize, kind: Kind) {
        self.degrees[degree].fetch_add(1, Ordering::Relaxed);
        self.kinds[kind.number()].fetch_add(1, Ordering::Relaxed);
    }

    fn of(&self, kind: Kind) -> u64 {
        self.kinds[kind.number()].load(Ordering::Relaxed)
    }

    fn distributable(&self) -> u64 {
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.is_distributable());
        kinds.map(|kind| self.of(kind)).sum()
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
    /// Whether there are other transactions than those of TPC-C.
    pub(super) has_further: bool,
    /// Whether there are changes of rows that each node has.
    has_broadcasts: bool,
    /// Where orders compete for rows.
    pub(super) contention: Option<Contention>,
    imbalance: Imbalance,
    homes: Drawn,
    /// By kind: those that stay on one node, and those that do not.
    drawn: [[AtomicU64; 2]; Kind::ALL.len()],
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
        steering: Steering<'_>,
    ) {
        let told = || {
            let now = second()?;
            self.controls.dynamics.set_second(now);
            Some(now)
        };
        match &self.contention {
            Some(contention) => contention.attend(target, server, &told, steering),
            // Who leads has no transactions that could follow.
            None if matches!(steering, Steering::Leads(_)) => {}
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
        run: (&DikeOptions, Isolation, u64),
    ) -> Result<Dike, DriveError> {
        let known = match server.is_trellis && run.0.distribution.is_some() {
            true => Some(read_placement(link, scale, server.nodes)?),
            false => None,
        };
        Dike::of(known, scale, run)
    }

    /// The same with what the server has told of the placement.
    fn of(
        known: Option<Placement>,
        scale: &Scale,
        (options, isolation, seed): (&DikeOptions, Isolation, u64),
    ) -> Result<Dike, DriveError> {
        let knows_placement = known.is_some();
        let distribution = options.distribution(known, scale.warehouses)?;
        let placement = distribution.as_ref().map(|it| it.placement());
        let degree_max = placement.map_or(0, Placement::degree_max);
        let hot_rows = hot_rows(options.contention.len(), scale, distribution.as_deref());
        let contention = Contention::new(&hot_rows, &options.contention, options.control);
        let has = |kind| options.has(kind);
        let settings = options.further;
        let met = settings.meet(&has, scale.warehouses, distribution.as_deref());
        met.map_err(|error| DriveError::Option(error.to_string()))?;
        let groups = match options.has_further() {
            true => {
                let one_snapshot = OneSnapshot(isolation != Isolation::ReadCommitted);
                Groups::new(settings, one_snapshot, scale, seed, distribution.as_deref())
            }
            false => Groups::default(),
        };
        Ok(Dike {
            controls: Arc::new(Controls {
                groups,
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
            has_further: options.has_further(),
            has_broadcasts: options.has(Kind::BroadcastUpdate),
            drawn: Default::default(),
            committed: Counts::new(degree_max),
            unknown: Counts::new(degree_max),
        })
    }

    /// All that was counted, in a fixed order.
    pub(super) fn counters(&self) -> Vec<u64> {
        let mut all = self.homes.counts();
        let counts = self.own_counts();
        all.extend(counts.map(|count| count.load(Ordering::Relaxed)));
        all
    }

    /// Adds what another process has counted; false: it is not of this run.
    pub(super) fn add_counters(&self, counters: &[u64]) -> bool {
        let homes = self.homes.counts().len();
        if counters.len() != homes + self.own_counts().count() {
            return false;
        }
        let (at_homes, rest) = counters.split_at(homes);
        self.homes.add(at_homes);
        for (sum, count) in self.own_counts().zip(rest) {
            sum.fetch_add(*count, Ordering::Relaxed);
        }
        true
    }

    fn own_counts(&self) -> impl Iterator<Item = &AtomicU64> {
        let of = |counts: &'_ Counts| counts.degrees.len();
        debug_assert_eq!(of(&self.committed), of(&self.unknown), "of one placement");
        let drawn = self.drawn.iter().flatten();
        let ended = [&self.committed, &self.unknown].into_iter();
        let ended = ended.flat_map(|counts| counts.degrees.iter().chain(&counts.kinds));
        let phases = self.contention.iter().flat_map(Contention::ended);
        drawn.chain(ended).chain(phases)
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
        if self.has_further {
            let settings = self.controls.groups.settings();
            all.extend([
                ("stock_rows", settings.stock_rows().to_string()),
                ("broadcast_rows", settings.broadcast_rows().to_string()),
                ("batch_update", settings.batch.to_string()),
                (
                    "co_access",
                    settings.co_access.unwrap_or_default().to_string(),
                ),
            ]);
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
        let distributed = match input {
            Input::NewOrder(order) => self.is_distributed(order),
            Input::Further(further) => further.leaves_home(),
            _ => return,
        };
        let kind = input.kind().number();
        self.drawn[kind][usize::from(distributed)].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether other warehouses supply lines, beside a hot row of the same node.
    fn is_distributed(&self, order: &NewOrder) -> bool {
        let home = order.warehouse;
        let distribution = self.controls.distribution.as_ref();
        let is_hot_near = |warehouse: u32| {
            let hot = order.hot.as_ref().map(|hot| hot.row().warehouse);
            let placement = distribution.map(|it| it.placement());
            hot == Some(warehouse) && placement.is_some_and(|it| it.is_one_node(home, warehouse))
        };
        let mut suppliers = order.lines.iter().map(|line| line.supply_warehouse);
        suppliers.any(|it| it != home && !is_hot_near(it))
    }

    /// Drawn transactions of the kinds that can be distributed: those that are not, and those that
    /// are.
    fn drawn(&self, kinds: impl Iterator<Item = Kind>) -> [u64; 2] {
        let mut sum = [0, 0];
        for kind in kinds.filter(|kind| kind.is_distributable()) {
            for (sum, count) in sum.iter_mut().zip(&self.drawn[kind.number()]) {
                *sum += count.load(Ordering::Relaxed);
            }
        }
        sum
    }

    /// Changes of rows that each node has.
    fn broadcasts(&self, placement: &Placement) -> Option<Broadcasts> {
        let nodes = placement.copies().filter(|_| self.has_broadcasts)?;
        let kind = Kind::BroadcastUpdate;
        Some(Broadcasts {
            nodes: nodes as u64,
            committed: self.committed.of(kind),
            unknown: self.unknown.of(kind),
        })
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
        let share = |[local, distributed]: [u64; 2]| {
            distributed as f64 / (local + distributed).max(1) as f64
        };
        let by_kind = Kind::ALL.into_iter().filter_map(|kind| {
            let drawn = self.drawn(std::iter::once(kind));
            let all = drawn[0] + drawn[1];
            (all > 0).then(|| (kind, all, share(drawn)))
        });
        Some(DistributionReport {
            requested: distribution.wanted(),
            keys: distribution.keys(),
            paper_degree: expectation::with_replacement(
                &placement.sizes(),
                distribution.keys() as u32,
            ),
            nodes: placement.nodes(),
            drawn_ratio: share(self.drawn(Kind::ALL.into_iter())),
            drawn: by_kind.collect(),
            new_orders: self.committed.of(Kind::NewOrder),
            new_orders_unknown: self.unknown.of(Kind::NewOrder),
            distributable: self.committed.distributable(),
            distributable_unknown: self.unknown.distributable(),
            broadcasts: self.broadcasts(placement),
            committed: known(&self.committed),
            unknown: known(&self.unknown),
            observed_by_server,
            not_told,
        })
    }

    /// The share of distributed NewOrders, their nodes by their inputs where these are exact, and
    /// the nodes as the server counts them.
    pub(super) fn findings(&self, report: &DistributionReport) -> Vec<Finding> {
        let orders = self.drawn(std::iter::once(Kind::NewOrder));
        let others = Kind::ALL.into_iter().filter(|kind| *kind != Kind::NewOrder);
        let others = self.drawn(others);
        let mut findings = vec![share_finding("distributed new orders", orders, report)];
        if others != [0, 0] {
            let title = "distributed transactions that TPC-C has not";
            findings.push(share_finding(title, others, report));
        }
        if report.requested.mode == Mode::Exact {
            findings.push(input_finding(report));
        }
        findings.push(server_finding(report));
        findings
    }
}

/// Judges the share of the drawn transactions that are distributed.
fn share_finding(title: &'static str, drawn: [u64; 2], report: &DistributionReport) -> Finding {
    let all = drawn[0] + drawn[1];
    let (low, high) = binomial_interval(all, report.requested.ratio, 0.999);
    let percent = |count: u64| 100.0 * count as f64 / all.max(1) as f64;
    Finding {
        clause: "4.2.1",
        title,
        samples: all,
        observed: format!("{:.2} %", percent(drawn[1])),
        allowed: format!("{:.2} to {:.2} %", percent(low), percent(high)),
        verdict: match (all, (low..=high).contains(&drawn[1])) {
            (0, _) => Verdict::NotApplicable,
            (_, true) => Verdict::Passed,
            (_, false) => Verdict::Failed,
        },
    }
}

/// Where the warehouses lie, and the items where they have homes.
fn read_placement(
    link: &mut Link,
    scale: &Scale,
    nodes_of_cluster: Option<u64>,
) -> Result<Placement, DriveError> {
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
    let copies = nodes_of_cluster.map_or(placement.nodes(), |nodes| nodes as usize);
    Ok(match nodes("item", scale.items)? {
        Some(items) => placement.with_items(items),
        None => placement.with_copies(copies),
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
            drawn: vec![(Kind::NewOrder, 22, 0.5)],
            new_orders: 20,
            new_orders_unknown: 2,
            distributable: 20,
            distributable_unknown: 2,
            broadcasts: None,
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
            (options, Isolation::Serializable, 1),
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

    /// Shares are of the transactions that can be distributed, as the requested one is.
    #[test]
    fn ratios_are_shares_of_what_can_be_distributed() {
        let report = DistributionReport {
            distributable: 20,
            distributable_unknown: 0,
            committed: Some(degrees(&[(1, 90), (3, 10)])),
            ..report(&[(1, 85), (2, 5), (3, 10)])
        };
        assert_eq!(report.ratio_committed(), Some(0.5));
        assert_eq!(report.ratio_observed(), Some(0.75));
        let unknown = DistributionReport {
            distributable_unknown: 10,
            observed_by_server: None,
            ..report.clone()
        };
        assert_eq!(unknown.ratio_committed(), Some(0.5));
        assert_eq!(unknown.ratio_observed(), None);
        let unknown = DistributionReport {
            distributable_unknown: 10,
            ..report
        };
        assert_eq!(unknown.ratio_observed(), Some(0.5));
    }

    /// A change of rows that all nodes have is neither distributed nor of a wrong degree.
    #[test]
    fn broadcasts_are_no_part_of_a_ratio() {
        let broadcasts = Broadcasts {
            nodes: 5,
            committed: 7,
            unknown: 0,
        };
        let with = DistributionReport {
            committed: Some(degrees(&[(1, 10), (3, 10), (5, 7)])),
            broadcasts: Some(broadcasts),
            distributable_unknown: 0,
            ..report(&[(1, 10), (3, 10), (5, 7)])
        };
        assert_eq!((with.wrong(), with.not_requested()), (Some(0), Some(0)));
        assert_eq!(with.ratio_committed(), Some(0.5));
        assert_eq!(with.ratio_observed(), Some(0.5));
        let too_many = DistributionReport {
            committed: Some(degrees(&[(1, 10), (3, 10), (5, 8)])),
            ..with
        };
        assert_eq!(too_many.not_requested(), Some(1));
        assert_eq!(too_many.wrong(), Some(1));
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
        let refused =
            options("payment:1,delivery:2", true).validate(&RunnerOptions::default(), false);
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("payment:1") && text.contains("new_order, d_stock_level"),
            "{text}"
        );
        assert!(
            options("payment:1", false)
                .validate(&RunnerOptions::default(), false)
                .is_ok()
        );
        assert!(
            options("new_order:1", true)
                .validate(&RunnerOptions::default(), false)
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
        let run = (&options, Isolation::Serializable, 1);
        let dike = Dike::of(None, &Scale::standard(3), run).unwrap();
        let (seven, told) = dike.told_around(&target, &server, || Ok(7)).unwrap();
        assert_eq!((seven, told), (7, Told::nothing()));
        let asked = listener.accept().map(|_| ()).unwrap_err();
        assert_eq!(asked.kind(), ErrorKind::WouldBlock);
    }
}
