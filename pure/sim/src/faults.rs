//! What the faults of a plan do to the world, and how it heals.

use crate::plan::{Kind, Moment, What};
use crate::queue::Event;
use crate::world::World;
use base::crc::Crc32c;
use journal::checkpoint::checkpoint_name;
use journal::manifest::MANIFEST_NAME;
use journal::record::FRAME_BYTES;
use journal::segment::{SEGMENT_HEADER_BYTES, parse_segment_name};
use storage::{Disk, StorageError};

impl World {
    pub(crate) fn on_fault(&mut self, index: usize) {
        if self.healed {
            return;
        }
        let what = self.plan.faults[index].what.clone();
        self.trace.say(self.now_ns, || format!("fault {what:?}"));
        if self.apply(&what) {
            *self.happened.entry(what.kind()).or_default() += 1;
        }
    }

    /// Whether it could happen.
    fn apply(&mut self, what: &What) -> bool {
        match *what {
            What::Kill { node, down_us } => self.end(node, down_us, false),
            What::Power {
                node,
                down_us,
                moment,
                mute_us,
            } => self.power(node, down_us, moment, mute_us),
            What::Blackout { down_us } => {
                (1..=self.plan.nodes).fold(false, |any, node| self.end(node, down_us, true) | any)
            }
            What::InChange {
                steps,
                down_us,
                lives,
            } => {
                self.closed
                    .end_in_change(steps, down_us, lives, self.now_ns);
                false
            }
            What::Flip { node, down_us } => {
                // It counts when a start has found it.
                if self.end(node, down_us, true) {
                    self.nodes[usize::from(node) - 1].flip = true;
                }
                false
            }
            What::Pause { node, for_us } => {
                let until = self.now_ns + for_us * 1_000;
                let index = usize::from(node) - 1;
                let node = &mut self.nodes[index];
                node.paused_until_ns = node.paused_until_ns.max(until);
                self.push_at(until, Event::Resume { node: index });
                self.notice_pause(index, for_us);
                true
            }
            What::Cut { from, to, for_us } => {
                self.cut(usize::from(from) - 1, usize::from(to) - 1, for_us);
                true
            }
            What::Part { group, for_us } => self.part(group, for_us),
            What::Slow {
                from,
                to,
                factor,
                for_us,
            } => {
                let (from, to) = (usize::from(from) - 1, usize::from(to) - 1);
                self.network.slow_down(from, to, factor);
                self.push(for_us * 1_000, Event::SlowEnd { from, to });
                true
            }
            What::Client { pick } => self.break_client(pick),
            _ => {
                self.apply_to_node(what);
                true
            }
        }
    }

    /// What spoils a disk or a clock, and always happens.
    fn apply_to_node(&mut self, what: &What) {
        match *what {
            What::Sync { node, .. } => {
                self.nodes[usize::from(node) - 1].disk.fail_next_sync();
            }
            What::Full { node, room, for_us } => {
                let node = usize::from(node) - 1;
                self.nodes[node].disk.set_room(Some(room));
                self.push(for_us * 1_000, Event::DiskEnd { node });
            }
            What::SlowDisk {
                node,
                factor,
                for_us,
            } => {
                let node = usize::from(node) - 1;
                self.nodes[node].slow_disk = factor;
                self.push(for_us * 1_000, Event::DiskEnd { node });
            }
            What::Jump { node, by_us } => {
                self.nodes[usize::from(node) - 1].clock.jump(by_us);
                self.look_at_clock(usize::from(node) - 1);
            }
            What::Drift { node, ppm } => {
                let now_ns = self.now_ns;
                self.nodes[usize::from(node) - 1].clock.drift(now_ns, ppm);
            }
            _ => unreachable!("not a matter of a disk or a clock"),
        }
    }

    /// Whether the power has gone. What comes later counts when it happens.
    fn power(&mut self, node: u16, down_us: u64, moment: Moment, mute_us: u64) -> bool {
        let place = usize::from(node) - 1;
        match moment {
            Moment::Now => return self.end(node, down_us, true),
            Moment::Flush(factor) => self.nodes[place].power_at_flush = Some((down_us, factor)),
            Moment::Checkpoint => self.nodes[place].power_at_checkpoint = Some(down_us),
        }
        self.nodes[place].mute_at_flush = Some(mute_us).filter(|us| *us > 0);
        false
    }

    /// What waits for the flush that begins has been promised or decided, and nobody hears of it.
    pub(crate) fn fall_mute(&mut self, node: usize) {
        let Some(mute_us) = self.nodes[node].mute_at_flush.take() else {
            return;
        };
        for to in (0..self.nodes.len()).filter(|to| *to != node) {
            self.cut(node, to, mute_us);
        }
    }

    fn end(&mut self, node: u16, down_us: u64, power: bool) -> bool {
        let node = usize::from(node) - 1;
        if self.nodes[node].running.is_none() {
            return false;
        }
        self.crash(node, power);
        self.push(down_us * 1_000, Event::Start { node });
        true
    }

    /// The power goes during a flush.
    pub(crate) fn cut_power(&mut self, node: usize, down_us: u64) {
        if self.healed {
            return;
        }
        *self.happened.entry(Kind::Power).or_default() += 1;
        self.crash(node, true);
        self.push(down_us * 1_000, Event::Start { node });
    }

