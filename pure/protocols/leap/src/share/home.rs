//! The home's side of copies: it lends rows, and calls the copies back for a writer.

use super::{Lending, Reader, Writer};
use crate::home::{Incoming, Want};
use crate::job::acquire_row;
use crate::message::{Body, MovedVersion, Recall, Recalled, Refused, Share};
use crate::outage::cut_off;
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, NodeId, ShardId};
use journal::Otag;
use txn::lock::{Item, Settled};
use txn::{AbortReason, LockMode, OpError, Priority, Tie};

impl Leap {
    /// Counts a read of a row of this home. Returns whether the row is to be lent rather than
    /// moved. Absence is lent like a row.
    pub(crate) fn lends(&mut self, key: &Key) -> bool {
        let least = self.settings.share_after;
        least > 0 && self.sharing.note_read(key) >= least
    }

    /// Begins to lend a row, which is at home, to the reader whose turn it is.
    pub(crate) fn begin_lend(&mut self, cx: &mut Cx<'_>, want: Want, incoming: &Incoming) {
        let id = self.jobs.next_number();
        let (key, priority) = (incoming.key.clone(), incoming.priority);
        let settled = acquire_row(&mut self.locks, cx, priority, &key, LockMode::Shared, id);
        let lending = Lending {
            key,
            want,
            priority,
        };
        let doubt = self.doubt_of(&lending.key);
        self.sharing.lending.insert(id, lending);
        match (settled, doubt) {
            (Some(settled), _) => self.on_lend_lock(cx, id, settled),
            (None, Some(reason)) => self.give_up_lending(cx, id, &reason),
            (None, None) => {}
        }
    }

    pub(super) fn on_lend_lock(&mut self, cx: &mut Cx<'_>, id: u64, settled: Settled) {
        let Some(lending) = self.sharing.lending.remove(&id) else {
            return;
        };
        let Lending {
            key,
            want,
            priority,
        } = lending;
        match settled {
            Settled::Granted => {
                // None: its node has restarted meanwhile.
                if self.home.incoming.contains_key(&want) {
                    self.home.finish_request(want);
                    self.lend(cx, &key, want);
                }
                self.locks.release_item(priority.txn, &Item::of(&key));
            }
            Settled::Died(conflict) => {
                let (key, holder) = (conflict.key, conflict.holder);
                let reason = Some(AbortReason::Die { key, holder });
                self.end_request_of(cx, want, reason);
            }
            Settled::TimedOut(_) => unreachable!("it has no deadline"),
        }
    }

    /// Refuses a reader whose copy waits for a lock in vain.
    pub(crate) fn give_up_lending(&mut self, cx: &mut Cx<'_>, id: u64, reason: &AbortReason) {
        let Some(lending) = self.sharing.lending.remove(&id) else {
            return;
        };
        self.locks.withdraw(lending.priority.txn, id);
        self.end_request_of(cx, lending.want, Some(reason.clone()));
    }

    /// Gives a copy away. The home has a shared lock, so no transaction writes the row now.
    fn lend(&mut self, cx: &mut Cx<'_>, key: &Key, want: Want) {
        let (to, incarnation) = (want.to, want.life);
        let gone = (cx.schema_changed)(key.index).is_none();
        if gone || self.home.table.contains_key(key) {
            let reason = gone.then_some(AbortReason::SchemaChanged(Some(key.index)));
            self.refuse_request(cx, want, reason);
            return;
        }
        let (version, written) = match self.newest(cx, key) {
            Some((commit_ts, row)) => {
                let row = Some(row.into_boxed_slice());
                (
                    MovedVersion { commit_ts, row },
                    self.installed.of(commit_ts),
                )
            }
            None => {
                // The removal of the row lies below this timestamp.
                let (commit_ts, row) = (cx.clock.reached(), None);
                (MovedVersion { commit_ts, row }, self.installed.all())
            }
        };
        let tag = self.home.next_otag(cx.incarnation);
        let arrival = self.unsettled_arrival(key);
        let position = arrival.max(written);
        let reader = Reader { tag, incarnation };
        let lent = self.sharing.lent.entry(key.clone()).or_default();
        lent.readers.insert(to, reader);
        self.moves.lent += 1;
        let share = Share {
            tag,
            to_incarnation: incarnation,
            seq: want.seq,
            key: key.clone(),
            version,
            position: self.in_node(to, position),
        };
        self.post(cx, to, Body::Share(Box::new(share)), position);
    }

    /// The owner does not give a row to its home, which wanted the row for a reader: tells the
    /// reader why. A reader that only asked again would wait for an older transaction, which may
    /// wait for the reader.
    pub(crate) fn refuse_reader(&mut self, cx: &mut Cx<'_>, otag: Otag, refused: &Refused) {
        let grant = self
            .home
            .grants
            .get(otag)
            .filter(|_| refused.home == self.shard);
        let request = grant
            .filter(|grant| grant.want.to == self.shard)
            .map(|g| g.request);
        let Some(reader) = request.filter(|reader| reader.to != self.shard) else {
            return;
        };
        if let Some(reason) = &refused.reason
            && self.home.incoming.contains_key(&reader)
        {
            self.refuse_request(cx, reader, Some(reason.clone()));
        }
    }

