//! What a fuzzer gives to the readers of messages (`test/fuzz`).

use super::message::{Answer, Order, greeted, greeting};
use super::packed::{PackedPart, PackedSecond};
use super::packed_sessions::{ChangedPiece, PackedSessions, PackedSessionsSecond};
use super::recorded::{Piece, Pieces};
use drive::run::parts::PartResult;
use drive::run::tally::{Share, count};
use drive::run::watch::SecondCounts;
use drive::tpcc::Recorded;
use sessions::interaction::Changes;
use sessions::run::parts::{Names, PartResult as SessionsPart};
use sessions::run::{Second, Tallies};
use sessions::table::Next;
use versions::{Access, Attempt, Book, Entry, Payment, Seen};

/// Kinds of transactions of the results in the corpus.
const KINDS: usize = 5;
/// Reads and writes of a history of a worker.
const OPERATIONS: usize = 1_000;
/// Interactions and states of the runs of sessions in the corpus.
const NAMES: &Names = &[("A", &["LOST"]), ("B", &[])];
const STATES: usize = 2;

/// Reads bytes as everything that either side may be sent.
pub fn fuzz(bytes: &[u8]) {
    // As a greeting.
    let _ = greeted(&String::from_utf8_lossy(bytes));
    if let Ok((order, rest)) = postcard::take_from_bytes::<Order>(bytes) {
        let again = postcard::to_extend(&order, Vec::new()).expect("it is written as it was");
        assert_eq!(
            postcard::from_bytes::<Order>(&again).ok(),
            Some(order),
            "what is written can be read"
        );
        assert!(rest.len() <= bytes.len());
    }
    if let Ok(answer) = postcard::from_bytes::<Answer>(bytes) {
        match answer {
            Answer::Second { counts, .. } => {
                let mut sum = SecondCounts::new(KINDS);
                if let Ok(counts) = counts.unpack() {
                    sum.merge(&counts);
                }
            }
            Answer::Done(part) => {
                let mut sum = Share::new(KINDS);
                if let Ok(result) = part.unpack(KINDS, None) {
                    sum.merge(&result.share);
                    sum.merge(&result.share);
                }
            }
            Answer::Seen(piece) => {
                let mut pieces = Pieces::new(OPERATIONS);
                // A piece that fits can be added twice.
                if pieces.add(&piece).is_ok() {
                    let _ = pieces.add(&piece);
                }
            }
            Answer::SessionsSecond { counts, .. } => {
                let mut sum = Second::new(NAMES.len());
                if let Ok((counts, _)) = counts.unpack(NAMES.len()) {
                    sum.merge(&counts);
                }
            }
            Answer::Changed(piece) => {
                let mut changes = Changes::default();
                // A piece that fits can be added twice.
                if piece.clone().add_to(&mut changes).is_ok() {
                    let _ = piece.add_to(&mut changes);
                    changes.merge(&changes.clone());
                }
            }
            Answer::SessionsDone(part) => {
                let mut sum = Tallies::new(NAMES.len());
                if let Ok((part, _)) = part.unpack(NAMES, STATES, Changes::default(), "w") {
                    sum.merge(&part.tallies);
                    sum.merge(&part.tallies);
                }
            }
            Answer::Refused(_)
            | Answer::Pong { .. }
            | Answer::Ready(_)
            | Answer::Beat { .. }
            | Answer::Competing(_) => {}
        }
    }
}

/// An attempt with a payment and a change of the stock.
fn recorded() -> Option<Recorded> {
    let attempt = Attempt::from_words([1, 5, 9, 0])?;
    let payment = Payment::new([1, 2, 3], [1, 2], 500)?;
    let mut book = Book::new(OPERATIONS);
    book.keep(
        attempt,
        &Seen {
            accesses: vec![Access::from_words([7, 8])?],
            entries: vec![Entry::Paid(payment)],
        },
    );
    Some(Recorded {
        book,
        since_us: 1 << 50,
        knows_all: true,
    })
}

/// A part of a run of sessions.
fn sessions_part() -> SessionsPart {
    let mut tallies = Tallies::new(NAMES.len());
    let tally = &mut tallies.by_interaction[0];
    tally.answered.insert("LOST", 3);
    tally.failed.insert(("conflict", String::from("40001")), 2);
    tally.conflicts.insert(String::from("40001"), 9);
    tallies.transitions.insert((None, 0, Next::State(1)), 5);
    tallies.transitions.insert((Some(1), 0, Next::End), 4);
    let mut changes = Changes::default();
    changes.note("counter", 7, 3, true);
    changes.note("counter", 9, -3, false);
    SessionsPart {
        tallies,
        changes,
        waiting: (vec![0, 1, 1], 2),
        refused: None,
    }
}

/// Valid inputs: a greeting, and every kind of message.
pub fn corpus() -> Vec<Vec<u8>> {
    let mut counts = SecondCounts::new(KINDS);
    let mut share = Share::new(KINDS);
    for us in [1, 700, 90_000, u64::MAX] {
        count(&mut counts.response, us);
        share
            .kinds
            .iter_mut()
            .for_each(|it| count(&mut it.response, us));
        share.count_step(us as usize % 7);
    }
    counts.aborts.insert(String::from("40001"), 3);
    share.messages.insert(String::from("40001"), String::new());
    let result = PartResult {
        share,
        counters: vec![1, 2, 3],
        recorded: None,
        cpu: Some(0.5),
        threads: vec![0.25],
    };
    let piece = recorded().and_then(|recorded| Piece::all(&recorded).next());
    let piece = piece.expect("something was recorded");
    let text = || String::from("--url=postgres://a/b");
    let orders = [
        Order::Prepare {
            arguments: vec![text(), text()],
            number: 1,
            count: 2,
        },
        Order::Ping,
        Order::Beat,
        Order::Begin { at_us: 1 << 40 },
        Order::Want(vec![30, 7]),
        Order::Stop,
        Order::Sessions {
            document: String::from("{}"),
            number: 0,
            count: 2,
        },
    ];
    let sessions = sessions_part();
    let changed = ChangedPiece::all(&sessions.changes).next();
    let answers = [
        Answer::Refused(text()),
        Answer::Pong {
            steady_us: 1 << 40,
            unix_us: 1 << 50,
        },
        Answer::Ready(vec![(text(), text())]),
        Answer::Beat { waiting: 7 },
        Answer::Second {
            second: 3,
            counts: PackedSecond::of(&counts),
        },
        Answer::Competing(vec![30, 7]),
        Answer::Seen(piece),
        Answer::Done(Box::new(PackedPart::of(&result))),
        Answer::SessionsSecond {
            second: 2,
            counts: PackedSessionsSecond::of(&Second::new(NAMES.len()), 3),
        },
        Answer::Changed(changed.expect("something was changed")),
        Answer::SessionsDone(Box::new(PackedSessions::of(&sessions, None))),
    ];
    let mut inputs = vec![greeting("cores 2 build 0").into_bytes()];
    let written = "messages are written";
    inputs.extend(orders.map(|it| postcard::to_extend(&it, Vec::new()).expect(written)));
    inputs.extend(answers.map(|it| postcard::to_extend(&it, Vec::new()).expect(written)));
    inputs
}
