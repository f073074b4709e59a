//! Views of `pg_catalog` for people: pg_tables, pg_indexes, pg_settings, statistics.

use super::*;
use crate::settings::{Kind, SETTINGS};
use std::collections::BTreeMap;

pub(super) fn tables(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let mut push = |schema: &str, name: &str, id: u32, has: [bool; 3]| {
        let [has_index, has_triggers, guarded] = has;
        out.push([
            text(schema),
            text(name),
            text(cx.role_name(cx.owner(id))),
            Datum::Null,
            flag(has_index),
            flag(false),
            flag(has_triggers),
            flag(guarded),
        ]);
    };
    for table in all().filter(|table| table.kind == 'r') {
        push(table.schema, table.name, 0, [false; 3]);
    }
    let is_table = |table: &&Table| cx.database.stored_view(&table.name).is_none();
    for table in cx.tables().filter(is_table) {
        let keys = table.has_keys();
        let has_index = indexes(table).next().is_some();
        let schema = cx.schema_name(&table.name);
        let has = [has_index, keys, relations::guarded(cx, table).0];
        push(schema, own(&table.name), table.id.0, has);
    }
}

pub(super) fn index_list(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for (index, primary) in indexes(table) {
            out.push([
                cx.schema(&table.name),
                text(own(&table.name)),
                text(index.name.as_str()),
                Datum::Null,
                text(definitions::index(cx, table, (index, primary), false)),
            ]);
        }
    }
}

pub(super) fn sequences(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for sequence in cx.database.sequences.values() {
        out.push([
            cx.schema(&sequence.name),
            text(own(&sequence.name)),
            text(cx.role_name(cx.owner(sequence.id.0))),
            oid(sequence.ty.oid()),
            int(sequence.start),
            int(sequence.min),
            int(sequence.max),
            int(sequence.increment),
            flag(sequence.cycle),
            int(1),
            // The counter is a row of its own key space, not a fact of the catalog.
            Datum::Null,
        ]);
    }
}

pub(super) fn settings(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for setting in SETTINGS {
        let shown = (cx.setting)(&setting.name.to_ascii_lowercase());
        let shown = shown.unwrap_or_else(|| setting.default.to_owned());
        // Here numbers are without unit.
        let plain = |value: &str| match settings::integer(setting.name, value) {
            Some(number) => number.to_string(),
            None => value.to_owned(),
        };
        let (unit, min, max) = match setting.kind {
            Kind::Integer { min, max, unit } => {
                (unit.name(), Some(min.to_string()), Some(max.to_string()))
            }
            Kind::Real { min, max } => (None, Some(format!("{min}")), Some(format!("{max}"))),
            _ => (None, None, None),
        };
        let words = match setting.kind {
            Kind::Enum(words) => array(words.iter().map(|word| text(*word))),
            _ => Datum::Null,
        };
        let source = if shown == setting.default {
            "default"
        } else {
            "session"
        };
        out.push([
            text(setting.name),
            text(plain(&shown)),
            optional(unit),
            text("Settings"),
            text(setting.description),
            Datum::Null,
            text(setting.context.name()),
            text(setting.vartype()),
            text(source),
            optional(min),
            optional(max),
            words,
            text(plain(setting.default)),
            text(plain(setting.default)),
            Datum::Null,
            Datum::Null,
            flag(false),
        ]);
    }
}

