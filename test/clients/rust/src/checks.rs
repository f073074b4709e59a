//! The checks, one function each; a panic is a failure.

use futures_util::{SinkExt, StreamExt, TryStreamExt, future, pin_mut};
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, IsolationLevel, NoTls, SimpleQueryMessage};

/// Runs all checks one after another; answers their number.
pub(crate) async fn all(url: &str) -> usize {
    let mut client = connect(url).await;
    types_survive(&client).await;
    statements_are_prepared_once(&client).await;
    rows_come_in_portions(&mut client).await;
    transactions_end_as_told(&mut client).await;
    errors_have_their_codes(&mut client).await;
    copies_go_both_ways(&client).await;
    simple_queries_answer_each_statement(&client).await;
    requests_are_pipelined(&client).await;
    a_statement_is_cancelled(&client).await;
    conflicts_are_told_and_retried(url).await;
    the_catalog_knows_types(&client).await;
    11
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move {
        connection.await.unwrap();
    });
    client
}

fn code(result: Result<impl Sized, Error>) -> SqlState {
    let error = result.err().expect("an error is due");
    error
        .code()
        .expect("the error comes from the server")
        .clone()
}

async fn types_survive(client: &Client) {
    client
        .batch_execute(
            "CREATE TABLE kinds (b bool, i2 int2, i4 int4 PRIMARY KEY, i8 int8, f4 float4, \
             f8 float8, t text, v varchar(10), c char(4), y bytea)",
        )
        .await
        .unwrap();
    let insert = "INSERT INTO kinds VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let bytes: Vec<u8> = (0..=255).collect();
    for (id, sign) in [(1i32, 1i64), (2, -1)] {
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 10] = [
            &true,
            &i16::MAX,
            &id,
            &(i64::MAX * sign),
            &1.5f32,
            &-0.1f64,
            &"grüße \u{1f600} 'quoted'",
            &"ten chars!",
            &"ab",
            &bytes,
        ];
        assert_eq!(client.execute(insert, &values).await.unwrap(), 1);
    }
    let row = client
        .query_one("SELECT * FROM kinds WHERE i4 = $1", &[&2i32])
        .await
        .unwrap();
    assert!(row.get::<_, bool>("b"));
    assert_eq!(row.get::<_, i16>("i2"), i16::MAX);
    assert_eq!(row.get::<_, i64>("i8"), -i64::MAX);
    assert_eq!(
        (row.get::<_, f32>("f4"), row.get::<_, f64>("f8")),
        (1.5, -0.1)
    );
    assert_eq!(row.get::<_, &str>("t"), "grüße \u{1f600} 'quoted'");
    assert_eq!(row.get::<_, &str>("v"), "ten chars!");
    assert_eq!(row.get::<_, &str>("c"), "ab  ");
    assert_eq!(row.get::<_, Vec<u8>>("y"), bytes);
    let nulls = client
        .query_one(
            "SELECT $1::text, $2::int8, $3::bytea",
            &[&None::<&str>, &None::<i64>, &None::<&[u8]>],
        )
        .await
        .unwrap();
    assert_eq!(nulls.get::<_, Option<&str>>(0), None);
    assert_eq!(nulls.get::<_, Option<i64>>(1), None);
    assert_eq!(nulls.get::<_, Option<&[u8]>>(2), None);
}

async fn statements_are_prepared_once(client: &Client) {
    let statement = client
        .prepare("SELECT i8, t FROM kinds WHERE i4 = $1 AND b = $2")
        .await
        .unwrap();
    assert_eq!(statement.params(), [Type::INT4, Type::BOOL]);
    let columns = statement.columns();
    assert_eq!((columns[0].name(), columns[0].type_()), ("i8", &Type::INT8));
    assert_eq!((columns[1].name(), columns[1].type_()), ("t", &Type::TEXT));
    for _ in 0..20 {
        assert_eq!(
            client
                .query(&statement, &[&1i32, &true])
                .await
                .unwrap()
                .len(),
            1
        );
        assert!(
            client
                .query_opt(&statement, &[&9i32, &true])
                .await
                .unwrap()
                .is_none()
        );
    }
    let typed = client
        .prepare_typed("SELECT $1", &[Type::INT8])
        .await
        .unwrap();
    assert_eq!(
        client
            .query_one(&typed, &[&7i64])
            .await
            .unwrap()
            .get::<_, i64>(0),
        7
    );
    let nothing = client
        .prepare("DELETE FROM kinds WHERE i4 = $1")
        .await
        .unwrap();
    assert!(nothing.columns().is_empty());
    assert_eq!(client.execute(&nothing, &[&9i32]).await.unwrap(), 0);
    drop(statement);
}