    /// Whether a writer, which has the row's exclusive lock here at its home, may go on. If not,
    /// recalls the copies in its name; the writer goes on when they are gone.
    pub(crate) fn recalled(
        &mut self,
        cx: &mut Cx<'_>,
        key: &Key,
        priority: Priority,
        writer: Writer,
    ) -> Result<bool, AbortReason> {
        let Some(lent) = self.sharing.lent.get_mut(key) else {
            return Ok(true);
        };
        let mut readers = lent.readers.keys();
        if let Some(away) = readers.find(|shard| self.peers.is_down(**shard)) {
            return Err(cut_off(key, *away, Tie::Copy));
        }
        match &mut lent.recall {
            Some((name, writers)) if name.txn == priority.txn => {
                if !writers.contains(&writer) {
                    writers.push(writer);
                }
            }
            // The writer that began the recall has given up.
            recall => {
                *recall = Some((priority, Vec::from([writer])));
                self.send_recalls(cx, key);
            }
        }
        self.arm_recalls(cx);
        let waits = !printed!(self, LeapCopiesIgnored) || matches!(writer, Writer::Release(_));
        Ok(!waits)
    }

    fn arm_recalls(&mut self, cx: &Cx<'_>) {
        let at = cx.now.after(self.settings.resend_us);
        self.sharing.recalls_again.set_once(at);
    }

    pub(crate) fn on_recalls_timer(&mut self, cx: &mut Cx<'_>) {
        self.sharing.recalls_again.stop();
        let lent = self.sharing.lent.iter();
        let open = lent.filter(|(_, lent)| lent.recall.is_some());
        let open: Vec<Key> = open.map(|(key, _)| key.clone()).collect();
        for key in &open {
            self.send_recalls(cx, key);
        }
        if !open.is_empty() {
            self.arm_recalls(cx);
        }
    }

    fn send_recalls(&mut self, cx: &mut Cx<'_>, key: &Key) {
        let Some(lent) = self.sharing.lent.get(key) else {
            return;
        };
        let Some((priority, _)) = lent.recall else {
            return;
        };
        let readers: Vec<(ShardId, Otag)> = lent.readers.iter().map(|(s, r)| (*s, r.tag)).collect();
        for (to, tag) in readers {
            let recall = Recall {
                key: key.clone(),
                tag,
                priority,
            };
            self.say(cx, to, Body::Recall(Box::new(recall)));
        }
    }

    pub(crate) fn on_recalled(&mut self, cx: &mut Cx<'_>, from: ShardId, recalled: Recalled) {
        let Recalled {
            key,
            tag,
            writer,
            refused,
        } = recalled;
        let Some(lent) = self.sharing.lent.get_mut(&key) else {
            return;
        };
        if lent
            .readers
            .get(&from)
            .is_none_or(|reader| reader.tag != tag)
        {
            return;
        }
        match refused {
            None => {
                lent.readers.remove(&from);
                self.end_recall(cx, &key);
            }
            Some(reason) => {
                let named = lent.recall.as_ref();
                if named.is_some_and(|(name, _)| name.txn == writer) {
                    self.fail_recall(cx, &key, &reason);
                }
            }
        }
    }

    /// Goes on with the writers if no copy is left.
    fn end_recall(&mut self, cx: &mut Cx<'_>, key: &Key) {
        let lent = self.sharing.lent.get(key);
        if lent.is_none_or(|lent| !lent.readers.is_empty()) {
            return;
        }
        let lent = self.sharing.lent.remove(key).expect("looked up above");
        let (_, writers) = lent.recall.unzip();
        for writer in writers.into_iter().flatten() {
            match writer {
                Writer::Job(id) => self.jobs.wake(id),
                Writer::Release(id) => self.on_release_lock(cx, id, Settled::Granted),
            }
        }
    }

    /// Rolls the writers back.
    fn fail_recall(&mut self, cx: &mut Cx<'_>, key: &Key, reason: &AbortReason) {
        let lent = self.sharing.lent.get_mut(key);
        let recall = lent.and_then(|lent| lent.recall.take());
        let Some((_, writers)) = recall else {
            return;
        };
        for writer in writers {
            match writer {
                Writer::Job(id) => self.fail_job(cx, id, OpError::Aborted(reason.clone())),
                Writer::Release(id) => self.fail_release(cx, id, reason.clone()),
            }
        }
    }

    /// A node has restarted: its copies are gone.
    pub(crate) fn forget_readers(&mut self, cx: &mut Cx<'_>, node: NodeId, incarnation: u32) {
        let mut changed = Vec::new();
        for (key, lent) in &mut self.sharing.lent {
            let before = lent.readers.len();
            lent.readers
                .retain(|shard, reader| shard.node() != node || reader.incarnation >= incarnation);
            if lent.readers.len() < before {
                changed.push(key.clone());
            }
        }
        for key in changed {
            self.end_recall(cx, &key);
        }
    }

    /// A node cannot be reached: writers that wait for its copies fail.
    pub(crate) fn fail_recalls(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let lent = self.sharing.lent.iter().filter_map(|(key, lent)| {
            let mut readers = lent.readers.keys();
            let away = readers.find(|shard| shard.node() == node)?;
            lent.recall.is_some().then(|| (key.clone(), *away))
        });
        let lent: Vec<(Key, ShardId)> = lent.collect();
        for (key, away) in lent {
            let reason = cut_off(&key, away, Tie::Copy);
            self.fail_recall(cx, &key, &reason);
        }
    }
}
