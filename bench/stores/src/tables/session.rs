//! A connection to a database with what it has prepared.

use crate::sql::Reach;
use crate::sql::prepared::{Ready, plain, prepare};
use entity::sql::{self, Dialect, Statement, Statements};
use entity::{EntityType, Failure, Kind, Range, Schema};
use std::collections::BTreeMap;
use workload::wire::{Isolation, Prepared};

/// The advisory lock of a group: as one of many, and alone.
const LOCKS: [&str; 2] = [
    "SELECT pg_advisory_xact_lock_shared($1)",
    "SELECT pg_advisory_xact_lock($1)",
];

/// A connection with what it has prepared.
#[derive(Debug)]
pub(super) struct Session<R: Reach> {
    pub(super) link: R::Link,
    pub(super) begin: Prepared,
    pub(super) commit: Prepared,
    pub(super) rollback: Prepared,
    pub(super) stamp: Prepared,
    pub(super) clean: Prepared,
    /// The advisory lock of a group, as one of many and alone, where reads lock.
    pub(super) advisory: Option<[Prepared; 2]>,
    /// By name; there are few.
    kinds: Vec<(String, OfKind)>,
    dialect: Dialect,
    locks: bool,
}

/// The statements of a type.
#[derive(Debug)]
pub(super) struct OfKind {
    pub(super) get: Ready,
    pub(super) create: Ready,
    pub(super) update: Ready,
    pub(super) delete: Ready,
    pub(super) by_index: Vec<Ready>,
    /// By the length of the prefix, and whether there are bounds.
    ranges: BTreeMap<(usize, bool, bool), Ready>,
}

impl<R: Reach> Session<R> {
    /// Prepares the statements of all types. With `locks` what is read within a transaction is
    /// locked.
    pub(super) async fn new(
        mut link: R::Link,
        schema: &Schema,
        (dialect, locks, level): (Dialect, bool, Isolation),
    ) -> Result<Session<R>, Failure> {
        let begin = format!("BEGIN ISOLATION LEVEL {}", level.sql());
        let advisory = match (dialect, locks) {
            (Dialect::Postgres, true) => LOCKS.map(|lock| plain(lock, &[Kind::Int])).into(),
            (Dialect::Postgres, false) | (Dialect::MySql, _) => Vec::new(),
        };
        let mut all = vec![
            plain(&begin, &[]),
            plain("COMMIT", &[]),
            plain("ROLLBACK", &[]),
            plain(sql::INSERT_STAMP, &[Kind::Int, Kind::Int]),
            plain(sql::CLEAN_STAMPS, &[Kind::Int, Kind::Int]),
        ];
        let mut counts = Vec::new();
        for kind in schema.types() {
            let made = Statements::new(kind, dialect);
            counts.push((kind.name.to_string(), made.by_index.len()));
            all.push(reading(made.get, locks));
            all.extend([made.create, made.update, made.delete]);
            all.extend(made.by_index.into_iter().map(|it| reading(it, locks)));
        }
        all.extend(advisory);
        let ready = prepare::<R>(&mut link, dialect, all).await?;
        let mut ready = ready.into_iter();
        let mut next = || ready.next().expect("each was prepared");
        let [begin, commit, rollback, stamp, clean] = [(); 5].map(|()| next().prepared);
        let kinds = counts.into_iter().map(|(name, indexes)| {
            let of_kind = OfKind {
                get: next(),
                create: next(),
                update: next(),
                delete: next(),
                by_index: (0..indexes).map(|_| next()).collect(),
                ranges: BTreeMap::new(),
            };
            (name, of_kind)
        });
        let kinds = kinds.collect();
        let advisory: Vec<Prepared> = ready.map(|ready| ready.prepared).collect();
        Ok(Session {
            link,
            begin,
            commit,
            rollback,
            stamp,
            clean,
            advisory: advisory.try_into().ok(),
            kinds,
            dialect,
            locks,
        })
    }

    /// The statements of a type.
    pub(super) fn of_kind(&mut self, kind: &EntityType) -> Result<&mut OfKind, Failure> {
        let found = self.kinds.iter_mut().find(|(name, _)| *name == kind.name);
        found.map(|(_, of_kind)| of_kind).ok_or_else(|| {
            let text = format!("type \"{}\" is not in the schema of this store", kind.name);
            Failure::Refused(text)
        })
    }

    /// The statement of a range, prepared when it is asked for the first time.
    pub(super) async fn range(
        &mut self,
        kind: &EntityType,
        range: &Range<'_>,
    ) -> Result<Ready, Failure> {
        let shape = (range.prefix.len(), range.from.is_some(), range.to.is_some());
        if let Some(ready) = self.of_kind(kind)?.ranges.get(&shape) {
            return Ok(ready.clone());
        }
        let mut made = sql::range(kind, shape.0, (shape.1, shape.2), 1, self.dialect);
        // The limit becomes a parameter, so that there are few statements.
        let values = made.params.len();
        let head = made.sql.strip_suffix('1').unwrap_or(&made.sql);
        made.sql = format!("{head}${}", values + 1);
        made.params.push((values, Kind::Int));
        let made = reading(made, self.locks);
        let prepared = prepare::<R>(&mut self.link, self.dialect, vec![made]).await?;
        let ready = prepared.into_iter().next();
        let ready = ready.ok_or_else(|| Failure::Refused(String::from("nothing prepared")))?;
        self.of_kind(kind)?.ranges.insert(shape, ready.clone());
        Ok(ready)
    }
}

/// A statement that reads within a transaction.
fn reading(mut statement: Statement, locks: bool) -> Statement {
    if locks {
        statement.sql.push_str(" FOR UPDATE");
    }
    statement
}
