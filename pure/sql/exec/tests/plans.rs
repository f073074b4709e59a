//! What statements cost: operations, scans, shards; and the types and errors of planning.

mod fake;

use base::{Datum, Type};
use fake::{Cluster, explain, tpcc};
use plan::PlanKind;

fn int(value: i64) -> Datum {
    Datum::Int(value)
}

/// Operations, scans and commits that may ride, of one statement.
fn cost(cluster: &Cluster, text: &str, params: &[Datum]) -> (u64, u64, u64) {
    let state = &cluster.state;
    let before = (state.ops.get(), state.scans.get(), state.lasts.get());
    cluster
        .run_with(text, params, "")
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    (
        state.ops.get() - before.0,
        state.scans.get() - before.1,
        state.lasts.get() - before.2,
    )
}

#[test]
fn statements_by_key_are_one_operation() {
    let cluster = tpcc();
    let one = (1, 0, 1);
    let params = [int(1), int(2)];
    for text in [
        "INSERT INTO district VALUES ($1, $2, 5, 0)",
        "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
        "SELECT d_ytd + 1 FROM district WHERE d_id = $2 AND $1 = d_w_id AND d_next_o_id > 0",
        "SELECT d_ytd FROM district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE",
        "UPDATE district SET d_ytd = d_ytd + 1.5 WHERE d_w_id = $1 AND d_id = $2",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
         RETURNING d_next_o_id",
        "UPDATE district SET d_ytd = 7, d_next_o_id = 9 WHERE d_w_id = $1 AND d_id = $2",
        "DELETE FROM district WHERE d_w_id = $1 AND d_id = $2",
    ] {
        assert_eq!(cost(&cluster, text, &params), one, "{text}");
        let plan = cluster.plan(text, &[]).expect("a plan");
        assert_eq!(plan.params, [Type::Int4, Type::Int4]);
        let slot = exec::home_slot(&plan, &params).expect("its slot is known");
        assert_eq!(slot, base::key::slot_of(&[0x83, 1][..]).min(slot).max(slot));
    }
    // A NULL in the key names no row, and asks nobody.
    let text = "SELECT * FROM district WHERE d_w_id = $1 AND d_id = $2";
    assert_eq!(cost(&cluster, text, &[int(1), Datum::Null]), (0, 0, 0));
    assert_eq!(
        cost(&cluster, "INSERT INTO history VALUES (1, 2)", &[]),
        one
    );
}

#[test]
fn rows_of_one_warehouse_have_one_home() {
    let cluster = tpcc();
    let slot = |text: &str| {
        let plan = cluster.plan(text, &[]).expect("a plan");
        exec::home_slot(&plan, &[int(3)])
    };
    let district = slot("SELECT * FROM district WHERE d_w_id = $1 AND d_id = 5");
    assert!(district.is_some());
    for text in [
        "SELECT count(*) FROM order_line WHERE ol_w_id = $1",
        "UPDATE stock SET s_quantity = 0 WHERE s_w_id = $1 AND s_i_id > 4",
        "DELETE FROM new_order WHERE no_w_id = $1",
        "INSERT INTO orders VALUES ($1, 1, 1, 1)",
        "SELECT * FROM customer WHERE c_w_id = $1 AND c_d_id = 1 AND c_last = 'X' ORDER BY c_first",
    ] {
        assert_eq!(slot(text), district, "{text}");
    }
    assert_eq!(
        slot("SELECT * FROM item WHERE i_id = $1"),
        None,
        "copies are everywhere"
    );
    assert_eq!(slot("SELECT $1 + 1"), None);
}

