//! Options of `trellis bench run --workload dike`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use drive::tpcc::contention::ContentionControl;
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{LoadOptions, Without};
use std::collections::BTreeSet;
use std::str::FromStr;
use workload::curve::{Curve, CurveError};
use workload::dike::contention::Schedule;
use workload::dike::further::{CoAccess, ROWS_MAX, Settings};
use workload::dike::imbalance::Imbalance;
use workload::dike::{Mix, Mode, Wanted};
use workload::tpcc::{Kind, Skew};

/// How sure the number of nodes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ModeName {
    /// The nodes first, then a warehouse on each
    Exact,
    /// So many warehouses that they touch the nodes on average
    Statistical,
}

/// How transactions are made to compete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ControlName {
    /// As many as wanted are counted, and nothing waits: the default
    Counting,
    /// They wait at the client until as many as wanted are there, as with PeakBench
    Blocking,
}

/// What is controlled.
#[derive(Args)]
#[command(next_help_heading = "Dike's controls (workload dike)")]
pub(super) struct DikeArgs {
    /// How the nodes of distributed transactions are found [default: TPC-C's own: 1 % of the lines,
    /// 15 % of the payments from other warehouses]
    #[arg(long, value_enum, requires = "ratio", requires = "degree")]
    distribution: Option<ModeName>,
    /// Percentage of the NewOrders and of Dike's own transactions that touch several nodes
    #[arg(long, value_parser = percent, requires = "distribution")]
    ratio: Option<f64>,
    /// Nodes that such a one touches, that of its home warehouse among them
    #[arg(long, requires = "distribution")]
    degree: Option<u32>,
    /// Nodes over which the warehouses are spread evenly, where the server does not tell
    #[arg(long, requires = "distribution", value_parser = nodes)]
    nodes: Option<u32>,
    /// Transactions that compete for a stock row: N from the beginning, then N@SECOND; once for
    /// each of several rows
    #[arg(long, value_name = "N,N@SECOND,..")]
    contention: Vec<Schedule>,
    /// How transactions are made to compete
    #[arg(long, value_enum, requires = "contention")]
    contention_control: Option<ControlName>,
    /// Shares of the transactions, such as new_order:45,payment:43; beside the five of TPC-C there
    /// are d_stock_level, d_update_stock, d_update_balance, d_select_balance, broadcast_update and
    /// co_access; with --contention new_order needs one
    /// [default: new_order:45,payment:43,order_status:4,delivery:4,stock_level:4]
    #[arg(long)]
    mix: Option<Mix>,
    /// Rows of STOCK that a d_update_stock changes [default: 10]
    #[arg(long, value_parser = rows)]
    stock_rows: Option<u32>,
    /// Rows of ITEM that a broadcast_update changes [default: 1]
    #[arg(long, value_parser = rows)]
    broadcast_rows: Option<u32>,
    /// Rows of STOCK that co_access changes together: groups of each home warehouse, rows of a
    /// group, and the share of the transactions that change one (with --distribution that is
    /// --ratio) [default: 4:2:0.8]
    #[arg(long, value_name = "GROUPS:ROWS:SHARE")]
    co_access: Option<CoAccess>,
    /// Send all statements of a d_update_stock, d_update_balance, broadcast_update or co_access in
    /// one round, and not each in a round of its own
    #[arg(long)]
    batch_update: bool,
    /// Each terminal has transactions of one kind only; the kinds are dealt by --mix
    #[arg(long)]
    bind_transactions: bool,
    /// Connect each client to the node on which its home warehouse lies (Trellis); otherwise they
    /// are connected to the nodes of --url in turn, wherever their warehouse is
    #[arg(long)]
    at_home: bool,
    #[command(flatten)]
    data: DataArgs,
}

fn rows(text: &str) -> Result<u32, String> {
    let rows = text.parse().ok();
    let rows = rows.filter(|rows| (1..=ROWS_MAX).contains(rows));
    rows.ok_or_else(|| format!("{text:?} is no number of rows from 1 to {ROWS_MAX}"))
}

