//go:build race

package integration_test

// raceEnabled says that the race detector adds to what memory is used.
const raceEnabled = true