async fn rows_come_in_portions(client: &mut Client) {
    client
        .batch_execute(
            "CREATE TABLE many (id int PRIMARY KEY, t text); \
             INSERT INTO many SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g",
        )
        .await
        .unwrap();
    let transaction = client.transaction().await.unwrap();
    let portal = transaction
        .bind("SELECT id FROM many ORDER BY id", &[])
        .await
        .unwrap();
    let mut seen = 0;
    loop {
        let rows = transaction.query_portal(&portal, 700).await.unwrap();
        for row in &rows {
            seen += 1;
            assert_eq!(row.get::<_, i32>(0), seen);
        }
        if rows.len() < 700 {
            break;
        }
    }
    assert_eq!(seen, 5000);
    transaction.commit().await.unwrap();
    let none: [i32; 0] = [];
    let rows = client
        .query_raw("SELECT id, t FROM many", none)
        .await
        .unwrap();
    pin_mut!(rows);
    let mut bytes = 0;
    while let Some(row) = rows.next().await {
        bytes += row.unwrap().get::<_, &str>(1).len();
    }
    assert_eq!(bytes, 500_000);
}

async fn transactions_end_as_told(client: &mut Client) {
    let count = "SELECT count(*) FROM kinds WHERE i4 >= 100";
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute("INSERT INTO kinds (i4) VALUES (100)", &[])
        .await
        .unwrap();
    let inside: i64 = transaction.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(inside, 1);
    transaction.rollback().await.unwrap();
    let after: i64 = client.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(after, 0);
    let levels = [
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ];
    for (number, level) in levels.into_iter().enumerate() {
        let builder = client.build_transaction().isolation_level(level);
        let transaction = builder.start().await.unwrap();
        let id = 200 + number as i32;
        transaction
            .execute("INSERT INTO kinds (i4) VALUES ($1)", &[&id])
            .await
            .unwrap();
        transaction.commit().await.unwrap();
    }
    let after: i64 = client.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(after, 3);
    let reader = client
        .build_transaction()
        .read_only(true)
        .start()
        .await
        .unwrap();
    let refused = reader.execute("DELETE FROM kinds", &[]).await;
    assert_eq!(code(refused), SqlState::READ_ONLY_SQL_TRANSACTION);
    reader.rollback().await.unwrap();
}

async fn errors_have_their_codes(client: &mut Client) {
    let cases = [
        ("SELEC 1", SqlState::SYNTAX_ERROR),
        ("SELECT * FROM missing", SqlState::UNDEFINED_TABLE),
        ("SELECT missing FROM kinds", SqlState::UNDEFINED_COLUMN),
        (
            "INSERT INTO kinds (i4) VALUES (1)",
            SqlState::UNIQUE_VIOLATION,
        ),
        (
            "INSERT INTO kinds (b) VALUES (true)",
            SqlState::NOT_NULL_VIOLATION,
        ),
        (
            "SELECT 1 / (i4 - i4) FROM kinds",
            SqlState::DIVISION_BY_ZERO,
        ),
        (
            "SELECT (i8 * 2)::int4 FROM kinds WHERE i4 = 1",
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(code(client.query(sql, &[]).await), expected, "{sql}");
        assert_eq!(
            client
                .query_one("SELECT 1", &[])
                .await
                .unwrap()
                .get::<_, i32>(0),
            1
        );
    }
    let error = client
        .query("INSERT INTO kinds (i4) VALUES (1)", &[])
        .await
        .unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.table(), Some("kinds"));
    assert_eq!(error.constraint(), Some("kinds_pkey"));
    assert_eq!(error.detail(), Some("Key (i4)=(1) already exists."));
    let transaction = client.transaction().await.unwrap();
    assert_eq!(
        code(transaction.query("SELECT 1 / 0", &[]).await),
        SqlState::DIVISION_BY_ZERO
    );
    let after = transaction.query("SELECT 1", &[]).await;
    assert_eq!(code(after), SqlState::IN_FAILED_SQL_TRANSACTION);
    transaction.rollback().await.unwrap();
}

