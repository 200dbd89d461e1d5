//go:build unix

package main

import (
	"fmt"
	"slices"
	"time"
)

// The command is ended when maxGuards guards were lost within guardsWithin: another program kills them, or the machine has no room.
const (
	maxGuards    = 5
	guardsWithin = time.Minute
)

// reguard replaces the guard, and returns the channel that reports the end of the new one. If it cannot, it ends the command.
func (h *supervisor) reguard() <-chan struct{} {
	why := h.guard.Failed()
	if why == nil {
		h.app.log.Info("the guard has killed the command")
		return nil
	}
	now := time.Now()
	h.guards = append(slices.DeleteFunc(h.guards, func(t time.Time) bool { return now.Sub(t) > guardsWithin }), now)
	err := fmt.Errorf("%d guards in %v", len(h.guards), guardsWithin)
	if len(h.guards) < maxGuards {
		if h.guard, err = h.guard.Again(h.job); err == nil {
			h.app.warn("the guard of the command is gone (%v): another takes its place", why)
			return h.guard.Ended()
		}
	}
	h.end(exitFailed, fmt.Errorf("the guard of the command is gone (%w), and no other can take its place: %w", why, err), now.Add(h.grace))
	return nil
}
