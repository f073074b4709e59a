//! What plans ask for: keys from rows of values, nothing where no row can pass, hash joins from
//! ORs; and how much planning looks at.

mod fake;

use base::{Datum, RowBatch};
use fake::Cluster;
use parse::show::Show;

/// Operations and scans of one statement.
fn cost(cluster: &Cluster, text: &str, params: &[i64]) -> (u64, u64) {
    let params: Vec<Datum> = params.iter().map(|value| Datum::Int(*value)).collect();
    let state = &cluster.state;
    let before = (state.ops.get(), state.scans.get());
    cluster
        .run_with(text, &params, "")
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    (state.ops.get() - before.0, state.scans.get() - before.1)
}

fn explain(cluster: &Cluster, text: &str) -> String {
    let outcome = cluster.run(&format!("EXPLAIN {text}")).expect("a plan");
    let lines: Vec<String> = outcome.rows.into_iter().map(|row| row.join("")).collect();
    lines.join("\n")
}

fn tables() -> Cluster {
    let cluster = Cluster::new();
    for text in [
        "CREATE TABLE w (a int, b int, c int, v text, PRIMARY KEY (a, b))",
        "CREATE INDEX w_c ON w (c DESC, b DESC)",
        "CREATE TABLE t (id int PRIMARY KEY, x int)",
        "INSERT INTO w SELECT a, b, a + b, 'v' FROM generate_series(1, 5) a, \
         generate_series(1, 5) b",
        "INSERT INTO t SELECT i, i % 3 FROM generate_series(1, 20) i",
    ] {
        cluster
            .run(text)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    cluster
}

#[test]
fn rows_of_keys_are_point_reads() {
    let cluster = tables();
    for (text, params, points) in [
        (
            "SELECT v FROM w WHERE (a, b) IN ((1, 5), (1, 4))",
            &[][..],
            2,
        ),
        ("SELECT v FROM w WHERE (a, b) IN ((1, 5))", &[], 1),
        ("SELECT v FROM w WHERE (b, a) IN ((5, 1), (4, 2))", &[], 2),
        ("SELECT v FROM w WHERE (a, b) = (1, 5)", &[], 1),
        ("SELECT v FROM w WHERE a = 1 AND b IN (5, 4)", &[], 2),
        (
            "SELECT v FROM w WHERE a = 1 AND b = ANY (ARRAY[5, 4])",
            &[],
            2,
        ),
        (
            "SELECT v FROM w WHERE (a, b) IN (($1, $2), ($2, $1))",
            &[1, 5],
            2,
        ),
        (
            "SELECT v FROM w WHERE (a, b) IN (($1, $2), ($1, $2))",
            &[1, 5],
            1,
        ),
        (
            "SELECT v FROM w WHERE (a, b) IN ((1, 5), (1, NULL), (NULL, 5))",
            &[],
            1,
        ),
        (
            "SELECT v FROM w WHERE (a, b) IN ((1, 5), (2, 5)) AND c > 6",
            &[],
            2,
        ),
        (
            "SELECT v FROM w WHERE (a, b, c) IN ((1, 5, 6), (2, 5, 7))",
            &[],
            2,
        ),
        (
            "SELECT v FROM w WHERE (a = 1 AND b = 5 AND c = 6) OR (b = 4 AND a = 2)",
            &[],
            2,
        ),
        (
            "SELECT v FROM w WHERE (a, b) IN ((1, 5), (1, 4)) FOR UPDATE",
            &[],
            2,
        ),
        // A read and a write for each row.
        (
            "UPDATE w SET v = 'u' WHERE (a, b) IN ((1, 5), (1, 4))",
            &[],
            4,
        ),
        ("DELETE FROM t WHERE (id, x) IN ((1, 1), (2, 2))", &[], 4),
    ] {
        let (ops, scans) = cost(&cluster, text, params);
        assert_eq!(scans, 0, "{text}\n{}", explain_or_none(&cluster, text));
        assert!(ops <= points, "{text}: {ops} operations");
    }
    let plan = explain(&cluster, "SELECT v FROM w WHERE (a, b) IN ((1, 5), (2, 4))");
    assert!(plan.contains("Key: ((a, b) IN ((1, 5), (2, 4)))"), "{plan}");
    assert!(!plan.contains("Filter"), "{plan}");
}

fn explain_or_none(cluster: &Cluster, text: &str) -> String {
    if text.contains('$') {
        String::new()
    } else {
        explain(cluster, text)
    }
}

#[test]
fn rows_of_keys_are_looked_up_in_joins() {
    let cluster = tables();
    for text in [
        "SELECT w.v FROM t JOIN w ON (w.a, w.b) = (t.x, t.id) WHERE t.id IN (3, 4)",
        "SELECT w.v FROM t JOIN w ON (w.a, w.b) IN ((t.x, t.id), (t.id, t.x)) WHERE t.id IN (3, 4)",
    ] {
        let plan = explain(&cluster, text);
        assert!(
            plan.contains("Join by Key Lookup: Point Reads on w"),
            "{plan}"
        );
        assert_eq!(cost(&cluster, text, &[]).1, 0, "{text}");
    }
}

#[test]
fn rows_bound_ranges_of_keys() {
    let cluster = tables();
    for (condition, key) in [
        ("(a, b) < (2, 3)", "((a, b) < (2, 3))"),
        ("(a, b) >= (2, 3) AND c > 0", "((a, b) >= (2, 3))"),
        (
            "(a, b) > (2, 3) AND (a, b) <= (4, 1)",
            "((a, b) > (2, 3) AND (a, b) <= (4, 1))",
        ),
        ("a > 2 OR (a = 2 AND b > 3)", "((a, b) > (2, 3))"),
        ("a = 2 AND (a, b) > (2, 3)", "(a = 2 AND b > 3)"),
        ("(a, b, c) > (2, 3, 4)", "((a, b) >= (2, 3))"),
        ("(a, c) > (2, 3)", "(a >= 2)"),
        ("(c, b) < (4, 3)", "((c, b) < (4, 3))"),
    ] {
        let plan = explain(&cluster, &format!("SELECT v FROM w WHERE {condition}"));
        assert!(
            plan.contains(&format!("Key: {key}\n")),
            "{condition}\n{plan}"
        );
    }
}

#[test]
fn nothing_is_read_where_no_row_can_pass() {
    let cluster = tables();
    for text in [
        "SELECT * FROM w WHERE false",
        "SELECT * FROM w x JOIN w y ON x.a = y.b WHERE 1 = 0",
        "SELECT * FROM w x JOIN w y ON x.a = y.b WHERE NULL",
        "SELECT * FROM w x, w y WHERE x.a = y.a AND x.a = 1 AND y.a = 2",
        "SELECT * FROM w x JOIN (SELECT * FROM w WHERE a = NULL) y ON x.a = y.b",
        "SELECT count(*) FROM w WHERE a BETWEEN 5 AND 4",
        "SELECT count(*) FROM w WHERE a = 1 AND a = 2",
        "SELECT count(*) FROM w WHERE (a, b) IN ((1, NULL), (NULL, 2))",
        "SELECT * FROM w x WHERE EXISTS (SELECT 1 FROM w y WHERE y.a = x.b AND 1 = 2)",
        "UPDATE w SET v = 'n' WHERE a = 1 AND a = 2",
        "DELETE FROM w WHERE false",
    ] {
        assert_eq!(cost(&cluster, text, &[]), (0, 0), "{text}");
    }
    for text in [
        "SELECT count(*) FROM w WHERE $1 = 2",
        "SELECT count(*) FROM w x JOIN w y ON x.a = y.b WHERE $1 > 1",
        "SELECT * FROM w x LEFT JOIN w y ON x.a = y.b WHERE $1 > 1",
        "UPDATE w SET v = 'n' WHERE $1 = 2",
    ] {
        assert_eq!(cost(&cluster, text, &[1]), (0, 0), "{text}");
        assert_ne!(cost(&cluster, text, &[2]), (0, 0), "{text}");
    }
    // The right side only is not read.
    let scans = cost(&cluster, "SELECT * FROM w", &[]).1;
    let text = "SELECT * FROM w x LEFT JOIN w y ON x.a = y.b AND false";
    assert_eq!(cost(&cluster, text, &[]).1, scans);
}

#[test]
fn common_parts_of_or_become_keys_of_joins() {
    let cluster = tables();
    let plan = explain(
        &cluster,
        "SELECT count(*) FROM w x, w y WHERE (x.c = y.c AND x.b < 2 AND y.b IN (1, 2)) OR (y.c = \
         x.c AND x.b > 5 AND y.b IN (3, 4))",
    );
    assert!(plan.contains("Key: (c = w.c)"), "{plan}");
    assert!(
        plan.contains("Filter on shard: ((b < 2) OR (b > 5))"),
        "{plan}"
    );
    assert!(
        plan.contains("Filter on shard: ((b IN (1, 2)) OR (b IN (3, 4)))"),
        "{plan}"
    );
    let plan = explain(
        &cluster,
        "SELECT count(*) FROM w WHERE (a = 1 AND b = 2) OR (a = 1 AND c = 2)",
    );
    assert!(plan.contains("Key: (a = 1)"), "{plan}");
    let plan = explain(
        &cluster,
        "SELECT count(*) FROM w x LEFT JOIN w y ON (x.c = y.c AND x.b = 1) OR (x.c = y.c AND y.b \
         = 1)",
    );
    assert!(plan.contains("Hash Left Join"), "{plan}");
}

/// What planning a statement has looked at.
fn work(cluster: &Cluster, text: &str) -> u64 {
    let plan = cluster.plan(text, &[]);
    plan.unwrap_or_else(|error| panic!("{error}")).work
}

/// Runs with the stack of a shard: a thousand joins nest a thousand deep.
fn with_stack_of_a_shard(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(8 << 20);
    let ended = thread.spawn(work).expect("a thread").join();
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn planning_looks_at_each_join_a_bounded_number_of_times() {
    with_stack_of_a_shard(bounded_work);
}

fn bounded_work() {
    let cluster = tables();
    let list = |count: usize, separator: &str, part: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = (0..count).map(part).collect();
        parts.join(separator)
    };
    let chain = |kind: &str, count: usize| {
        let part = |i: usize| format!("{kind} t t{} ON t{}.id = t{i}.x", i + 1, i + 1);
        format!("SELECT count(*) FROM t t0 {}", list(count, " ", &part))
    };
    let star = |kind: &str, count: usize| {
        let part = |i: usize| format!("{kind} t t{} ON t{}.id = t0.x", i + 1, i + 1);
        format!("SELECT count(*) FROM t t0 {}", list(count, " ", &part))
    };
    for (count, text) in [
        (100, chain("JOIN", 100)),
        (100, chain("LEFT JOIN", 100)),
        (100, star("JOIN", 100)),
        (300, star("LEFT JOIN", 300)),
        (990, chain("LEFT JOIN", 990)),
        (990, star("JOIN", 990)),
    ] {
        let work = work(&cluster, &text);
        assert!(work < 150 * count, "{count}: {work}");
    }
    let numbers = |count: usize| list(count, ", ", &|i| i.to_string());
    let wide = list(1_000, ", ", &|i| format!("c{i} int"));
    let created = cluster.run(&format!("CREATE TABLE wide ({wide})"));
    created.expect("created");
    let columns = list(1_000, ", ", &|i| format!("c{i}"));
    let arms = list(5_000, " ", &|i| format!("WHEN {i} THEN {i}"));
    let rows = list(50_000, ", ", &|i| format!("({i}, 'a')"));
    let pairs = list(50_000, ", ", &|i| format!("({i}, {i})"));
    for (text, bound) in [
        (
            format!("SELECT * FROM t WHERE id IN ({})", numbers(100_000)),
            200_000,
        ),
        (
            format!("SELECT * FROM t WHERE x IN ({})", numbers(100_000)),
            200_000,
        ),
        (
            format!("SELECT * FROM w WHERE (a, b) IN ({pairs})"),
            400_000,
        ),
        (
            format!("SELECT {columns} FROM wide ORDER BY {columns}"),
            40_000,
        ),
        (format!("SELECT CASE x {arms} END FROM t"), 20_000),
        (
            format!("SELECT * FROM (VALUES {rows}) v (a, b) WHERE a > 5"),
            200_000,
        ),
    ] {
        let work = work(&cluster, &text);
        assert!(work < bound, "{}: {work}", &text[..40]);
    }
}

#[test]
fn explain_cuts_off_what_nobody_reads() {
    let cluster = tables();
    let numbers = |separator: &str, form: &dyn Fn(usize) -> String| {
        (0..500).map(form).collect::<Vec<_>>().join(separator)
    };
    let list = numbers(", ", &|n| n.to_string());
    let plan = explain(&cluster, &format!("SELECT 1 FROM w WHERE c IN ({list})"));
    assert!(plan.contains("19, ... 480 more))"), "{plan}");
    let terms = numbers(" OR ", &|n| format!("v LIKE 'a{n}'"));
    let plan = explain(&cluster, &format!("SELECT 1 FROM w WHERE {terms}"));
    assert!(plan.contains("'a199') OR ... 300 more)"), "{plan}");
    let plan = explain(
        &cluster,
        &format!(
            "SELECT 1 FROM w WHERE v = '{}'",
            "ä'".repeat(600).replace('\'', "''")
        ),
    );
    assert!(plan.contains("ä''... 300 bytes more'"), "{plan}");
}

#[test]
fn explain_names_columns_keys_and_times() {
    let cluster = tables();
    let plan = explain(
        &cluster,
        "SELECT x.c, count(*) FROM w x JOIN t ON x.c = t.x AND x.b <> t.id GROUP BY x.c ORDER BY 2 \
         DESC, 1",
    );
    for wanted in [
        "Sort Key: count(*) DESC, w.c",
        "Group Key: w.c",
        "Hash Key: w.c = t.x",
        "Join Filter: (w.b <> t.id)",
    ] {
        assert!(plan.contains(wanted), "{wanted}\n{plan}");
    }
    assert!(!plan.contains('#'), "{plan}");
    let plan = explain(
        &cluster,
        "SELECT sum(c) FROM w WHERE v IS NOT DISTINCT FROM 'a' GROUP BY b",
    );
    assert!(plan.contains("Group Key: w.b"), "{plan}");
    assert!(plan.contains("(v IS NOT DISTINCT FROM 'a')"), "{plan}");
    let plan = explain(
        &cluster,
        "SELECT v FROM w WHERE a IN (1, 2) AND b IN (3, 4, 5)",
    );
    assert!(plan.contains("Keys: 6"), "{plan}");
    let plan = explain(
        &cluster,
        "SELECT v FROM t JOIN w ON (a, b) = (x, id) WHERE id IN (3, 4)",
    );
    assert!(plan.contains("Key: (a = t.x AND b = t.id)"), "{plan}");
    let plan = explain(&cluster, "SELECT v FROM w, t WHERE false");
    assert!(plan.starts_with("Nothing: no row can pass"), "{plan}");
    let plan = explain(&cluster, "ANALYZE SELECT count(*) FROM w WHERE c > 3");
    let time = plan
        .lines()
        .find_map(|line| line.strip_prefix("Execution Time: "));
    assert_ne!(time, Some("0.000 ms"), "{plan}");
    let steps = plan.lines().filter(|line| line.contains("actual rows"));
    assert!(steps.clone().count() >= 2, "{plan}");
}

/// The rows that EXPLAIN expects of each step, from the top.
fn estimates(cluster: &Cluster, text: &str) -> Vec<String> {
    let plan = explain(cluster, text);
    let steps = plan.lines().filter_map(|line| line.split_once("(rows="));
    let rows = steps.filter_map(|(_, rest)| rest.split(')').next());
    rows.map(String::from).collect()
}

#[test]
fn explain_expects_as_many_rows_as_there_are() {
    let cluster = tables();
    let insert = "INSERT INTO t SELECT i, i % 7 FROM generate_series(21, 5000) i";
    assert_eq!(estimates(&cluster, "SELECT * FROM t"), ["20"]);
    cluster.run(insert).expect("more rows");
    for (text, rows) in [
        ("SELECT * FROM t", &["5000"][..]),
        (
            "SELECT * FROM t WHERE id = ANY (ARRAY[1, 2]) AND x > 1",
            &["3"],
        ),
        ("SELECT * FROM t WHERE id IN (1, 2, 3)", &["3"]),
        ("SELECT * FROM t WHERE id > 10", &["1667"]),
        ("SELECT * FROM t WHERE id BETWEEN 10 AND 20", &["250"]),
        ("SELECT * FROM t WHERE x = 1", &["25"]),
        ("SELECT * FROM t WHERE x <> 1", &["4975"]),
        ("SELECT * FROM t WHERE x IS NULL", &["25"]),
        ("SELECT * FROM t WHERE x = 1 AND id % 2 = 1", &["25"]),
        ("SELECT * FROM t WHERE x < 1 OR x > 3", &["2778"]),
        ("SELECT * FROM t LIMIT 7", &["7", "7"]),
        (
            "SELECT * FROM t ORDER BY id LIMIT 7 OFFSET 2",
            &["7", "9", "9"],
        ),
        ("SELECT * FROM t ORDER BY x LIMIT 7", &["7", "7", "7"]),
        ("SELECT max(id) FROM t", &["1", "1"]),
        ("SELECT x, count(*) FROM t GROUP BY x", &["200", "5000"]),
        ("SELECT count(*) FROM t", &["1", "5000"]),
        ("SELECT DISTINCT x, id FROM t", &["5000", "5000"]),
        ("SELECT * FROM w WHERE a = 1", &["5"]),
        ("SELECT * FROM w WHERE c = 1", &["5"]),
        ("SELECT * FROM w, t WHERE w.b = t.id", &["25", "25"]),
        (
            "SELECT * FROM w CROSS JOIN t",
            &["125000", "125000", "5000", "25"],
        ),
        ("SELECT * FROM pg_class WHERE false", &["1"]),
    ] {
        assert_eq!(estimates(&cluster, text), rows, "{text}");
    }
}

#[test]
fn explain_analyze_tells_how_long_planning_took() {
    let cluster = tables();
    let plan = explain(&cluster, "ANALYZE SELECT * FROM w, t WHERE w.b = t.id");
    for time in ["Planning Time: ", "Execution Time: "] {
        let (_, rest) = plan.split_once(time).expect(&plan);
        let (millis, _) = rest.split_once(" ms").expect(&plan);
        assert!(millis.parse::<f64>().expect(&plan) > 0.0, "{plan}");
    }
}

#[test]
fn the_smaller_side_of_a_join_is_kept_whatever_its_place() {
    let cluster = tables();
    let insert = "INSERT INTO t SELECT i, i % 7 FROM generate_series(21, 5000) i";
    cluster.run(insert).expect("more rows");
    for text in [
        "SELECT count(*) FROM w, t WHERE w.c = t.x",
        "SELECT count(*) FROM t, w WHERE w.c = t.x",
    ] {
        let plan = explain(&cluster, text);
        let place = |table: &str| plan.find(table).expect("both are read");
        // The left side is read while the right one is in memory.
        assert!(place("Scan on t") < place("on w"), "{plan}");
    }
}

/// Lets the shards tell of 1,000 rows of `t`: all its `x` are 1, but for one of a hundred, and its
/// `id` are from 1 to 1,000.
fn told_values(cluster: &Cluster) {
    let table = cluster.catalog().databases["test"].tables["t"].id;
    let mut sampler = statistics::Sampler::new([0, 1], 1000);
    for i in 1..=1000 {
        assert!(sampler.wants());
        sampler.add(&|column| match column {
            0 => Datum::Int(i),
            _ => Datum::Int(if i % 100 == 0 { i } else { 1 }),
        });
    }
    let mut values = RowBatch::new(statistics::WIRE_WIDTH);
    for digest in sampler.finish() {
        digest.push_to(table, &mut values);
    }
    let mut rows = RowBatch::new(3);
    let (id, count) = (Datum::Int(i64::from(table.0)), Datum::Int(1000));
    rows.push([id, count, Datum::Int(1)]);
    *cluster.state.shows.borrow_mut() = vec![(Show::Values, values), (Show::Rows, rows)];
}

#[test]
fn shares_of_rows_follow_known_values() {
    let cluster = tables();
    assert_eq!(cluster.run("ANALYZE t").expect("it runs").tag, "ANALYZE");
    let rows = |condition: &str| -> f64 {
        let shown = explain(&cluster, &format!("SELECT * FROM t WHERE {condition}"));
        let rows = shown.split("rows=").nth(1).expect("rows are told");
        let rows = rows.split(')').next().unwrap_or_default();
        rows.parse().expect("a number")
    };
    assert!((rows("x = 1") - 1.0).abs() < 1.5, "a guess of 20 rows");
    told_values(&cluster);
    for (condition, least, most) in [
        ("x = 1", 980.0, 1000.0),
        ("x = 500", 1.0, 3.0),
        ("x <> 1", 1.0, 15.0),
        ("x IN (1, 500)", 980.0, 1000.0),
        ("x IS NULL", 0.0, 1.0),
        ("x = NULL", 0.0, 1.0),
        ("id > 250 AND id < 500", 200.0, 300.0),
        ("id < -5", 0.0, 5.0),
        ("id > 0", 950.0, 1000.0),
        ("NOT id > 250", 200.0, 300.0),
        ("id > 900 OR id < 100", 150.0, 250.0),
        ("x = 1 AND id < 500", 450.0, 550.0),
    ] {
        let found = rows(condition);
        assert!((least..=most).contains(&found), "{condition}: {found}");
    }
}

#[test]
fn values_that_make_no_sense_do_no_harm() {
    let cluster = tables();
    let table = cluster.catalog().databases["test"].tables["t"].id;
    let mut sampler = statistics::Sampler::new([0, 1], 3);
    for text in ["a", "b", "c"] {
        assert!(sampler.wants());
        // Texts where the table has numbers: as if the type had changed since.
        sampler.add(&|_| Datum::Text(text.into()));
    }
    let mut values = RowBatch::new(statistics::WIRE_WIDTH);
    for digest in sampler.finish() {
        digest.push_to(table, &mut values);
    }
    *cluster.state.shows.borrow_mut() = vec![(Show::Values, values)];
    for condition in [
        "x = 1",
        "x < 5",
        "x IN (1, 2)",
        "x BETWEEN 1 AND 2",
        "NOT x > 7",
    ] {
        explain(&cluster, &format!("SELECT * FROM t WHERE {condition}"));
        explain(
            &cluster,
            &format!("SELECT * FROM t JOIN w ON a = id JOIN t u ON u.id = b WHERE t.{condition}")
                .replace("t.NOT x", "NOT t.x"),
        );
    }
}

#[test]
fn orders_of_some_joins_are_compared() {
    let cluster = tables();
    told_values(&cluster);
    // The rare value comes first, and each further table is looked up by key.
    let text = "SELECT count(*) FROM t a JOIN t b ON b.id = a.x JOIN t c ON c.id = b.x \
                WHERE c.x = 500";
    let shown = explain(&cluster, text);
    assert!(shown.contains("Hash Join"), "{shown}");
    let count = cluster.run(text).expect("it runs").rows;
    assert_eq!(count, vec![vec!["0".to_string()]]);
}
