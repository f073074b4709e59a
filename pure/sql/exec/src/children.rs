//! Foreign keys: the children of rows that went away or changed their keys follow.
//!
//! The children of many keys are read together, so that a table without an index on the foreign
//! key is read once and not once for each parent. Rows that follow have children of their own:
//! these come when all of their level have been written, however deep that goes.

use super::deferred::{Owes, keys_at_once};
use super::foreign::{check_parents, defers, owe, shown_key_of, values};
use super::long::Long;
use super::source::{RowList, collect};
use super::write::{Change, Changes, complete_row, entries};
use super::{Charge, Cx, Local, Slots};
use base::{Datum, Pieces, SqlError, SqlState};
use catalog::Action;
use core::future::poll_fn;
use core::task::Poll;
use expr::rows::{GroupKey, datum_heap_bytes, row_bytes};
use plan::step::{ChildKey, KeyRows, Writer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use txn::OpError;

/// Keys that are asked for one by one have as many requests under way.
const KEYS_AT_A_TIME: usize = 32;
/// Bytes of keys that are asked for together, about.
const KEY_BYTES: usize = 1 << 20;

/// Rows that were changed because others were; their own children are still to follow.
struct Followers<'a> {
    /// Number of their writer.
    writer: usize,
    changes: Long<'a, Pieces<Change>>,
    /// Of the changes.
    charge: Charge<'a>,
}

/// What happens to the children of rows that went away or changed their keys.
pub(super) fn follow_children<'b>(
    cx: &'b Cx<'_>,
    writers: &'b [Writer],
    number: usize,
    changes: Changes<'b>,
    slots: &'b Slots,
) -> Local<'b, Result<(), OpError>> {
    Box::pin(async move {
        let mut follow = Follow {
            cx,
            writers,
            slots,
            waiting: VecDeque::new(),
        };
        follow.level(number, changes).await?;
        while let Some(next) = follow.waiting.pop_front() {
            let changes = Changes::many(&next.changes);
            follow.level(next.writer, changes).await?;
        }
        Ok(())
    })
}

struct Follow<'b, 'a> {
    cx: &'b Cx<'a>,
    writers: &'b [Writer],
    slots: &'b Slots,
    waiting: VecDeque<Followers<'b>>,
}

/// A key that no row has any more, and the number of the change by which it went.
type Gone = (GroupKey, usize);

