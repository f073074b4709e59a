//! Parcels: the messages of protocols that one step sends to one shard, in one frame if it is of
//! another node.
//!
//! ```text
//! a join that asks for 200 rows, of which the other shard has all:
//!
//! step   200 x Read ──pack──> 1 parcel ──frame──> unpack: 200 x Read
//!                                                           | one step (or one per 1,000 units)
//!        unpack: 200 x Reply <──frame── 1 parcel <──pack── 200 x Reply
//! ```
//!
//! Protocols know nothing of it: each message has its own number, is repeated and answered by
//! itself. So whatever a statement asks for at once (keys of a join or of an `IN` list, parents of
//! new rows, index entries), and whatever a flush lets go at once, shares frames under every
//! protocol.
//!
//! Invariants:
//! * messages to one shard keep their order;
//! * no message waits longer than it would by itself, but for records of the same step: a parcel
//!   holds what may leave now, what waits for one position, or what waits for records of this
//!   step, which one flush takes;
//! * on the way to another node, a message that would make a parcel longer than
//!   [`PARCEL_BYTES_MAX`] begins another frame.
//!
//! A program that several messages share, one behind the other, travels once: the others have empty
//! bytes in its place, which are no program.
//!
//! Shards of a node exchange parcels, too: what one of them passes on to another node (leap: from
//! the home of rows to their owner) would else come in as many steps, and leave in as many frames.

use crate::message::{Message, WireMessage};
use crate::program;
use crate::protocols::ProtocolWord;
use base::{NodeId, Position, ShardId, codec};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use txn::contract::{Outgoing, ProtocolMessage};
use txn::{Op, Program, RowProgram};

/// Most bytes of messages that share a frame. Far below a frame's limit, so that no receiver waits
/// long for the end of one; larger messages gain nothing from sharing.
const PARCEL_BYTES_MAX: usize = 256 << 10;

/// Most messages that share a frame: as many as a statement has under way.
const PARCEL_WORDS_MAX: usize = 256;

const _: () = assert!(PARCEL_BYTES_MAX < base::limits::FRAME_BYTES_MAX / 2);

/// Two or more messages of protocols for one shard, in their order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parcel {
    words: Vec<ProtocolWord>,
}

impl Parcel {
    /// A parcel with these messages.
    pub fn new(words: Vec<ProtocolWord>) -> Parcel {
        Parcel { words }
    }

    /// Its messages.
    pub fn words(&self) -> &[ProtocolWord] {
        &self.words
    }

    /// Its messages, each with its program.
    pub(crate) fn unpack(self) -> impl Iterator<Item = ProtocolWord> {
        let mut before: Option<Arc<dyn RowProgram>> = None;
        self.words.into_iter().map(move |mut word| {
            match (program_of(&mut word), &before) {
                (None, _) => {}
                (Some(same @ Program::Encoded(_)), Some(live)) if is_same(same) => {
                    *same = Program::Live(live.clone());
                }
                // What is no program stays as it is, and is refused.
                (Some(program), _) => before = program.make_live(program::decode),
            }
            word
        })
    }
}

/// Whether the program is that of the message before.
fn is_same(program: &Program) -> bool {
    matches!(program, Program::Encoded(bytes) if bytes.is_empty())
}

fn program_of(word: &mut ProtocolWord) -> Option<&mut Program> {
    word.op_mut().and_then(Op::program_mut)
}

/// When the effects of a step may leave.
#[derive(Clone, Copy)]
pub(crate) struct Durability {
    /// Position to which the journal is durable.
    pub(crate) durable: Position,
    /// End of the first record of the step, if it has appended one.
    pub(crate) first: Option<Position>,
}

impl Durability {
    /// Messages of one class leave together.
    fn class(&self, wait: Position) -> Position {
        if wait <= self.durable {
            Position(0)
        } else if self.first.is_some_and(|first| wait >= first) {
            Position(u64::MAX)
        } else {
            wait
        }
    }
}

/// The last message to a shard, which the next one may join.
struct Open {
    to: ShardId,
    /// Its place among the effects.
    at: usize,
    class: Position,
    words: usize,
    /// Bytes of the messages, if they go to another node; 0: not counted yet.
    bytes: usize,
    /// Program of the last message that has one.
    program: Option<Arc<dyn RowProgram>>,
}

impl Open {
    fn new(to: ShardId, at: usize, class: Position) -> Open {
        Open {
            to,
            at,
            class,
            words: 1,
            bytes: 0,
            program: None,
        }
    }

