// Package zkserver runs real ZooKeeper servers for tests, benchmarks and the demo.
//
// There are three ways to get one:
//
//   - [Start]: one server as a local process, which the caller may stop, kill, pause and restart. Needs Java and
//     ZooKeeper's jars on this machine ("make setup" installs them).
//   - [StartEnsemble]: three servers whose quorum and election traffic runs through fault proxies, so that a test can
//     partition them from each other while clients still reach each of them.
//   - [Open]: any server at all, for tests that only talk to it. It looks at ZOOKEEPER_SERVERS, then for Docker, then for
//     a local installation.
//
// With [Config.Controlled] a test can reach into the data tree of the first two, for states that no client can bring about in
// reasonable time: a sequence counter at its limit ([Server.SetCversion]), a node that one server of an ensemble shows and the
// others lack ([Ensemble.Plant]).
//
// Each has a twin for tests ([New], [NewEnsemble], [Find]) which fails the test on error, stops the server
// when the test ends, and prints the end of the server's log if the test failed. A missing server is always a failure
// whose text says how to fix it; no test is skipped.
//
// Every server listens on loopback only, keeps its data in its own directory under the system's temporary directory, and
// dies with the process that started it, however that process ends (on Linux; elsewhere only on a normal exit).
//
// Environment:
//
//	ZOOKEEPER_SERVERS         host:port,host:port of a running server or ensemble that Open is to use
//	HOLDFAST_ZOOKEEPER        "local" or "docker": the only place where Open may look
//	HOLDFAST_ZOOKEEPER_IMAGE  the container image (default docker.io/library/zookeeper:3.9)
//	ZOOKEEPER_HOME            an unpacked ZooKeeper distribution to take the jars from, instead of Debian's /usr/share/java
//	JAVA_HOME                 the Java to run
package zkserver
