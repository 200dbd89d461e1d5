//go:build !race

package integration_test

// raceEnabled says that the race detector adds to memory use.
const raceEnabled = false
