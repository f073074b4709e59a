// node-postgres: queries, types, cursors, errors, pools, notifications.
import pg from 'pg';
import Cursor from 'pg-cursor';
import { assert, check, refused } from './checks.mjs';

async function connected(url, run) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}

const TYPES = [
  ['bool', 'boolean', true, true],
  ['int2', 'smallint', -7, -7],
  ['int4', 'integer', 2147483647, 2147483647],
  ['int8', 'bigint', '9223372036854775807', '9223372036854775807'],
  ['float8', 'double precision', 0.1, 0.1],
  ['numeric', 'numeric(20,4)', '1234567890123.4500', '1234567890123.4500'],
  ['text', 'text', 'zwölf \\ \' "', 'zwölf \\ \' "'],
  ['varchar', 'varchar(5)', 'abcde', 'abcde'],
  ['uuid', 'uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
  ['bytea', 'bytea', Buffer.from([0, 255, 39, 92]), Buffer.from([0, 255, 39, 92])],
  ['json', 'json', { a: [1, null, 'x'] }, { a: [1, null, 'x'] }],
  ['jsonb', 'jsonb', { b: { c: 1.5 } }, { b: { c: 1.5 } }],
  ['int4_array', 'int[]', [1, null, 3], [1, null, 3]],
  ['text_array', 'text[]', ['a,b', '"', '{}', null], ['a,b', '"', '{}', null]],
  ['timestamptz', 'timestamptz', new Date('2024-02-29T12:34:56.789Z'), new Date('2024-02-29T12:34:56.789Z')],
  ['null', 'text', null, null],
];

async function types(url) {
  for (const [name, type, sent, wanted] of TYPES) {
    await check(`pg_type_${name}`, () =>
      connected(url, async (client) => {
        const plain = await client.query(`SELECT $1::${type} AS value`, [sent]);
        assert.deepEqual(plain.rows[0].value, wanted);
        await client.query(`CREATE TABLE type_${name} (id int PRIMARY KEY, value ${type})`);
        const text = `INSERT INTO type_${name} VALUES (1, $1) RETURNING value`;
        const stored = await client.query(text, [sent]);
        assert.deepEqual(stored.rows[0].value, wanted);
      }),
    );
  }
}

async function queries(url) {
  await check('pg_tls', () =>
    connected(url, async (client) => {
      assert.equal(client.connection.stream.encrypted, true);
      assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1);
    }),
  );
  await check('pg_result', () =>
    connected(url, async (client) => {
      const result = await client.query('SELECT 1 AS a, 2::bigint AS b UNION ALL SELECT 3, 4');
      assert.deepEqual(result.fields.map((field) => [field.name, field.dataTypeID]), [['a', 23], ['b', 20]]);
      assert.equal(result.command, 'SELECT');
      assert.equal(result.rowCount, 2);
      const many = await client.query('SELECT 1 AS a; SELECT 2 AS b');
      assert.deepEqual(many.map((one) => one.rows), [[{ a: 1 }], [{ b: 2 }]]);
    }),
  );
  await check('pg_prepared', () =>
    connected(url, async (client) => {
      for (let at = 0; at < 20; at += 1) {
        const result = await client.query({ name: 'twice', text: 'SELECT $1::int * 2 AS n', values: [at] });
        assert.equal(result.rows[0].n, at * 2);
      }
    }),
  );
  await check('pg_prepared_after_ddl', () =>
    connected(url, async (client) => {
      await client.query('CREATE TABLE grows (id int PRIMARY KEY)');
      const insert = { name: 'grow', text: 'INSERT INTO grows (id) VALUES ($1)' };
      await client.query({ ...insert, values: [1] });
      await client.query('ALTER TABLE grows ADD COLUMN more text');
      await client.query({ ...insert, values: [2] });
      const { rows } = await client.query('SELECT * FROM grows ORDER BY id');
      assert.deepEqual(rows, [{ id: 1, more: null }, { id: 2, more: null }]);
    }),
  );
  await check('pg_enum', () =>
    connected(url, async (client) => {
      await client.query("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')");
      await client.query('CREATE TABLE moods (id int PRIMARY KEY, now mood NOT NULL)');
      await client.query('INSERT INTO moods VALUES (1, $1), (2, $2)', ['happy', 'sad']);
      const { rows } = await client.query('SELECT now FROM moods WHERE now > $1 ORDER BY now', ['sad']);
      assert.deepEqual(rows, [{ now: 'happy' }]);
      await refused('22P02', client.query('INSERT INTO moods VALUES (3, $1)', ['angry']));
      const listed = await client.query('SELECT enum_range(NULL::mood)::text AS all');
      assert.equal(listed.rows[0].all, '{sad,ok,happy}');
    }),
  );
  await check('pg_long_values', () =>
    connected(url, async (client) => {
      const long = 'ä'.repeat(1_000_000);
      const { rows } = await client.query('SELECT $1::text AS t, length($1) AS n', [long]);
      assert.equal(rows[0].n, 1_000_000);
      assert.equal(rows[0].t, long);
    }),
  );
}

