// Package child runs local processes: child processes that end with their parent, ports and temporary directories of one process, and
// locked files.
package child
