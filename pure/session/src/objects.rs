//! The tables of large objects, made before the first statement that makes one.

use super::ddl::DdlWait;
use super::run::Start;
use super::{Activity, Session, SessionCx};
use crate::message::DdlCall;
use base::{Position, SqlError};
use bind::objects::ObjectUse;
use catalog::objects::tables_of_objects;
use plan::{DdlPlan, Plan};

impl Session {
    /// Whether a statement makes a large object and the database has no place for it yet.
    pub(super) fn lacks_tables(&self, cx: &SessionCx<'_>, plan: &Plan) -> bool {
        plan.objects == ObjectUse::Makes
            && !self.present_modes().read_only
            && self
                .database(cx)
                .is_ok_and(|database| !database.keeps_objects())
    }

    /// Makes the tables; then the statement begins again. They are the server's own, so nobody's
    /// rights are asked.
    pub(super) fn make_tables(&mut self, cx: &mut SessionCx<'_>, start: Start) {
        let database = self.database.to_string();
        let plan = DdlPlan {
            tag: "CREATE TABLE",
            before: tables_of_objects(&database),
            fill: None,
            after: Vec::new(),
            undo: Vec::new(),
            notices: Vec::new(),
            temporary: None,
        };
        self.making = Some(Box::new(start));
        let asker = self.asker(None);
        cx.ddl
            .push_back(DdlCall::Ask(self.conn, database, Box::new(plan), asker));
        self.activity = Activity::Ddl(DdlWait::of(&self.settings, "CREATE TABLE", cx.now));
    }

    /// The tables are there, perhaps made by another session.
    pub(super) fn tables_made(
        &mut self,
        cx: &mut SessionCx<'_>,
        mut start: Start,
        result: Result<Vec<String>, SqlError>,
    ) {
        self.activity = Activity::Idle;
        let again = result.and_then(|_| self.refreshed(cx, &start.prepared));
        match again {
            Ok(prepared) => {
                start.prepared = prepared;
                self.start(cx, start);
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }
}
