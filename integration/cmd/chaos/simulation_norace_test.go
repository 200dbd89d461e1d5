//go:build !race

package main

// simulatedByDefault is for how many virtual hours TestSimulation runs, with each engine: some five seconds.
const simulatedByDefault = 0.15
