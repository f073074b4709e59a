//! What is controlled of a run, and whether that goes together with the run and the loaded tables.

use crate::run::RunnerOptions;
use crate::tpcc::contention::ContentionControl;
use crate::tpcc::without::Without;
use links::error::DriveError;
use std::sync::Arc;
use workload::curve::Curve;
use workload::dike::contention::Schedule;
use workload::dike::dynamics::WEIGHT_MAX;
use workload::dike::further::Settings;
use workload::dike::imbalance::{Access, Imbalance};
use workload::dike::{Distribution, Mix, Mode, Placement, Wanted};
use workload::tpcc::{Kind, Scale};

/// What is controlled of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct DikeOptions {
    /// How transactions are distributed; `None`: 1 % of the lines and 15 % of the payments are for
    /// other warehouses, as in TPC-C.
    pub distribution: Option<Wanted>,
    /// Nodes among which the warehouses are spread evenly, where the server does not tell which
    /// lies where.
    pub nodes: Option<u32>,
    /// How many orders compete for each of the hot rows.
    pub contention: Vec<Schedule>,
    /// How they are made to.
    pub control: ContentionControl,
    /// Shares of the transactions.
    pub mix: Mix,
    /// How uneven the loaded data must be, and how transactions are dealt among warehouses.
    pub imbalance: Imbalance,
    /// Shares of transactions that follow a curve.
    pub mix_curves: Vec<(Kind, Curve)>,
    /// The share of the transactions that the hot warehouses get, as a curve.
    pub hot_curve: Option<Curve>,
    /// What is asked for of the transactions that TPC-C does not have.
    pub further: Settings,
    /// Whether each terminal has transactions of one kind only, dealt by the mix.
    pub bind_transactions: bool,
    /// Whether each client is connected to the node of its home warehouse.
    pub at_home: bool,
    /// What the tables must have been created without; `None`: that is not looked at.
    pub without: Option<Without>,
}

/// TPC-C's own inputs, with the shares of the paper.
impl Default for DikeOptions {
    fn default() -> DikeOptions {
        DikeOptions {
            distribution: None,
            nodes: None,
            contention: Vec::new(),
            control: ContentionControl::Counting,
            mix: Mix::PAPER,
            imbalance: Imbalance::default(),
            mix_curves: Vec::new(),
            hot_curve: None,
            further: Settings::default(),
            bind_transactions: false,
            at_home: false,
            without: None,
        }
    }
}

impl DikeOptions {
    /// Whether transactions of a kind have a share, or get one in the course of the run.
    pub(in crate::tpcc) fn has(&self, kind: Kind) -> bool {
        self.mix.share(kind) > 0.0 || self.mix_curves.iter().any(|(it, _)| *it == kind)
    }

    /// Whether there are others than those of TPC-C.
    pub(in crate::tpcc) fn has_further(&self) -> bool {
        Kind::ALL
            .iter()
            .any(|kind| !kind.is_tpcc() && self.has(*kind))
    }

    /// Whether they go together.
    ///
    /// # Errors
    /// They do not; the text says which, and what would.
    pub(in crate::tpcc) fn validate(
        &self,
        runner: &RunnerOptions,
        keying: bool,
    ) -> Result<(), DriveError> {
        let refuse = |text: String| Err(DriveError::Option(text));
        let mut further = Kind::ALL.iter().filter(|kind| !kind.is_tpcc());
        if let Some(kind) = further.find(|kind| keying && self.has(**kind)) {
            let name = kind.name();
            return refuse(format!("--keying: there are no keying times for {name}"));
        }
        self.has_what_it_controls()?;
        let fits = self.further.fits(&|kind| self.has(kind));
        fits.map_err(|error| DriveError::Option(error.to_string()))?;
        let most: u32 = self.contention.iter().map(Schedule::most).sum();
        if most >= runner.clients {
            return refuse(format!(
                "--contention: {most} transactions compete at most, so there must be more clients \
                 than {} (--clients)",
                runner.clients
            ));
        }
        if self.bind_transactions && !self.mix_curves.is_empty() {
            return refuse(String::from(
                "--bind-transactions: a terminal keeps its kind, so no --curve mix: can change the \
                 shares",
            ));
        }
        if self.at_home && self.imbalance.access.is_some() {
            return refuse(String::from(
                "--at-home: --imbalance access: draws a home for each transaction, wherever its \
                 client is connected",
            ));
        }
        let is_hot = matches!(self.imbalance.access, Some(Access::Hot { .. }));
        if self.hot_curve.is_some() && !is_hot {
            return refuse(String::from(
                "--curve hot: says the share of hot warehouses: it needs --imbalance access:hot or \
                 access:moving",
            ));
        }
        if let Some(curve) = self.hot_curve.as_ref().filter(|curve| curve.most() > 1.0) {
            return refuse(format!("--curve hot:{curve}: a share is 1 at most"));
        }
        let mut weights = self.mix_curves.iter();
        if let Some((kind, curve)) = weights.find(|(_, curve)| curve.most() > WEIGHT_MAX) {
            let name = kind.name();
            return refuse(format!(
                "--curve mix:{name}:{curve}: a weight is 1000000 at most"
            ));
        }
        let length = runner.length.as_secs_f64();
        let phases = self.contention.iter().flat_map(Schedule::phases);
        match phases.map(|phase| phase.1).find(|begin| *begin >= length) {
            Some(begin) => refuse(format!(
                "--contention: second {begin} is not in a run of {length} seconds"
            )),
            None => Ok(()),
        }
    }

