//! Lines of the log that clients or other nodes can cause as often as they like: some are written,
//! the others are counted, and how many these were is written later.

use std::time::{Duration, Instant};

/// At most so many lines in a span of time.
pub(crate) struct FewLines {
    max: u64,
    span: Duration,
    /// Begin of the present span.
    since: Instant,
    /// Lines in it, those left out included.
    count: u64,
}

impl FewLines {
    pub(crate) fn new(max: u64, span: Duration) -> FewLines {
        FewLines {
            max,
            span,
            since: Instant::now(),
            count: 0,
        }
    }

    /// Whether to write one more line. `tell` writes how many were left out before, if some were.
    pub(crate) fn may_write(&mut self, now: Instant, tell: impl FnOnce(u64)) -> bool {
        self.tend(now, tell);
        self.count += 1;
        self.count <= self.max
    }

    /// Ends a span that is over. Call it at times: what was left out is told even if no line
    /// follows.
    pub(crate) fn tend(&mut self, now: Instant, tell: impl FnOnce(u64)) {
        if now.duration_since(self.since) < self.span {
            return;
        }
        let left_out = self.count.saturating_sub(self.max);
        (self.since, self.count) = (now, 0);
        if left_out > 0 {
            tell(left_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 10;
    const SPAN: Duration = Duration::from_secs(10);

    #[test]
    fn a_flood_is_a_few_lines_and_a_number() {
        let mut lines = FewLines::new(MAX, SPAN);
        let start = lines.since;
        let nothing = |_: u64| panic!("nothing was left out");
        let written = (0..1_000).filter(|_| lines.may_write(start, nothing));
        assert_eq!(written.count() as u64, MAX);
        let mut told = Vec::new();
        assert!(lines.may_write(start + SPAN, |left_out| told.push(left_out)));
        assert_eq!(told, [990]);
        // The line just written is the first of the next span.
        let written = (0..20).filter(|_| lines.may_write(start + SPAN, nothing));
        assert_eq!(written.count() as u64, MAX - 1);
        lines.tend(start + SPAN, nothing);
        lines.tend(start + 2 * SPAN, |left_out| told.push(left_out));
        lines.tend(start + 3 * SPAN, nothing);
        assert_eq!(told, [990, 11], "told once, without another line");
    }

    #[test]
    fn what_fits_leaves_nothing_out() {
        let mut lines = FewLines::new(MAX, SPAN);
        let start = lines.since;
        let nothing = |_: u64| panic!("nothing was left out");
        for second in 0..100 {
            let now = start + Duration::from_secs(second);
            assert!(lines.may_write(now, nothing), "{second}");
        }
    }
}
