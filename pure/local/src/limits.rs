//! Settings that every protocol has.

use txn::Pauses;

/// Times, sizes and slices that all protocols know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Microseconds of silence after which a shard of another node is given up
    /// ([`txn::AbortReason::Unreachable`]).
    pub request_timeout_us: u64,
    /// First pause before a message to another node is repeated, in microseconds; doubles up to
    /// [`Limits::resend_max_us`].
    pub resend_us: u64,
    /// Longest pause between repetitions, in microseconds.
    pub resend_max_us: u64,
    /// Microseconds of silence after which a shard that holds something for another shard's
    /// transaction asks how that stands, and again.
    pub inquire_us: u64,
    /// Bytes of keys and rows that one transaction may write on one shard (beyond: 53200).
    pub txn_bytes_max: usize,
    /// Rows that a scan visits before other jobs get their turn.
    pub scan_rows_max: u32,
    /// Most units of work that a slice of a large transaction takes ([`txn::bulk`]).
    pub slice_units: u64,
}

impl Limits {
    /// Pauses between repetitions of a message.
    pub fn pauses(&self) -> Pauses {
        Pauses {
            first_us: self.resend_us,
            longest_us: self.resend_max_us,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            request_timeout_us: 10_000_000,
            resend_us: 200_000,
            resend_max_us: 5_000_000,
            inquire_us: 1_000_000,
            txn_bytes_max: 4 << 30,
            scan_rows_max: 1_000,
            slice_units: txn::bulk::SLICE_UNITS,
        }
    }
}
