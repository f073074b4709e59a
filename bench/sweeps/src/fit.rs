//! What several runs say together: how throughput grows with the cluster (the paper's equation 3,
//! and the universal scalability law), and what faults cost (equation 4).

use measures::scalability::{self, Estimate, Law, LawError, Point};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A run of which the result was written by `bench run --json`.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Where it was read.
    pub file: String,
    /// Nodes and commits a second.
    pub point: Point,
    /// Workload and server, which all runs have in common.
    subject: (String, String),
    /// What was broken, with the paper's R_e and T_e where they are known.
    faults: Vec<Broken>,
}

#[derive(Clone, Debug)]
struct Broken {
    fault: String,
    target: String,
    r_e: Option<f64>,
    t_e: Option<f64>,
}

impl Measured {
    /// Reads a result.
    ///
    /// # Errors
    /// It is none, or has no number that can be compared; the text says why.
    pub fn read(file: &str, text: &str) -> Result<Measured, String> {
        let refuse = |why: &str| format!("{file}: {why}");
        let value: Value =
            serde_json::from_str(text).map_err(|error| refuse(&format!("no JSON ({error})")))?;
        let word = |at: &str| value.pointer(at).and_then(Value::as_str);
        let (Some(workload), Some(server)) = (word("/workload"), word("/server/name")) else {
            return Err(refuse("no result of trellis bench run --json"));
        };
        if value["passed"] != json!(true) {
            return Err(refuse("the run did not pass: it has no number"));
        }
        if word("/config/loop") != Some("closed") {
            return Err(refuse(
                "an open loop: its rate is what was asked for, not what the cluster can do",
            ));
        }
        let nodes = value["nodes"]
            .as_u64()
            .and_then(|it| u32::try_from(it).ok());
        let rate = value["committed_per_s"].as_f64();
        let Some((nodes, rate)) = nodes.filter(|it| *it > 0).zip(rate) else {
            return Err(refuse("no nodes or no committed_per_s"));
        };
        let faults = value["faults"].as_array().map(Vec::as_slice);
        let fault = |fault: &Value| Broken {
            fault: fault["fault"].as_str().unwrap_or("").to_string(),
            target: fault["target"].as_str().unwrap_or("").to_string(),
            r_e: fault["paper"]["R_e"].as_f64(),
            t_e: fault["paper"]["T_e"].as_f64(),
        };
        Ok(Measured {
            file: file.to_string(),
            point: Point { nodes, rate },
            subject: (workload.to_string(), server.to_string()),
            faults: faults.unwrap_or_default().iter().map(fault).collect(),
        })
    }
}

/// What they say together.
#[derive(Clone, Debug)]
pub struct Fitted {
    runs: Vec<Measured>,
    /// Mean rate by size.
    sizes: BTreeMap<u32, f64>,
    /// The law of the runs in which nothing was broken.
    pub law: Result<Law, LawError>,
}

/// Fits runs of one workload on one server.
///
/// # Errors
/// There is none, or they are of different workloads or servers.
pub fn fit(runs: Vec<Measured>) -> Result<Fitted, String> {
    let first = runs.first().ok_or("no result is given")?;
    if let Some(other) = runs.iter().find(|run| run.subject != first.subject) {
        let ((a, on_a), (b, on_b)) = (&first.subject, &other.subject);
        return Err(format!(
            "{} is {a} on {on_a}, {} is {b} on {on_b}: they do not grow together",
            first.file, other.file
        ));
    }
    // A rate with a fault in it is not that of the cluster.
    let whole = runs.iter().filter(|run| run.faults.is_empty());
    let points: Vec<Point> = whole.map(|run| run.point).collect();
    let mut by_size: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for point in &points {
        by_size.entry(point.nodes).or_default().push(point.rate);
    }
    let mean = |rates: &Vec<f64>| rates.iter().sum::<f64>() / rates.len() as f64;
    Ok(Fitted {
        sizes: by_size
            .iter()
            .map(|(size, rates)| (*size, mean(rates)))
            .collect(),
        law: scalability::fit(&points),
        runs,
    })
}

