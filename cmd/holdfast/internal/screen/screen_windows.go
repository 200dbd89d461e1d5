package screen

import (
	"errors"
	"os"
)

// Able reports that there is no screen on Windows, so nothing but Foreground is used here.
func Able(string) bool { return false }

// Foreground reports true: Windows has no job control.
func Foreground(*os.File) bool { return true }

// A Screen is a terminal in use.
type Screen struct{ methods }

type methods interface {
	Close()
	Inputs() <-chan Input
	Signals() <-chan os.Signal
	Handle(os.Signal) error
	Size() (width, height int)
	Draw([]Row) error
	Redraw() error
	Suspend()
}

// Open fails.
func Open(in, out *os.File) (*Screen, error) { return nil, errors.ErrUnsupported }
