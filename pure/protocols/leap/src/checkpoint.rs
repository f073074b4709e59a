//! What a checkpoint keeps of rows that are away from the shard of their slot.
//!
//! What is open at the start (grants, formulas that are owed) is copied in the step in which the
//! checkpoint begins. The rows themselves may be millions; they are walked piece by piece while the
//! shard works on, and appear as they are when the walk passes, as rows of the store do:
//!
//! * What changes behind the start by a record (`Acquired`, `Released`) is in the journal behind
//!   the start, and the last record of a row counts.
//! * What changes without one (a backup that is no longer needed, a claim that its home has
//!   refused) may be forgotten at any time; a later checkpoint would not have it either.
//! * Whether an old claim still counts ([`Ownership::admits`]) is asked of grants that were open or
//!   complete at the start. A row that was away then and has not moved since is in the owner table
//!   during the whole walk; one that has moved did so under a grant from [`Ownership::next`] on.
//!   If its new owner may not have it durably when the walk passes, the walk lists the older grants
//!   under which the backup may be claimed, too.

use crate::Leap;
use crate::owner::{Held, Tenure};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::Key;
use core::ops::Bound;
use journal::{Away, Held as Claim, Holding, Ownership};

/// What a former life has left of a shard's own slots, kept until all other shards have claimed.
#[derive(Debug, Default)]
pub(crate) struct Former {
    /// What the journal says about rows of its own slots.
    pub(crate) own: Vec<Claim>,
    /// What the checkpoint says, without rows that were held.
    pub(crate) checkpoint: Ownership,
}

/// How far a checkpoint has come with the rows of a shard that are away.
#[derive(Debug)]
pub struct AwayCursor(Stage);

#[derive(Debug)]
enum Stage {
    /// The checkpoint began before the shard served its slots. Number of rows of the former life
    /// that are written: first its own, then those of the owner table.
    Former(Arc<Former>, usize),
    /// Rows from elsewhere up to this key are written. Whether the owner table follows: not if the
    /// former life's stands for it.
    Held(Option<Key>, bool),
    /// The owner table up to this key is written.
    Table(Option<Key>),
}

impl Leap {
    /// What the checkpoint that begins now must keep, in the step that appends its start record:
    /// all but the rows, which [`Leap::next_away`] walks with the cursor.
    pub(crate) fn checkpoint_begins(&mut self) -> (Ownership, AwayCursor) {
        self.bulks.checkpoint_begins();
        let shipped = self.owed();
        if !self.rejoin.is_serving() {
            let former = self.rejoin.former.clone();
            let open = Ownership {
                open: former.checkpoint.open.clone(),
                next: former.checkpoint.next,
                shipped,
                ..Ownership::default()
            };
            return (open, AwayCursor(Stage::Former(former, 0)));
        }
        let settling = self.home.settling.iter();
        let settling = settling.filter(|(_, s)| s.owner == self.shard);
        let held = settling.map(|(otag, settling)| Claim {
            key: settling.key.clone(),
            otag: *otag,
            holding: Holding::Owned,
        });
        let open = Ownership {
            held: held.collect(),
            away: Vec::new(),
            open: self.home.open_grants(),
            next: self.home.unused_otag(self.incarnation),
            shipped,
        };
        (open, AwayCursor(Stage::Held(None, true)))
    }

    /// See [`txn::Protocol::checkpoint_next`].
    pub(crate) fn next_away(&self, cursor: &mut AwayCursor, max: usize) -> Option<Ownership> {
        loop {
            let (piece, next) = match &cursor.0 {
                Stage::Former(former, from) => (
                    former.piece(*from, max),
                    Stage::Former(former.clone(), from + max),
                ),
                Stage::Held(from, table) => {
                    let rows = (after(from.as_ref()), Bound::Unbounded);
                    let held = self.owner.held.range(rows);
                    let piece = Ownership {
                        held: held.take(max).map(claim_of).collect(),
                        ..Ownership::default()
                    };
                    let last = piece.held.last().map(|claim| claim.key.clone());
                    (piece, Stage::Held(last, *table))
                }
                Stage::Table(from) => {
                    let (piece, last) = self.table_piece(from.as_ref(), max);
                    (piece, Stage::Table(last))
                }
            };
            if !piece.is_empty() {
                cursor.0 = next;
                return Some(piece);
            }
            cursor.0 = match &cursor.0 {
                Stage::Former(..) => Stage::Held(None, false),
                Stage::Held(_, true) => Stage::Table(None),
                Stage::Held(_, false) | Stage::Table(_) => return None,
            };
        }
    }

    /// Rows of the owner table behind `from`, and the last key.
    fn table_piece(&self, from: Option<&Key>, max: usize) -> (Ownership, Option<Key>) {
        let mut piece = Ownership::default();
        let mut last = None;
        let rows = self.home.table.range((after(from), Bound::Unbounded));
        for (key, entry) in rows.take(max) {
            let (key, otag) = (key.clone(), entry.otag);
            last = Some(key.clone());
            self.home.open_grants_of(&key, &mut piece.open);
            match entry.owner {
                Some(owner) => piece.away.push(Away { key, owner, otag }),
                None => piece.held.push(Claim {
                    key,
                    otag,
                    holding: Holding::Released(self.home.grants[otag].want.to),
                }),
            }
        }
        (piece, last)
    }
}

impl Former {
    /// Up to `max` rows from number `from` on.
    fn piece(&self, from: usize, max: usize) -> Ownership {
        let away = &self.checkpoint.away;
        let behind = from.saturating_sub(self.own.len());
        let own = self.own.iter().skip(from).take(max);
        let held: Vec<Claim> = own.cloned().collect();
        let away = away.iter().skip(behind).take(max - held.len());
        Ownership {
            away: away.cloned().collect(),
            held,
            ..Ownership::default()
        }
    }
}

/// What a shard claims of a row from elsewhere.
pub(crate) fn claim_of((key, held): (&Key, &Held)) -> Claim {
    Claim {
        key: key.clone(),
        otag: held.otag,
        holding: match held.tenure {
            Tenure::Owned { .. } => Holding::Owned,
            Tenure::Released { to } => Holding::Released(to),
        },
    }
}

fn after(key: Option<&Key>) -> Bound<&Key> {
    key.map_or(Bound::Unbounded, Bound::Excluded)
}
