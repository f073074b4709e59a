-- What psql shows of tables and indexes. The whole output was recorded from PostgreSQL.
CREATE TABLE customer (
  id integer PRIMARY KEY,
  email varchar(40) UNIQUE,
  name text NOT NULL DEFAULT 'nobody',
  balance numeric(12,2) CHECK (balance >= 0)
);
CREATE TABLE orders (
  id bigserial PRIMARY KEY,
  customer_id integer NOT NULL REFERENCES customer (id) ON DELETE CASCADE,
  placed timestamptz DEFAULT now(),
  note text
);
CREATE INDEX orders_by_customer ON orders (customer_id, placed DESC);
CREATE TABLE ident (a int GENERATED ALWAYS AS IDENTITY, b char(3), c date, PRIMARY KEY (a, b));
\d
\dt
\dt+
\dt o*
\di
\di+
\ds
\d customer
\d orders
\d ident
\d orders_by_customer
\d nothing
\dv
