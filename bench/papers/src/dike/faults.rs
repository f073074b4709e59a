//! Availability (figure 22): faults at one node and at three.

use super::ask::{Ask, Spread, once, repeats, shown};
use super::bed::{Bed, NODES, Place, Tables};
use super::natural::MIX;
use crate::figure::{Chart, Curve, Figure};
use crate::repetition::Lab;
use anyhow::Result;
use serde_json::Value;

/// Clients of a closed loop: at a fixed rate a delay would cost nothing.
const CLIENTS: u32 = 6;

/// A fault of the paper and ours that stands for it.
struct Exception {
    name: &'static str,
    /// As `--fault` takes it, up to the targets.
    fault: &'static str,
    /// The paper does it to three nodes, too.
    three: bool,
    /// Other servers have it. One that is alone and is killed serves nobody.
    others: bool,
}

/// Those that not every place has come last.
const EXCEPTIONS: [Exception; 5] = [
    Exception {
        name: "CPU",
        fault: "cpu=5%",
        three: true,
        others: true,
    },
    Exception {
        name: "write IO",
        fault: "disk_write=40kB",
        three: true,
        others: true,
    },
    Exception {
        name: "network",
        fault: "lag=50ms",
        three: true,
        others: true,
    },
    Exception {
        name: "shutdown",
        fault: "kill",
        three: false,
        others: false,
    },
    Exception {
        name: "read IO",
        fault: "disk_read=40kB",
        three: true,
        others: true,
    },
];

/// Begin, length and end of the run in seconds.
fn times(quick: bool) -> (u32, u32, u32) {
    if quick { (5, 3, 10) } else { (8, 4, 16) }
}

fn runs_of(place: Place) -> usize {
    let of = |one: &Exception| match place {
        Place::Trellis(_) => 1 + usize::from(one.three),
        Place::Other(_) => usize::from(one.others),
        Place::Galera => 1 + usize::from(one.three),
    };
    EXCEPTIONS.iter().map(of).sum()
}

pub(super) fn about_s(quick: bool) -> f64 {
    let runs: usize = Place::WITH_GALERA.iter().map(|place| runs_of(*place)).sum();
    let each_s = f64::from(times(quick).2) + 4.0;
    runs as f64 * f64::from(repeats(quick)) * each_s
}

/// What came out of one exception at one place.
struct Found {
    r_e: Option<Spread>,
    t_e: Option<Spread>,
    depth: Option<Spread>,
    t_detect: Option<Spread>,
    t90: Option<Spread>,
    undo: Option<Spread>,
}

impl Found {
    /// Of several targets the one that cost most.
    fn of(results: &[Value]) -> Found {
        let of = |field: &dyn Fn(&Value) -> Option<f64>, most: bool| {
            let values: Vec<f64> = results
                .iter()
                .filter_map(|result| {
                    let faults = result["faults"].as_array()?;
                    let values = faults.iter().filter_map(field);
                    values.reduce(if most { f64::max } else { f64::min })
                })
                .collect();
            Spread::of(&values)
        };
        Found {
            r_e: of(&|it| it["paper"]["R_e"].as_f64(), false),
            t_e: of(&|it| it["paper"]["T_e"].as_f64(), false),
            depth: of(&|it| it["depth"].as_f64(), true),
            t_detect: of(&|it| it["t_detect"].as_f64(), true),
            t90: of(&|it| it["t90"].as_f64(), true),
            undo: of(&|it| it["undo_s"].as_f64(), true),
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            shown(self.r_e, 2),
            shown(self.t_e, 2),
            shown(self.depth, 2),
            shown(self.t_detect, 1),
            shown(self.t90, 1),
            shown(self.undo, 2),
        ]
    }
}

/// What the benchmark says of a fault that was put in and has changed nothing.
const UNPROVEN: &str = "no probe has seen it";

/// Exceptions with a number, and why others have none.
#[derive(Default)]
struct Seen {
    done: usize,
    missing: Vec<String>,
}

/// All exceptions at a place; what is left of the throughput at one node.
fn exceptions(
    lab: &mut Lab,
    figure: &mut Figure,
    bed: &mut Bed,
    place: Place,
    seen: &mut Seen,
) -> Result<Vec<Option<f64>>> {
    let mut kept = Vec::new();
    for one in &EXCEPTIONS {
        let counts: &[usize] = match place {
            Place::Trellis(_) | Place::Galera if one.three => &[1, usize::from(NODES)],
            Place::Trellis(_) | Place::Galera => &[1],
            Place::Other(_) if one.others => &[1],
            Place::Other(_) => &[],
        };
        let mut first = None;
        for count in counts {
            match broken(lab, bed, place, one, *count) {
                Ok(Some(found)) => {
                    seen.done += 1;
                    if *count == 1 {
                        first = found.r_e.map(|it| it.mean);
                    }
                    let mut row = vec![one.name.to_owned(), count.to_string(), place.name()];
                    row.extend(found.cells());
                    figure.rows.push(row);
                }
                Ok(None) => seen
                    .missing
                    .push(format!("{}: not installed", place.name())),
                Err(error) => {
                    let (what, place) = (one.name, place.name());
                    let text = format!("{what} at {count} of {place}: {error:#}");
                    lab.clock.say(&text)?;
                    seen.missing.push(text);
                }
            }
        }
        kept.push(first);
    }
    Ok(kept)
}

