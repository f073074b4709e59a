//! Arrays of more than one dimension, or with other lower bounds than 1.
//!
//! The usual array, of one dimension from 1, is a [`Datum::Array`] and knows no shape. Every other
//! one is a [`Datum::Grid`]: its items in the order of the last subscript, and its [`Shape`]. The
//! empty array has no dimension and is a [`Datum::Array`]. [`Datum::shaped`] chooses.

use crate::datum::Datum;
use crate::error::{SqlError, SqlState};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt::Write;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 6;

/// Most items of an array.
pub const ITEMS_MAX: usize = 134_217_727;

/// One dimension of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dimension {
    /// Number of items along it.
    pub length: i32,
    /// Subscript of the first one.
    pub lower: i32,
}

impl Dimension {
    /// From 1.
    pub fn of(length: usize) -> Dimension {
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        Dimension { length, lower: 1 }
    }

    /// Subscript of the last item.
    pub fn upper(self) -> i32 {
        self.lower + (self.length - 1)
    }
}

/// The dimensions of an array, the outermost first; the empty array has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    count: u8,
    dimensions: [Dimension; DIMENSIONS_MAX],
}

impl Shape {
    /// One dimension of items from 1; none for no items.
    pub fn flat(length: usize) -> Shape {
        let mut shape = Shape::default();
        if length > 0 {
            shape.count = 1;
            shape.dimensions[0] = Dimension::of(length);
        }
        shape
    }

    /// These dimensions.
    ///
    /// # Errors
    /// 54000 if there are too many of them, too many items, or a subscript would overflow.
    pub fn new(dimensions: &[Dimension]) -> Result<Shape, SqlError> {
        if dimensions.len() > DIMENSIONS_MAX {
            return Err(too_many_dimensions(dimensions.len()));
        }
        let mut shape = Shape {
            count: dimensions.len() as u8,
            dimensions: Default::default(),
        };
        shape.dimensions[..dimensions.len()].copy_from_slice(dimensions);
        if shape.checked_items().is_none() {
            return Err(too_many_items());
        }
        if dimensions.iter().any(|one| one.length <= 0) {
            return Ok(Shape::default());
        }
        for one in dimensions {
            if one.lower.checked_add(one.length).is_none() {
                let message = format!("array lower bound is too large: {}", one.lower);
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
            }
        }
        Ok(shape)
    }

    /// The dimensions, the outermost first.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions[..usize::from(self.count)]
    }

    /// The dimension of this number, from 1.
    pub fn dimension(&self, number: i64) -> Option<Dimension> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        self.dimensions().get(at).copied()
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.checked_items().unwrap_or(0)
    }

    fn checked_items(&self) -> Option<usize> {
        if self.count == 0 {
            return Some(0);
        }
        let lengths = self.dimensions().iter();
        lengths
            .map(|one| usize::try_from(one.length).ok())
            .try_fold(1usize, |all, length| all.checked_mul(length?))
            .filter(|items| *items <= ITEMS_MAX)
    }

    /// Whether it is that of a [`Datum::Array`].
    pub fn is_flat(&self) -> bool {
        match self.dimensions() {
            [] => true,
            [one] => one.lower == 1,
            _ => false,
        }
    }

    /// Whether lower bounds have to be told.
    fn has_bounds(&self) -> bool {
        self.dimensions().iter().any(|one| one.lower != 1)
    }

    /// `[1:2][0:3]`, as `array_dims` has it.
    pub fn bounds(&self) -> String {
        let mut out = String::new();
        for one in self.dimensions() {
            let _ = write!(out, "[{}:{}]", one.lower, one.upper());
        }
        out
    }

    /// The bounds that the text form of an array begins with, if any are not 1.
    pub(crate) fn prefix(&self) -> String {
        match self.has_bounds() {
            true => self.bounds() + "=",
            false => String::new(),
        }
    }

    /// Number of the dimensions in which a new part begins with the item at this place: as many
    /// braces open before it, and close before the one in front of it is followed by this one.
    pub fn edges(&self, place: usize) -> usize {
        let mut size = 1;
        let lengths = self.dimensions().iter().rev();
        lengths
            .take_while(|one| {
                size *= one.length.max(1) as usize;
                place.is_multiple_of(size)
            })
            .count()
    }

    /// The place of an item among all; `None` if there is none with these subscripts.
    pub fn place(&self, subscripts: &[i64]) -> Option<usize> {
        if subscripts.len() != self.dimensions().len() || subscripts.is_empty() {
            return None;
        }
        let mut place = 0;
        for (one, subscript) in self.dimensions().iter().zip(subscripts) {
            let offset = subscript.checked_sub(i64::from(one.lower))?;
            if !(0..i64::from(one.length)).contains(&offset) {
                return None;
            }
            place = place * one.length as usize + offset as usize;
        }
        Some(place)
    }

    /// The order of arrays with equal items.
    fn order(&self, other: &Shape) -> Ordering {
        let (a, b) = (self.dimensions(), other.dimensions());
        let lengths = a.iter().map(|one| one.length);
        let lowers = a.iter().map(|one| one.lower);
        a.len()
            .cmp(&b.len())
            .then_with(|| lengths.cmp(b.iter().map(|one| one.length)))
            .then_with(|| lowers.cmp(b.iter().map(|one| one.lower)))
    }
}

