//! Counts the sessions of a node by role and database, for all its shards together.

use node::{Count, Place};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Locked when a session begins and when it ends, for a look at two numbers.
#[derive(Default)]
pub(crate) struct SessionCounts(Mutex<BTreeMap<Place, u32>>);

impl Count for SessionCounts {
    fn enter(&self, places: [(Place, Option<u32>); 2]) -> Result<(), Place> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, limit) in places {
            let count = counts.get(&place).copied().unwrap_or(0);
            if limit.is_some_and(|limit| count >= limit) {
                return Err(place);
            }
        }
        for (place, _) in places {
            *counts.entry(place).or_insert(0) += 1;
        }
        Ok(())
    }

    fn leave(&self, places: [Place; 2]) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for place in places {
            if let Some(count) = counts.get_mut(&place) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_back_when_its_session_ends() {
        let counts = SessionCounts::default();
        let (one, other) = (Place::Role(1), Place::Database(2));
        let two = [(one, Some(2)), (other, None)];
        assert_eq!(counts.enter(two), Ok(()));
        assert_eq!(counts.enter(two), Ok(()));
        assert_eq!(counts.enter(two), Err(one));
        // Who has no limit is counted all the same.
        assert_eq!(counts.enter([(one, None), (other, None)]), Ok(()));
        let full = [(Place::Role(7), None), (other, Some(3))];
        assert_eq!(counts.enter(full), Err(other));
        for _ in 0..3 {
            counts.leave([one, other]);
        }
        assert_eq!(counts.enter(two), Ok(()));
        counts.leave([one, other]);
        assert!(counts.0.lock().expect("whole").is_empty());
    }
}