/// How the tables are, when they are loaded and when they are used.
#[derive(Args)]
pub(super) struct DataArgs {
    /// Uneven data and accesses: data:zipf:1.5 deals districts among warehouses (say it to load,
    /// too); access:zipf:S, access:exponential:RATE, access:hot:PART:SHARE or
    /// access:moving:PART:SHARE:SECONDS deals transactions among them; or both with a comma
    #[arg(long, value_name = "data:..,access:..")]
    imbalance: Option<Imbalance>,
    /// Trellis' tables without what keeps rows of a warehouse together (binding), ITEM on every
    /// node (broadcast), or both with a comma; say it to load and to run
    #[arg(long, value_name = "binding|broadcast")]
    without: Option<Without>,
}

impl DataArgs {
    fn given(&self) -> Option<&'static str> {
        match (self.imbalance, self.without) {
            (Some(_), _) => Some("--imbalance"),
            (None, Some(_)) => Some("--without"),
            (None, None) => None,
        }
    }

    /// How the tables are that a run wants: how districts are dealt, and what the tables are
    /// without.
    pub(super) fn tables(&self) -> (Skew, Without) {
        let skew = self.imbalance.and_then(|imbalance| imbalance.data);
        (skew.unwrap_or_default(), self.without.unwrap_or_default())
    }

    /// For a load. Refuses them for another workload, and what is not loaded.
    pub(super) fn load(&self, options: &mut LoadOptions, is_dike: bool) -> Result<()> {
        if let Some(name) = self.given().filter(|_| !is_dike) {
            bail!("{name} is for --workload dike");
        }
        options.accounts = is_dike;
        options.without = self.without.unwrap_or_default();
        if options.from.is_some() {
            if self.imbalance.is_some() {
                bail!("--imbalance: the districts are those of the files of --from");
            }
            return Ok(());
        }
        let imbalance = self.imbalance.unwrap_or_default();
        if imbalance.access.is_some() {
            bail!("--imbalance access: is for a run; a load has data: only");
        }
        options.scale.skew = imbalance.data.unwrap_or_default();
        Ok(())
    }
}

/// A curve of the command line, and what follows it.
#[derive(Clone, Debug)]
pub(super) enum CurveArg {
    /// The rate of arrivals.
    Rate(Curve),
    /// The weight of a kind.
    Mix(Kind, Curve),
    /// The share of the hot warehouses.
    Hot(Curve),
}

impl CurveArg {
    /// What it is about; nothing has two curves.
    fn subject(&self) -> String {
        match self {
            CurveArg::Rate(_) => String::from("rate"),
            CurveArg::Mix(kind, _) => format!("mix:{}", kind.name()),
            CurveArg::Hot(_) => String::from("hot"),
        }
    }
}

/// A trace is read from its file.
impl FromStr for CurveArg {
    type Err = String;

    fn from_str(text: &str) -> Result<CurveArg, String> {
        let refused = || {
            format!(
                "{text:?} is none of rate:CURVE, mix:KIND:CURVE, hot:CURVE, such as \
                 rate:step:1000@0,2000@10; the kinds are {}",
                Kind::NAMES.join(", ")
            )
        };
        let (subject, rest) = text.split_once(':').ok_or_else(refused)?;
        match subject {
            "rate" => Ok(CurveArg::Rate(curve(rest)?)),
            "hot" => Ok(CurveArg::Hot(curve(rest)?)),
            "mix" => {
                let (name, rest) = rest.split_once(':').ok_or_else(refused)?;
                let kind = Kind::parse(name).ok_or_else(refused)?;
                Ok(CurveArg::Mix(kind, curve(rest)?))
            }
            _ => Err(refused()),
        }
    }
}

fn curve(text: &str) -> Result<Curve, String> {
    let Some(path) = text.strip_prefix("trace:") else {
        return text.parse().map_err(|error: CurveError| error.to_string());
    };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Curve::trace(&text).map_err(|error| format!("{path}: {error}"))
}

