//! CREATE TABLE ... AS: the table is made first, as every schema change is, and then filled by an
//! INSERT in a transaction. If that fails the table goes again, before the client is told.

use super::run::Start;
use super::{Activity, Session, SessionCx};
use base::{Position, SqlError, Tag};
use plan::CreateAs;
use std::sync::Arc;

/// A table that is being made and filled.
pub(super) struct Filling {
    create: Box<CreateAs>,
    stage: Stage,
}

enum Stage {
    /// The table is being made.
    Creating,
    /// The INSERT runs.
    Inserting,
    /// It has failed, and the table is being dropped.
    Undoing(SqlError, Position),
}

impl Session {
    pub(super) fn create_as(&mut self, cx: &mut SessionCx<'_>, create: &CreateAs) {
        self.filling = Some(Box::new(Filling {
            create: Box::new(create.clone()),
            stage: Stage::Creating,
        }));
        self.ddl(cx, &create.create);
    }

    /// The schema change of a table that is being filled has ended. Whether that was all of it.
    pub(super) fn filled_ddl(
        &mut self,
        cx: &mut SessionCx<'_>,
        result: &Result<Vec<String>, SqlError>,
    ) -> bool {
        let Some(mut filling) = self.filling.take() else {
            return true;
        };
        match (filling.stage, result) {
            (Stage::Creating, Ok(notices)) => {
                // A table of that name was there already.
                if notices
                    .iter()
                    .any(|text| text.ends_with("already exists, skipping"))
                {
                    return true;
                }
                filling.stage = Stage::Inserting;
                let insert = filling.create.insert.clone();
                self.filling = Some(filling);
                self.activity = Activity::Idle;
                match self.own_statement(cx, &insert) {
                    Ok(start) => self.start(cx, start),
                    Err(error) => self.fail(cx, error, Position(0)),
                }
                false
            }
            (Stage::Undoing(error, wait), _) => {
                self.activity = Activity::Idle;
                self.fail(cx, error, wait);
                false
            }
            (Stage::Creating | Stage::Inserting, _) => true,
        }
    }

    /// A statement of the session's own.
    pub(super) fn own_statement(
        &mut self,
        cx: &mut SessionCx<'_>,
        text: &str,
    ) -> Result<Start, SqlError> {
        let statements = parse::parse(text)?;
        let statement = statements.first().expect("the text is a statement");
        let prepared = self.prepare_statement(cx, statement, &[])?;
        Ok(Start {
            prepared,
            params: Arc::from([]),
            formats: Arc::from([]),
            describe: false,
            rows_max: 0,
            portal: None,
            last: true,
            many: false,
            declares: None,
            until: None,
        })
    }

    /// The tag of a statement that has ended well: of one that has filled a table, that of its
    /// query.
    pub(super) fn filled(&mut self, tag: Tag) -> Tag {
        match (self.filling.take(), tag) {
            (Some(_), Tag::Insert(rows)) => Tag::Count("SELECT", rows),
            (_, tag) => tag,
        }
    }

    /// A statement fails. If it is one that fills a table, the table goes first; whether that has
    /// begun.
    pub(super) fn undo_filling(
        &mut self,
        cx: &mut SessionCx<'_>,
        error: &SqlError,
        wait: Position,
    ) -> bool {
        let Some(mut filling) = self.filling.take() else {
            return false;
        };
        if !matches!(filling.stage, Stage::Inserting) {
            return false;
        }
        self.roll_back(cx);
        filling.stage = Stage::Undoing(error.clone(), wait);
        let undo = filling.create.undo.clone();
        self.filling = Some(filling);
        self.start_ddl(cx, &undo);
        true
    }
}
