//! Transactions that touch other nodes, and how many of them die: figure 7.

use super::SYSTEMS;
use super::ground::{describe, with};
use crate::figure::{Chart, Figure};
use crate::model::{busy, core_us, frames, mean_ms, rate};
use crate::repetition::Lab;
use crate::tries::{deaths_percent, reasons};
use anyhow::Result;
use sim::scale::{Mix, Point, ScaleOptions, System};
use std::rc::Rc;

/// Percentages of remote transactions; the paper has no 0.
const REMOTE: [u64; 5] = [0, 1, 10, 20, 30];
/// Where 10 and 30 % are.
const TEN: usize = 2;
const THIRTY: usize = 4;
/// Transactions of a warehouse in a second in the paper: 363,759 new orders a minute of 6,500
/// warehouses, 43.5 % of the transactions.
const HEAT_PAPER: f64 = 363_759.0 / 60.0 / 6_500.0 / 0.435;

/// A point with what it was of.
struct Measured {
    options: ScaleOptions,
    point: Rc<Point>,
}

impl Measured {
    fn rate(&self) -> f64 {
        rate(&self.options, &self.point)
    }

    /// Transactions of a warehouse in a second.
    fn heat(&self) -> f64 {
        let warehouses = self.options.warehouses_per_node * u32::from(self.options.nodes);
        self.rate() / f64::from(warehouses)
    }
}

fn measure(lab: &mut Lab, options: ScaleOptions) -> Result<Measured> {
    let point = lab.model.point(&options)?;
    Ok(Measured { options, point })
}

/// Throughput and deaths against the remote share.
pub(super) fn figure_7(lab: &mut Lab) -> Result<Figure> {
    let place = format!("{} nodes; {}", lab.model.nodes(), describe(&lab.model));
    let mut figure = Figure::new("7", "Figure 7: impact of remote guest clients", place);
    figure.columns(&[
        "system",
        "load",
        "remote",
        "tx/s",
        "mean ms",
        "us of a core",
        "messages",
        "forced",
        "lock waits",
        "cores used",
        "deaths per 100",
    ]);
    let names: Vec<String> = REMOTE.iter().map(|share| format!("{share} %")).collect();
    let chart = |title, y| Chart::by_name(title, "remote transactions", y, names.clone());
    let mut throughput = chart("throughput", "tx/s");
    let mut kept = chart("throughput over that with nothing remote", "ratio");
    let mut deaths = chart("deaths per 100 commits", "deaths");
    let mut all = Vec::new();
    for system in SYSTEMS {
        let mut each = Vec::new();
        for share in REMOTE {
            let measured = measure(lab, with(lab, system, share))?;
            figure.rows.push(row("TPC-C", &measured));
            each.push(measured);
        }
        let first = each[0].rate().max(1.0);
        throughput.curve(system.name(), each.iter().map(Measured::rate));
        kept.curve(system.name(), each.iter().map(|one| one.rate() / first));
        deaths.curve(
            system.name(),
            each.iter().map(|one| deaths_percent(&one.point)),
        );
        all.push(each);
    }
    figure.charts = vec![throughput, kept, deaths];
    judge(lab, &all);
    for each in &all {
        figure.text.push(format!(
            "{} at 10 % remote, attempts that failed: {}.",
            each[TEN].options.system.name(),
            reasons(&each[TEN].point)
        ));
    }
    figure.text.push(format!(
        "In the paper 10 % remote leave 80 % of the throughput of 8 and 16 nodes, 20 % leave 65 %, \
         30 % about half. Here formula keeps {:.0} % at 10 % and {:.0} % at 30 %.",
        100.0 * all[0][TEN].rate() / all[0][0].rate().max(1.0),
        100.0 * all[0][THIRTY].rate() / all[0][0].rate().max(1.0)
    ));
    pair(lab, &mut figure)?;
    paced(lab, &mut figure, all[0][TEN].heat())?;
    Ok(figure)
}

