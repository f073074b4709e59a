//! Statements of several parts: WITH that changes rows, and MERGE.
//!
//! All parts see the rows as they were before the statement: each one reads what it needs and
//! computes its changes, and all changes are written at the end. A part runs when the first one
//! asks for the rows that it returns, the others behind the statement's own part.

use super::conflict::{self, Pending};
use super::insert::number_row;
use super::long::Long;
use super::named::Reader;
use super::source::{RowList, Rows, append_rows, collect, open};
use super::write::{self, Change, Changes, Claimed, check_row, complete_row, project};
use super::{BATCH_ROWS, Charge, Cx, Slots, children, foreign};
use crate::keys::entry_key;
use base::{Datum, Pieces, RowBatch, SqlError, SqlState, Tag};
use expr::rows::row_bytes;
use expr::{Expr, eval, eval_bool};
use plan::step::{InsertPlan, Merge, MergeWhen, Part, PartsPlan, When, Writer};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use txn::OpError;

/// What a part has computed.
struct Computed<'a> {
    changes: Long<'a, Pieces<Change>>,
    returned: Long<'a, RowList>,
}

/// Changes that are not written yet.
pub(super) struct Deferred {
    pub(super) part: usize,
    pub(super) changes: Pieces<Change>,
}

/// Runs a statement of several parts.
pub(super) async fn run<'a>(
    cx: &'a Cx<'a>,
    plan: &'a PartsPlan,
    slots: &Slots,
    emit: bool,
) -> Result<Tag, OpError> {
    let mut charge = Charge::new(cx.port);
    let own = plan.parts.len() - 1;
    let rows = match &plan.query {
        Some(query) => {
            let mut rows = collect(cx, query, slots, &mut charge).await?;
            let rows = Rc::new(core::mem::take(&mut *rows));
            // They are freed bit by bit with those of the parts.
            cx.kept.keep_returned(plan.parts.len(), rows.clone());
            rows
        }
        None => returned(cx, own, slots).await?,
    };
    for part in (0..plan.parts.len()).rev() {
        returned(cx, part, slots).await?;
    }
    let mut count = rows.len();
    let deferred = cx.kept.take_deferred();
    for Deferred { part, changes } in &deferred.list {
        write_part(cx, &plan.parts[*part], changes).await?;
    }
    for Deferred { part, changes } in &deferred.list {
        let writers = plan.parts[*part].writers();
        for from in (0..changes.len()).step_by(BATCH_ROWS) {
            let to = changes.len().min(from + BATCH_ROWS);
            let some = Changes::some(changes, from, to);
            foreign::check_parents(cx, &writers[0], some).await?;
        }
        children::follow_children(cx, writers, 0, Changes::many(changes), slots).await?;
        if plan.query.is_none() && *part == own {
            count = changes.len();
        }
    }
    drop(deferred);
    if emit {
        let width = match &plan.query {
            Some(query) => query.width,
            None => plan.parts[own].returning().map_or(0, Vec::len) as u32,
        };
        let mut reader = Reader { rows, at: 0 };
        while let Some(batch) = reader.next(width) {
            cx.breathe(batch.rows as usize).await;
            cx.emit(batch).await;
        }
    }
    let count = count as u64;
    Ok(match (&plan.query, &plan.parts[own]) {
        (Some(_), _) => Tag::Count("SELECT", count),
        (None, Part::Insert(_)) => Tag::Insert(count),
        (None, part) => Tag::Count(part.verb(), count),
    })
}

/// Writes the entries of a part's changes. Rows that are all new go in batches.
async fn write_part(cx: &Cx<'_>, part: &Part, changes: &Pieces<Change>) -> Result<(), OpError> {
    let (Part::Insert(plan), writer) = (part, &part.writers()[0]) else {
        return write::entries(cx, &part.writers()[0], Changes::many(changes)).await;
    };
    if plan.conflict.is_some() {
        return write::entries(cx, writer, Changes::many(changes)).await;
    }
    for from in (0..changes.len()).step_by(BATCH_ROWS) {
        let to = changes.len().min(from + BATCH_ROWS);
        write::entries(cx, writer, Changes::some(changes, from, to)).await?;
    }
    Ok(())
}