impl Fitted {
    /// Equation 3 from each size to the next: sizes and the number.
    pub fn steps(&self) -> Vec<(u32, u32, Option<f64>)> {
        let points = self.sizes.iter();
        let points: Vec<Point> = points
            .map(|(&nodes, &rate)| Point { nodes, rate })
            .collect();
        let step = |two: &[Point]| {
            let number = scalability::scalability(two[0], two[1]);
            (two[0].nodes, two[1].nodes, number)
        };
        points.windows(2).map(step).collect()
    }

    /// As text for a terminal.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let (workload, server) = &self.runs[0].subject;
        let _ = writeln!(out, "{workload} on {server}");
        for run in &self.runs {
            let Point { nodes, rate } = run.point;
            let broken = if run.faults.is_empty() {
                ""
            } else {
                "  (with faults: not fitted)"
            };
            let _ = writeln!(
                out,
                "{nodes:>5} nodes  {rate:>11.1} per s  {}{broken}",
                run.file
            );
        }
        for (from, to, number) in self.steps() {
            let number = number.map_or_else(|| String::from("-"), |it| format!("{it:.3}"));
            let _ = writeln!(
                out,
                "scalability (equation 3) from {from} to {to} nodes: {number}"
            );
        }
        match &self.law {
            Ok(law) => tell_law(law, &mut out),
            Err(error) => {
                let _ = writeln!(out, "no scalability law: {error}");
            }
        }
        for (run, fault) in self.broken() {
            let told = |number: Option<f64>| {
                number.map_or_else(|| String::from("-"), |it| format!("{it:.3}"))
            };
            let _ = writeln!(
                out,
                "{} at {}: R_e {}, T_e {}  {}",
                fault.fault,
                fault.target,
                told(fault.r_e),
                told(fault.t_e),
                run.file
            );
        }
        out
    }

    fn broken(&self) -> impl Iterator<Item = (&Measured, &Broken)> {
        let runs = self.runs.iter();
        runs.flat_map(|run| run.faults.iter().map(move |fault| (run, fault)))
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let run = |run: &Measured| {
            json!({
                "file": run.file,
                "nodes": run.point.nodes,
                "committed_per_s": run.point.rate,
                "fitted": run.faults.is_empty(),
            })
        };
        let step = |step: (u32, u32, Option<f64>)| {
            let (from, to, number) = step;
            json!({ "from": from, "to": to, "scalability": number })
        };
        let fault = |(run, fault): (&Measured, &Broken)| {
            json!({
                "file": run.file,
                "fault": fault.fault,
                "target": fault.target,
                "R_e": fault.r_e,
                "T_e": fault.t_e,
            })
        };
        json!({
            "format": 1,
            "workload": self.runs[0].subject.0,
            "server": self.runs[0].subject.1,
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
            "equation_3": self.steps().into_iter().map(step).collect::<Vec<_>>(),
            "law": self.law.as_ref().ok().map(law_json),
            "no_law": self.law.as_ref().err().map(ToString::to_string),
            "faults": self.broken().map(fault).collect::<Vec<_>>(),
        })
    }
}

fn tell_law(law: &Law, out: &mut String) {
    let _ = writeln!(
        out,
        "universal scalability law of {} runs, 95 % intervals:",
        law.points
    );
    for (name, estimate, meaning) in [
        ("lambda", law.lambda, "commits per second of one node"),
        ("sigma", law.sigma, "contention"),
        ("kappa", law.kappa, "coherency"),
    ] {
        let Estimate { value, low, high } = estimate;
        let _ = writeln!(
            out,
            "  {name:<7}{value:>12.5}  ({low:.5} to {high:.5})  {meaning}"
        );
    }
    let _ = match law.peak_nodes() {
        Some(peak) => writeln!(out, "  highest at {peak:.1} nodes"),
        None => writeln!(out, "  no highest number of nodes: the rate never falls"),
    };
    let _ = writeln!(out, "  scatter {:.2} % of the rate", 100.0 * law.scatter);
}

