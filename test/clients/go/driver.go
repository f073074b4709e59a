package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connected runs a check with a connection of its own.
func connected(url, name string, run func(ctx context.Context, conn *pgx.Conn) error) {
	check(name, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		return run(ctx, conn)
	})
}

// asked compares the one value that a query gives.
func asked[T any](ctx context.Context, conn *pgx.Conn, wanted T, text string, args ...any) error {
	var found T
	if err := conn.QueryRow(ctx, text, args...).Scan(&found); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return same(found, wanted)
}

// done runs statements one after the other.
func done(ctx context.Context, conn *pgx.Conn, texts ...string) error {
	for _, text := range texts {
		if _, err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func driver(url string) {
	queries(url)
	types(url)
	blocks(url)
	bulk(url)
	errorClasses(url)
	pools(url)
	largeObjects(url)
}

func queries(url string) {
	connected(url, "pgx_tls", func(ctx context.Context, conn *pgx.Conn) error {
		if _, encrypted := conn.PgConn().Conn().(*tls.Conn); !encrypted {
			return errors.New("the connection is not encrypted")
		}
		return asked(ctx, conn, 1, "SELECT 1")
	})
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe,
		pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		mode := mode
		name := fmt.Sprintf("pgx_mode_%s", strings.ReplaceAll(mode.String(), " ", "_"))
		connected(url, name, func(ctx context.Context, conn *pgx.Conn) error {
			for n := 0; n < 5; n++ {
				text := "SELECT $1::int::text || $2::text"
				if err := asked(ctx, conn, fmt.Sprintf("%d x", n), text, mode, n, " x"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	connected(url, "pgx_prepared", func(ctx context.Context, conn *pgx.Conn) error {
		told, err := conn.Prepare(ctx, "twice", "SELECT $1::int8 * 2 AS n")
		if err != nil {
			return err
		}
		if err := same(told.ParamOIDs, []uint32{20}); err != nil {
			return err
		}
		for n := int64(0); n < 10; n++ {
			if err := asked(ctx, conn, n*2, "twice", n); err != nil {
				return err
			}
		}
		return conn.Deallocate(ctx, "twice")
	})
	connected(url, "pgx_batch", func(ctx context.Context, conn *pgx.Conn) error {
		if err := done(ctx, conn, "CREATE TABLE batched (id int PRIMARY KEY)"); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		for n := 0; n < 100; n++ {
			batch.Queue("INSERT INTO batched VALUES ($1)", n)
		}
		batch.Queue("SELECT count(*) FROM batched")
		results := conn.SendBatch(ctx, batch)
		for n := 0; n < 100; n++ {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		var count int
		if err := results.QueryRow().Scan(&count); err != nil {
			return err
		}
		if err := results.Close(); err != nil {
			return err
		}
		return same(count, 100)
	})
	connected(url, "pgx_rows", func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT n, n::text AS t FROM generate_series(1, 5000) AS g(n)")
		if err != nil {
			return err
		}
		type row struct {
			N int
			T string
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
		if err != nil {
			return err
		}
		return same([]any{len(all), all[4999]}, []any{5000, row{5000, "5000"}})
	})
	connected(url, "pgx_rows_left", func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT n FROM generate_series(1, 100000) AS g(n)")
		if err != nil {
			return err
		}
		rows.Next()
		rows.Close()
		return asked(ctx, conn, 1, "SELECT 1")
	})
}

// kept stores a value and reads it back, in both forms of the protocol.
func kept[T any](url, name, sqlType string, value T) {
	connected(url, "pgx_type_"+name, func(ctx context.Context, conn *pgx.Conn) error {
		create := fmt.Sprintf("CREATE TABLE pgx_%s (id serial PRIMARY KEY, value %s)", name, sqlType)
		if err := done(ctx, conn, create); err != nil {
			return err
		}
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec} {
			text := fmt.Sprintf("INSERT INTO pgx_%s (value) VALUES ($1) RETURNING value", name)
			if err := asked(ctx, conn, value, text, mode, value); err != nil {
				return err
			}
		}
		return asked(ctx, conn, 2, fmt.Sprintf("SELECT count(*) FROM pgx_%s", name))
	})
}

func types(url string) {
	kept(url, "bool", "boolean", true)
	kept(url, "int2", "smallint", int16(-32768))
	kept(url, "int4", "integer", int32(2147483647))
	kept(url, "int8", "bigint", int64(-9223372036854775808))
	kept(url, "float4", "real", float32(1.5))
	kept(url, "float8", "double precision", 0.1)
	kept(url, "text", "text", "zwölf \\ ' \"")
	kept(url, "varchar", "varchar(5)", "abcde")
	kept(url, "bytea", "bytea", []byte{0, 255, 39})
	kept(url, "uuid", "uuid", [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	kept(url, "date", "date", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC))
	kept(url, "timestamp", "timestamp", time.Date(2024, 2, 29, 12, 34, 56, 789000, time.UTC))
	kept(url, "json", "json", map[string]any{"a": []any{1.5, nil, "x"}})
	kept(url, "jsonb", "jsonb", map[string]any{"b": map[string]any{"c": true}})
	kept(url, "int4_array", "int[]", []int32{1, 2, 3})
	kept(url, "text_array", "text[]", []string{"a,b", "\"", "{}"})
	kept(url, "interval", "interval", pgtype.Interval{Months: 1, Days: 2, Microseconds: 3, Valid: true})
	kept(url, "time", "time", pgtype.Time{Microseconds: 45_296_000_001, Valid: true})
	kept(url, "numeric_text", "numeric(12,4)", pgtype.Numeric{Int: big.NewInt(-1234500), Exp: -4, Valid: true})
	connected(url, "pgx_type_timestamptz", func(ctx context.Context, conn *pgx.Conn) error {
		at := time.Date(2024, 2, 29, 12, 34, 56, 789000, time.FixedZone("x", 3600))
		var found time.Time
		if err := conn.QueryRow(ctx, "SELECT $1::timestamptz", at).Scan(&found); err != nil {
			return err
		}
		return same(found.Equal(at), true)
	})
	connected(url, "pgx_type_null", func(ctx context.Context, conn *pgx.Conn) error {
		var text *string
		var list []*int32
		err := conn.QueryRow(ctx, "SELECT $1::text, '{1,NULL}'::int[]", nil).Scan(&text, &list)
		if err != nil {
			return err
		}
		return same([]any{text == nil, len(list), list[1] == nil}, []any{true, 2, true})
	})
	connected(url, "pgx_type_enum", func(ctx context.Context, conn *pgx.Conn) error {
		err := done(ctx, conn, "CREATE TYPE colour AS ENUM ('red', 'green')",
			"CREATE TABLE painted (id int PRIMARY KEY, colour colour, all_of colour[])")
		if err != nil {
			return err
		}
		for _, name := range []string{"colour", "_colour"} {
			known, err := conn.LoadType(ctx, name)
			if err != nil {
				return fmt.Errorf("LoadType %s: %w", name, err)
			}
			conn.TypeMap().RegisterType(known)
		}
		text := "INSERT INTO painted VALUES (1, $1, $2) RETURNING all_of"
		list := []string{"green", "red"}
		if err := asked(ctx, conn, list, text, "green", list); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "INSERT INTO painted VALUES (2, $1)", "blue")
		return refused(err, "22P02")
	})
}

func blocks(url string) {
	connected(url, "pgx_savepoint", func(ctx context.Context, conn *pgx.Conn) error {
		if err := done(ctx, conn, "CREATE TABLE pgx_saved (id int PRIMARY KEY)"); err != nil {
			return err
		}
		outer, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := outer.Exec(ctx, "INSERT INTO pgx_saved VALUES (1)"); err != nil {
			return err
		}
		inner, err := outer.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = inner.Exec(ctx, "INSERT INTO pgx_saved VALUES (1)")
		if err := refused(err, "23505"); err != nil {
			return err
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
		if _, err := outer.Exec(ctx, "INSERT INTO pgx_saved VALUES (2)"); err != nil {
			return err
		}
		if err := outer.Commit(ctx); err != nil {
			return err
		}
		return asked(ctx, conn, 2, "SELECT count(*) FROM pgx_saved")
	})
	connected(url, "pgx_fetch", func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		declare := "DECLARE c SCROLL CURSOR FOR SELECT n FROM generate_series(1, 100) AS g(n)"
		if _, err := tx.Exec(ctx, declare); err != nil {
			return err
		}
		for _, step := range []struct {
			text   string
			wanted []int32
		}{
			{"FETCH 3 FROM c", []int32{1, 2, 3}},
			{"FETCH BACKWARD 2 FROM c", []int32{2, 1}},
			{"FETCH LAST FROM c", []int32{100}},
			{"FETCH ABSOLUTE 50 FROM c", []int32{50}},
		} {
			rows, err := tx.Query(ctx, step.text)
			if err != nil {
				return err
			}
			found, err := pgx.CollectRows(rows, pgx.RowTo[int32])
			if err != nil {
				return err
			}
			if err := same(found, step.wanted); err != nil {
				return fmt.Errorf("%s: %w", step.text, err)
			}
		}
		return nil
	})
	connected(url, "pgx_isolation", func(ctx context.Context, conn *pgx.Conn) error {
		// Repeatable read is serializable on a server that has nothing between.
		for level, wanted := range map[pgx.TxIsoLevel]string{
			pgx.Serializable: "serializable", pgx.ReadCommitted: "read committed",
		} {
			tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: level})
			if err != nil {
				return err
			}
			var found string
			if err := tx.QueryRow(ctx, "SHOW transaction_isolation").Scan(&found); err != nil {
				return err
			}
			if err := joined(same(found, wanted), tx.Commit(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
	connected(url, "pgx_read_only", func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		_, err = tx.Exec(ctx, "INSERT INTO pgx_saved VALUES (9)")
		return refused(err, "25006")
	})
	connected(url, "pgx_cancel", func(ctx context.Context, conn *pgx.Conn) error {
		slow := make(chan error, 1)
		go func() {
			_, err := conn.Exec(ctx, "SELECT pg_sleep(20)")
			slow <- err
		}()
		time.Sleep(200 * time.Millisecond)
		if err := conn.PgConn().CancelRequest(ctx); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err := refused(<-slow, "57014"); err != nil {
			return err
		}
		return asked(ctx, conn, 1, "SELECT 1")
	})
	connected(url, "pgx_optimistic", func(ctx context.Context, conn *pgx.Conn) error {
		err := done(ctx, conn, "CREATE TABLE pgx_versions (id int PRIMARY KEY, version int)",
			"INSERT INTO pgx_versions VALUES (1, 1)")
		if err != nil {
			return err
		}
		for _, wanted := range []int64{1, 0} {
			text := "UPDATE pgx_versions SET version = version + 1 WHERE id = 1 AND version = $1"
			tag, err := conn.Exec(ctx, text, 1)
			if err != nil {
				return err
			}
			if err := same(tag.RowsAffected(), wanted); err != nil {
				return err
			}
		}
		return nil
	})
	check("pgx_conflict", func(ctx context.Context) error { return conflict(ctx, url) })
}

// conflict lets two serializable transactions each read what the other writes: one must fail.
func conflict(ctx context.Context, url string) error {
	var conns [2]*pgx.Conn
	for at := range conns {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		conns[at] = conn
	}
	err := done(ctx, conns[0], "CREATE TABLE duty (id int PRIMARY KEY, away boolean)",
		"INSERT INTO duty VALUES (1, false), (2, false)")
	if err != nil {
		return err
	}
	var ready, ended sync.WaitGroup
	var results [2]error
	ready.Add(2)
	ended.Add(2)
	for at := range conns {
		go func(at int) {
			defer ended.Done()
			options := pgx.TxOptions{IsoLevel: pgx.Serializable}
			results[at] = pgx.BeginTxFunc(ctx, conns[at], options, func(tx pgx.Tx) error {
				var here int
				err := tx.QueryRow(ctx, "SELECT count(*) FROM duty WHERE NOT away").Scan(&here)
				ready.Done()
				ready.Wait()
				if err != nil || here < 2 {
					return err
				}
				_, err = tx.Exec(ctx, "UPDATE duty SET away = true WHERE id = $1", at+1)
				return err
			})
		}(at)
	}
	ended.Wait()
	lost := joined(results[:]...)
	if err := refused(lost, "40001"); err != nil && refused(lost, "40P01") != nil {
		return err
	}
	return asked(ctx, conns[0], 1, "SELECT count(*) FROM duty WHERE NOT away")
}

func bulk(url string) {
	connected(url, "pgx_copy_from", func(ctx context.Context, conn *pgx.Conn) error {
		create := "CREATE TABLE copied (id int PRIMARY KEY, name text, at timestamptz, part numeric(10,2), more jsonb)"
		if err := done(ctx, conn, create); err != nil {
			return err
		}
		part := pgtype.Numeric{Int: big.NewInt(150), Exp: -2, Valid: true}
		rows := pgx.CopyFromSlice(10_000, func(n int) ([]any, error) {
			at := time.Unix(int64(n), 0)
			return []any{n, fmt.Sprintf("name %d", n), at, part, map[string]int{"n": n}}, nil
		})
		columns := []string{"id", "name", "at", "part", "more"}
		count, err := conn.CopyFrom(ctx, pgx.Identifier{"copied"}, columns, rows)
		if err != nil {
			return err
		}
		if err := same(count, 10_000); err != nil {
			return err
		}
		return asked(ctx, conn, "15000.00 49995000", "SELECT sum(part) || ' ' || sum((more->>'n')::int) FROM copied")
	})
	connected(url, "pgx_copy_from_fails", func(ctx context.Context, conn *pgx.Conn) error {
		rows := pgx.CopyFromRows([][]any{{20_000, "new"}, {1, "old"}})
		_, err := conn.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"id", "name"}, rows)
		if err := refused(err, "23505"); err != nil {
			return err
		}
		return asked(ctx, conn, 10_000, "SELECT count(*) FROM copied")
	})
	connected(url, "pgx_copy_to", func(ctx context.Context, conn *pgx.Conn) error {
		var out strings.Builder
		text := "COPY (SELECT id, name FROM copied WHERE id < 3 ORDER BY id) TO STDOUT WITH (FORMAT csv)"
		if _, err := conn.PgConn().CopyTo(ctx, &out, text); err != nil {
			return err
		}
		return same(out.String(), "0,name 0\n1,name 1\n2,name 2\n")
	})
}

func errorClasses(url string) {
	connected(url, "pgx_error_tables", func(ctx context.Context, conn *pgx.Conn) error {
		return done(ctx, conn, "CREATE TABLE wrong (id int PRIMARY KEY, n int NOT NULL CHECK (n > 0))",
			"CREATE TABLE wrong_child (id int PRIMARY KEY, parent int REFERENCES wrong)",
			"INSERT INTO wrong VALUES (1, 1)")
	})
	for _, one := range []struct{ name, code, text string }{
		{"unique", "23505", "INSERT INTO wrong VALUES (1, 1)"},
		{"not_null", "23502", "INSERT INTO wrong VALUES (2, NULL)"},
		{"check", "23514", "INSERT INTO wrong VALUES (2, 0)"},
		{"foreign_key", "23503", "INSERT INTO wrong_child VALUES (1, 9)"},
		{"table", "42P01", "SELECT * FROM nowhere"},
		{"syntax", "42601", "SELEC"},
		{"division", "22012", "SELECT 1 / 0"},
	} {
		one := one
		connected(url, "pgx_error_"+one.name, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, one.text)
			if err := refused(err, one.code); err != nil {
				return err
			}
			return asked(ctx, conn, 1, "SELECT 1")
		})
	}
}

func pools(url string) {
	check("pgx_pool", func(ctx context.Context) error {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		create := "CREATE TABLE pgx_pooled (id int PRIMARY KEY, n int)"
		if _, err := pool.Exec(ctx, create); err != nil {
			return err
		}
		if _, err := pool.Exec(ctx, "INSERT INTO pgx_pooled VALUES (1, 0)"); err != nil {
			return err
		}
		results := make(chan error, 40)
		for n := 0; n < 40; n++ {
			go func() { results <- retried(ctx, pool) }()
		}
		for n := 0; n < 40; n++ {
			if err := <-results; err != nil {
				return err
			}
		}
		var n int
		err = pool.QueryRow(ctx, "SELECT n FROM pgx_pooled").Scan(&n)
		return joined(err, same(n, 40))
	})
	connected(url, "pgx_listen", func(ctx context.Context, conn *pgx.Conn) error {
		if err := done(ctx, conn, "LISTEN pgx_news"); err != nil {
			return err
		}
		teller, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer teller.Close(context.Background())
		if _, err := teller.Exec(ctx, "SELECT pg_notify('pgx_news', $1)", "hello"); err != nil {
			return err
		}
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		wanted := []any{"pgx_news", "hello", teller.PgConn().PID()}
		return same([]any{told.Channel, told.Payload, told.PID}, wanted)
	})
}

// retried adds one, again after a conflict.
func retried(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		_, err := pool.Exec(ctx, "UPDATE pgx_pooled SET n = n + 1 WHERE id = 1")
		if err == nil || refused(err, "40001") != nil {
			return err
		}
	}
}

func largeObjects(url string) {
	connected(url, "pgx_large_object", func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		objects := tx.LargeObjects()
		oid, err := objects.Create(ctx, 0)
		if err != nil {
			return err
		}
		object, err := objects.Open(ctx, oid, pgx.LargeObjectModeRead|pgx.LargeObjectModeWrite)
		if err != nil {
			return err
		}
		text := strings.Repeat("0123456789", 20_000)
		if _, err := object.Write([]byte(text)); err != nil {
			return err
		}
		if err := object.Truncate(150_000); err != nil {
			return err
		}
		if _, err := object.Seek(-5, io.SeekEnd); err != nil {
			return err
		}
		rest, err := io.ReadAll(object)
		if err != nil {
			return err
		}
		place, err := object.Tell()
		if err != nil {
			return err
		}
		if err := same([]any{string(rest), place}, []any{"56789", 150_000}); err != nil {
			return err
		}
		if err := joined(object.Close(), objects.Unlink(ctx, oid), tx.Commit(ctx)); err != nil {
			return err
		}
		return asked(ctx, conn, 0, "SELECT count(*) FROM pg_largeobject_metadata WHERE oid = $1", oid)
	})
}

// joined gives the first error.
func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
