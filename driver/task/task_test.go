package task

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClose: Close waits for tasks, for as long as its ctx allows before it ends theirs.
func TestClose(t *testing.T) {
	for _, test := range []struct{ task, limit, want time.Duration }{
		{time.Second, time.Minute, time.Second},
		{time.Hour, time.Minute, time.Minute},
		{time.Hour, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGroup()
			ended := false
			if !g.Go(func(ctx context.Context) {
				defer func() { ended = true }()
				if g.Open().Err() != nil {
					t.Error("a group is closing before Close")
				}
				select {
				case <-time.After(test.task):
				case <-ctx.Done():
				}
			}) {
				t.Fatal("Go refuses before Close")
			}
			synctest.Wait()
			limit, cancel := context.WithTimeout(t.Context(), test.limit)
			defer cancel()
			began := time.Now()
			g.Close(limit)
			if took := time.Since(began); took != test.want || !ended {
				t.Errorf("a task of %v, a limit of %v: Close took %v, want %v; ended %v", test.task, test.limit, took, test.want, ended)
			}
			if g.Go(func(context.Context) { t.Error("a task runs after Close") }) {
				t.Error("a task begins after Close")
			}
			if g.Open().Err() == nil || g.Context().Err() == nil {
				t.Error("a context goes on after Close")
			}
			g.Close(t.Context())
		})
	}
}

// TestTaskBeginsTask: a task that is under way when Close begins cannot begin others,
// so that Close ends.
func TestTaskBeginsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup()
		result := make(chan bool, 1)
		g.Go(func(context.Context) {
			<-g.Open().Done()
			result <- g.Go(func(context.Context) {})
		})
		g.Close(t.Context())
		if <-result {
			t.Error("a task began while Close was waiting")
		}
	})
}

// TestNoBareGo: the engines start goroutines by a Group only, so that Close waits for them.
func TestNoBareGo(t *testing.T) {
	for _, dir := range []string{"../../dynamolock", "../../internal/recordlock", "../../zklock", "../../mongolock"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if n, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%v: a goroutine that no Group owns", set.Position(n.Pos()))
				}
				return true
			})
		}
	}
}
