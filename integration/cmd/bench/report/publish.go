package report

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Files in a repository that show a run; paths are relative to its root.
const (
	dataFile    = "docs/bench.json"
	peersFile   = "docs/bench-peers.svg"
	waitersFile = "docs/bench-waiters.svg"
	figuresFile = "docs/bench.md"
)

// The generated part of a text is between these lines.
const beginMark, endMark = "<!-- bench:begin -->\n", "<!-- bench:end -->\n"

// Publish writes the data of the run into the repository at root, and draws its
// pictures and tables from them.
func (r *Report) Publish(root string) error {
	if err := r.Save(filepath.Join(root, dataFile)); err != nil {
		return err
	}
	return Draw(root)
}

// Draw makes the pictures and tables of the repository at root from its data.
// The same data give the same bytes.
func Draw(root string) error {
	files, err := drawn(root)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Check reports which pictures and tables of the repository at root do not match
// its data.
func Check(root string) error {
	files, err := drawn(root)
	if err != nil {
		return err
	}
	var wrong []error
	for name, want := range files {
		switch got, err := os.ReadFile(filepath.Join(root, name)); {
		case err != nil:
			wrong = append(wrong, err)
		case !bytes.Equal(got, want):
			wrong = append(wrong, fmt.Errorf("%s does not match %s: run \"make bench-draw\"", name, dataFile))
		}
	}
	return errors.Join(wrong...)
}

// drawn is the expected content of the generated files, by path.
func drawn(root string) (map[string][]byte, error) {
	r, err := Read(filepath.Join(root, dataFile))
	if err != nil {
		return nil, err
	}
	figures, err := filled(root, figuresFile, r.figures())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		figuresFile: figures,
		peersFile: r.chart("One lock, acquired and released",
			"Median time of an operation, with its 95% interval. Shorter is better. The sides took turns.", r.contests(alone)),
		waitersFile: r.chart("One hand-off of a lock, by how many wait for it",
			"From a release to the next holder: median time with its 95% interval. Shorter is better.", r.contests(waited)),
	}, nil
}

// filled is the text of the named file with the part between its marks replaced.
func filled(root, name, content string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	before, rest, begun := bytes.Cut(text, []byte(beginMark))
	_, after, ended := bytes.Cut(rest, []byte(endMark))
	if !begun || !ended {
		return nil, fmt.Errorf("%s: no lines %q and %q, in this order", name, beginMark, endMark)
	}
	return bytes.Join([][]byte{before, []byte(beginMark), []byte(content), []byte(endMark), after}, nil), nil
}
