//go:build race

package main

// simulatedByDefault is for how many virtual hours TestSimulation runs. The race detector takes five times as long.
const simulatedByDefault = 0.03