    /// Whether the mix has transactions that the controls are about.
    fn has_what_it_controls(&self) -> Result<(), DriveError> {
        let refuse = |text: String| Err(DriveError::Option(text));
        let is_distributable = |kind: &Kind| kind.is_distributable() && self.has(*kind);
        if self.distribution.is_some() && !Kind::ALL.iter().any(is_distributable) {
            let kinds = Kind::ALL.iter().filter(|kind| kind.is_distributable());
            let names: Vec<&str> = kinds.map(|kind| kind.name()).collect();
            return refuse(format!(
                "--distribution is about {}, and --mix {} has none of them: give one a share, or \
                 leave --distribution out",
                names.join(", "),
                self.mix
            ));
        }
        if !self.contention.is_empty() && !self.has(Kind::NewOrder) {
            return refuse(format!(
                "--contention is about new orders, and --mix {} has none: give new_order a share, \
                 or leave --contention out",
                self.mix
            ));
        }
        Ok(())
    }

    /// Whether the loaded tables are what is asked for.
    ///
    /// # Errors
    /// They are not, or their placement does not allow what is asked for.
    pub(in crate::tpcc) fn meets(
        &self,
        scale: &Scale,
        loaded: Without,
        has_accounts: bool,
    ) -> Result<(), DriveError> {
        let on_accounts = [Kind::DUpdateBalance, Kind::DSelectBalance];
        if let Some(kind) = on_accounts.iter().find(|kind| self.has(**kind))
            && !has_accounts
        {
            return Err(DriveError::NotLoaded(format!(
                "{} needs tables that are not there: trellis bench load --workload dike, with the \
                 options of the load, adds them",
                kind.name()
            )));
        }
        if let Some(wanted) = self.imbalance.data.filter(|wanted| *wanted != scale.skew) {
            return Err(DriveError::OtherData(format!(
                "--imbalance data:zipf:{wanted}: the districts were loaded with exponent {} (load \
                 them with the same --imbalance)",
                scale.skew
            )));
        }
        if let Some(wanted) = self.without.filter(|wanted| *wanted != loaded) {
            return Err(DriveError::OtherData(format!(
                "the tables were to be {wanted}, and were created {loaded}"
            )));
        }
        if loaded.binding && self.distribution.is_some() {
            return Err(DriveError::Option(String::from(
                "--distribution needs all rows of a warehouse on one node: the tables were created \
                 without binding",
            )));
        }
        Ok(())
    }

    /// What is wanted, where the server has told the placement or not.
    pub(super) fn distribution(
        &self,
        known: Option<Placement>,
        warehouses: u32,
    ) -> Result<Option<Arc<Distribution>>, DriveError> {
        let refuse = |text: &str| Err(DriveError::Option(text.into()));
        let Some(wanted) = self.distribution else {
            return Ok(None);
        };
        let placement = match (known, self.nodes, wanted.mode) {
            (Some(_), Some(_), _) => {
                return refuse("the server tells where warehouses lie: leave --nodes out");
            }
            (Some(known), None, _) => known,
            (None, _, Mode::Exact) => {
                return refuse(
                    "the server does not tell which node is home of a warehouse: only \
                     --distribution statistical is possible",
                );
            }
            (None, None, Mode::Statistical) => {
                return refuse("the server does not tell how many nodes it has: say --nodes");
            }
            (None, Some(nodes), Mode::Statistical) => Placement::even(warehouses, nodes),
        };
        let distribution = Distribution::new(wanted, placement);
        let distribution = distribution.map_err(|it| DriveError::Option(it.to_string()))?;
        Ok(Some(Arc::new(distribution)))
    }
}
