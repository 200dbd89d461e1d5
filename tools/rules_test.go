package tools

import (
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// TestAlertingRules checks the rules for Prometheus as promtool does.
func TestAlertingRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../metrics/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, errs := rulefmt.Parse(text, false, model.UTF8Validation)
	for _, err := range errs {
		t.Error(err)
	}
}
