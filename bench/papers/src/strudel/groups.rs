//! Figures 10 and 11 and the tuning of back-off: what transactions on one group do to each other,
//! in every mapping that a store has.

use super::ask::{self, Runs, Way, shown};
use super::bed::{Bed, Place};
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::Result;
use serde_json::Value;
use stores::Mapping;

/// What a store did in one mapping, by document.
struct Line {
    place: Place,
    mapping: Mapping,
    /// As many as there are documents.
    runs: Vec<Runs>,
}

impl Line {
    fn name(&self) -> String {
        format!("{}, {}", self.place.name(), self.mapping)
    }

    fn rate(&self, at: usize) -> f64 {
        self.runs[at].rate()
    }
}

/// Whether a group is one cell, so that all its transactions conflict.
fn is_packed(mapping: Mapping) -> bool {
    mapping.name().starts_with("packed")
}

/// Whether transactions wait for each other instead of running again.
fn is_locking(mapping: Mapping) -> bool {
    mapping.name().contains("lock")
}

/// All stores in all their mappings.
fn lines() -> Vec<(Place, Mapping)> {
    let all = Place::all().into_iter();
    all.flat_map(|place| {
        place
            .mappings()
            .iter()
            .map(move |mapping| (place, *mapping))
    })
    .collect()
}

pub(super) fn about_10_s(quick: bool) -> f64 {
    ask::about_s("figure-10", lines().len(), quick)
}

pub(super) fn about_11_s(quick: bool) -> f64 {
    ask::about_s("figure-11", lines().len(), quick)
}

pub(super) fn about_back_off_s(quick: bool) -> f64 {
    ask::about_s("back-off", contended().len(), quick)
}

/// A figure over the documents of a file, whose names stand on the x axis.
struct Sweep {
    file: &'static str,
    x_title: &'static str,
    names: Vec<String>,
    lines: Vec<(Place, Mapping)>,
}

impl Sweep {
    /// Runs all of it: a curve and rows for each line.
    fn run(self, lab: &mut Lab, figure: &mut Figure) -> Result<Vec<Line>> {
        let documents = ask::documents(self.file)?;
        figure.columns(&[
            self.x_title,
            "store",
            "mapping",
            "interactions/s",
            "conflicts per 100",
            "round trips",
        ]);
        let names = self.names.clone();
        let mut chart = Chart::by_name("throughput", self.x_title, "interactions/s", names);
        let mut bed = Bed::new()?;
        let mut all = Vec::new();
        for (at, (place, mapping)) in self.lines.iter().enumerate() {
            let ran = self.line(lab, figure, &mut bed, (*place, *mapping), &documents)?;
            let is_last = self
                .lines
                .get(at + 1)
                .is_none_or(|next| next.0.name() != place.name());
            if is_last {
                bed.end(*place);
            }
            if let Some(line) = ran {
                chart.curve(&line.name(), line.runs.iter().map(Runs::rate));
                all.push(line);
            }
        }
        figure.charts.push(chart);
        Ok(all)
    }

    fn line(
        &self,
        lab: &mut Lab,
        figure: &mut Figure,
        bed: &mut Bed,
        (place, mapping): (Place, Mapping),
        documents: &[Value],
    ) -> Result<Option<Line>> {
        let mut line = Line {
            place,
            mapping,
            runs: Vec::new(),
        };
        for (name, document) in self.names.iter().zip(documents) {
            let way = Way::Entities(mapping);
            let ran = ask::run(lab, figure, bed, (place, way), document, name)?;
            let Some(runs) = ran else {
                return Ok(None);
            };
            figure.rows.push(vec![
                name.clone(),
                place.name(),
                mapping.to_string(),
                shown(Some(runs.rate()), 0),
                shown(runs.conflicts(), 1),
                shown(runs.trips(), 2),
            ]);
            line.runs.push(runs);
        }
        Ok(Some(line))
    }
}

/// Lines of one store, two mappings at a time: packed against records that stand for themselves.
fn pairs(lines: &[Line]) -> Vec<(&Line, &Line)> {
    let packed = lines.iter().filter(|line| is_packed(line.mapping));
    let pairs = packed.flat_map(|packed| {
        let rows = lines.iter().filter(|line| !is_packed(line.mapping));
        let same = rows.filter(|rows| rows.place.name() == packed.place.name());
        same.map(move |rows| (packed, rows))
    });
    pairs.collect()
}

/// Throughput of updates of one shared item by the size of its group.
pub(super) fn figure_10(lab: &mut Lab) -> Result<Figure> {
    figure_10_of(lab, lines())
}

