//! Points of the scale model for the figures. Several figures look at the same points; each is
//! computed once.

use crate::sim::CostFile;
use anyhow::{Result, anyhow};
use sim::scale::{Load, Point, ScaleOptions, Spread, System, Unit, measure};
use std::rc::Rc;
use std::time::Instant;

/// The systems that are compared, on equal ground.
pub(super) const SYSTEMS: [System; 3] = [System::Leap, System::Interleaved, System::Serial];

/// The model with what it has computed so far.
pub(super) struct Model {
    pub(super) costs: CostFile,
    pub(super) quick: bool,
    known: Vec<(ScaleOptions, u64, Rc<Point>)>,
}

impl Model {
    pub(super) fn new(costs: CostFile, quick: bool) -> Model {
        Model {
            costs,
            quick,
            known: Vec::new(),
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
            true => (150_000, 50_000),
            false => (300_000, 200_000),
        };
        ScaleOptions {
            nodes: self.nodes(),
            shards: 1,
            system: System::Leap,
            load: Load::TpccPair,
            spread: Spread {
                unit: Unit::Access,
                by_id: true,
                ..Spread::new(Vec::new(), 10)
            },
            clients_per_node: 16,
            warehouses_per_node: 3,
            items: 1_000,
            customers: 30,
            warmup_us,
            run_us,
            slices: 1,
            seed: 1,
        }
    }

    /// What the base is, for a reader. Its size is stated because it is not the specification's.
    pub(super) fn describe(&self) -> String {
        let base = self.base();
        format!(
            "scale model with the costs of {}: 1 core, {} warehouses and {} clients per node, \
             closed loop; a warehouse has {} items and 10 districts of {} customers (TPC-C: \
             100000 and 3000); links {} us; {:.2} s after {:.2} s of warm-up",
            self.costs.machine,
            base.warehouses_per_node,
            base.clients_per_node,
            base.items,
            base.customers,
            self.costs.table.link_ns / 1_000,
            base.run_us as f64 / 1e6,
            base.warmup_us as f64 / 1e6,
        )
    }

    /// A point with the links of the costs.
    pub(super) fn point(&mut self, options: &ScaleOptions) -> Result<Rc<Point>> {
        self.point_at(options, self.costs.table.link_ns / 1_000)
    }

    /// A point with links of so many microseconds one way.
    pub(super) fn point_at(&mut self, options: &ScaleOptions, link_us: u64) -> Result<Rc<Point>> {
        let found = self.known.iter();
        let mut found = found.filter(|(known, link, _)| known == options && *link == link_us);
        if let Some((.., point)) = found.next() {
            return Ok(point.clone());
        }
        let mut table = self.costs.table.clone();
        table.link_ns = link_us * 1_000;
        let began = Instant::now();
        let measured = measure(options, &table, None);
        let point = Rc::new(measured.map_err(|text| anyhow!("{}: {text}", title(options)))?);
        super::progress(&format!(
            "  {}: {:.0} tx/s, {} of {} attempts again ({:.1} s)",
            title(options),
            rate(options, &point),
            point.retries,
            point.commits() + point.retries,
            began.elapsed().as_secs_f64(),
        ))?;
        self.known.push((options.clone(), link_us, point.clone()));
        Ok(point)
    }
}

fn title(options: &ScaleOptions) -> String {
    let locality = match options.spread.locality_percent {
        Some(percent) => format!(", locality {percent} %"),
        None => String::new(),
    };
    format!(
        "model: {}, {} nodes x {}, {} clients each, remote {} %{locality}",
        options.system.name(),
        options.nodes,
        options.shards,
        options.clients_per_node,
        options.spread.remote_percent,
    )
}

/// Committed transactions per second.
pub(super) fn rate(options: &ScaleOptions, point: &Point) -> f64 {
    point.commits() as f64 / (options.run_us as f64 / 1e6)
}

/// Mean latency, milliseconds.
pub(super) fn mean_ms(point: &Point) -> f64 {
    point.latency_mean_ns() as f64 / 1e6
}