#[test]
fn orders_and_limits_come_from_the_index() {
    let cluster = tpcc();
    for (text, wanted) in [
        (
            "SELECT no_o_id FROM new_order WHERE no_w_id = 1 AND no_d_id = 2 ORDER BY no_o_id \
             LIMIT 1",
            "Limit  (rows=1)\n  ->  Range Scan on new_order  [one slot]",
        ),
        (
            "SELECT o_id FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_c_id = 3 ORDER BY o_id \
             DESC LIMIT 1",
            "Limit  (rows=1)\n  ->  Index Only Scan Backward using orders_customer on orders  [one \
             slot]",
        ),
        (
            "SELECT c_id FROM customer WHERE c_w_id = 1 AND c_d_id = 2 AND c_last = 'BAR' ORDER BY \
             c_first",
            "Range Scan using customer_name on customer  [one slot]",
        ),
        (
            "SELECT min(no_o_id) FROM new_order WHERE no_w_id = 1 AND no_d_id = 2",
            "Aggregate  (rows=1)\n  ->  Range Scan on new_order  [one slot]",
        ),
        (
            "SELECT count(*), sum(ol_amount) FROM order_line WHERE ol_i_id = 4",
            "Combine Partial Aggregates  (rows=1)\n  ->  Partial Aggregate of Scan on order_line  \
             [all shards]",
        ),
        (
            "SELECT c_id FROM customer WHERE c_balance > 0 ORDER BY c_balance DESC LIMIT 5",
            "Project  (rows=1)\n  ->  Limit  (rows=1)\n        ->  Top-N Sort",
        ),
        (
            "SELECT i_price FROM item WHERE i_id = 4",
            "Point Read on item",
        ),
        (
            "UPDATE stock SET s_quantity = s_quantity - 4 WHERE s_w_id = 1 AND s_i_id = 2",
            "Formula Update on stock",
        ),
        (
            "UPDATE stock SET s_quantity = 4 WHERE s_w_id = 1 AND s_i_id = 2",
            "Formula Update on stock",
        ),
        (
            "UPDATE stock SET s_quantity = s_quantity * s_quantity WHERE s_w_id = 1 AND s_i_id = 2",
            "Formula Update on stock",
        ),
        (
            "UPDATE stock SET s_quantity = gcd(s_quantity, 9) WHERE s_w_id = 1 AND s_i_id = 2",
            "Point Update on stock",
        ),
    ] {
        let plan = explain(&cluster, text);
        let plain: Vec<String> = plan
            .lines()
            .filter(|line| !line.trim_start().starts_with("Key:"))
            .map(|line| {
                let cut = line.find("  (rows=").filter(|_| line.contains("Scan"));
                cut.map_or(line, |cut| &line[..cut]).to_string()
            })
            .collect();
        assert!(plain.join("\n").starts_with(wanted), "{text}\n{plan}");
    }
}

#[test]
fn aggregates_of_subqueries_become_groups_where_they_read_less() {
    let cluster = tpcc();
    let insert = "INSERT INTO orders SELECT 1, i % 10, i, i FROM generate_series(1, 3000) i";
    cluster.run(insert).expect("inserts");
    let of_all = "SELECT count(*) FROM orders o WHERE o_id < (SELECT avg(o_id) FROM orders i \
                  WHERE i.o_c_id = o.o_c_id)";
    let plan = explain(&cluster, of_all);
    assert!(plan.contains("Hash Left Join"), "{plan}");
    for one_by_one in [
        // A sum of floats may be out of range.
        "SELECT count(*) FROM orders o WHERE o_id < (SELECT sum(o_id::float8) FROM orders i \
         WHERE i.o_c_id = o.o_c_id)",
        "SELECT count(*) FROM orders o WHERE o_id < (SELECT avg(o_id) FROM orders i \
         WHERE i.o_c_id > o.o_c_id)",
        "SELECT (SELECT avg(o_id) FROM orders i WHERE i.o_c_id = o.o_c_id) FROM orders o \
         WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 3",
    ] {
        let plan = explain(&cluster, one_by_one);
        assert!(!plan.contains("Left Join"), "{one_by_one}\n{plan}");
    }
}