fn figure_10_of(lab: &mut Lab, lines: Vec<(Place, Mapping)>) -> Result<Figure> {
    let place = format!(
        "32 users without pauses, links of 5 ms one way; 800 items in 200, 20 and 2 groups; \
         one server of each product, three nodes of Trellis; {}",
        ask::command("figure-10")
    );
    let title = "Figure 10: updates of one item by the size of its group";
    let mut figure = Figure::new("10", title, place);
    let sweep = Sweep {
        file: "figure-10",
        x_title: "items in a group",
        names: ["4", "40", "400"].map(str::to_owned).to_vec(),
        lines,
    };
    let lines = sweep.run(lab, &mut figure)?;
    judge_10(lab, &lines);
    figure.text.push(cells(&lines));
    figure.text.push(
        "The paper compares HBase, whose groups are packed, with Omid, whose rows stand for \
         themselves: it changes the store, the packing and the control of concurrency together. \
         Here packed and rows on one store differ in the packing alone, and tables and tables-lock \
         on one server in the control alone. With one item of 400 to change a packed group also \
         carries 400 items to the client and back."
            .to_owned(),
    );
    Ok(figure)
}

fn judge_10(lab: &mut Lab, lines: &[Line]) {
    let (small, large) = (0, 2);
    let mut said = (Vec::new(), Vec::new());
    let mut met = (true, true);
    for (packed, rows) in pairs(lines) {
        let times = |at| rows.rate(at) / packed.rate(at).max(0.001);
        said.0
            .push(format!("{} {:.2}", packed.name(), times(large)));
        met.0 &= times(large) >= 1.25;
        said.1
            .push(format!("{} {:.2}", packed.name(), times(small)));
        met.1 &= times(small) <= 1.2;
    }
    match said.0.is_empty() {
        true => {
            lab.expectations.cannot("2a", "no store has both mappings");
            lab.expectations.cannot("2b", "no store has both mappings");
        }
        false => {
            lab.expectations.judge("2a", said.0.join(", "), met.0);
            lab.expectations.judge("2b", said.1.join(", "), met.1);
        }
    }
    let (crossings, pairs) = crossings(lines);
    let text = format!("{} of {pairs} pairs", crossings.len());
    let text = match crossings.is_empty() {
        true => text,
        false => format!(
            "{text}, among them {}",
            crossings[..crossings.len().min(3)].join("; ")
        ),
    };
    lab.expectations.judge("2c", text, !crossings.is_empty());
    let over = locking_over(lines, |line, other, at| {
        line.rate(at) / other.rate(at).max(0.001)
    });
    match over.is_empty() {
        true => lab.expectations.cannot("2d", "no store has both mappings"),
        false => lab.expectations.report("2d", over.join("; ")),
    }
}

/// Where a packed form is ahead of some rows in small groups, and behind in large ones; and how
/// many pairs there are.
fn crossings(lines: &[Line]) -> (Vec<String>, usize) {
    let (mut found, mut pairs) = (Vec::new(), 0);
    for packed in lines.iter().filter(|line| is_packed(line.mapping)) {
        for rows in lines.iter().filter(|line| !is_packed(line.mapping)) {
            pairs += 1;
            let is_ahead = packed.rate(0) > rows.rate(0);
            let is_behind = packed.rate(2) < rows.rate(2);
            if is_ahead && is_behind {
                let at = if packed.rate(1) > rows.rate(1) { 40 } else { 4 };
                let next = 10 * at;
                let (one, two) = (packed.name(), rows.name());
                found.push(format!("{one} and {two}: from {at} to {next} items"));
            }
        }
    }
    (found, pairs)
}

/// For each store that has both: what locking does over what it does without, by document.
fn locking_over(lines: &[Line], of: impl Fn(&Line, &Line, usize) -> f64) -> Vec<String> {
    let locking = lines.iter().filter(|line| is_locking(line.mapping));
    let texts = locking.filter_map(|locking| {
        let is_other = |line: &&Line| {
            let is_same = line.place.name() == locking.place.name();
            let has_same = is_packed(line.mapping) == is_packed(locking.mapping);
            is_same && has_same && !is_locking(line.mapping)
        };
        let other = lines.iter().find(is_other)?;
        let times = (0..locking.runs.len()).map(|at| format!("{:.2}", of(locking, other, at)));
        let times: Vec<String> = times.collect();
        Some(format!("{}: {}", locking.name(), times.join(", ")))
    });
    texts.collect()
}

