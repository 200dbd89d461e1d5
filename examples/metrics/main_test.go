package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// childVariable makes this binary the example itself.
const childVariable = "HOLDFAST_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// patience is how long anything may take that has to happen.
const patience = 30 * time.Second

// program is the example as a process of its own.
type program struct {
	url string
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	command := exec.CommandContext(ctx, os.Args[0], append([]string{"-listen", "127.0.0.1:0", "-engine", "memory"}, args...)...)
	command.Env = append(os.Environ(), childVariable+"=1", "GORACE=atexit_sleep_ms=0")
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			default: // only the first is waited for
			}
		}
	}()
	t.Cleanup(func() {
		defer cancel()
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		go func() { ended <- command.Wait() }()
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
	case line := <-lines:
		if m := regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(line); m != nil {
			return &program{url: m[1]}
		}
		t.Fatalf("the example said %q", line)
	case <-time.After(patience):
		t.Fatal("the example says nothing")
	}
	return nil
}

// scrape returns the sums of each metric over all workers, by its name and the label
// result or cause, if it has one; histograms have a count and a sum.
func (p *program) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", p.url, response.Status)
	}
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

// becomes waits until a scrape has what is wanted.
func (p *program) becomes(t *testing.T, want map[string]float64) map[string]float64 {
	t.Helper()
	var got map[string]float64
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		got = p.scrape(t)
		differs := false
		for name, value := range want {
			found, ok := got[name]
			differs = differs || !ok || found != value
		}
		if !differs {
			return got
		}
	}
	var text strings.Builder
	for name, value := range want {
		text.WriteString(fmt.Sprintf("\n\t%s %v, want %v", name, got[name], value))
	}
	t.Fatalf("never: as it ought to be; last was%s", text.String())
	return nil
}

// TestWhileOneWorks scrapes while one of three workers has the lock, for as long as
// is needed, and the others wait in line.
func TestWhileOneWorks(t *testing.T) {
	t.Parallel()
	p := start(t, "-workers", "3", "-work", "1h")
	p.becomes(t, map[string]float64{
		"holdfast_held_locks":                             1,
		"holdfast_waiting":                                2,
		"holdfast_connected":                              3,
		"holdfast_queue_length_count":                     2,
		"holdfast_queue_length_sum":                       1 + 2,
		"holdfast_acquire_duration_seconds_count granted": 1,
		"holdfast_held_seconds_count":                     0,
	})
}

// TestAfterTurns scrapes when all have had their turns: some ended by a release, some
// with the loss of the lock.
func TestAfterTurns(t *testing.T) {
	t.Parallel()
	p := start(t, "-workers", "2", "-turns", "4", "-cut", "2", "-work", "20ms")
	got := p.becomes(t, map[string]float64{
		"holdfast_acquire_duration_seconds_count granted": 8,
		"holdfast_acquire_duration_seconds_count held":    0,
		"holdfast_held_seconds_count":                     8,
		"holdfast_lost_total session_expired":             4,
		"holdfast_lost_total broken":                      0,
		"holdfast_ttl_expired_total":                      0,
		"holdfast_held_locks":                             0,
		"holdfast_waiting":                                0,
		"holdfast_connected":                              2,
	})
	if held := got["holdfast_held_seconds_sum"]; held < 4*0.020 {
		t.Errorf("held for %v s in all, which is less than four works of 20 ms", held)
	}
	// Ahead is the other, and perhaps one's own last hold, which the engine has not yet
	// been told to be over.
	if ahead, times := got["holdfast_queue_length_sum"], got["holdfast_queue_length_count"]; times < 1 || times > 8 || ahead < times || ahead > 2*times {
		t.Errorf("%v waits behind %v in all", times, ahead)
	}
}

// TestPastTheTTL scrapes when all turns have taken longer than the lock's TTL.
func TestPastTheTTL(t *testing.T) {
	t.Parallel()
	p := start(t, "-workers", "2", "-turns", "3", "-work", "1h", "-ttl", "10ms")
	got := p.becomes(t, map[string]float64{
		"holdfast_acquire_duration_seconds_count granted": 6,
		"holdfast_ttl_expired_total":                      6,
		"holdfast_lost_total session_expired":             0,
		"holdfast_held_locks":                             0,
	})
	if held := got["holdfast_held_seconds_sum"]; held < 6*0.010 {
		t.Errorf("held for %v s in all, which is less than six TTLs of 10 ms", held)
	}
}

// TestMisuse: what makes no sense is refused, with one line and status 1.
func TestMisuse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-workers", "0"},
		{"-turns", "-1"},
		{"-work", "0"},
		{"-cut", "-1"},
		{"-ttl", "-1s"},
		{"-listen", "nowhere"},
		{"-engine", "paper"},
		{"-servers", "a:1", "-engine", "memory"},
		{"nonsense"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		command := exec.CommandContext(ctx, os.Args[0], args...)
		command.Env = append(os.Environ(), childVariable+"=1", "HOLDFAST_ENGINE=memory", "GORACE=atexit_sleep_ms=0")
		out, err := command.CombinedOutput()
		cancel()
		if code := command.ProcessState.ExitCode(); err == nil || code != 1 || len(regexp.MustCompile("\n").FindAll(out, -1)) != 1 {
			t.Errorf("%q: status %d, %q", args, code, out)
		}
	}
}
