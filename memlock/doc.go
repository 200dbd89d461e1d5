// Package memlock takes locks inside one process.
package memlock