/// Which of the four combinations of packing and control each store has.
fn cells(lines: &[Line]) -> String {
    let mut stores: Vec<(String, [Vec<&str>; 4])> = Vec::new();
    for line in lines.iter().filter(|line| !line.place.is_trellis()) {
        let name = line.place.name();
        if stores.last().is_none_or(|last| last.0 != name) {
            stores.push((name, Default::default()));
        }
        let cell = 2 * usize::from(is_packed(line.mapping)) + usize::from(is_locking(line.mapping));
        if let Some((_, cells)) = stores.last_mut() {
            cells[cell].push(line.mapping.name());
        }
    }
    const CELLS: [&str; 4] = [
        "rows, run again",
        "rows, locked",
        "packed, run again",
        "packed, locked",
    ];
    let told = stores.iter().map(|(name, cells)| {
        let cells = CELLS.iter().zip(cells).map(|(cell, mappings)| {
            let has = match mappings.is_empty() {
                true => "none".to_owned(),
                false => mappings.join(" and "),
            };
            format!("{cell}: {has}")
        });
        format!("{name} ({})", cells.collect::<Vec<_>>().join("; "))
    });
    let told: Vec<String> = told.collect();
    format!("Mappings by packing and control: {}.", told.join(", "))
}

/// Throughput of updates of four items by how much they conflict.
pub(super) fn figure_11(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "32 users without pauses, links of 5 ms one way; 32 groups, items in the order in which \
         they are drawn; one server of each product, three nodes of Trellis; {}",
        ask::command("figure-11")
    );
    let title = "Figure 11: updates of four items by degree of conflict";
    let mut figure = Figure::new("11", title, place);
    let names = ["own 400", "shared 400", "shared 40"];
    let sweep = Sweep {
        file: "figure-11",
        x_title: "items of a group",
        names: names.map(str::to_owned).to_vec(),
        lines: lines(),
    };
    let lines = sweep.run(lab, &mut figure)?;
    judge_11(lab, &lines);
    figure.text.push(
        "Transactions that lock their items in the order in which they are drawn end in deadlocks \
         when the items are few: the paper's TokuMX has its worst case there. Transactions that \
         run again instead always leave one winner."
            .to_owned(),
    );
    Ok(figure)
}

fn judge_11(lab: &mut Lab, lines: &[Line]) {
    let (own, many, few) = (0, 1, 2);
    let mut judge =
        |number, is_asked: fn(Mapping) -> bool, of: [usize; 2], met: fn(f64) -> bool| {
            let asked = lines.iter().filter(|line| is_asked(line.mapping));
            let times: Vec<(String, f64)> = asked
                .map(|line| (line.name(), line.rate(of[0]) / line.rate(of[1]).max(0.001)))
                .collect();
            let text = times
                .iter()
                .map(|(name, times)| format!("{name} {times:.2}"));
            let text = text.collect::<Vec<_>>().join(", ");
            match times.is_empty() {
                true => lab
                    .expectations
                    .cannot(number, "no store has such a mapping"),
                false => {
                    let is_met = times.iter().all(|(_, times)| met(*times));
                    lab.expectations.judge(number, text, is_met);
                }
            }
        };
    // One lock for a group makes its size no matter of conflicts.
    let runs_again = |it| is_packed(it) && !is_locking(it);
    let locks_rows = |it| is_locking(it) && !is_packed(it);
    judge("3a", runs_again, [many, own], |times| times <= 0.9);
    judge("3b", runs_again, [few, many], |times| {
        (0.75..=1.34).contains(&times)
    });
    judge("3c", is_locking, [many, own], |times| times >= 0.75);
    judge("3d", locks_rows, [few, many], |times| times < 1.0);
    let trellis = lines.iter().filter(|line| line.place.is_trellis());
    let trellis = trellis.map(|line| {
        let rates = [own, many, few].map(|at| format!("{:.0}", line.rate(at)));
        format!("{} {}", line.place.name(), rates.join(", "))
    });
    let trellis: Vec<String> = trellis.collect();
    match trellis.is_empty() {
        true => lab.expectations.cannot("3e", "Trellis did not run"),
        false => lab.expectations.report("3e", trellis.join("; ")),
    }
}

/// What the tuning of back-off runs on: of each store each control once.
fn contended() -> Vec<(Place, Mapping)> {
    let mut all: Vec<(Place, Mapping)> = Vec::new();
    for (place, mapping) in lines() {
        let is_there = all.iter().any(|(known, other)| {
            let is_same = is_locking(*other) == is_locking(mapping);
            known.name() == place.name() && is_same
        });
        if !is_there {
            all.push((place, mapping));
        }
    }
    all
}