#[test]
fn stock_level_looks_stock_up_by_key() {
    let cluster = tpcc();
    for text in [
        "INSERT INTO orders SELECT 1, i % 10, i, i FROM generate_series(1, 3000) i",
        "INSERT INTO order_line SELECT 1, i % 10, i, n, i, 1 FROM generate_series(1, 3000) i, \
         generate_series(1, 2) n",
        "INSERT INTO stock SELECT 1, i, i % 100 FROM generate_series(1, 3000) i",
    ] {
        cluster.run(text).expect(text);
    }
    let plan = explain(
        &cluster,
        "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = 1 AND ol_d_id = 2 \
         AND ol_o_id < 30 AND ol_o_id >= 10 AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < \
         10",
    );
    assert!(
        plan.contains("Join by Key Lookup: Point Reads on stock"),
        "{plan}"
    );
    assert!(
        plan.contains("Range Scan on order_line  [one slot]"),
        "{plan}"
    );
    let plan = explain(
        &cluster,
        "SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM order_line WHERE ol_w_id = \
         o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)",
    );
    assert!(plan.contains("Hash Anti Join"), "{plan}");
    let plan = explain(
        &cluster,
        "SELECT d_w_id, d_id FROM district JOIN (SELECT o_w_id, o_d_id, max(o_id) AS m FROM orders \
         GROUP BY o_w_id, o_d_id) x ON o_w_id = d_w_id AND o_d_id = d_id WHERE d_next_o_id - 1 <> \
         m",
    );
    assert!(
        plan.contains("Partial Aggregate of Scan on orders"),
        "{plan}"
    );
}

#[test]
fn a_queue_looks_up_the_rows_that_it_picks() {
    let cluster = tpcc();
    for text in [
        "CREATE TABLE jobs (id bigint PRIMARY KEY, state text, n int)",
        "INSERT INTO jobs SELECT i, 'new', 0 FROM generate_series(1, 200) i",
    ] {
        cluster.run(text).expect(text);
    }
    let picked = "(SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP \
                  LOCKED)";
    let unlimited = "(SELECT id FROM jobs WHERE state = 'new' AND id < 3 FOR UPDATE SKIP LOCKED)";
    let limited = "(SELECT id FROM jobs WHERE state = 'new' LIMIT 2)";
    let wanted = "Join by Key Lookup: Point Reads on jobs";
    for query in [picked, unlimited, limited] {
        for text in [
            format!("UPDATE jobs SET state = 'taken' WHERE id IN {query}"),
            format!("UPDATE jobs SET n = n + 1 WHERE id = ANY {query}"),
            format!("DELETE FROM jobs WHERE id IN {query}"),
            format!("SELECT * FROM jobs WHERE id IN {query} FOR UPDATE"),
        ] {
            let plan = explain(&cluster, &text);
            assert!(plan.contains(wanted), "{text}\n{plan}");
        }
    }
    // Another condition changes nothing where others may have locked rows that meet it.
    let text = format!("UPDATE jobs SET n = 1 WHERE id IN {picked} AND state = 'new'");
    let plan = explain(&cluster, &text);
    assert!(plan.contains(wanted), "{plan}");
    // So many rows are better read at once, unless others may have locked some.
    let text = "SELECT * FROM jobs WHERE id IN (SELECT id FROM jobs LIMIT 500)";
    let plan = explain(&cluster, text);
    assert!(plan.contains("Hash Semi Join"), "{plan}");
    // A value that comes twice names its row once.
    let text = "UPDATE jobs SET n = n + 1 WHERE id IN (SELECT 7 FROM jobs LIMIT 5)";
    let outcome = cluster.run(text).expect(text);
    assert_eq!(outcome.tag, "UPDATE 1");
    // With a limit that is not known when the statement is planned.
    let text = "UPDATE jobs SET state = 'taken' WHERE id IN (SELECT id FROM jobs WHERE state = \
                'new' ORDER BY id LIMIT (SELECT 2) FOR UPDATE SKIP LOCKED) RETURNING id";
    let plan = explain(&cluster, text);
    assert!(plan.contains(wanted), "{plan}");
    let outcome = cluster.run(text).expect(text);
    assert_eq!(outcome.rows.len(), 2);
    let taken = cluster
        .run("SELECT id FROM jobs WHERE state = 'taken' ORDER BY id")
        .expect("rows");
    assert_eq!(taken.rows, [["1"], ["2"]]);
}

