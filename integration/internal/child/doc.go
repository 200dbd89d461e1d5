// Package child is what the packages that run servers as local processes have in common: child processes that end with their
// parent, ports and temporary directories that are one process's own, and locked files.
package child
