//! Valid inputs of every decoder.

mod disk;
mod network;

pub use disk::{checkpoints, manifests, records, segments};
pub use network::{frames, wire};

/// Statements of all kinds, among them those of real clients.
pub fn sql() -> Vec<Vec<u8>> {
    let texts = [
        include_str!("../../clients/psql/session.sql"),
        include_str!("../../clients/psql/errors.sql"),
        include_str!("../../clients/psql/describe.sql"),
        include_str!("../../sql/introspection/jdbc.sql"),
        include_str!("../../sql/introspection/psql_d_orders.sql"),
        include_str!("../../sql/introspection/psycopg.sql"),
        include_str!("../../sql/introspection/pgbench.sql"),
    ];
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for text in texts {
        inputs.extend(
            text.split_inclusive(";\n")
                .map(|statement| statement.as_bytes().to_vec()),
        );
    }
    let more = [
        "CREATE DATABASE d WITH (protocol = 'two_phase', durability = 'local')",
        "CREATE TABLE t (a int, b text, PRIMARY KEY (a)) PARTITION BY (a) WITH (replicated = true)",
        "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES ($1, DEFAULT) ON CONFLICT (a) DO NOTHING",
        "SELECT a FROM t WHERE b LIKE 'x%' ESCAPE '!' FOR UPDATE OF t NOWAIT",
        "EXPLAIN ANALYZE SELECT * FROM t a JOIN t b USING (a) WHERE a.b = ANY ($1)",
        "COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'x')",
        "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY; COMMIT AND CHAIN; ROLLBACK",
        "SELECT $tag$ a $ b $tag$, E'\\n\\x41\\'', U&'\\0041', X'1f', B'01', 'a' 'b', \"Q\"\"q\"",
        "SELECT 1e10, .5, 1., 0x1f, 1_000, -2147483648, (((((1)))))",
        "-- a comment\n/* another /* inside */ */ SELECT 1;;; SELECT 2",
        "PREPARE p (int, text) AS SELECT $1, $2; EXECUTE p (1, 'x'); DEALLOCATE ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SHOW PLACEMENT",
    ];
    inputs.extend(more.map(|statement| statement.as_bytes().to_vec()));
    inputs.retain(|input| !input.is_empty());
    inputs
}

/// Beginnings of row programs, among them deep ones: each byte that may open a nested
/// expression, again and again.
pub fn programs() -> Vec<Vec<u8>> {
    let mut inputs = vec![vec![0; 4], vec![1; 8], b"\x00\x00\x01\x01\x00\x00".to_vec()];
    // An addition of a column: once evaluated while it was decoded.
    inputs.push([&[3][..], &[1; 39]].concat());
    for kind in 0..=40 {
        for head in [&[0, 1][..], &[0, 0, 1], &[3, 1]] {
            inputs.push([head, &[kind; 16_000]].concat());
        }
    }
    inputs
}

/// What the planted decoder reads.
pub fn planted() -> Vec<Vec<u8>> {
    vec![b"L\x03abc".to_vec()]
}
