package holdfastprom_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/metrics/prometheus"
)

// open makes a client with metrics, and logs the ends of its locks.
func open(registry prometheus.Registerer) (*memlock.Client, error) {
	metrics, err := holdfastprom.New(&holdfastprom.Options{Engine: "memory"})
	if err != nil {
		return nil, err
	}
	if err := registry.Register(metrics); err != nil {
		return nil, err
	}
	count := metrics.OnEvent()
	return memlock.New(&memlock.Options{OnEvent: func(e holdfast.Event) {
		count(e)
		if e.Kind == holdfast.Lost {
			slog.Warn("a lock was lost", "key", e.Key, "held", e.Took, "error", e.Err)
		}
	}})
}

func Example() {
	registry := prometheus.NewRegistry()
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	client, err := open(registry)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, key := range []string{"orders/41", "orders/42"} {
		if err := client.Do(ctx, key, func(context.Context, *holdfast.Lock) error { return nil }); err != nil {
			log.Fatal(err)
		}
	}
	if err := client.Close(ctx); err != nil {
		log.Fatal(err)
	}

	scraped := httptest.NewRecorder()
	mux.ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(scraped.Body.String()) {
		if strings.HasPrefix(line, "holdfast_held_seconds_count") || strings.HasPrefix(line, "holdfast_held_locks") {
			fmt.Print(line)
		}
	}
	// Output:
	// holdfast_held_locks{client="",engine="memory"} 0
	// holdfast_held_seconds_count{client="",engine="memory"} 2
}
