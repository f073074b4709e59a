//! Histories as text: what others write, what we write, and what is no history.

use crate::support::{append, at, list, names};
use base::Prng;
use check::text::{Format, ReadError, Wrong, read, write};
use check::{History, Level, Op, Outcome, Txn};

fn text(history: &History, format: Format) -> String {
    let mut text = String::new();
    write(history, format, &mut text).expect("a string takes everything");
    text
}

fn edn(text: &str) -> Result<History, ReadError> {
    read(text, Format::Edn)
}

/// As histories of Elle's documentation look.
const ELLE: &str = "
{:type :invoke, :f :txn, :value [[:a :x [1 2]] ], :process :nemesis, :time 1, :index 0}
; The first reads nothing, in spite of the second.
{:index 1 :type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:r :y nil]], :time 10}
#jepsen.history.Op{:index 2, :time 11, :type :invoke, :process 1, :f :txn,
                   :value [[:append :y 1] [:r :x nil]], :error #_ nothing nil}
{:index 3 :type :ok, :process 0, :f :txn, :value [[:append :x 1] [:r :y nil]], :time 20}
{:index 4 :type :ok, :process 1, :f :txn, :value [[:append :y 1] [:r :x []]], :time 21}
{:index 5 :type :invoke, :process 2, :f :txn, :value [[:append :x 2] [:r :y nil]], :time 30}
{:index 6 :type :info, :process 2, :f :txn, :value [[:append :x 2] [:r :y nil]], :time 31,
 :latency 0.25}
{:index 7 :type :invoke, :process 3, :f :txn, :value [[:append :x 3]], :time 32}
{:index 8 :type :fail, :process 3, :f :txn, :value [[:append :x 3]], :time 33}
";

#[test]
fn what_others_write_is_read() {
    let history = edn(ELLE).expect("a history");
    assert_eq!(history.txns.len(), 4);
    let first = &history.txns[0];
    assert_eq!(
        (first.process, first.invoked, first.completed),
        (0, 10, Some(20))
    );
    let (x, y) = (u64::MAX, u64::MAX - 1);
    assert_eq!(history.key_names[&x], ":x");
    // An answer of nil from a list is an empty list, no answer is left out.
    assert_eq!(first.ops, [append(x, 1), list(y, &[])]);
    assert_eq!(history.txns[2].ops, [append(x, 2)]);
    assert_eq!(history.txns[2].outcome, Outcome::Unknown);
    assert_eq!(history.txns[3].outcome, Outcome::Aborted);
    assert_eq!(names(&history, Level::Serializable), ["G2-item"]);
    let vector = format!("[{ELLE}]");
    assert_eq!(edn(&vector), Ok(history));
}

#[test]
fn registers_are_told_from_lists() {
    let history = edn("
{:type :invoke, :process 0, :value [[:w 1 5] [:r 2 nil]]}
{:type :ok, :process 0, :value [[:w 1 5] [:r 2 nil]]}
{:type :invoke, :process 0, :value [[:r 1 nil]]}
{:type :ok, :process 0, :value [[:r 1 5]]}
{:type :invoke, :process 1, :value [[:r 1 nil]]}")
    .expect("a history");
    let absent = Op::Read {
        key: 2,
        value: None,
    };
    assert_eq!(history.txns[0].ops[1], absent);
    // Without times, the order of the text is the time.
    let times: Vec<(u64, Option<u64>)> = history
        .txns
        .iter()
        .map(|txn| (txn.invoked, txn.completed))
        .collect();
    assert_eq!(times, [(0, Some(1)), (2, Some(3)), (4, None)]);
    assert_eq!(history.txns[2].outcome, Outcome::Unknown);
}

#[test]
fn json_is_the_same_in_other_clothes() {
    let lines = r#"{"type":"invoke","process":0,"time":5,"f":"txn",
"value":[["append","k\u0041",1],["r",7,null]]}
{"type":"ok","process":0,"time":6,"f":"txn","value":[["append","kA",1],["r",7,[]]],"note":-1.5e3}"#;
    let history = read(lines, Format::Json).expect("a history");
    assert_eq!(history.key_names[&u64::MAX], "\"kA\"");
    assert_eq!(history.txns[0].ops, [append(u64::MAX, 1), list(7, &[])]);
    let array = format!("[{}]", lines.replace("}\n", "},"));
    assert_eq!(read(&array, Format::Json), Ok(history));
}

