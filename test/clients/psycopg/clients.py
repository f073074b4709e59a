"""psycopg 3 against a running server: clients.py URL. Prints `passed: N`.

Everything here also passes against PostgreSQL 15.
"""

import datetime
import decimal
import sys
import threading
import uuid

import psycopg
from psycopg import errors
from psycopg.rows import dict_row
from psycopg.types import TypeInfo
from psycopg.types.multirange import Int4Multirange, MultirangeInfo
from psycopg.types.numeric import Int4
from psycopg.types.range import DateRange, Int4Range, NumericRange, RangeInfo, TimestamptzRange

CHECKS = []


def check(function):
    """Registers a check; they run in order, each on a connection of its own."""
    CHECKS.append(function)
    return function


def raises(error, run):
    try:
        run()
    except error as caught:
        return caught
    raise AssertionError(f"{error.__name__} is due")


@check
def types_survive_in_both_formats(url):
    with psycopg.connect(url) as conn:
        conn.execute(
            "CREATE TABLE kinds (id int PRIMARY KEY, b bool, i2 int2, i8 int8, f float8,"
            " n numeric(20,5), t text, c char(4), y bytea, d date, ts timestamp,"
            " tz timestamptz, u uuid, hour time, hours time[])"
        )
        zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
        row = (
            True, -32768, 2**63 - 1, 0.1, decimal.Decimal("-12345678901234.56789"),
            "grüße 😀 \\ ' \"", "ab  ", bytes(range(256)), datetime.date(1999, 12, 31),
            datetime.datetime(2026, 1, 2, 3, 4, 5, 678901),
            datetime.datetime(2026, 6, 7, 8, 9, 10, 11, tzinfo=zone),
            uuid.UUID("12345678-1234-5678-1234-567812345678"),
            datetime.time(23, 59, 59, 999999), [datetime.time(0), datetime.time(4, 5)],
        )
        marks = ", ".join(["%s"] * 15)
        conn.execute(f"INSERT INTO kinds VALUES ({marks})", (1, *row))
        conn.execute(f"INSERT INTO kinds VALUES ({marks})", (2, *[None] * 14))
        for binary in (False, True):
            cursor = conn.cursor(binary=binary)
            found = cursor.execute("SELECT * FROM kinds WHERE id = %s", (1,)).fetchone()
            assert found == (1, *row), (binary, found)
            found = cursor.execute("SELECT * FROM kinds WHERE id = 2").fetchone()
            assert found == (2, *[None] * 14)
        names = [column.name for column in cursor.description]
        assert names[:4] == ["id", "b", "i2", "i8"], names
        assert cursor.description[5].type_code == 1700


@check
def ranges_survive_in_both_formats(url):
    with psycopg.connect(url) as conn:
        conn.execute(
            "CREATE TABLE spans (id int PRIMARY KEY, i int4range, n numrange, d daterange,"
            " t tstzrange, m int4multirange, a int4range[])"
        )
        day = datetime.date(2026, 1, 2)
        at = datetime.datetime(2026, 6, 7, 8, 9, 10, 11, tzinfo=datetime.timezone.utc)
        ints = [Int4Range(Int4(low), Int4(low + 2)) for low in (1, 5)]
        row = (
            ints[0], NumericRange(decimal.Decimal("1.50"), None, "()"), DateRange(None, day),
            TimestamptzRange(at, at, "[]"), Int4Multirange(ints), [Int4Range(empty=True), *ints],
        )
        for number, mark in (1, "%t"), (2, "%b"):
            marks = ", ".join([mark] * 7)
            conn.execute(f"INSERT INTO spans VALUES ({marks})", (number, *row))
        for binary in (False, True):
            cursor = conn.cursor(binary=binary)
            found = cursor.execute("SELECT i, n, d, t, m, a FROM spans").fetchall()
            assert found == [row, row], (binary, found)
        assert RangeInfo.fetch(conn, "daterange").subtype_oid == 1082
        assert MultirangeInfo.fetch(conn, "tstzmultirange").range_oid == 3910


