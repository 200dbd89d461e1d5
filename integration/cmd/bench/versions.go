package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/holdfast-go/holdfast/integration/cmd/bench/report"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
	"github.com/holdfast-go/holdfast/integration/internal/npmcache"
	"github.com/holdfast-go/holdfast/integration/internal/zkserver"
)

// versions are those of all components.
func (s *servers) versions(ctx context.Context) ([]report.Version, error) {
	all := []report.Version{{Name: "Go", Version: strings.TrimPrefix(runtime.Version(), "go")}}
	if s.zookeeper != nil {
		told, err := zkserver.FourLetter(ctx, s.zookeeper.server.Addr(), "envi")
		if err != nil {
			return nil, err
		}
		server, _, _ := strings.Cut(setting(told, "zookeeper.version"), "-") // what follows is about the build
		all = append(
			all,
			report.Version{Name: "ZooKeeper", Version: server},
			report.Version{Name: "Java", Version: setting(told, "java.version")},
			report.Version{Name: "go-zookeeper", Version: moduleVersion("github.com/go-zookeeper/zk")},
		)
	}
	if s.dynamodb != nil {
		if s.dynamodb.target.Source() == dynamoserver.Dynalite {
			all = append(all, packageVersion(npmcache.Dynalite[0]))
		} else {
			all = append(all, report.Version{Name: "DynamoDB's API", Version: s.dynamodb.server()})
		}
		node, err := npmcache.Node(ctx)
		if err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, node, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("%s --version: %w", node, err)
		}
		all = append(
			all,
			report.Version{Name: "Node.js", Version: strings.TrimPrefix(strings.TrimSpace(string(out)), "v")},
			report.Version{Name: npmClient.name, Version: packageVersion(npmcache.LockClient[0]).Version},
		)
	}
	for _, p := range s.peers {
		all = append(all, report.Version{Name: p.name, Version: p.version})
	}
	return append(all, s.others...), nil
}

// setting finds a value in a server's environment report.
func setting(told, name string) string {
	for line := range strings.Lines(told) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// moduleVersion is the version with which this program was built.
func moduleVersion(path string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == path {
			return strings.TrimPrefix(dep.Version, "v")
		}
	}
	return "unknown"
}

// packageVersion splits npm's name@version.
func packageVersion(p string) report.Version {
	name, version, _ := strings.Cut(p, "@")
	return report.Version{Name: name, Version: version}
}
