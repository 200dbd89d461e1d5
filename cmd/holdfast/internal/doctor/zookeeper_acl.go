package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// open looks for ACLs that let everybody break locks.
func (e *ensemble) open(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if refusedByZooKeeper(err) {
		return only(ok(seePermissions))
	}
	if err != nil {
		return nil, err
	}
	where, _ := e.search()
	paths := []string{where}
	if where == "/" { // nobody's
		paths = nil
	}
	for _, l := range set {
		paths = append(paths, l.path)
	}
	byPath := make([]bool, len(paths))
	err = each(len(paths), func(i int) error {
		acl, err := call(ctx, e.main, func() ([]zk.ACL, error) {
			acl, _, err := e.main.conn().GetACL(paths[i])
			return acl, err
		})
		if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
			return nil
		}
		byPath[i] = slices.ContainsFunc(acl, toEverybody)
		return step("read the ACL of", paths[i], err)
	})
	if err != nil {
		return nil, err
	}
	var open []string
	for i, path := range paths {
		if byPath[i] {
			open = append(open, path)
		}
	}
	return only(judgeACLs(open, slices.ContainsFunc(e.acl(), toEverybody), len(e.Options.Auth) > 0))
}

// toEverybody reports whether an entry lets everybody do more than read.
func toEverybody(a zk.ACL) bool { return a.Scheme == "world" && a.Perms&^zk.PermRead != 0 }

// judgeACLs is told which znodes are open, whether new ones will be, and whether
// there are credentials.
func judgeACLs(open []string, newOnes, credentials bool) Finding {
	var told []string
	if len(open) > 0 {
		told = append(told, fmt.Sprintf("%s open to the world, so everybody can break locks: %s", count(len(open), "znode"), some(open)))
	}
	if newOnes {
		told = append(told, "what is made from now on is open to the world, too (--acl open)")
	}
	if len(told) == 0 {
		return ok("only those with credentials can take or break locks")
	}
	cure := "give all clients credentials (HOLDFAST_AUTH, --auth-file) and --acl creator, and set the ACL of what is there (zkCli.sh: setAcl)"
	if credentials {
		cure = "give all clients --acl creator, and set the ACL of what is there (zkCli.sh: setAcl); there are credentials already"
	}
	return warning(cure, "%s", strings.Join(told, "; "))
}
