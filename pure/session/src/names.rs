//! Values to and from the client whose text form needs the catalog.

use super::{Reply, Session, SessionCx};
use base::full_name::schema_of;
use base::text::SpanStyle;
use base::{Datum, OutColumn, Position, RowBatch, SqlError, Type};
use catalog::{Database, Names};
use pg_catalog::CatalogCx;
use pg_catalog::output;
use wire::Format;

impl Session {
    /// Calls `call` with the catalog as functions see it.
    fn with_catalog<T>(
        &self,
        cx: &SessionCx<'_>,
        call: impl FnOnce(&CatalogCx<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        call(&CatalogCx {
            catalog: cx.catalog,
            database: self.database(cx)?,
            user: match &*self.acting.current {
                "" => &self.user,
                name => name,
            },
            pid: self.pid,
            txn_time: self.block_time.unwrap_or(cx.now),
            setting: &|name| self.setting(name),
            size_bytes: &|_| None,
            told: None,
        })
    }

    /// A parameter in text form.
    pub(super) fn read_text(
        &self,
        cx: &SessionCx<'_>,
        ty: Type,
        text: &str,
    ) -> Result<Datum, SqlError> {
        if self.settings.style().reads(ty) {
            return self.settings.style().parse(ty, text);
        }
        if output::is_plain(ty) {
            return match self.settings.zone().filter(|_| output::reads_zone(ty)) {
                Some(zone) => base::text::parse_in(&zone, ty, text),
                None => base::text::parse(ty, text),
            };
        }
        self.with_catalog(cx, |catalog| output::read(catalog, ty, text))
    }

    /// A parameter in binary form whose values the catalog knows.
    pub(super) fn read_binary(
        &self,
        cx: &SessionCx<'_>,
        ty: Type,
        bytes: &[u8],
    ) -> Result<Datum, SqlError> {
        self.with_catalog(cx, |catalog| output::read_binary(catalog, ty, bytes))
    }

    /// An error with the names of types and values of users, which only the catalog knows.
    pub(super) fn named_error(&self, cx: &SessionCx<'_>, error: SqlError) -> SqlError {
        match self.database(cx) {
            Ok(database) => {
                let error = self.shown_error(cx, database, database.named_error(error));
                let path = self.path(cx);
                let names = Names {
                    database,
                    path: &path,
                };
                let error = with_schema(database, error);
                names.shown_error(error)
            }
            Err(_) => error,
        }
    }

    /// A text with names of schemas, for people.
    pub(super) fn shown_text(&self, cx: &SessionCx<'_>, text: String) -> String {
        let Ok(database) = self.database(cx) else {
            return text;
        };
        let path = self.path(cx);
        let names = Names {
            database,
            path: &path,
        };
        names.shown(&text).into_owned()
    }

    /// Says rows of the present step in the client's form. `false`: the statement has failed.
    pub(super) fn say_rows(
        &mut self,
        cx: &mut SessionCx<'_>,
        mut batch: RowBatch,
        wait: Position,
    ) -> bool {
        let step = &self.steps[self.at];
        let (columns, formats) = (step.plan.columns.clone(), step.formats.clone());
        if let Err(error) = self.put_names(cx, &columns, &formats, &mut batch) {
            self.fail(cx, error, wait);
            return false;
        }
        self.say_of_step(Reply::Rows(columns, formats, batch), wait);
        self.count_batch(cx);
        true
    }

    /// Replaces numbers in rows by names, as the client reads them.
    ///
    /// # Errors
    /// XX000 for values of a type that is gone.
    pub(super) fn put_names(
        &self,
        cx: &SessionCx<'_>,
        columns: &[OutColumn],
        formats: &[Format],
        batch: &mut RowBatch,
    ) -> Result<(), SqlError> {
        if columns.iter().all(|column| output::is_usual(column.ty)) {
            return Ok(());
        }
        let zone = match columns.iter().any(|column| output::is_zoned(column.ty)) {
            true => self.settings.zone(),
            false => None,
        };
        let spans = columns.iter().any(|column| output::has_spans(column.ty))
            && self.settings.style() != SpanStyle::Postgres;
        let plain = columns.iter().all(|column| output::is_plain(column.ty));
        if plain && zone.is_none() && !spans {
            return Ok(());
        }
        let as_text = |at: usize| {
            let format = formats.get(if formats.len() == 1 { 0 } else { at });
            !matches!(format, Some(Format::Binary))
        };
        if let Some(zone) = zone {
            output::put_zone(&zone, columns, &as_text, batch);
        }
        if spans {
            output::put_spans(self.settings.style(), columns, &as_text, batch);
        }
        if plain {
            return Ok(());
        }
        self.with_catalog(cx, |catalog| {
            output::put_names(catalog, columns, &as_text, batch)
        })
    }
}

/// An error about a constraint, with the schema of its table or domain.
fn with_schema(database: &Database, error: SqlError) -> SqlError {
    let fields = error.fields();
    let named = match fields.table.is_empty() {
        true => &fields.data_type,
        false => &fields.table,
    };
    if named.is_empty() || !error.state().as_str().starts_with("23") {
        return error;
    }
    let schema = database.schema_name(schema_of(named)).to_owned();
    error.schema(schema)
}
