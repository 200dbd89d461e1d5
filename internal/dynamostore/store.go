// Package dynamostore gives tests in other modules the store of a client of package dynamolock.
package dynamostore

import "github.com/holdfast-go/holdfast/internal/recordlock"

// Of returns the store of a *dynamolock.Client. Package dynamolock sets it.
var Of func(client any) recordlock.Store
