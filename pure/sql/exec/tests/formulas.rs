//! Which changes of rows are formulas, and what EXPLAIN says of them.

mod fake;

use fake::{explain, tpcc};

#[test]
fn explain_says_which_assignments_are_formulas_and_why_the_others_are_not() {
    let cluster = tpcc();
    for text in [
        "CREATE TABLE acct (id int PRIMARY KEY, owner int REFERENCES acct (id), bal numeric(9,2) \
         CONSTRAINT positive CHECK (bal >= 0), low int, high int CONSTRAINT ordered CHECK (low < \
         high), tag text UNIQUE, note text, rate real)",
        "CREATE TABLE part (id int PRIMARY KEY, n int) WITH (replicated = true)",
        "CREATE TABLE pair (id int PRIMARY KEY, a numeric(9,2), b numeric(9,2), n text, k text NOT \
         NULL)",
    ] {
        cluster.run(text).expect(text);
    }
    for (text, wanted) in [
        (
            "UPDATE acct SET note = note || 'x', rate = 2 WHERE id = 1",
            "Formula Update on acct|Formula: note = (note || 'x')  (appends)|Formula: rate = 2  \
             (constant)",
        ),
        (
            "UPDATE acct SET bal = bal - 5 WHERE id = 1",
            "Guarded Formula Update on acct|Formula: bal = (bal - 5)::numeric(9,2)  (adds)",
        ),
        (
            "UPDATE acct SET bal = bal - 5 WHERE id = 1 AND bal > 10",
            "Guarded Formula Update on acct|Formula: bal = (bal - 5)::numeric(9,2)  (adds)",
        ),
        (
            "UPDATE acct SET bal = bal - 5, note = 'x' WHERE id = 1 AND bal > 10",
            "Point Update on acct|Formula: bal = (bal - 5)::numeric(9,2)  (adds)|Formula: note = \
             'x'  (constant)|Reads the row: \
             with conditions, only additions share a row",
        ),
        (
            "UPDATE acct SET bal = bal - 5 WHERE id = 1 AND rate > 10",
            "Point Update on acct|Formula: bal = (bal - 5)::numeric(9,2)  (adds)|Reads the row: \
             the condition reads the row",
        ),
        (
            "UPDATE acct SET bal = bal - 5 WHERE id = 1 RETURNING bal",
            "Point Update on acct|Formula: bal = (bal - 5)::numeric(9,2)  (adds)|Reads the row: \
             RETURNING reads the row",
        ),
        (
            "UPDATE acct SET bal = 5, low = low + 1, rate = rate + 1 WHERE id = 1",
            "Point Update on acct|No Formula: bal = 5.00  (check constraint positive reads the \
             column)|No Formula: low = (low + 1)  (check constraint ordered reads the \
             column)|Formula: rate = (rate + 1)::real  (ordered)",
        ),
        (
            "UPDATE acct SET tag = 'x', owner = 5, note = (SELECT max(note) FROM acct) WHERE id = \
             1",
            "Update on acct|No Formula: tag = 'x'  (the column is part of a key or an \
             index)|No Formula: owner = 5  (a foreign key has the column)|Formula: note = $1  \
             (constant)",
        ),
        (
            "UPDATE acct SET note = 'x' WHERE rate = 5",
            "Update on acct|Formula: note = 'x'  (constant)|Reads the row: the condition \
             does not name rows by their keys",
        ),
        (
            "UPDATE acct SET bal = bal - 5 WHERE id IN (1, 2) AND bal >= 5",
            "Guarded Formula Update on acct  (one operation for each key)|Formula: bal = (bal - \
             5)::numeric(9,2)  (adds)",
        ),
        (
            "UPDATE acct SET bal = CASE WHEN bal >= 15 THEN bal - 5 ELSE bal + 86 END WHERE id = \
             1",
            "Guarded Formula Update on acct|Formula: bal = CASE WHEN (bal >= 15) THEN (bal - 5) \
             ELSE (bal + 86) END::numeric(9,2)  (cases)",
        ),
        (
            "UPDATE acct SET bal = CASE WHEN bal >= 15 THEN bal - 5 ELSE bal END WHERE id = 1",
            "Guarded Formula Update on acct|Formula: bal = CASE WHEN (bal >= 15) THEN (bal - 5) \
             ELSE bal::numeric END::numeric(9,2)  (cases)",
        ),
        (
            "UPDATE acct SET bal = CASE WHEN bal >= 15 THEN 5 ELSE bal END WHERE id = 1",
            "Point Update on acct|Formula: bal = CASE WHEN (bal >= 15) THEN 5 ELSE bal::numeric \
             END::numeric(9,2)  (program: check constraint positive reads the column)",
        ),
        (
            "UPDATE acct SET rate = random(), note = note || now() WHERE id = 1",
            "Update on acct|No Formula: rate = Session(Random)()::real  (the value depends on \
             more than the row)|Formula: note = (note || $1::text)  (appends)",
        ),
        (
            "UPDATE part SET n = greatest(n, 5) WHERE id = 1",
            "Formula Update on part  (one operation for each copy)|Formula: n = Greatest(n, 5)  \
             (extreme)",
        ),
        (
            "UPDATE part SET n = n / 2 WHERE id = 1",
            "Formula Update on part  (one operation for each copy)|Formula: n = (n / 2)  (ordered)",
        ),
        (
            "UPDATE pair SET a = b, b = a + round(a * 1.5, 1) WHERE id = 1",
            "Point Update on pair|Formula: a = b  (ordered)|Formula: b = (a + \
             Round((a * 1.5), 1))::numeric(9,2)  (ordered)|Reads the row: each assignment reads \
             what another one sets",
        ),
        (
            "UPDATE pair SET a = a + 1, b = a / 3, n = 'x' || n || k WHERE id = 1",
            "Formula Update on pair|Formula: a = (a + 1)::numeric(9,2)  (adds)|Formula: b = (a / \
             3)::numeric(9,2)  (ordered)|Formula: n = (('x' || n) || k)  (ordered)",
        ),
        (
            "UPDATE pair SET k = n, n = md5(n) WHERE id = 1",
            "Point Update on pair|Formula: k = n  (program: it may be NULL, and the column may \
             not)|Formula: n = Text(Md5)(n)  (ordered)",
        ),
        (
            "UPDATE pair SET n = upper(n) || left(k, 2), k = lpad(k, 9, '-') WHERE id = 1",
            "Formula Update on pair|Formula: n = (Text(Upper)(n) || Text(Left)(k, 2))  \
             (ordered)|Formula: k = Text(PadLeft)(k, 9, '-')  (ordered)",
        ),
        (
            "UPDATE pair SET n = substr(n, 1, length(k) - 1) || b WHERE id = 1",
            "Formula Update on pair|Formula: n = (Text(Substring)(n, 1, (Text(Length)(k) - 1)) || \
             b::text)  (ordered)",
        ),
        (
            "UPDATE pair SET k = split_part(k, '-', 2), n = translate(n, 'a', 'b') WHERE id = 1",
            "Formula Update on pair|Formula: k = Text(SplitPart)(k, '-', 2)  (ordered)|Formula: \
             n = Text(Translate)(n, 'a', 'b')  (ordered)",
        ),
        (
            "UPDATE pair SET a = CASE WHEN a >= 5 THEN a - 5 ELSE a END, n = 'x' WHERE id = 1",
            "Formula Update on pair|Formula: a = CASE WHEN (a >= 5) THEN (a - 5) ELSE a::numeric \
             END::numeric(9,2)  (ordered)|Formula: n = 'x'  (constant)",
        ),
        (
            "UPDATE part SET n = n + 1 WHERE id = 1 RETURNING n",
            "Update on part|Formula: n = (n + 1)  (adds)|Reads the row: the table is replicated",
        ),
    ] {
        let plan = explain(&cluster, text);
        let lines = plan.lines().map(str::trim).filter(|line| {
            let shown = [
                "Formula",
                "No Formula",
                "Reads",
                "Point",
                "Update",
                "Guarded",
            ];
            shown.iter().any(|word| line.starts_with(word))
        });
        let lines: Vec<&str> = lines
            .map(|line| {
                line.strip_suffix("  (one operation on one shard)")
                    .unwrap_or(line)
            })
            .collect();
        assert_eq!(lines.join("|"), wanted, "{text}\n{plan}");
    }
}