/// The rows that a part returns. It runs if it has not run yet.
async fn returned<'a>(cx: &'a Cx<'a>, part: usize, slots: &Slots) -> Result<Rc<RowList>, OpError> {
    if let Some(rows) = cx.kept.returned(part) {
        return Ok(rows);
    }
    let plan = cx.parts.expect("the statement has parts");
    let mut charge = Charge::new(cx.port);
    let claims = plan.overlap.then(|| cx.kept.claims());
    let mut computed = match &plan.parts[part] {
        Part::Insert(insert) => inserted(cx, insert, slots, &mut charge).await?,
        Part::Write(write) => {
            let claimed = claims.map(|keys| Claimed { keys, part });
            let (changes, others) =
                write::changes(cx, write, slots, claimed.as_ref(), &mut charge).await?;
            let mut computed = Computed {
                changes,
                returned: Long::new(cx.port, RowList::new()),
            };
            if let Some(returning) = &write.returning {
                let row = |at: usize| others.get(at).map_or(&[][..], Vec::as_slice);
                project_all(cx, returning, &mut computed, &row, slots, &mut charge).await?;
            }
            drop(others);
            computed
        }
        Part::Merge(merge) => {
            let claimed = claims.map(|keys| Claimed { keys, part });
            let changes = merged(cx, merge, slots, claimed.as_ref(), &mut charge).await?;
            let returned = Long::new(cx.port, RowList::new());
            Computed { changes, returned }
        }
    };
    cx.kept.keep_charge(&mut charge);
    let changes = core::mem::take(&mut *computed.changes);
    cx.kept.defer(Deferred { part, changes });
    let rows = Rc::new(core::mem::take(&mut *computed.returned));
    cx.kept.keep_returned(part, rows.clone());
    Ok(rows)
}

/// What RETURNING gives for each change.
async fn project_all<'r>(
    cx: &Cx<'_>,
    returning: &[Expr],
    computed: &mut Computed<'_>,
    others: &dyn Fn(usize) -> &'r [Datum],
    slots: &Slots,
    charge: &mut Charge<'_>,
) -> Result<(), OpError> {
    let mut out = RowBatch::new(returning.len());
    for at in 0..computed.changes.len() {
        let change = &computed.changes[at];
        let row = change.new.as_ref().or(change.old.as_ref());
        let row = row.expect("a row was changed");
        let full: Vec<Datum> = row.iter().chain(others(at)).cloned().collect();
        project(cx, returning, &full, slots, &mut out)?;
        cx.breathe(1).await;
        if out.rows as usize >= BATCH_ROWS {
            let batch = core::mem::replace(&mut out, RowBatch::new(returning.len()));
            append_rows(batch, &mut computed.returned, charge)?;
        }
    }
    append_rows(out, &mut computed.returned, charge)?;
    Ok(())
}

/// Computes the rows that an INSERT adds or changes.
async fn inserted<'a>(
    cx: &'a Cx<'a>,
    plan: &'a InsertPlan,
    slots: &Slots,
    charge: &mut Charge<'_>,
) -> Result<Computed<'a>, OpError> {
    let writer = &plan.writers[0];
    let rowid = writer.table.rowid();
    let mut rows = collect(cx, &plan.source, slots, charge).await?;
    let mut changes = Long::new(cx.port, Pieces::new());
    let mut pending = Pending::new(cx.port);
    charge.add(rows.len() * size_of::<Change>())?;
    for row in rows.iter_mut() {
        let mut row = core::mem::take(row);
        number_row(cx, rowid, &mut row);
        complete_row(cx, writer, &mut row)?;
        cx.breathe(1).await;
        let change = match &plan.conflict {
            None => Some(Change {
                old: None,
                new: Some(row),
            }),
            Some(on) => {
                check_row(cx, writer, &row)?;
                conflict::decided(cx, writer, on, row, slots, &mut pending).await?
            }
        };
        changes.extend(change);
    }
    let mut computed = Computed {
        changes,
        returned: Long::new(cx.port, RowList::new()),
    };
    if let Some(returning) = &plan.returning {
        project_all(cx, returning, &mut computed, &|_| &[], slots, charge).await?;
    }
    Ok(computed)
}