    /// Whether a message joins the first one, or its parcel, on the way to another node. Counts it
    /// if so, and takes its program out if the message before has the same.
    fn takes(&mut self, first: &mut Message, next: &mut Message) -> bool {
        let Message::Wire(WireMessage::Protocol(next)) = next else {
            return false;
        };
        if let Message::Wire(WireMessage::Protocol(first)) = first {
            self.bytes = codec::size_bytes(first);
            self.program = live(first).cloned();
        }
        if self.bytes >= PARCEL_BYTES_MAX {
            return false;
        }
        let own = live(next).cloned();
        let pair = own.as_ref().zip(self.program.as_ref());
        let same = pair.is_some_and(|(own, before)| Arc::ptr_eq(own, before));
        if same && let Some(program) = program_of(next) {
            *program = Program::Encoded(Box::default());
        }
        let bytes = self.bytes + codec::size_bytes(next);
        if bytes > PARCEL_BYTES_MAX {
            if let (Some(program), Some(own)) = (program_of(next), own) {
                *program = Program::Live(own);
            }
            return false;
        }
        if program_of(next).is_some() {
            self.program = own;
        }
        self.bytes = bytes;
        true
    }
}

fn live(word: &mut ProtocolWord) -> Option<&Arc<dyn RowProgram>> {
    match program_of(word)? {
        Program::Live(program) => Some(program),
        Program::Encoded(_) => None,
    }
}

/// Lets the messages behind the first `from` of `out`, all of protocols, travel together to each
/// shard. Returns the number of frames to other nodes than `here` that this saves.
pub(crate) fn pack(
    out: &mut Vec<Outgoing<Message>>,
    from: usize,
    here: NodeId,
    durability: Durability,
) -> u64 {
    let mut open: Vec<Open> = Vec::new();
    let (mut kept, mut saved) = (from, 0);
    for at in from..out.len() {
        let (to, class) = (out[at].to, durability.class(out[at].wait));
        let is_remote = to.node() != here;
        let Some(last) = open.iter_mut().find(|last| last.to == to) else {
            open.push(Open::new(to, kept, class));
            out.swap(kept, at);
            kept += 1;
            continue;
        };
        let (before, rest) = out.split_at_mut(at);
        let (first, next) = (&mut before[last.at], &mut rest[0]);
        let fits = last.class == class && last.words < PARCEL_WORDS_MAX;
        if fits && (!is_remote || last.takes(&mut first.message, &mut next.message)) {
            first.wait = first.wait.max(next.wait);
            join(&mut first.message, &mut next.message);
            last.words += 1;
            saved += u64::from(is_remote);
        } else {
            *last = Open::new(to, kept, class);
            out.swap(kept, at);
            kept += 1;
        }
    }
    out.truncate(kept);
    saved
}

