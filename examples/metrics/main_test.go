package main

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/holdfast-go/holdfast/examples/internal/engine"
)

// patience is how long anything may take that has to happen.
const patience = time.Minute

// lines passes on what a program logs, as far as somebody waits for it.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// start runs the example until the test ends, and returns the URL of its metrics.
func start(t *testing.T, s settings, lease time.Duration) string {
	t.Helper()
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	s.listen = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	log, ended := make(lines, 1), make(chan error, 1)
	go func() { ended <- run(ctx, slog.New(slog.NewTextHandler(log, nil)), engine.MemoryWithLease(lease), s) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the example ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the example does not end")
		}
	})
	select {
	case line := <-log:
		if m := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(line); m != nil {
			return m[1]
		}
		t.Fatalf("the example said %q", line)
	case <-time.After(patience):
		t.Fatal("the example says nothing")
	}
	return ""
}

// scrape returns the sums of each metric over all workers, by its name and the label result or cause, if it has one;
// histograms have a count and a sum.
func scrape(t *testing.T, url string) map[string]float64 {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			of := ""
			for _, label := range m.GetLabel() {
				switch label.GetName() {
				case "result", "cause":
					of = " " + label.GetValue()
				case "engine":
					if label.GetValue() != "memory" {
						t.Errorf("%s is of engine %q", name, label.GetValue())
					}
				}
			}
			values[name+of] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				values[name+"_count"+of] += float64(h.GetSampleCount())
				values[name+"_sum"+of] += h.GetSampleSum()
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings settings
		lease    time.Duration
		want     map[string]float64
		held     float64 // seconds in all, at least
	}{
		// One of three workers has the lock, the others wait in line.
		"while one works": {settings{workers: 3, work: time.Hour}, time.Hour, map[string]float64{
			"holdfast_held_locks":                             1,
			"holdfast_waiting":                                2,
			"holdfast_connected":                              3,
			"holdfast_queue_length_count":                     2,
			"holdfast_queue_length_sum":                       1 + 2,
			"holdfast_acquire_duration_seconds_count granted": 1,
			"holdfast_held_seconds_count":                     0,
		}, 0},
		// Some turns ended by a release, some with the loss of the lock.
		"after turns": {settings{workers: 2, turns: 4, cut: 2, work: 20 * time.Millisecond}, 5 * time.Second, map[string]float64{
			"holdfast_acquire_duration_seconds_count granted": 8,
			"holdfast_acquire_duration_seconds_count held":    0,
			"holdfast_held_seconds_count":                     8,
			"holdfast_lost_total session_expired":             4,
			"holdfast_lost_total broken":                      0,
			"holdfast_ttl_expired_total":                      0,
			"holdfast_held_locks":                             0,
			"holdfast_waiting":                                0,
			"holdfast_connected":                              2,
		}, 4 * 0.020},
		"past the TTL": {settings{workers: 2, turns: 3, work: time.Hour, ttl: 10 * time.Millisecond}, time.Hour, map[string]float64{
			"holdfast_acquire_duration_seconds_count granted": 6,
			"holdfast_ttl_expired_total":                      6,
			"holdfast_lost_total session_expired":             0,
			"holdfast_held_locks":                             0,
		}, 6 * 0.010},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := start(t, test.settings, test.lease)
			got := make(map[string]float64)
			for end := time.Now().Add(patience); !maps.Equal(got, test.want); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("the metrics are %v, want %v", got, test.want)
				}
				all := scrape(t, url)
				clear(got)
				for name := range test.want {
					if value, ok := all[name]; ok {
						got[name] = value
					}
				}
				if held := all["holdfast_held_seconds_sum"]; maps.Equal(got, test.want) && held < test.held {
					t.Errorf("held for %v s in all, which is less than %v", held, test.held)
				}
			}
		})
	}
}

func TestBadSettings(t *testing.T) {
	for _, s := range []settings{
		{},
		{workers: 1, work: 1, turns: -1},
		{workers: 1, work: 1, cut: -1},
		{workers: 1, work: 1, ttl: -1},
	} {
		if err := s.check(); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}