#[test]
fn copies_of_a_replicated_table_are_equal() {
    let cluster = tpcc();
    cluster
        .run("INSERT INTO item VALUES (1, 10), (2, 20)")
        .expect("inserted");
    cluster
        .run("UPDATE item SET i_price = i_price + 1 WHERE i_id = 2")
        .expect("updated");
    cluster
        .run("DELETE FROM item WHERE i_id = 1")
        .expect("deleted");
    let shards = cluster.state.shards.borrow();
    let item = cluster.catalog().databases["test"].tables["item"]
        .primary
        .id;
    let copies: Vec<Vec<_>> = shards
        .iter()
        .map(|rows| {
            rows.iter()
                .filter(|((index, _, _), _)| *index == item)
                .collect()
        })
        .collect();
    assert_eq!(copies[0].len(), 1);
    assert!(copies.iter().all(|copy| *copy == copies[0]));
    drop(shards);
    let outcome = cluster.run("SELECT * FROM item").expect("read");
    assert_eq!(outcome.rows, [["2", "21.00"]]);
    assert_eq!(
        cost(&cluster, "SELECT * FROM item WHERE i_price > 3", &[]),
        (1, 1, 0)
    );
}

#[test]
fn partitions_decide_where_rows_live() {
    let cluster = Cluster::new();
    cluster
        .run("CREATE TABLE t (a int, b int, c int, PRIMARY KEY (a, b)) PARTITION BY (b)")
        .expect("created");
    for i in 0..40 {
        cluster
            .run(&format!("INSERT INTO t VALUES ({i}, {}, 0)", i % 4))
            .expect("inserted");
    }
    // The partition column alone fixes the slot, the key column alone does not.
    assert_eq!(
        cost(&cluster, "SELECT * FROM t WHERE b = 3 AND c = 1", &[]).1,
        1
    );
    assert_eq!(
        cost(&cluster, "SELECT * FROM t WHERE a = 3", &[]).1,
        u64::from(fake::SHARDS)
    );
    let rows = cluster
        .run("SELECT count(*) FROM t WHERE b = 3")
        .expect("counted")
        .rows;
    assert_eq!(rows, [["10"]]);
    let wrong = cluster.run("CREATE TABLE u (a int PRIMARY KEY, b int) PARTITION BY (b)");
    assert_eq!(wrong.expect_err("refused").state().as_str(), "42P16");
}

#[test]
fn parameters_take_the_type_of_their_place() {
    let cluster = tpcc();
    let types = |text: &str, declared: &[Type]| {
        cluster
            .plan(text, declared)
            .map(|plan| plan.params.clone())
            .map_err(|e| e.state())
    };
    let numeric = Type::Numeric(None);
    for (text, wanted) in [
        (
            "SELECT * FROM customer WHERE c_last = $1 AND c_balance > $2",
            vec![Type::Text, numeric],
        ),
        ("SELECT $1", vec![Type::Text]),
        ("SELECT $1::int + $2", vec![Type::Int4, Type::Int4]),
        (
            "INSERT INTO item VALUES ($1, $2)",
            vec![Type::Int4, numeric],
        ),
        ("INSERT INTO item SELECT $1, $2", vec![Type::Int4, numeric]),
        (
            "UPDATE item SET i_price = $2 WHERE i_id = $1",
            vec![Type::Int4, numeric],
        ),
        (
            "UPDATE item SET i_price = i_price + $2 WHERE i_id = $1",
            vec![Type::Int4, numeric],
        ),
        (
            "SELECT * FROM item WHERE i_id IN ($1, $2)",
            vec![Type::Int4, Type::Int4],
        ),
        (
            "SELECT * FROM item WHERE i_id BETWEEN $1 AND $2",
            vec![Type::Int4, Type::Int4],
        ),
        (
            "SELECT * FROM item LIMIT $1 OFFSET $2",
            vec![Type::Int8, Type::Int8],
        ),
        ("SELECT coalesce($1, 4)", vec![Type::Int4]),
        (
            "SELECT CASE WHEN $1 THEN 1.5 ELSE $2 END",
            vec![Type::Bool, numeric],
        ),
        ("SELECT lower($1), length($2)", vec![Type::Text, Type::Text]),
        (
            "SELECT * FROM item WHERE i_id = ANY ($1)",
            vec![Type::Int4.array_of().expect("arrays")],
        ),
    ] {
        let found = types(text, &[]);
        assert_eq!(found, Ok(wanted), "{text}");
    }
    assert_eq!(
        types("SELECT $1 FROM item WHERE i_id = $1", &[]),
        Ok(vec![Type::Int4])
    );
    assert_eq!(types("SELECT $1 + 1", &[Type::Int8]), Ok(vec![Type::Int8]));
    assert_eq!(
        types("SELECT $2::int", &[]).expect_err("open").as_str(),
        "42P18"
    );
}

