//! Messages and merged counts; whole runs are in `bin/trellis/tests/cluster/workers.rs`.

use super::message::{Answer, Line, Order, greeted, greeting, read_line, receive};
use super::packed::{PackedHistogram, PackedPart, PackedSecond, PackedShare};
use super::packed_sessions::{ChangedPiece, PackedSessions, PackedSessionsSecond};
use super::recorded::{Piece, Pieces, Summary};
use super::{Crew, FORMAT, serve};
use base::Prng;
use drive::run::others::Others;
use drive::run::parts::PartResult;
use drive::run::tally::{LATENCY_US_MAX, Outcome, Share, Times, count};
use drive::run::watch::SecondCounts;
use drive::shape::Done;
use drive::tpcc::{Recorded, RunOptions};
use sessions::interaction::Changes;
use sessions::run::parts::{Names, PartResult as SessionsPart};
use sessions::run::{Second, Tallies};
use sessions::table::Next;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use versions::{Access, Attempt, Book, Entry, Payment, Seen};

const KINDS: usize = 5;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// One transaction: its kind, its times, how it ended, and in which step.
struct Input(usize, Times, Outcome, usize);

fn inputs(count: u64) -> Vec<Input> {
    let mut prng = Prng::new(7);
    let mut input = |number: u64| {
        // From a microsecond to beyond the longest time that is told apart.
        let us = 1 << prng.below(33);
        let response_us = us + prng.below(us);
        let times = Times {
            response_us,
            service_us: response_us / 2,
            queue_us: response_us / 3,
        };
        let outcome = match prng.below(20) {
            0 => Outcome::RolledBack,
            1 => Outcome::Failed(format!("reason {}", number % 3)),
            2 => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let step = prng.below(300) as usize;
        Input(prng.below(KINDS as u64) as usize, times, outcome, step)
    };
    (0..count).map(&mut input).collect()
}

fn note(share: &mut Share, Input(kind, times, outcome, step): &Input) {
    let tally = &mut share.kinds[*kind];
    tally.record(outcome, *times, true);
    tally.count_in_phase(outcome);
    tally.note_done(Done::committed(3), 1 + (times.response_us % 2) as u32);
    *tally.aborts.entry(String::from("40001")).or_default() += times.queue_us % 3;
    tally.unfinished += u64::from(times.response_us % 50 == 0);
    share.whole[*kind].committed += 1;
    share.whole[*kind].units += 3;
    share.deferred.record(outcome, *times, true);
    share.count_step(*step);
    count(&mut share.lateness, times.queue_us);
    let message = || format!("message of {kind}");
    share
        .messages
        .entry(kind.to_string())
        .or_insert_with(message);
}

/// What comes of a share on its way through a connection.
fn sent(share: Share) -> Share {
    let part = PackedPart::of(&PartResult {
        share,
        counters: vec![1, 2, 3],
        recorded: None,
        cpu: Some(0.5),
        threads: vec![0.25, 0.75],
    });
    let (near, mut far) = pair();
    let answer = Answer::Done(Box::new(part));
    let sending = answer.clone();
    let sender = std::thread::spawn(move || Line::new(&near).unwrap().send(&sending).unwrap());
    let received = receive::<Answer>(&mut far, super::message::ANSWER_BYTES_MAX).unwrap();
    sender.join().unwrap();
    assert_eq!(received, answer);
    let Answer::Done(part) = received else {
        panic!("it is the same")
    };
    let result = part.unpack(KINDS, None).unwrap();
    assert_eq!((result.counters, result.cpu), (vec![1, 2, 3], Some(0.5)));
    result.share
}

/// The same transactions, counted by one process and by two: equal in each step of each histogram.
#[test]
fn histograms_of_two_workers_are_those_of_one() {
    let inputs = inputs(40_000);
    let (mut one, mut two) = (Share::new(KINDS), [Share::new(KINDS), Share::new(KINDS)]);
    for (number, input) in inputs.iter().enumerate() {
        note(&mut one, input);
        note(&mut two[usize::from(number % 3 == 0)], input);
    }
    let mut merged = Share::new(KINDS);
    for share in two {
        merged.merge(&sent(share));
    }
    assert_eq!(merged.kinds, one.kinds);
    assert_eq!(merged.deferred, one.deferred);
    assert_eq!(merged.lateness, one.lateness);
    assert_eq!((&merged.whole, &merged.steps), (&one.whole, &one.steps));
    assert_eq!(merged.messages, one.messages);
    for (merged, one) in merged.kinds.iter().zip(&one.kinds) {
        let raw = |histogram: &hdrhistogram::Histogram<u64>| {
            let recorded = histogram.iter_recorded();
            let pairs = recorded.map(|it| (it.value_iterated_to(), it.count_at_value()));
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(raw(&merged.response), raw(&one.response));
        assert!(raw(&merged.response).len() > 1_000, "there is something");
        for quantile in [0.0, 0.5, 0.99, 0.9999, 1.0] {
            assert_eq!(merged.response_at(quantile), one.response_at(quantile));
        }
        let means = [&merged.response, &one.response].map(|it| it.mean().to_bits());
        assert_eq!(means[0], means[1]);
    }
    // The comparison sees a single transaction.
    note(&mut one, &inputs[0]);
    assert_ne!(merged.kinds, one.kinds);
}

#[test]
fn seconds_are_added() {
    let mut sum = SecondCounts::new(2);
    for number in 1..=3 {
        let mut counts = SecondCounts::new(2);
        counts.committed = vec![number, 10];
        count(&mut counts.response, 100 * number);
        counts.aborts.insert(String::from("40P01"), number);
        counts.failed = 1;
        sum.merge(&PackedSecond::of(&counts).unpack().unwrap());
    }
    assert_eq!((sum.committed, sum.failed), (vec![6, 30], 3));
    assert_eq!((sum.response.len(), sum.response.max()), (3, 300));
    assert_eq!(sum.aborts["40P01"], 6);
}

/// A worker that is out of its mind does not take the coordinator with it.
#[test]
fn counts_that_cannot_be_are_refused() {
    let histogram = |pairs: &[(u64, u64)]| {
        let bytes = postcard::to_extend(&pairs.to_vec(), Vec::new()).unwrap();
        postcard::from_bytes::<PackedHistogram>(&bytes).unwrap()
    };
    for good in [&[][..], &[(1, 1)], &[(LATENCY_US_MAX, 5), (7, 1)]] {
        assert!(histogram(good).unpack().is_ok(), "{good:?}");
    }
    for bad in [
        &[(0, 1)][..],
        &[(u64::MAX, 1)],
        &[(1, u64::MAX)],
        &[(1, 1 << 48), (2, 1 << 48)],
        &[(3 * LATENCY_US_MAX, 1)],
    ] {
        assert!(histogram(bad).unpack().is_err(), "{bad:?}");
    }
    let share = PackedShare::of(&Share::new(KINDS));
    assert!(share.clone().unpack(KINDS).is_ok());
    assert!(share.unpack(KINDS + 1).is_err());
    let mut huge = Share::new(KINDS);
    huge.whole[0].committed = u64::MAX;
    assert!(PackedShare::of(&huge).unpack(KINDS).is_err());
    huge.whole[0].committed = 0;
    huge.kinds[1].aborts.insert(String::new(), u64::MAX);
    assert!(PackedShare::of(&huge).unpack(KINDS).is_err());
}

/// A history of so many attempts that pay and read.
fn recorded(attempts: u64) -> Recorded {
    let mut book = Book::new(usize::MAX);
    for number in 0..attempts {
        let payment = Payment::new([1, 2, 3], [1, 2], number + 1).unwrap();
        let access = |word| Access::from_words([word, number]).unwrap();
        let seen = Seen {
            accesses: vec![access(number % 1_000), access(1 << 40)],
            entries: vec![Entry::Paid(payment)],
        };
        let words = [1 + number % 7, number, number + 50, number % 3];
        book.keep(Attempt::from_words(words).unwrap(), &seen);
    }
    book.miss(5, 60_000);
    Recorded {
        book,
        since_us: 77,
        knows_all: true,
    }
}

/// All that a book holds.
fn told(recorded: &Recorded) -> Vec<(Attempt, Seen)> {
    let sights = recorded.book.sights();
    sights.map(|(attempt, seen)| (*attempt, seen)).collect()
}

#[test]
fn a_history_comes_whole_in_pieces() {
    let sent = recorded(70_000);
    let pieces: Vec<Piece> = Piece::all(&sent).collect();
    assert_eq!(pieces.len(), 3);
    let mut came = Pieces::new(140_000);
    for piece in &pieces {
        let bytes = postcard::to_extend(piece, Vec::new()).unwrap();
        assert!(bytes.len() < 4 << 20, "{}", bytes.len());
        let piece: Piece = postcard::from_bytes(&bytes).unwrap();
        came.add(&piece).unwrap();
    }
    let came = came.complete(&Summary::of(&sent)).unwrap();
    assert_eq!(told(&came), told(&sent));
    let gaps = (came.book.missing(), came.book.hidden_from());
    assert_eq!((gaps, came.since_us), ((5, 60_000), 77));
    // A piece that is missing, or comes twice.
    for numbers in [&[0, 1][..], &[0, 1, 2, 2]] {
        let mut some = Pieces::new(140_000);
        for number in numbers {
            some.add(&pieces[*number]).unwrap();
        }
        assert!(some.complete(&Summary::of(&sent)).is_err());
    }
    // More than was asked for.
    let mut full = Pieces::new(1);
    let sent_too_much = (0..1_000).find_map(|_| full.add(&pieces[0]).err());
    assert!(sent_too_much.is_some());
}

#[test]
fn a_history_that_cannot_be_is_refused() {
    type Words = (Vec<([u64; 4], u32, u32)>, Vec<[u64; 2]>, Vec<[u64; 4]>);
    let added = |words: Words| {
        let bytes = postcard::to_extend(&words, Vec::new()).unwrap();
        let piece: Piece = postcard::from_bytes(&bytes).unwrap();
        Pieces::new(10).add(&piece).is_ok()
    };
    let attempt = [1, 5, 9, 0];
    let access = [7, 8];
    assert!(added((vec![(attempt, 1, 0)], vec![access], vec![])));
    for bad in [
        // More than there is, less than there is, no outcome, an end before the begin.
        (vec![(attempt, 2, 0)], vec![access], vec![]),
        (vec![(attempt, 0, 0)], vec![access], vec![]),
        (vec![(attempt, 0, 1)], vec![], vec![]),
        (vec![([1, 5, 9, 3], 1, 0)], vec![access], vec![]),
        (vec![([1, 5, 4, 0], 1, 0)], vec![access], vec![]),
        (vec![([1, 5, u64::MAX, 0], 1, 0)], vec![access], vec![]),
        (vec![([u64::MAX, 5, 9, 0], 1, 0)], vec![access], vec![]),
        // No item, no entry.
        (vec![(attempt, 1, 0)], vec![[u64::MAX, 8]], vec![]),
        (vec![(attempt, 0, 1)], vec![], vec![[7, 1, 1, 1]]),
        (vec![(attempt, u32::MAX, 0)], vec![access], vec![]),
    ] {
        assert!(!added(bad.clone()), "{bad:?}");
    }
}

#[test]
fn messages_have_an_end() {
    let refused = |bytes: &[u8]| {
        let (mut near, mut far) = pair();
        near.write_all(bytes).unwrap();
        drop(near);
        receive::<Order>(&mut far, 1_000).unwrap_err().kind()
    };
    // Longer than is allowed, shorter than it says, no message, more than one message.
    assert_eq!(refused(&[255; 64]), ErrorKind::InvalidData);
    assert_eq!(refused(&[0, 0, 3, 0xe8, 1]), ErrorKind::UnexpectedEof);
    assert_eq!(refused(&[0, 0]), ErrorKind::UnexpectedEof);
    assert_eq!(refused(&[0, 0, 0, 1, 77]), ErrorKind::InvalidData);
    assert_eq!(refused(&[0, 0, 0, 2, 1, 1]), ErrorKind::InvalidData);
    let (near, mut far) = pair();
    let order = Order::Begin { at_us: u64::MAX };
    Line::new(&near).unwrap().send(&order).unwrap();
    assert_eq!(receive::<Order>(&mut far, 1_000).unwrap(), order);
}

#[test]
fn greetings_tell_versions_apart() {
    let own = greeting("cores 4");
    assert_eq!(greeted(own.trim_end()), Ok("cores 4"));
    assert_eq!(greeted(greeting("").trim_end()), Ok(""));
    let other = own.replace(&format!("format {FORMAT}"), "format 99");
    let why = greeted(other.trim_end()).unwrap_err();
    assert!(
        why.contains("versions differ") && why.contains("format 99"),
        "{why}"
    );
    let older = own.replace(env!("CARGO_PKG_VERSION"), "0.0.9");
    assert!(greeted(older.trim_end()).unwrap_err().contains("0.0.9"));
    assert!(greeted("GET / HTTP/1.1").unwrap_err().contains("no other"));
    let (mut near, mut far) = pair();
    near.write_all(&[b'a'; 600]).unwrap();
    let long = read_line(&mut far, Duration::from_secs(60)).unwrap_err();
    assert_eq!(long.kind(), ErrorKind::InvalidData);
    // A byte now and then does not keep a line open.
    let (mut near, mut far) = pair();
    let dribble = std::thread::spawn(move || {
        while near.write_all(b"a").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let begun = Instant::now();
    let slow = read_line(&mut far, Duration::from_millis(200)).unwrap_err();
    assert!(matches!(
        slow.kind(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock
    ));
    assert!(begun.elapsed() < Duration::from_secs(60));
    drop(far);
    dribble.join().unwrap();
}

/// A worker that refuses every run, on a thread that lives as long as the test's process.
fn worker() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let accept = |_: &[String]| Err::<RunOptions, _>(String::from("not today"));
        serve(&listener, &accept, &|_| {})
    });
    address
}

fn said(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // What was not read makes the end of the connection an error.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn strangers_are_sent_away_and_coordinators_served() {
    let address = worker();
    let answer = said(&address, b"GET / HTTP/1.1\n");
    assert!(answer.contains("takes no other requests"), "{answer}");
    let other = greeting("").replace(env!("CARGO_PKG_VERSION"), "9.9.9");
    let answer = said(&address, other.as_bytes());
    assert!(answer.contains("versions differ: 9.9.9"), "{answer}");
    // A right greeting, and rubbish behind it: the connection ends, the worker does not.
    for rubbish in [&[255; 4096][..], &[0, 0, 0, 1, 77], b"\0\0\0\x05hello"] {
        let mut bytes = greeting("").into_bytes();
        bytes.extend_from_slice(rubbish);
        said(&address, &bytes);
    }
    let crew = || Crew::join(std::slice::from_ref(&address), Vec::new());
    let crew_of_one = until_free(crew);
    assert_eq!(crew_of_one.count(), 1);
    // It works for one at a time, and for the next one when that one has gone.
    let error = crew().unwrap_err().to_string();
    assert!(error.contains("it works for 127.0.0.1:"), "{error}");
    drop(crew_of_one);
    until_free(crew);
}

/// The worker is free once it has noticed that the last one has gone.
fn until_free(crew: impl Fn() -> Result<Crew, links::DriveError>) -> Crew {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match crew() {
            Ok(crew) => return crew,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn coordinators_say_what_is_wrong_with_a_worker() {
    let join = |address: &str| {
        let joined = Crew::join(&[address.to_owned()], Vec::new());
        joined.unwrap_err().to_string()
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let own = env!("CARGO_PKG_VERSION");
    let versions = [
        format!("9.9.9 format {FORMAT} cores 2 build 0"),
        format!("{own} format 77 cores 2 build 0"),
    ];
    let answers = versions.map(|version| format!("trellis bench worker {version}\n"));
    let server = std::thread::spawn(move || {
        for answer in answers.iter().map(String::as_str).chain(["220 mail\n"]) {
            let mut guest = listener.accept().unwrap().0;
            guest.write_all(answer.as_bytes()).unwrap();
            let _ = guest.read(&mut [0; 512]);
        }
    });
    assert!(join(&address).contains(&format!("versions differ: 9.9.9 format {FORMAT}")));
    assert!(join(&address).contains(&format!("versions differ: {own} format 77")));
    assert!(join(&address).contains("what listens there is no worker"));
    server.join().unwrap();
    let error = join(&address);
    assert!(error.contains("no worker listens there"), "{error}");
    let error = join("nonsense");
    assert!(error.contains("worker nonsense: "), "{error}");
}

const NAMES: &Names = &[("BUY", &["SOLD_OUT"]), ("LOOK", &[])];
const STATES: usize = 3;

/// Counts one request of a session, by a number from which everything follows.
fn note_request(part: &mut SessionsPart, number: u64) {
    let us = 1 + (number * 7_919) % 3_000_000;
    let place = (number % 2) as usize;
    let SessionsPart {
        tallies, changes, ..
    } = part;
    let tally = &mut tallies.by_interaction[place];
    let result = match number % 10 {
        0 => "NOTHING",
        1 if place == 1 => "FAILED",
        4 if place == 0 => "SOLD_OUT",
        _ => "",
    };
    *tally.answered.entry(result).or_default() += 1;
    if number.is_multiple_of(17) {
        let text = format!("no {}", number % 3);
        *tally.failed.entry(("conflict", text)).or_default() += 1;
        *tally.conflicts.entry(String::from("40001")).or_default() += 2;
        tally.unknown += 1;
    }
    tally.in_phase += 1;
    tally.attempts += 3;
    tally.round_trips += number % 5;
    for times in [
        &mut tally.response,
        &mut tally.service,
        &mut tally.queue,
        &mut tally.think,
    ] {
        times.histogram.record(us).unwrap();
        times.sum_ns += u128::from(us * 1_000 + number % 1_000);
    }
    let next = match number % 4 {
        0 => Next::End,
        at => Next::State(at as usize - 1),
    };
    let from = (!number.is_multiple_of(5)).then_some((number % 3) as usize);
    *tallies.transitions.entry((from, 0, next)).or_default() += 1;
    tallies.sessions_begun += 1;
    tallies.reconnected += number % 2;
    changes.note("item", number % 70, 1, !number.is_multiple_of(9));
    changes.note("user", number % 11, -2, true);
    part.waiting.0.push((number % 3) as usize);
    part.waiting.1 += number % 2;
}

fn no_requests() -> SessionsPart {
    SessionsPart {
        tallies: Tallies::new(NAMES.len()),
        changes: Changes::default(),
        waiting: (Vec::new(), 0),
        refused: None,
    }
}

/// What comes of a part on its way through messages.
fn sent_sessions(part: &SessionsPart) -> SessionsPart {
    let mut changes = Changes::default();
    for piece in ChangedPiece::all(&part.changes) {
        let bytes = postcard::to_extend(&piece, Vec::new()).unwrap();
        let piece: ChangedPiece = postcard::from_bytes(&bytes).unwrap();
        piece.add_to(&mut changes).unwrap();
    }
    let bytes = postcard::to_extend(&PackedSessions::of(part, None), Vec::new()).unwrap();
    let packed: PackedSessions = postcard::from_bytes(&bytes).unwrap();
    packed.unpack(NAMES, STATES, changes, "w").unwrap().0
}

/// The same requests, counted by one process and by three: equal in every count and each step.
#[test]
fn sessions_of_three_workers_are_those_of_one() {
    let (mut one, mut three) = (no_requests(), [no_requests(), no_requests(), no_requests()]);
    for number in 0..20_000 {
        note_request(&mut one, number);
        note_request(&mut three[(number % 3) as usize], number);
    }
    let mut merged = no_requests();
    for part in &three {
        let part = sent_sessions(part);
        merged.tallies.merge(&part.tallies);
        merged.changes.merge(&part.changes);
        merged.waiting.0.extend(part.waiting.0);
        merged.waiting.1 += part.waiting.1;
    }
    assert_eq!(merged.tallies, one.tallies);
    assert_eq!(merged.changes, one.changes);
    merged.waiting.0.sort_unstable();
    one.waiting.0.sort_unstable();
    assert_eq!(merged.waiting, one.waiting);
    let [of_merged, of_one] = [&merged, &one].map(|part| {
        let times = &part.tallies.by_interaction[0].response;
        let steps = times.histogram.iter_recorded();
        let pairs = steps.map(|it| (it.value_iterated_to(), it.count_at_value()));
        (pairs.collect::<Vec<_>>(), times.sum_ns)
    });
    assert_eq!(of_merged, of_one);
    assert!(of_one.0.len() > 1_000, "there is something");
    // The comparison sees a single request.
    note_request(&mut one, 1);
    assert_ne!(merged.tallies, one.tallies);
}

#[test]
fn sessions_that_cannot_be_are_refused() {
    let mut part = no_requests();
    (0..100).for_each(|number| note_request(&mut part, number));
    let unpacked = |part: &SessionsPart, names: &Names, states| {
        let changes = part.changes.clone();
        PackedSessions::of(part, None)
            .unpack(names, states, changes, "w")
            .is_ok()
    };
    assert!(unpacked(&part, NAMES, STATES));
    // Another workload, a state that is none, a result that is none.
    assert!(!unpacked(&part, &NAMES[..1], STATES));
    assert!(!unpacked(&part, NAMES, STATES - 1));
    assert!(!unpacked(&part, &[("BUY", &[]), ("LOOK", &[])], STATES));
    // Changes that have not come.
    let packed = PackedSessions::of(&part, None);
    assert!(
        packed
            .unpack(NAMES, STATES, Changes::default(), "w")
            .is_err()
    );
    let mut huge = part.clone();
    huge.tallies.by_interaction[0].attempts = u64::MAX;
    assert!(!unpacked(&huge, NAMES, STATES));
    huge = part.clone();
    huge.waiting.1 = u64::MAX;
    assert!(!unpacked(&huge, NAMES, STATES));
    let mut second = Second::new(NAMES.len());
    second.failed = 7;
    assert!(
        PackedSessionsSecond::of(&second, 3)
            .unpack(NAMES.len())
            .is_ok()
    );
    assert!(PackedSessionsSecond::of(&second, 3).unpack(1).is_err());
    assert!(
        PackedSessionsSecond::of(&second, u64::MAX)
            .unpack(NAMES.len())
            .is_err()
    );
}