fn random_op(prng: &mut Prng) -> Op {
    let (key, value) = (prng.below(5), prng.next_u64() >> prng.below(64));
    let values = |prng: &mut Prng| (0..prng.below(4)).map(|_| prng.below(9)).collect();
    match prng.below(12) {
        0 => Op::Append { key, value },
        1 => Op::ReadList {
            key,
            values: values(prng),
        },
        2 => Op::ReadLists {
            low: 0,
            high: key,
            seen: vec![(key, vec![value])],
        },
        3 => Op::Write {
            key: key + 10,
            value,
        },
        4 => Op::Delete { key: key + 10 },
        5 => Op::Read {
            key: key + 10,
            value: Some(value),
        },
        6 => Op::Read {
            key: key + 10,
            value: None,
        },
        7 => Op::ReadRange {
            low: 10,
            high: key + 10,
            seen: vec![(key + 10, value)],
        },
        8 => Op::Add {
            key: key + 20,
            delta: value as i64,
        },
        9 => Op::ReadCounter {
            key: key + 20,
            value: value as i64,
        },
        10 => Op::Compare {
            key: key + 20,
            bound: value as i64,
            at_least: prng.below(2) == 0,
        },
        _ => Op::ReadTable {
            rows: vec![(key + 30, value as i64), (40, -1)],
        },
    }
}

#[test]
fn what_is_written_is_read_again() {
    let mut prng = Prng::new(12);
    for _ in 0..500 {
        let mut history = History::new();
        // Ends are in ascending order, as a reader orders transactions.
        let mut clock = [0u64; 3];
        for end in 0..prng.below(12) {
            let process = prng.below(3) as usize;
            let begin = clock[process] + prng.below(end * 10 + 1 - clock[process]);
            clock[process] = end * 10;
            let mut txn = at(process as u32, begin, end * 10, &[]);
            txn.ops = (0..prng.below(4)).map(|_| random_op(&mut prng)).collect();
            txn.outcome = match prng.below(3) {
                0 => Outcome::Aborted,
                1 => Outcome::Unknown,
                _ => Outcome::Committed,
            };
            let is_read = |op: &Op| matches!(op, Op::Read { value: None, .. });
            // A register that was absent cannot be told from a read without an answer there.
            if txn.outcome != Outcome::Committed {
                txn.ops.retain(|op| !is_read(op));
            }
            // Some write to each register, so that it is known as one.
            txn.ops.push(Op::Write {
                key: 10 + end % 5,
                value: 1 << 40 | end,
            });
            history.push(txn);
        }
        for key in 10..15 {
            let ops = [Op::Write { key, value: 7 }];
            let process = 50 + key as u32;
            history.push(at(process, 200 + key, 200 + key, &ops));
        }
        for format in [Format::Edn, Format::Json] {
            let written = text(&history, format);
            let again = read(&written, format);
            assert_eq!(again.as_ref(), Ok(&history), "{written}");
        }
    }
}

#[test]
fn an_unknown_end_is_written_before_the_next_begin() {
    let mut history = History::new();
    let mut txn = Txn::begin(4, 10);
    txn.ops = vec![append(1, 1)];
    history.push(txn.clone());
    history.push(at(4, 20, 30, &[append(1, 2)]));
    txn.invoked = 40;
    txn.ops = vec![append(1, 3)];
    history.push(txn);
    let again = edn(&text(&history, Format::Edn)).expect("a history");
    let ends: Vec<Option<u64>> = again.txns.iter().map(|txn| txn.completed).collect();
    assert_eq!(ends, [Some(20), Some(30), None]);
    assert_eq!(again.txns[0].outcome, Outcome::Unknown);
}

#[test]
fn names_of_keys_survive() {
    let mut history = History::new();
    history.push(at(
        1,
        0,
        1,
        &[append(u64::MAX, 1), append(u64::MAX - 1, 1), append(3, 1)],
    ));
    history.key_names.insert(u64::MAX, ":x/y".to_string());
    history
        .key_names
        .insert(u64::MAX - 1, "\"a \\\"b\\\"\"".to_string());
    assert_eq!(edn(&text(&history, Format::Edn)), Ok(history.clone()));
    let again = read(&text(&history, Format::Json), Format::Json).expect("a history");
    assert_eq!(again.key_names[&u64::MAX], "\"x/y\"");
}

