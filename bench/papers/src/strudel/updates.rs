//! Figure 9: updates without conflicts, by the number of servers.

use super::ask::{self, Runs, Way, shown};
use super::bed::{Bed, Place};
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::Result;

const SERVERS: [usize; 3] = [1, 3, 5];
/// Nodes of Trellis on the cores of one machine: five with their links measure the scheduler.
const NODES_MAX: usize = 3;
/// What counts for an interaction may differ by this much and still be the same.
const SAME: f64 = 1.25;

/// Each store with the numbers of servers that it can have.
fn places() -> Vec<Vec<Place>> {
    let ones = std::iter::once(Place::Memory).chain(Place::others());
    let ones = ones.chain(Place::trellis(1));
    let sizes = ones.map(|one| {
        let sizes = SERVERS.iter().filter_map(move |servers| one.of(*servers));
        let fits = |place: &Place| !place.is_trellis() || place.servers() <= NODES_MAX;
        sizes.filter(fits).collect()
    });
    sizes.collect()
}

pub(super) fn about_s(quick: bool) -> f64 {
    let count = places().iter().map(Vec::len).sum();
    ask::about_s("figure-9", count, quick)
}

/// A store on so many servers.
struct Point {
    place: Place,
    runs: Runs,
}

/// Throughput, round trips and processor time of an interaction over 1, 3 and 5 servers.
pub(super) fn figure_9(lab: &mut Lab) -> Result<Figure> {
    let document = &ask::documents("figure-9")?[0];
    let place = format!(
        "16 users without pauses, links of 2 ms one way between them and the servers; all servers \
         share this machine with the client; {}",
        ask::command("figure-9")
    );
    let mut figure = Figure::new(
        "9",
        "Figure 9: updates of four items by the number of servers",
        place,
    );
    figure.columns(&[
        "store",
        "mapping",
        "servers",
        "interactions/s",
        "round trips",
        "server CPU us",
        "at most/s, a core each",
    ]);
    let names = SERVERS.map(|servers| servers.to_string()).to_vec();
    let mut chart = Chart::by_name("throughput", "servers", "interactions/s", names);
    let mut bed = Bed::new()?;
    let mut all = Vec::new();
    for sizes in by_size(places()) {
        for place in sizes {
            let way = Way::Entities(place.mappings()[0]);
            let label = format!("{} servers", place.servers());
            let found = ask::run(lab, &mut figure, &mut bed, (place, way), document, &label)?;
            if let Some(runs) = found {
                figure.rows.push(row(place, way, &runs));
                all.push(Point { place, runs });
            }
        }
    }
    drop(bed);
    for name in names_of(&all) {
        let of_name = all.iter().filter(|point| point.place.name() == name);
        chart.curve(&name, of_name.map(|point| point.runs.rate()));
    }
    figure.charts.push(chart);
    judge(lab, &all);
    text(&mut figure);
    Ok(figure)
}

/// Clusters of Trellis one size after the other, so that each is started once.
fn by_size(places: Vec<Vec<Place>>) -> Vec<Vec<Place>> {
    let (trellis, mut others): (Vec<Place>, Vec<Vec<Place>>) = {
        let is_trellis = |sizes: &Vec<Place>| sizes.iter().any(|place| place.is_trellis());
        let (trellis, others): (Vec<_>, Vec<_>) = places.into_iter().partition(is_trellis);
        (trellis.into_iter().flatten().collect(), others)
    };
    for servers in SERVERS {
        let of_size = trellis.iter().filter(|place| place.servers() == servers);
        others.push(of_size.copied().collect());
    }
    others
}

fn names_of(all: &[Point]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for point in all {
        let name = point.place.name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn row(place: Place, way: Way, runs: &Runs) -> Vec<String> {
    let most = runs.cpu_us().filter(|us| *us > 0.0);
    let most = most.map(|us| 1e6 * place.servers() as f64 / us);
    vec![
        place.name(),
        way.name(),
        match place {
            Place::Memory => "in the client".to_owned(),
            Place::Other(..) | Place::Trellis(..) => place.servers().to_string(),
        },
        shown(Some(runs.rate()), 0),
        shown(runs.trips(), 2),
        shown(runs.cpu_us(), 0),
        shown(most, 0),
    ]
}

/// The most over the least of what a store needs for an interaction, on its numbers of servers.
fn spread(all: &[Point], name: &str, of: impl Fn(&Runs) -> Option<f64>) -> Option<f64> {
    let of_name = all.iter().filter(|point| point.place.name() == name);
    let values: Vec<f64> = of_name.filter_map(|point| of(&point.runs)).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    (values.len() > 1 && least > 0.0).then(|| most / least)
}

fn judge(lab: &mut Lab, all: &[Point]) {
    let is_routed = |name: &String| {
        let mut of_name = all.iter().filter(|point| point.place.name() == *name);
        of_name.any(|point| point.place.servers() > 1 && !point.place.is_trellis())
    };
    let mut said = Vec::new();
    let mut is_met = true;
    for name in names_of(all).iter().filter(|name| is_routed(name)) {
        if let Some(times) = spread(all, name, Runs::trips) {
            said.push(format!("{name} {times:.2}"));
            is_met &= times <= SAME;
        }
    }
    match said.is_empty() {
        true => lab
            .expectations
            .cannot("1a", "no routed store is installed"),
        false => lab.expectations.judge("1a", said.join(", "), is_met),
    }
    let names = names_of(all);
    let cpu = names.iter().filter_map(|name| {
        let times = spread(all, name, Runs::cpu_us)?;
        Some(format!("{name} {times:.2}"))
    });
    let cpu: Vec<String> = cpu.collect();
    match cpu.is_empty() {
        true => lab
            .expectations
            .cannot("1b", "no store has several servers here"),
        false => lab.expectations.report("1b", cpu.join(", ")),
    }
    let one = |point: &&Point| point.place.servers() == 1;
    let rates = all.iter().filter(one).map(|point| {
        let (name, rate) = (point.place.name(), point.runs.rate());
        format!("{name} {rate:.0}")
    });
    let rates: Vec<String> = rates.collect();
    lab.expectations.report("1c", rates.join(", "));
}

fn text(figure: &mut Figure) {
    let said = [
        "In the paper throughput grows with the servers, because they are what limits. Here the \
         links limit: 16 users cannot ask more often than their round trips allow, so throughput \
         stays the same. What scaling rests on is measured instead: an interaction takes as many \
         round trips, and about as much time of a processor, however many servers there are. The \
         last column is the model: interactions a second if each server had a core for itself \
         and nothing else limited.",
        "PostgreSQL and MariaDB are one server: several addresses would be copies of one database. \
         Trellis has up to three nodes here; five would measure the scheduler of this machine. \
         Its nodes work for each other, so a part of the processor time is that of messages.",
        "Processor time is that of the servers' processes from the first request to the last \
         answer, what they do when idle included. Round trips are those that the client counts.",
    ];
    figure.text.extend(said.map(str::to_owned));
}
