package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

func TestLateWriteIsRefused(t *testing.T) {
	for name, open := range engine.Local() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				if err := run(t.Context(), &out, open()); err != nil {
					t.Fatal(err)
				}
				for _, want := range []string{"goes on with her write: refused", "asks her lock: TTL expired", "has bob's balance"} {
					if !strings.Contains(out.String(), want) {
						t.Errorf("%q is missing in:\n%s", want, out.String())
					}
				}
			})
		})
	}
}

func TestResource(t *testing.T) {
	var r resource
	for _, write := range []struct {
		token holdfast.Token
		stale bool
	}{
		{3, false},
		{3, false}, // the same holder again
		{2, true},
		{5, false},
		{4, true},
	} {
		err := r.write(write.token, "")
		if got := errors.Is(err, errStale); got != write.stale || (err != nil && !got) {
			t.Errorf("token %d: %v", write.token, err)
		}
	}
}