async fn copies_go_both_ways(client: &Client) {
    client
        .batch_execute("CREATE TABLE copied (id int PRIMARY KEY, t text)")
        .await
        .unwrap();
    let sink = client
        .copy_in::<_, &[u8]>("COPY copied FROM STDIN")
        .await
        .unwrap();
    pin_mut!(sink);
    sink.send(b"1\tone\n2\t\\N\n3\tta".as_slice())
        .await
        .unwrap();
    sink.send(b"b\\there\n".as_slice()).await.unwrap();
    assert_eq!(sink.finish().await.unwrap(), 3);
    let text = copy_out(client, "COPY (SELECT * FROM copied ORDER BY id) TO STDOUT").await;
    assert_eq!(text, b"1\tone\n2\t\\N\n3\ttab\\there\n");
    let csv = "COPY (SELECT * FROM copied ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER true)";
    assert_eq!(
        copy_out(client, csv).await,
        b"id,t\n1,one\n2,\n3,tab\there\n"
    );
    let sink = client
        .copy_in::<_, &[u8]>("COPY copied FROM STDIN")
        .await
        .unwrap();
    pin_mut!(sink);
    sink.send(b"4\tfour\n1\tagain\n".as_slice()).await.unwrap();
    assert_eq!(code(sink.finish().await), SqlState::UNIQUE_VIOLATION);
    let count: i64 = client
        .query_one("SELECT count(*) FROM copied", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(count, 3);
}

async fn copy_out(client: &Client, sql: &str) -> Vec<u8> {
    let stream = client.copy_out(sql).await.unwrap();
    let pieces: Vec<_> = stream.try_collect().await.unwrap();
    pieces
        .iter()
        .flat_map(|piece| piece.iter().copied())
        .collect()
}

async fn simple_queries_answer_each_statement(client: &Client) {
    let sql = "SELECT 1 AS a; INSERT INTO copied VALUES (50, 'x'), (51, 'y'); \
               SELECT id, t FROM copied WHERE id >= 50 ORDER BY id; \
               DELETE FROM copied WHERE id >= 50";
    let mut rows = Vec::new();
    let mut counts = Vec::new();
    for message in client.simple_query(sql).await.unwrap() {
        match message {
            SimpleQueryMessage::Row(row) => rows.push(row.get(0).map(str::to_string)),
            SimpleQueryMessage::CommandComplete(count) => counts.push(count),
            _ => {}
        }
    }
    assert_eq!(
        rows,
        [
            Some("1".to_string()),
            Some("50".to_string()),
            Some("51".to_string())
        ]
    );
    assert_eq!(counts, [1, 2, 2, 2]);
    let failed = client
        .simple_query("INSERT INTO copied VALUES (60, ''); SELECT 1 / 0")
        .await;
    assert_eq!(code(failed), SqlState::DIVISION_BY_ZERO);
    let left = client
        .query("SELECT 1 FROM copied WHERE id = 60", &[])
        .await
        .unwrap();
    assert!(left.is_empty(), "a string of statements is one transaction");
    assert!(client.simple_query("").await.unwrap().len() <= 1);
}

async fn requests_are_pipelined(client: &Client) {
    let statement = client.prepare("SELECT $1::int4 + 1").await.unwrap();
    let numbers: Vec<i32> = (0..100).collect();
    let answers = numbers.iter().map(|number| {
        let statement = &statement;
        async move {
            client
                .query_one(statement, &[number])
                .await
                .unwrap()
                .get::<_, i32>(0)
        }
    });
    let answers = future::join_all(answers).await;
    assert_eq!(answers, (1..=100).collect::<Vec<i32>>());
    let wrong = client.query("SELECT 1 / $1::int4", &[&0i32]);
    let right = client.query_one(&statement, &[&1i32]);
    let (wrong, right) = future::join(wrong, right).await;
    assert_eq!(code(wrong), SqlState::DIVISION_BY_ZERO);
    assert_eq!(right.unwrap().get::<_, i32>(0), 2);
}

async fn a_statement_is_cancelled(client: &Client) {
    let token = client.cancel_token();
    let endless = client.query(
        "SELECT count(*) FROM many a, many b, many c WHERE a.t < b.t || c.t",
        &[],
    );
    // Again and again: a request that comes before the statement has begun has no effect.
    let cancel = async move {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            token.cancel_query(NoTls).await.unwrap();
        }
    };
    let start = Instant::now();
    pin_mut!(endless, cancel);
    let ended = future::select(endless, cancel).await;
    let future::Either::Left((result, _)) = ended;
    assert_eq!(code(result), SqlState::QUERY_CANCELED);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(
        client
            .query_one("SELECT 1", &[])
            .await
            .unwrap()
            .get::<_, i32>(0),
        1
    );
}

