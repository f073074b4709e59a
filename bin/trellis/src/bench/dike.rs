//! Options of `trellis bench run --workload dike`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use drive::tpcc::dike::DikeOptions;
use workload::dike::contention::Schedule;
use workload::dike::{Mix, Mode, Wanted};

/// How sure the number of nodes is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ModeName {
    /// The nodes first, then a warehouse on each
    Exact,
    /// So many warehouses that they touch the nodes on average
    Statistical,
}

/// What is controlled.
#[derive(Args)]
#[command(next_help_heading = "Dike's controls (workload dike)")]
pub(super) struct DikeArgs {
    /// How the nodes of distributed transactions are found [default: TPC-C's own: 1 % of the lines,
    /// 15 % of the payments from other warehouses]
    #[arg(long, value_enum, requires = "ratio", requires = "degree")]
    distribution: Option<ModeName>,
    /// Percentage of the NewOrders that touch several nodes
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
    /// Shares of the transactions, such as new_order:45,payment:43; with --distribution and
    /// --contention new_order needs one
    /// [default: new_order:45,payment:43,order_status:4,delivery:4,stock_level:4]
    #[arg(long)]
    mix: Option<Mix>,
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
    /// Refuses them for another workload.
    pub(super) fn only_for_dike(&self) -> Result<()> {
        let given = [
            (self.distribution.is_some(), "--distribution"),
            (!self.contention.is_empty(), "--contention"),
            (self.mix.is_some(), "--mix"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, name)) => bail!("{name} is for --workload dike"),
            None => Ok(()),
        }
    }

    pub(super) fn options(&self) -> DikeOptions {
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
            mix: self.mix.unwrap_or(Mix::PAPER),
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
