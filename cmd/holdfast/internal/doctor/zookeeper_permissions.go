package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// maxTried limits the locks whose permissions are tried: each try is a write to the quorum, though it changes nothing.
const maxTried = 100

// permissions asks the servers for this client's rights where the locks are. It changes nothing and needs no lock. Clients create locks in
// one znode, or in the lowest one above it that exists; "ls" lists them.
func (e *ensemble) permissions(ctx context.Context) ([]Finding, error) {
	where, _ := e.search()
	top, err := e.main.nearest(ctx, where)
	if err != nil {
		return nil, err
	}
	set, err := e.locks(ctx)
	if err != nil && !errors.Is(err, errUnseen) {
		return nil, err
	}
	set = set[:min(len(set), maxTried)]
	missing := make([][]string, 1+len(set)) // on top, and on each lock
	err = each(len(missing), func(i int) (err error) {
		path := top
		if i > 0 {
			path = set[i-1].path
		}
		missing[i], err = e.main.missing(ctx, path)
		if i > 0 && errors.Is(err, zk.ErrNoNode) { // deleted by now
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var findings []Finding
	lacking := func(how func(cure, found string, args ...any) Finding, permission, where string) {
		findings = append(findings, how(fmt.Sprintf(
			"give the credentials that have it (HOLDFAST_AUTH, --auth-file, --tls-cert), or grant %s to yours (zkCli.sh: getAcl, setAcl)",
			permission,
		), "%s is missing on %s", permission, where))
	}
	if slices.Contains(missing[0], "CREATE") {
		lacking(problem, "CREATE", top)
	}
	if slices.Contains(missing[0], "READ") && top == where {
		lacking(warning, "READ", top+", which ls and doctor need")
	}
	for i, l := range set {
		if m := missing[1+i]; len(m) > 0 {
			lacking(problem, strings.Join(m, ", "), "the lock "+l.path)
		}
	}
	if len(findings) > 0 {
		return findings, nil
	}
	told := "locks may be made in " + where
	if len(set) > 0 {
		told += fmt.Sprintf(", and %s that are there contended for", count(len(set), "lock"))
	}
	return only(ok("%s", told))
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

// missing returns the permissions for the children of a znode that are missing: READ, CREATE, DELETE.
//
// For the latter two it sends a transaction that creates a child, deletes it, and then fails in any case. The first forbidden step refuses
// it. It changes nothing, not even the sequence counter.
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
	if where, _ := e.search(); where != "/" { // which belongs to the server
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
		if slices.ContainsFunc(acl, toEverybody) {
			open[i] = paths[i]
		}
		return unlessDenied(step("read the ACL of", paths[i], err))
	})
	var told []string
	if open = slices.DeleteFunc(open, func(path string) bool { return path == "" }); len(open) > 0 {
		told = append(told, fmt.Sprintf("%s open to the world, so everybody can break locks: %s", count(len(open), "znode"), some(open)))
	}
	if slices.ContainsFunc(orOpen(e.Options.ACL), toEverybody) {
		told = append(told, "new znodes are open to the world, too (--acl open)")
	}
	switch {
	case err != nil && (len(told) == 0 || !errors.Is(err, errUnseen)):
		return nil, err
	case len(told) == 0:
		return only(ok("only clients with credentials can take or break locks"))
	}
	return only(warning("give all clients credentials (HOLDFAST_AUTH, --auth-file, --tls-cert) and --acl creator, "+
		"and set the ACL of the present znodes (zkCli.sh: setAcl)", "%s", strings.Join(told, "; ")))
}

// toEverybody reports whether an entry lets everybody do more than read.
func toEverybody(a zk.ACL) bool { return a.Scheme == "world" && a.Perms&^zk.PermRead != 0 }