fn law_json(law: &Law) -> Value {
    // JSON has no infinity: an end that the runs say nothing about is null.
    let estimate = |it: Estimate| json!({ "value": it.value, "low": it.low, "high": it.high });
    json!({
        "lambda": estimate(law.lambda),
        "sigma": estimate(law.sigma),
        "kappa": estimate(law.kappa),
        "peak_nodes": law.peak_nodes(),
        "scatter": law.scatter,
        "points": law.points,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(nodes: u32, rate: f64) -> Value {
        json!({
            "workload": "dike", "passed": true, "nodes": nodes, "committed_per_s": rate,
            "server": { "name": "Trellis 0.1.0 (leap)" }, "config": { "loop": "closed" },
            "faults": [],
        })
    }

    fn read(value: &Value) -> Result<Measured, String> {
        Measured::read("a.json", &value.to_string())
    }

    fn fitted(points: &[(u32, f64)]) -> Fitted {
        let runs = points
            .iter()
            .map(|(nodes, rate)| read(&result(*nodes, *rate)).unwrap());
        fit(runs.collect()).unwrap()
    }

    #[test]
    fn a_law_needs_four_sizes_and_equation_3_two() {
        let rate = |nodes: f64| 1_000.0 * nodes / (1.0 + 0.05 * (nodes - 1.0));
        let points: Vec<(u32, f64)> = [1, 2, 4, 8].map(|n| (n, rate(f64::from(n)))).to_vec();
        let all = fitted(&points);
        let law = all.law.as_ref().unwrap();
        assert!((law.lambda.value - 1_000.0).abs() < 1.0, "{law:?}");
        assert!((law.sigma.value - 0.05).abs() < 1e-3, "{law:?}");
        assert!(
            all.table().contains("sigma       0.05000"),
            "{}",
            all.table()
        );
        let few = fitted(&points[..3]);
        assert_eq!(few.law, Err(LawError::FewPoints(3)));
        let told = few.json();
        assert!(told["law"].is_null());
        assert!(
            told["no_law"].as_str().unwrap().contains("needs 4"),
            "{told}"
        );
        // 1 - |952.4 - 1000| / 952.4
        let step = told["equation_3"][0]["scalability"].as_f64().unwrap();
        assert!((step - 0.95).abs() < 1e-9, "{told}");
        assert!(few.table().contains("no scalability law: 3 measurements"));
    }

    #[test]
    fn a_run_with_faults_is_told_and_not_fitted() {
        let mut broken = result(3, 10.0);
        broken["faults"] = json!([
            { "fault": "kill", "target": "node2", "paper": { "R_e": 0.5, "T_e": 0.25 } },
            { "fault": "pause", "target": "node1", "paper": null },
        ]);
        let runs = vec![read(&result(3, 900.0)).unwrap(), read(&broken).unwrap()];
        let found = fit(runs).unwrap();
        assert_eq!(found.sizes, BTreeMap::from([(3, 900.0)]));
        let table = found.table();
        assert!(
            table.contains("kill at node2: R_e 0.500, T_e 0.250"),
            "{table}"
        );
        assert!(table.contains("pause at node1: R_e -, T_e -"), "{table}");
        assert_eq!(found.json()["faults"][0]["R_e"], 0.5);
    }

    #[test]
    fn what_cannot_be_compared_is_refused_by_name() {
        let with = |at: &str, value: Value| {
            let mut result = result(3, 10.0);
            *result.pointer_mut(at).unwrap() = value;
            read(&result).map(|_| ())
        };
        let refused = |at: &str, value: Value| with(at, value).unwrap_err();
        assert!(refused("/passed", json!(false)).starts_with("a.json: the run did not pass"));
        assert!(refused("/config/loop", json!("open")).contains("open loop"));
        assert!(refused("/committed_per_s", Value::Null).contains("committed_per_s"));
        assert!(refused("/nodes", json!(0)).contains("no nodes"));
        assert!(
            Measured::read("b", "{")
                .unwrap_err()
                .starts_with("b: no JSON")
        );
        assert!(
            Measured::read("b", "{}")
                .unwrap_err()
                .contains("bench run --json")
        );
        let mut other = result(4, 10.0);
        other["workload"] = json!("tpcc");
        let both = vec![read(&result(3, 10.0)).unwrap(), read(&other).unwrap()];
        assert!(fit(both).unwrap_err().contains("do not grow together"));
        assert!(fit(Vec::new()).is_err());
    }
}
