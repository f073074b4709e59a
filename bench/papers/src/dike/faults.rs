//! Availability (figure 22): faults at one node and at three.

use super::ask::{Ask, Spread, once, repeats, shown};
use super::bed::{Bed, Data, NODES, Place};
use super::natural::MIX;
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::Result;
use serde_json::Value;

/// Transactions due in a second: so few that every server keeps up while nothing is broken.
const RATE: u32 = 60;
const CLIENTS: u32 = 24;

/// A fault of the paper and ours that stands for it.
struct Exception {
    name: &'static str,
    /// As `--fault` takes it, up to the targets.
    fault: &'static str,
    /// The paper does it to three nodes, too.
    three: bool,
    /// Other servers have it.
    others: bool,
}

const EXCEPTIONS: [Exception; 5] = [
    Exception {
        name: "CPU",
        fault: "cpu=5%",
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
        name: "write IO",
        fault: "disk_write=40kB",
        three: true,
        others: true,
    },
    Exception {
        name: "read IO",
        fault: "disk_read=40kB",
        three: true,
        others: true,
    },
    Exception {
        name: "network",
        fault: "delay=50ms",
        three: true,
        others: true,
    },
];

/// Begin, length and end of the run in seconds.
fn times(quick: bool) -> (u32, u32, u32) {
    if quick { (4, 2, 9) } else { (8, 5, 20) }
}

fn runs_of(place: Place) -> usize {
    let of = |one: &Exception| match place {
        Place::Trellis(_) => 1 + usize::from(one.three),
        Place::Other(_) => usize::from(one.others),
    };
    EXCEPTIONS.iter().map(of).sum()
}

pub(super) fn about_s(quick: bool) -> f64 {
    let runs: usize = Place::ALL.iter().map(|place| runs_of(*place)).sum();
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

/// Exceptions at one node and at three: what is kept, and how long it takes to come back.
pub(super) fn figure_22(lab: &mut Lab) -> Result<Figure> {
    let (begin_s, length_s, end_s) = times(lab.quick);
    let ask = ask(end_s).with("target-data", "DIR");
    let ask = ask.with("fault", format!("kill@node2:{begin_s}+{length_s}"));
    let place = format!(
        "{NODES} nodes of Trellis without replicas, one server of others; open loop; {}",
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
    let (mut done, mut missing) = (0, Vec::new());
    for place in Place::ALL {
        let mut kept = Vec::new();
        for one in &EXCEPTIONS {
            let counts: &[usize] = match place {
                Place::Trellis(_) if one.three => &[1, usize::from(NODES)],
                Place::Trellis(_) => &[1],
                Place::Other(_) if one.others => &[1],
                Place::Other(_) => &[],
            };
            let mut first = f64::NAN;
            for count in counts {
                match broken(lab, &mut bed, place, one, *count) {
                    Ok(Some(found)) => {
                        done += 1;
                        if *count == 1 {
                            first = found.r_e.map_or(f64::NAN, |it| it.mean);
                        }
                        let mut row = vec![one.name.to_owned(), count.to_string(), place.name()];
                        row.extend(found.cells());
                        figure.rows.push(row);
                    }
                    Ok(None) => missing.push(format!("{}: not installed", place.name())),
                    Err(error) => {
                        let text =
                            format!("{} at {count} of {}: {error:#}", one.name, place.name());
                        lab.clock.say(&text)?;
                        missing.push(text);
                    }
                }
            }
            kept.push(first);
        }
        if kept.iter().any(|share| share.is_finite()) {
            let points = kept.into_iter().enumerate();
            let points = points.filter(|(_, share)| share.is_finite());
            chart.curves.push(crate::figure::Curve {
                name: place.name(),
                points: points.map(|(at, share)| (at as f64, share)).collect(),
            });
        }
    }
    figure.charts.push(chart);
    lab.expectations.judge(
        "4a",
        format!(
            "{done} exceptions proven and undone, {} without a number",
            missing.len()
        ),
        done > 0 && missing.is_empty(),
    );
    texts(&mut figure, &missing);
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
         card; here a proxy delays what the clients send and get, not what nodes say to each \
         other. Shutdown: it shuts the machine down; here the process is killed and started \
         again, and rows of that node cannot be reached meanwhile, because Trellis has no \
         replicas, which OceanBase, TiDB and CockroachDB have."
            .to_owned(),
    );
    figure.text.push(
        "A fault that costs nothing at so low a rate is not proven, and a run without proof has no \
         number: that is what a missing line of CPU or read IO mostly means."
            .to_owned(),
    );
}

fn ask(end_s: u32) -> Ask {
    Ask::mix(MIX)
        .with("rate", RATE)
        .with("clients", CLIENTS)
        .seconds(end_s)
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
    let Some(url) = bed.url(place, Data::even(9))? else {
        return Ok(None);
    };
    let ask = match place {
        Place::Trellis(_) => ask(end_s).with("target-data", bed.cluster_dir().display()),
        Place::Other(kind) => {
            let Some((process, data)) = bed.other_target(kind) else {
                return Ok(None);
            };
            let target = format!("node1={process},data:{}", data.display());
            ask(end_s).with("target", target)
        }
    };
    let names: Vec<String> = match count {
        // The node that most clients do not begin at.
        1 if place.is_trellis() => vec!["node2".to_owned()],
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
        bed.heal()?;
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
