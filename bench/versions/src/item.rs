//! What has versions: one number for each item, which is its key in a history.

use alloc::format;
use alloc::string::String;

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    WarehouseYtd,
    NextOrder,
    DistrictYtd,
    Customer,
    Stock,
    Order,
    OrderLines,
    LastOrder,
    OldestNewOrder,
}

impl Kind {
    const ALL: [(Kind, &'static str); 9] = [
        (Kind::WarehouseYtd, "w_ytd"),
        (Kind::NextOrder, "d_next_o_id"),
        (Kind::DistrictYtd, "d_ytd"),
        (Kind::Customer, "customer"),
        (Kind::Stock, "stock"),
        (Kind::Order, "order"),
        (Kind::OrderLines, "order_lines"),
        (Kind::LastOrder, "last_order"),
        (Kind::OldestNewOrder, "oldest_new_order"),
    ];
}

const WAREHOUSE_BITS: u32 = 20;
const DISTRICT_BITS: u32 = 13;
const ID_BITS: u32 = 26;

/// Most warehouses of a database whose items have numbers.
pub const WAREHOUSES_MAX: u32 = (1 << WAREHOUSE_BITS) - 1;
/// Most districts of a warehouse.
pub const DISTRICTS_MAX: u32 = (1 << DISTRICT_BITS) - 1;
/// Largest number of an order, an item or a customer: 67 million.
const ID_MAX: u32 = (1 << ID_BITS) - 1;

/// An item: kind, warehouse, district and number within it in 63 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item(u64);

impl Item {
    /// `None`: its numbers are larger than those of any database that is recorded.
    pub(crate) fn new(kind: Kind, warehouse: u32, district: u32, id: u32) -> Option<Item> {
        let fits = warehouse <= WAREHOUSES_MAX && district <= DISTRICTS_MAX && id <= ID_MAX;
        let place = u64::from(warehouse) << (DISTRICT_BITS + ID_BITS)
            | u64::from(district) << ID_BITS
            | u64::from(id);
        let kind = (kind as u64) << (WAREHOUSE_BITS + DISTRICT_BITS + ID_BITS);
        fits.then_some(Item(kind | place))
    }

    pub(crate) fn from_key(key: u64) -> Item {
        Item(key)
    }

    pub(crate) fn key(self) -> u64 {
        self.0
    }

    pub(crate) fn kind(self) -> Option<Kind> {
        let number = self.0 >> (WAREHOUSE_BITS + DISTRICT_BITS + ID_BITS);
        Some(Kind::ALL.get(number as usize)?.0)
    }

    /// W_YTD of the warehouse of a district's D_YTD.
    pub(crate) fn warehouse_ytd(self) -> Option<Item> {
        let warehouse = self.0 >> (DISTRICT_BITS + ID_BITS) & u64::from(WAREHOUSES_MAX);
        Item::new(Kind::WarehouseYtd, u32::try_from(warehouse).ok()?, 0, 0)
    }

    /// For a person: the kind and what names the row, such as `d_next_o_id.1.3`.
    pub(crate) fn name(self) -> String {
        let part = |shift: u32, bits: u32| self.0 >> shift & ((1 << bits) - 1);
        let warehouse = part(DISTRICT_BITS + ID_BITS, WAREHOUSE_BITS);
        let (district, id) = (part(ID_BITS, DISTRICT_BITS), part(0, ID_BITS));
        let kind = self.kind();
        let name = kind.map_or("unknown", |kind| Kind::ALL[kind as usize].1);
        match kind {
            Some(Kind::WarehouseYtd) => format!("{name}.{warehouse}"),
            Some(Kind::NextOrder | Kind::DistrictYtd | Kind::OldestNewOrder) => {
                format!("{name}.{warehouse}.{district}")
            }
            Some(Kind::Stock) => format!("{name}.{warehouse}.{id}"),
            _ => format!("{name}.{warehouse}.{district}.{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_by_name() {
        for (at, (kind, _)) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at);
            let item = Item::new(*kind, WAREHOUSES_MAX, DISTRICTS_MAX, ID_MAX).unwrap();
            assert_eq!((item.kind(), item.key() >> 63), (Some(*kind), 0));
        }
        let name = |kind, w, d, id| Item::new(kind, w, d, id).unwrap().name();
        assert_eq!(name(Kind::WarehouseYtd, 7, 0, 0), "w_ytd.7");
        assert_eq!(name(Kind::NextOrder, 7, 10, 0), "d_next_o_id.7.10");
        assert_eq!(name(Kind::Stock, 7, 0, 99_999), "stock.7.99999");
        assert_eq!(name(Kind::Customer, 7, 3, 42), "customer.7.3.42");
        assert_eq!(Item::new(Kind::Order, WAREHOUSES_MAX + 1, 1, 1), None);
    }
}
