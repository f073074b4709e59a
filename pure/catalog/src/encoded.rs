//! The encoding of a catalog in pieces: that of a table is made once and kept as long as the table
//! stays the same, since a change alters few of them.

use crate::desc::*;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::TableId;
use base::codec::{encode, to_vec};
use serde::Serialize;

/// Gets the values of a catalog in the order of its encoding.
pub(crate) trait Parts {
    /// A value that is not a table.
    fn value<T: Serialize + ?Sized>(&mut self, value: &T);
    /// A table with its name.
    fn table(&mut self, name: &str, table: &Arc<Table>);
}

impl Catalog {
    /// Gives all that is encoded to `parts`.
    pub(crate) fn visit(&self, parts: &mut impl Parts) {
        let Catalog {
            version,
            next_id,
            placement,
            databases,
            reserved,
            closing,
            rights,
            open_blocks,
            weighed: _,
        } = self;
        parts.value(version);
        parts.value(next_id);
        parts.value(placement);
        parts.value(&databases.len());
        for (name, database) in databases {
            parts.value(name);
            database.visit(parts);
        }
        parts.value(reserved);
        parts.value(closing);
        parts.value(rights);
        parts.value(open_blocks);
    }

    /// Has the tables of `before` in place of its own where they are equal, so that versions of a
    /// catalog that came one after the other from another node share their memory, as on the node
    /// that made them.
    pub fn share(&mut self, before: &Catalog) {
        for (name, database) in &mut self.databases {
            let Some(old) = before.databases.get(name) else {
                continue;
            };
            let Some(database) = Arc::get_mut(database) else {
                continue;
            };
            for (name, table) in &mut database.tables {
                if let Some(known) = old.tables.get(name)
                    && known.changed == table.changed
                    && known == table
                {
                    table.clone_from(known);
                }
            }
        }
    }

    /// Its encoding, as [`to_vec`] makes it. Takes the tables from `known` that are there, and
    /// leaves all of them there for the next time.
    pub fn encoded(&self, known: &mut EncodedTables) -> Vec<u8> {
        let tables = self.databases.values().map(|it| it.tables.len());
        let count: usize = tables.sum();
        let mut out = Vec::with_capacity(known.last_bytes + known.last_bytes / 16);
        self.visit(&mut Appended {
            out: &mut out,
            known,
        });
        if known.tables.len() > count {
            let tables = self.databases.values().flat_map(|it| it.tables.values());
            let there: BTreeSet<TableId> = tables.map(|table| table.id).collect();
            known.tables.retain(|id, _| there.contains(id));
        }
        known.last_bytes = out.len();
        out
    }
}

impl Database {
    fn visit(&self, parts: &mut impl Parts) {
        let Database {
            id,
            name,
            protocol,
            execution,
            tables,
            sequences,
            switching,
            comments,
            views,
            enums,
            schemas,
            functions,
            connection_limit,
            row_security,
            stored,
            domains,
            blocks,
        } = self;
        parts.value(id);
        parts.value(name);
        parts.value(protocol);
        parts.value(execution);
        parts.value(&tables.len());
        for (name, table) in tables {
            parts.table(name, table);
        }
        parts.value(sequences);
        parts.value(switching);
        parts.value(comments);
        parts.value(views);
        parts.value(enums);
        parts.value(schemas);
        parts.value(functions);
        parts.value(connection_limit);
        parts.value(row_security);
        parts.value(stored);
        parts.value(domains);
        parts.value(blocks);
    }
}

/// Encodings of tables. Each is kept with its table, which therefore cannot change in its place.
#[derive(Debug, Default)]
pub struct EncodedTables {
    tables: BTreeMap<TableId, (Arc<Table>, Box<[u8]>)>,
    /// Bytes of the last catalog.
    last_bytes: usize,
}

struct Appended<'a> {
    out: &'a mut Vec<u8>,
    known: &'a mut EncodedTables,
}

impl Parts for Appended<'_> {
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) {
        encode(value, self.out);
    }

    fn table(&mut self, name: &str, table: &Arc<Table>) {
        encode(name, self.out);
        let known = self.known.tables.get(&table.id);
        if let Some((_, bytes)) = known.filter(|(known, _)| Arc::ptr_eq(known, table)) {
            self.out.extend_from_slice(bytes);
            return;
        }
        let bytes: Box<[u8]> = to_vec(&**table).into();
        self.out.extend_from_slice(&bytes);
        self.known.tables.insert(table.id, (table.clone(), bytes));
    }
}
