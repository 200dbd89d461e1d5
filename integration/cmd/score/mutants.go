package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Files, from the top of the repository. resultsFile has a row for each mutant: hazard, name, class (safety or liveness), CPU seconds until
// the simulation and the suite failed (">40" if 40 seconds found nothing, "" if it was not run), and a test that finds it.
const (
	mutantsDir  = "integration/cmd/score/mutants"
	resultsFile = "integration/cmd/score/results.tsv"
)

// engines are the simulated engines.
var engines = []string{"zookeeper", "dynamodb", "mongodb", "ttl", "closed"}

// A mutant is the library without one prevention, so that a hazard is real.
type mutant struct {
	file                 string // of the patch
	hazard, engine, name string // the hazard is a class in hazards.md, or one fault of it: "Z1.2" is in row Z1
}

// mutants reads the first lines of all patches.
func mutants(dir string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := strings.SplitN(string(text), "\n", 4)
		m := mutant{file: file}
		for i, field := range []*string{&m.hazard, &m.engine, &m.name} {
			prefix := []string{"Hazard: ", "Engine: ", "Mutant: "}[i]
			if !strings.HasPrefix(lines[i], prefix) {
				return nil, fmt.Errorf("%s:%d: want %q", file, i+1, prefix)
			}
			*field = strings.TrimPrefix(lines[i], prefix)
		}
		all = append(all, m)
	}
	return all, nil
}

// apply applies the patch in a folder that is in no repository.
func (m mutant) apply(dir string, flags ...string) error {
	cmd := exec.Command("git", append([]string{"apply", "--whitespace=nowarn", m.file}, flags...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git apply: %w\n%s", err, out)
	}
	return nil
}

// readResults reads the rows of the results, without the names of the columns.
func readResults(name string) (rows [][]string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		row := strings.Split(line, "\t")
		if len(row) != 6 {
			return nil, fmt.Errorf("%s:%d: %d fields, want 6", name, i+1, len(row))
		}
		rows = append(rows, row)
	}
	return rows[1:], nil
}

// note stores the result of a mutant in the file.
func (f *flags) note(name string, m mutant, r result) error {
	rows, err := readResults(name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == m.hazard && row[1] == m.name })
	if i < 0 {
		return fmt.Errorf("%s has no row for it", name)
	}
	after := fmt.Sprintf("%.1f", r.used.Seconds())
	if r.sign == "" {
		after = fmt.Sprintf(">%.0f", r.used.Seconds())
	}
	if f.suite {
		rows[i][4] = after
		if r.sign != "" {
			rows[i][5] = r.sign
		}
	} else {
		rows[i][3] = after
	}
	var text strings.Builder
	text.WriteString("hazard\tmutant\tclass\tsimulation\tsuite\ttest\n")
	for _, row := range rows {
		text.WriteString(strings.Join(row, "\t") + "\n")
	}
	return os.WriteFile(name, []byte(text.String()), 0o644)
}
