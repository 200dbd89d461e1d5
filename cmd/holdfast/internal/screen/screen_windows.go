package screen

import (
	"errors"
	"os"
)

// Able reports that there is no screen on Windows: nothing else here is used.
func Able(string) bool { return false }

// A Screen is a terminal in use.
type Screen struct{ methods }

type methods interface {
	Close()
	Inputs() <-chan Input
	Handle(os.Signal) error
	Size() (width, height int)
	Draw([]Row) error
	Redraw() error
	Suspend()
}

// Open fails.
func Open(in, out *os.File) (*Screen, error) { return nil, errors.ErrUnsupported }