#[test]
fn what_is_no_history_is_refused_with_its_line() {
    let invoke = "{:type :invoke, :process 0, :time 9, :value [[:append 1 1]]}\n";
    let field = Wrong::Field;
    let micro = |text: &str| Wrong::BadMicroOp(text.to_string());
    for (text, line, wrong) in [
        ("{:type :ok".to_string(), 1, Wrong::UnexpectedEnd),
        ("\n\n]".to_string(), 3, Wrong::Unexpected(']')),
        ("{:type}".to_string(), 1, Wrong::Unexpected('}')),
        ("\n7".to_string(), 2, Wrong::NotAnOperation),
        ("{:type :ok}".to_string(), 1, field("process")),
        ("{:process -1}".to_string(), 1, field("process")),
        ("{:process 1}".to_string(), 1, field("type")),
        ("{:process 1 :type :invoke}".to_string(), 1, field("value")),
        (
            "{:process 1 :type :done}".to_string(),
            1,
            Wrong::UnknownType("done".to_string()),
        ),
        (
            format!("{invoke}{invoke}"),
            2,
            Wrong::Overlap { process: 0 },
        ),
        (
            "{:process 1 :type :ok :value []}".to_string(),
            1,
            Wrong::NeverInvoked { process: 1 },
        ),
        (
            format!("{invoke}{{:process 0 :type :ok :time 8 :value []}}"),
            2,
            Wrong::TimeRunsBack { process: 0 },
        ),
        (
            format!("{invoke}{{:process 0 :type :ok :time 20 :value []}}\n{invoke}"),
            3,
            Wrong::TimeRunsBack { process: 0 },
        ),
        (
            invoke.replace("[:append 1 1]", "[:append 1 -1]"),
            1,
            micro("[:append 1 -1]"),
        ),
        (
            invoke.replace("[:append 1 1]", "[:push 1 {}]"),
            1,
            micro("[:push 1 {...}]"),
        ),
        (
            invoke.replace("[:append 1 1]", "[:r 1 [1 \"a\"]]"),
            1,
            micro("[:r 1 [1 \"a\"]]"),
        ),
        (
            invoke.replace("[:append 1 1]", "[:compare 1 5 :above]"),
            1,
            micro("[:compare 1 5 :above]"),
        ),
        (invoke.replace("[:append 1 1]", "5"), 1, micro("5")),
        (
            invoke.replace(":time 9", ":time 99999999999999999999"),
            1,
            Wrong::NumberTooLarge,
        ),
        ("\"\\q\"".to_string(), 1, Wrong::BadEscape),
        ("[".repeat(100), 1, Wrong::TooDeep),
        ("#_".repeat(100), 1, Wrong::TooDeep),
        ("#_".repeat(200_000), 1, Wrong::TooDeep),
        ("#a ".repeat(100), 1, Wrong::TooDeep),
    ] {
        assert_eq!(edn(&text), Err(ReadError { line, wrong }), "{text}");
    }
    for (text, line, wrong) in [
        ("[\n{]", 2, Wrong::Unexpected(']')),
        ("[{}", 1, Wrong::Field("process")),
        ("[1,]", 1, Wrong::NotAnOperation),
        ("nul", 1, Wrong::Unexpected('n')),
        ("{\"a\" 1}", 1, Wrong::Unexpected('1')),
        ("{\"a\": -}", 1, Wrong::Unexpected('-')),
        ("[] []", 1, Wrong::Unexpected('[')),
        ("[[[[\n\"x", 2, Wrong::UnexpectedEnd),
    ] {
        let error = read(text, Format::Json);
        assert_eq!(error, Err(ReadError { line, wrong }), "{text}");
    }
    let error = edn("{:process 1}").expect_err("no type");
    assert_eq!(
        error.to_string(),
        "line 1: the field \"type\" is missing or of a wrong type"
    );
}

#[test]
fn broken_text_never_panics() {
    let mut prng = Prng::new(77);
    let whole: Vec<char> = ELLE.chars().collect();
    for _ in 0..3_000 {
        let mut text = whole.clone();
        for _ in 0..=prng.below(4) {
            let place = prng.below(text.len() as u64) as usize;
            match prng.below(3) {
                0 => text.truncate(place),
                1 => {
                    text.remove(place);
                }
                _ => text[place] = ['[', ']', '{', '"', '#', '\\', '9', ':'][place % 8],
            }
            if text.is_empty() {
                break;
            }
        }
        let text: String = text.into_iter().collect();
        // Whatever comes: an error or a history that can be judged.
        for format in [Format::Edn, Format::Json] {
            if let Ok(history) = read(&text, format) {
                let _ = names(&history, Level::StrictSerializable);
            }
        }
    }
}