/// Expectations 2a, 2b, 2c and 2e: measured by system and share.
fn judge(lab: &mut Lab, all: &[Vec<Measured>]) {
    for (number, other) in [("2a", 1), ("2b", 2)] {
        let (one, other) = (all[0][TEN].rate(), all[other][TEN].rate());
        let ratio = one / other.max(1.0);
        let text = format!("{ratio:.2} times ({one:.0} against {other:.0} a second)");
        lab.expectations.judge(number, text, ratio >= 1.1);
    }
    let of = |system: usize| deaths_percent(&all[system][TEN].point);
    let text = format!("{:.2} against {:.2} (leap {:.2})", of(0), of(1), of(2));
    lab.expectations.judge("2c", text, of(0) <= of(1));
    let kept = all[0][THIRTY].rate() / all[0][0].rate().max(1.0);
    let text = format!("{kept:.2} of the throughput with nothing remote");
    lab.expectations.judge("2e", text, kept >= 0.5);
}

/// NewOrder and Payment alone, which read no ranges but that of customers of a name.
fn pair(lab: &mut Lab, figure: &mut Figure) -> Result<()> {
    let mut all = Vec::new();
    for system in SYSTEMS {
        let options = ScaleOptions {
            mix: Mix::TpccPair,
            ..with(lab, system, 10)
        };
        let measured = measure(lab, options)?;
        figure.rows.push(row("NewOrder, Payment", &measured));
        figure.text.push(format!(
            "{} with NewOrder and Payment alone, attempts that failed: {}.",
            system.name(),
            reasons(&measured.point)
        ));
        all.push(measured);
    }
    let over = |other: usize| all[0].rate() / all[other].rate().max(1.0);
    let of = |system: usize| deaths_percent(&all[system].point);
    let text = format!(
        "{:.2} times interleaved two_phase, {:.2} times leap; deaths {:.2}, {:.2} and {:.2}",
        over(1),
        over(2),
        of(0),
        of(1),
        of(2)
    );
    lab.expectations.report("2f", text);
    Ok(())
}

/// With the pauses of the specification and the paper's 50 terminals per warehouse; `hot` is the
/// heat without pauses.
fn paced(lab: &mut Lab, figure: &mut Figure, hot: f64) -> Result<()> {
    let second = 1_000_000;
    for system in SYSTEMS {
        let base = with(lab, system, 10);
        let options = ScaleOptions {
            paced: true,
            clients_per_node: 50 * base.warehouses_per_node,
            warmup_us: 22 * second,
            run_us: if lab.quick { 10 * second } else { 100 * second },
            ..base
        };
        let measured = measure(lab, options)?;
        figure.rows.push(row("TPC-C with pauses", &measured));
        if system != System::Formula {
            continue;
        }
        let (deaths, heat) = (deaths_percent(&measured.point), measured.heat());
        let text = format!("{deaths:.3} of {} commits", measured.point.commits());
        let met = deaths <= 0.05 && measured.point.commits() > 0;
        lab.expectations.judge("2d", text, met);
        figure.text.push(format!(
            "The paper's 0.05 % were at {HEAT_PAPER:.2} transactions of a warehouse in a second. \
             With pauses it is {heat:.2} here, and there are {deaths:.3} deaths per 100 commits; \
             without pauses it is {hot:.0}, {:.0} times the paper's.",
            hot / HEAT_PAPER
        ));
    }
    Ok(())
}

fn row(load: &str, measured: &Measured) -> Vec<String> {
    let Measured { options, point } = measured;
    let each = |count: u64| count as f64 / point.commits().max(1) as f64;
    vec![
        options.system.name().to_owned(),
        load.to_owned(),
        format!("{} %", options.spread.remote_percent),
        format!("{:.0}", rate(options, point)),
        format!("{:.2}", mean_ms(point)),
        format!("{:.0}", core_us(point)),
        format!("{:.2}", frames(point)),
        format!("{:.2}", each(point.counters.forced_writes)),
        format!("{:.2}", each(point.counters.lock_waits)),
        format!("{:.1} %", busy(options, point) * 100.0),
        format!("{:.3}", deaths_percent(point)),
    ]
}
