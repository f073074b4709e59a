//! A connection that another node opened: its messages arrive on it, in their order.

use crate::conn::{Got, read_some, write_some};
use crate::credentials::Credentials;
use crate::door::Proved;
use crate::frame::{self, Hello};
use crate::peers::{Met, admit, take_hello};
use crate::tls::Tls;
use base::NodeId;
use mio::net::TcpStream;
use node::frame::Arrived;
use std::time::{Duration, Instant};

/// Time for the hello of a connection.
const GREETING_TIME: Duration = Duration::from_secs(10);

/// A connection that another node opened.
pub(crate) struct PeerIn {
    stream: TcpStream,
    /// The connection, and the node that it has proved to be of.
    proof: Option<(Tls, NodeId)>,
    since: Instant,
    input: Vec<u8>,
    /// Known after its hello.
    pub(crate) node: Option<NodeId>,
    met: Met,
    /// The program of a message is to be decoded, or being decoded: what comes behind it waits,
    /// here and in the socket.
    waits: bool,
    /// That message, until the caller takes it.
    long: Option<Arrived>,
    /// The other side has closed.
    ending: bool,
}

impl PeerIn {
    pub(crate) fn new(stream: TcpStream, met: Met) -> PeerIn {
        PeerIn {
            met,
            stream,
            proof: None,
            since: Instant::now(),
            input: Vec::new(),
            node: None,
            waits: false,
            long: None,
            ending: false,
        }
    }

    /// The other side has proved which node it is.
    pub(crate) fn proved(mut self, proved: Proved) -> PeerIn {
        let Proved { tls, node, early } = proved;
        self.proof = Some((tls, node));
        self.input = early;
        self
    }

    /// Whether the connection may go on: its hello is there or has time, and its other side would
    /// be believed today.
    pub(crate) fn recheck(&self, credentials: Option<&Credentials>) -> bool {
        if self.node.is_none() && self.since.elapsed() >= GREETING_TIME {
            tracing::warn!("a connection to the port of nodes says nothing; it is closed");
            return false;
        }
        let (Some((tls, node)), Some(credentials)) = (&self.proof, credentials) else {
            return true;
        };
        let judged = credentials.recheck(tls);
        if let Err(error) = &judged {
            tracing::warn!(node = node.0, %error, "a connection is closed");
        }
        judged.is_ok()
    }

    /// Reads what is there and gives out messages; `ending`: the other side has closed. `false`:
    /// close the connection. Otherwise look for [`PeerIn::take_long`].
    pub(crate) fn on_event(
        &mut self,
        own: &Hello,
        ending: bool,
        buffer: &mut [u8],
        deliver: &mut dyn FnMut(Arrived),
    ) -> bool {
        self.ending |= ending;
        while !self.waits {
            let (input, proof) = (&mut self.input, &mut self.proof);
            let mut taken = Ok(());
            let got = read_some(&mut self.stream, buffer, |bytes| match proof {
                None => input.extend_from_slice(bytes),
                Some((tls, _)) => taken = tls.take(bytes, |plain| input.extend_from_slice(plain)),
            });
            if let Err(error) = taken {
                tracing::error!(node = self.node.map(|n| n.0), %error, "connection closed");
                return false;
            }
            if let Some((tls, _)) = &mut self.proof
                && tls.has_output()
                && tls
                    .write_some(&mut self.stream, &mut Vec::new(), &mut 0, false)
                    .is_err()
            {
                return false;
            }
            let more = match got {
                Got::Bytes(more) => more || self.ending,
                Got::Nothing => false,
                Got::End => return false,
            };
            if let Err(error) = self.take_frames(own, deliver) {
                tracing::error!(node = self.node.map(|n| n.0), "{error}; connection closed");
                return false;
            }
            if !more {
                return true;
            }
        }
        true
    }

    /// The next message, if its program must be decoded first; nothing more is given out until
    /// [`PeerIn::on_decoded`].
    pub(crate) fn take_long(&mut self) -> Option<Arrived> {
        self.long.take()
    }

    /// That message has been delivered: [`PeerIn::on_event`] goes on behind it. The socket raises
    /// no event for what came meanwhile.
    pub(crate) fn on_decoded(&mut self) {
        self.waits = false;
    }