async function blocks(url) {
  await check('pg_cursor', () =>
    connected(url, async (client) => {
      const cursor = client.query(new Cursor('SELECT n FROM generate_series(1, 250) AS g(n)'));
      const sizes = [];
      for (let rows = await cursor.read(100); rows.length > 0; rows = await cursor.read(100)) {
        sizes.push(rows.length);
      }
      assert.deepEqual(sizes, [100, 100, 50]);
      const early = client.query(new Cursor('SELECT n FROM generate_series(1, 100000) AS g(n)'));
      assert.equal((await early.read(10)).length, 10);
      await early.close();
      assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1);
    }),
  );
  await check('pg_savepoint', () =>
    connected(url, async (client) => {
      await client.query('CREATE TABLE saved (id int PRIMARY KEY)');
      await client.query('BEGIN');
      await client.query('INSERT INTO saved VALUES (1)');
      await client.query('SAVEPOINT a');
      await refused('23505', client.query('INSERT INTO saved VALUES (1)'));
      await refused('25P02', client.query('SELECT 1'));
      await client.query('ROLLBACK TO SAVEPOINT a');
      await client.query('INSERT INTO saved VALUES (2)');
      await client.query('COMMIT');
      const { rows } = await client.query('SELECT id FROM saved ORDER BY id');
      assert.deepEqual(rows, [{ id: 1 }, { id: 2 }]);
    }),
  );
  await check('pg_rollback', () =>
    connected(url, async (client) => {
      await client.query('CREATE TABLE undone (id int PRIMARY KEY)');
      await client.query('BEGIN');
      await client.query('INSERT INTO undone VALUES (1)');
      await client.query('ROLLBACK');
      assert.equal((await client.query('SELECT count(*)::int AS n FROM undone')).rows[0].n, 0);
    }),
  );
  await check('pg_cancel', () =>
    connected(url, async (client) => {
      const slow = client.query('SELECT pg_sleep(20)');
      const query = client.activeQuery ?? client._activeQuery;
      await new Promise((resolve) => setTimeout(resolve, 200));
      const other = new pg.Client({ connectionString: url });
      other.cancel(client, query);
      await refused('57014', slow);
      assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1);
    }),
  );
  await check('pg_statement_timeout', () =>
    connected(url, async (client) => {
      await client.query("SET statement_timeout = '200ms'");
      await refused('57014', client.query('SELECT pg_sleep(20)'));
    }),
  );
  await check('pg_bulk_insert', () =>
    connected(url, async (client) => {
      await client.query('CREATE TABLE bulk (id int PRIMARY KEY, name text, at timestamptz)');
      const rows = Array.from({ length: 2_000 }, (_, at) => [at, `name ${at}`, new Date(at * 1000)]);
      const places = rows.map((_, at) => `($${at * 3 + 1}, $${at * 3 + 2}, $${at * 3 + 3})`);
      const done = await client.query(`INSERT INTO bulk VALUES ${places}`, rows.flat());
      assert.equal(done.rowCount, 2_000);
      const ids = rows.map(([id]) => id + 10_000);
      await client.query('INSERT INTO bulk SELECT * FROM unnest($1::int[], $2::text[], $3::timestamptz[])', [
        ids, rows.map((row) => row[1]), rows.map((row) => row[2])]);
      const { rows: [sum] } = await client.query('SELECT count(*)::int AS n, max(at) AS at FROM bulk');
      assert.deepEqual(sum, { n: 4_000, at: new Date(1_999_000) });
    }),
  );
  await check('pg_optimistic', () =>
    connected(url, async (client) => {
      await client.query('CREATE TABLE versioned (id int PRIMARY KEY, version int, value text)');
      await client.query("INSERT INTO versioned VALUES (1, 1, 'a')");
      const text = 'UPDATE versioned SET value = $1, version = version + 1 WHERE id = 1 AND version = $2';
      assert.equal((await client.query(text, ['b', 1])).rowCount, 1);
      assert.equal((await client.query(text, ['c', 1])).rowCount, 0);
    }),
  );
}

