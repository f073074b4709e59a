//! Points of the scale model for the figures. Several figures look at the same points; each is
//! computed once, several at a time.

use crate::plan::{Clock, WantedPoint};
use anyhow::{Result, anyhow};
use scaling::CostFile;
use sim::scale::{Mix, Point, ScaleOptions, Slice, Spread, System, Unit, measure};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// The model with what it has computed so far.
pub(super) struct Model {
    pub(super) costs: CostFile,
    pub(super) quick: bool,
    /// What came out of each point, or why nothing did.
    known: Vec<(WantedPoint, Result<Rc<Point>, String>)>,
    /// Points that a figure has asked for while it only plans; `None`: it means it.
    planned: Option<Vec<WantedPoint>>,
    /// Points at a time.
    jobs: usize,
}

impl Model {
    pub(super) fn new(costs: CostFile, quick: bool, jobs: usize) -> Model {
        Model {
            costs,
            quick,
            known: Vec::new(),
            planned: None,
            jobs: jobs.max(1),
        }
    }

    /// Nodes of most figures.
    pub(super) fn nodes(&self) -> u16 {
        if self.quick { 4 } else { 16 }
    }

    /// The configuration that figures change one thing of: NewOrder and Payment, a core and three
    /// warehouses per node, 16 clients, each access remote by itself.
    pub(super) fn base(&self) -> ScaleOptions {
        let (warmup_us, run_us) = match self.quick {
            true => (100_000, 50_000),
            false => (150_000, 100_000),
        };
        ScaleOptions {
            nodes: self.nodes(),
            shards: 1,
            system: System::Leap,
            mix: Mix::TpccPair,
            spread: Spread {
                unit: Unit::Access,
                by_id: true,
                ..Spread::new(Vec::new(), 10)
            },
            clients_per_node: 16,
            settings: Vec::new(),
            paced: false,
            warehouses_per_node: 3,
            items: 1_000,
            customers: 30,
            warmup_us,
            run_us,
            slices: 1,
            seed: 1,
        }
    }

    /// The same under a system, with another percentage of remote accesses.
    pub(super) fn with(&self, system: System, remote_percent: u64) -> ScaleOptions {
        let mut options = self.base();
        options.system = system;
        options.spread.remote_percent = remote_percent;
        options
    }

    /// What the base is, for a reader. Its size is stated because it is not the specification's.
    pub(super) fn describe(&self) -> String {
        let base = self.base();
        format!(
            "{}; {} clients per node, closed loop; {:.2} s after {:.2} s of warm-up",
            self.describe_shape(),
            base.clients_per_node,
            base.run_us as f64 / 1e6,
            base.warmup_us as f64 / 1e6,
        )
    }

    /// The same without clients and lengths, for figures that have their own.
    pub(super) fn describe_shape(&self) -> String {
        let base = self.base();
        format!(
            "{}, links {} us; 1 core and {} warehouses per node; a warehouse has {} items and 10 \
             districts of {} customers (TPC-C: 100000 and 3000)",
            self.describe_costs(),
            self.costs.table.link_ns / 1_000,
            base.warehouses_per_node,
            base.items,
            base.customers,
        )
    }

    /// Whose costs they are.
    pub(super) fn describe_costs(&self) -> String {
        format!("scale model with the costs of {}", self.costs.machine)
    }

    /// A point with the links of the costs.
    pub(super) fn point(&mut self, options: &ScaleOptions) -> Result<Rc<Point>> {
        self.point_at(options, self.costs.table.link_ns / 1_000)
    }

    /// A point with links of so many microseconds one way. While a figure only plans, a point of
    /// which nothing is known.
    pub(super) fn point_at(&mut self, options: &ScaleOptions, link_us: u64) -> Result<Rc<Point>> {
        self.wanted(WantedPoint {
            options: options.clone(),
            link_us,
            flush_us: None,
        })
    }