    fn take_frames(&mut self, own: &Hello, deliver: &mut dyn FnMut(Arrived)) -> Result<(), String> {
        if self.node.is_none() && !self.greet(own)? {
            return Ok(());
        }
        let mut taken = 0;
        while !self.waits {
            let next = frame::next_frame(&self.input[taken..]).map_err(|e| e.to_string())?;
            let Some((payload, used)) = next else { break };
            let mut arrived = frame::decode_message(payload).map_err(|e| e.to_string())?;
            let (from, to) = (arrived.from, arrived.to);
            if Some(from.node()) != self.node || to.node() != own.node || to.index() >= own.shards {
                return Err(format!(
                    "a message from {from} to {to} does not belong here"
                ));
            }
            taken += used;
            if arrived.has_long_program() {
                self.waits = true;
                self.long = Some(arrived);
            } else {
                deliver(arrived);
            }
        }
        self.input.drain(..taken);
        Ok(())
    }

    /// Takes the hello and answers it, as soon as it is there.
    fn greet(&mut self, own: &Hello) -> Result<bool, String> {
        let Some(hello) = take_hello(&mut self.input, own)? else {
            return Ok(false);
        };
        if let Some((_, proved)) = &self.proof
            && *proved != hello.node
        {
            let (said, proved) = (hello.node.0, proved.0);
            return Err(format!(
                "refused: node {proved} says that it is node {said}"
            ));
        }
        self.node = Some(hello.node);
        let admitted = admit(&self.met, &hello);
        let mut own = own.clone();
        if let Err(stranger) = &admitted {
            own.refusal = stranger.to_string();
        }
        let mut answer = Vec::new();
        frame::encode_hello(&own, &mut answer);
        let mut sent = 0;
        let written = match &mut self.proof {
            None => write_some(&mut self.stream, &mut answer, &mut sent),
            Some((tls, _)) => tls.write_some(&mut self.stream, &mut answer, &mut sent, false),
        };
        match written {
            Ok(true) => {}
            // A fresh socket takes a few dozen bytes or is broken.
            Ok(false) | Err(_) => return Err("cannot answer a hello".into()),
        }
        match admitted {
            Ok(()) => Ok(true),
            Err(stranger) => Err(format!("refused: {stranger}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_disk::FsDisk;
    use base::{IndexId, Key, ShardId, Slot, Ts, TxnId};
    use node::WireMessage;
    use node::message::ProtocolWord;
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};
    use storage::Acquaintances;
    use two_phase::message::{Body, ReadRequest};
    use txn::{LockMode, Op, Program, Read};

    const SHARDS: u16 = 2;
    /// Of a program that is long.
    const LONG: usize = 300 << 10;

    /// A read with this number and a program of this many bytes.
    fn frame_of(read: u64, bytes: usize) -> Vec<u8> {
        let key = Key {
            index: IndexId(1),
            slot: Slot(0),
            bytes: Vec::new(),
        };
        let op = Op::Get {
            key,
            read: Read::Lock(LockMode::Shared),
            program: Program::Encoded(vec![0xff; bytes].into()),
        };
        let request = ReadRequest {
            read,
            planned: 1,
            in_doubt_timeout_us: 1,
            priority_ts: Ts::ZERO,
            alone: true,
            op,
        };
        let (from, to) = (ShardId::new(NodeId(2), 0), ShardId::new(NodeId(1), 1));
        let message = two_phase::Message {
            head: txn::Head {
                view: 1,
                incarnation: 1,
                catalog: 1,
                clock: Ts(1),
            },
            txn: TxnId {
                shard: from,
                incarnation: 1,
                counter: 1,
            },
            attempt: 1,
            body: Body::Read(Box::new(request)),
        };
        let mut frame = Vec::new();
        frame::encode_message(
            from,
            to,
            &WireMessage::Protocol(ProtocolWord::TwoPhase(message)),
            &mut frame,
        );
        frame
    }

    fn number(arrived: &Arrived) -> u64 {
        let WireMessage::Protocol(ProtocolWord::TwoPhase(message)) = &arrived.message else {
            panic!("no such message was sent")
        };
        let Body::Read(request) = &message.body else {
            panic!("no such message was sent")
        };
        request.read
    }

    /// Node 1's end of a connection, and what node 2 does with the other.
    struct Bed {
        peer: PeerIn,
        other: Option<std::net::TcpStream>,
        own: Hello,
        /// Numbers of the messages that were given out.
        given: Vec<u64>,
        folder: PathBuf,
    }

    impl Drop for Bed {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    impl Bed {
        /// Node 2 has said hello.
        fn new(name: &str) -> Bed {
            let folder = format!("peer-in-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            std::fs::create_dir_all(&folder).expect("a folder");
            let met = Acquaintances::read(&FsDisk::new(&folder)).expect("nobody was met");
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            let other = std::net::TcpStream::connect(address).expect("it listens");
            let (stream, _) = listener.accept().expect("it has connected");
            stream.set_nonblocking(true).expect("a socket");
            let mut bed = Bed {
                peer: PeerIn::new(TcpStream::from_std(stream), Arc::new(Mutex::new(met))),
                other: Some(other),
                own: Hello::new(7, NodeId(1), 1, SHARDS),
                given: Vec::new(),
                folder,
            };
            let mut hello = Vec::new();
            frame::encode_hello(&Hello::new(7, NodeId(2), 1, SHARDS), &mut hello);
            bed.send(&hello);
            bed
        }

        /// From a thread: the socket does not take everything at once.
        fn send(&mut self, bytes: &[u8]) {
            let mut other = self.other.as_ref().expect("it is open").try_clone();
            let other = other.as_mut().expect("a socket");
            other.write_all(bytes).expect("it is open");
        }

        /// Reads once; whether the connection goes on.
        fn read(&mut self) -> bool {
            let given = &mut self.given;
            let mut buffer = vec![0; 4096];
            (self.peer).on_event(&self.own, false, &mut buffer, &mut |arrived| {
                given.push(number(&arrived));
            })
        }

        /// Reads until a long message has come.
        fn until_long(&mut self) -> Arrived {
            for _ in 0..10_000 {
                assert!(self.read(), "the connection is open");
                if let Some(arrived) = self.peer.take_long() {
                    return arrived;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("no long message comes")
        }

        /// Reads until this many messages were given out, or the connection is closed (`false`).
        fn until_given(&mut self, count: usize) -> bool {
            for _ in 0..10_000 {
                if !self.read() {
                    return false;
                }
                if self.given.len() == count {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("nothing comes behind {:?}", self.given)
        }
    }

    #[test]
    fn what_comes_behind_a_long_program_waits_for_it() {
        let mut bed = Bed::new("order");
        let lengths = [10, LONG, 10, LONG, 10];
        let frames = (1..)
            .zip(lengths)
            .map(|(read, bytes)| frame_of(read, bytes));
        let sent: Vec<u8> = frames.flatten().collect();
        let mut other = bed.other.take().expect("it is open");
        let sender = std::thread::spawn(move || {
            other.write_all(&sent).expect("it is read");
            other
        });
        assert_eq!(number(&bed.until_long()), 2);
        assert_eq!(bed.given, [1]);
        // Nothing more is read meanwhile.
        let held = bed.peer.input.len();
        assert!(bed.read() && bed.peer.take_long().is_none());
        assert_eq!((bed.given.len(), bed.peer.input.len()), (1, held));
        bed.peer.on_decoded();
        assert_eq!(number(&bed.until_long()), 4);
        assert_eq!(bed.given, [1, 3]);
        bed.peer.on_decoded();
        assert!(bed.until_given(3));
        assert_eq!(bed.given, [1, 3, 5]);
        drop(sender.join().expect("all is sent"));
    }

    #[test]
    fn an_end_behind_a_long_program_is_seen_behind_it() {
        let mut bed = Bed::new("end");
        bed.send(&frame_of(1, LONG));
        let _ = bed.until_long();
        drop(bed.other.take());
        // The event comes once, while the program is decoded.
        let mut buffer = vec![0; 4096];
        let none = &mut |_| panic!("nothing more was sent");
        assert!(bed.peer.on_event(&bed.own, true, &mut buffer, none));
        bed.peer.on_decoded();
        assert!(!bed.until_given(1), "it is closed");
    }

    #[test]
    fn a_broken_frame_behind_a_long_program_closes_the_connection() {
        let mut bed = Bed::new("broken");
        bed.send(&frame_of(1, LONG));
        bed.send(&[0xff; 64]);
        let mut arrived = bed.until_long();
        // What is no program goes to the shard as it came.
        assert!(arrived.make_live().is_none() && arrived.has_long_program());
        bed.peer.on_decoded();
        assert!(!bed.until_given(1), "it is closed");
    }
}
