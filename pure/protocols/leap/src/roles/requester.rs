//! The requester's state: rows that it has requested, and the fates that it tells homes.

use crate::message::{Fate, OwnerRequest};
use crate::request::{PendingInform, Request};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use base::{Key, NodeId, Position, ShardId, Time};
use journal::Otag;
use txn::{Asks, Rounds, Seen};

/// What a shard has requested from homes, and what it tells them of grants.
#[derive(Debug, Default)]
pub(crate) struct Requester {
    pub(crate) requests: Asks<u64, Request>,
    /// Number of the request for each row.
    wanted: BTreeMap<Key, u64>,
    next_seq: u64,
    /// Arrivals that are not durable, in the order of the journal.
    arrivals: VecDeque<(Position, ShardId, Otag)>,
    /// Fates of grants that their home has not acknowledged.
    pub(crate) informs: Rounds<(ShardId, Otag), PendingInform>,
    /// For each home, the grants that are over for this shard.
    grants_seen: BTreeMap<ShardId, Seen<Otag>>,
}

impl Requester {
    /// Draws a number for a place in the queue of a home.
    pub(crate) fn new_seq(&mut self) -> u64 {
        self.next_seq += 1;
        self.next_seq
    }

    /// Begins the request for a row. Returns the number of the request.
    pub(crate) fn begin(&mut self, request: Request, now: Time) -> u64 {
        let seq = self.new_seq();
        self.wanted.insert(request.key.clone(), seq);
        self.requests.begin(seq, request, now, true);
        seq
    }

    /// Ends a request that was answered.
    pub(crate) fn end(&mut self, seq: u64) -> Option<Request> {
        let request = self.requests.end(seq)?;
        self.wanted.remove(&request.key);
        Some(request)
    }

    /// Number of the request for a row.
    pub(crate) fn seq_of(&self, key: &Key) -> Option<u64> {
        self.wanted.get(key).copied()
    }

    pub(crate) fn message(&self, seq: u64) -> Option<OwnerRequest> {
        let request = self.requests.get(seq)?;
        Some(OwnerRequest {
            seq,
            floor: self.requests.floor(request.home).unwrap_or(seq),
            key: request.key.clone(),
            priority: request.priority,
            alone: request.alone,
            shared: request.shared,
        })
    }

    /// Whether a row was requested and has not come.
    pub(crate) fn wants(&self, key: &Key) -> bool {
        self.wanted.contains_key(key)
    }

    /// The request for a row.
    pub(crate) fn wanted(&mut self, key: &Key) -> Option<&mut Request> {
        self.requests.get_mut(*self.wanted.get(key)?)
    }

    /// The request for a row is alone no more. Returns its number if it was.
    pub(crate) fn expose(&mut self, key: &Key) -> Option<u64> {
        let seq = *self.wanted.get(key)?;
        let request = self.requests.get_mut(seq)?;
        core::mem::replace(&mut request.alone, false).then_some(seq)
    }

    /// Numbers of the open requests by row.
    pub(crate) fn rows(&self) -> &BTreeMap<Key, u64> {
        &self.wanted
    }

    /// The grants of a home that are over.
    pub(crate) fn seen(&mut self, home: ShardId) -> &mut Seen<Otag> {
        self.grants_seen.entry(home).or_default()
    }

    /// A new life of a home has begun: the grants of its former lives are over.
    pub(crate) fn forget_grants(&mut self, home: ShardId, floor: Otag) {
        self.seen(home).raise(floor);
        self.informs
            .retain(|(other, otag), _| *other != home || *otag >= floor);
    }

    /// Notes the fate that a home is told now; `certain`: the message cannot be lost.
    pub(crate) fn note_fate(
        &mut self,
        (home, otag): (ShardId, Otag),
        pending: PendingInform,
        now: Time,
        certain: bool,
    ) {
        let (position, waits) = (pending.position, pending.fate == Fate::Acquired);
        if !certain || waits {
            self.informs.begin((home, otag), pending, now, !certain);
            if waits {
                self.arrivals.push_back((position, home, otag));
            }
        }
    }

    /// Position of the record of a row's arrival under this grant, if the home may not know yet
    /// that the record is durable.
    pub(crate) fn arrival(&self, home: ShardId, otag: Otag) -> Option<Position> {
        self.informs
            .get(&(home, otag))
            .map(|pending| pending.position)
    }

    /// The arrivals that have become durable, by home, for messages that are sent now. Messages to
    /// homes on `node` cannot be lost, so they are not repeated.
    pub(crate) fn arrived(
        &mut self,
        durable: Position,
        node: NodeId,
        now: Time,
    ) -> BTreeMap<ShardId, Vec<(Otag, Fate)>> {
        let mut fates: BTreeMap<ShardId, Vec<(Otag, Fate)>> = BTreeMap::new();
        while let Some((position, home, otag)) = self.arrivals.front().copied() {
            if position > durable {
                break;
            }
            self.arrivals.pop_front();
            let Some(pending) = self.informs.resend(&(home, otag), now) else {
                continue;
            };
            pending.fate = Fate::Durable;
            if home.node() == node {
                self.informs.end(&(home, otag));
            }
            fates.entry(home).or_default().push((otag, Fate::Durable));
        }
        fates
    }

    /// A home has dealt with these grants, so their fates are not repeated.
    pub(crate) fn settled(&mut self, home: ShardId, otags: &[Otag]) {
        for otag in otags {
            self.informs.end(&(home, *otag));
        }
    }

    pub(crate) fn validate(&self) {
        for (key, seq) in &self.wanted {
            assert_eq!(self.requests[*seq].key, *key);
        }
        assert_eq!(
            self.wanted.len(),
            self.requests.iter().count(),
            "one request for each row"
        );
    }
}
