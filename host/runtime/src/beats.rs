//! Heartbeats: which nodes answer.
//!
//! A node that stands still, or to which packets are lost, breaks no connection for a long time.
//! So one thread per node asks all others every [`BEAT`], or more often, by a datagram from its
//! peer address; the thread there answers. A node that has answered before and is silent for
//! [`SILENCE`] is told to the shards, which close their connections with it; when it answers again
//! they connect at once.
//!
//! Why a thread of its own: shards answer late while they are busy, and a disk may be slow; neither
//! is a reason to give a node up. A process that is stopped for half a second is not either:
//! connections survive that, and [`SILENCE`] is longer.
//!
//! On a machine with too little CPU this thread runs late, and so do those that answer. It reads
//! what has come before it judges, and a turn that came late counts as silence of [`TURN_MAX`] at
//! most: what a node did not hear while it did not run itself says nothing about the others.
//!
//! A node that starts tells all others that it is there before it connects with them. Else the
//! silence of its earlier life would go on, and could break the connections of this one.
//!
//! With certificates between nodes (`[peers]`), datagrams count that come from an address of the
//! cluster file. They prove nothing: whoever can forge them makes a node that is down look alive
//! here, and then broken connections and timeouts tell.
//!
//! Nodes that never answer (datagrams may be filtered) are not found silent: then broken
//! connections and timeouts tell. The same holds for a node whose shards hang while this thread
//! goes on.

use crate::cluster::ClusterFile;
use crate::error::RuntimeError;
use crate::mailbox::{Mail, Mailboxes};
use base::NodeId;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Pause between two questions.
const BEAT: Duration = Duration::from_millis(100);
/// The same while a node has not answered since this one started. One that came up and stood still
/// before its first answer would not be found silent.
const FIRST_BEAT: Duration = Duration::from_millis(20);
/// A node that does not answer for so long is given up until it does.
const SILENCE: Duration = Duration::from_millis(800);
/// Most silence that one turn of this thread adds up, however late it came. Longer than [`BEAT`],
/// so that a silent node is found on a busy machine, too, only later.
const TURN_MAX: Duration = Duration::from_millis(150);
/// Datagrams read in one turn before the watch looks at the time.
const READS_MAX: usize = 256;

const _: () = assert!(TURN_MAX.as_millis() > BEAT.as_millis());

const MAGIC: [u8; 8] = *b"trlsbeat";
const SIZE: usize = 8 + 8 + 2 + 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Question,
    Answer,
}

/// A datagram: who asks or answers, in which cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Beat {
    cluster: u64,
    node: NodeId,
    kind: Kind,
}

impl Beat {
    fn encode(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.cluster.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.node.0.to_le_bytes());
        bytes[18] = match self.kind {
            Kind::Question => 0,
            Kind::Answer => 1,
        };
        bytes
    }

    /// `None`: not ours.
    fn decode(bytes: &[u8]) -> Option<Beat> {
        let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (cluster, rest) = rest.split_first_chunk::<8>()?;
        let (node, kind) = rest.split_first_chunk::<2>()?;
        let kind = match kind {
            [0] => Kind::Question,
            [1] => Kind::Answer,
            _ => return None,
        };
        (*magic == MAGIC).then(|| Beat {
            cluster: u64::from_le_bytes(*cluster),
            node: NodeId(u16::from_le_bytes(*node)),
            kind,
        })
    }
}

/// What is known of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// It has not answered since this node started.
    Nothing,
    /// Silence since its last answer, as [`Watch::look`] counts it.
    Heard(Duration),
    Silent,
}

/// What changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Silent(NodeId),
    /// It answers for the first time, or again.
    Heard(NodeId),
}

/// Who answers; the rules without the socket.
struct Watch {
    nodes: Vec<(NodeId, SocketAddr, Known)>,
    /// When this thread was last seen at work.
    turn: Instant,
}

impl Watch {
    fn new(nodes: &[(NodeId, SocketAddr)], now: Instant) -> Watch {
        let nodes = nodes.iter();
        Watch {
            nodes: nodes.map(|(n, at)| (*n, *at, Known::Nothing)).collect(),
            turn: now,
        }
    }

    /// Time until the next questions.
    fn pause(&self) -> Duration {
        let mut all = self.nodes.iter();
        match all.any(|(_, _, known)| *known == Known::Nothing) {
            true => FIRST_BEAT,
            false => BEAT,
        }
    }

