//! Whole statements with values at the ends of their ranges: they give rows or an error, never a
//! panic. Functions and operators by themselves are tested in `expr/resolve/tests.rs`.

mod fake;

use base::Prng;
use expr::resolve::SIGNATURES;
use fake::Cluster;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Statements of one test run: about three seconds without optimisation.
const STATEMENTS: u64 = 9_000;

/// `{x}` stands for a random value of the list of that name in [`values`].
const TEMPLATES: &[&str] = &[
    "SELECT * FROM generate_series({i8}, {i8}, {i8}) LIMIT 5",
    "SELECT * FROM generate_series({i4}, {i4}) LIMIT 5",
    "SELECT * FROM generate_series({n}, {n}, {n}) LIMIT 5",
    "SELECT * FROM generate_series({ts}, {ts}, {iv}) LIMIT 5",
    "SELECT g, g * {i8} FROM generate_series(1, 3) g ORDER BY 2 LIMIT {i8} OFFSET {i8}",
    "SELECT * FROM t ORDER BY i8, n, f LIMIT {i8}",
    "SELECT * FROM t LIMIT {i8} OFFSET {i8}",
    "SELECT * FROM t WHERE i4 = {i8} OR i2 BETWEEN {i4} AND {i8}",
    "SELECT * FROM t WHERE id = {i8} AND i8 < {n} AND f > {f}",
    "SELECT * FROM t WHERE id IN ({i8}, {n}, {i4}) OR d + {i4} > {ts} OR at - {iv} < d",
    "SELECT * FROM t WHERE id > {i8} AND id <= {n} ORDER BY id DESC LIMIT 2",
    "SELECT sum(i2), sum(i4), sum(i8), sum(f), sum(n), sum(iv), avg(i8), avg(iv) FROM t \
     WHERE id < {i8}",
    "SELECT avg(n), variance(i8), stddev(n), var_pop(f), max(d), min(at), avg(f) FROM t \
     WHERE id < {i8}",
    "SELECT sum(i8 * {n}), avg(n * {n}), sum(DISTINCT f * {f}), count(DISTINCT iv * {f}) \
     FROM t WHERE id < {i8}",
    "SELECT x, sum(i8), array_agg(i8 ORDER BY n), string_agg(x, {t}) FROM t WHERE id < \
     {i8} GROUP BY x",
    "SELECT i8 + i8, n * n FROM t WHERE id = {i8}",
    "SELECT -i8, abs(i4), i2 << i4, i8 / i2, i8 % i4, @ i8 FROM t WHERE id = {i4}",
    "SELECT a.id, b.n FROM t a JOIN t b ON a.i8 = b.i8 + {i4} OR a.d = b.d + {i4}",
    "SELECT a.id FROM t a WHERE a.i8 > (SELECT max(b.i8) - {i8} FROM t b WHERE b.id = a.id)",
    "SELECT (string_to_array('a,b,c', ','))[{i4}]",
    "SELECT substring({t} FROM {i4} FOR {i4})",
    "SELECT left({t}, {i4})",
    "SELECT right({t}, {i4})",
    "SELECT substring({t}, {i4}, {i4})",
    "SELECT overlay({t} PLACING {t} FROM {i4} FOR {i4})",
    "SELECT lpad({t}, {i4}, {t})",
    "SELECT rpad({t}, {i4})",
    "SELECT split_part({t}, {t}, {i4})",
    "SELECT length(repeat({t}, {i4}))",
    "SELECT chr({i4})",
    "SELECT to_hex({i8})",
    "SELECT factorial({i8})",
    "SELECT extract(epoch FROM {ts})",
    "SELECT extract(julian FROM {d})",
    "SELECT date_part({t}, {iv})",
    "SELECT age({ts}, {ts})",
    "SELECT {ts} + {iv}",
    "SELECT {ts} - {ts}",
    "SELECT {d} + {i4}",
    "SELECT {d} - {d}",
    "SELECT {iv} * {f}",
    "SELECT {iv} / {f}",
    "SELECT -{iv}",
    "SELECT {ts} AT TIME ZONE {iv}",
    "SELECT date_trunc('week', {ts})",
    "SELECT date_bin({iv}, {ts}, {ts})",
    "SELECT to_char({ts}, {t})",
    "SELECT to_char({n}, {t})",
    "SELECT to_char({iv}, {t})",
    "SELECT to_char({i8}, {t})",
    "SELECT make_date({i4}, {i4}, {i4})",
    "SELECT make_interval({i4}, {i4}, {i4}, {i4}, {i4}, {i4}, {f})",
    "SELECT make_timestamp({i4}, 1, 1, {i4}, {i4}, {f})",
    "SELECT to_timestamp({f})",
    "SELECT to_timestamp({t}, {t})",
    "SELECT to_date({t}, {t})",
    "SELECT to_number({t}, {t})",
    "SELECT justify_interval({iv})",
    "SELECT justify_days({iv})",
    "SELECT justify_hours({iv})",
    "SELECT round({n}, {i4})",
    "SELECT trunc({n}, {i4})",
    "SELECT width_bucket({n}, {n}, {n}, {i4})",
    "SELECT power({n}, {n})",
    "SELECT {n} + {n}",
    "SELECT {n} * {n}",
    "SELECT {n} / {n}",
    "SELECT {n} % {n}",
    "SELECT {i8} * {i8}",
    "SELECT {i8} / {i8}",
    "SELECT {f} ^ {f}",
    "SELECT {i8}::int2",
    "SELECT {n}::int8",
    "SELECT {f}::int4",
    "SELECT {f}::numeric",
    "SELECT {n}::numeric(5, 2)",
    "SELECT {f}::real",
    "SELECT {t}::int",
    "SELECT {t}::date",
    "SELECT {t}::interval",
    "SELECT {t}::timestamptz",
    "SELECT {t}::numeric(38, 38)",
    "SELECT {t}::float8",
    "SELECT {n}::float4::numeric",
    "SELECT {ts}::date",
    "SELECT {d}::timestamp::date",
    "SELECT {ts}::text::timestamp",
    "SELECT pg_sleep({f})",
    "SELECT format({t}, {t}, {i4})",
    "SELECT regexp_replace({t}, {t}, {t})",
    "SELECT {t} ~ {t}",
    "SELECT {t} LIKE {t}",
    "INSERT INTO t (id, i2) VALUES ({i8}, {i8})",
    "INSERT INTO t (id, i4, n, x) VALUES ({i4}, {n}, {f}, {t}) ON CONFLICT (id) DO UPDATE \
     SET i4 = t.i4 + {i4}, n = t.n * {n}",
    "UPDATE t SET i8 = i8 + {i8} WHERE id = {i4}",
    "UPDATE t SET n = n - {n} WHERE id = {i4}",
    "UPDATE t SET n = n * 10 + {i8} WHERE id < {i8}",
    "UPDATE t SET i2 = i2 + {i4}, i4 = i4 - {i4} WHERE id = {i4}",
    "UPDATE t SET d = d + {i4}, at = at + {iv}, iv = iv + {iv} WHERE id = {i4}",
    "UPDATE t SET f = f * {f} WHERE id > {i8} RETURNING f, f * f, at - {iv}",
    "UPDATE t SET id = id + {i8} WHERE id = {i4}",
    "DELETE FROM t WHERE i8 = {i8} AND d - {i4} > {d}",
    "EXPLAIN SELECT * FROM t WHERE id BETWEEN {i8} AND {i8} AND i8 = {n} LIMIT {i8}",
];