/// Of each kind of value: what is folded in order, and why the rest is computed alone.
#[test]
fn explain_says_why_a_value_is_no_ordered_formula() {
    let cluster = tpcc();
    let table = "CREATE TABLE kinds (id int PRIMARY KEY, f float8, g real, d date, ts timestamp, \
                 tz timestamptz, tm time, iv interval, a int[], w text[], j jsonb, o json, n int, \
                 m int NOT NULL, s text, c float8 CONSTRAINT positive CHECK (c > 0))";
    cluster.run(table).expect(table);
    for (set, wanted) in [
        ("f = f * 1.5 + g", "(ordered)"),
        ("f = f / 3", "(ordered)"),
        ("g = sqrt(abs(f))::real", "(ordered)"),
        ("f = n / 2.5", "(ordered)"),
        ("n = f", "(ordered)"),
        ("f = exp(f)", "(program: no bounds are known of Exp(f))"),
        (
            "f = sin(f) + 1",
            "(program: no bounds are known of Float(Sin)(f))",
        ),
        ("f = f ^ 2", "(program: no bounds are known of Pow(f, 2))"),
        (
            "c = c * 2",
            "(program: check constraint positive reads the column)",
        ),
        ("d = d + 1", "(ordered)"),
        ("d = ts", "(ordered)"),
        ("n = d - '2026-01-01'", "(ordered)"),
        ("ts = ts + interval '1 month'", "(ordered)"),
        ("ts = date_trunc('month', ts) + iv", "(ordered)"),
        ("tz = tz + interval '1 day'", "(ordered)"),
        ("tm = tm + interval '1 hour'", "(ordered)"),
        ("iv = iv * 2 + interval '1 day'", "(ordered)"),
        ("n = extract(year FROM d)", "(ordered)"),
        (
            "m = extract(year FROM d)",
            "(program: it may be NULL, and the column may not)",
        ),
        (
            "iv = age(ts, tz::timestamp)",
            "(program: no bounds are known of",
        ),
        ("a = a || 4", "(ordered)"),
        ("a = array_append(a, n)", "(ordered)"),
        ("a = ARRAY[n, 5] || array_remove(a, 3)", "(ordered)"),
        ("n = a[2] + cardinality(a)", "(ordered)"),
        ("m = cardinality(ARRAY[m, 1])", "(ordered)"),
        (
            "m = (ARRAY[m, 1])[1]",
            "(program: it may be NULL, and the column may not)",
        ),
        (
            "a = a[2:3]",
            "(program: no bounds are known of Array(Slice)(a, 2, 3))",
        ),
        (
            "s = array_to_string(w, ',')",
            "(program: no bounds are known of",
        ),
        ("j = j || '{\"a\": 1}'", "(ordered)"),
        ("j = jsonb_set(j, '{a}', to_jsonb(n))", "(ordered)"),
        ("j = j || jsonb_build_object('n', n + 1)", "(ordered)"),
        ("s = j ->> 'a'", "(ordered)"),
        ("n = (j ->> 'a')::int", "(program: no bounds are known of"),
        ("s = o ->> 'a'", "(program: no bounds are known of"),
        ("s = md5(s)", "(ordered)"),
        (
            "s = translate(split_part(s, '-', 2), 'a', 'b')",
            "(ordered)",
        ),
        (
            "s = regexp_replace(s, 'a', 'b')",
            "(program: no bounds are known of",
        ),
    ] {
        let plan = explain(&cluster, &format!("UPDATE kinds SET {set} WHERE id = 1"));
        assert!(plan.contains(wanted), "{set}: {wanted}\n{plan}");
    }
}

