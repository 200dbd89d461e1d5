package main

import (
	"fmt"
	"slices"

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

// sameHolders reports whether two states have the same grants, with the same data.
func sameHolders(a, b holdfast.Info) bool {
	return slices.EqualFunc(a.Holders, b.Holders, func(g, h holdfast.Holder) bool {
		return g.Grant == h.Grant && g.Token == h.Token && g.Owner == h.Owner && string(g.Data) == string(h.Data)
	})
}
