//! The tables that statements work on. Tables of `READ` keep their rows. Tables of `WRITTEN` are
//! filled anew after a number of changes.

use base::Type;

/// A table as the generator knows it.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Type)],
}

const NUMERIC: Type = Type::Numeric(None);

/// Tables that are only read.
pub(crate) const READ: [Table; 4] = [
    Table {
        name: "t1",
        columns: &[
            ("id", Type::Int4),
            ("a", Type::Int4),
            ("b", Type::Int8),
            ("c", Type::Text),
            ("d", NUMERIC),
            ("e", Type::Bool),
            ("f", Type::Float8),
            ("g", Type::Timestamp(None)),
            ("h", Type::Date),
        ],
    },
    Table {
        name: "t2",
        columns: &[
            ("k1", Type::Int4),
            ("k2", Type::Int4),
            ("a", Type::Int4),
            ("v", Type::Text),
            ("n", NUMERIC),
            ("z", Type::Timestamptz(None)),
            ("xs", crate::values::INT4S),
        ],
    },
    Table {
        name: "t3",
        columns: &[
            ("s", Type::Text),
            ("i2", Type::Int2),
            ("r", Type::Float4),
            ("vc", Type::Varchar(None)),
            ("ch", Type::Char(0)),
            ("by", Type::Bytea),
            ("u", Type::Uuid),
            ("ip", Type::Inet),
            ("net", Type::Cidr),
            ("mac", Type::Macaddr),
            ("tz", Type::Timetz(None)),
            ("vb", Type::Varbit(None)),
            ("iv", Type::Interval(None)),
            ("ts", crate::values::TEXTS),
        ],
    },
    Table {
        name: "nothing",
        columns: &[("id", Type::Int4), ("x", Type::Text)],
    },
];

/// Tables that statements change.
pub(crate) const WRITTEN: [Table; 2] = [
    Table {
        name: "m1",
        columns: &[
            ("id", Type::Int4),
            ("a", Type::Int4),
            ("b", Type::Text),
            ("c", NUMERIC),
            ("u", Type::Int4),
        ],
    },
    Table {
        name: "m2",
        columns: &[
            ("k1", Type::Int4),
            ("k2", Type::Text),
            ("m", Type::Int4),
            ("at", Type::Timestamp(None)),
        ],
    },
];

/// Makes the tables that are only read.
pub(crate) const MAKE_READ: &str = "
CREATE TABLE t1 (id int PRIMARY KEY, a int, b bigint, c text, d numeric(10,2), e boolean,
    f double precision, g timestamp, h date);
CREATE INDEX t1_a ON t1 (a);
CREATE INDEX t1_c ON t1 (c, b);
CREATE TABLE t2 (k1 int, k2 int, a int, v text, n numeric, z timestamptz, xs int[],
    PRIMARY KEY (k1, k2));
CREATE INDEX t2_a ON t2 (a);
CREATE TABLE t3 (s text PRIMARY KEY, i2 smallint, r real, vc varchar(10), ch char(5), by bytea,
    u uuid, ip inet, net cidr, mac macaddr, tz timetz, vb varbit, iv interval, ts text[]);
CREATE TABLE nothing (id int PRIMARY KEY, x text);
INSERT INTO t1 VALUES
    (1, 1, 10, 'a', 1.50, true, 0.5, '2020-02-29 12:34:56', '2020-02-29'),
    (2, 1, 20, 'b', 2.25, false, 1.5, '2000-01-01 00:00:00', '2000-01-01'),
    (3, 2, 10, 'abc', -3.75, NULL, -2.25, '1999-12-31 23:59:59.999999', '1999-12-31'),
    (4, 2, NULL, NULL, NULL, true, NULL, NULL, NULL),
    (5, 3, 30, 'ABC', 0.00, false, 100, '2024-07-04 06:07:08.9', '2024-07-04'),
    (6, NULL, 30, 'Hello World', 99.99, true, 0, '2024-07-04 06:07:08.9', '2023-03-31'),
    (7, 3, 70, 'x_y%z', 1.50, false, -0.125, '1970-01-01 00:00:00', '1970-01-01'),
    (8, 5, -7, '', 10.10, NULL, 3, '2100-12-31 01:30:00', '2100-12-31'),
    (9, 7, 10, 'it''s', 7.00, true, 1234.5, '2020-02-29 12:34:56', '2024-07-04'),
    (10, 1, 20, 'zebra', -1.00, false, 0.5, '2023-03-31 01:30:00', '2020-02-29'),
    (11, 0, 0, 'äöü', 5.55, true, 2.25, '2001-02-03 04:05:06', '2001-02-03'),
    (12, 9, 5, 'aaa', 0.01, false, 8, '2001-02-03 04:05:06', '2001-02-04');
