//! Lists that may have millions of rows: their memory is given back in slices, also if the statement
//! fails or is cancelled.

use crate::port::Port;
use std::ops::{Deref, DerefMut};

/// A list up to so many rows is freed at once.
const ROWS_MAX: usize = 1_000;

/// A list that may be long.
pub(super) struct Long<'a, T: 'static> {
    port: &'a dyn Port,
    rows: Vec<T>,
}

impl<'a, T: 'static> Long<'a, T> {
    pub(super) fn new(port: &'a dyn Port, rows: Vec<T>) -> Long<'a, T> {
        Long { port, rows }
    }
}

impl<T: 'static> Deref for Long<'_, T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.rows
    }
}

impl<T: 'static> DerefMut for Long<'_, T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.rows
    }
}

impl<T: 'static> Drop for Long<'_, T> {
    fn drop(&mut self) {
        if self.rows.len() <= ROWS_MAX {
            return;
        }
        let mut rows = core::mem::take(&mut self.rows);
        self.port.discard(Box::new(move |most| {
            rows.truncate(rows.len().saturating_sub(most));
            rows.is_empty()
        }));
    }
}
