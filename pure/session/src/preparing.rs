//! Parsing and planning of long statements, for a thread beside that of the shard.
//!
//! Both take a text, a catalog and numbers of rows, and give a statement and a plan: nothing of the
//! shard is touched. A statement of a million words takes seconds, in which a shard that did it
//! itself would serve no other client. So the session gives the statement away as a
//! [`Preparation`] and goes on when the host brings the result. What is left of a long statement
//! goes the same way: to free a million words takes some 50 ms. Texts below
//! [`parse::LONG_BYTES`] are not worth the way; they are kept in the cache of plans.

use crate::barrier::{Barrier, behind};
use crate::conn::ConnId;
use crate::errors;
use base::{Planted, ShardId, SqlError, TableId, Type, is_planted};
use bind::PlanCx;
use catalog::{Catalog, Database};
use core::any::Any;
use core::cell::RefCell;
use core::fmt;
use parse::Statement;
use plan::Plan;
use rights::Viewer;
use statistics::TableValues;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// Inputs of a plan.
pub(crate) struct Planning {
    pub(crate) statement: Statement,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) database: Arc<Database>,
    /// Types of parameters that the client declared.
    pub(crate) declared: Box<[Type]>,
    /// Time zone and style of intervals of the session, as plans have them.
    pub(crate) zone: Box<str>,
    /// The schemas in which it looks names up.
    pub(crate) path: Box<[u32]>,
    /// Whose policies concern its rows.
    pub(crate) viewer: Viewer,
    /// Row counts of the database's tables, as far as they are known.
    pub(crate) rows: BTreeMap<TableId, u64>,
    /// What is known of the values of those tables.
    pub(crate) values: BTreeMap<TableId, Arc<TableValues>>,
}

impl Planning {
    /// Makes the plan.
    ///
    /// # Errors
    /// Those of [`plan::plan()`]; XX000 if it panics.
    pub(crate) fn run(&self, barrier: Barrier) -> PlanResult {
        let rows = |table| self.rows.get(&table).copied();
        let cx = PlanCx {
            catalog: &self.catalog,
            database: &self.database,
            param_types: &self.declared,
            param_names: &[],
            zone: &self.zone,
            path: &self.path,
            viewer: self.viewer,
            rows: &rows,
            values: &|table| self.values.get(&table).cloned(),
            paths: Default::default(),
        };
        plan(barrier, &self.statement, &cx)
    }
}

/// 53200: the parsed text would take more memory than the node has.
pub(crate) fn no_room(here: ShardId) -> SqlError {
    errors::memory_used_up(here.node())
        .detail("There is no room to parse and plan a statement of this many words.")
        .hint("Use COPY, parameters, or several statements.")
}

/// Plans a statement behind the barrier.
///
/// # Errors
/// Those of [`plan::plan()`]; XX000 if it panics.
pub(crate) fn plan(
    barrier: Barrier,
    statement: &Statement,
    cx: &PlanCx<'_>,
) -> Result<Arc<Plan>, SqlError> {
    behind(barrier, statement.text(), || {
        assert!(!is_planted(Planted::PlanPanics), "planted");
        plan::plan(statement, cx)
    })
}

pub(crate) enum Work {
    /// Weighs a text: bytes of memory that it takes once it is parsed and planned.
    Weigh(Arc<str>),
    Parse(Arc<str>),
    Plan(Box<Planning>),
    /// Frees these; no session waits for that.
    Free(Vec<Leftover>),
}

/// A part of a long statement that is not needed any more.
pub(crate) type Leftover = Box<dyn Any + Send>;

/// Parts of the shard's long statements that the host has not freed yet.
#[derive(Clone, Default)]
pub struct Leftovers(Rc<RefCell<Vec<Leftover>>>);

impl Leftovers {
    pub(crate) fn add(&self, leftover: Leftover) {
        self.0.borrow_mut().push(leftover);
    }

    /// Takes all parts, to be freed.
    pub fn take(&self, barrier: Barrier) -> Option<Preparation> {
        let leftovers = self.0.take();
        (!leftovers.is_empty()).then_some(Preparation {
            conn: ConnId(0),
            number: 0,
            barrier,
            wanted: Weak::new(),
            work: Work::Free(leftovers),
        })
    }
}

/// Work that a session waits for.
pub struct Preparation {
    pub(crate) conn: ConnId,
    pub(crate) number: u64,
    pub(crate) barrier: Barrier,
    /// Dropped when the session waits no more.
    pub(crate) wanted: Weak<()>,
    pub(crate) work: Work,
}

/// Result of planning.
pub(crate) type PlanResult = Result<Arc<Plan>, SqlError>;

pub(crate) enum Made {
    Weighed(Arc<str>, u64),
    Parsed(Result<Vec<Statement>, SqlError>),
    Planned(Box<Planning>, PlanResult),
}

/// The result of a [`Preparation`].
pub struct PreparationResult {
    pub(crate) conn: ConnId,
    pub(crate) number: u64,
    pub(crate) made: Made,
}

impl PreparationResult {
    /// The session that waits for it.
    pub fn conn(&self) -> ConnId {
        self.conn
    }
}

impl Preparation {
    /// Does the work, on any thread: up to some seconds for a text of 8 MiB. `None`: no session
    /// waits for the result; if the statement was cancelled before, nothing is done.
    pub fn run(self) -> Option<PreparationResult> {
        let is_wanted = self.wanted.strong_count() > 0;
        let made = match self.work {
            Work::Free(leftovers) => {
                drop(leftovers);
                return None;
            }
            _ if !is_wanted => return None,
            Work::Weigh(text) => {
                let bytes = parse::memory_bytes(&text);
                Made::Weighed(text, bytes)
            }
            Work::Parse(text) => Made::Parsed(behind(self.barrier, &text, || parse::parse(&text))),
            Work::Plan(planning) => {
                let plan = planning.run(self.barrier);
                Made::Planned(planning, plan)
            }
        };
        Some(PreparationResult {
            conn: self.conn,
            number: self.number,
            made,
        })
    }
}

impl fmt::Debug for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Preparation({:?}, {})", self.conn, self.number)
    }
}

impl fmt::Debug for PreparationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparationResult({:?}, {})", self.conn, self.number)
    }
}

/// Both go from thread to thread.
const fn is_send<T: Send>() {}
const _: () = is_send::<Preparation>();
const _: () = is_send::<PreparationResult>();
