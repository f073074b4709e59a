// Hibernate and large objects of JDBC: java Clients URL PART, where PART is driver or mapper.

import jakarta.persistence.Basic;
import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.Lob;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OptimisticLockException;
import jakarta.persistence.PersistenceException;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Function;
import org.hibernate.ScrollMode;
import org.hibernate.ScrollableResults;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;
import org.hibernate.type.descriptor.WrapperOptions;
import org.hibernate.type.descriptor.java.JavaType;
import org.hibernate.type.format.FormatMapper;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

public class Clients {
    static final List<String> failed = new ArrayList<>();
    static int passed;
    static String url;

    interface Check {
        void run() throws Exception;
    }

    static void check(String name, Check check) {
        Throwable[] caught = new Throwable[1];
        Thread thread = new Thread(() -> {
            try {
                check.run();
            } catch (Throwable error) {
                caught[0] = error;
            }
        });
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(60_000);
        } catch (InterruptedException error) {
            caught[0] = error;
        }
        if (thread.isAlive()) {
            caught[0] = new AssertionError("it takes longer than 60 s");
        }
        if (caught[0] == null) {
            passed += 1;
            System.out.println("ok " + name);
            return;
        }
        failed.add(name);
        System.out.println("FAILED " + name + ": " + caught[0]);
        for (Throwable cause = caught[0]; cause != null; cause = cause.getCause()) {
            System.out.println("  " + cause);
            for (StackTraceElement at : cause.getStackTrace()) {
                if (at.getClassName().startsWith("Clients")) {
                    System.out.println("    at " + at);
                }
            }
        }
    }

    static void same(Object found, Object wanted) {
        if (!Objects.deepEquals(found, wanted)) {
            throw new AssertionError("found " + found + ", wanted " + wanted);
        }
    }

    interface Work<T> {
        T run() throws Exception;
    }

    static void refused(String code, Work<?> work) throws Exception {
        try {
            work.run();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof SQLException sql) {
                    same(sql.getSQLState(), code);
                    return;
                }
            }
            throw error;
        }
        throw new AssertionError("no error " + code);
    }

    // What is stored.

    enum Mood { SAD, OK, HAPPY }

    @Entity(name = "Person")
    @Table(name = "person", indexes = @Index(name = "person_name", columnList = "name", unique = true))
    public static class Person {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "person_seq")
        @SequenceGenerator(name = "person_seq", sequenceName = "person_seq", allocationSize = 20)
        Long id;
        @Column(nullable = false, length = 100)
        String name;
        UUID key = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        @Enumerated(EnumType.STRING)
        Mood mood = Mood.OK;
        @Enumerated
        @JdbcTypeCode(SqlTypes.NAMED_ENUM)
        Mood named = Mood.HAPPY;
        @Column(precision = 12, scale = 2)
        BigDecimal wealth = new BigDecimal("1.50");
        LocalDate born = LocalDate.of(1980, 2, 29);
        Instant seen = Instant.parse("2024-02-29T12:34:56.789Z");
        OffsetDateTime moved = OffsetDateTime.of(2024, 2, 29, 1, 2, 3, 0, ZoneOffset.ofHours(2));
        @JdbcTypeCode(SqlTypes.ARRAY)
        String[] tags = {"a", "b,c"};
        int[] numbers = {1, 2, 3};
        @JdbcTypeCode(SqlTypes.JSON)
        String facts = "{\"a\": [1, null]}";
        @Lob
        @Basic(fetch = FetchType.LAZY)
        String story;
        @Lob
        byte[] scan;
        byte[] photo;
        boolean active = true;
        @Version
        int version;
        @OneToMany(mappedBy = "owner", cascade = CascadeType.ALL, orphanRemoval = true)
        List<Thing> things = new ArrayList<>();
        @ElementCollection
        Set<String> nicknames = new HashSet<>();

        Person() {}

        Person(String name) {
            this.name = name;
        }
    }

    @Entity(name = "Thing")
    @Table(name = "thing")
    public static class Thing {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;
        String title;
        @ManyToOne(optional = false, fetch = FetchType.LAZY)
        Person owner;
        @ManyToMany
        Set<Label> labels = new HashSet<>();

        Thing() {}

        Thing(String title, Person owner) {
            this.title = title;
            this.owner = owner;
        }
    }

    @Entity(name = "Label")
    @Table(name = "label")
    public static class Label {
        @Id
        @GeneratedValue(strategy = GenerationType.UUID)
        UUID id;
        String text;
    }

    // JSON is kept as it is written.
    public static class Json implements FormatMapper {
        @Override
        public <T> T fromString(CharSequence text, JavaType<T> type, WrapperOptions options) {
            return type.getJavaTypeClass().cast(text.toString());
        }

        @Override
        public <T> String toString(T value, JavaType<T> type, WrapperOptions options) {
            return value.toString();
        }
    }

    static SessionFactory factory(String action, Consumer<Configuration> more) {
        Configuration configuration = new Configuration();
        configuration.setProperty("hibernate.connection.url", url);
        configuration.setProperty("hibernate.hbm2ddl.auto", action);
        configuration.setProperty("hibernate.jdbc.batch_size", "50");
        configuration.setProperty("hibernate.order_inserts", "true");
        configuration.setProperty("hibernate.connection.pool_size", "4");
        configuration.getProperties().put("hibernate.type.json_format_mapper", new Json());
        configuration.addAnnotatedClass(Person.class);
        configuration.addAnnotatedClass(Thing.class);
        configuration.addAnnotatedClass(Label.class);
        more.accept(configuration);
        return configuration.buildSessionFactory();
    }

    static SessionFactory sessions;

    static <T> T inside(Function<Session, T> work) {
        return sessions.fromTransaction(work::apply);
    }

    static Person ann(Session session) {
        String text = "from Person where name = 'Ann'";
        return session.createQuery(text, Person.class).getSingleResult();
    }

    static void schema() {
        check("hibernate_create", () -> sessions = factory("create", c -> {}));
        check("hibernate_validate", () -> factory("validate", c -> {}).close());
        check("hibernate_update_unchanged", () -> {
            List<String> before = columns();
            factory("update", c -> {}).close();
            List<String> after = columns();
            same(after.stream().filter(column -> !before.contains(column)).toList(), List.of());
            same(after.size(), before.size());
        });
        check("hibernate_update", () -> {
            inside(s -> s.createNativeMutationQuery("ALTER TABLE person DROP COLUMN wealth").executeUpdate());
            factory("update", c -> {}).close();
            factory("validate", c -> {}).close();
        });
        check("hibernate_metadata", () -> {
            try (Connection connection = DriverManager.getConnection(url)) {
                DatabaseMetaData data = connection.getMetaData();
                List<String> keys = new ArrayList<>();
                try (ResultSet rows = data.getPrimaryKeys(null, "public", "person")) {
                    while (rows.next()) {
                        keys.add(rows.getString("COLUMN_NAME"));
                    }
                }
                same(keys, List.of("id"));
                try (ResultSet rows = data.getImportedKeys(null, "public", "thing")) {
                    same(rows.next(), true);
                    same(rows.getString("PKTABLE_NAME"), "person");
                }
                try (ResultSet rows = data.getIndexInfo(null, "public", "person", true, false)) {
                    Set<String> names = new HashSet<>();
                    while (rows.next()) {
                        names.add(rows.getString("INDEX_NAME"));
                    }
                    same(names, Set.of("person_name", "person_pkey"));
                }
            }
        });
    }

    static List<String> columns() throws SQLException {
        Set<String> found = new TreeSet<>();
        try (Connection connection = DriverManager.getConnection(url);
                ResultSet rows = connection.getMetaData().getColumns(null, "public", "%", "%")) {
            while (rows.next()) {
                found.add(rows.getString("TABLE_NAME") + "." + rows.getString("COLUMN_NAME")
                        + " " + rows.getString("TYPE_NAME") + " " + rows.getInt("COLUMN_SIZE"));
            }
        }
        return List.copyOf(found);
    }

    static void rows() {
        check("hibernate_persist", () -> inside(session -> {
            Person ann = new Person("Ann");
            ann.story = "ä".repeat(100_000);
            ann.scan = new byte[300_000];
            ann.scan[299_999] = 7;
            ann.photo = new byte[] {0, -1, 39};
            ann.nicknames.addAll(List.of("A", "Annie"));
            ann.things.add(new Thing("lamp", ann));
            ann.things.add(new Thing("chair", ann));
            session.persist(ann);
            return null;
        }));
        check("hibernate_read", () -> inside(session -> {
            Person ann = ann(session);
            same(ann.mood, Mood.OK);
            same(ann.named, Mood.HAPPY);
            same(ann.wealth, new BigDecimal("1.50"));
            same(ann.born, LocalDate.of(1980, 2, 29));
            same(ann.seen, Instant.parse("2024-02-29T12:34:56.789Z"));
            same(ann.moved.toInstant(), Instant.parse("2024-02-28T23:02:03Z"));
            same(ann.tags, new String[] {"a", "b,c"});
            same(ann.numbers, new int[] {1, 2, 3});
            same(ann.facts, "{\"a\": [1, null]}");
            same(ann.photo, new byte[] {0, -1, 39});
            same(ann.nicknames, Set.of("A", "Annie"));
            same(ann.things.size(), 2);
            return null;
        }));
        check("hibernate_text_lob", () -> inside(session -> {
            Person ann = ann(session);
            same(ann.story, "ä".repeat(100_000));
            same(ann.scan.length, 300_000);
            same(ann.scan[299_999], (byte) 7);
            ann.story = "short";
            return null;
        }));
        check("hibernate_text_lob_changed", () -> inside(session -> {
            String text = "select story from Person where name = 'Ann'";
            same(session.createQuery(text, String.class).getSingleResult(), "short");
            return null;
        }));
        check("hibernate_update_row", () -> {
            int before = inside(s -> ann(s).version);
            inside(session -> {
                ann(session).mood = Mood.SAD;
                return null;
            });
            same(inside(s -> ann(s).version), before + 1);
        });
        check("hibernate_hql", () -> inside(session -> {
            String text = "select p.name, count(t), sum(p.wealth) from Person p join p.things t"
                    + " where t.title like :like and p.born < local date and p.mood in :moods"
                    + " group by p.name having count(t) > 1 order by p.name";
            List<Object[]> found = session.createQuery(text, Object[].class)
                    .setParameter("like", "%a%").setParameter("moods", List.of(Mood.SAD, Mood.OK)).list();
            same(found.get(0), new Object[] {"Ann", 2L, new BigDecimal("3.00")});
            String contains = "select count(*) from Person p where array_contains(p.tags, 'a')";
            same(session.createQuery(contains, Long.class).getSingleResult(), 1L);
            return null;
        }));
        check("hibernate_bulk", () -> inside(session -> {
            for (int at = 0; at < 500; at += 1) {
                session.persist(new Person("bulk " + at));
                if (at % 50 == 49) {
                    session.flush();
                    session.clear();
                }
            }
            String text = "update Person set mood = :mood where name like 'bulk %'";
            same(session.createMutationQuery(text).setParameter("mood", Mood.HAPPY).executeUpdate(), 500);
            return null;
        }));
        check("hibernate_paging", () -> inside(session -> {
            List<String> page = session.createQuery("select name from Person order by id desc", String.class)
                    .setFirstResult(10).setMaxResults(3).list();
            same(page.size(), 3);
            return null;
        }));
        check("hibernate_scroll", () -> inside(session -> {
            int count = 0;
            try (ScrollableResults<Person> found = session.createQuery("from Person order by id", Person.class)
                    .setFetchSize(70).scroll(ScrollMode.FORWARD_ONLY)) {
                while (found.next()) {
                    count += 1;
                }
            }
            same(count, 501);
            return null;
        }));
        check("hibernate_many_to_many", () -> {
            inside(session -> {
                Label label = new Label();
                label.text = "old";
                session.persist(label);
                for (Thing thing : session.createQuery("from Thing", Thing.class).list()) {
                    thing.labels.add(label);
                }
                return null;
            });
            String text = "select count(*) from Thing t join t.labels l where l.text = 'old'";
            same(inside(s -> s.createQuery(text, Long.class).getSingleResult()), 2L);
        });
        check("hibernate_orphans", () -> inside(session -> {
            Person ann = ann(session);
            ann.things.remove(0);
            session.flush();
            same(session.createQuery("select count(*) from Thing", Long.class).getSingleResult(), 1L);
            return null;
        }));
    }

    static void locks() {
        check("hibernate_optimistic_lock", () -> {
            Person stale = inside(s -> ann(s));
            inside(session -> {
                ann(session).mood = Mood.OK;
                return null;
            });
            try {
                inside(session -> {
                    Person found = session.find(Person.class, stale.id);
                    session.detach(found);
                    found.version = stale.version;
                    found.mood = Mood.HAPPY;
                    return session.merge(found);
                });
            } catch (OptimisticLockException expected) {
                return;
            }
            throw new AssertionError("a stale object was written");
        });
        check("hibernate_pessimistic_lock", () -> inside(session -> {
            Person ann = session.createQuery("from Person where name = 'Ann'", Person.class)
                    .setLockMode(LockModeType.PESSIMISTIC_WRITE).getSingleResult();
            try {
                refused("55P03", () -> sessions.fromTransaction(other -> other.find(Person.class, ann.id,
                        LockModeType.PESSIMISTIC_WRITE, Map.of("jakarta.persistence.lock.timeout", 0))));
            } catch (Exception error) {
                throw new AssertionError(error);
            }
            return null;
        }));
        check("hibernate_unique", () -> refused("23505", () -> inside(session -> {
            session.persist(new Person("Ann"));
            return null;
        })));
        check("hibernate_not_null", () -> refused("23502", () -> inside(session ->
                session.createNativeMutationQuery("UPDATE person SET name = NULL").executeUpdate())));
        check("hibernate_foreign_key", () -> refused("23503", () -> inside(session ->
                session.createNativeMutationQuery("DELETE FROM person WHERE name = 'Ann'").executeUpdate())));
        check("hibernate_rollback", () -> {
            try {
                inside(session -> {
                    session.persist(new Person("Lost"));
                    session.flush();
                    throw new PersistenceException("back");
                });
            } catch (PersistenceException expected) {
                same(expected.getMessage(), "back");
            }
            String text = "select count(*) from Person where name = 'Lost'";
            same(inside(s -> s.createQuery(text, Long.class).getSingleResult()), 0L);
        });
        check("hibernate_timeout", () -> refused("57014", () -> inside(session ->
                session.createNativeQuery("select pg_sleep(20)", String.class).setTimeout(1).list())));
    }

    interface Use {
        void run(Connection connection) throws Exception;
    }

    static void connected(String name, Use use) {
        check(name, () -> {
            try (Connection connection = DriverManager.getConnection(url)) {
                use.run(connection);
            }
        });
    }

    static void driver() {
        connected("jdbc_tls", connection -> {
            try (ResultSet row = connection.createStatement().executeQuery("SELECT 1")) {
                row.next();
                same(row.getInt(1), 1);
            }
            same(url.contains("sslmode=verify-full"), true);
        });
        connected("jdbc_savepoint", connection -> {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.execute("CREATE TABLE jdbc_saved (id int PRIMARY KEY)");
                statement.execute("INSERT INTO jdbc_saved VALUES (1)");
                Savepoint savepoint = connection.setSavepoint("here");
                refused("23505", () -> statement.execute("INSERT INTO jdbc_saved VALUES (1)"));
                connection.rollback(savepoint);
                statement.execute("INSERT INTO jdbc_saved VALUES (2)");
                connection.commit();
            }
        });
        connected("jdbc_server_prepared", connection -> {
            try (PreparedStatement statement = connection.prepareStatement("SELECT ?::int + 1")) {
                for (int at = 0; at < 20; at += 1) {
                    statement.setInt(1, at);
                    try (ResultSet row = statement.executeQuery()) {
                        row.next();
                        same(row.getInt(1), at + 1);
                    }
                }
            }
        });
        connected("jdbc_listen", connection -> {
            connection.createStatement().execute("LISTEN java_news");
            try (Connection teller = DriverManager.getConnection(url)) {
                teller.createStatement().execute("NOTIFY java_news, 'hello'");
            }
            PGNotification[] told = connection.unwrap(PGConnection.class).getNotifications(10_000);
            same(told[0].getName() + " " + told[0].getParameter(), "java_news hello");
        });
        connected("jdbc_cancel", connection -> {
            Statement statement = connection.createStatement();
            Thread canceller = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    statement.cancel();
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            canceller.start();
            refused("57014", () -> statement.execute("SELECT pg_sleep(20)"));
            canceller.join();
        });
    }

    static LargeObjectManager objects(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        return connection.unwrap(PGConnection.class).getLargeObjectAPI();
    }

    static byte[] pattern(int length) {
        byte[] bytes = new byte[length];
        for (int at = 0; at < length; at += 1) {
            bytes[at] = (byte) (at * 31 + at / 2048);
        }
        return bytes;
    }

    static void largeObjects() {
        connected("jdbc_lob_roundtrip", connection -> {
            LargeObjectManager manager = objects(connection);
            long oid = manager.createLO();
            byte[] bytes = pattern(1_000_000);
            try (LargeObject object = manager.open(oid, LargeObjectManager.READWRITE)) {
                object.write(bytes);
                same(object.tell(), 1_000_000);
                object.seek(0);
                same(object.read(1_000_000), bytes);
                same(object.read(10), new byte[0]);
                object.seek(4_000, LargeObject.SEEK_SET);
                same(object.read(100), Arrays.copyOfRange(bytes, 4_000, 4_100));
                object.seek(-10, LargeObject.SEEK_END);
                same(object.tell64(), 999_990L);
                same(object.size64(), 1_000_000L);
            }
            connection.commit();
            try (LargeObject object = manager.open(oid, LargeObjectManager.READ)) {
                same(object.read(1_000_000), bytes);
            }
            manager.delete(oid);
            connection.commit();
            refused("42704", () -> manager.open(oid, LargeObjectManager.READ));
            connection.rollback();
        });
        connected("jdbc_lob_truncate", connection -> {
            LargeObjectManager manager = objects(connection);
            long oid = manager.createLO();
            try (LargeObject object = manager.open(oid, LargeObjectManager.READWRITE)) {
                object.write(pattern(10_000));
                object.truncate(5_000);
                same(object.size(), 5_000);
                object.truncate64(9_000);
                object.seek(5_000);
                same(object.read(5_000), new byte[4_000]);
            }
            connection.rollback();
            refused("42704", () -> manager.open(oid, LargeObjectManager.READ));
            connection.rollback();
        });
        connected("jdbc_lob_streams", connection -> {
            LargeObjectManager manager = objects(connection);
            long oid = manager.createLO();
            byte[] bytes = pattern(200_003);
            try (LargeObject object = manager.open(oid, LargeObjectManager.WRITE)) {
                object.getOutputStream().write(bytes);
                object.getOutputStream().flush();
            }
            try (LargeObject object = manager.open(oid, LargeObjectManager.READ)) {
                same(object.getInputStream().readAllBytes(), bytes);
                refused("55000", () -> {
                    object.write(new byte[] {1});
                    return null;
                });
                connection.rollback();
            } catch (SQLException closed) {
                // Its transaction is over.
                same(closed.getSQLState(), "42704");
            }
        });
        connected("jdbc_lob_blob", connection -> {
            connection.setAutoCommit(false);
            connection.createStatement().execute("CREATE TABLE blobs (id int PRIMARY KEY, data oid)");
            byte[] bytes = pattern(70_000);
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO blobs VALUES (1, ?)")) {
                insert.setBlob(1, new java.io.ByteArrayInputStream(bytes), bytes.length);
                insert.executeUpdate();
            }
            connection.commit();
            try (ResultSet row = connection.createStatement().executeQuery("SELECT data FROM blobs")) {
                row.next();
                same(row.getBlob(1).getBytes(1, 100_000), bytes);
                same(row.getBlob(1).length(), 70_000L);
                same(row.getClob(1).length(), 70_000L);
            }
            connection.commit();
        });
        connected("jdbc_lob_savepoint", connection -> {
            LargeObjectManager manager = objects(connection);
            long oid = manager.createLO();
            Savepoint savepoint = connection.setSavepoint();
            LargeObject object = manager.open(oid, LargeObjectManager.READWRITE);
            object.write(new byte[] {1, 2, 3});
            connection.rollback(savepoint);
            refused("42704", () -> object.read(1));
            connection.rollback();
        });
    }

    static void mapper() {
        schema();
        if (sessions == null) {
            return;
        }
        rows();
        locks();
        check("hibernate_drop", () -> {
            sessions.close();
            factory("create-drop", c -> {}).close();
            same(columns().stream().filter(column -> column.startsWith("person.")).count(), 0L);
        });
    }

    public static void main(String[] args) {
        url = args[0];
        java.util.logging.LogManager.getLogManager().reset();
        if (args[1].equals("driver")) {
            driver();
            largeObjects();
        } else {
            mapper();
        }
        if (!failed.isEmpty()) {
            System.out.println("failed: " + String.join(", ", failed));
            System.exit(1);
        }
        System.out.println("passed: " + passed);
        System.exit(0);
    }
}