@check
def transactions_commit_and_roll_back(url):
    with psycopg.connect(url) as conn:
        conn.execute("CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL)")
        conn.execute("INSERT INTO accounts VALUES (1, 10), (2, 20)")
    with psycopg.connect(url) as conn:
        with raises_inside(ZeroDivisionError), conn.transaction():
            conn.execute("UPDATE accounts SET n = 0")
            1 / 0
        assert conn.execute("SELECT sum(n) FROM accounts").fetchone() == (30,)
        conn.rollback()
        with conn.transaction():
            conn.execute("UPDATE accounts SET n = n + 1 WHERE id = 1")
        assert conn.info.transaction_status.name == "IDLE"
        conn.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        conn.execute("UPDATE accounts SET n = n - 1 WHERE id = 2")
        assert conn.info.transaction_status.name == "INTRANS"
        conn.commit()
        assert conn.execute("SELECT n FROM accounts ORDER BY id").fetchall() == [(11,), (19,)]
        conn.rollback()
        conn.read_only = True
        raises(errors.ReadOnlySqlTransaction, lambda: conn.execute("DELETE FROM accounts"))
        assert conn.info.transaction_status.name == "INERROR"
        conn.rollback()


class raises_inside:
    """A context that an exception must leave."""

    def __init__(self, error):
        self.error = error

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        assert kind is not None and issubclass(kind, self.error), kind
        return True


@check
def errors_are_told_apart(url):
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("CREATE TABLE strict (id int PRIMARY KEY, c int NOT NULL CHECK (c > 0))")
        conn.execute("CREATE TABLE child (id int PRIMARY KEY, s int REFERENCES strict (id))")
        conn.execute("INSERT INTO strict VALUES (1, 1)")
        cases = [
            (errors.SyntaxError, "SELEC 1"),
            (errors.UndefinedTable, "SELECT * FROM missing"),
            (errors.UndefinedColumn, "SELECT missing FROM strict"),
            (errors.UniqueViolation, "INSERT INTO strict VALUES (1, 2)"),
            (errors.NotNullViolation, "INSERT INTO strict VALUES (2, NULL)"),
            (errors.CheckViolation, "INSERT INTO strict VALUES (2, 0)"),
            (errors.ForeignKeyViolation, "INSERT INTO child VALUES (1, 7)"),
            (errors.DivisionByZero, "SELECT 1 / 0"),
            (errors.InvalidTextRepresentation, "SELECT 'x'::int"),
            (errors.NumericValueOutOfRange, "SELECT 99999::int2"),
            (errors.DuplicateTable, "CREATE TABLE strict (id int PRIMARY KEY)"),
        ]
        for error, sql in cases:
            raises(error, lambda: conn.execute(sql))
            assert conn.execute("SELECT 1").fetchone() == (1,)
        caught = raises(
            errors.UniqueViolation, lambda: conn.execute("INSERT INTO strict VALUES (1, 2)")
        )
        assert caught.diag.constraint_name == "strict_pkey"
        assert caught.diag.table_name == "strict"
        assert caught.diag.message_primary == (
            'duplicate key value violates unique constraint "strict_pkey"'
        )


@check
def statements_are_prepared_and_batched(url):
    with psycopg.connect(url, prepare_threshold=2) as conn:
        conn.execute("CREATE TABLE batch (id int PRIMARY KEY, t text)")
        rows = [(n, f"row {n}") for n in range(500)]
        cursor = conn.cursor()
        cursor.executemany("INSERT INTO batch VALUES (%s, %s)", rows)
        assert cursor.rowcount == 500
        for n in range(20):
            found = conn.execute("SELECT t FROM batch WHERE id = %s", (n,)).fetchone()
            assert found == (f"row {n}",)
        cursor.executemany(
            "UPDATE batch SET t = %s WHERE id = %s RETURNING id", [("x", 1), ("y", 2)],
            returning=True,
        )
        ids = []
        while True:
            ids.extend(cursor.fetchall())
            if not cursor.nextset():
                break
        assert ids == [(1,), (2,)]
        with conn.pipeline():
            cursors = [conn.execute("SELECT %s::int * 2", (n,)) for n in range(50)]
        assert [cursor.fetchone()[0] for cursor in cursors] == [2 * n for n in range(50)]


@check
def an_error_in_a_pipeline_ends_it_and_not_the_connection(url):
    with psycopg.connect(url, autocommit=True) as conn:
        def broken():
            with conn.pipeline():
                conn.execute("SELECT 1")
                conn.execute("SELECT 1 / %s::int", (0,))
                conn.execute("SELECT 2")

        raises(errors.DivisionByZero, broken)
        assert conn.execute("SELECT 3").fetchone() == (3,)


