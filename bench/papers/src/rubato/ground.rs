//! What the systems have in common, so that a ratio of two of them means something, and the
//! configuration from which the experiments in the model start.

use super::SYSTEMS;
use crate::model::Model;
use crate::repetition::Lab;
use sim::scale::{Mix, ScaleOptions, Spread, System, Unit};

/// All of TPC-C: a core, 4 warehouses and 16 clients per node, one access of 10 % of the
/// transactions on another node.
pub(super) fn base(model: &Model) -> ScaleOptions {
    ScaleOptions {
        system: System::Formula,
        mix: Mix::TpccFull,
        spread: Spread {
            unit: Unit::Transaction,
            ..Spread::new(Vec::new(), 10)
        },
        clients_per_node: 16,
        warehouses_per_node: 4,
        ..model.base()
    }
}

/// The base under a system, with another percentage of remote transactions.
pub(super) fn with(lab: &Lab, system: System, remote_percent: u64) -> ScaleOptions {
    let mut options = base(&lab.model);
    options.system = system;
    options.spread.remote_percent = remote_percent;
    options
}

/// The base in words.
pub(super) fn describe(model: &Model) -> String {
    let base = base(model);
    format!(
        "{}, links {} us; 1 core, {} warehouses and {} clients per node, closed loop; a warehouse \
         has {} items and 10 districts of {} customers (TPC-C: 100000 and 3000); {:.2} s after \
         {:.2} s of warm-up",
        model.describe_costs(),
        model.costs.table.link_ns / 1_000,
        base.warehouses_per_node,
        base.clients_per_node,
        base.items,
        base.customers,
        base.run_us as f64 / 1e6,
        base.warmup_us as f64 / 1e6,
    )
}

/// Lines for the report.
pub(super) fn lines(model: &Model) -> Vec<String> {
    let base = base(model);
    let databases = SYSTEMS.map(|system| {
        let options = system.options();
        format!("{}: CREATE DATABASE ... WITH ({options})", system.name())
    });
    vec![
        format!(
            "The systems differ in one line. {}. Everything else is the server's default but for \
             early_answer, where a figure says that it is off.",
            databases.join("; ")
        ),
        format!(
            "The same client program, which does not know the system: prepared statements in the \
             same rounds, SERIALIZABLE (records: statements that commit by themselves); {} \
             clients per node, each connected to the node of its home, one transaction at a time, \
             no pauses but after a conflict, or the pauses of the specification.",
            base.clients_per_node,
        ),
        "The same inputs: the seed, the client's number and how many it has drawn decide them, \
         never an answer. The same tables, loaded at the homes of their rows; ITEM is read by all \
         nodes before anything counts under every system."
            .to_owned(),
        "The same machine: cores, links, disks and costs. Costs of steps were measured under \
         two_phase and leap; a step of formula has the costs of the same step of two_phase, whose \
         machine it is. Every commit is durable before it is answered."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaling::CostFile;

    #[test]
    fn the_ground_is_as_it_was_frozen() {
        let options = SYSTEMS.map(System::options);
        assert_eq!(
            options,
            [
                "protocol = 'formula'",
                "protocol = 'two_phase', execution = 'interleaved'",
                "protocol = 'leap'",
            ]
        );
        let model = Model::new(CostFile::of_option(None).unwrap(), false, 1);
        let base = base(&model);
        let shape = (base.nodes, base.shards, base.clients_per_node);
        assert_eq!(shape, (16, 1, 16));
        assert_eq!(
            (base.warehouses_per_node, base.items, base.customers),
            (4, 1_000, 30)
        );
        assert_eq!((base.mix, base.paced), (Mix::TpccFull, false));
        assert_eq!(base.spread, Spread::new(Vec::new(), 10));
        assert_eq!(lines(&model).len(), 4);
    }
}
