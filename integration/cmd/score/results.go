package main

import (
	"fmt"
	"os"
	"strings"
)

// resultsFile has the results, from the top of the repository: see the columns of row.
const resultsFile = "integration/cmd/score/results.tsv"

// A row is a line of results.tsv: a mutant, and what found it.
type row struct {
	hazard, mutant string
	class          string // safety or liveness
	// CPU seconds until a run failed, such as "2.8". ">40" means that 40 seconds found nothing, "" that nothing was run.
	simulation, suite string
	test              string // the case of the suite that failed, or another test
}

// readResults reads the results in the order of the file, which begins with the names of the columns.
func readResults(name string) ([]row, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 6 {
			return nil, fmt.Errorf("%s:%d: %d fields, want 6", name, i+2, len(f))
		}
		rows = append(rows, row{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return rows, nil
}

// writeResults replaces the file.
func writeResults(name string, rows []row) error {
	var text strings.Builder
	text.WriteString("hazard\tmutant\tclass\tsimulation\tsuite\ttest\n")
	for _, r := range rows {
		text.WriteString(strings.Join([]string{r.hazard, r.mutant, r.class, r.simulation, r.suite, r.test}, "\t") + "\n")
	}
	return os.WriteFile(name, []byte(text.String()), 0o644)
}

// note stores the result of a mutant in the file, at once: a run of all mutants takes hours.
func (f *flags) note(name string, m *mutant, r result) error {
	rows, err := readResults(name)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].hazard != m.Hazard || rows[i].mutant != m.Name {
			continue
		}
		after := fmt.Sprintf("%.1f", r.used.Seconds())
		if r.sign == "" {
			after = fmt.Sprintf(">%.0f", r.used.Seconds())
		}
		switch {
		case f.cpu > 0 && f.suite:
			rows[i].suite = after
			if r.sign != "" {
				rows[i].test = r.sign
			}
		case f.cpu > 0:
			rows[i].simulation = after
		}
		if r.test != "" {
			rows[i].test = r.test
		}
	}
	return writeResults(name, rows)
}
