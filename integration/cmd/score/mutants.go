package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Engines of the simulation.
const (
	zooKeeper    = "zookeeper"
	dynamoDB     = "dynamodb"
	dynamoTTL    = "ttl"    // DynamoDB with Time to Live
	dynamoClosed = "closed" // DynamoDB with locks that do not expire
)

var simulated = []string{zooKeeper, dynamoDB, dynamoTTL, dynamoClosed}

// A mutant is the library without one of its cures, so that a hazard is real.
type mutant struct {
	// Hazard names one fault of a class in docs/design/hazards.md: "Z1", or "Z1.2", which the row names as Z1.
	Hazard string
	// Name says what is different.
	Name string
	// Engine is the one in whose simulation the hazard is.
	Engine string
	change
	// And are further changes, for a cure that is in several places, or that another one would make up for.
	And []change
}

// A change replaces a piece of a file, which must be there once.
type change struct{ File, Old, New string }

// mutants returns all of them, in the order of the hazards.
func mutants() []mutant {
	all := slices.Concat(zooKeeperMutants, zooKeeperMutantsFrom30, dynamoDBMutants, sharingMutants, contractMutants)
	slices.SortStableFunc(all, func(a, b mutant) int { return compare(a.Hazard, b.Hazard) })
	return all
}

// compare is the order of two hazards.
func compare(a, b string) int {
	section := func(hazard string) int { return strings.Index("ZVIDRCES", hazard[:1]) }
	return cmp.Or(cmp.Compare(section(a), section(b)), cmp.Compare(numberOf(a), numberOf(b)))
}

// numberOf orders the hazards of one letter.
func numberOf(hazard string) int {
	var n, part int
	_, _ = fmt.Sscanf(hazard[1:], "%d.%d", &n, &part) // of "Z1", only the first
	return 100*n + part
}

// isOf reports whether a hazard has that name, or a part of it.
func isOf(hazard, name string) bool {
	row, _, _ := strings.Cut(hazard, ".")
	return hazard == name || row == name
}

// changes are all changes of a mutant.
func (m *mutant) changes() []change { return append([]change{m.change}, m.And...) }

// apply changes the files in a copy of the repository, and returns what undoes that.
func (m *mutant) apply(dir string) (undo func() error, err error) {
	before := map[string][]byte{}
	undo = func() error {
		for name, text := range before {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range m.changes() {
		name := filepath.Join(dir, filepath.FromSlash(c.File))
		text, err := os.ReadFile(name)
		if err != nil {
			return undo, err
		}
		if n := strings.Count(string(text), c.Old); n != 1 {
			return undo, fmt.Errorf("%s: %q is there %d times, want once", c.File, c.Old, n)
		}
		if before[name] == nil {
			before[name] = text
		}
		if err := os.WriteFile(name, []byte(strings.Replace(string(text), c.Old, c.New, 1)), 0o644); err != nil {
			return undo, err
		}
	}
	return undo, nil
}
