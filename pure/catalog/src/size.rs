//! How large a catalog may become.

use crate::command::CatalogError;
use crate::desc::*;
use alloc::format;
use base::codec::size_bytes;
use base::limits::CATALOG_BYTES_MAX;
use base::{SqlError, SqlState};

/// No name of a dropped column ([`Column::dropped`]) is longer.
pub(crate) const DROPPED_NAME_BYTES_MAX: usize = 32;

impl Catalog {
    /// Refuses what makes a catalog larger that is, or becomes, too large. There is no list of
    /// commands: whatever takes away, or ends or undoes a change that has begun, weighs nothing.
    ///
    /// # Errors
    /// 54000.
    pub(crate) fn check_size(&self, before: &Catalog) -> Result<(), CatalogError> {
        let weight = self.weight();
        if weight <= CATALOG_BYTES_MAX || weight <= before.weight() {
            return Ok(());
        }
        let message = format!("the catalog cannot have more than {CATALOG_BYTES_MAX} bytes");
        Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
            .hint("Shorten defaults, checks and views, or drop tables."))
    }

    /// Its bytes, apart from what every command may lengthen: versions and the next number, which
    /// have an end. A column has the room for the name that it gets when it is dropped.
    fn weight(&self) -> usize {
        let mut room = 0;
        let mut counted = size_bytes(&self.version) + size_bytes(&self.next_id);
        let databases = self.databases.values();
        for table in databases.flat_map(|database| database.tables.values()) {
            counted += size_bytes(&table.changed);
            for column in &table.columns {
                if column.state != ColumnState::Dropped {
                    room += DROPPED_NAME_BYTES_MAX.saturating_sub(column.name.len());
                }
            }
        }
        (size_bytes(self) + room).saturating_sub(counted)
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