#[test]
fn a_row_with_null_in_its_partition_has_system_columns() {
    let cluster = Cluster::new();
    let table = "CREATE TABLE pt (a int, b int) PARTITION BY (b)";
    cluster.run(table).expect("created");
    let row = "INSERT INTO pt VALUES (1, NULL) RETURNING tableoid IS NULL";
    assert_eq!(cluster.run(row).expect("inserted").rows, [["f"]]);
    let read = "SELECT tableoid IS NULL, xmin IS NULL, ctid IS NULL FROM pt";
    assert_eq!(cluster.run(read).expect("read").rows, [["f", "f", "f"]]);
}

/// Each is 42P08 in PostgreSQL, too. A value of one type in the place of another would be stored.
#[test]
fn a_parameter_has_one_type() {
    let cluster = Cluster::new();
    let table = "CREATE TABLE ab (a int, b text)";
    cluster.run(table).expect("created");
    for text in [
        "INSERT INTO ab SELECT $1, $1",
        "INSERT INTO ab (b, a) SELECT $1, $1",
        "INSERT INTO ab SELECT $1, $1::text",
        "SELECT $1 UNION ALL SELECT 1 WHERE $1 = 'x'::text",
        "SELECT a || 'x', b + 1 FROM (SELECT $1 AS a, $1 AS b UNION ALL SELECT 'a'::text, 1) s",
        "SELECT $1, 1 ORDER BY $1::int",
    ] {
        let error = cluster.plan(text, &[]).map(|_| ()).expect_err(text);
        assert_eq!(error.state().as_str(), "42P08", "{text}: {error:?}");
    }
    for text in [
        "INSERT INTO ab SELECT $1, $2 WHERE $1 > 5 AND $2 > 'a'",
        "INSERT INTO ab SELECT $1, $2 UNION ALL SELECT 1, 'x'::text",
        "SELECT $1 UNION ALL SELECT 1 WHERE $1 = 2",
    ] {
        cluster.plan(text, &[]).expect(text);
    }
}

