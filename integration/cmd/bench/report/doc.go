// Package report holds the results of a benchmark run: its rows as text, as a data file, and as the pictures and tables drawn
// from that file.
package report
