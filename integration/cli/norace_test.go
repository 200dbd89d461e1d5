//go:build !race

package cli_test

// raceEnabled says that the tool is built with the race detector.
const raceEnabled = false
