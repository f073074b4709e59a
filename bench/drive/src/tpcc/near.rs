//! Clients at home: each is connected to the node on which its home warehouse lies.
//!
//! Connections go round the endpoints, so the terminals of an endpoint get the warehouses of that
//! node in turn, and of each its districts in turn.

use links::error::{DriveError, While};
use links::homes::Homes;
use links::link::Link;
use links::server::Server;
use links::url::Target;
use workload::tpcc::Districts;

/// Warehouses by the endpoint at their node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Near(Vec<Vec<u32>>);

impl Near {
    /// Asks where so many warehouses lie.
    ///
    /// # Errors
    /// The server does not tell, or an endpoint has none.
    pub(super) fn ask(
        link: &mut Link,
        server: &Server,
        target: &Target,
        warehouses: u32,
    ) -> Result<Near, DriveError> {
        let refuse = |text: String| Err(DriveError::Option(format!("--at-home: {text}")));
        if !server.is_trellis {
            return refuse(String::from(
                "the server does not tell which node is home of a warehouse",
            ));
        }
        let homes = Homes::ask(link, target, warehouses).during("asking for homes")?;
        let near = Near::of(target.endpoints.len(), warehouses, &|it| homes.of(it));
        match near.0.iter().position(Vec::is_empty) {
            None => Ok(near),
            Some(at) => refuse(format!(
                "no warehouse lies at {}, or it is no address of a node (SHOW NODES)",
                target.endpoints[at]
            )),
        }
    }

    fn of(endpoints: usize, warehouses: u32, home: &dyn Fn(u32) -> Option<usize>) -> Near {
        let mut near = vec![Vec::new(); endpoints];
        for warehouse in 1..=warehouses {
            if let Some(own) = home(warehouse).and_then(|at| near.get_mut(at)) {
                own.push(warehouse);
            }
        }
        Near(near)
    }

    /// Home warehouse and home district of terminal `number`, from 0.
    pub(super) fn home(&self, number: u32, districts: &Districts) -> (u32, u32) {
        let number = number as usize;
        let own = &self.0[number % self.0.len()];
        let round = number / self.0.len();
        let warehouse = own[round % own.len()];
        let district = (round / own.len()) as u32 % districts.in_warehouse(warehouse) + 1;
        (warehouse, district)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::tpcc::Scale;

    #[test]
    fn terminals_of_an_endpoint_have_its_warehouses_in_turn() {
        // Warehouses 1 and 4 at the second endpoint, 3 elsewhere.
        let home = |warehouse: u32| match warehouse {
            1 | 4 => Some(1),
            3 => None,
            _ => Some(0),
        };
        let near = Near::of(2, 5, &home);
        assert_eq!(near, Near(vec![vec![2, 5], vec![1, 4]]));
        let districts = Scale::standard(5).districts();
        let homes: Vec<(u32, u32)> = (0..6).map(|number| near.home(number, &districts)).collect();
        assert_eq!(homes, [(2, 1), (1, 1), (5, 1), (4, 1), (2, 2), (1, 2)]);
        assert_eq!(near.home(40, &districts), (2, 1));
    }
}