/// Exceptions at one node and at three: what is kept, and how long it takes to come back.
pub(super) fn figure_22(lab: &mut Lab) -> Result<Figure> {
    let (begin_s, length_s, end_s) = times(lab.quick);
    let ask = ask(end_s).with("target-data", "DIR");
    let ask = ask.with("fault", format!("kill@node2:{begin_s}+{length_s}"));
    let place = format!(
        "{NODES} nodes of Trellis without replicas, three of Galera that each have all data, one \
         server of others; {CLIENTS} clients in a closed loop; {}",
        ask.command(Place::ALL[0], lab.quick)
    );
    let mut figure = Figure::new("22", "Figure 22: availability", place);
    figure.columns(&[
        "exception",
        "nodes",
        "where",
        "R_e",
        "T_e",
        "depth",
        "seen after s",
        "90 % after s",
        "undone in s",
    ]);
    let mut bed = Bed::start()?;
    let mut chart = Chart::by_name(
        "what is left of the throughput while it lasts (R_e), one node",
        "exception",
        "share",
        EXCEPTIONS.map(|one| one.name.to_owned()).to_vec(),
    );
    let mut seen = Seen::default();
    for place in Place::WITH_GALERA {
        let kept = exceptions(lab, &mut figure, &mut bed, place, &mut seen)?;
        let points = kept.into_iter().enumerate();
        let points = points.filter_map(|(at, share)| Some((at as f64, share?)));
        let points: Vec<(f64, f64)> = points.collect();
        if !points.is_empty() {
            chart.curves.push(Curve {
                name: place.name(),
                points,
            });
        }
    }
    figure.charts.push(chart);
    let other = seen.missing.iter().filter(|text| !text.contains(UNPROVEN));
    let other = other.count();
    lab.expectations.judge(
        "4a",
        format!(
            "{} exceptions proven and undone, {} that did not reach the server, {other} that \
             failed otherwise",
            seen.done,
            seen.missing.len() - other
        ),
        seen.done > 0 && other == 0,
    );
    texts(&mut figure, &seen.missing);
    Ok(figure)
}

fn texts(figure: &mut Figure, missing: &[String]) {
    for text in missing {
        figure.text.push(format!("No number: {text}."));
    }
    figure.text.push(
        "Differences to the paper. CPU: its text limits the process to 3 of 8 cores, its appendix \
         burns cores 0 to 5; here a control group gives a node a twentieth of a core. IO: it adds \
         load to the disk; here the bytes of the node are limited. Network: it delays a network \
         card; here the packet filter holds all packets of a node, to and from clients and \
         other nodes. Shutdown: it shuts the machine down; here the process is killed and started \
         again, and rows of that node cannot be reached meanwhile, because Trellis has no \
         replicas, which OceanBase, TiDB and CockroachDB have."
            .to_owned(),
    );
    figure.text.push(
        "Galera waits at COMMIT until all its nodes have taken a transaction, and slows down when \
         one of them lags (flow control), so a node that is slow holds up the clients of the \
         others. After a kill none of its rows is lost, but nobody commits before the others have \
         given the dead node up (5 s as installed, longer than the fault here lasts). The node is \
         started with the place that its files have reached, gets what it has missed, and counts \
         as undone when it listens; the next run begins when all nodes say that they are in step."
            .to_owned(),
    );
    figure.text.push(
        "A depth of 0 beside a low R_e: less was committed while the fault lasted, but the seconds \
         before it were so uneven that no fall stands out. R_e and T_e are equation 4 of the paper."
            .to_owned(),
    );
    figure.text.push(
        "A fault that does not reach the server is not proven, and a run without proof has no \
         number: all rows of Trellis are in memory, so a limit of what it reads from disk never \
         holds it up, and a node that needs less than its share of a core is not limited."
            .to_owned(),
    );
}

fn ask(end_s: u32) -> Ask {
    Ask::mix(MIX).with("clients", CLIENTS).seconds(end_s)
}

/// The runs of one exception.
fn broken(
    lab: &mut Lab,
    bed: &mut Bed,
    place: Place,
    one: &Exception,
    count: usize,
) -> Result<Option<Found>> {
    let (begin_s, length_s, end_s) = times(lab.quick);
    let Some(url) = bed.url(place, Tables::even(9))? else {
        return Ok(None);
    };
    let ask = match place {
        Place::Trellis(_) => ask(end_s).with("target-data", bed.cluster_dir().display()),
        Place::Other(_) | Place::Galera => {
            let targets = bed.other_targets(place);
            let with = |ask: Ask, target: String| ask.with("target", target);
            targets.into_iter().fold(ask(end_s), with)
        }
    };
    let names: Vec<String> = match count {
        // The node that most clients do not begin at.
        1 if !matches!(place, Place::Other(_)) => vec!["node2".to_owned()],
        _ => (1..=count).map(|node| format!("node{node}")).collect(),
    };
    let fault = format!("{}@{}:{begin_s}+{length_s}", one.fault, names.join(","));
    let ask = ask.with("fault", fault);
    let mut results = Vec::new();
    for repeat in 0..repeats(lab.quick) {
        let args = ask.arguments(place, lab.quick, 1 + repeat);
        let result = once(bed, &url, &args);
        lab.clock.besides_done(f64::from(end_s) + 4.0);
        // The next run begins with a whole cluster, whatever became of this one.
        match place {
            Place::Galera => bed.heal_galera()?,
            Place::Trellis(_) | Place::Other(_) => bed.heal()?,
        }
        results.push(result?);
    }
    let found = Found::of(&results);
    lab.clock.say(&format!(
        "{}, {} at {count}: depth {}",
        place.name(),
        one.name,
        shown(found.depth, 2)
    ))?;
    Ok(Some(found))
}
