package main

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
)

// holders names the holders of a key: the oldest, how many more share it, and in which mode.
func holders(info holdfast.Info) string {
	name := cut(plain(info.Owner), 2*holdfast.MaxOwner)
	if n := len(info.Holders); n > 1 {
		name += fmt.Sprintf(" and %d more", n-1)
	}
	if mode := (driver.Mode{Shared: info.Shared, Limit: info.Limit}); mode.Shared {
		name += fmt.Sprintf(" (%v)", mode)
	}
	return name
}

// sharing says in what way a key is shared, as the name and the value of a fact.
func sharing(info holdfast.Info) (name, value string) {
	if info.Limit > 0 {
		return "permits", fmt.Sprintf("%d of %d", len(info.Holders), info.Limit)
	}
	return "shared", fmt.Sprintf("by %d", len(info.Holders))
}
