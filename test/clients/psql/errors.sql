-- Errors of every class by SQLSTATE; the session goes on after each.
\set VERBOSITY sqlstate
CREATE TABLE t (id integer PRIMARY KEY, u integer UNIQUE, c integer CHECK (c > 0), n integer NOT NULL, s varchar(3), i2 smallint);
CREATE TABLE child (id integer PRIMARY KEY, t_id integer REFERENCES t (id));
INSERT INTO t VALUES (1, 1, 1, 1, 'abc', 1);
INSERT INTO child VALUES (1, 1);
\echo 42601 syntax
SELEC 1;
SELECT 1 FROM t WHERE;
\echo 42P01 missing table
SELECT * FROM missing;
\echo 42703 missing column
SELECT missing FROM t;
\echo 42883 missing function and operator
SELECT no_such_function(1);
SELECT 'a'::bytea + 1;
\echo 42702 ambiguous
SELECT id FROM t, child;
\echo 42803 grouping
SELECT id, count(*) FROM t;
\echo 42804 types
SELECT CASE WHEN 1 THEN 2 END;
INSERT INTO t (id, n) VALUES (true, 1);
\echo 42P07 duplicate table
CREATE TABLE t (id integer PRIMARY KEY);
\echo 42701 duplicate column
CREATE TABLE d (a integer, a integer);
\echo 22P02 not a number
SELECT 'x'::integer;
SELECT 'maybe'::boolean;
\echo 22003 out of range
SELECT 2147483647 + 1;
SELECT 40000::smallint;
INSERT INTO t VALUES (2, 2, 1, 1, 'a', 40000);
\echo 22012 division by zero
SELECT 1 / 0;
SELECT 1 % 0;
SELECT id / 0 FROM t;
\echo 22001 too long
INSERT INTO t VALUES (2, 2, 1, 1, 'abcd', 1);
\echo 22007 22008 dates
SELECT 'yesterday-ish'::date;
SELECT '2026-02-30'::date;
\echo 23505 duplicate keys
INSERT INTO t VALUES (1, 2, 1, 1, 'a', 1);
INSERT INTO t VALUES (2, 1, 1, 1, 'a', 1);
\echo 23502 not null
INSERT INTO t VALUES (2, 2, 1, NULL, 'a', 1);
\echo 23514 check
INSERT INTO t VALUES (2, 2, 0, 1, 'a', 1);
\echo 23503 foreign key, both ways
INSERT INTO child VALUES (2, 99);
DELETE FROM t WHERE id = 1;
\echo 21000 more than one row
INSERT INTO t VALUES (3, 3, 3, 3, 'c', 3);
SELECT (SELECT id FROM t);
\echo 25P02 a failed transaction
BEGIN;
SELECT 1 / 0;
SELECT 1;
COMMIT;
SELECT 1 AS alive;
\echo 25006 read only
BEGIN READ ONLY;
INSERT INTO t VALUES (4, 4, 4, 4, 'd', 4);
ROLLBACK;
\echo 26000 no such prepared statement
EXECUTE nothing;
\echo 42P02 no such parameter
SELECT $1;
\echo 3D000 no such database
DROP DATABASE nothing_like_it;
\echo 22023 and unknown settings
SET no_such_setting = 1;
SET default_transaction_isolation = 'sometimes';
\echo what is left
SELECT * FROM t ORDER BY id;
SELECT * FROM child ORDER BY id;
