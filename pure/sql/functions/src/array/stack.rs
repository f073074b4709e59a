//! Arrays of arrays become one array with a dimension more.

use base::grid::{Dimension, Shape};
use base::{Datum, SqlError, SqlState};

/// Arrays of one shape, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    /// The shape of each of them; `None` before the first.
    shape: Option<Shape>,
    /// Number of arrays.
    count: usize,
    items: Vec<Datum>,
}

impl Stack {
    /// The items so far.
    #[must_use]
    pub fn items(&self) -> &Vec<Datum> {
        &self.items
    }

    /// Takes an array, as `array_agg` does.
    ///
    /// # Errors
    /// 22004 for NULL, 2202E if it is empty or of another shape than those before it.
    pub fn accumulate(&mut self, array: &Datum) -> Result<(), SqlError> {
        let subscript = |message: &str| SqlError::new(SqlState::ARRAY_SUBSCRIPT, message);
        let Some(shape) = array.shape() else {
            let message = "cannot accumulate null arrays";
            return Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, message));
        };
        if shape.dimensions().is_empty() {
            return Err(subscript("cannot accumulate empty arrays"));
        }
        if self.shape.is_some_and(|known| known != shape) {
            return Err(subscript(
                "cannot accumulate arrays of different dimensionality",
            ));
        }
        self.push(shape, array);
        Ok(())
    }

    fn push(&mut self, shape: Shape, array: &Datum) {
        self.shape = Some(shape);
        self.count += 1;
        self.items
            .extend_from_slice(array.as_array().unwrap_or_default());
    }

    /// Takes in what another one gave as its [`Stack::finish`].
    ///
    /// # Errors
    /// 2202E if its arrays have another shape.
    pub fn merge(&mut self, stacked: &Datum) -> Result<(), SqlError> {
        let shape = stacked.shape().unwrap_or_default();
        let [first, inner @ ..] = shape.dimensions() else {
            return Ok(());
        };
        let inner = Shape::new(inner)?;
        if self.shape.is_some_and(|known| known != inner) {
            let message = "cannot accumulate arrays of different dimensionality";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT, message));
        }
        self.push(inner, stacked);
        self.count += first.length as usize - 1;
        Ok(())
    }

    /// All arrays as one with a dimension more; NULL if there is none.
    ///
    /// # Errors
    /// 54000 if these are too many dimensions or items.
    pub fn finish(self) -> Result<Datum, SqlError> {
        let Some(shape) = self.shape else {
            return Ok(Datum::Null);
        };
        let mut dimensions = vec![Dimension::of(self.count)];
        dimensions.extend_from_slice(shape.dimensions());
        Ok(Datum::shaped(Shape::new(&dimensions)?, self.items))
    }

    /// `ARRAY[array, ...]`: empty if all are empty or NULL.
    ///
    /// # Errors
    /// 2202E if they are not of one shape.
    pub fn of(
        arrays: impl IntoIterator<Item = Result<Datum, SqlError>>,
    ) -> Result<Datum, SqlError> {
        let mut stack = Stack::default();
        let (mut has_empty, mut fits) = (false, true);
        for array in arrays {
            let array = array?;
            let shape = array.shape().unwrap_or_default();
            if shape.dimensions().is_empty() {
                has_empty = true;
                continue;
            }
            fits &= stack.shape.is_none_or(|known| known == shape);
            if fits {
                stack.push(shape, &array);
            }
        }
        if !fits || has_empty && stack.shape.is_some() {
            let message = "multidimensional arrays must have array expressions with matching \
                           dimensions";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT, message));
        }
        match stack.shape {
            None => Ok(Datum::Array(Box::default())),
            Some(_) => stack.finish(),
        }
    }
}
