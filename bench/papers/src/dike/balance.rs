//! Where data and work lie, before and after skewed accesses (figures 23 and 24).

use super::ask::{Ask, run, run_s, shown};
use super::bed::{Bed, NODES, Place, Tables};
use super::settings_s;
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::{Context, Result};
use measures::boxes::BoxPlot;
use sim::scale::System;
use workload::tpcc::Skew;

/// What lies on a node and what it has done.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct OnNode {
    pub(super) rows: f64,
    bytes: f64,
    /// Rows read and written since its start, of all databases.
    operations: f64,
}

/// The node of a shard that is written `n2.0`.
fn node_of(shard: &str) -> Option<usize> {
    let number: usize = shard.strip_prefix('n')?.split('.').next()?.parse().ok()?;
    number.checked_sub(1)
}

/// By node: rows and bytes of this database as placed, and operations.
pub(super) fn by_node(bed: &Bed, url: &str) -> Result<Vec<OnNode>> {
    let mut nodes = vec![OnNode::default(); usize::from(NODES)];
    for row in bed.ask(url, "SHOW PLACEMENT")? {
        // Entries of indexes lie with their rows, and ITEM on every node is one copy each.
        let node = node_of(&row[2]).context("a shard has a node")?;
        let number = |column: usize| row[column].parse().unwrap_or(0.0);
        nodes[node].bytes += number(5);
        if row[1].ends_with("pkey") || row[1].contains("primary") || row[1] == row[0] {
            nodes[node].rows += number(4);
        }
    }
    if nodes.iter().all(|node| node.rows == 0.0) {
        for row in bed.ask(url, "SHOW PLACEMENT")? {
            let node = node_of(&row[2]).context("a shard has a node")?;
            nodes[node].rows += row[4].parse().unwrap_or(0.0);
        }
    }
    for row in bed.ask(url, "SHOW STAGES")? {
        let node = row[0]
            .parse::<usize>()
            .ok()
            .and_then(|it| it.checked_sub(1));
        if let (Some(node), "store") = (node, row[2].as_str()) {
            nodes[node].operations += row[5].parse().unwrap_or(0.0);
        }
    }
    Ok(nodes)
}

/// Rows whose home is another node, by the node that has them; only leap moves rows.
fn moved(bed: &Bed, url: &str) -> Result<(f64, f64)> {
    let (mut away, mut moves) = (0.0, 0.0);
    for row in bed.ask(url, "SHOW OWNERSHIP")? {
        let number = |column: usize| row[column].parse::<f64>().unwrap_or(0.0);
        away += number(1);
        moves += number(5);
    }
    Ok((away, moves))
}

pub(super) fn about_s(quick: bool) -> f64 {
    settings_s(quick, 4 * Place::TRELLIS.len()) + 3.0 * run_s(quick)
}

/// Tables by node for even and skewed loads, and work by node under skewed accesses.
pub(super) fn figure_23(lab: &mut Lab) -> Result<Figure> {
    let hot = || Ask::mix("d_update_stock:1").with("imbalance", "access:hot:0.1:0.9");
    let place = format!(
        "{NODES} real nodes, 9 warehouses; data as SHOW PLACEMENT says; work: rows read and \
         written by node, as SHOW STAGES counts, while {} runs; co-access: {}",
        hot().command(Place::ALL[0], lab.quick),
        pairs(Place::ALL[0])[1].1.command(Place::ALL[0], lab.quick)
    );
    let mut figure = Figure::new(
        "23-24",
        "Figures 23 and 24: balance of data and work",
        place,
    );
    figure.columns(&[
        "what",
        "where",
        "least",
        "median",
        "most",
        "most over even share",
        "rows away",
        "tx/s",
    ]);
    let mut bed = Bed::start()?;
    data(lab, &mut figure, &mut bed)?;
    let names = (1..=NODES).map(|node| format!("node {node}")).collect();
    let mut chart = Chart::by_name(
        "operations while a tenth of the warehouses gets 90 % of the updates",
        "node",
        "percent of all",
        names,
    );
    for place in Place::TRELLIS {
        let even = Ask::mix("d_update_stock:1");
        for (name, ask) in [("even accesses", even), ("hot warehouse", hot())] {
            work(lab, &mut figure, &mut bed, (place, name), &ask, &mut chart)?;
        }
    }
    figure.charts.push(chart);
    figure.text.push(
        "Leaders (figure 23 b) are not here: Trellis keeps one copy of a row, so every copy is a \
         leader. Nothing moves data to balance them; under leap rows follow the transactions that \
         want them, and the column \u{201c}rows away\u{201d} says how many are not at home. The \
         paper switches a scheduler off and on; leap against the other two is the nearest to that."
            .to_owned(),
    );
    co_access(lab, &mut figure, &mut bed)?;
    Ok(figure)
}

fn boxed(values: &[f64]) -> Vec<String> {
    let Ok(found) = BoxPlot::of(values) else {
        return vec!["-".to_owned(); 4];
    };
    vec![
        format!("{:.0}", found.min),
        format!("{:.0}", found.median),
        format!("{:.0}", found.max),
        format!("{:.2}", found.imbalance),
    ]
}

