package faultproxy

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"
)

// Delays of back-to-back messages overlap: one after the other, they would
// take half a minute instead of 0.3 s.
func TestLatencyIsPipelined(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	const d, n = 150 * time.Millisecond, 100
	p.SetLatency(d)
	begin := time.Now()
	for range n {
		send(t, c, "x")
		time.Sleep(time.Millisecond) // packets of their own
	}
	buf := make([]byte, n)
	if _, err := io.ReadFull(c, buf); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	if took < 2*d {
		t.Errorf("a round trip took %v, less than twice %v", took, d)
	}
	if took > n*d {
		t.Errorf("%d round trips took %v: the latency was served %d times", n, took, n)
	}
	p.SetLatency(0)
	send(t, c, "y")
	expect(t, c, "y")
}

// A lower latency must not let later bytes overtake.
func TestLatencyKeepsTheOrder(t *testing.T) {
	t.Parallel()
	p := start(t, echoServer(t))
	c := dial(t, p)
	var want []byte
	for i := range 50 {
		p.SetLatency(time.Duration(50-i) * time.Millisecond)
		send(t, c, string(rune('A'+i)))
		want = append(want, byte('A'+i))
		time.Sleep(100 * time.Microsecond)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

// BenchmarkRoundTrip reports the median and the spread of round trips.
func BenchmarkRoundTrip(b *testing.B) {
	for _, d := range []time.Duration{-1, 0, 250 * time.Microsecond, time.Millisecond} {
		name := "direct"
		if d >= 0 {
			name = "latency=" + d.String()
		}
		b.Run(name, func(b *testing.B) { benchRoundTrip(b, d) })
	}
}

func benchRoundTrip(b *testing.B, d time.Duration) {
	addr := echoServer(b)
	if d >= 0 {
		p, err := Start(addr)
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		p.SetLatency(d)
		addr = p.Addr()
	}
	c := dialAddr(b, addr)
	times := make([]time.Duration, 0, b.N)
	buf := make([]byte, 64)
	for b.Loop() {
		begin := time.Now()
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	at := func(q float64) float64 {
		return float64(times[int(q*float64(len(times)-1))]) / float64(time.Microsecond)
	}
	b.ReportMetric(at(0.5), "p50-µs")
	b.ReportMetric(at(0.99), "p99-µs")
}
