//! Which numbers are over, in bounded memory.

use alloc::collections::BTreeMap;

/// Numbers that are over: all below a floor, and some above it, each with something kept.
#[derive(Clone, Debug, Default)]
pub struct Seen<N, A = ()> {
    floor: N,
    ended: BTreeMap<N, A>,
}

impl<N: Ord + Copy, A> Seen<N, A> {
    /// All numbers below this are over.
    pub fn floor(&self) -> N {
        self.floor
    }

    /// Whether a number is over.
    pub fn is_over(&self, number: N) -> bool {
        number < self.floor || self.ended.contains_key(&number)
    }

    /// What is kept of a number above the floor that is over.
    pub fn kept(&self, number: N) -> Option<&A> {
        self.ended.get(&number)
    }

    /// A number is over; `kept` replaces what was kept of it.
    pub fn end(&mut self, number: N, kept: A) {
        if number >= self.floor {
            self.ended.insert(number, kept);
        }
    }

    /// All numbers below `floor` are over.
    pub fn raise(&mut self, floor: N) {
        if floor > self.floor {
            self.floor = floor;
            self.ended = self.ended.split_off(&floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_floor_is_over_and_forgotten() {
        let mut seen = Seen::default();
        for number in [3, 5, 8] {
            seen.end(number, "kept");
        }
        seen.raise(5);
        seen.raise(2);
        seen.end(4, "late");
        let over = (0..10).filter(|number| seen.is_over(*number));
        assert!(over.eq([0, 1, 2, 3, 4, 5, 8]));
        assert_eq!(
            (seen.kept(3), seen.kept(4), seen.kept(8)),
            (None, None, Some(&"kept"))
        );
        seen.end(8, "anew");
        assert_eq!((seen.floor(), seen.kept(8)), (5, Some(&"anew")));
    }
}
