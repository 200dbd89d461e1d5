package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// maxTried is for how many locks permissions are tried: each is a write to the quorum,
// though it changes nothing.
const maxTried = 100

// permissions asks the servers what this client may do where the locks are. It changes
// nothing and needs no lock.
func (e *ensemble) permissions(ctx context.Context) ([]Finding, error) {
	findings, err := e.permissionsAbove(ctx)
	if err != nil {
		return nil, err
	}
	set, err := e.locks(ctx)
	if err != nil && !errors.Is(err, errUnseen) {
		return nil, err
	}
	set = set[:min(len(set), maxTried)]
	missing := make([][]string, len(set))
	err = each(len(set), func(i int) (err error) {
		missing[i], err = e.main.missing(ctx, set[i].path)
		if errors.Is(err, zk.ErrNoNode) { // gone by now
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, l := range set {
		if len(missing[i]) > 0 {
			findings = append(findings, lacking(problem, strings.Join(missing[i], ", "), "the lock "+l.path))
		}
	}
	if len(findings) > 0 {
		return findings, nil
	}
	where, _ := e.search()
	told := "locks may be made in " + where
	if len(set) > 0 {
		told += fmt.Sprintf(", and %s that are there contended for", count(len(set), "lock"))
	}
	return only(ok("%s", told))
}

// permissionsAbove looks at the znode whose children are the locks or, if it does not exist
// yet, at the one below which it would be created. Clients create locks in it, "ls" lists
// them, and the servers delete them.
func (e *ensemble) permissionsAbove(ctx context.Context) ([]Finding, error) {
	where, _ := e.search()
	top, err := e.main.nearest(ctx, where)
	if err != nil {
		return nil, err
	}
	missing, err := e.main.missing(ctx, top)
	var findings []Finding
	for _, permission := range missing {
		switch {
		case permission == "CREATE":
			findings = append(findings, lacking(problem, permission, top))
		case permission == "READ" && top == where:
			findings = append(findings, lacking(warning, permission, top+", which ls and doctor need"))
		}
	}
	return findings, err
}

// lacking reports a missing permission.
func lacking(how func(cure, found string, args ...any) Finding, permission, where string) Finding {
	return how(
		fmt.Sprintf("give the credentials that have it (HOLDFAST_AUTH, --auth-file, --tls-cert), or grant %s to yours (zkCli.sh: getAcl, setAcl)", permission),
		"%s is missing on %s", permission, where,
	)
}

// nearest returns a path, or the lowest one above it that exists.
func (s *server) nearest(ctx context.Context, path string) (string, error) {
	for _, p := range slices.Backward(pathsTo(path)) {
		stat, err := s.exists(ctx, p)
		if err != nil || stat != nil {
			return p, err
		}
	}
	return "/", nil
}

// missing returns which permissions for the children of a znode are missing: READ, CREATE, DELETE.
//
// For the latter two it sends a transaction that creates a child, deletes it, and then fails by
// itself. The first forbidden step refuses it; in any case it changes nothing, not even the
// sequence counter.
func (s *server) missing(ctx context.Context, parent string) ([]string, error) {
	var missing []string
	err := do(ctx, s, func() error { _, _, err := s.conn().Children(parent); return err })
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		missing = append(missing, "READ")
	case err != nil:
		return nil, step("list", parent, err)
	}
	child := join(parent, probeName())
	results, err := call(ctx, s, func() ([]zk.MultiResponse, error) {
		return s.conn().Multi(&zk.CreateRequest{Path: child, Acl: zk.WorldACL(zk.PermAll)},
			&zk.DeleteRequest{Path: child, Version: -1}, &zk.CheckVersionRequest{Path: child, Version: -1})
	})
	denied := func(i int) bool { return i < len(results) && errors.Is(results[i].Error, zk.ErrNoAuth) }
	switch {
	case denied(0):
		missing = append(missing, "CREATE")
		// Servers from 3.7 on check the parent first, so deleting a missing child tells, too.
		if err := do(ctx, s, func() error { return s.conn().Delete(child, -1) }); errors.Is(err, zk.ErrNoAuth) {
			missing = append(missing, "DELETE")
		}
	case denied(1):
		missing = append(missing, "DELETE")
	case !errors.Is(err, zk.ErrNoNode):
		return nil, step("try a child of", parent, err)
	case len(results) < 3:
		return nil, step("look at", parent, err)
	}
	return missing, nil
}

// open looks for ACLs that let everybody break locks.
func (e *ensemble) open(ctx context.Context) ([]Finding, error) {
	set, err := e.locks(ctx)
	if err != nil {
		return nil, err
	}
	var paths []string
	if where, _ := e.search(); where != "/" { // which belongs to nobody
		paths = append(paths, where)
	}
	for _, l := range set {
		paths = append(paths, l.path)
	}
	open := make([]string, len(paths)) // "" for those that are not
	err = each(len(paths), func(i int) error {
		acl, err := call(ctx, e.main, func() ([]zk.ACL, error) {
			acl, _, err := e.main.conn().GetACL(paths[i])
			return acl, err
		})
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if errors.Is(err, zk.ErrNoAuth) {
			return errUnseen
		}
		if slices.ContainsFunc(acl, toEverybody) {
			open[i] = paths[i]
		}
		return step("read the ACL of", paths[i], err)
	})
	if err != nil && !errors.Is(err, errUnseen) {
		return nil, err
	}
	open = slices.DeleteFunc(open, func(path string) bool { return path == "" })
	f := judgeACLs(open, slices.ContainsFunc(orOpen(e.Options.ACL), toEverybody), len(e.Options.Auth) > 0)
	if err != nil && f.Status == OK {
		return nil, err
	}
	return only(f)
}

// toEverybody reports whether an entry lets everybody do more than read.
func toEverybody(a zk.ACL) bool { return a.Scheme == "world" && a.Perms&^zk.PermRead != 0 }

// judgeACLs reports the znodes that are open, and whether new ones will be.
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
	cure := "give all clients credentials (HOLDFAST_AUTH, --auth-file, --tls-cert) and --acl creator, and set the ACL of what is there (zkCli.sh: setAcl)"
	if credentials {
		cure = "give all clients --acl creator, and set the ACL of what is there (zkCli.sh: setAcl); there are credentials already"
	}
	return warning(cure, "%s", strings.Join(told, "; "))
}
