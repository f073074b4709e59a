import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The JDBC driver against a running server: Clients.java URL. Prints `passed: N`. Everything here
 * also passes against PostgreSQL 15.
 */
public final class Clients {
    private static int passed = 0;

    private interface Check {
        void run(Connection connection) throws Exception;
    }

    private interface Action {
        void run() throws SQLException;
    }

    public static void main(String[] args) throws Exception {
        String url = args[0];
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            statement.execute(
                    "CREATE TABLE customer (id integer PRIMARY KEY, email varchar(40) UNIQUE,"
                            + " name text NOT NULL DEFAULT 'nobody', balance numeric(12,2))");
            statement.execute(
                    "CREATE TABLE orders (id bigserial PRIMARY KEY, customer_id integer NOT NULL"
                            + " REFERENCES customer (id), placed timestamptz, note text)");
            statement.execute("CREATE INDEX orders_by_customer ON orders (customer_id, placed)");
        }
        check(url, "types", Clients::types);
        check(url, "metadata", Clients::metadata);
        check(url, "result metadata", Clients::resultMetadata);
        check(url, "prepared statements", Clients::prepared);
        check(url, "generated keys", Clients::generatedKeys);
        check(url, "batches", Clients::batches);
        check(url, "fetch size", Clients::fetchSize);
        check(url, "transactions", Clients::transactions);
        check(url, "error codes", Clients::errorCodes);
        check(url, "cancel", Clients::cancel);
        check(url, "several results", Clients::severalResults);
        check(url + "&preferQueryMode=simple", "simple mode", Clients::prepared);
        check(url + "&binaryTransfer=false", "text transfer", Clients::types);
        System.out.println("passed: " + passed);
    }

    private static void check(String url, String name, Check check) throws Exception {
        try (Connection connection = DriverManager.getConnection(url)) {
            check.run(connection);
            passed += 1;
        } catch (Throwable error) {
            System.err.println("failed: " + name);
            throw error;
        }
    }

    private static void same(Object expected, Object found) {
        if (expected == null ? found != null : !expected.equals(found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static void refused(String state, Action action) {
        try {
            action.run();
        } catch (SQLException error) {
            same(state, error.getSQLState());
            return;
        }
        throw new AssertionError("SQLSTATE " + state + " is due");
    }

    private static Object ask(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            if (!rows.next()) {
                return null;
            }
            return rows.getObject(1);
        }
    }

    private static void types(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS kinds");
            statement.execute(
                    "CREATE TABLE kinds (id int PRIMARY KEY, b bool, i2 int2, i8 int8, f4 float4,"
                            + " f8 float8, n numeric(20,5), t text, y bytea, d date, ts timestamp,"
                            + " tz timestamptz, u uuid)");
        }
        LocalDateTime local = LocalDateTime.of(2026, 1, 2, 3, 4, 5, 678_901_000);
        OffsetDateTime instant = local.atOffset(ZoneOffset.UTC);
        UUID uuid = UUID.fromString("12345678-1234-5678-1234-567812345678");
        byte[] bytes = {0, 1, -1, 127, -128};
        String sql = "INSERT INTO kinds VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            // Often enough that the driver changes to a named statement and to binary.
            for (int id = 1; id <= 10; id++) {
                insert.setInt(1, id);
                insert.setBoolean(2, true);
                insert.setShort(3, (short) -5);
                insert.setLong(4, Long.MIN_VALUE);
                insert.setFloat(5, 1.5f);
                insert.setDouble(6, -0.1);
                insert.setBigDecimal(7, new BigDecimal("-12345678901234.56789"));
                insert.setString(8, "grüße ' \\ \"");
                insert.setBytes(9, bytes);
                insert.setObject(10, LocalDate.of(1999, 12, 31));
                insert.setObject(11, local);
                insert.setObject(12, instant);
                insert.setObject(13, uuid);
                same(1, insert.executeUpdate());
            }
            insert.setInt(1, 11);
            for (int column = 2; column <= 13; column++) {
                insert.setNull(column, Types.NULL);
            }
            same(1, insert.executeUpdate());
        }
        String select = "SELECT * FROM kinds WHERE id = ?";
        try (PreparedStatement query = connection.prepareStatement(select)) {
            for (int id = 1; id <= 10; id++) {
                query.setInt(1, id);
                try (ResultSet row = query.executeQuery()) {
                    same(true, row.next());
                    same(true, row.getBoolean("b"));
                    same((short) -5, row.getShort("i2"));
                    same(Long.MIN_VALUE, row.getLong("i8"));
                    same(1.5f, row.getFloat("f4"));
                    same(-0.1, row.getDouble("f8"));
                    same(new BigDecimal("-12345678901234.56789"), row.getBigDecimal("n"));
                    same("grüße ' \\ \"", row.getString("t"));
                    same(true, Arrays.equals(bytes, row.getBytes("y")));
                    same(Date.valueOf("1999-12-31"), row.getDate("d"));
                    same(local, row.getObject("ts", LocalDateTime.class));
                    same(
                            instant.toInstant(),
                            row.getObject("tz", OffsetDateTime.class).toInstant());
                    same(uuid, row.getObject("u"));
                    same(false, row.next());
                }
            }
            query.setInt(1, 11);
            try (ResultSet row = query.executeQuery()) {
                same(true, row.next());
                for (int column = 2; column <= 13; column++) {
                    same(null, row.getObject(column));
                    same(true, row.wasNull());
                }
            }
        }
    }

    /** A default without the cast that PostgreSQL adds when it prints a constant. */
    private static String constant(String expression) {
        return expression == null ? null : expression.replace("::text", "");
    }

    private static void metadata(Connection connection) throws Exception {
        DatabaseMetaData meta = connection.getMetaData();
        same("PostgreSQL", meta.getDatabaseProductName());
        same(15, meta.getDatabaseMajorVersion());
        List<String> found = new ArrayList<>();
        try (ResultSet rows = meta.getTables(null, "public", "%", new String[] {"TABLE"})) {
            while (rows.next()) {
                found.add(rows.getString("TABLE_NAME"));
            }
        }
        same(true, found.containsAll(List.of("customer", "orders", "kinds")));
        found.clear();
        try (ResultSet rows = meta.getColumns(null, "public", "customer", "%")) {
            while (rows.next()) {
                found.add(
                        rows.getString("COLUMN_NAME")
                                + " " + rows.getString("TYPE_NAME")
                                + " " + rows.getInt("COLUMN_SIZE")
                                + " " + rows.getInt("DECIMAL_DIGITS")
                                + " " + rows.getString("IS_NULLABLE")
                                + " " + constant(rows.getString("COLUMN_DEF")));
            }
        }
        same(
                List.of(
                        "id int4 10 0 NO null",
                        "email varchar 40 0 YES null",
                        "name text 2147483647 0 NO 'nobody'",
                        "balance numeric 12 2 YES null"),
                found);
        try (ResultSet rows = meta.getPrimaryKeys(null, "public", "customer")) {
            same(true, rows.next());
            same("id", rows.getString("COLUMN_NAME"));
            same("customer_pkey", rows.getString("PK_NAME"));
            same(false, rows.next());
        }
        try (ResultSet rows = meta.getImportedKeys(null, "public", "orders")) {
            same(true, rows.next());
            same("customer", rows.getString("PKTABLE_NAME"));
            same("customer_id", rows.getString("FKCOLUMN_NAME"));
            same("orders_customer_id_fkey", rows.getString("FK_NAME"));
            same(false, rows.next());
        }
        found.clear();
        try (ResultSet rows = meta.getIndexInfo(null, "public", "orders", false, false)) {
            while (rows.next()) {
                found.add(
                        rows.getString("INDEX_NAME")
                                + " " + rows.getShort("ORDINAL_POSITION")
                                + " " + rows.getString("COLUMN_NAME")
                                + " " + rows.getBoolean("NON_UNIQUE"));
            }
        }
        same(
                List.of(
                        "orders_pkey 1 id false",
                        "orders_by_customer 1 customer_id true",
                        "orders_by_customer 2 placed true"),
                found);
        found.clear();
        try (ResultSet rows = meta.getSchemas()) {
            while (rows.next()) {
                found.add(rows.getString(1));
            }
        }
        same(true, found.contains("public") && found.contains("pg_catalog"));
        try (ResultSet rows = meta.getTypeInfo()) {
            same(true, rows.next());
        }
        same(connection.getCatalog(), ask(connection, "SELECT current_database()").toString());
        same("public", connection.getSchema());
    }

    private static void resultMetadata(Connection connection) throws Exception {
        String sql = "SELECT c.id, c.name AS title, 1 + 1 AS two, c.balance FROM customer c";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            ResultSetMetaData meta = statement.getMetaData();
            same(4, meta.getColumnCount());
            same("title", meta.getColumnLabel(2));
            same("name", ((org.postgresql.PGResultSetMetaData) meta).getBaseColumnName(2));
            same("customer", meta.getTableName(1));
            same("", meta.getTableName(3));
            same(Types.INTEGER, meta.getColumnType(3));
            same(ResultSetMetaData.columnNoNulls, meta.isNullable(1));
            same(12, meta.getPrecision(4));
            same(2, meta.getScale(4));
        }
        String insert = "INSERT INTO customer (id, email) VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            same(2, statement.getParameterMetaData().getParameterCount());
            same(Types.INTEGER, statement.getParameterMetaData().getParameterType(1));
        }
    }

    private static void prepared(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("DELETE FROM orders");
            statement.execute("DELETE FROM customer");
        }
        String sql = "INSERT INTO customer (id, email, name) VALUES (?, ?, ?)";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            for (int id = 0; id < 50; id++) {
                insert.setInt(1, id);
                insert.setString(2, id % 2 == 0 ? null : id + "@example.org");
                insert.setString(3, "name " + id);
                same(1, insert.executeUpdate());
            }
        }
        String select = "SELECT name FROM customer WHERE id BETWEEN ? AND ? ORDER BY id";
        try (PreparedStatement query = connection.prepareStatement(select)) {
            for (int low = 0; low < 20; low++) {
                query.setInt(1, low);
                query.setInt(2, low + 2);
                try (ResultSet rows = query.executeQuery()) {
                    for (int id = low; id <= low + 2; id++) {
                        same(true, rows.next());
                        same("name " + id, rows.getString(1));
                    }
                    same(false, rows.next());
                }
            }
        }
        String update = "UPDATE customer SET balance = ? WHERE id >= ?";
        try (PreparedStatement change = connection.prepareStatement(update)) {
            change.setBigDecimal(1, new BigDecimal("1.50"));
            change.setInt(2, 40);
            same(10, change.executeUpdate());
        }
        same(new BigDecimal("15.00"), ask(connection, "SELECT sum(balance) FROM customer"));
    }

    private static void generatedKeys(Connection connection) throws Exception {
        String sql = "INSERT INTO orders (customer_id, note) VALUES (1, 'a'), (2, 'b')";
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate(sql, Statement.RETURN_GENERATED_KEYS);
            try (ResultSet keys = statement.getGeneratedKeys()) {
                same(true, keys.next());
                long first = keys.getLong("id");
                same(true, keys.next());
                same(true, keys.getLong("id") > first);
                same(false, keys.next());
            }
        }
    }

    private static void batches(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE batch (id int PRIMARY KEY, n int)");
        }
        connection.setAutoCommit(false);
        String sql = "INSERT INTO batch VALUES (?, ?)";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            for (int id = 0; id < 300; id++) {
                insert.setInt(1, id);
                insert.setInt(2, id * 2);
                insert.addBatch();
            }
            int[] counts = insert.executeBatch();
            same(300, Arrays.stream(counts).sum());
            connection.commit();
            for (int id : new int[] {300, 5, 301}) {
                insert.setInt(1, id);
                insert.setInt(2, 0);
                insert.addBatch();
            }
            try {
                insert.executeBatch();
                throw new AssertionError("a duplicate key is due");
            } catch (BatchUpdateException error) {
                same("23505", error.getSQLState());
            }
            connection.rollback();
        }
        same(300L, ask(connection, "SELECT count(*) FROM batch"));
        connection.commit();
    }

    private static void fetchSize(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(17);
            try (ResultSet rows = statement.executeQuery("SELECT id, n FROM batch ORDER BY id")) {
                int id = 0;
                while (rows.next()) {
                    same(id, rows.getInt(1));
                    same(id * 2, rows.getInt(2));
                    id += 1;
                }
                same(300, id);
            }
            // Half of a result, then something else on the same connection.
            try (ResultSet rows = statement.executeQuery("SELECT id FROM batch ORDER BY id")) {
                for (int id = 0; id < 20; id++) {
                    same(true, rows.next());
                }
                same(300L, ask(connection, "SELECT count(*) FROM batch"));
                same(true, rows.next());
                same(20, rows.getInt(1));
            }
            statement.setMaxRows(10);
            statement.setFetchSize(0);
            try (ResultSet rows = statement.executeQuery("SELECT id FROM batch")) {
                int count = 0;
                while (rows.next()) {
                    count += 1;
                }
                same(10, count);
            }
        }
        connection.commit();
    }

    private static void transactions(Connection connection) throws Exception {
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        same(Connection.TRANSACTION_SERIALIZABLE, connection.getTransactionIsolation());
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            same(1, statement.executeUpdate("UPDATE batch SET n = -1 WHERE id = 0"));
            connection.rollback();
            same(0, ask(connection, "SELECT n FROM batch WHERE id = 0"));
            same(1, statement.executeUpdate("UPDATE batch SET n = -1 WHERE id = 0"));
            connection.commit();
            same(-1, ask(connection, "SELECT n FROM batch WHERE id = 0"));
            refused("22012", () -> statement.execute("SELECT 1 / 0"));
            refused("25P02", () -> statement.execute("SELECT 1"));
            connection.rollback();
            connection.setReadOnly(true);
            refused("25006", () -> statement.execute("DELETE FROM batch"));
            connection.rollback();
            connection.setReadOnly(false);
        }
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        same("read committed", ask(connection, "SHOW transaction_isolation"));
        connection.commit();
    }

    private static void errorCodes(Connection connection) throws Exception {
        String[][] cases = {
            {"42601", "SELEC 1"},
            {"42P01", "SELECT * FROM missing"},
            {"42703", "SELECT missing FROM batch"},
            {"23505", "INSERT INTO batch VALUES (1, 1)"},
            {"23502", "INSERT INTO batch VALUES (NULL, 1)"},
            {"23503", "INSERT INTO orders (customer_id) VALUES (-1)"},
            {"22P02", "SELECT 'x'::int"},
            {"22003", "SELECT 2147483647 + 1"},
            {"42P07", "CREATE TABLE batch (id int PRIMARY KEY)"},
        };
        try (Statement statement = connection.createStatement()) {
            for (String[] one : cases) {
                refused(one[0], () -> statement.execute(one[1]));
                same(1, ask(connection, "SELECT 1"));
            }
        }
    }

    private static void cancel(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            AtomicBoolean done = new AtomicBoolean();
            // Again and again: a request before the statement has begun has no effect.
            Thread canceller =
                    new Thread(
                            () -> {
                                try {
                                    while (!done.get()) {
                                        Thread.sleep(300);
                                        statement.cancel();
                                    }
                                } catch (InterruptedException | SQLException error) {
                                    throw new AssertionError(error);
                                }
                            });
            canceller.start();
            String endless = "SELECT count(*) FROM batch a, batch b, batch c, batch d, batch e";
            try {
                refused("57014", () -> statement.execute(endless));
            } finally {
                done.set(true);
                canceller.join();
            }
        }
        same(1, ask(connection, "SELECT 1"));
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET statement_timeout = 200");
            String endless = "SELECT count(*) FROM batch a, batch b, batch c, batch d, batch e";
            refused("57014", () -> statement.execute(endless));
        }
    }

    private static void severalResults(Connection connection) throws Exception {
        String sql = "SELECT 1; UPDATE batch SET n = 0 WHERE id < 3; SELECT 2";
        try (Statement statement = connection.createStatement()) {
            same(true, statement.execute(sql));
            same(true, statement.getResultSet().next());
            same(false, statement.getMoreResults());
            same(3, statement.getUpdateCount());
            same(true, statement.getMoreResults());
            ResultSet last = statement.getResultSet();
            same(true, last.next());
            same(2, last.getInt(1));
            same(false, statement.getMoreResults());
            same(-1, statement.getUpdateCount());
        }
    }
}
