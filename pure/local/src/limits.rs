//! What every protocol may be set to.

use txn::Pauses;

/// Times, sizes and slices that all protocols know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// A shard of another node that is silent for so long is given up
    /// ([`txn::AbortReason::Unreachable`]). Microseconds.
    pub request_timeout_us: u64,
    /// First pause before a message to another node is sent again; doubles up to
    /// [`Limits::resend_max_us`]. Microseconds.
    pub resend_us: u64,
    /// Longest pause between repetitions. Microseconds.
    pub resend_max_us: u64,
    /// A shard that holds something for another shard's transaction asks after it so often, if it
    /// hears nothing. Microseconds.
    pub inquire_us: u64,
    /// Bytes of keys and rows that one transaction may have written on one shard (53200 beyond).
    pub txn_bytes_max: usize,
    /// Rows that a scan visits before others get their turn.
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
