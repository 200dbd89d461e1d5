package main

import "io"

// unread waits for nothing: a reader that has gone is found out by the next write.
func unread(io.Writer) error { return nil }
