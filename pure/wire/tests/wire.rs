//! Bytes of real clients to messages, replies to bytes, and malformed input.

use base::{Datum, OutColumn, Prng, RowBatch, SqlError, SqlState, Type};
use std::sync::Arc;
use wire::{
    ClientMessage, Decoder, Format, Incoming, Reply, Severity, Tag, TxnStatus, encode, fuzz,
};

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn startup(version: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = (rest.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(rest);
    bytes
}

const VERSION_3: u32 = 3 << 16;

/// All that a decoder says of these bytes on a fresh connection.
fn decode(bytes: &[u8]) -> Vec<Incoming> {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    std::iter::from_fn(|| decoder.next()).collect()
}

/// What comes after a startup packet.
fn decode_open(bytes: &[u8]) -> Vec<ClientMessage> {
    let all = [startup(VERSION_3, b"user\0ada\0\0").as_slice(), bytes].concat();
    let messages = decode(&all).into_iter().skip(1);
    messages
        .map(|incoming| match incoming {
            Incoming::Message(message) => message,
            other => panic!("{other:?} is not a message"),
        })
        .collect()
}

/// SQLSTATE and fatality of the only message.
fn refusal(bytes: &[u8]) -> (String, bool) {
    match decode(bytes).as_slice() {
        [Incoming::Message(ClientMessage::Malformed { error, fatal })] => {
            (error.state().to_string(), *fatal)
        }
        other => panic!("{other:?} is not one refusal"),
    }
}

fn encoded(reply: &Reply) -> Vec<u8> {
    let mut out = Vec::new();
    encode(reply, &mut out);
    out
}

#[test]
fn a_connection_begins_with_requests_for_encryption_and_parameters() {
    let mut bytes = startup(80_877_103, b"");
    bytes.extend(startup(80_877_104, b""));
    bytes.extend(startup(VERSION_3, b"User\0ada\0database\0shop\0\0"));
    bytes.extend(frame(b'X', b""));
    let parameters = vec![
        ("user".to_owned(), "ada".to_owned()),
        ("database".to_owned(), "shop".to_owned()),
    ];
    let expected = [
        Incoming::Refuse(b"N".to_vec()),
        Incoming::Refuse(b"N".to_vec()),
        Incoming::Message(ClientMessage::Startup { parameters }),
        Incoming::Message(ClientMessage::Terminate),
    ];
    assert_eq!(decode(&bytes), expected);
}

#[test]
fn unknown_versions_are_negotiated_or_refused() {
    let bytes = startup(VERSION_3 | 2, b"user\0ada\0_pq_.wish\0on\0\0");
    let said = decode(&bytes);
    let expected = b"v\0\0\0\x16\0\x03\0\0\0\0\0\x01_pq_.wish\0".to_vec();
    assert_eq!(said[0], Incoming::Refuse(expected));
    assert!(matches!(
        &said[1],
        Incoming::Message(ClientMessage::Startup { .. })
    ));
    assert_eq!(refusal(&startup(2 << 16, b"")), ("0A000".to_owned(), true));
    let twice = [startup(80_877_103, b""), startup(80_877_103, b"")].concat();
    assert!(matches!(
        &decode(&twice)[1],
        Incoming::Message(ClientMessage::Malformed { fatal: true, .. })
    ));
}

#[test]
fn a_cancel_request_is_the_whole_conversation() {
    let request = startup(80_877_102, b"\0\0\0\x07\xff\xff\xff\xff");
    assert_eq!(decode(&request), [Incoming::Cancel { pid: 7, secret: -1 }]);
    assert_eq!(
        refusal(&startup(80_877_102, b"\0")),
        ("08P01".to_owned(), true)
    );
}

#[test]
fn the_extended_protocol_is_read() {
    let mut bytes = frame(b'P', b"s\0select $1\0\0\x01\0\0\0\x17");
    bytes.extend(frame(
        b'B',
        b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\x00",
    ));
    bytes.extend(frame(b'D', b"Ss\0"));
    bytes.extend(frame(b'D', b"Pp\0"));
    bytes.extend(frame(b'E', b"p\0\0\0\0\x05"));
    bytes.extend(frame(b'E', b"p\0\xff\xff\xff\xff"));
    bytes.extend(frame(b'C', b"Ss\0"));
    bytes.extend(frame(b'C', b"P\0"));
    bytes.extend(frame(b'H', b""));
    bytes.extend(frame(b'S', b""));
    bytes.extend(frame(b'd', b"1\t2\n"));
    bytes.extend(frame(b'c', b""));
    bytes.extend(frame(b'f', b"no\0"));
    let text = |text: &str| text.to_owned();
    let expected = [
        ClientMessage::Parse {
            name: text("s"),
            text: text("select $1"),
            types: vec![23],
        },
        ClientMessage::Bind {
            portal: text("p"),
            statement: text("s"),
            formats: vec![Format::Binary],
            params: vec![Some(b"ab".to_vec()), None],
            result_formats: vec![Format::Text],
        },
        ClientMessage::DescribeStatement(text("s")),
        ClientMessage::DescribePortal(text("p")),
        ClientMessage::Execute {
            portal: text("p"),
            rows_max: 5,
        },
        ClientMessage::Execute {
            portal: text("p"),
            rows_max: 0,
        },
        ClientMessage::CloseStatement(text("s")),
        ClientMessage::ClosePortal(text("")),
        ClientMessage::Flush,
        ClientMessage::Sync,
        ClientMessage::CopyData(b"1\t2\n".to_vec()),
        ClientMessage::CopyDone,
        ClientMessage::CopyFail(text("no")),
    ];
    assert_eq!(decode_open(&bytes), expected);
}

#[test]
fn lengths_out_of_bounds_end_the_connection() {
    assert_eq!(refusal(b"\0\0\0\x04\0\x03\0\0").0, "08P01");
    assert_eq!(refusal(b"\x7f\0\0\0").0, "08P01");
    assert_eq!(refusal(b"\0\0\x27\x11\0").0, "08P01");
    assert_eq!(
        refusal(b"GET / HTTP/1.1\r\n\r\n"),
        ("08P01".to_owned(), true)
    );
    for length in [0u32, 3, 1 << 30, u32::MAX] {
        let bytes = [b"Q".as_slice(), &length.to_be_bytes(), &frame(b'S', b"")].concat();
        let said = decode_open(&bytes);
        assert!(
            matches!(&said[..], [ClientMessage::Malformed { fatal: true, .. }]),
            "{said:?}"
        );
    }
    let said = decode_open(&frame(b'!', b""));
    assert!(matches!(
        &said[..],
        [ClientMessage::Malformed { fatal: true, .. }]
    ));
}

#[test]
fn malformed_bodies_are_errors_that_the_connection_survives() {
    let cases: &[(u8, &[u8], &str)] = &[
        (b'P', b"s\0select 1\0\xff\xff", "08P01"),
        (b'P', b"no terminator", "08P01"),
        (b'B', b"\0\0\0\0\x7f\xff", "08P01"),
        (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0", "08P01"),
        (b'B', b"\0\0\0\x01\0\x07\0\0\0\0", "22023"),
        (b'D', b"X\0", "08P01"),
        (b'C', b"", "08P01"),
        (b'E', b"\0\0\0", "08P01"),
        (b'S', b"surplus", "08P01"),
        (b'P', b"\0\xff\0\0\0", "22021"),
    ];
    for (tag, body, state) in cases {
        let said = decode_open(&[frame(*tag, body), frame(b'S', b"")].concat());
        let [
            ClientMessage::Malformed {
                error,
                fatal: false,
            },
            ClientMessage::Sync,
        ] = &said[..]
        else {
            panic!("{said:?} for {body:?}");
        };
        assert_eq!(error.state().to_string(), *state, "{body:?}");
    }
    // A bad query string is answered by an error and ReadyForQuery without a Sync of the client.
    for bad in [
        frame(b'Q', b"select '\xc3'\0"),
        frame(b'F', b"\0\0\x06\x3e\0\0\0\0\0\x02"),
        frame(b'F', b"\0\0\x06\x3e\0\0\0\x05\0\0"),
        frame(b'F', b"\0\0\x06\x3e\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        frame(
            b'F',
            b"\0\0\x06\x3e\0\x02\0\0\0\0\0\x01\xff\xff\xff\xff\0\0",
        ),
        frame(b'F', b"\0\0\x06\x3e"),
    ] {
        let said = decode_open(&bad);
        assert!(
            matches!(&said[..], [ClientMessage::BadQuery(_)]),
            "{said:?}"
        );
    }
}

#[test]
fn a_call_of_a_function_is_read_with_its_arguments() {
    let call = b"\0\0\x03\xba\0\x01\0\x01\0\x02\0\0\0\x01\x07\xff\xff\xff\xff\0\x01";
    assert_eq!(
        decode_open(&frame(b'F', call)),
        [ClientMessage::FunctionCall {
            function: 954,
            formats: vec![Format::Binary],
            args: vec![Some(vec![7]), None],
            result_format: Format::Binary,
        }]
    );
}

/// Bytes of the largest message that is stored, behind its tag.
const LARGEST: usize = wire::MESSAGE_BYTES_MAX;

/// A message whose length says `length` bytes.
fn large(tag: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![b' '; 1 + length];
    bytes[0] = tag;
    bytes[1..5].copy_from_slice(&(length as u32).to_be_bytes());
    *bytes.last_mut().expect("there is a tag") = 0;
    bytes
}

#[test]
fn a_message_that_is_too_large_is_answered_and_not_stored() {
    let [ClientMessage::Query(text)] = &decode_open(&large(b'Q', LARGEST - 1))[..] else {
        panic!("the largest statement is taken");
    };
    assert_eq!(text.len(), LARGEST - 6);
    for (tag, what) in [
        (b'Q', "statement"),
        (b'B', "set of parameters"),
        (b'd', "piece"),
    ] {
        let mut decoder = Decoder::new();
        decoder.push(&startup(VERSION_3, b"user\0ada\0\0"));
        assert!(decoder.next().is_some());
        let mut said = Vec::new();
        let mut bytes = large(tag, LARGEST + 1);
        bytes.extend(frame(b'Q', b"select 1\0"));
        for read in bytes.chunks(1 << 20) {
            decoder.push(read);
            said.extend(std::iter::from_fn(|| decoder.next()));
            assert!(decoder.buffered_bytes() < 1 << 20);
        }
        let [
            Incoming::Message(refused),
            Incoming::Message(ClientMessage::Query(next)),
        ] = &said[..]
        else {
            panic!("{said:?}");
        };
        assert_eq!(next, "select 1");
        let (ClientMessage::BadQuery(error)
        | ClientMessage::Malformed {
            error,
            fatal: false,
        }) = refused
        else {
            panic!("{refused:?}");
        };
        let fields = error.fields();
        assert_eq!(error.state(), SqlState::PROGRAM_LIMIT);
        let size = format!("of {} bytes is too large", LARGEST + 1);
        assert!(
            fields.message.starts_with(what) && fields.message.ends_with(&size),
            "{error}"
        );
        let limit = format!("A message may have at most {LARGEST} bytes.");
        assert_eq!(fields.detail, limit);
    }
}

#[test]
fn a_large_message_without_room_is_answered_and_not_stored() {
    let mut decoder = Decoder::new();
    decoder.push(&startup(VERSION_3, b"user\0ada\0\0"));
    assert!(decoder.next().is_some());
    let mut bytes = large(b'Q', 4 << 20);
    bytes.extend(frame(b'Q', b"select 1\0"));
    let mut said = Vec::new();
    for read in bytes.chunks(64 << 10) {
        decoder.push(read);
        said.extend(std::iter::from_fn(|| decoder.next()));
        decoder.look_for_room(|wanted| wanted < 4 << 20);
        assert!(decoder.buffered_bytes() < 1 << 20);
    }
    let [
        Incoming::Message(ClientMessage::BadQuery(error)),
        Incoming::Message(ClientMessage::Query(next)),
    ] = &said[..]
    else {
        panic!("{said:?}");
    };
    assert_eq!(error.state(), SqlState::OUT_OF_MEMORY);
    assert_eq!(next, "select 1");
}

#[test]
fn the_split_into_reads_does_not_matter() {
    let mut bytes = startup(VERSION_3, b"user\0ada\0\0");
    bytes.extend(frame(b'Q', b"select 1\0"));
    bytes.extend(frame(b'd', &vec![7; 100_000]));
    bytes.extend(frame(b'Q', b"\xff\0"));
    bytes.extend(frame(b'X', b""));
    let whole = decode(&bytes);
    for size in [1, 2, 3, 5, 1000, 65_536] {
        let mut decoder = Decoder::new();
        let mut said = Vec::new();
        for read in bytes.chunks(size) {
            decoder.push(read);
            said.extend(std::iter::from_fn(|| decoder.next()));
        }
        assert_eq!(said, whole, "reads of {size} bytes");
        assert_eq!(decoder.buffered_bytes(), 0);
    }
}

#[test]
fn a_message_waits_for_one_that_has_come() {
    let mut decoder = Decoder::new();
    decoder.push(&startup(196_608, b"user\0ada\0\0"));
    assert_eq!(decoder.next_tag(), None, "before the startup packet");
    decoder.next();
    let execute = frame(b'E', b"\0\0\0\0\0");
    let sync = frame(b'S', b"");
    decoder.push(&[execute.as_slice(), &sync[..4]].concat());
    assert_eq!(decoder.next_tag(), Some(b'E'));
    let Some(Incoming::Message(message)) = decoder.next() else {
        panic!("an Execute has come")
    };
    assert_eq!(decoder.next_tag(), None, "a part of Sync");
    decoder.push(&sync[4..]);
    assert_eq!(decoder.next_tag(), Some(b'S'));
    assert!(message.may_wait_for(b'S'));
    assert!(!message.may_wait_for(b'B'), "Execute runs something");
    assert!(
        !ClientMessage::Sync.may_wait_for(b'B'),
        "Sync ends something"
    );
    assert!(ClientMessage::ClosePortal(String::new()).may_wait_for(b'E'));
    assert!(
        !ClientMessage::ClosePortal(String::new()).may_wait_for(b'd'),
        "data of a COPY"
    );
}

#[test]
fn rows_are_encoded_in_the_form_of_each_column() {
    let column = |name: &str, ty| OutColumn {
        name: name.into(),
        ty,
        table: 16_384,
        attribute: 1,
    };
    let columns: Arc<[OutColumn]> = [
        column("id", Type::Int4),
        column("name", Type::Varchar(Some(10))),
    ]
    .into();
    let formats: Arc<[Format]> = [Format::Binary, Format::Text].into();
    let description = encoded(&Reply::RowDescription(columns.clone(), formats.clone()));
    let expected = b"T\0\0\0\x32\0\x02\
        id\0\0\0\x40\0\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01\
        name\0\0\0\x40\0\0\x01\0\0\x04\x13\xff\xff\0\0\0\x0e\0\0";
    assert_eq!(description, expected);
    let mut batch = RowBatch::new(2);
    batch.push([Datum::Int(7), "bo".into()]);
    batch.push([Datum::Null, Datum::Null]);
    let rows = encoded(&Reply::Rows(columns, formats, batch));
    let expected = b"D\0\0\0\x14\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x02bo\
        D\0\0\0\x0e\0\x02\xff\xff\xff\xff\xff\xff\xff\xff";
    assert_eq!(rows, expected);
}

#[test]
fn errors_carry_all_their_fields() {
    let error = SqlError::new(SqlState::UNIQUE, "duplicate")
        .detail("d")
        .hint("h")
        .at(12)
        .table("t")
        .constraint("t_pkey")
        .column("c");
    let body = b"SERROR\0VERROR\0C23505\0Mduplicate\0Dd\0Hh\0P12\0tt\0cc\0nt_pkey\0\0";
    assert_eq!(
        encoded(&Reply::Error(Severity::Error, error)),
        frame(b'E', body)
    );
    let notice = SqlError::new(SqlState::WARNING, "with\u{0}zero, of \u{0}16400\u{0}t");
    let body = b"SWARNING\0VWARNING\0C01000\0Mwithzero, of t\0\0";
    assert_eq!(
        encoded(&Reply::Error(Severity::Warning, notice)),
        frame(b'N', body)
    );
}

#[test]
fn the_result_of_a_call_is_one_value() {
    let result = |datum: Datum, format| {
        let columns: Arc<[OutColumn]> = Arc::from([OutColumn {
            name: "loread".into(),
            ty: Type::Int4,
            table: 0,
            attribute: 0,
        }]);
        let mut batch = RowBatch::new(1);
        batch.push(vec![datum]);
        encoded(&Reply::FunctionResult(columns, Arc::from([format]), batch))
    };
    let binary = result(Datum::Int(258), Format::Binary);
    assert_eq!(binary, b"V\0\0\0\x0c\0\0\0\x04\0\0\x01\x02");
    let text = result(Datum::Int(258), Format::Text);
    assert_eq!(text, b"V\0\0\0\x0b\0\0\0\x03258");
    let null = result(Datum::Null, Format::Binary);
    assert_eq!(null, b"V\0\0\0\x08\xff\xff\xff\xff");
}

#[test]
fn small_replies_have_their_bytes() {
    let cases: &[(Reply, &[u8])] = &[
        (Reply::AuthenticationOk, b"R\0\0\0\x08\0\0\0\0"),
        (
            Reply::ParameterStatus("a".into(), "b".into()),
            b"S\0\0\0\x08a\0b\0",
        ),
        (
            Reply::BackendKey { pid: 1, secret: -1 },
            b"K\0\0\0\x0c\0\0\0\x01\xff\xff\xff\xff",
        ),
        (Reply::Ready(TxnStatus::Failed), b"Z\0\0\0\x05E"),
        (
            Reply::ParameterDescription(vec![Type::Int8]),
            b"t\0\0\0\x0a\0\x01\0\0\0\x14",
        ),
        (Reply::NoData, b"n\0\0\0\x04"),
        (
            Reply::CommandComplete(Tag::Insert(0)),
            b"C\0\0\0\x0fINSERT 0 0\0",
        ),
        (
            Reply::CommandComplete(Tag::Count("SELECT", 1234)),
            b"C\0\0\0\x10SELECT 1234\0",
        ),
        (
            Reply::CommandComplete(Tag::Word("BEGIN")),
            b"C\0\0\0\x0aBEGIN\0",
        ),
        (
            Reply::CopyIn(2, Format::Text),
            b"G\0\0\0\x0b\0\0\x02\0\0\0\0",
        ),
        (
            Reply::CopyOut(1, Format::Binary),
            b"H\0\0\0\x09\x01\0\x01\0\x01",
        ),
        (
            Reply::CopyData(b"\x02\0\0\0x\n\x03\0\0\0yz\n".to_vec()),
            b"d\0\0\0\x06x\nd\0\0\0\x07yz\n",
        ),
        (Reply::Close, b""),
    ];
    for (reply, bytes) in cases {
        assert_eq!(encoded(reply), *bytes, "{reply:?}");
    }
}

#[test]
fn arbitrary_bytes_never_panic() {
    let mut prng = Prng::new(20_240_229);
    for round in 0..20_000u32 {
        let length = prng.below(120) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| prng.below(256) as u8).collect();
        if round % 2 == 0 && length > 12 {
            // A plausible frame: known tag, small length.
            bytes[0] = b"QPBDECSHdcfXF"[prng.below(13) as usize];
            bytes[1..5].copy_from_slice(&(4 + prng.below(64) as u32).to_be_bytes());
        }
        fuzz(&bytes);
    }
}