#[test]
fn deep_statements_are_refused_and_never_overflow() {
    let cluster = tpcc();
    let state = |text: String| match cluster.run(&text) {
        Ok(_) => "ok".to_string(),
        Err(error) => error.state().to_string(),
    };
    let nested = |n: usize| format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n));
    assert_eq!(state(nested(900)), "ok");
    assert_eq!(state(nested(100_000)), "54001");
    let chained = |op: &str, n: usize| format!("SELECT {}", vec!["1"; n].join(op));
    assert_eq!(state(chained(" + ", 200)), "ok");
    assert_eq!(state(chained(" + ", 100_000)), "54001");
    assert_eq!(state(chained(" + ", 2_000)), "54001");
    // Threads have more stack for the levels that an optimized build allows.
    if !cfg!(debug_assertions) {
        assert_eq!(state(chained(" + ", 1_000)), "ok");
        let columns = vec!["i_id"; 1_000].join(" + ");
        assert_eq!(state(format!("SELECT {columns} FROM item")), "ok");
        assert_eq!(state(format!("SELECT {}true", "NOT ".repeat(900))), "ok");
        let queries = format!("SELECT {}1{}", "(SELECT ".repeat(100), ")".repeat(100));
        assert_eq!(state(queries), "ok");
        let froms = "(SELECT * FROM ".repeat(100);
        let froms = format!("SELECT 1 FROM {froms}item{}", ") x".repeat(100));
        assert_eq!(state(froms), "ok");
    }
    // Chains inside of chains add up.
    let inner = vec!["1"; 150].join(" + ");
    let outer = vec!["1"; if cfg!(debug_assertions) { 150 } else { 1_000 }].join(" + ");
    let twice = format!("SELECT abs({inner}) + {outer}");
    assert_eq!(state(twice), "54001");
    let ors = vec!["i_id = 1"; 10_000].join(" OR ");
    assert_eq!(state(format!("SELECT * FROM item WHERE {ors}")), "ok");
    let list = vec!["1"; 20_000].join(", ");
    assert_eq!(
        state(format!("SELECT * FROM item WHERE i_id IN ({list})")),
        "ok"
    );
    assert_eq!(
        state(format!("SELECT {}", "NOT ".repeat(5_000) + "true")),
        "54001"
    );
    assert_eq!(state(format!("SELECT {}1", "- ".repeat(5_000))), "54001");
    let functions = format!("SELECT {}1{}", "abs(".repeat(18), ")".repeat(18));
    assert_eq!(state(functions), "ok");
    assert_eq!(
        state(format!(
            "SELECT {}1{}",
            "abs(".repeat(5_000),
            ")".repeat(5_000)
        )),
        "54001"
    );
    let froms = format!("SELECT 1 FROM {}item{}", "(".repeat(90), ")".repeat(90));
    // No join: PostgreSQL's grammar has no parentheses around a table.
    assert_eq!(state(froms), "42601");
    let queries = format!("SELECT {}1{}", "(SELECT ".repeat(990), ")".repeat(990));
    assert_eq!(state(queries), "54001");
    let unions = vec!["SELECT 1"; 500].join(" UNION ALL ");
    assert_eq!(state(unions), "ok");
    for (n, expected) in [(100, "ok"), (500, "54001"), (3_500, "54001")] {
        let excepts = vec!["SELECT 1"; n].join(" EXCEPT ");
        assert_eq!(state(excepts), expected);
    }
    let cases = format!(
        "SELECT {}1{}",
        "CASE WHEN true THEN ".repeat(400),
        " END".repeat(400)
    );
    assert!(["54001", "ok"].contains(&state(cases).as_str()));
    for n in [1_500, 2_500, 5_000] {
        assert_eq!(state(format!("SELECT 1{}", "::int".repeat(n))), "54001");
    }
    let selects = format!(
        "SELECT 1 FROM {}t{}",
        "(SELECT 1 FROM ".repeat(6),
        ") x".repeat(6)
    );
    assert_eq!(state(selects), "42P01");
}

#[test]
fn a_large_result_and_a_large_join_give_memory_back() {
    let cluster = Cluster::new();
    cluster
        .run("CREATE TABLE t (a int PRIMARY KEY, b int)")
        .expect("created");
    cluster
        .run("INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 3000) AS g")
        .expect("inserted");
    let rows = cluster
        .run("SELECT * FROM t ORDER BY b, a")
        .expect("sorted")
        .rows;
    assert_eq!(rows.len(), 3000);
    let rows = cluster.run("SELECT count(*) FROM t x JOIN t y ON x.b = y.b AND x.a < y.a");
    assert_eq!(rows.expect("joined").rows, [["448500"]]);
    let rows = cluster
        .run("SELECT sum(x.b) FROM t x, t y WHERE y.a = x.a")
        .expect("joined")
        .rows;
    assert_eq!(rows, [["13500"]]);
    assert!(cluster.state.peak.get() > 0);
}

