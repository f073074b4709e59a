//! How large a catalog may become.

use crate::command::CatalogError;
use crate::desc::*;
use crate::encoded::Parts;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use base::codec::size_bytes;
use base::limits::CATALOG_BYTES_MAX;
use base::{SqlError, SqlState};
use core::cmp::Ordering;
use serde::Serialize;

/// No name of a dropped column ([`Column::dropped`]) is longer.
pub(crate) const DROPPED_NAME_BYTES_MAX: usize = 32;

impl Catalog {
    /// Refuses what makes a catalog larger that is, or becomes, too large. There is no list of
    /// commands: whatever takes away, or ends or undoes a change that has begun, weighs nothing.
    /// Counts the tables that are not those of `before`, and notes the weight of all.
    ///
    /// # Errors
    /// 54000.
    pub(crate) fn check_size(&mut self, before: &Catalog) -> Result<(), CatalogError> {
        let tables_before = before.weighed.0.unwrap_or_else(|| before.tables_weight());
        let (added, gone) = self.other_tables(before);
        let tables = (tables_before + added).saturating_sub(gone);
        let is_small = || self.databases.values().all(|it| it.tables.len() < 64);
        debug_assert!(!is_small() || tables == self.tables_weight());
        self.weighed = Weighed(Some(tables));
        let weight = self.others_weight() + tables;
        if weight <= CATALOG_BYTES_MAX || weight <= before.others_weight() + tables_before {
            return Ok(());
        }
        let message = format!("the catalog cannot have more than {CATALOG_BYTES_MAX} bytes");
        Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
            .hint("Shorten defaults, checks and views, or drop tables."))
    }

    /// Bytes of all tables.
    fn tables_weight(&self) -> usize {
        let tables = self.databases.values().flat_map(|it| &it.tables);
        tables.map(|(name, table)| weight_of(name, table)).sum()
    }

    /// Bytes of the tables that `before` does not have as they are, and of those that it has and
    /// this one has not.
    fn other_tables(&self, before: &Catalog) -> (usize, usize) {
        let (mut added, mut gone) = (0, 0);
        let (own, others) = (&self.databases, &before.databases);
        let names: BTreeSet<&String> = own.keys().chain(others.keys()).collect();
        let none = BTreeMap::new();
        for name in names {
            let own = own.get(name).map_or(&none, |it| &it.tables);
            let others = others.get(name).map_or(&none, |it| &it.tables);
            for_differing(others, own, |name, before, after| {
                gone += before.map_or(0, |table| weight_of(name, table));
                added += after.map_or(0, |table| weight_of(name, table));
            });
        }
        (added, gone)
    }

    /// Bytes of all but the tables, and apart from what every command may lengthen: versions and
    /// the next number, which have an end.
    fn others_weight(&self) -> usize {
        let mut counted = size_bytes(&self.version) + size_bytes(&self.next_id);
        for block in self.databases.values().flat_map(|it| &it.blocks) {
            // Images have a limit of their own, and go with their block.
            counted += size_bytes(block);
        }
        let mut others = Others(0);
        self.visit(&mut others);
        others.0.saturating_sub(counted)
    }
}

/// Bytes of a table. A column has the room for the name that it gets when it is dropped.
fn weight_of(name: &str, table: &Table) -> usize {
    let columns = table.columns.iter();
    let columns = columns.filter(|column| column.state != ColumnState::Dropped);
    let room = columns.map(|column| DROPPED_NAME_BYTES_MAX.saturating_sub(column.name.len()));
    size_bytes(name) + size_bytes(table) + room.sum::<usize>() - size_bytes(&table.changed)
}

/// Counts the bytes of all but the tables.
struct Others(usize);

impl Parts for Others {
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) {
        self.0 += size_bytes(value);
    }

    fn table(&mut self, _: &str, _: &Arc<Table>) {}
}

/// Calls `visit` with the name of each table that is not the same in both, and with the tables of
/// this name: tables that a change has left alone are the same in memory.
pub fn for_differing<'t>(
    before: &'t BTreeMap<String, Arc<Table>>,
    after: &'t BTreeMap<String, Arc<Table>>,
    mut visit: impl FnMut(&'t str, Option<&'t Arc<Table>>, Option<&'t Arc<Table>>),
) {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let old = old.next_if(|_| order.is_le());
        let new = new.next_if(|_| order.is_ge());
        match (old, new) {
            (Some((_, old)), Some((_, new))) if Arc::ptr_eq(old, new) => {}
            (Some((name, old)), new) => visit(name, Some(old), new.map(|(_, table)| table)),
            (None, Some((name, new))) => visit(name, None, Some(new)),
            (None, None) => unreachable!("one of them has the first name"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Type;
    use base::limits::COLUMNS_MAX;

    #[test]
    fn there_is_room_for_the_name_of_a_dropped_column() {
        let last = u16::try_from(COLUMNS_MAX - 1).expect("it fits");
        let dropped = Column::dropped(last, Type::Int4);
        assert!(dropped.name.len() <= DROPPED_NAME_BYTES_MAX);
    }
}