/// An array with the shape that a [`Datum::Array`] cannot have.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    shape: Shape,
    items: Box<[Datum]>,
}

impl Grid {
    /// Its dimensions: more than one, or one that does not start at 1.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Its items, as many as the shape has, in the order of the last subscript. None is an array.
    pub fn items(&self) -> &[Datum] {
        &self.items
    }

    /// Its items to change.
    pub fn items_mut(&mut self) -> &mut [Datum] {
        &mut self.items
    }

    /// Its items alone.
    pub fn into_items(self) -> Box<[Datum]> {
        self.items
    }

    /// A grid of stored parts; `None` if they are not those of a grid.
    pub(crate) fn checked(dimensions: &[Dimension], items: Vec<Datum>) -> Option<Grid> {
        let shape = Shape::new(dimensions).ok()?;
        let fits = shape.items() == items.len() && !shape.is_flat();
        fits.then(|| Grid {
            shape,
            items: items.into_boxed_slice(),
        })
    }
}

impl Serialize for Grid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dimensions = self.shape.dimensions().iter();
        let dimensions: Vec<(i32, i32)> = dimensions.map(|one| (one.length, one.lower)).collect();
        (dimensions, &self.items).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Grid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Grid, D::Error> {
        let (dimensions, items) = <(Vec<(i32, i32)>, FlatItems)>::deserialize(deserializer)?;
        let dimensions = dimensions.into_iter();
        let dimensions: Vec<Dimension> = dimensions
            .map(|(length, lower)| Dimension { length, lower })
            .collect();
        Grid::checked(&dimensions, items.0.into_vec())
            .ok_or_else(|| serde::de::Error::custom("an array of another shape than its items"))
    }
}

#[derive(Deserialize)]
struct FlatItems(#[serde(deserialize_with = "crate::datum::flat_items")] Box<[Datum]>);

impl Datum {
    /// The array of these items; an empty one has no dimensions.
    ///
    /// # Panics
    /// If there are not as many items as the shape has.
    pub fn shaped(shape: Shape, items: Vec<Datum>) -> Datum {
        assert_eq!(
            shape.items(),
            items.len(),
            "an array has the items of its shape"
        );
        let items = items.into_boxed_slice();
        match shape.is_flat() {
            true => Datum::Array(items),
            false => Datum::Grid(Box::new(Grid { shape, items })),
        }
    }

    /// The dimensions, if this is an array.
    pub fn shape(&self) -> Option<Shape> {
        match self {
            Datum::Array(items) => Some(Shape::flat(items.len())),
            Datum::Grid(grid) => Some(grid.shape),
            _ => None,
        }
    }

    /// The items of an array, whatever its shape.
    ///
    /// # Errors
    /// The value itself if it is no array.
    pub fn into_items(self) -> Result<Vec<Datum>, Datum> {
        match self {
            Datum::Array(items) => Ok(items.into_vec()),
            Datum::Grid(grid) => Ok(grid.items.into_vec()),
            other => Err(other),
        }
    }

    /// The array of the same shape whose items are made from those of this one; another value is
    /// given back as it is.
    ///
    /// # Errors
    /// The first one of an item.
    pub fn try_map_items<E>(self, item: impl FnMut(Datum) -> Result<Datum, E>) -> Result<Datum, E> {
        let shape = self.shape().unwrap_or_default();
        match self.into_items() {
            Ok(items) => {
                let items = items.into_iter().map(item).collect::<Result<_, E>>()?;
                Ok(Datum::shaped(shape, items))
            }
            Err(other) => Ok(other),
        }
    }

    /// The order of two arrays: that of their items, then of their sizes and dimensions.
    pub(crate) fn compare_arrays(&self, other: &Datum) -> Ordering {
        let items = |value: &Datum| value.as_array().unwrap_or_default().len();
        let (a, b) = (self.as_array().unwrap_or_default(), other.as_array());
        let pairs = a.iter().zip(b.unwrap_or_default());
        let unequal = pairs.map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
        let shape = |value: &Datum| value.shape().unwrap_or_default();
        unequal
            .unwrap_or_else(|| items(self).cmp(&items(other)))
            .then_with(|| shape(self).order(&shape(other)))
    }
}

/// More dimensions than arrays may have: 54000.
pub fn too_many_dimensions(count: usize) -> SqlError {
    let message = format!(
        "number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
    );
    SqlError::new(SqlState::PROGRAM_LIMIT, message)
}

fn too_many_items() -> SqlError {
    let message = format!("array size exceeds the maximum allowed ({ITEMS_MAX})");
    SqlError::new(SqlState::PROGRAM_LIMIT, message)
}