#[test]
fn explain_analyze_counts_what_happened() {
    let cluster = tpcc();
    cluster
        .run("INSERT INTO new_order VALUES (1, 1, 1), (1, 1, 2), (2, 1, 1)")
        .expect("inserted");
    let outcome = cluster
        .run("EXPLAIN (ANALYZE, VERBOSE) SELECT count(*) FROM new_order WHERE no_o_id > 0")
        .expect("explained");
    let text: Vec<String> = outcome.rows.into_iter().map(|row| row.join("")).collect();
    let text = text.join("\n");
    assert!(text.contains("operations=3 shards=3"), "{text}");
    assert!(text.contains("Result: SELECT 1"), "{text}");
    assert!(text.contains("Execution Time"), "{text}");
    let plan = cluster
        .plan("EXPLAIN DELETE FROM new_order", &[])
        .expect("a plan");
    assert!(!plan.writes && matches!(plan.kind, PlanKind::Run(_)));
    assert_eq!(
        cluster
            .run("SELECT count(*) FROM new_order")
            .expect("counted")
            .rows,
        [["3"]]
    );
    cluster
        .run("EXPLAIN ANALYZE DELETE FROM new_order")
        .expect("deleted");
    assert_eq!(
        cluster
            .run("SELECT count(*) FROM new_order")
            .expect("counted")
            .rows,
        [["0"]]
    );
}

#[test]
fn options_of_explain_decide_what_it_shows() {
    let cluster = tpcc();
    let explained = |options: &str| {
        let text = format!("EXPLAIN {options} SELECT * FROM new_order WHERE no_o_id > 0");
        let outcome = cluster.run(&text).expect("explained");
        let lines = outcome.rows.into_iter().map(|row| row.join(""));
        lines.collect::<Vec<_>>().join("\n")
    };
    let shown = |options: &str| {
        let text = explained(options);
        ["rows=", "time=", "Planning Time", "Execution Time"].map(|what| text.contains(what))
    };
    assert_eq!(shown(""), [true, false, false, false]);
    assert_eq!(shown("(COSTS off)"), [false; 4]);
    assert_eq!(shown("(SUMMARY)"), [true, false, true, false]);
    assert_eq!(shown("ANALYZE"), [true; 4]);
    assert_eq!(shown("(ANALYZE, TIMING off)"), [true, false, true, true]);
    assert_eq!(shown("(ANALYZE, SUMMARY off)"), [true, true, false, false]);
    let none = explained("(ANALYZE, COSTS off, TIMING off, SUMMARY off)");
    assert!(
        none.contains("(actual rows=0 loops=1 operations="),
        "{none}"
    );
}

#[test]
fn explain_names_system_columns() {
    let cluster = tpcc();
    cluster.run("CREATE TABLE bare (a int)").expect("created");
    let explained = |query: &str| {
        let outcome = cluster.run(&format!("EXPLAIN {query}"));
        let lines = outcome.expect("explained").rows.into_iter();
        lines.map(|row| row.join("")).collect::<Vec<_>>().join("\n")
    };
    let point = explained("SELECT a FROM bare WHERE ctid = '(7,8)'");
    assert!(point.contains("Point Read on bare"), "{point}");
    assert!(point.contains("Key: (ctid = (7,8))"), "{point}");
    let filter = explained("SELECT a FROM bare WHERE xmin = '9' AND a = 1");
    assert!(filter.contains("ELSE xmin END = 9"), "{filter}");
}

#[test]
fn a_long_statement_is_explained_as_it_was_planned() {
    let cluster = tpcc();
    let list = vec!["7"; parse::LONG_BYTES / 2].join(",");
    for (list, plans) in [("7", 1), (list.as_str(), 0)] {
        let before = cluster.state.plans.get();
        let text = format!("EXPLAIN (SUMMARY) SELECT 1 FROM new_order WHERE no_o_id IN ({list})");
        let outcome = cluster.run(&text).expect("explained");
        assert_eq!(cluster.state.plans.get() - before, plans);
        let last = outcome.rows.last().expect("lines")[0].clone();
        assert_eq!(last.contains("Planning Time"), plans == 1, "{last}");
    }
}

