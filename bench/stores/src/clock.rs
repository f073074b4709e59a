//! The pace of this machine: its clock, and sleep of the thread.

use entity::Pace;
use std::time::{Duration, Instant};

/// Time since it was made. Sleeping holds up the thread, so a client has a thread for itself.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Default for Clock {
    fn default() -> Clock {
        Clock(Instant::now())
    }
}

impl Pace for Clock {
    fn now_us(&self) -> u64 {
        self.0.elapsed().as_micros() as u64
    }

    async fn sleep_us(&mut self, length_us: u64) {
        std::thread::sleep(Duration::from_micros(length_us));
    }
}
