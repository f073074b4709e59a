//! Which node of a Trellis cluster is home of a warehouse.
//!
//! A load that writes each warehouse by way of its home sends no row between nodes, and under a
//! protocol that moves rows to who writes them none is left away from home. Whoever guesses wrong
//! loses time and nothing else.

use crate::answers::Answers;
use crate::link::{Link, LinkError};
use crate::url::Target;
use base::{Datum, key::encode_datum, slot_of};

/// The nodes of a cluster in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Homes {
    /// Index of each node in the list of endpoints, where it is there.
    nodes: Vec<Option<usize>>,
    shards_per_node: usize,
}

impl Homes {
    /// Asks a Trellis server.
    pub(crate) fn ask(link: &mut Link, target: &Target) -> Result<Homes, LinkError> {
        let mut answers = Answers::new();
        match link.query("SHOW NODES", &mut answers) {
            Ok(()) => {}
            Err(LinkError::Server(_)) => return Ok(Homes::default()),
            Err(error) => return Err(error),
        }
        let endpoint = |address: &str| {
            let mut all = target.endpoints.iter();
            all.position(|endpoint| endpoint.to_string() == address)
        };
        let rows = 0..answers.rows(0);
        let nodes = rows.map(|row| endpoint(answers.text(0, row, 1))).collect();
        let shards = answers.int(0, 0, 4).unwrap_or(1);
        Ok(Homes {
            nodes,
            shards_per_node: shards.max(1) as usize,
        })
    }

    /// The endpoint at the home of a warehouse; `None` if it is not known.
    pub(crate) fn of(&self, warehouse: u32) -> Option<usize> {
        if self.nodes.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        encode_datum(&mut bytes, &Datum::Int(i64::from(warehouse)), false);
        let slot = usize::from(slot_of(&bytes).0);
        // Slots go round the first shards of all nodes, then round the second ones.
        let shard = slot % (self.nodes.len() * self.shards_per_node);
        self.nodes[shard % self.nodes.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warehouses_are_spread_over_all_endpoints() {
        let homes = Homes {
            nodes: vec![Some(0), Some(1), Some(2)],
            shards_per_node: 2,
        };
        for endpoint in 0..3 {
            let at = (1..=100).filter(|w| homes.of(*w) == Some(endpoint)).count();
            assert!(at > 15, "endpoint {endpoint} is home of {at} of 100");
        }
        assert_eq!(Homes::default().of(1), None);
    }
}
