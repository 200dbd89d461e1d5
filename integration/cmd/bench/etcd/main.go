// Etcd is what the benchmark needs of etcd: a server, and a process with etcd's election. It is a module of its own, outside of
// the workspace, so that nothing else in the repository gets etcd's dependencies. The benchmark builds and starts it.
//
//	etcd serve DIR CLIENT_PORT PEER_PORT  runs a server with one member until it is killed; says its version when it serves
//	etcd contend ADDR TTL                 takes orders; see contend. TTL is that of a session, in whole seconds
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "serve":
		return serve(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "contend":
		ttl, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return contend(args[1], ttl)
	}
	return errors.New("usage: etcd serve DIR CLIENT_PORT PEER_PORT | etcd contend ADDR TTL")
}
