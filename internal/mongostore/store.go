// Package mongostore gives tests in other modules the store of a client of package mongolock.
package mongostore

import "github.com/holdfast-go/holdfast/internal/recordlock"

// Of returns the store of a *mongolock.Client. Package mongolock sets it.
var Of func(client any) recordlock.RevisionStore