fn most_over_mean(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().copied().fold(0.0, f64::max) / mean
}

fn data(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<()> {
    let place = Place::Trellis(System::Interleaved);
    for (name, thousandths) in [("uniform", 0), ("zipf 1.5", 1500)] {
        let data = Tables {
            skew: Skew::of_thousandths(thousandths).context("it is at most 10")?,
            ..Tables::even(9)
        };
        let url = bed.url(place, data)?.context("Trellis is there")?;
        let bytes: Vec<f64> = by_node(bed, &url)?
            .iter()
            .map(|it| it.bytes / 1e3)
            .collect();
        let mut row = vec![format!("kB loaded, {name}"), place.name()];
        row.extend(boxed(&bytes));
        row.extend(["-".to_owned(), "-".to_owned()]);
        figure.rows.push(row);
        let most = most_over_mean(&bytes);
        let text = format!("{most:.2} times the even share");
        match thousandths {
            0 => lab.expectations.judge("5a", text, most < 1.2),
            _ => lab.expectations.report("5b", text),
        }
        lab.clock.besides_done(run_s(lab.quick));
    }
    Ok(())
}

fn work(
    lab: &mut Lab,
    figure: &mut Figure,
    bed: &mut Bed,
    (place, name): (Place, &str),
    ask: &Ask,
    chart: &mut Chart,
) -> Result<()> {
    let data = Tables::even(9);
    let url = bed.url(place, data)?.context("Trellis is there")?;
    let (before, moved_before) = (by_node(bed, &url)?, moved(bed, &url)?);
    let runs = run(lab, figure, bed, (place, data), ask, name)?;
    let runs = runs.context("Trellis is there")?;
    let (after, moved_after) = (by_node(bed, &url)?, moved(bed, &url)?);
    let pairs = before.iter().zip(&after);
    let gains: Vec<f64> = pairs
        .map(|(before, after)| after.operations - before.operations)
        .collect();
    let mut row = vec![format!("operations, {name}"), place.name()];
    row.extend(boxed(&gains));
    row.push(format!(
        "{:.0} ({:.0} moves)",
        moved_after.0,
        moved_after.1 - moved_before.1
    ));
    row.push(shown(runs.rate(), 0));
    figure.rows.push(row);
    if name != "even accesses" {
        let all: f64 = gains.iter().sum();
        let shares = gains.iter().map(|gain| 100.0 * gain / all.max(1.0));
        chart.curve(&place.name(), shares);
    }
    Ok(())
}

/// Four of five transactions change two rows of two nodes: any rows, or always the same together.
fn pairs(place: Place) -> [(&'static str, Ask); 2] {
    let any = Ask::mix("d_update_stock:1").with("stock-rows", 2);
    let grouped = Ask::mix("co_access:1").with("co-access", "4:2");
    let apart = |ask: Ask| ask.distributed(place, 80, 2, u32::from(NODES));
    [("any two rows", apart(any)), ("co-access", apart(grouped))]
}

/// Skewed co-access: messages for a transaction whose rows are of two nodes.
fn co_access(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<()> {
    let names = pairs(Place::ALL[0])
        .map(|(name, _)| name.to_owned())
        .to_vec();
    let title = "messages for a change of two rows, 80 % on two nodes";
    let mut chart = Chart::by_name(title, "rows", "messages", names);
    let mut told = Vec::new();
    let data = Tables::even(9);
    for place in Place::TRELLIS {
        let url = bed.url(place, data)?.context("Trellis is there")?;
        let mut messages = Vec::new();
        for (name, ask) in pairs(place) {
            let before = moved(bed, &url)?;
            let runs = run(lab, figure, bed, (place, data), &ask, name)?;
            let runs = runs.context("Trellis is there")?;
            let after = moved(bed, &url)?;
            messages.push(runs.messages().map_or(f64::NAN, |it| it.mean));
            let mut row = vec![
                format!("messages per tx, {name}"),
                place.name(),
                shown(runs.messages(), 2),
            ];
            row.extend(vec!["-".to_owned(); 3]);
            row.push(format!("{:.0} ({:.0} moves)", after.0, after.1 - before.1));
            row.push(shown(runs.rate(), 0));
            figure.rows.push(row);
        }
        let text: Vec<String> = messages.iter().map(|it| format!("{it:.2}")).collect();
        told.push(format!("{} {}", place.name(), text.join(" and ")));
        chart.curve(&place.name(), messages);
    }
    figure.charts.push(chart);
    figure.text.push(format!(
        "Co-access: 80 % of the transactions change two rows of different nodes. Messages for a \
         transaction with any two rows, and with rows that are always changed together: {}. In \
         the paper no database brings such rows together. Under leap the transaction takes them \
         to its node, and they stay there until somebody else wants them.",
        told.join("; ")
    ));
    lab.expectations.report("5c", told.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_names_its_node() {
        assert_eq!(node_of("n2.0"), Some(1));
        assert_eq!(node_of("n12.3"), Some(11));
        assert_eq!(node_of("all"), None);
    }
}