/// A statement has eight cases at most, and no time is lost with those of more: they are computed
/// in order, or by a program.
#[test]
fn many_cases_are_one_value() {
    let cluster = tpcc();
    let table = "CREATE TABLE t (id int PRIMARY KEY, a int, b int, c int, note text)";
    cluster.run(table).expect(table);
    let arms = |count: usize, column: &str| {
        let arm = |at: usize| format!("WHEN {column} >= {at} THEN {column} - {at} ");
        let arms: String = (1..=count).rev().map(arm).collect();
        format!("{column} = CASE {arms}ELSE {column} + 1 END")
    };
    let both = format!("{}, {}", arms(3, "a"), arms(1, "b"));
    let three = format!("{both}, {}", arms(1, "c"));
    let with_program = format!("{three}, note = note || note");
    let with_note = format!("{}, note = 'x'", arms(1, "a"));
    for (set, title) in [
        (arms(7, "a"), "Guarded Formula Update"),
        (arms(8, "a"), "Formula Update"),
        (arms(20_000, "a"), "Point Update"),
        (both, "Guarded Formula Update"),
        (three, "Formula Update"),
        (with_program, "Formula Update"),
        (with_note, "Formula Update"),
    ] {
        let plan = explain(&cluster, &format!("UPDATE t SET {set} WHERE id = 1"));
        let first = plan.lines().next().expect("a plan has lines");
        assert!(first.trim().starts_with(title), "{first}");
        let says_why =
            plan.contains("Reads the row: ") || plan.contains("(program: it has too many parts)");
        assert_eq!(says_why, title == "Point Update", "{plan}");
    }
}

/// Those of `stock` and `hot-pair`, whose transactions are to share their rows.
#[test]
fn the_changes_of_history_workloads_are_formulas() {
    let cluster = tpcc();
    for text in [
        "CREATE TABLE bench_stock (k int PRIMARY KEY, n bigint NOT NULL)",
        "CREATE TABLE bench_pair (id int PRIMARY KEY, balance bigint NOT NULL)",
    ] {
        cluster.run(text).expect(text);
    }
    for (text, wanted) in [
        (
            "UPDATE bench_stock SET n = n - 3 WHERE k = 1 AND n >= 3",
            "Guarded Formula Update on bench_stock",
        ),
        (
            "UPDATE bench_stock SET n = n + 3 WHERE k = 1",
            "Formula Update on bench_stock",
        ),
        (
            "UPDATE bench_pair SET balance = balance + -5 WHERE id = 1",
            "Formula Update on bench_pair",
        ),
    ] {
        let plan = explain(&cluster, text);
        assert!(plan.trim_start().starts_with(wanted), "{text}\n{plan}");
    }
}
