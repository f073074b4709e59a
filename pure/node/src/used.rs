//! The key spaces that an open transaction has used. When one of its tables is dropped, the
//! transaction gives way; PostgreSQL makes DROP TABLE wait instead.

use base::{IndexId, TableId};
use catalog::Database;
use core::cell::RefCell;
use plan::Plan;
use std::sync::Arc;
use txn::Op;

/// The key spaces that the statements of a transaction have read or written so far.
pub(crate) struct Used {
    indexes: RefCell<Vec<IndexId>>,
    /// Database of the transaction, as the last statement knew it.
    database: RefCell<Arc<Database>>,
    /// Tables that have got key spaces since the first statement: a snapshot from before does not
    /// see the entries there.
    newer: RefCell<Vec<TableId>>,
}

impl Used {
    /// Without uses. `database`: as the first statement knows it.
    pub(crate) fn new(database: Arc<Database>) -> Used {
        Used {
            indexes: RefCell::default(),
            database: RefCell::new(database),
            newer: RefCell::default(),
        }
    }

    /// Notes the key space of an operation.
    pub(crate) fn note(&self, op: &Op) {
        let Some(index) = op.index() else {
            return;
        };
        let mut indexes = self.indexes.borrow_mut();
        if indexes.last() != Some(&index) && !indexes.contains(&index) {
            indexes.push(index);
        }
    }

    /// The next statement was planned with `next`. Returns whether a table that earlier statements
    /// used is gone. A new table of the same name is another table.
    pub(crate) fn has_lost_table(&self, next: &Arc<Database>) -> bool {
        if Arc::ptr_eq(&self.database.borrow(), next) {
            return false;
        }
        let before = self.database.replace(next.clone());
        self.newer.borrow_mut().extend(with_newer(&before, next));
        let known = next.key_spaces();
        let mut lost = false;
        self.indexes.borrow_mut().retain(|index| {
            let is_there = known.contains(index);
            // The same table may lose an index, or take another primary key.
            lost |= !is_there && !keeps_table(&before, next, *index);
            is_there
        });
        lost
    }
}

impl Used {
    /// Whether the plan names a table that has got a key space since the first statement.
    pub(crate) fn reads_newer(&self, plan: &Plan) -> bool {
        let newer = self.newer.borrow();
        let mut needs = plan.needs.relations.iter();
        !newer.is_empty() && needs.any(|need| newer.contains(&TableId(need.relation)))
    }
}

/// Tables of both that have key spaces in `next` alone.
fn with_newer(before: &Database, next: &Database) -> Vec<TableId> {
    let mut found = Vec::new();
    catalog::for_differing(&before.tables, &next.tables, |_, old, new| {
        let (Some(old), Some(new)) = (old, new) else {
            return;
        };
        let known = |index: &catalog::Index| old.indexes().any(|other| other.id == index.id);
        if old.id == new.id && !new.indexes().all(known) {
            found.push(new.id);
        }
    });
    found
}

fn keeps_table(before: &Database, next: &Database, index: IndexId) -> bool {
    let mut tables = before.tables.values();
    let table = tables.find(|table| table.indexes().any(|other| other.id == index));
    table.is_none_or(|table| next.tables.values().any(|other| other.id == table.id))
}