fn values(kind: &str) -> &'static [&'static str] {
    match kind {
        "i4" => &[
            "-2147483648",
            "2147483647",
            "0",
            "1",
            "-1",
            "2",
            "3",
            "NULL",
            "40",
            "100000",
        ],
        "i8" => &[
            "(-9223372036854775808)",
            "9223372036854775807",
            "-2147483648",
            "2147483648",
            "0",
            "1",
            "(-1)",
            "2",
            "NULL",
        ],
        "n" => &[
            "99999999999999999999999999999999999999",
            "(-99999999999999999999999999999999999999)",
            "0.00000000000000000000000000000000000001",
            "1e37",
            "0",
            "1",
            "(-0.5)",
            "33.3333333333333333333333",
            "NULL::numeric",
        ],
        "f" => &[
            "'NaN'::float8",
            "'infinity'::float8",
            "'-infinity'::float8",
            "'1e308'::float8",
            "'-1e308'::float8",
            "'5e-324'::float8",
            "'-0'::float8",
            "0::float8",
            "0.1::float8",
            "'9.3e18'::float8",
        ],
        "d" => &[
            "date 'infinity'",
            "date '-infinity'",
            "date '5874897-12-31'",
            "date '4714-11-24 BC'",
            "date '2000-02-29'",
            "date '0001-01-01'",
        ],
        "ts" => &[
            "timestamp 'infinity'",
            "timestamp '-infinity'",
            "timestamp '294276-12-31 23:59:59.999999'",
            "timestamp '4714-11-24 00:00:00 BC'",
            "timestamp '2000-02-29 23:59:59.5'",
            "timestamp '0001-01-01'",
        ],
        "iv" => &[
            "interval '178956970 years 7 mons'",
            "interval '-178956970 years -8 mons'",
            "interval '2147483647 days'",
            "interval '-2147483648 days'",
            "interval '2562047788:00:54.775807'",
            "interval '-2562047788:00:54.775808'",
            "interval '0'",
            "interval '1 month -1 day 00:00:01'",
        ],
        "t" => &[
            "''",
            "'a'",
            "'äöü€\u{10ffff}'",
            "'9223372036854775808'",
            "'1e400'",
            "'infinity'",
            "'%1$s %-2147483648s %2147483648$s'",
            "'%9999999999s'",
            "'(((a*)*)*)*'",
            "'[[:alpha:]'",
            "'999999999999D99EEEE'",
            "'FMRN'",
            "'YYYYYYYY-MM-DD HH24:MI:SS.US'",
            "'99999999999999999999-99-99 99:99:99'",
            "'century'",
            "'2147483647 decades'",
            "'5874897-12-31'",
            "'294277-01-01'",
            "NULL",
        ],
        other => panic!("no values of kind {other}"),
    }
}

