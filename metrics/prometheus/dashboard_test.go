package holdfastprom_test

import (
	"encoding/json"
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

// A dashboard is what is looked at here of a dashboard of Grafana.
type dashboard struct {
	ID         *int   `json:"id"`
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type variable struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Definition string     `json:"definition"`
	Datasource datasource `json:"datasource"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []target `json:"targets"`
}

type target struct {
	RefID      string     `json:"refId"`
	Expr       string     `json:"expr"`
	Legend     string     `json:"legendFormat"`
	Datasource datasource `json:"datasource"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("../grafana/holdfast.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A metric is one that is collected: its type, and the labels of its series.
type metric struct {
	kind   dto.MetricType
	labels []string
}

// collected are the metrics of a Collector that has heard of everything.
func collected(t *testing.T) map[string]metric {
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
	metrics := make(map[string]metric)
	for _, family := range families {
		m := metric{kind: family.GetType(), labels: []string{"job", "instance"}}
		for _, label := range family.GetMetric()[0].GetLabel() {
			m.labels = append(m.labels, label.GetName())
		}
		if m.kind == dto.MetricType_HISTOGRAM {
			m.labels = append(m.labels, "le")
		}
		metrics[family.GetName()] = m
	}
	return metrics
}

var (
	selector = regexp.MustCompile(`(holdfast_[a-z_]+?)(_bucket|_count|_sum)?\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z]+)(?:=~|!~|!=|=)"`)
	grouping = regexp.MustCompile(`by \(([a-z, ]+)\)`)
	word     = regexp.MustCompile(`[a-z]+`)
)

// The dashboard has a panel for every metric, and asks for none that there is not;
// nor for labels that a metric does not have, nor for the rate of what can fall.
func TestDashboardAsksForWhatIsCollected(t *testing.T) {
	metrics := collected(t)
	unused := maps.Clone(metrics)
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			found := selector.FindAllStringSubmatch(target.Expr, -1)
			if len(found) == 0 || strings.Count(target.Expr, "holdfast_") != len(found) {
				t.Errorf("%s: not understood: %s", p.Title, target.Expr)
			}
			for _, f := range found {
				m, ok := metrics[f[1]]
				if !ok || (f[2] != "") != (m.kind == dto.MetricType_HISTOGRAM) {
					t.Errorf("%s: there is no metric %s%s", p.Title, f[1], f[2])
					continue
				}
				delete(unused, f[1])
				rising := strings.Contains(target.Expr, "rate(") || strings.Contains(target.Expr, "increase(")
				if rising != (m.kind != dto.MetricType_GAUGE) {
					t.Errorf("%s: %s is a %v: %s", p.Title, f[1], m.kind, target.Expr)
				}
				var labels []string
				for _, l := range matcher.FindAllStringSubmatch(f[3], -1) {
					labels = append(labels, l[1])
				}
				for _, by := range grouping.FindAllStringSubmatch(target.Expr, -1) {
					labels = append(labels, word.FindAllString(by[1], -1)...)
				}
				labels = append(labels, word.FindAllString(strings.Join(regexp.MustCompile(`\{\{[a-z]+\}\}`).FindAllString(target.Legend, -1), " "), -1)...)
				for _, label := range labels {
					if !slices.Contains(m.labels, label) {
						t.Errorf("%s: %s has no label %q: %s", p.Title, f[1], label, target.Expr)
					}
				}
			}
		}
	}
	if len(unused) > 0 {
		t.Errorf("no panel shows %v", slices.Sorted(maps.Keys(unused)))
	}
}

// Each alerting rule asks for metrics that are collected. A test in tools checks the syntax.
func TestRules_Metrics_AreCollected(t *testing.T) {
	text, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	metrics, suffix := collected(t), regexp.MustCompile(`_(bucket|count|sum)$`)
	rules := regexp.MustCompile(`(?m)^ +expr: (.*)$`).FindAllStringSubmatch(string(text), -1)
	for _, rule := range rules {
		names := regexp.MustCompile(`holdfast_[a-z_]+`).FindAllString(rule[1], -1)
		for _, name := range names {
			base := suffix.ReplaceAllString(name, "")
			if m, ok := metrics[base]; !ok || (m.kind == dto.MetricType_HISTOGRAM) != (base != name) {
				t.Errorf("there is no metric %s: %s", name, rule[1])
			}
		}
	}
	if alerts := strings.Count(string(text), "- alert: "); alerts == 0 || alerts != len(rules) {
		t.Errorf("%d alerts, %d expressions", alerts, len(rules))
	}
}

// The documentation lists the metrics that there are, with their types.
func TestDocumentationListsWhatIsCollected(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	for _, row := range regexp.MustCompile(`(?m)^//\t(holdfast_[a-z_]+) +(histogram|gauge|counter) `).FindAllStringSubmatch(string(doc), -1) {
		documented[row[1]] = row[2]
	}
	there := make(map[string]string)
	for name, m := range collected(t) {
		there[name] = strings.ToLower(m.kind.String())
	}
	if !maps.Equal(documented, there) {
		t.Errorf("documented: %v\nthere are: %v", documented, there)
	}
	for _, name := range regexp.MustCompile(`holdfast_[a-z_]+`).FindAllString(string(doc), -1) {
		if there[name] == "" {
			t.Errorf("%s is mentioned, and is not there", name)
		}
	}
}

// Anybody can import the dashboard: it has no id of one installation, and whoever
// imports it chooses the data source.
func TestDashboardCanBeImported(t *testing.T) {
	d := readDashboard(t)
	if d.ID != nil || d.UID == "" || d.Title == "" {
		t.Errorf("id %v, uid %q, title %q", d.ID, d.UID, d.Title)
	}
	chosen := datasource{Type: "prometheus", UID: "${datasource}"}
	names := make(map[string]bool)
	for i, v := range d.Templating.List {
		names[v.Name] = true
		if i == 0 {
			if v.Type != "datasource" || v.Name != "datasource" {
				t.Errorf("the first variable is %q, of type %q", v.Name, v.Type)
			}
			continue
		}
		if v.Datasource != chosen || !strings.HasPrefix(v.Definition, "label_values(holdfast_connected") {
			t.Errorf("variable %s: %+v", v.Name, v)
		}
	}
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q: id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("panel %q lies on %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource != chosen || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q lacks something: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			if target.Datasource != chosen || target.RefID == "" || target.Legend == "" {
				t.Errorf("panel %q: %+v", p.Title, target)
			}
			for _, used := range regexp.MustCompile(`"\$(\w+)"`).FindAllStringSubmatch(target.Expr, -1) {
				if !names[used[1]] {
					t.Errorf("panel %q: no variable %s", p.Title, used[1])
				}
			}
		}
		seconds := regexp.MustCompile(`_seconds(_bucket)?\{`).MatchString(p.Targets[0].Expr)
		if (p.FieldConfig.Defaults.Unit == "s") != seconds {
			t.Errorf("panel %q is in %q", p.Title, p.FieldConfig.Defaults.Unit)
		}
	}
}
