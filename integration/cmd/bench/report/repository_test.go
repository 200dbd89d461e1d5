package report

import (
	"path/filepath"
	"testing"
)

// repository is its root, as seen from here.
const repository = "../../../.."

// TestRepository guards that the pictures and tables of this repository match
// its data, and that the data are from a full run.
func TestRepository(t *testing.T) {
	t.Parallel()
	if err := Check(repository); err != nil {
		t.Error(err)
	}
	r, err := Read(filepath.Join(repository, dataFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.contests(alone)) == 0 || len(r.contests(waited)) < 2 || len(r.Versions) == 0 {
		t.Errorf("%s has %d contests, %d with waiters, and %d versions", dataFile, len(r.contests(alone)), len(r.contests(waited)), len(r.Versions))
	}
}