const ERRORS = [
  ['syntax', '42601', 'SELEC 1'],
  ['table', '42P01', 'SELECT * FROM nowhere'],
  ['column', '42703', 'SELECT nothing FROM errors'],
  ['function', '42883', 'SELECT nothing(1)'],
  ['unique', '23505', "INSERT INTO errors VALUES (1, 1, 'x')"],
  ['not_null', '23502', "INSERT INTO errors VALUES (2, NULL, 'x')"],
  ['check', '23514', "INSERT INTO errors VALUES (2, -1, 'x')"],
  ['foreign_key', '23503', 'INSERT INTO errors_child VALUES (1, 99)'],
  ['too_long', '22001', "INSERT INTO errors VALUES (2, 1, 'abcdef')"],
  ['division', '22012', 'SELECT 1 / 0'],
  ['range', '22003', 'SELECT 100000::smallint'],
  ['text', '22P02', "SELECT 'x'::int"],
];

async function errors(url) {
  await connected(url, async (client) => {
    await client.query('CREATE TABLE errors (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0), t varchar(5))');
    await client.query('CREATE TABLE errors_child (id int PRIMARY KEY, parent int REFERENCES errors)');
    await client.query("INSERT INTO errors VALUES (1, 1, 'x')");
  });
  for (const [name, code, text] of ERRORS) {
    await check(`pg_error_${name}`, () => connected(url, (client) => refused(code, client.query(text))));
  }
  await check('pg_error_fields', () =>
    connected(url, async (client) => {
      const error = await refused('23505', client.query("INSERT INTO errors VALUES (1, 1, 'x')"));
      assert.equal(error.constraint, 'errors_pkey');
      assert.equal(error.table, 'errors');
      assert.equal(error.detail, 'Key (id)=(1) already exists.');
      const syntax = await refused('42601', client.query('SELECT 1 FROM FROM'));
      assert.equal(syntax.position, '15');
    }),
  );
}

async function pools(url) {
  await check('pg_pool', async () => {
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    await pool.query('CREATE TABLE pooled (id int PRIMARY KEY, n int)');
    await pool.query('INSERT INTO pooled VALUES (1, 0)');
    const add = async () => {
      for (;;) {
        try {
          return await pool.query({ name: 'add', text: 'UPDATE pooled SET n = n + $1 WHERE id = 1', values: [1] });
        } catch (error) {
          assert.equal(error.code, '40001');
        }
      }
    };
    await Promise.all(Array.from({ length: 40 }, add));
    assert.equal((await pool.query('SELECT n FROM pooled')).rows[0].n, 40);
    await pool.end();
  });
  await check('pg_listen', () =>
    connected(url, async (listener) => {
      const heard = [];
      const third = new Promise((resolve) => {
        listener.on('notification', (told) => {
          heard.push([told.channel, told.payload]);
          if (heard.length === 3) resolve();
        });
      });
      await listener.query('LISTEN news');
      await connected(url, async (teller) => {
        await teller.query("NOTIFY news, 'one'");
        await teller.query("SELECT pg_notify('news', $1)", ['two']);
        await teller.query('BEGIN');
        await teller.query("NOTIFY news, 'never'");
        await teller.query('ROLLBACK');
        await teller.query('NOTIFY news');
      });
      await third;
      assert.deepEqual(heard, [['news', 'one'], ['news', 'two'], ['news', '']]);
    }),
  );
  await check('pg_ends_by_other', () =>
    connected(url, async (killer) => {
      const victim = new pg.Client({ connectionString: url });
      await victim.connect();
      const gone = new Promise((resolve) => victim.on('error', resolve));
      const { rows } = await victim.query('SELECT pg_backend_pid() AS pid');
      await killer.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
      assert.equal((await gone).code, '57P01');
    }),
  );
}

export async function checks(url) {
  await queries(url);
  await types(url);
  await blocks(url);
  await errors(url);
  await pools(url);
}
