//! Which node of a Trellis cluster is home of a warehouse.
//!
//! A load that writes each warehouse by way of its home sends no row between nodes, and under a
//! protocol that moves rows to their writer none is left away from home. A load that guesses wrong
//! loses time and nothing else.

use crate::answers::Answers;
use crate::link::{Link, LinkError};
use crate::url::Target;

/// The endpoint at the home of each warehouse.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    /// Index in the list of endpoints, by warehouse from 1; `None` where the home is not listed.
    endpoints: Vec<Option<usize>>,
}

/// Asks a Trellis server for the numbers of the nodes that are homes of rows of a table whose key
/// is a number, from 1 to `count`. A replicated table has no homes.
pub fn nodes_of(link: &mut Link, table: &str, count: u32) -> Result<Vec<Option<i64>>, LinkError> {
    let question = format!(
        "SELECT trellis_node_of('{table}', g::text) FROM generate_series(1, {count}) g ORDER BY g"
    );
    let mut answers = Answers::new();
    link.query(&question, &mut answers)?;
    let rows = 0..answers.rows(0);
    Ok(rows.map(|row| answers.int(0, row, 0)).collect())
}

impl Homes {
    /// Asks a Trellis server, whose tables have been made, for the homes of so many warehouses.
    pub fn ask(link: &mut Link, target: &Target, warehouses: u32) -> Result<Homes, LinkError> {
        let mut answers = Answers::new();
        link.query("SHOW NODES", &mut answers)?;
        let rows = 0..answers.rows(0);
        let nodes = rows.map(|row| {
            let address = answers.text(0, row, 1);
            let mut all = target.endpoints.iter();
            let endpoint = all.position(|endpoint| endpoint.to_string() == address);
            (answers.int(0, row, 0), endpoint)
        });
        let nodes: Vec<(Option<i64>, Option<usize>)> = nodes.collect();
        let at = |node: Option<i64>| {
            let known = nodes.iter().find(|(number, _)| *number == node);
            known.and_then(|(_, endpoint)| *endpoint)
        };
        let homes = nodes_of(link, "warehouse", warehouses)?;
        let endpoints = homes.into_iter().map(at).collect();
        Ok(Homes { endpoints })
    }

    /// The endpoint at the home of a warehouse; `None` if it is not known.
    pub fn of(&self, warehouse: u32) -> Option<usize> {
        let at = usize::try_from(warehouse).ok()?.checked_sub(1)?;
        self.endpoints.get(at).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warehouses_count_from_one() {
        let homes = Homes {
            endpoints: vec![Some(1), None, Some(0)],
        };
        let found: Vec<Option<usize>> = (0..5).map(|warehouse| homes.of(warehouse)).collect();
        assert_eq!(found, [None, Some(1), None, Some(0), None]);
    }
}
