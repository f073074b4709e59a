//! The head of a group that can only be changed as a whole: its version, and who has changed it.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | version: transactions that have changed the group |
//! | 1, then 16 each | stamps of the clients that have changed it last, the newest first |
//!
//! There is one stamp for each client, and at most [`STAMPS_MAX`].
//!
//! A change whose answer was lost began with some version. While the group still has that version,
//! the change may be on its way: the group is set to the next version without a change, which the
//! lost one cannot pass any more. Otherwise the stamps tell: a client asks before it begins its
//! next transaction, so its newest stamp is the lost one's or an older one's. A client whose stamp
//! was pushed out by [`STAMPS_MAX`] others is not told.

use crate::db::{Failure, Outcome, Stamp};
use alloc::vec::Vec;

/// Stamps that a head keeps.
pub const STAMPS_MAX: usize = 8;
/// Bytes of a stamp.
const STAMP_BYTES: usize = 16;

/// A head that was read; by default that of a group that was never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    version: u64,
    stamps: &'a [u8],
}

impl<'a> Head<'a> {
    /// The head at the begin of these bytes, and what is behind it; `None`: there is no head.
    pub fn split(bytes: &'a [u8]) -> Option<(Head<'a>, &'a [u8])> {
        let (version, rest) = bytes.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first()?;
        let count = usize::from(*count);
        if count > STAMPS_MAX {
            return None;
        }
        let (stamps, rest) = rest.split_at_checked(STAMP_BYTES * count)?;
        let version = u64::from_be_bytes(*version);
        // There must be a next one.
        (version < u64::MAX).then_some((Head { version, stamps }, rest))
    }

    /// The head that these bytes are, without anything behind it. No bytes are the head of a group
    /// that was never written; `None`: they are no head.
    pub fn parse(bytes: &'a [u8]) -> Option<Head<'a>> {
        if bytes.is_empty() {
            return Some(Head::default());
        }
        let (head, rest) = Head::split(bytes)?;
        rest.is_empty().then_some(head)
    }

    /// Transactions that have changed the group.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn stamps(&self) -> impl Iterator<Item = Stamp> + '_ {
        let chunks = self.stamps.chunks_exact(STAMP_BYTES);
        chunks.map(|bytes| Stamp::from_bytes(bytes.try_into().expect("a chunk has 16 bytes")))
    }

    /// Appends the head of the next version, which this stamp has made.
    pub fn push_next(&self, stamp: Stamp, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.version + 1).to_be_bytes());
        let others = || self.stamps().filter(|it| it.client != stamp.client);
        let kept = others().count().min(STAMPS_MAX - 1);
        out.push(kept as u8 + 1);
        out.extend_from_slice(&stamp.to_bytes());
        for other in others().take(kept) {
            out.extend_from_slice(&other.to_bytes());
        }
    }

    /// What became of the change with this stamp that began with `version`; `None`: it may still
    /// come.
    pub fn outcome(&self, stamp: Stamp, version: u64) -> Option<Outcome> {
        if self.version == version {
            return None;
        }
        if self.version < version {
            // The store was emptied since.
            return Some(Outcome::Unknown);
        }
        let own = self.stamps().find(|it| it.client == stamp.client);
        Some(match own {
            Some(own) if own.sequence == stamp.sequence => Outcome::Committed,
            Some(own) if own.sequence < stamp.sequence => Outcome::NotCommitted,
            None if self.stamps.len() < STAMPS_MAX * STAMP_BYTES => Outcome::NotCommitted,
            Some(_) | None => Outcome::Unknown,
        })
    }
}

/// The commits of a client to groups that have heads: which one has lost its answer.
#[derive(Debug, Default)]
pub struct Commits {
    /// Its stamp, its group and the version that it began with.
    lost: Option<(Stamp, Vec<u8>, u64)>,
}

impl Commits {
    /// What the answer to a change of a group that had this version means: whether it had that
    /// version still.
    ///
    /// # Errors
    /// `Conflict`: it had another one; else that of the answer.
    pub fn settle(
        &mut self,
        answer: Result<bool, Failure>,
        (group, version): (Vec<u8>, u64),
        stamp: Option<Stamp>,
    ) -> Result<(), Failure> {
        match answer {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::conflict("version")),
            Err(failure) => {
                if matches!(failure, Failure::Unknown(_)) {
                    self.lost = stamp.map(|stamp| (stamp, group, version));
                }
                Err(failure)
            }
        }
    }

    /// The group and the version of the commit with this stamp, if that has lost its answer.
    pub fn lost(&self, stamp: Stamp) -> Option<(Vec<u8>, u64)> {
        let (lost, group, version) = self.lost.as_ref()?;
        (*lost == stamp).then(|| (group.clone(), *version))
    }
}

/// What the answer to a change means that has only raised the version: the lost commit finds
/// another version from here on.
///
/// # Errors
/// `Conflict` and `Lost`: ask again.
pub fn fenced(answer: Result<bool, Failure>) -> Result<Outcome, Failure> {
    match answer {
        Ok(true) => Ok(Outcome::NotCommitted),
        Ok(false) => Err(Failure::conflict("version")),
        // Whoever asks again will see.
        Err(Failure::Unknown(text)) => Err(Failure::Lost(text)),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(client: u64, sequence: u64) -> Stamp {
        Stamp { client, sequence }
    }

    fn after(stamps: &[Stamp]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for stamp in stamps {
            let mut next = Vec::new();
            let head = Head::parse(&bytes).unwrap();
            head.push_next(*stamp, &mut next);
            bytes = next;
        }
        bytes
    }

    #[test]
    fn a_quick_client_does_not_push_others_out() {
        let mut stamps = alloc::vec![stamp(1, 1)];
        stamps.extend((0..100).map(|n| stamp(2, n)));
        let bytes = after(&stamps);
        let head = Head::parse(&bytes).unwrap();
        assert_eq!((head.version(), bytes.len()), (101, 9 + 32));
        assert_eq!(head.outcome(stamp(1, 1), 0), Some(Outcome::Committed));
        assert_eq!(head.outcome(stamp(1, 2), 1), Some(Outcome::NotCommitted));
        assert_eq!(head.outcome(stamp(3, 1), 1), Some(Outcome::NotCommitted));
        assert_eq!(head.outcome(stamp(3, 1), 101), None);
        assert_eq!(head.outcome(stamp(3, 1), 102), Some(Outcome::Unknown));
        // A client that asks for what is long past.
        assert_eq!(head.outcome(stamp(2, 7), 8), Some(Outcome::Unknown));
    }

    #[test]
    fn who_was_pushed_out_is_not_told() {
        let stamps: Vec<Stamp> = (1..=9).map(|n| stamp(n, 1)).collect();
        let bytes = after(&stamps);
        let head = Head::parse(&bytes).unwrap();
        assert_eq!(head.outcome(stamp(1, 1), 0), Some(Outcome::Unknown));
        assert_eq!(head.outcome(stamp(2, 1), 1), Some(Outcome::Committed));
        assert_eq!(head.outcome(stamp(20, 1), 3), Some(Outcome::Unknown));
    }

    #[test]
    fn bytes_that_are_no_head_are_told() {
        let bytes = after(&[stamp(1, 1), stamp(2, 1)]);
        for length in 1..bytes.len() {
            assert_eq!(Head::parse(&bytes[..length]), None, "{length}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(Head::parse(&longer), None);
        assert!(Head::split(&longer).is_some());
        longer[8] = 200;
        assert_eq!(Head::split(&longer), None);
    }
}
