//! Which messages of a step share a frame, for what transactions cost.

use alloc::vec::Vec;
use base::ShardId;

/// Frames of one protocol in one step. Empty behind each step, like all of an outbox.
#[derive(Debug, Default)]
pub struct Frames {
    /// Whether the host puts the messages of a step to one shard of another node into one frame.
    pub shared: bool,
    /// Whether the message that is being handled came behind another one in its frame.
    pub behind: bool,
    /// Shards of other nodes that messages of this step go to.
    to: Vec<ShardId>,
}

impl Frames {
    /// Number of frames that one more message to a shard of another node adds: 0 or 1. Where a
    /// frame is full and another one begins, nobody is told.
    pub(crate) fn sent(&mut self, to: ShardId) -> u32 {
        if !self.shared {
            return 1;
        }
        if self.to.contains(&to) {
            return 0;
        }
        self.to.push(to);
        1
    }

    /// Number of frames that came with the message that is being handled, from another node: 0 or
    /// 1. A frame is counted with its first message.
    #[must_use]
    pub fn came(&self) -> u32 {
        u32::from(!self.behind)
    }

    /// The messages of the step are on their way.
    pub fn end_step(&mut self) {
        self.to.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_counted_once() {
        let mut frames = Frames::default();
        let to = [ShardId(16), ShardId(32), ShardId(16)];
        assert_eq!(to.map(|to| frames.sent(to)), [1, 1, 1]);
        frames.shared = true;
        assert_eq!(to.map(|to| frames.sent(to)), [1, 1, 0]);
        frames.end_step();
        assert_eq!(to.map(|to| frames.sent(to)), [1, 1, 0]);
        assert_eq!(frames.came(), 1);
        frames.behind = true;
        assert_eq!(frames.came(), 0);
    }
}