/// The curve of the rate.
///
/// # Errors
/// Two curves for one thing, or the curve of something else for another workload.
pub(super) fn rate_curve(curves: &[CurveArg], is_dike: bool) -> Result<Option<Curve>> {
    let mut subjects = BTreeSet::new();
    for curve in curves {
        let subject = curve.subject();
        if !is_dike && !matches!(curve, CurveArg::Rate(_)) {
            bail!("--curve {subject} is for --workload dike");
        }
        if !subjects.insert(subject.clone()) {
            bail!("--curve {subject} is said twice");
        }
    }
    Ok(curves.iter().find_map(|curve| match curve {
        CurveArg::Rate(curve) => Some(curve.clone()),
        _ => None,
    }))
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let number = number.filter(|percent: &f64| (0.0..=100.0).contains(percent));
    number.ok_or_else(|| "a ratio is 0 to 100 percent".into())
}

fn nodes(text: &str) -> Result<u32, String> {
    let number = text
        .parse()
        .ok()
        .filter(|nodes| (2..=10_000).contains(nodes));
    number.ok_or_else(|| "2 nodes or more".into())
}

impl DikeArgs {
    /// How the tables are that a run wants.
    pub(super) fn tables(&self) -> (Skew, Without) {
        self.data.tables()
    }

    /// Refuses them for another workload.
    pub(super) fn only_for_dike(&self) -> Result<()> {
        let given = [
            (self.distribution.is_some(), "--distribution"),
            (!self.contention.is_empty(), "--contention"),
            (self.mix.is_some(), "--mix"),
            (self.stock_rows.is_some(), "--stock-rows"),
            (self.broadcast_rows.is_some(), "--broadcast-rows"),
            (self.co_access.is_some(), "--co-access"),
            (self.batch_update, "--batch-update"),
            (self.bind_transactions, "--bind-transactions"),
            (self.at_home, "--at-home"),
        ];
        let given = given.iter().find(|(is_given, _)| *is_given);
        match given.map(|(_, name)| *name).or(self.data.given()) {
            Some(name) => bail!("{name} is for --workload dike"),
            None => Ok(()),
        }
    }

    pub(super) fn options(&self, curves: &[CurveArg]) -> DikeOptions {
        let wanted = self.distribution.zip(self.ratio).zip(self.degree);
        let wanted = wanted.map(|((mode, percent), degree)| Wanted {
            mode: match mode {
                ModeName::Exact => Mode::Exact,
                ModeName::Statistical => Mode::Statistical,
            },
            ratio: percent / 100.0,
            degree,
        });
        DikeOptions {
            distribution: wanted,
            nodes: self.nodes,
            contention: self.contention.clone(),
            control: match self.contention_control {
                Some(ControlName::Blocking) => ContentionControl::Blocking,
                Some(ControlName::Counting) | None => ContentionControl::Counting,
            },
            mix: self.mix.unwrap_or(Mix::PAPER),
            imbalance: self.data.imbalance.unwrap_or_default(),
            mix_curves: curves
                .iter()
                .filter_map(|curve| match curve {
                    CurveArg::Mix(kind, curve) => Some((*kind, curve.clone())),
                    _ => None,
                })
                .collect(),
            hot_curve: curves.iter().find_map(|curve| match curve {
                CurveArg::Hot(curve) => Some(curve.clone()),
                _ => None,
            }),
            further: Settings {
                stock_rows: self.stock_rows,
                broadcast_rows: self.broadcast_rows,
                batch: self.batch_update,
                co_access: self.co_access,
            },
            bind_transactions: self.bind_transactions,
            at_home: self.at_home,
            without: self.data.without,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    #[test]
    fn the_help_says_what_is_distributed_without_a_distribution() {
        let command = DikeArgs::augment_args(Command::new("run")).term_width(0);
        let help = command.clone().render_help().to_string();
        let line = help.lines().find(|line| line.contains("--distribution <"));
        let line = line.expect("the option is listed");
        assert!(
            line.contains("1 % of the lines, 15 % of the payments"),
            "{line}"
        );
    }
}
