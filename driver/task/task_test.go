package task

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
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

// TestTaskBeginsTask: a task that is running when Close begins can begin another. Close waits for both.
func TestTaskBeginsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup()
		undone := false
		g.Go(func(context.Context) {
			<-g.Open().Done()
			if !g.Go(func(context.Context) {
				time.Sleep(time.Second)
				undone = true
			}) {
				t.Error("a running task cannot begin another while Close waits")
			}
		})
		g.Close(t.Context())
		if !undone {
			t.Error("Close did not wait for the second task")
		}
	})
}

// TestNoBareGo: a package that has a Group, such as an engine, starts goroutines by it only, so that Close waits for them.
func TestNoBareGo(t *testing.T) {
	set, owned := token.NewFileSet(), make(map[string][]*ast.File)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		owned[filepath.Dir(path)] = append(owned[filepath.Dir(path)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, files := range owned {
		if !slices.ContainsFunc(files, func(f *ast.File) bool {
			return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
				return i.Path.Value == `"github.com/holdfast-go/holdfast/driver/task"`
			})
		}) {
			continue
		}
		found++
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if n, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%v: a goroutine that no Group owns", set.Position(n.Pos()))
				}
				return true
			})
		}
	}
	if found < 4 { // zklock, zkconn, dynamolock and recordlock
		t.Errorf("%d packages have a Group", found)
	}
}
