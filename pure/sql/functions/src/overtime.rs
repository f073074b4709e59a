//! Ends calls of functions that go on for too long.
//!
//! A shard is one thread and does nothing else while a function computes: neither
//! `statement_timeout` nor a cancel is seen meanwhile, and the shard's other clients wait. So what
//! may take long counts its work here ([`work`]), and now and then looks at the clock. The host
//! lends that ([`lend`]); without one, as in the simulator, no call ends here, and the same seed
//! gives the same run.
//!
//! Only what the coordinator computes for a statement is bounded ([`within`]): what is applied to
//! rows, or applied again from a journal, gives the same result whatever time it takes.

use base::{SqlError, SqlState};
use std::cell::Cell;

/// Units of work between two looks at the clock. A unit is some nanoseconds: a character that a
/// regular expression looks at, 64 bytes that are copied.
const UNITS: u64 = 1 << 16;

/// Longest processor time, in seconds, that a statement computes in one step.
pub const STEP_SECONDS_MAX: u64 = 10;

/// What the host lends.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Microseconds since some moment; it is never set back.
    pub clock_us: fn() -> u64,
    /// Microseconds for which a processor has worked for this thread: less than the clock says if
    /// the process stood still.
    pub busy_us: fn() -> u64,
    /// Whether the client of the session with this number has cancelled since the step began.
    pub is_cancelled: fn(pid: i32) -> bool,
}

/// What computes at the moment.
#[derive(Clone, Copy)]
struct Running {
    /// Number of its session.
    pid: i32,
    /// Microseconds until its `statement_timeout`.
    left_us: Option<u64>,
    /// What the clock and the processor said at the first look.
    since_us: Option<(u64, u64)>,
}

/// Calls are deep in expressions: what they share is the time of their thread.
mod thread {
    use super::{Cell, Host, Running};

    std::thread_local! {
        pub(super) static HOST: Cell<Option<Host>> = const { Cell::new(None) };
        pub(super) static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
        /// Whether what computes is the statement itself.
        pub(super) static IS_TIMED: Cell<bool> = const { Cell::new(false) };
        pub(super) static UNITS_DONE: Cell<u64> = const { Cell::new(0) };
    }
}

/// From now on statements that this thread runs end in time.
pub fn lend(host: Host) {
    thread::HOST.set(Some(host));
}

/// Runs a step of a statement, of which `left_us` microseconds are left before its
/// `statement_timeout`, if there is one.
pub fn within<R>(pid: i32, left_us: Option<u64>, step: impl FnOnce() -> R) -> R {
    thread::RUNNING.set(Some(Running {
        pid,
        left_us,
        since_us: None,
    }));
    thread::IS_TIMED.set(true);
    let result = step();
    thread::IS_TIMED.set(false);
    result
}

/// Does what must not end early, within a step of a statement: work on rows, which may be that of
/// other transactions.
#[inline]
pub fn apart<R>(work: impl FnOnce() -> R) -> R {
    if !thread::IS_TIMED.get() {
        return work();
    }
    thread::IS_TIMED.set(false);
    let result = work();
    thread::IS_TIMED.set(true);
    result
}

/// Counts work of a call.
///
/// # Errors
/// 57014 if the statement has no time left, or was cancelled; 54001 if its step takes too long.
#[inline]
pub fn work(units: u64) -> Result<(), SqlError> {
    let done = thread::UNITS_DONE.get().saturating_add(units);
    if done < UNITS {
        thread::UNITS_DONE.set(done);
        return Ok(());
    }
    thread::UNITS_DONE.set(0);
    look()
}

#[cold]
fn look() -> Result<(), SqlError> {
    let (Some(host), Some(running)) = (thread::HOST.get(), thread::RUNNING.get()) else {
        return Ok(());
    };
    if !thread::IS_TIMED.get() {
        return Ok(());
    }
    let now = ((host.clock_us)(), (host.busy_us)());
    let since = running.since_us.unwrap_or(now);
    let since_us = Some(since);
    thread::RUNNING.set(Some(Running {
        since_us,
        ..running
    }));
    let spent = now.0.saturating_sub(since.0);
    let busy = now.1.saturating_sub(since.1);
    if running.left_us.is_some_and(|left| spent >= left) {
        let message = "canceling statement due to statement timeout";
        return Err(SqlError::new(SqlState::QUERY_CANCELED, message));
    }
    if (host.is_cancelled)(running.pid) {
        let message = "canceling statement due to user request";
        return Err(SqlError::new(SqlState::QUERY_CANCELED, message));
    }
    if busy >= STEP_SECONDS_MAX * 1_000_000 {
        let message = "a function takes too long";
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
            .detail("Meanwhile other clients of the shard wait.")
            .hint("Give it shorter values, or parts of them."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

    static NOW: AtomicU64 = AtomicU64::new(0);
    static CANCELLED: AtomicI32 = AtomicI32::new(0);

    /// Computes until it ends, or for a minute. Each look at the clock is 0.1 s later.
    fn compute(pid: i32, left_us: Option<u64>) -> (String, u64) {
        let begun = NOW.load(Relaxed);
        let result = within(pid, left_us, || {
            (0..600).try_for_each(|_| {
                NOW.fetch_add(100_000, Relaxed);
                work(UNITS)
            })
        });
        let said = result.map_or_else(|error| error.to_string(), |()| "done".into());
        (said, (NOW.load(Relaxed) - begun) / 100_000)
    }

    #[test]
    fn a_call_ends_when_its_time_is_over_and_only_there() {
        assert_eq!(compute(1, Some(1)), ("done".into(), 600), "no clock");
        lend(Host {
            clock_us: || NOW.load(Relaxed),
            busy_us: || NOW.load(Relaxed) / 2,
            is_cancelled: |pid| CANCELLED.load(Relaxed) == pid,
        });
        let (said, tenths) = compute(1, Some(500_000));
        assert!(said.contains("statement timeout"), "{said}");
        assert_eq!(tenths, 6);
        let (said, tenths) = compute(1, None);
        assert!(said.contains("takes too long"), "{said}");
        assert_eq!(tenths, 201);
        CANCELLED.store(2, Relaxed);
        let (said, tenths) = compute(2, None);
        assert!(said.contains("user request"), "{said}");
        assert_eq!(tenths, 1);
        // Outside of a statement nothing ends, nor in its work on rows.
        let on_rows = || apart(|| work(UNITS)).and_then(|()| work(UNITS));
        assert!(within(2, None, || apart(|| work(UNITS))).is_ok());
        assert!(within(2, None, on_rows).is_err());
        NOW.fetch_add(100_000_000, Relaxed);
        assert!(work(UNITS * 5).is_ok());
        assert!(
            within(1, Some(1), || work(UNITS - 1)).is_ok(),
            "little work"
        );
    }
}