    fn on_answer(&mut self, node: NodeId) -> Option<Change> {
        let (_, _, known) = self.nodes.iter_mut().find(|(n, ..)| *n == node)?;
        let before = std::mem::replace(known, Known::Heard(Duration::ZERO));
        match before {
            Known::Nothing | Known::Silent => Some(Change::Heard(node)),
            Known::Heard(_) => None,
        }
    }

    /// Time has passed: finds those that have been silent for too long. Call it after what has
    /// come was read.
    fn look(&mut self, now: Instant) -> Vec<Change> {
        let turn = now.duration_since(self.turn).min(TURN_MAX);
        self.turn = now;
        let mut changes = Vec::new();
        for (node, _, known) in &mut self.nodes {
            if let Known::Heard(silence) = known {
                *silence += turn;
                if *silence >= SILENCE {
                    *known = Known::Silent;
                    changes.push(Change::Silent(*node));
                }
            }
        }
        changes
    }
}

/// The thread; it ends when this is dropped.
pub(crate) struct Beats {
    stop: Arc<AtomicBool>,
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Tells the other nodes that this one is there, and starts to ask them. Its own address is that of
/// its peers, which the file names.
///
/// # Errors
/// The socket cannot be opened.
pub(crate) fn start(
    cluster: &ClusterFile,
    own: NodeId,
    mailboxes: Mailboxes,
) -> Result<Beats, RuntimeError> {
    let (mut address, mut others) = (None, Vec::new());
    for node in &cluster.nodes {
        if node.id == own.0 {
            address = Some(node.peer);
        } else {
            others.push((NodeId(node.id), node.peer));
        }
    }
    let address = address.expect("a node that starts is in its file");
    let wrong = || RuntimeError::socket("listen on", address);
    let socket = UdpSocket::bind(address).map_err(wrong())?;
    let stop = Arc::new(AtomicBool::new(false));
    let thread = BeatThread {
        socket,
        cluster: cluster.cluster,
        is_choosy: cluster.peers.is_some(),
        own,
        watch: Watch::new(&others, Instant::now()),
        mailboxes,
        stop: stop.clone(),
    };
    thread.send_all(Kind::Answer);
    std::thread::Builder::new()
        .name("beats".into())
        .spawn(move || thread.run())
        .map_err(wrong())?;
    Ok(Beats { stop })
}

struct BeatThread {
    socket: UdpSocket,
    cluster: u64,
    /// Datagrams of addresses that the file does not name are dropped.
    is_choosy: bool,
    own: NodeId,
    watch: Watch,
    mailboxes: Mailboxes,
    stop: Arc<AtomicBool>,
}

impl BeatThread {
    fn run(mut self) {
        let mut next = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            if Instant::now() >= next {
                // What came while this thread was late is heard before anybody is judged.
                if self.drain().is_err() {
                    return;
                }
                let now = Instant::now();
                next = now + self.watch.pause();
                for change in self.watch.look(now) {
                    self.tell(change);
                }
                self.send_all(Kind::Question);
            }
            let left = next.saturating_duration_since(Instant::now());
            // Zero would wait for ever.
            let left = left.max(Duration::from_millis(1));
            if self.socket.set_read_timeout(Some(left)).is_err() {
                return;
            }
            self.read();
        }
    }

    /// Reads what has come already.
    fn drain(&mut self) -> std::io::Result<()> {
        self.socket.set_nonblocking(true)?;
        for _ in 0..READS_MAX {
            if !self.read() {
                break;
            }
        }
        self.socket.set_nonblocking(false)
    }

