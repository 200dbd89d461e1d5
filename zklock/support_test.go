package zklock

import "github.com/holdfast-go/holdfast/internal/strict"

func init() { strict.On() }
