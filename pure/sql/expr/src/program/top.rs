//! The best rows in an order that is not that of their keys: all rows are looked at.

use super::{Body, passes, project, wanted_rows};
use crate::rows::{datums_heap_bytes, heap_bytes};
use crate::{EncodedRow, Env};
use base::row::RowRef;
use base::{Datum, RowBatch, SqlError};
use std::sync::Arc;
use txn::RowTask;

/// The best rows so far of one run of [`Body::Top`].
pub(super) struct TopTask {
    body: Arc<Body>,
    params: Box<[Datum]>,
    width: usize,
    rows: Vec<Box<[Datum]>>,
    memory_bytes: usize,
}

impl TopTask {
    /// `width`: columns of the projection.
    pub(super) fn new(body: Arc<Body>, params: Box<[Datum]>, width: usize) -> TopTask {
        TopTask {
            body,
            params,
            width,
            rows: Vec::new(),
            memory_bytes: 0,
        }
    }

    /// Sorts and cuts what has been collected.
    fn shrink(&mut self, count: usize) {
        let Body::Top { keys, .. } = &*self.body else {
            unreachable!("made for this body")
        };
        self.rows.sort_by(|a, b| {
            crate::rows::compare_rows(
                a,
                b,
                keys.iter().map(|k| (k.column, k.descending, k.nulls_first)),
            )
        });
        self.rows.truncate(count);
    }

    fn count(&self) -> Result<usize, SqlError> {
        let Body::Top { count, .. } = &*self.body else {
            unreachable!("made for this body")
        };
        wanted_rows(count, &self.params)
    }
}

impl RowTask for TopTask {
    fn row(&mut self, _: &[u8], row: &[u8]) -> Result<(), SqlError> {
        let body = self.body.clone();
        let Body::Top {
            filter, projection, ..
        } = &*body
        else {
            unreachable!("made for this body");
        };
        let mut out = RowBatch::new(self.width);
        {
            let env = Env::of_program(&self.params);
            let row = EncodedRow(RowRef::new(row));
            if !passes(filter, &row, &env)? {
                return Ok(());
            }
            project(projection, &row, &env, &mut out)?;
        }
        self.memory_bytes += crate::rows::batch_bytes(&out);
        self.rows.push(out.datums.into());
        // Cutting at twice the wanted number keeps the cost per row logarithmic.
        let count = self.count()?;
        if self.rows.len() > count.saturating_mul(2).max(64) {
            self.shrink(count);
            self.memory_bytes = self
                .rows
                .iter()
                .map(|row| heap_bytes(size_of_val::<[Datum]>(row)) + datums_heap_bytes(row))
                .sum();
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn finish(mut self: Box<Self>, out: &mut RowBatch) -> Result<(), SqlError> {
        let count = self.count()?;
        self.shrink(count);
        for row in self.rows {
            out.push(row.into_vec());
        }
        Ok(())
    }
}
