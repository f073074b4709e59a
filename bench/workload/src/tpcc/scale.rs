//! How large the database is (clause 1.2.1 and 4.3.3.1).

use super::{Districts, Skew};

/// The sizes of one TPC-C database. Only `warehouses` is free by the specification; any other
/// change makes the database [nonstandard](Scale::is_standard), which every report states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses, 1 or more.
    pub warehouses: u32,
    /// Rows of ITEM and, per warehouse, of STOCK: 100,000.
    pub items: u32,
    /// Customers per district: 3,000.
    pub customers: u32,
    /// Orders per district that the loader writes: 3,000.
    pub orders: u32,
    /// How districts are dealt among warehouses: ten each.
    pub skew: Skew,
}

/// Why a scale cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleError {
    /// One of the sizes is 0.
    Empty,
    /// A size is above what the id columns and generators hold (10 million).
    TooLarge,
}

impl Scale {
    /// The specification's sizes for `warehouses`.
    pub fn standard(warehouses: u32) -> Scale {
        Scale {
            warehouses,
            items: 100_000,
            customers: 3_000,
            orders: 3_000,
            skew: Skew::NONE,
        }
    }

    /// A small database for tests: about 1 % of the standard rows.
    pub fn reduced(warehouses: u32) -> Scale {
        Scale {
            warehouses,
            items: 1_000,
            customers: 30,
            orders: 30,
            skew: Skew::NONE,
        }
    }

    /// Whether all sizes but the warehouses are those of the specification.
    pub fn is_standard(&self) -> bool {
        *self == Scale::standard(self.warehouses)
    }

    /// Checks the sizes.
    pub fn validate(&self) -> Result<(), ScaleError> {
        let sizes = [self.warehouses, self.items, self.customers, self.orders];
        if sizes.contains(&0) {
            return Err(ScaleError::Empty);
        }
        if sizes.iter().any(|&size| size > 10_000_000) {
            return Err(ScaleError::TooLarge);
        }
        Ok(())
    }

    /// Loaded orders per district that wait for delivery: the last 30 % (900 of 3,000).
    pub fn undelivered(&self) -> u32 {
        (u64::from(self.orders) * 3 / 10) as u32
    }

    /// Loaded orders per district that are delivered: 2,100 of 3,000 (condition 11).
    pub fn delivered(&self) -> u32 {
        self.orders - self.undelivered()
    }

    /// Distinct last names: 1,000, or as many as there are customers in a smaller district, so
    /// that every name that a run draws exists.
    pub fn last_names(&self) -> u32 {
        self.customers.min(1_000)
    }

    /// D_YTD after the load in cents: 30,000.00, ten for each customer's first payment.
    pub fn district_ytd_cents(&self) -> i64 {
        i64::from(self.customers) * 1_000
    }

    /// W_YTD after the load in cents, of a warehouse with so many districts: 300,000.00 for ten.
    pub fn warehouse_ytd_cents(&self, districts: u32) -> i64 {
        self.district_ytd_cents() * i64::from(districts)
    }

    /// The districts of each warehouse.
    pub fn districts(&self) -> Districts {
        Districts::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_numbers_are_those_of_the_clauses() {
        let scale = Scale::standard(4);
        assert!(scale.is_standard());
        assert_eq!((scale.undelivered(), scale.delivered()), (900, 2_100));
        assert_eq!(scale.warehouse_ytd_cents(10), 30_000_000);
        assert_eq!(scale.district_ytd_cents(), 3_000_000);
        assert_eq!(scale.last_names(), 1_000);
        assert!(!Scale::reduced(1).is_standard());
    }

    #[test]
    fn bad_sizes_are_refused() {
        assert_eq!(Scale::standard(0).validate(), Err(ScaleError::Empty));
        assert_eq!(
            Scale::standard(10_000_001).validate(),
            Err(ScaleError::TooLarge)
        );
        assert_eq!(Scale::reduced(2).validate(), Ok(()));
    }
}
