// Package migrating has the code of docs/migrating, so that it compiles: what
// programs look like that use other lock libraries, and what they look like here.
package migrating

import (
	"context"

	"github.com/holdfast-go/holdfast"
)

// work stands for what is done under a lock.
func work(context.Context) error { return nil }

// book stands for what is done under a lock with a fencing token.
func book(context.Context, holdfast.Token) error { return nil }