/// Two sessions add to one row at SERIALIZABLE; nothing may be lost, and a refusal is 40001 or
/// 40P01, which a client may repeat.
async fn conflicts_are_told_and_retried(url: &str) {
    let setup = connect(url).await;
    setup
        .batch_execute(
            "CREATE TABLE hot (id int PRIMARY KEY, n int NOT NULL); INSERT INTO hot VALUES (1, 0)",
        )
        .await
        .unwrap();
    let adders = [add_to_hot_row(url), add_to_hot_row(url)];
    future::join_all(adders).await;
    let total: i32 = setup
        .query_one("SELECT n FROM hot", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(total, 50);
}

async fn add_to_hot_row(url: &str) {
    let mut client = connect(url).await;
    let mut done = 0;
    let mut tries = 0;
    while done < 25 {
        tries += 1;
        assert!(tries < 5_000, "no progress");
        match add_once(&mut client).await {
            Ok(()) => done += 1,
            Err(error) => {
                let code = error.code().cloned();
                let expected = [
                    SqlState::T_R_SERIALIZATION_FAILURE,
                    SqlState::T_R_DEADLOCK_DETECTED,
                ];
                assert!(code.is_some_and(|code| expected.contains(&code)), "{error}");
            }
        }
    }
}

async fn add_once(client: &mut Client) -> Result<(), Error> {
    let builder = client
        .build_transaction()
        .isolation_level(IsolationLevel::Serializable);
    let transaction = builder.start().await?;
    let n: i32 = transaction
        .query_one("SELECT n FROM hot WHERE id = 1", &[])
        .await?
        .get(0);
    let n = n + 1;
    transaction
        .execute("UPDATE hot SET n = $1 WHERE id = 1", &[&n])
        .await?;
    transaction.commit().await
}

/// tokio-postgres asks pg_type for every type that it does not know.
async fn the_catalog_knows_types(client: &Client) {
    let statement = client
        .prepare("SELECT oid, typname FROM pg_catalog.pg_type WHERE typname = $1")
        .await
        .unwrap();
    for (name, oid) in [
        ("int4", 23u32),
        ("numeric", 1700),
        ("timestamptz", 1184),
        ("uuid", 2950),
    ] {
        let row = client.query_one(&statement, &[&name]).await.unwrap();
        assert_eq!(row.get::<_, u32>(0), oid);
    }
    let version: String = client
        .query_one("SHOW server_version", &[])
        .await
        .unwrap()
        .get(0);
    assert!(version.starts_with("15"), "{version}");
}
