package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/rowfile/rowfiletest"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// TestMain runs a helper process instead of the tests if roleEnv is set.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := roles[role](os.Getenv(dirEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	roleEnv = "STORE_TEST_ROLE"
	dirEnv  = "STORE_TEST_DIR"
)

var roles = map[string]func(dir string) error{
	"write batches": writeBatchesUntilKilled,
	"write":         writeUntilKilled,
	"hold":          holdUntilEOF,
	"migrate":       migrateUntilKilled,
	"mark":          changeOnRequest,
	"mark forever":  markUntilKilled,
}

// helper starts this test program in a role, on dir.
func helper(t *testing.T, role, dir string) (cmd *exec.Cmd, out *bufio.Scanner, in io.WriteCloser) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(pipe), in
}

// holdUntilEOF keeps a store open until its input ends.
func holdUntilEOF(dir string) error {
	db, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return db.Close()
}

// numbered returns the i-th row that writeUntilKilled stores. Some rows have a few hundred step times, to fill
// tables; some have so many that they go to the value log.
func numbered(i int) spec.Measurement {
	m := rowfiletest.Invented(i)
	m.Outcome, m.Reason = spec.OK, ""
	steps := 1 + i%400
	if i%97 == 13 {
		steps = 4000
	}
	m.StepSec = make([]float64, steps)
	for k := range m.StepSec {
		m.StepSec[k] = 1 / float64(i+k+1)
	}
	m.Origin = fmt.Sprint(i)
	return m
}

// writeUntilKilled stores rows in batches of varying size, starting after the last row in dir. After each
// batch, once Put returned, it prints the number after the batch's last row. Sometimes it closes the store and
// opens it again.
func writeUntilKilled(dir string) error {
	ctx := context.Background()
	for {
		db, err := Open(dir, Options{})
		if err != nil {
			return err
		}
		next, err := db.Len(ctx, Filter{})
		if err != nil {
			return err
		}
		for batch := range 60 {
			var ms []spec.Measurement
			for range 1 + batch*batch%150 {
				ms = append(ms, numbered(next))
				next++
			}
			if err := db.Put(ctx, ms...); err != nil {
				return err
			}
			fmt.Println(next)
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
}
