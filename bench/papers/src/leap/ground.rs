//! What the systems have in common, so that a ratio of two of them means something.
//!
//! The baseline's configuration was frozen before the figures were drawn; a test says if it is
//! changed.

use super::SYSTEMS;
use crate::cluster::pair;
use crate::model::Model;
use workload::spread::Plan;

/// Lines for the report.
pub(super) fn lines(model: &Model) -> Vec<String> {
    let base = model.base();
    let plan = Plan {
        mix: base.mix,
        ..pair(0)
    };
    let databases = SYSTEMS.map(|system| {
        let options = system.options();
        format!("{}: CREATE DATABASE ... WITH ({options})", system.name())
    });
    vec![
        format!(
            "The systems differ in one line. {}. Everything else is the server's default; no \
             figure tunes a system.",
            databases.join("; ")
        ),
        format!(
            "The same client program, which does not know the system: {} prepared statements of \
             NewOrder and Payment and the others of TPC-C, sent in the same rounds, all \
             transactions SERIALIZABLE; {} clients per node, each connected to the node of its \
             home warehouse, one transaction at a time, no pauses but after a conflict.",
            plan.statements().len(),
            base.clients_per_node,
        ),
        "The same inputs: the seed, the client's number and how many it has drawn decide them, \
         never an answer. The same tables, loaded at the homes of their rows; ITEM is read by all \
         nodes before anything counts under every system."
            .to_owned(),
        "The same machine: cores, links, disks and costs in the model, processes and the proxy on \
         the cluster. Every commit is durable before it is answered. two_phase is the whole of \
         docs/protocols/two_phase.md, one-shard commits with one forced write and entrusted \
         commits included: it is the server's default, not a straw man."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaling::CostFile;

    #[test]
    fn the_baseline_is_as_it_was_frozen() {
        let options = SYSTEMS.map(|system| system.options());
        assert_eq!(
            options,
            [
                "protocol = 'leap'",
                "protocol = 'two_phase', execution = 'interleaved'",
                "protocol = 'two_phase', execution = 'serial'",
            ]
        );
        let model = Model::new(CostFile::of_option(None).unwrap(), false, 1);
        let base = model.base();
        assert_eq!(
            (
                base.nodes,
                base.shards,
                base.clients_per_node,
                base.warehouses_per_node
            ),
            (16, 1, 16, 3)
        );
        assert_eq!((base.items, base.customers, base.seed), (1_000, 30, 1));
        let every = Plan {
            mix: base.mix,
            ..pair(0)
        };
        let every = every.statements();
        assert!(
            every.iter().any(|(sql, _)| sql.contains("SERIALIZABLE")),
            "{every:?}"
        );
        assert!(
            !every.iter().any(|(sql, _)| sql.contains("READ COMMITTED")),
            "{every:?}"
        );
        assert_eq!(lines(&model).len(), 4);
    }
}
