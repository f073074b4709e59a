// Named checks, each with a verdict of its own; the last line tells how many have passed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	passed int
	failed []string
)

const checkLimit = 30 * time.Second

// check runs one check; an error or a panic fails it.
func check(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	err := guarded(ctx, run)
	if err != nil {
		failed = append(failed, name)
		fmt.Printf("FAILED %s: %v\n", name, err)
		return
	}
	passed++
	fmt.Printf("ok %s\n", name)
}

func guarded(ctx context.Context, run func(ctx context.Context) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return run(ctx)
}

// same compares values by what they look like.
func same(found, wanted any) error {
	a, b := fmt.Sprintf("%v", found), fmt.Sprintf("%v", wanted)
	if a != b {
		return fmt.Errorf("found %s, wanted %s", a, b)
	}
	return nil
}

// refused demands an error with this SQLSTATE.
func refused(err error, code string) error {
	var told *pgconn.PgError
	if !errors.As(err, &told) {
		return fmt.Errorf("wanted %s, found %v", code, err)
	}
	return same(told.Code, code)
}

func finish() {
	if len(failed) > 0 {
		fmt.Printf("failed: %v\n", failed)
		os.Exit(1)
	}
	fmt.Printf("passed: %d\n", passed)
}