/// Puts a message of a protocol behind another one, or into its parcel.
fn join(first: &mut Message, next: &mut Message) {
    let nothing = || Message::Wire(WireMessage::Parcel(Parcel::default()));
    let Message::Wire(WireMessage::Protocol(next)) = core::mem::replace(next, nothing()) else {
        unreachable!("only messages of protocols join")
    };
    let parcel = match core::mem::replace(first, nothing()) {
        Message::Wire(WireMessage::Protocol(word)) => vec![word, next],
        Message::Wire(WireMessage::Parcel(mut parcel)) => {
            parcel.words.push(next);
            parcel.words
        }
        other @ (Message::Wire(_) | Message::Local(_)) => unreachable!("joined {other:?}"),
    };
    *first = Message::Wire(WireMessage::Parcel(Parcel::new(parcel)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{IndexId, Key, RowBatch, Slot, Ts, TxnId};
    use expr::program::{Body as Rows, ProgramPlan};
    use two_phase::message::{Body, Finished, ReadRequest, Reference, Reply};
    use txn::{Head, LockMode, OpResult, Read};

    const HERE: NodeId = NodeId(1);

    fn word(number: u32, body: Body) -> ProtocolWord {
        let head = Head {
            view: 1,
            incarnation: 1,
            catalog: 1,
            clock: Ts(9),
        };
        ProtocolWord::TwoPhase(two_phase::Message {
            head,
            txn: TxnId::default(),
            attempt: number,
            body,
        })
    }

    fn number(word: &ProtocolWord) -> u32 {
        match word {
            ProtocolWord::TwoPhase(message) => message.attempt,
            other => panic!("{other:?}"),
        }
    }

    fn outgoing(to: u16, word: ProtocolWord, wait: u64) -> Outgoing<Message> {
        Outgoing {
            to: ShardId(to),
            message: Message::Wire(WireMessage::Protocol(word)),
            wait: Position(wait),
        }
    }

    /// Receiver, numbers of the messages and position of each frame; what is saved.
    fn packed(mut out: Vec<Outgoing<Message>>) -> (Vec<(u16, Vec<u32>, u64)>, u64) {
        let durability = Durability {
            durable: Position(100),
            first: Some(Position(200)),
        };
        let saved = pack(&mut out, 0, HERE, durability);
        let frames = out.into_iter().map(|outgoing| {
            let numbers = match outgoing.message {
                Message::Wire(WireMessage::Protocol(word)) => vec![number(&word)],
                Message::Wire(WireMessage::Parcel(parcel)) => {
                    parcel.words().iter().map(number).collect()
                }
                other => panic!("{other:?}"),
            };
            (outgoing.to.0, numbers, outgoing.wait.0)
        });
        (frames.collect(), saved)
    }

    #[test]
    fn messages_to_one_shard_share_a_frame_in_their_order() {
        let ack = |number| word(number, Body::Ack);
        let sent = [
            (16, 1),
            (32, 2),
            (1, 3),
            (16, 4),
            (32, 5),
            (1, 6),
            (17, 7),
            (16, 8),
        ];
        let sent = sent.map(|(to, number)| outgoing(to, ack(number), 0));
        let (frames, saved) = packed(sent.into());
        let expected = [
            (16, vec![1, 4, 8], 0),
            (32, vec![2, 5], 0),
            (1, vec![3, 6], 0),
            (17, vec![7], 0),
        ];
        assert_eq!((frames, saved), (expected.into(), 3));
    }

    #[test]
    fn nothing_waits_for_a_flush_because_of_another_message() {
        let ack = |number| word(number, Body::Ack);
        // Two that may leave, two that wait for older records, two for records of this step, and
        // one that may leave but not overtake.
        let waits = [0, 100, 150, 160, 200, 230, 90];
        let sent = waits.into_iter().enumerate();
        let sent = sent.map(|(at, wait)| outgoing(16, ack(at as u32), wait));
        let (frames, saved) = packed(sent.collect());
        let expected = [
            (16, vec![0, 1], 100),
            (16, vec![2], 150),
            (16, vec![3], 160),
            (16, vec![4, 5], 230),
            (16, vec![6], 90),
        ];
        assert_eq!((frames, saved), (expected.into(), 2));
    }

    #[test]
    fn a_frame_has_a_limit_of_messages_and_of_bytes() {
        let many = (0..600).map(|number| outgoing(16, word(number, Body::Ack), 0));
        let (frames, saved) = packed(many.collect());
        let counts: Vec<usize> = frames.iter().map(|frame| frame.1.len()).collect();
        assert_eq!((counts, saved), (vec![256, 256, 88], 597));

        let row = |bytes: usize| {
            let mut batch = RowBatch::new(1);
            batch.push([base::Datum::Text("x".repeat(bytes).into())]);
            let result = Ok(OpResult::Rows {
                batch,
                resume: None,
            });
            Body::Reply(Box::new(Reply {
                to: Reference::Read(1),
                result,
                finished: Finished::Open,
                wrote: false,
                wait: Position(0),
                contact: None,
                read_at: Ts::ZERO,
            }))
        };
        let large = PARCEL_BYTES_MAX;
        let sizes = [10, 10, large, 10, 10, large / 2, large / 2, 10];
        let sent = sizes.into_iter().enumerate();
        let sent = sent.map(|(at, bytes)| outgoing(16, word(at as u32, row(bytes)), 0));
        let (frames, _) = packed(sent.collect());
        let numbers: Vec<Vec<u32>> = frames.into_iter().map(|frame| frame.1).collect();
        let expected = [vec![0, 1], vec![2], vec![3, 4, 5], vec![6, 7]];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn a_program_travels_once() {
        let program = |width: u32| {
            let column = |at| expr::Expr::Column(at, base::Type::Int8);
            let body = Rows::Rows {
                filter: None,
                projection: (0..width).map(column).collect(),
            };
            ProgramPlan::new(body).bind(&[])
        };
        let read = |number: u32, program: &Program| {
            let op = Op::Get {
                key: Key::new(IndexId(1), Slot(1), vec![1]),
                read: Read::Lock(LockMode::Shared),
                program: program.clone(),
            };
            let request = ReadRequest {
                read: 1,
                planned: 1,
                in_doubt_timeout_us: 0,
                priority_ts: Ts::ZERO,
                alone: false,
                op,
            };
            outgoing(16, word(number, Body::Read(Box::new(request))), 0)
        };
        let (one, two) = (program(1), program(2));
        let mut out = vec![
            read(0, &one),
            read(1, &one),
            outgoing(16, word(2, Body::Ack), 0),
            read(3, &one),
            read(4, &two),
            read(5, &two),
            read(6, &one),
        ];
        let durability = Durability {
            durable: Position(0),
            first: None,
        };
        assert_eq!(pack(&mut out, 0, HERE, durability), 6);
        let Message::Wire(message) = &out[0].message else {
            panic!("{out:?}");
        };
        let bytes = codec::to_vec(message);
        let WireMessage::Parcel(parcel) = codec::decode(&bytes).unwrap() else {
            panic!("{message:?}");
        };
        let mut words = parcel.words.clone();
        let empty = words
            .iter_mut()
            .map(|word| program_of(word).is_some_and(|p| is_same(p)));
        let empty: Vec<bool> = empty.collect();
        assert_eq!(empty, [false, true, false, true, false, true, false]);
        let widths = parcel
            .unpack()
            .map(|mut word| Some(live(&mut word)?.width()));
        let widths: Vec<Option<usize>> = widths.collect();
        let expected = [1, 1, 0, 1, 2, 2, 1].map(|width| (width > 0).then_some(width));
        assert_eq!(widths, expected);
    }
}