pub(super) fn activity(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let Some(sessions) = cx.told else {
        return;
    };
    let superuser = cx.catalog.rights.is_superuser(cx.acting());
    for session in sessions.iter() {
        let [
            pid,
            user,
            name,
            application,
            address,
            port,
            began,
            in_txn,
            asked,
            changed,
            state,
            query,
        ] = session
        else {
            unreachable!("rows of Show::Activity have its columns")
        };
        let name_of = name.as_str();
        let database = name_of.and_then(|name| cx.catalog.databases.get(name));
        let waits = state.as_str() != Some("active");
        let wait = |word: &str| if waits { text(word) } else { Datum::Null };
        let mut row = vec![
            database.map_or(Datum::Null, |database| oid(database.id.0)),
            name.clone(),
            pid.clone(),
            Datum::Null,
            oid(user
                .as_str()
                .map_or(OWNER, |name| cx.catalog.rights.acting(name).0)),
            user.clone(),
        ];
        let address = address
            .as_str()
            .map(|shown| base::text::parse(Type::Inet, shown));
        row.push(application.clone());
        row.push(address.and_then(Result::ok).unwrap_or_default());
        row.push(Datum::Null);
        row.extend([port, began, in_txn, asked, changed].map(Clone::clone));
        row.extend([wait("Client"), wait("ClientRead"), state.clone()]);
        // What others ask is not everybody's to know.
        let query = match superuser || user.as_str() == Some(cx.user) {
            true => query.clone(),
            false => text("<insufficient privilege>"),
        };
        row.extend([Datum::Null, Datum::Null, Datum::Null, query]);
        row.push(text("client backend"));
        out.push(row);
    }
}

/// Locks that requests wait for, and those in their way: `docs/pg_locks.md`.
pub(super) fn locks(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let Some(told) = cx.told else {
        return;
    };
    // Rows with a backend number and no kind name the session of a transaction; the others are
    // locks.
    let of_session = |row: &[Datum]| match row {
        [txn, pid, kind, ..] if !pid.is_null() && kind.is_null() => {
            Some((txn.as_str()?.to_owned(), pid.clone()))
        }
        _ => None,
    };
    let pids: BTreeMap<String, Datum> = told.iter().filter_map(of_session).collect();
    for lock in told.iter() {
        let [txn, pid, kind, database, relation, page, tuple, mode, since] = lock else {
            unreachable!("rows of Show::Locks have its columns")
        };
        if !pid.is_null() && kind.is_null() {
            continue;
        }
        let known = || txn.as_str().and_then(|txn| pids.get(txn)).cloned();
        let pid = match pid.is_null() {
            true => known(),
            false => Some(pid.clone()),
        };
        let mut row: Vec<Datum> = [kind, database, relation, page, tuple]
            .map(Clone::clone)
            .into();
        // virtualxid, transactionid, classid, objid, objsubid
        row.extend(core::iter::repeat_n(Datum::Null, 5));
        row.extend([txn.clone(), pid.unwrap_or(Datum::Null), mode.clone()]);
        row.extend([flag(since.is_null()), flag(false), since.clone()]);
        out.push(row);
    }
}

/// Statistics per table: only the names are known here. `SHOW PLACEMENT` counts rows.
pub(super) fn table_counts(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        let (schema, name) = (cx.schema(&table.name), text(own(&table.name)));
        let mut row = vec![oid(table.id.0), schema, name];
        row.extend((0..12).map(|_| int(0)));
        row.extend(core::iter::repeat_n(Datum::Null, 4));
        row.extend((0..4).map(|_| int(0)));
        out.push(row);
    }
}

pub(super) fn index_counts(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        for (index, _) in indexes(table) {
            let (schema, name) = (cx.schema(&table.name), text(own(&table.name)));
            let mut row = vec![oid(table.id.0), oid(index.id.0), schema, name];
            row.push(text(index.name.as_str()));
            row.extend((0..3).map(|_| int(0)));
            out.push(row);
        }
    }
}

pub(super) fn table_blocks(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for table in cx.tables() {
        let (schema, name) = (cx.schema(&table.name), text(own(&table.name)));
        let mut row = vec![oid(table.id.0), schema, name];
        row.extend((0..8).map(|_| int(0)));
        out.push(row);
    }
}

pub(super) fn database_counts(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    for (name, database) in &cx.catalog.databases {
        let width = lookup(None, "pg_stat_database").map_or(0, |table| table.columns.len());
        let mut row = vec![oid(database.id.0), text(name.as_str())];
        row.resize(width, Datum::Null);
        out.push(row);
    }
}