impl<'b> Follow<'b, '_> {
    /// Writes what follows from changes of the rows of one table.
    async fn level(&mut self, number: usize, changes: Changes<'_>) -> Result<(), OpError> {
        let writers = self.writers;
        for child in &writers[number].children {
            for updates in [false, true] {
                self.one_action(number, child, changes, updates).await?;
            }
        }
        Ok(())
    }

    /// The same for one foreign key, and for rows that went or that changed.
    async fn one_action(
        &mut self,
        number: usize,
        child: &'b ChildKey,
        changes: Changes<'_>,
        updates: bool,
    ) -> Result<(), OpError> {
        let action = match updates {
            true => child.on_update,
            false => child.on_delete,
        };
        // A key that another row of the statement has taken over has its children still.
        let kept = match action {
            Action::NoAction => self.new_keys(child, changes).await,
            _ => Long::new(self.cx.port, BTreeSet::new()),
        };
        let mut found = Followers {
            writer: child.writer,
            changes: Long::new(self.cx.port, Pieces::new()),
            charge: Charge::new(self.cx.port),
        };
        let at_once = match keys_at_once(child.many.as_deref()) {
            1 => KEYS_AT_A_TIME,
            many => many,
        };
        let mut gone: Vec<Gone> = Vec::new();
        let mut bytes = 0;
        for (at, change) in changes.iter().enumerate() {
            self.cx.breathe(1).await;
            let Some(old) = &change.old else { continue };
            let same = |new: &Vec<Datum>| {
                let mut columns = child.parent_columns.iter().map(|at| usize::from(*at));
                columns.all(|column| old[column] == new[column])
            };
            if change.new.is_some() != updates || change.new.as_ref().is_some_and(same) {
                continue;
            }
            let key = GroupKey(values(old, &child.parent_columns));
            if key.0.iter().any(Datum::is_null) || kept.contains(&key) {
                continue;
            }
            bytes += key.0.iter().map(datum_heap_bytes).sum::<usize>();
            gone.push((key, at));
            if gone.len() >= at_once || bytes >= KEY_BYTES {
                let some = core::mem::take(&mut gone);
                self.keys(number, (child, action), changes, some, &mut found)
                    .await?;
                bytes = 0;
                if !updates {
                    // Rows that move to other keys must all be read before the first is written.
                    self.write(&mut found).await?;
                }
            }
        }
        if !gone.is_empty() {
            self.keys(number, (child, action), changes, gone, &mut found)
                .await?;
        }
        self.write(&mut found).await
    }

    /// Keys of the rows that the changes have made.
    async fn new_keys(
        &self,
        child: &ChildKey,
        changes: Changes<'_>,
    ) -> Long<'b, BTreeSet<GroupKey>> {
        let mut keys = Long::new(self.cx.port, BTreeSet::new());
        for new in changes.iter().filter_map(|change| change.new.as_ref()) {
            keys.insert(GroupKey(values(new, &child.parent_columns)));
            self.cx.breathe(1).await;
        }
        keys
    }

    /// Writes the rows that follow; their own children wait for their turn.
    async fn write(&mut self, found: &mut Followers<'b>) -> Result<(), OpError> {
        if found.changes.is_empty() {
            return Ok(());
        }
        let next = Followers {
            writer: found.writer,
            changes: Long::new(self.cx.port, Pieces::new()),
            charge: Charge::new(self.cx.port),
        };
        let found = core::mem::replace(found, next);
        let writer = &self.writers[found.writer];
        let changes = Changes::many(&found.changes);
        entries(self.cx, writer, changes).await?;
        check_parents(self.cx, writer, changes).await?;
        if !writer.children.is_empty() {
            self.waiting.push_back(found);
        }
        Ok(())
    }

    /// What becomes of the children of some keys is added to `found`.
    async fn keys(
        &self,
        number: usize,
        (child, action): (&'b ChildKey, Action),
        changes: Changes<'_>,
        gone: Vec<Gone>,
        found: &mut Followers<'b>,
    ) -> Result<(), OpError> {
        let mut charge = Charge::new(self.cx.port);
        let mut lists = self.rows(child, &gone, &mut charge).await?;
        let numbers: BTreeMap<&GroupKey, usize> = gone.iter().map(|(key, at)| (key, *at)).collect();
        let mut referred = BTreeSet::new();
        for row in lists.iter_mut().flat_map(|rows| rows.iter_mut()) {
            self.cx.breathe(1).await;
            let key = GroupKey(values(row, &child.child_columns));
            let Some(at) = numbers.get(&key) else {
                continue;
            };
            let new = match action {
                Action::NoAction | Action::Restrict => {
                    referred.insert(*at);
                    continue;
                }
                Action::Cascade => {
                    let new = changes.get(*at).new.as_ref();
                    new.map(|new| values(new, &child.parent_columns))
                }
                Action::SetNull => Some(vec![Datum::Null; child.child_columns.len()]),
                Action::SetDefault => {
                    let defaults = child.defaults.iter();
                    let defaults = defaults.map(|default| self.cx.value(default, &[]));
                    let defaults = defaults.collect::<Result<Vec<_>, _>>()?;
                    if defaults == key.0 {
                        // The row would refer to the key that went.
                        referred.insert(*at);
                        continue;
                    }
                    Some(defaults)
                }
            };
            let row = core::mem::take(row);
            let change = match new {
                None => Change {
                    old: Some(row),
                    new: None,
                },
                Some(key) => self.followed(child, &key, row)?,
            };
            let mut bytes = size_of::<Change>();
            for row in [&change.old, &change.new].into_iter().flatten() {
                bytes += row_bytes(row);
            }
            found.charge.add(bytes)?;
            found.changes.push(change);
        }
        for at in referred {
            let old = changes.get(at).old.as_ref().expect("its key is gone");
            self.referred_to(number, (child, action), old)?;
        }
        Ok(())
    }

    /// Rows that refer to one of the keys, and perhaps others.
    async fn rows(
        &self,
        child: &'b ChildKey,
        gone: &[Gone],
        charge: &mut Charge<'_>,
    ) -> Result<Vec<Long<'b, RowList>>, OpError> {
        let cx = self.cx;
        let (Some(many), [_, _, ..]) = (&child.many, gone) else {
            let asked = gone.iter().map(|(key, _)| -> Local<'_, _> {
                let slots = with_key(self.slots, child, key.0.iter().cloned());
                Box::pin(async move {
                    let mut charge = Charge::new(cx.port);
                    let rows = collect(cx, &child.rows, &slots, &mut charge).await;
                    rows.map(|rows| (rows, charge))
                })
            });
            let mut lists = Vec::new();
            for answer in all(asked.collect()).await {
                let (rows, own) = answer?;
                charge.add(own.bytes as usize)?;
                lists.push(rows);
            }
            return Ok(lists);
        };
        let KeyRows { rows, keyed: _ } = &**many;
        let arrays = (0..child.slots.len()).map(|place| {
            let values = gone.iter().map(|(key, _)| key.0[place].clone());
            Datum::Array(values.collect())
        });
        let slots = with_key(self.slots, child, arrays);
        Ok(vec![collect(cx, rows, &slots, charge).await?])
    }

    /// The change of a row whose foreign key gets other values.
    fn followed(
        &self,
        child: &ChildKey,
        key: &[Datum],
        row: Vec<Datum>,
    ) -> Result<Change, SqlError> {
        let mut new = row.clone();
        for (column, value) in child.child_columns.iter().zip(key) {
            new[usize::from(*column)] = value.clone();
        }
        complete_row(self.cx, &self.writers[child.writer], &mut new)?;
        Ok(Change {
            old: Some(row),
            new: Some(new),
        })
    }

    /// A row that went is referred to: that is an error, or one that is looked for at the commit.
    fn referred_to(
        &self,
        number: usize,
        (child, action): (&ChildKey, Action),
        old: &[Datum],
    ) -> Result<(), SqlError> {
        let (parent, table) = (
            &self.writers[number].table,
            &self.writers[child.writer].table,
        );
        if action == Action::NoAction && defers(self.cx, &child.name, child.deferral) {
            let key = values(old, &child.parent_columns);
            return owe(self.cx, table, &child.name, Owes::Parent, key);
        }
        let name = catalog::without_mark(&child.name);
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{name}\" on table \
             \"{}\"",
            parent.name, table.name
        );
        let key = shown_key_of(parent, &child.parent_columns, old);
        let detail = format!("{key} is still referenced from table \"{}\".", table.name);
        Err(SqlError::new(SqlState::FOREIGN_KEY, message)
            .detail(detail)
            .table(&table.name)
            .constraint(&name))
    }
}

/// The slots with these values in those of a foreign key.
fn with_key(slots: &Slots, child: &ChildKey, key: impl Iterator<Item = Datum>) -> Slots {
    let mut values = (**slots).clone();
    for (slot, value) in child.slots.iter().zip(key) {
        values[*slot as usize] = value;
    }
    Rc::new(values)
}

/// Runs some futures at the same time; their results in order.
pub(super) async fn all<T>(mut futures: Vec<Local<'_, T>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut waits = false;
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(result) => *done = Some(result),
                    Poll::Pending => waits = true,
                }
            }
        }
        match waits {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
