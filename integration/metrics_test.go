package integration_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/internal/verdict"
)

// TestMetricsExample runs the metrics example as a separate process on the real engines,
// and scrapes it while one worker holds the lock and one waits. The example's own tests
// run it in memory.
func TestMetricsExample(t *testing.T) {
	start(t)
	all := buildExamples(t, "./examples/metrics")
	tests := make(map[string]func(*testing.T))
	for engine, place := range map[string]place{"zookeeper": onZooKeeper(server(t).Addr()), "dynamodb": onDynamoDB(t)} {
		tests[engine] = func(t *testing.T) {
			e := all.run(t, "metrics", place.env, slices.Concat(place.args, []string{"-listen", "127.0.0.1:0", "-workers", "2", "-work", "1h"})...)
			e.says(`url=http`)
			url := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(e.out.String())[1]
			want := map[string]float64{
				"holdfast_connected":          2,
				"holdfast_held_locks":         1,
				"holdfast_waiting":            1,
				"holdfast_held_seconds_count": 0,
				"holdfast_queue_length_count": 1,
				"holdfast_queue_length_sum":   1,
				`holdfast_acquire_duration_seconds_count{result="granted"}`:        1,
				`holdfast_lost_total{cause="session_expired"}`:                     0,
				`holdfast_heartbeat_duration_seconds_count{result="disconnected"}`: 0,
			}
			if engine == "dynamodb" { // which has no queue
				want["holdfast_queue_length_count"], want["holdfast_queue_length_sum"] = 0, 0
			}
			const beats = `holdfast_heartbeat_duration_seconds_count{result="ok"}`
			var got map[string]float64
			if !becomes(func() bool {
				got = scrape(t, url, engine)
				for name, value := range want {
					if got[name] != value {
						return false
					}
				}
				return got[beats] >= 3
			}) {
				verdict.Fatalf(t, "never: %v and three heartbeats; last was %s", want, lines(got))
			}
			took := got[`holdfast_heartbeat_duration_seconds_sum{result="ok"}`]
			if took <= 0 || took > got[beats]*patience.Seconds() {
				t.Errorf("%v heartbeats took %v s", got[beats], took)
			}
			e.interrupt()
			e.ends(0)
		}
	}
	together(t, tests)
}

// scrape returns the sums of each metric over all workers, by its name and its label
// result or cause, if it has one; buckets are left out.
func scrape(t *testing.T, url, engine string) map[string]float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(limited(t), http.MethodGet, url, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	values := make(map[string]float64)
	for _, m := range regexp.MustCompile(`(?m)^(holdfast_\w+)\{([^}]*)\} (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		if strings.HasSuffix(m[1], "_bucket") {
			continue
		}
		if !strings.Contains(m[2], fmt.Sprintf("engine=%q", engine)) {
			t.Errorf("not of engine %s: %s", engine, m[0])
		}
		name := m[1]
		if label := regexp.MustCompile(`(result|cause)="\w+"`).FindString(m[2]); label != "" {
			name += "{" + label + "}"
		}
		value, err := strconv.ParseFloat(m[3], 64)
		check(t, err)
		values[name] += value
	}
	return values
}

func lines(values map[string]float64) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "\n\t%s %v", name, values[name])
	}
	return b.String()
}
