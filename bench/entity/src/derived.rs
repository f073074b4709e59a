//! Rust structs that are entities.

use crate::model::EntityType;
use crate::value::{Row, Value};
use core::fmt;

/// A struct whose values a store keeps; derived by `#[derive(Entity)]`.
///
/// ```
/// use entity::Entity;
///
/// #[derive(Clone, Debug, PartialEq, Entity)]
/// struct AuctionItem {
///     #[id]
///     #[group]
///     seller_id: i64,
///     #[id]
///     #[group]
///     #[generated]
///     item_no: i64,
///     max_bid: f64,
/// }
///
/// #[derive(Clone, Debug, PartialEq, Entity)]
/// #[entity(parent = AuctionItem, index(seller_id, item_no), index(user_id))]
/// struct Bid {
///     #[id]
///     #[group]
///     seller_id: i64,
///     #[id]
///     #[group]
///     item_no: i64,
///     #[id]
///     #[generated]
///     bid_no: i64,
///     amount: f64,
///     user_id: i64,
/// }
///
/// assert_eq!(Bid::TYPE.group_name, "auction_item");
/// assert!(Bid::TYPE.is_in_group(0) && !Bid::TYPE.is_in_group(1));
/// ```
///
/// Groups of another key than the parent's are refused:
///
/// ```compile_fail
/// use entity::Entity;
///
/// #[derive(Entity)]
/// struct User {
///     #[id]
///     name: String,
/// }
///
/// #[derive(Entity)]
/// #[entity(parent = User)]
/// struct Note {
///     #[id]
///     #[group]
///     user: i64,
///     #[id]
///     number: i64,
/// }
/// ```
///
/// So are ids that have no order, and ids that can be null:
///
/// ```compile_fail
/// #[derive(entity::Entity)]
/// struct Point {
///     #[id]
///     x: f64,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(entity::Entity)]
/// struct Point {
///     #[id]
///     x: Option<i64>,
/// }
/// ```
pub trait Entity: Sized {
    /// The type of the entity.
    const TYPE: &'static EntityType;

    /// The id: the field's type, or a tuple of them in the order of the fields.
    type Id;

    /// The group's key: as the id, of the fields that name the group.
    type Group;

    /// The id as values.
    fn id_values(id: &Self::Id) -> impl AsRef<[Value]>;

    /// The group's key as values.
    fn group_values(group: &Self::Group) -> impl AsRef<[Value]>;

    /// All fields in the order of the type's columns.
    fn row(&self) -> Row {
        let mut row = Row::new();
        self.write(&mut row);
        row
    }

    /// As [`Entity::row`], in the place of another row, whose memory is used again.
    fn write(&self, row: &mut Row);

    /// The entity of a row.
    ///
    /// # Errors
    /// The row has another number of values, or a value does not fit its field.
    fn from_row(row: Row) -> Result<Self, Mismatch>;

    /// Takes over the generated id of a row that was created. Does nothing without one.
    ///
    /// # Errors
    /// The value does not fit the field.
    fn take_generated(&mut self, row: &[Value]) -> Result<(), Mismatch>;
}

/// A row that does not fit a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The entity's type.
    pub entity: &'static str,
    /// The column that does not fit; `None`: the number of columns.
    pub column: Option<&'static str>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(
                f,
                "the value of column \"{column}\" does not fit entity \"{}\"",
                self.entity
            ),
            None => write!(
                f,
                "the row has another number of columns than entity \"{}\"",
                self.entity
            ),
        }
    }
}