    /// Reads one datagram; whether there was one.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 64];
        // Errors are time-outs, or news of ports that are closed: the node is silent then.
        let Ok((size, from)) = self.socket.recv_from(&mut buffer) else {
            return false;
        };
        if self.is_choosy && !self.watch.nodes.iter().any(|(_, at, _)| *at == from) {
            return true;
        }
        let beat = Beat::decode(&buffer[..size]);
        if let Some(beat) = beat.filter(|beat| beat.cluster == self.cluster) {
            match beat.kind {
                Kind::Question => self.send(Kind::Answer, from),
                Kind::Answer => {
                    let change = self.watch.on_answer(beat.node);
                    change.into_iter().for_each(|change| self.tell(change));
                }
            }
        }
        true
    }

    fn send_all(&self, kind: Kind) {
        for (_, to, _) in &self.watch.nodes {
            self.send(kind, *to);
        }
    }

    fn send(&self, kind: Kind, to: SocketAddr) {
        let beat = Beat {
            cluster: self.cluster,
            node: self.own,
            kind,
        };
        // What is lost is asked again.
        let _ = self.socket.send_to(&beat.encode(), to);
    }

    fn tell(&self, change: Change) {
        match change {
            Change::Silent(node) => {
                let ms = SILENCE.as_millis() as u64;
                tracing::warn!(node = node.0, ms, "node is silent, it is taken to be down");
                self.mailboxes.all(|| Mail::Silent(node));
            }
            Change::Heard(node) => {
                tracing::info!(node = node.0, "node answers");
                self.mailboxes.all(|| Mail::Heard(node));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(now: Instant) -> Watch {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        Watch::new(&[(NodeId(2), address), (NodeId(3), address)], now)
    }

    #[test]
    fn beats_are_read_as_they_were_written_and_others_are_not() {
        let beat = Beat {
            cluster: 0x0102_0304_0506_0708,
            node: NodeId(513),
            kind: Kind::Answer,
        };
        let bytes = beat.encode();
        assert_eq!(Beat::decode(&bytes), Some(beat));
        assert_eq!(Beat::decode(&bytes[1..]), None);
        let mut wrong = bytes;
        wrong[0] ^= 1;
        assert_eq!(Beat::decode(&wrong), None);
        wrong = bytes;
        wrong[18] = 2;
        assert_eq!(Beat::decode(&wrong), None);
    }

    #[test]
    fn a_node_that_stops_answering_is_silent_until_it_answers_again() {
        let start = Instant::now();
        let mut watch = watch(start);
        assert_eq!(watch.on_answer(NodeId(2)), Some(Change::Heard(NodeId(2))));
        // Node 3 has never answered: nothing follows from its silence, but it is asked more often.
        assert_eq!(watch.pause(), FIRST_BEAT);
        for beat in 1..8 {
            assert_eq!(watch.look(start + BEAT * beat), []);
        }
        assert_eq!(watch.look(start + SILENCE), [Change::Silent(NodeId(2))]);
        assert_eq!(watch.look(start + SILENCE + BEAT), []);
        assert_eq!(watch.on_answer(NodeId(2)), Some(Change::Heard(NodeId(2))));
        assert_eq!(watch.on_answer(NodeId(2)), None);
        watch.on_answer(NodeId(3));
        assert_eq!(watch.pause(), BEAT);
    }

    #[test]
    fn who_was_stopped_itself_gives_the_others_another_chance() {
        let start = Instant::now();
        let mut watch = watch(start);
        watch.on_answer(NodeId(2));
        let back = start + Duration::from_secs(9);
        assert_eq!(watch.look(back), []);
        let silent = SILENCE - TURN_MAX;
        let beats = (silent.as_millis() / BEAT.as_millis()) as u32;
        for beat in 1..=beats {
            assert_eq!(watch.look(back + BEAT * beat), []);
        }
        let after = back + BEAT * (beats + 1);
        assert_eq!(watch.look(after), [Change::Silent(NodeId(2))]);
    }

    /// Turns that come late one after the other, as on a machine with too little CPU: the others
    /// have as many turns to answer as if they came in time.
    #[test]
    fn late_turns_count_for_little() {
        let start = Instant::now();
        let late = Duration::from_millis(390);
        let mut watch = watch(start);
        watch.on_answer(NodeId(2));
        for turn in 1..=5 {
            assert_eq!(watch.look(start + late * turn), [], "turn {turn}");
        }
        assert_eq!(watch.look(start + late * 6), [Change::Silent(NodeId(2))]);
    }

    /// The first datagram of a node that starts is no question: so the others hear of its new life
    /// before the silence of the old one has gone on for too long.
    #[test]
    fn who_starts_tells_that_it_is_there() {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = UdpSocket::bind("127.0.0.1:0").unwrap();
        let node = |id: u16, peer: &UdpSocket| {
            let peer = peer.local_addr().unwrap();
            format!("[[node]]\nid = {id}\nsql = \"127.0.0.1:1\"\npeer = \"{peer}\"\ndata = \"n\"\n")
        };
        let text = node(1, &own) + &node(2, &other);
        let cluster = toml::from_str(&format!("cluster = 7\nshards = 1\n{text}")).unwrap();
        drop(own);
        let (mailboxes, _) = Mailboxes::new(Vec::new());
        let _beats = start(&cluster, NodeId(1), mailboxes).unwrap();
        let limit = Duration::from_secs(10);
        other.set_read_timeout(Some(limit)).unwrap();
        let mut first = [0; SIZE];
        other.recv(&mut first).unwrap();
        let there = Beat {
            cluster: 7,
            node: NodeId(1),
            kind: Kind::Answer,
        };
        assert_eq!(Beat::decode(&first), Some(there));
    }
}
