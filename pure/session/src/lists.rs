//! What `pg_prepared_statements` and `pg_cursors` tell: the statements and cursors of the session.

use super::Session;
use super::message::SessionFacts;
use base::Time;
use base::calendar::UNIX_EPOCH_MICROS;
use pg_catalog::own;
use plan::Plan;
use std::sync::Arc;

/// What is noted of a statement when it is prepared.
pub(super) struct Noted {
    pub(super) at: Time,
    /// The text of PREPARE, if it was that.
    pub(super) text: Option<Arc<str>>,
}

/// As `timestamptz`.
fn moment(at: Time) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX) - UNIX_EPOCH_MICROS
}

impl Session {
    /// What the statement of a plan may read of the session.
    pub(super) fn facts_for(&self, plan: &Plan) -> Arc<SessionFacts> {
        match plan.reads_session {
            false => self.facts.clone(),
            true => Arc::new(self.facts_of_own()),
        }
    }

    fn facts_of_own(&self) -> SessionFacts {
        let mut facts = (*self.facts).clone();
        let statements = self.prepared.iter().map(|(name, prepared)| {
            let noted = self.noted.get(name);
            let text = noted.and_then(|noted| noted.text.as_deref());
            let plan = prepared.plan.as_ref();
            let types = plan.map(|plan| plan.params.iter().map(|ty| ty.oid()).collect());
            (
                name.clone(),
                text.unwrap_or_else(|| prepared.shown()).to_owned(),
                moment(noted.map_or(self.connected, |noted| noted.at)),
                types.unwrap_or_default(),
                text.is_some(),
            )
        });
        let statements = own::told_statements(&statements.collect::<Vec<_>>());
        facts.settings.push((own::STATEMENTS.into(), statements));
        let cursors = own::told_cursors(&self.own_cursors());
        facts.settings.push((own::CURSORS.into(), cursors));
        facts
    }

    fn own_cursors(&self) -> Vec<own::OwnCursor> {
        let cursors = self.cursors.iter();
        // Those without a text keep rows of a block in PL/pgSQL.
        let told = cursors.filter_map(|(name, cursor)| {
            let (text, holds, backward, at) = cursor.told();
            let row = (name.clone(), text.to_owned(), holds, backward, moment(at));
            (!text.is_empty()).then_some(row)
        });
        told.collect()
    }
}
