package holdfastprom_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/metrics/prometheus"
)

// collected has the types of all metrics of a Collector.
func collected(t *testing.T) map[string]dto.MetricType {
	t.Helper()
	c, err := holdfastprom.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.OnEvent()(holdfast.Event{Kind: holdfast.Heartbeat})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]dto.MetricType)
	for _, family := range families {
		kinds[family.GetName()] = family.GetType()
	}
	return kinds
}

// The dashboard and the alerting rules query metrics that are collected, and no rate of a gauge. The dashboard and doc.go have all
// metrics, doc.go with their types. A test in tools checks the syntax of the rules.
func TestNames_InQueriesAndDoc_AreCollected(t *testing.T) {
	kinds := collected(t)
	suffix := regexp.MustCompile(`_(bucket|count|sum)$`)
	for file, use := range map[string]struct {
		query    *regexp.Regexp // the lines with names
		complete bool
	}{
		"../grafana/holdfast.json": {regexp.MustCompile(`"expr": .*`), true},
		"rules.yml":                {regexp.MustCompile(` expr: .*`), false},
		"doc.go":                   {regexp.MustCompile(`\tholdfast_\w+ +\w+ `), true},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		unused := maps.Clone(kinds)
		for _, query := range use.query.FindAllString(string(text), -1) {
			if file == "doc.go" {
				name, kind := strings.Fields(query)[0], strings.Fields(query)[1]
				if got, ok := kinds[name]; !ok || !strings.EqualFold(got.String(), kind) {
					t.Errorf("%s: %s is documented as a %s", file, name, kind)
				}
				delete(unused, name)
				continue
			}
			for _, name := range regexp.MustCompile(`holdfast_[a-z_]+`).FindAllString(query, -1) {
				base := suffix.ReplaceAllString(name, "")
				kind, ok := kinds[base]
				if !ok || (kind == dto.MetricType_HISTOGRAM) != (base != name) {
					t.Errorf("%s: there is no metric %s: %s", file, name, query)
				}
				rising := strings.Contains(query, "rate("+name) || strings.Contains(query, "increase("+name)
				if rising && kind == dto.MetricType_GAUGE || kind == dto.MetricType_COUNTER && !rising {
					t.Errorf("%s: %s is a %v: %s", file, name, kind, query)
				}
				delete(unused, base)
			}
		}
		if use.complete && len(unused) > 0 || len(unused) == len(kinds) {
			t.Errorf("%s lacks %v", file, slices.Sorted(maps.Keys(unused)))
		}
	}
}
