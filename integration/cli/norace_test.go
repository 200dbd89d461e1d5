//go:build !race

package cli_test

// raceEnabled says that the tool is to look for data races, too.
const raceEnabled = false