/// Throughput under a heavy conflict by back-off.
pub(super) fn back_off(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "32 users without pauses, links of 2 ms one way; four items of one of 4 groups of 16; {}",
        ask::command("back-off")
    );
    let title = "Section 8.4: back-off under heavy conflict";
    let mut figure = Figure::new("back-off", title, place);
    let documents = ask::documents("back-off")?;
    let name = |document: &Value| {
        let back_off = &document["retry"]["back_off"];
        let number = |key: &str| back_off[key].as_f64().unwrap_or(0.0);
        let shape = back_off["shape"].as_str().unwrap_or_default();
        match shape {
            "constant" => format!("{shape} {}", number("base_ms")),
            _ => format!("{shape} {} to {}", number("base_ms"), number("cap_ms")),
        }
    };
    let sweep = Sweep {
        file: "back-off",
        x_title: "back-off, ms",
        names: documents.iter().map(name).collect(),
        lines: contended(),
    };
    let names = sweep.names.clone();
    let lines = sweep.run(lab, &mut figure)?;
    let mut said = Vec::new();
    let mut best_times: f64 = 0.0;
    for line in &lines {
        let rates: Vec<f64> = line.runs.iter().map(Runs::rate).collect();
        let ranks = rates.iter().enumerate();
        let best = ranks.max_by(|one, two| one.1.total_cmp(two.1));
        let (at, best) = best.map_or((0, 0.0), |(at, rate)| (at, *rate));
        let worst = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let times = best / worst.max(0.001);
        best_times = best_times.max(times);
        said.push(format!("{}: {} ({times:.2})", line.name(), names[at]));
    }
    match said.is_empty() {
        true => lab.expectations.cannot("4a", "no store ran"),
        false => {
            let text = format!("{best_times:.2} times at most");
            lab.expectations.judge("4a", text, best_times >= 1.2);
            lab.expectations.report("4b", said.join("; "));
        }
    }
    figure.text.push(
        "The best back-off depends on the store: where an attempt is cheap and somebody always \
         wins, short waits are best; where attempts wait for locks, and deadlocks are told late, \
         longer ones may be."
            .to_owned(),
    );
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::super::expectations::WANTED;
    use super::*;
    use crate::expect::Expectations;
    use crate::model::Model;
    use crate::plan::Clock;
    use scaling::CostFile;

    /// The smallest size: no servers, one second of each setting.
    #[test]
    fn a_figure_runs_on_memory() -> Result<()> {
        let mut lab = Lab {
            model: Model::new(CostFile::of_option(None)?, true, 1),
            quick: true,
            expectations: Expectations::new(&WANTED, true),
            clock: Clock::start(&[], 1, 0.0),
        };
        let memory = lines().into_iter();
        let memory = memory.filter(|(place, _)| place.name() == "memory");
        let figure = figure_10_of(&mut lab, memory.collect())?;
        assert_eq!(figure.rows.len(), 6, "{}", figure.plain());
        assert_eq!(figure.charts[0].curves.len(), 2);
        let (html, found) = (figure.html(), lab.expectations.plain());
        assert!(
            html.contains("figure-10.yaml") && !html.contains("FAILED"),
            "{html}"
        );
        assert!(found.contains("memory, packed"), "{found}");
        Ok(())
    }

    fn line(place: Place, mapping: Mapping, rates: [f64; 3]) -> Line {
        let runs = rates.map(|rate| Runs {
            results: vec![serde_json::json!({ "per_s": rate })],
            ..Runs::default()
        });
        Line {
            place,
            mapping,
            runs: Vec::from(runs),
        }
    }

    #[test]
    fn mappings_are_told_apart_by_packing_and_control() {
        let all = lines();
        assert!(all.len() >= 11, "{}", all.len());
        assert!(all.iter().any(|(_, mapping)| is_packed(*mapping)));
        assert!(all.iter().any(|(_, mapping)| is_locking(*mapping)));
        assert!(contended().len() < all.len());
    }

    #[test]
    fn a_crossover_lies_between_two_sizes() {
        let packed = line(Place::Memory, Mapping::Packed, [100.0, 80.0, 10.0]);
        let rows = line(Place::Memory, Mapping::Rows, [90.0, 90.0, 90.0]);
        let lines = [packed, rows];
        assert_eq!(
            crossings(&lines),
            (
                vec!["memory, packed and memory, rows: from 4 to 40 items".to_owned()],
                1
            )
        );
        assert_eq!(pairs(&lines).len(), 1);
        let told = cells(&lines);
        assert!(
            told.contains("rows, run again: rows") && told.contains("packed, locked: none"),
            "{told}"
        );
    }
}
