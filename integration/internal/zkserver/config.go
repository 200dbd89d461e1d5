package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Config says what server to start. The zero value is a quick one for tests.
type Config struct {
	// TickTime is the server's unit of time: sessions last 2 to 20 ticks unless MaxSessionTimeout is set, and expire
	// on a tick's boundary. Default 100 ms, for an ensemble 200 ms.
	TickTime time.Duration
	// MaxSessionTimeout bounds the session timeout that a client may negotiate. Default: 20 ticks.
	MaxSessionTimeout time.Duration
	// ContainerCheckInterval is how often empty container nodes are reaped. Default: the server's own, one minute.
	ContainerCheckInterval time.Duration
	// FullJIT trades the quick start for the speed of a server in production: for benchmarks.
	FullJIT bool
	// Heap is the largest Java heap, as in -Xmx. Default 256m.
	Heap string
	// InitLimit and SyncLimit, in ticks, are how long a follower may take to join and how far it may fall behind its leader.
	// Only an ensemble uses them. Default 15 and 5. An election after a partition can take InitLimit: one of two servers may
	// already lead while the other still looks, and waits that long for it.
	InitLimit, SyncLimit int
	// Controlled makes [Ensemble.Plant] and, of a server on its own, [Server.SetCversion] work. It needs a JDK. Such a server on
	// its own reaps no container nodes.
	Controlled bool
	// Observer makes the last server of an ensemble an observer, which has no vote; ObserverMaster has it follow a follower, and
	// not the leader. Only an ensemble uses them, the latter from 3.6 on.
	Observer, ObserverMaster bool
	// TLS makes the servers of an ensemble serve clients with TLS, too, on a port of its own ([Server.SecureAddr]), by Netty, and
	// only clients that have a certificate. Only an ensemble uses it.
	TLS *TLS
	// Props are further Java system properties, name to value.
	Props map[string]string
	// Settings are further lines of zoo.cfg, name to value; they take precedence.
	Settings map[string]string
}

func (c Config) withDefaults(tick time.Duration) Config {
	if c.TickTime == 0 {
		c.TickTime = tick
	}
	if c.Heap == "" {
		c.Heap = "256m"
	}
	if c.InitLimit == 0 {
		c.InitLimit = 15
	}
	if c.SyncLimit == 0 {
		c.SyncLimit = 5
	}
	return c
}

// settings is the zoo.cfg of a server with these addresses and this data directory.
func (c Config) settings(dataDir, host string, port int) map[string]string {
	m := map[string]string{
		"dataDir":                dataDir,
		"clientPort":             fmt.Sprint(port),
		"clientPortAddress":      host,
		"tickTime":               fmt.Sprint(c.TickTime.Milliseconds()),
		"maxClientCnxns":         "0",
		"admin.enableServer":     "false",
		"4lw.commands.whitelist": "*",
	}
	if c.MaxSessionTimeout > 0 {
		m["maxSessionTimeout"] = fmt.Sprint(c.MaxSessionTimeout.Milliseconds())
	}
	return m
}

// render is the text of zoo.cfg. It changes the map.
func (c Config) render(settings map[string]string) string {
	maps.Copy(settings, c.Settings)
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s=%s\n", k, settings[k])
	}
	return b.String()
}

// props are the Java system properties, in the -Dname=value form.
func (c Config) props() []string {
	m := map[string]string{
		"zookeeper.forceSync":                     "no", // a test outlives no power failure, and a killed process loses nothing that it wrote
		"java.net.preferIPv4Stack":                "true",
		"zookeeper.jmx.log4j.disable":             "true",
		"org.slf4j.simpleLogger.showDateTime":     "true",
		"org.slf4j.simpleLogger.dateTimeFormat":   "HH:mm:ss.SSS",
		"org.slf4j.simpleLogger.showShortLogName": "true",
	}
	if c.FullJIT {
		// A log line for every session would distort the measurement.
		m["org.slf4j.simpleLogger.defaultLogLevel"] = "warn"
	} else {
		// The default reserves 64 MiB for each log file: too much for the many short lives of servers in tests.
		m["zookeeper.preAllocSize"] = "1024"
	}
	if c.ContainerCheckInterval > 0 {
		m["znode.container.checkIntervalMs"] = fmt.Sprint(c.ContainerCheckInterval.Milliseconds())
	}
	maps.Copy(m, c.Props)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, "-D"+k+"="+m[k])
	}
	return out
}

func (c Config) jvmFlags() []string {
	flags := []string{"-Xmx" + c.Heap, "-Xshare:auto"}
	if !c.FullJIT {
		flags = append(flags, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
	}
	return append(flags, c.props()...)
}
