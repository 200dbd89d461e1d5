// Package report is what a run of the benchmark has found: its rows as text, as a
// file of data, and as the pictures and tables that are made from that file.
package report