    fn part(&mut self, group: u64, for_us: u64) -> bool {
        let count = self.nodes.len();
        let side = |node: usize| group >> node & 1;
        let mut parted = false;
        for from in 0..count {
            for to in (0..count).filter(|to| side(from) != side(*to)) {
                self.cut(from, to, for_us);
                parted = true;
            }
        }
        parted
    }

    /// A clock that was set forwards makes deadlines come early: shards are woken to see it.
    fn look_at_clock(&mut self, node: usize) {
        let Some(running) = &self.nodes[node].running else {
            return;
        };
        for shard in 0..running.shards.len() {
            self.input(node, shard, node::Input::Tick);
        }
    }

    fn break_client(&mut self, pick: u64) -> bool {
        let open: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, link)| link.server.is_some())
            .map(|(conn, _)| *conn)
            .collect();
        if open.is_empty() {
            return false;
        }
        let conn = open[(pick % open.len() as u64) as usize];
        let at = self.arrival_at_client(conn, self.now_ns);
        self.push_at(at, Event::ClientGone { conn });
        true
    }

    /// Ends all faults and starts all nodes.
    pub(crate) fn heal(&mut self) {
        self.healed = true;
        self.closed.heal();
        self.trace.say(self.now_ns, || "healed".to_owned());
        for (from, to) in self.network.heal() {
            self.release_stalled(from, to);
        }
        for node in 0..self.nodes.len() {
            let hosted = &mut self.nodes[node];
            hosted.disk.calm();
            hosted.slow_disk = 1;
            hosted.power_at_flush = None;
            hosted.mute_at_flush = None;
            hosted.power_at_checkpoint = None;
            hosted.paused_until_ns = hosted.paused_until_ns.min(self.now_ns);
            let is_down = hosted.running.is_none();
            self.resume(node);
            if is_down {
                let after = self.prng.below(100_000_000);
                self.push(after, Event::Start { node });
            }
        }
    }

    /// Flips a bit in a copy of the node's disk, where detection is promised: in the manifest, in
    /// the checkpoint in use, in any record but the last. Recovery must refuse the copy.
    pub(crate) fn check_flip(&mut self, node: usize) {
        let disk = self.nodes[node].disk.clone();
        let identity = self.identity(node);
        let limits = self.limits();
        let now = self.wall(node);
        let sound = storage::open(&disk.copy(), identity, limits, now, &mut |_| {});
        let Ok(sound) = sound else {
            return;
        };
        let manifest = sound.manifest;
        let mut places: Vec<(String, u64, u64)> = Vec::new();
        let names = disk.list().unwrap_or_default();
        let current: Vec<String> = manifest
            .shards
            .iter()
            .map(|(shard, _)| checkpoint_name(manifest.number, *shard))
            .collect();
        let mut segments: Vec<(base::Position, String)> = Vec::new();
        for name in names {
            if name == MANIFEST_NAME || current.contains(&name) {
                let length = disk.read_all(&name).map_or(0, |bytes| bytes.len());
                places.push((name, 0, length as u64));
            } else if let Some(start) = parse_segment_name(&name) {
                segments.push((start, name));
            }
        }
        segments.sort();
        let read_from = segments
            .iter()
            .rposition(|(start, _)| *start <= manifest.journal_from)
            .unwrap_or(0);
        let count = segments.len();
        for (index, (_, name)) in segments.into_iter().enumerate().skip(read_from) {
            let bytes = disk.read_all(&name).unwrap_or_default();
            let last = index + 1 == count;
            places.push((name, 0, whole_records(&bytes, last)));
        }
        places.retain(|(_, from, to)| to > from);
        if places.is_empty() {
            return;
        }
        let (name, from, to) = places[self.prng.below(places.len() as u64) as usize].clone();
        let bit = (from + self.prng.below(to - from)) * 8 + self.prng.below(8);
        let broken = disk.copy();
        broken.flip(&name, bit);
        *self.happened.entry(Kind::Flip).or_default() += 1;
        match storage::open(&broken, identity, limits, now, &mut |_| {}) {
            Err(StorageError::Journal(_) | StorageError::Foreign { .. }) => {}
            Err(other) => {
                self.broken = Some(format!("bit {bit} of {name} was flipped: {other}"));
            }
            Ok(_) => {
                let text = format!("bit {bit} of {name} of n{} was flipped unnoticed", node + 1);
                self.broken = Some(text);
            }
        }
    }
}

/// Bytes of a segment up to which every flipped bit must be noticed: all records, of the `last`
/// segment all but the last record. What a power cut has torn is no record.
fn whole_records(bytes: &[u8], last: bool) -> u64 {
    let mut offset = SEGMENT_HEADER_BYTES;
    let mut before = 0;
    while let Some(length) = bytes.get(offset..).and_then(record_length) {
        before = offset;
        offset += FRAME_BYTES + length;
    }
    let end = if last { before } else { offset };
    end.min(bytes.len()) as u64
}

/// Length of the payload of the sound record with which `bytes` begins.
fn record_length(bytes: &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let payload = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let mut found = Crc32c::new();
    found.update(length);
    found.update(payload);
    let sound = !payload.is_empty() && found.finish() == u32::from_le_bytes(*crc);
    sound.then_some(payload.len())
}
