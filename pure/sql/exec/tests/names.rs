//! Names of output columns, as PostgreSQL 15 gives them.

mod fake;

use fake::Cluster;

#[test]
fn columns_are_named_as_in_postgresql() {
    let cluster = Cluster::new();
    cluster
        .run("CREATE TABLE t (a int PRIMARY KEY, b text, c int[])")
        .expect("the table is new");
    let mut wrong = Vec::new();
    for (expression, name) in NAMES {
        let found = match cluster.run(&format!("SELECT {expression} FROM t")) {
            Ok(outcome) => {
                let names = outcome.columns.into_iter().map(|(name, _)| name);
                names.collect::<Vec<_>>().join(",")
            }
            Err(error) => format!("{error}"),
        };
        if found != *name {
            wrong.push(format!("{expression}: {found}, not {name}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Expressions over the table, and the names of their columns.
const NAMES: &[(&str, &str)] = &[
    ("1", "?column?"),
    ("'5'::int4::text", "text"),
    ("'5'::int", "int4"),
    ("'5'::varchar(3)", "varchar"),
    ("a::text", "a"),
    ("(a)::text", "a"),
    ("t.a", "a"),
    ("(t.a)", "a"),
    ("a + 1", "?column?"),
    ("-a", "?column?"),
    ("not exists (select 1)", "?column?"),
    ("exists (select 1)", "exists"),
    ("case when true then 1 else a end", "a"),
    ("case when true then a end", "case"),
    ("case when true then 1 else 2 end::text", "text"),
    ("case when true then a else b::int end", "b"),
    ("coalesce(a, 1)", "coalesce"),
    ("coalesce(a, 1)::text", "coalesce"),
    ("greatest(a, 1)", "greatest"),
    ("least(1, a)", "least"),
    ("nullif(a, 1)", "nullif"),
    ("array[1, 2]", "array"),
    ("array[1]::bigint[]", "array"),
    ("array(select a from t)", "array"),
    ("array(select a from t)::text[]", "array"),
    ("c[1]", "c"),
    ("(c)[1]", "c"),
    ("c[1]::text", "c"),
    ("(array[1])[1]", "array"),
    ("(select 1)", "?column?"),
    ("(select a from t limit 1)", "a"),
    ("(select a as x from t limit 1)", "x"),
    ("(select max(a) from t)", "max"),
    ("(select 1)::text", "?column?"),
    ("(select a from t limit 1)::text", "a"),
    ("(select * from (select 5 as z) q)", "z"),
    ("(select 1 union select 1)", "?column?"),
    ("(values (1))", "column1"),
    ("true", "?column?"),
    ("false::text", "text"),
    ("null", "?column?"),
    ("null::int", "int4"),
    ("date '2024-01-01'", "date"),
    ("'2024-01-01'::date::text", "text"),
    ("timestamp '2024-01-01'", "timestamp"),
    ("timestamptz '2024-01-01'", "timestamptz"),
    ("interval '1 day'", "interval"),
    ("cast(a as text)", "a"),
    ("cast('1' as int)", "int4"),
    ("upper(b)", "upper"),
    ("pg_catalog.upper(b)", "upper"),
    ("count(*) over_x", "over_x"),
    ("b collate \"C\"", "b"),
    ("'x' collate \"C\"", "?column?"),
    ("extract(year from date '2024-01-01')", "extract"),
    ("position('a' in b)", "position"),
    ("substring(b from 1)", "substring"),
    ("substring(b, 1)", "substring"),
    ("trim(b)", "btrim"),
    ("trim(leading from b)", "ltrim"),
    ("trim(trailing 'x' from b)", "rtrim"),
    ("overlay(b placing 'x' from 1)", "overlay"),
    ("current_date", "current_date"),
    ("current_timestamp", "current_timestamp"),
    ("localtime", "localtime"),
    ("localtimestamp", "localtimestamp"),
    ("current_user", "current_user"),
    ("current_schema", "current_schema"),
    ("now() at time zone 'UTC'", "timezone"),
    ("b like 'x'", "?column?"),
    ("a between 1 and 2", "?column?"),
    ("a in (1)", "?column?"),
    ("a is null", "?column?"),
    ("a = any (c)", "?column?"),
    ("b || 'x'", "?column?"),
    ("1 as one", "one"),
    ("a as \"A b\"", "A b"),
    ("a \"Q\"", "Q"),
    ("'1'::numeric(5,2)", "numeric"),
    ("1::float8", "float8"),
    ("1::real", "float4"),
    ("1::char", "bpchar"),
    ("'a'::\"char\"", "char"),
    ("'t'::bool", "bool"),
    ("'x'::name", "name"),
    ("1::oid", "oid"),
    ("'t'::regclass", "regclass"),
    ("'t'::regclass::text", "text"),
    ("left(b, 1)", "left"),
    ("ceil(1.5)", "ceil"),
    ("floor(1.5)", "floor"),
    ("\"left\"(b, 1)", "left"),
    ("float8 '1'", "float8"),
    ("int4(1.5)", "int4"),
    ("a, b", "a,b"),
    ("t.*", "a,b,c"),
    ("*", "a,b,c"),
    ("1, a, 2", "?column?,a,?column?"),
];