#[test]
fn copy_goes_both_ways() {
    let cluster = tpcc();
    let data = "1\t1.50\n2\t\\N\n";
    let outcome = cluster
        .run_with("COPY history FROM STDIN", &[], data)
        .expect("copied");
    assert_eq!(outcome.tag, "COPY 2");
    let outcome = cluster
        .run("COPY (SELECT h_c_id, h_amount FROM history ORDER BY 1) TO STDOUT")
        .expect("copied");
    assert_eq!(outcome.copied, data);
    let outcome = cluster
        .run("COPY history (h_amount) TO STDOUT WITH CSV HEADER")
        .expect("copied");
    assert_eq!(outcome.copied.lines().next(), Some("h_amount"));
    let plan = cluster
        .plan("COPY history FROM STDIN WITH (FORMAT binary)", &[])
        .expect("a plan");
    let shape = plan.copy_shape().expect("a copy");
    assert!(shape.from_client && shape.binary && shape.columns == 2);
    assert!(plan.writes);
    let error = cluster
        .run_with("COPY history FROM STDIN", &[], "x\t1\n")
        .expect_err("refused");
    assert!(
        error
            .fields()
            .context
            .contains("COPY history, line 1, column h_c_id"),
        "{error:?}"
    );
}

#[test]
fn any_mutation_of_a_statement_gives_an_answer() {
    let cluster = tpcc();
    cluster
        .run("INSERT INTO district VALUES (1, 1, 5, 0), (1, 2, 6, 1)")
        .expect("inserted");
    let seeds = [
        "SELECT d_id, sum(d_ytd) FROM district d JOIN orders o ON o_w_id = d_w_id WHERE d_id IN \
         (1, 2) GROUP BY d_id HAVING count(*) > 0 ORDER BY 2 DESC NULLS LAST LIMIT 3 OFFSET 1",
        "UPDATE district SET d_ytd = d_ytd + 1.5, d_next_o_id = (SELECT max(o_id) FROM orders \
         WHERE o_w_id = d_w_id) WHERE d_w_id = 1 AND d_id BETWEEN 1 AND 2 RETURNING *, d_id + 1",
        "INSERT INTO district (d_w_id, d_id) VALUES (7, 1), (7, 2) ON CONFLICT (d_w_id, d_id) DO \
         UPDATE SET d_ytd = excluded.d_ytd + 1 WHERE district.d_id > 1",
        "SELECT * FROM (SELECT d_w_id AS w, CASE d_id WHEN 1 THEN 'a' ELSE NULL END AS x FROM \
         district) q LEFT JOIN LATERAL generate_series(1, q.w) g ON true WHERE x LIKE '_%' AND \
         EXISTS (SELECT 1 FROM stock WHERE s_w_id = q.w)",
        "CREATE TABLE z (a serial PRIMARY KEY, b numeric(8,2) DEFAULT 1.5 CHECK (b > 0), c text \
         UNIQUE REFERENCES q (c) ON DELETE CASCADE) PARTITION BY (a) WITH (replicated = true)",
        "COPY district (d_id, d_w_id) FROM STDIN WITH (FORMAT csv, HEADER true, DELIMITER ';')",
    ];
    let mut prng = base::Prng::new(7);
    for round in 0..6000 {
        let seed = seeds[round % seeds.len()];
        let mut words: Vec<&str> = seed.split(' ').collect();
        for _ in 0..=prng.below(3) {
            let at = prng.below(words.len() as u64) as usize;
            let other = seeds[prng.below(seeds.len() as u64) as usize];
            let from: Vec<&str> = other.split(' ').collect();
            match prng.below(3) {
                0 => words[at] = from[prng.below(from.len() as u64) as usize],
                1 => words.insert(at, from[prng.below(from.len() as u64) as usize]),
                _ if words.len() > 1 => {
                    words.remove(at);
                }
                _ => {}
            }
        }
        let text = words.join(" ");
        // Whatever it means: an answer or an error, never a panic.
        if text.starts_with("CREATE") {
            let _ = cluster.plan(&text, &[]);
        } else if parse::parse(&text).is_ok_and(|list| list.len() == 1) {
            let _ = cluster.run_with(&text, &[], "");
        }
    }
}
