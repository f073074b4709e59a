//! Entries of a secondary index in the order of their keys, from the slots of all shards.
//!
//! Every shard sends its first entries; the first of all of these are used, and the next round
//! begins behind the last one that was. Each round asks for twice as many as the one before, so
//! few are read if few are wanted, and rounds are few if many are.

use super::request::{Target, scans};
use super::scan::{Part, entry_columns, first_answers, primary_key};
use super::{Charge, Cx};
use base::{Datum, Key, Type};
use expr::Expr;
use expr::program::{Body, FIRST_ROWS_MAX, ProgramPlan};
use expr::rows::datums_heap_bytes;
use plan::step::Scan;
use std::collections::VecDeque;
use txn::{OpError, OpResult, Program, Read};

pub(super) struct Merged {
    read: Read,
    /// Entries that the next round asks for.
    ask: usize,
    targets: Vec<Target>,
    /// Key of the last entry that was used.
    after: Option<Vec<u8>>,
    is_done: bool,
}

impl Merged {
    pub(super) fn new(read: Read, limit: u64, targets: Vec<Target>) -> Merged {
        Merged {
            read,
            ask: usize::try_from(limit).map_or(FIRST_ROWS_MAX, |limit| limit.min(FIRST_ROWS_MAX)),
            is_done: targets.is_empty(),
            targets,
            after: None,
        }
    }

    /// The program that gives the first entries, each with its key.
    fn program(&self, scan: &Scan) -> Program {
        ProgramPlan::new(Body::First {
            filter: None,
            projection: entry_columns(scan),
            count: Expr::Const(Datum::Int(self.ask as i64), Type::Int8),
            reverse: scan.access.reverse,
            keyed: true,
        })
        .bind(&[])
    }

    /// Appends the table rows of the next entries; false when there are no more.
    pub(super) async fn pull(
        &mut self,
        cx: &Cx<'_>,
        scan: &Scan,
        step: u32,
        keys: &mut VecDeque<Key>,
    ) -> Result<bool, OpError> {
        if self.is_done {
            return Ok(false);
        }
        let program = self.program(scan);
        let mut parts = Vec::new();
        for target in &self.targets {
            for (to, mut op) in scans(cx, scan, target, self.read, &program, u64::MAX) {
                if let Some(after) = &self.after {
                    match scan.access.reverse {
                        true => op.range.high = Some(after.clone()),
                        false => op.range.low = [after.as_slice(), &[0]].concat(),
                    }
                }
                parts.push(Part::start(cx, step, to, op));
            }
        }
        if self.read.snapshot().is_some() {
            first_answers(&mut parts).await?;
        }
        let mut charge = Charge::new(cx.port);
        let mut entries: Vec<Vec<Datum>> = Vec::new();
        for mut part in parts {
            loop {
                let OpResult::Rows { batch, resume } = part.answer().await? else {
                    panic!("a scan was not answered by rows");
                };
                charge
                    .add(datums_heap_bytes(&batch.datums) + size_of_val(batch.datums.as_slice()))?;
                entries.extend(batch.iter().map(<[Datum]>::to_vec));
                match resume {
                    Some(after) => part.go_on(cx, step, after),
                    None => break,
                }
            }
        }
        entries.sort_by(|a, b| {
            let order = entry_key(a).cmp(entry_key(b));
            if scan.access.reverse {
                order.reverse()
            } else {
                order
            }
        });
        // A shard that has more has sent as many as it was asked for.
        self.is_done = entries.len() < self.ask;
        entries.truncate(self.ask);
        self.ask = (2 * self.ask).min(FIRST_ROWS_MAX);
        self.after = entries.last().map(|entry| entry_key(entry).to_vec());
        let rows = entries.iter();
        keys.extend(rows.map(|entry| primary_key(&scan.table, &entry[..entry.len() - 1])));
        Ok(!entries.is_empty())
    }
}

/// The key of an entry stands behind its values.
fn entry_key(entry: &[Datum]) -> &[u8] {
    let key = entry.last().and_then(Datum::as_bytes);
    key.expect("entries were asked for with their keys")
}
