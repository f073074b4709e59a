-- A session as people have it. The whole output was recorded from PostgreSQL.
CREATE TABLE customer (
  id integer PRIMARY KEY,
  email varchar(40) UNIQUE,
  name text NOT NULL DEFAULT 'nobody',
  balance numeric(12,2) CHECK (balance >= 0)
);
CREATE TABLE orders (
  id integer PRIMARY KEY,
  customer_id integer NOT NULL REFERENCES customer (id),
  placed date,
  total numeric(10,2),
  note text
);
CREATE INDEX orders_by_customer ON orders (customer_id, placed DESC);
\echo rows
INSERT INTO customer VALUES (1, 'ann@example.org', 'Ann', 100.00), (2, 'bob@example.org', 'Bob', 20.5), (3, NULL, DEFAULT, NULL);
INSERT INTO orders VALUES (10, 1, '2026-01-05', 12.30, 'first'), (11, 1, '2026-02-01', 7, NULL), (12, 2, '2026-01-20', 0.99, 'it''s "quoted"');
SELECT * FROM customer ORDER BY id;
SELECT * FROM orders ORDER BY id;
\echo queries
SELECT c.name, count(o.id) AS orders, sum(o.total) AS total FROM customer c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.id, c.name ORDER BY c.id;
SELECT name FROM customer WHERE id IN (SELECT customer_id FROM orders WHERE total > 1) ORDER BY name;
SELECT c.name, o.placed FROM customer c JOIN orders o ON o.customer_id = c.id WHERE o.note IS NOT NULL ORDER BY o.placed DESC;
SELECT name, CASE WHEN balance > 50 THEN 'rich' WHEN balance IS NULL THEN 'unknown' ELSE 'poor' END AS class FROM customer ORDER BY name;
SELECT DISTINCT customer_id FROM orders ORDER BY 1 DESC LIMIT 1 OFFSET 1;
SELECT upper(name) || '!' AS loud, length(email), coalesce(email, '-') FROM customer WHERE name LIKE '%n%' ORDER BY 1;
SELECT min(total), max(total), avg(total)::numeric(10,4), count(note), count(*) FROM orders;
SELECT customer_id, count(*) FROM orders GROUP BY customer_id HAVING count(*) > 1;
SELECT 1 AS one, 2.50 AS two, 'text' AS three, true AS four, NULL AS five, date '2026-03-01' AS six, 1e3::float8 AS seven;
\echo expanded
\x on
SELECT * FROM customer WHERE id = 2;
\x off
\echo changes
UPDATE customer SET balance = balance + 5 WHERE id = 2 RETURNING id, balance;
DELETE FROM orders WHERE id = 11 RETURNING *;
INSERT INTO customer VALUES (1, 'x', 'Other', 1) ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id, name;
INSERT INTO customer VALUES (1, 'x', 'Third', 1) ON CONFLICT DO NOTHING;
SELECT name FROM customer WHERE id = 1;
\echo transactions
BEGIN;
UPDATE customer SET balance = 0 WHERE id = 1;
SELECT balance FROM customer WHERE id = 1;
ROLLBACK;
SELECT balance FROM customer WHERE id = 1;
BEGIN ISOLATION LEVEL SERIALIZABLE;
UPDATE customer SET balance = 1 WHERE id = 1;
COMMIT;
SELECT balance FROM customer WHERE id = 1;
\echo copy
COPY orders (id, customer_id, total) FROM STDIN;
20	3	1.50
21	3	\N
\.
COPY (SELECT id, total FROM orders WHERE customer_id = 3 ORDER BY id) TO STDOUT;
COPY (SELECT id, note FROM orders ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER);
\echo prepared
PREPARE by_id (integer) AS SELECT name FROM customer WHERE id = $1;
EXECUTE by_id (2);
DEALLOCATE by_id;
\echo variables
SELECT id AS the_id FROM orders WHERE note = 'first' \gset
\echo :the_id
SELECT note FROM orders WHERE id = :the_id;
\echo end
DROP TABLE orders;
DROP TABLE customer;
DROP TABLE IF EXISTS customer;