/// Computes what a MERGE changes.
async fn merged<'a>(
    cx: &'a Cx<'a>,
    plan: &'a Merge,
    slots: &Slots,
    claimed: Option<&Claimed<'_>>,
    charge: &mut Charge<'_>,
) -> Result<Long<'a, Pieces<Change>>, OpError> {
    let table = &*plan.writers[0].table;
    let width = table.columns.len();
    let mut rows = collect(cx, &plan.rows, slots, charge).await?;
    let mut changes = Long::new(cx.port, Pieces::new());
    let mut seen = Long::new(cx.port, BTreeSet::new());
    let mut new: Vec<Long<'a, RowList>> = Vec::new();
    new.resize_with(plan.clauses.len(), || Long::new(cx.port, RowList::new()));
    charge.add(rows.len() * size_of::<Change>())?;
    for row in rows.iter_mut() {
        let mut row = core::mem::take(row);
        cx.breathe(1).await;
        let Some(at) = decision(cx, plan, &row, slots)? else {
            continue;
        };
        let assignments = match &plan.clauses[at].action {
            MergeWhen::Nothing => continue,
            MergeWhen::Insert { .. } => {
                new[at].push(row);
                continue;
            }
            MergeWhen::Delete => None,
            MergeWhen::Update(assignments) => Some(assignments),
        };
        let key = entry_key(table, &table.primary, &row[..width]).bytes;
        if !write::is_first_of(key.clone(), &mut seen, charge)? {
            return Err(met_again().into());
        }
        if let Some(claimed) = claimed
            && !claimed.take(table, key, charge)?
        {
            continue;
        }
        let updated = assignments.map(|assignments| {
            let mut updated = row[..width].to_vec();
            for (column, value) in assignments {
                updated[usize::from(*column)] = eval(value, &row.as_slice(), &cx.env(slots))?;
            }
            complete_row(cx, &plan.writers[0], &mut updated)?;
            Ok::<_, SqlError>(updated)
        });
        let updated = updated.transpose()?;
        if let Some(updated) = &updated {
            charge.add(row_bytes(updated))?;
        }
        row.truncate(width);
        changes.push(Change {
            old: Some(row),
            new: updated,
        });
    }
    for (clause, rows) in plan.clauses.iter().zip(new) {
        add_new(
            cx,
            &plan.writers,
            clause,
            rows,
            slots,
            (&mut changes, charge),
        )
        .await?;
    }
    Ok(changes)
}

/// The clause that decides about a row.
fn decision(
    cx: &Cx<'_>,
    plan: &Merge,
    row: &[Datum],
    slots: &[Datum],
) -> Result<Option<usize>, SqlError> {
    let matched = !row[usize::from(plan.key)].is_null();
    let env = cx.env(slots);
    for (at, clause) in plan.clauses.iter().enumerate() {
        if clause.matched != matched {
            continue;
        }
        match &clause.condition {
            None => return Ok(Some(at)),
            Some(condition) if eval_bool(condition, &row, &env)? == Some(true) => {
                return Ok(Some(at));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

/// Adds the rows that an INSERT of a MERGE makes.
async fn add_new<'a>(
    cx: &'a Cx<'a>,
    writers: &Arc<[Writer]>,
    clause: &'a When,
    mut rows: Long<'a, RowList>,
    slots: &Slots,
    (changes, charge): (&mut Pieces<Change>, &mut Charge<'_>),
) -> Result<(), OpError> {
    let MergeWhen::Insert { slot, source } = &clause.action else {
        return Ok(());
    };
    if rows.is_empty() {
        return Ok(());
    }
    let rowid = writers[0].table.rowid();
    let run = cx.kept.begin_run(core::mem::take(&mut *rows));
    let mut values = (**slots).clone();
    values[*slot as usize] = Datum::Int(run.number);
    let slots = Rc::new(values);
    let mut source = open(cx, source, &slots);
    let mut found = Long::new(cx.port, RowList::new());
    while let Some(batch) = source.next().await? {
        append_rows(batch, &mut found, charge)?;
    }
    charge.add(found.len() * size_of::<Change>())?;
    for row in found.iter_mut() {
        let mut row = core::mem::take(row);
        number_row(cx, rowid, &mut row);
        complete_row(cx, &writers[0], &mut row)?;
        cx.breathe(1).await;
        changes.push(Change {
            old: None,
            new: Some(row),
        });
    }
    Ok(())
}

/// 21000.
fn met_again() -> SqlError {
    let message = "MERGE command cannot affect row a second time";
    SqlError::new(SqlState::CARDINALITY_VIOLATION, message)
        .hint("Ensure that not more than one source row matches any one target row.")
}

/// The rows that a part returns, for those that read them.
pub(super) struct PartRows<'a> {
    cx: &'a Cx<'a>,
    part: u32,
    width: u32,
    slots: Slots,
    reader: Option<Reader>,
}

impl<'a> PartRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, part: u32, width: u32, slots: &Slots) -> PartRows<'a> {
        PartRows {
            cx,
            part,
            width,
            slots: slots.clone(),
            reader: None,
        }
    }
}

impl Rows for PartRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if self.reader.is_none() {
            let rows = returned(self.cx, self.part as usize, &self.slots).await?;
            self.reader = Some(Reader { rows, at: 0 });
        }
        let width = self.width;
        let batch = self.reader.as_mut().and_then(|reader| reader.next(width));
        let count = batch.as_ref().map_or(0, |batch| batch.rows as usize);
        self.cx.breathe(count).await;
        Ok(batch)
    }
}