@check
def copies_go_both_ways(url):
    with psycopg.connect(url) as conn:
        conn.execute("CREATE TABLE copied (id int PRIMARY KEY, n numeric, t text)")
        cursor = conn.cursor()
        with cursor.copy("COPY copied FROM STDIN") as copy:
            for n in range(1000):
                copy.write_row((n, decimal.Decimal(n) / 8, None if n % 3 else "a\tb\\c\n"))
        assert cursor.rowcount == 1000
        with cursor.copy("COPY (SELECT * FROM copied WHERE id < 3 ORDER BY id) TO STDOUT") as copy:
            text = b"".join(bytes(piece) for piece in copy)
        assert text == b"0\t0\ta\\tb\\\\c\\n\n1\t0.125\t\\N\n2\t0.25\t\\N\n", text
        with cursor.copy("COPY copied TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int4", "numeric", "text"])
            rows = sorted(copy.rows())
        assert len(rows) == 1000 and rows[8][1] == 1
        conn.execute("CREATE TABLE again (id int PRIMARY KEY, n numeric, t text)")
        with cursor.copy("COPY again FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int4", "numeric", "text"])
            for row in rows:
                copy.write_row(row)
        found = conn.execute("SELECT count(*), sum(n) FROM again").fetchone()
        assert found == (1000, sum(row[1] for row in rows)), found
    with psycopg.connect(url, autocommit=True) as conn:
        def broken():
            with conn.cursor().copy("COPY copied FROM STDIN") as copy:
                copy.write(b"not a number\t1\tx\n")

        raises(errors.InvalidTextRepresentation, broken)
        assert conn.execute("SELECT count(*) FROM copied").fetchone() == (1000,)


@check
def rows_have_names(url):
    with psycopg.connect(url, row_factory=dict_row) as conn:
        row = conn.execute("SELECT 1 AS one, 'x' AS two, NULL AS three").fetchone()
        assert row == {"one": 1, "two": "x", "three": None}
        assert conn.execute("SELECT 1 WHERE false").fetchall() == []


@check
def many_rows_stream(url):
    with psycopg.connect(url) as conn:
        conn.execute("CREATE TABLE many (id int PRIMARY KEY, t text)")
        conn.execute("INSERT INTO many SELECT g, repeat('x', 50) FROM generate_series(1, 3000) g")
        total = 0
        for (n, text) in conn.cursor().stream("SELECT id, t FROM many"):
            total += n
            assert len(text) == 50
        assert total == 3000 * 3001 // 2


@check
def a_statement_is_cancelled(url):
    with psycopg.connect(url, autocommit=True) as conn:
        done = threading.Event()

        # Again and again: a request before the statement has begun has no effect.
        def cancel():
            while not done.wait(0.3):
                conn.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        sql = "SELECT count(*) FROM many a, many b, many c WHERE a.t < b.t || c.t"
        try:
            raises(errors.QueryCanceled, lambda: conn.execute(sql))
        finally:
            done.set()
            thread.join()
        assert conn.execute("SELECT 1").fetchone() == (1,)


@check
def the_catalog_answers(url):
    with psycopg.connect(url) as conn:
        uuid_type = TypeInfo.fetch(conn, "uuid")
        assert uuid_type.oid == 2950 and uuid_type.array_oid == 2951
        assert TypeInfo.fetch(conn, "no_such_type") is None
        assert conn.info.server_version // 10000 == 15
        assert conn.info.parameter_status("client_encoding") == "UTF8"
        assert conn.info.parameter_status("integer_datetimes") == "on"
        tables = conn.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_name = 'many'"
        ).fetchall()
        assert tables == [("many",)]


@check
def settings_hold_for_their_session(url):
    with psycopg.connect(url, autocommit=True, options="-c statement_timeout=1234") as conn:
        assert conn.execute("SHOW statement_timeout").fetchone() == ("1234ms",)
        conn.execute("SET application_name = 'checks'")
        assert conn.execute("SHOW application_name").fetchone() == ("checks",)
        assert conn.info.parameter_status("application_name") == "checks"
        conn.execute("SET synchronous_commit = off")
        assert conn.execute("SHOW synchronous_commit").fetchone() == ("off",)
    with psycopg.connect(url, autocommit=True) as conn:
        assert conn.execute("SHOW statement_timeout").fetchone() == ("0",)


def main():
    url = sys.argv[1]
    for function in CHECKS:
        try:
            function(url)
        except BaseException:
            print(f"failed: {function.__name__}", file=sys.stderr)
            raise
    print(f"passed: {len(CHECKS)}")


main()