    /// A point with links and flushes of its own.
    pub(super) fn wanted(&mut self, wanted: WantedPoint) -> Result<Rc<Point>> {
        if let Some(planned) = &mut self.planned {
            let slices = wanted.options.slices.max(1) as usize;
            let nodes = usize::from(wanted.options.nodes);
            planned.push(wanted);
            let mut point = Point {
                slices: vec![Slice::default(); slices],
                row_bytes: vec![0; nodes],
                ..Point::default()
            };
            point.usage.busy_ns = vec![0; nodes];
            return Ok(Rc::new(point));
        }
        let found = self.known.iter().find(|(known, _)| *known == wanted);
        match found {
            Some((_, Ok(point))) => Ok(point.clone()),
            Some((_, Err(text))) => Err(anyhow!("{}: {text}", wanted.title())),
            None => Err(anyhow!("{} was not planned", wanted.title())),
        }
    }

    /// From here on points are only taken note of.
    pub(super) fn begin_plan(&mut self) {
        self.planned = Some(Vec::new());
    }

    /// The points that have been asked for since, each once.
    pub(super) fn end_plan(&mut self) -> Vec<WantedPoint> {
        let mut points = Vec::new();
        for point in self.planned.take().unwrap_or_default() {
            if !points.contains(&point) {
                points.push(point);
            }
        }
        points
    }

    /// Computes what is not known yet, several at a time. A point that fails is known as such.
    pub(super) fn compute(&mut self, points: Vec<WantedPoint>, clock: &mut Clock) -> Result<()> {
        let is_new = |point: &WantedPoint| !self.known.iter().any(|(known, _)| known == point);
        let mut points: Vec<WantedPoint> = points.into_iter().filter(is_new).collect();
        // The longest first, so that no core waits long for the last.
        points.sort_by_key(|point| std::cmp::Reverse(point.work()));
        let (next, costs) = (AtomicUsize::new(0), &self.costs);
        let (points, next) = (&points, &next);
        let (sender, results) = mpsc::channel();
        let computed = std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(points.len()) {
                let sender = sender.clone();
                scope.spawn(move || {
                    while let Some(wanted) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let mut table = costs.table.clone();
                        table.link_ns = wanted.link_us * 1_000;
                        if let Some(us) = wanted.flush_us {
                            table.flush_ns = us as f64 * 1e3;
                        }
                        let began = Instant::now();
                        let measured = measure(&wanted.options, &table, None);
                        // The terminal is gone.
                        if sender.send((wanted, measured, began.elapsed())).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut computed = Vec::new();
            for (wanted, measured, took) in results {
                let result = match &measured {
                    Ok(point) => format!("{:.0} tx/s", rate(&wanted.options, point)),
                    Err(text) => format!("FAILED: {text}"),
                };
                clock.done(wanted, took, &result)?;
                computed.push((wanted.clone(), measured.map(Rc::new)));
            }
            anyhow::Ok(computed)
        });
        self.known.extend(computed?);
        Ok(())
    }
}

/// Committed transactions per second.
pub(super) fn rate(options: &ScaleOptions, point: &Point) -> f64 {
    point.commits() as f64 / (options.run_us as f64 / 1e6)
}

/// Mean latency, milliseconds.
pub(super) fn mean_ms(point: &Point) -> f64 {
    point.latency_mean_ns() as f64 / 1e6
}

/// Frames between nodes for a committed transaction.
pub(super) fn frames(point: &Point) -> f64 {
    point.usage.frames as f64 / point.commits().max(1) as f64
}

/// Rows that moved for a committed transaction.
pub(super) fn moved(point: &Point) -> f64 {
    let moves = &point.moves;
    (moves.rp_o + moves.r_po + moves.r_p_o) as f64 / point.commits().max(1) as f64
}

/// Share of the cores' time that was used, 0 to 1.
pub(super) fn busy(options: &ScaleOptions, point: &Point) -> f64 {
    let cores = f64::from(options.nodes) * f64::from(options.shards);
    let used_ns: u64 = point.usage.busy_ns.iter().sum();
    used_ns as f64 / (cores * options.run_us as f64 * 1e3)
}

/// Microseconds of a core for a committed transaction.
pub(super) fn core_us(point: &Point) -> f64 {
    let used_ns: u64 = point.usage.busy_ns.iter().sum();
    used_ns as f64 / 1e3 / point.commits().max(1) as f64
}
