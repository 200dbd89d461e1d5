package report

import (
	"os"
	"path/filepath"
)

// Files in a repository that show a run; paths are relative to its root.
const (
	dataFile    = "integration/cmd/bench/bench.json"
	peersFile   = "docs/bench-peers.svg"
	waitersFile = "docs/bench-waiters.svg"
)

// Publish writes the data of the run into the repository at root, and draws its pictures from them.
func (r *Report) Publish(root string) error {
	if err := r.Save(filepath.Join(root, dataFile)); err != nil {
		return err
	}
	return Draw(root)
}

// Draw makes the pictures of the repository at root from its data. The same data give the same bytes.
func Draw(root string) error {
	r, err := Read(filepath.Join(root, dataFile))
	if err != nil {
		return err
	}
	for name, picture := range map[string][]byte{
		peersFile: r.chart("One lock, acquired and released",
			"Median time of an operation, with its 95% interval. Shorter is better. The sides took turns.", r.contests(alone)),
		waitersFile: r.chart("One hand-off of a lock, by how many wait for it",
			"From a release to the next holder: median time with its 95% interval. Shorter is better.", r.contests(waited)),
	} {
		if err := os.WriteFile(filepath.Join(root, name), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}