INSERT INTO t2 VALUES
    (1, 1, 1, 'a', 1.5, '2020-02-29 12:34:56+00', '{1,2,3}'),
    (1, 2, 2, 'b', 2.500, '2000-01-01 00:00:00+00', '{}'),
    (1, 5, 2, 'abc', NULL, NULL, '{NULL,7}'),
    (2, 1, 3, NULL, 1000000.125, '1999-12-31 23:59:59.5+00', NULL),
    (2, 7, NULL, 'Hello World', -7, '2024-07-04 06:07:08+00', '{5}'),
    (3, 3, 9, 'zebra', 0.0, '2024-07-04 06:07:08+00', '{3,3}'),
    (5, 0, 1, '', 33.333, '1970-01-01 00:00:00+00', '{1,2}'),
    (7, 7, 7, 'ABC', 7, '2020-02-29 12:34:56+00', '{9,8,7,6}'),
    (9, 1, NULL, 'aaa', 0.1, '2001-02-03 04:05:06+00', '{1}');
INSERT INTO t3 VALUES
    ('a', 1, 0.5, 'one', 'ab', '\\x6162', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.0.0.1',
        '10.0.0.0/8', '08:00:2b:01:02:03', '12:34:56+00', '101', '1 day', '{a,b}'),
    ('b', 2, -1.25, 'two', 'c', '\\x', '00000000-0000-0000-0000-000000000000', '10.0.0.1/24',
        '192.168.1.0/24', '00:00:00:00:00:00', '12:34:56-05:30', '', '1 mon', '{}'),
    ('abc', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    ('Zebra', 7, 100, 'Hello', 'abcde', '\\xdeadbeef', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
        '::1', '::/0', 'ff:ff:ff:ff:ff:ff', '23:59:59.999999+02', '0000000111', '-2 hours',
        '{NULL,x}'),
    ('', 3, 3, '', '', '\\x00', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '255.255.255.255',
        '10.0.0.1/32', '08:00:2b:01:02:03', '00:00:00-02', '1', '1 year 2 mons', '{a}'),
    ('äöü', -3, 2.25, 'x%', 'Z', '\\xff00ff', NULL, 'fe80::1/64', NULL, NULL, NULL, NULL,
        '00:00:01.5', '{\"x y\",b}');
";

/// Makes the tables that are written, and drops those of an earlier run.
pub(crate) const MAKE_WRITTEN: &str = "
DROP TABLE IF EXISTS m2;
DROP TABLE IF EXISTS m1;
CREATE TABLE m1 (id int PRIMARY KEY, a int DEFAULT 7 CHECK (a < 1000), b text NOT NULL,
    c numeric(8,2), u int UNIQUE);
CREATE INDEX m1_a ON m1 (a, b);
CREATE TABLE m2 (k1 int, k2 text, m int REFERENCES m1 (id), at timestamp,
    PRIMARY KEY (k1, k2));
";

/// Empties the tables that are written and fills them.
pub(crate) const FILL_WRITTEN: &str = "
DELETE FROM m2;
DELETE FROM m1;
INSERT INTO m1 VALUES (1, 1, 'a', 1.50, 11), (2, 2, 'b', 2.25, 12), (3, NULL, 'c', NULL, NULL),
    (4, 4, 'abc', -1.00, 14), (5, 5, '', 99.99, NULL), (6, 1, 'zebra', 0.00, 16);
INSERT INTO m2 VALUES (1, 'a', 1, '2020-02-29 12:34:56'), (1, 'b', 2, NULL), (2, 'a', 1, NULL),
    (3, 'abc', NULL, '2000-01-01 00:00:00'), (5, '', 4, '1999-12-31 23:59:59');
";

/// Queries for the rows of the tables that are written.
pub(crate) const CONTENTS: [&str; 2] = [
    "SELECT * FROM m1 ORDER BY id",
    "SELECT * FROM m2 ORDER BY k1, k2",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement that names a column which is not there fails on both servers, and shows nothing.
    #[test]
    fn the_tables_have_the_columns_that_statements_name() {
        for table in READ.iter().chain(&WRITTEN) {
            let begin = format!("CREATE TABLE {} (", table.name);
            let made = [MAKE_READ, MAKE_WRITTEN].join("\n");
            let (_, rest) = made.split_once(&begin).expect(table.name);
            let (columns, _) = rest.split_once(");").expect("the end of the columns");
            for (column, _) in table.columns {
                let mut parts = columns.split([',', '\n']).map(str::trim);
                let named = |part: &str| part.split(' ').next() == Some(column);
                assert!(parts.any(named), "{}.{column}", table.name);
            }
        }
    }
}