/// The template with values in its places.
fn filled(prng: &mut Prng, template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let (kind, behind) = behind.split_once('}').expect("a closing brace");
        let values = values(kind);
        out += before;
        out += values[prng.below(values.len() as u64) as usize];
        rest = behind;
    }
    out + rest
}

fn table() -> Cluster {
    let cluster = Cluster::new();
    let statements = [
        "CREATE TABLE t (id int8 PRIMARY KEY, i2 int2, i4 int4, i8 int8, f float8, n numeric, \
         d date, at timestamp, iv interval, x text)",
        "INSERT INTO t VALUES \
         (-9223372036854775808, -32768, -2147483648, -9223372036854775808, '-infinity', \
         -99999999999999999999999999999999999999, '4714-11-24 BC', '4714-11-24 BC', \
         '-178956970 years -8 mons', 'a'), \
         (9223372036854775807, 32767, 2147483647, 9223372036854775807, '1e308', \
         99999999999999999999999999999999999999, '5874897-12-31', '294276-12-31 23:59:59', \
         '178956970 years 7 mons 2147483647 days', 'a'), \
         (0, 0, 0, 0, 'NaN', 0, 'infinity', 'infinity', '0', 'b'), \
         (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
         (2, 1, -1, 9223372036854775807, '1e308', 1e37, '-infinity', '-infinity', \
         '2562047788:00:54.775807', '')",
    ];
    for statement in statements {
        cluster.run(statement).expect(statement);
    }
    cluster
}

/// Runs statements; says which made it panic. Gives for each one whether it succeeded.
fn all_end(statements: impl Iterator<Item = String>) -> Vec<bool> {
    let mut cluster = table();
    let (mut succeeded, mut panics) = (Vec::new(), Vec::new());
    for (number, statement) in statements.enumerate() {
        match catch_unwind(AssertUnwindSafe(|| cluster.run(&statement).is_ok())) {
            Ok(done) => succeeded.push(done),
            Err(_) => panics.push(statement),
        }
        // What was written changes what is read, for a while.
        if number % 50 == 49 || !panics.is_empty() {
            cluster = table();
        }
    }
    assert!(panics.is_empty(), "panics:\n{}", panics.join("\n"));
    succeeded
}

#[test]
fn no_statement_panics() {
    let mut prng = Prng::new(9);
    let statements = (0..STATEMENTS).map(|number| {
        let template = TEMPLATES[number as usize % TEMPLATES.len()];
        filled(&mut prng, template)
    });
    let succeeded = all_end(statements);
    for (template, form) in TEMPLATES.iter().enumerate() {
        let turns = succeeded[template..].iter().step_by(TEMPLATES.len());
        let last = table().run(&filled(&mut Prng::new(1), form)).err();
        assert!(
            turns.copied().any(|done| done),
            "always refused: {form}: {last:?}"
        );
    }
}

#[test]
fn no_catalog_function_panics() {
    let literals = |ty: base::Type| -> &'static [&'static str] {
        match ty {
            base::Type::Oid => &["0", "16384", "4294967295", "1259", "16"],
            base::Type::Int2 => &["(-32768)::int2", "32767::int2", "0::int2", "1::int2"],
            base::Type::Int4 => &["(-2147483648)", "2147483647", "0", "1"],
            base::Type::Int8 => &["(-9223372036854775808)", "9223372036854775807", "0"],
            base::Type::Bool => &["true", "false"],
            _ => &[
                "'t'",
                "''",
                "'\"'",
                "'a.b.c.d'",
                "'16384'",
                "'public.t'",
                "'äöü.\"x'",
            ],
        }
    };
    let mut statements = Vec::new();
    for signature in SIGNATURES {
        for count in signature.required..=signature.args.len() {
            for turn in 0..12 {
                let args = signature.args[..count].iter().enumerate();
                let args = args.map(|(place, ty)| {
                    let list = literals(*ty);
                    list[(turn * (place + 1) + turn / list.len()) % list.len()]
                });
                let args: Vec<&str> = args.collect();
                statements.push(format!("SELECT {}({})", signature.name, args.join(", ")));
            }
        }
    }
    let succeeded = all_end(statements.into_iter());
    let done = succeeded.iter().filter(|done| **done).count();
    // Most of these names and numbers are no objects, which functions of privileges refuse.
    assert!(done > succeeded.len() / 3, "{done} of {}", succeeded.len());
}
