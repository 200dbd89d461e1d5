package zkserver

import (
	"maps"
	"strconv"

	"github.com/holdfast-go/holdfast/integration/internal/child"
	"github.com/holdfast-go/holdfast/integration/internal/faultproxy"
)

// TLS holds the certificates with which servers identify themselves and their clients.
type TLS struct {
	// Key is a server's certificate and its PKCS #8 key; Trust are the certificates of the authorities of clients. All are PEM.
	Key, Trust []byte
}

// secured adds TLS to the configuration and files of a member.
func (c Config) secured(ports []*child.PortLease, settings, files map[string]string) Config {
	if c.TLS == nil {
		return c
	}
	files["key.pem"], files["trust.pem"] = string(c.TLS.Key), string(c.TLS.Trust)
	settings["secureClientPort"] = strconv.Itoa(ports[3].Port)
	settings["secureClientPortAddress"] = "127.0.0.1"
	settings["ssl.keyStore.type"], settings["ssl.trustStore.type"] = "PEM", "PEM"
	settings["ssl.keyStore.location"], settings["ssl.trustStore.location"] = ownDir+"/key.pem", ownDir+"/trust.pem"
	settings["ssl.clientAuth"] = "need"
	props := map[string]string{"zookeeper.serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"}
	maps.Copy(props, c.Props)
	c.Props = props
	return c
}

// observe makes the last member an observer, and a follower its master, if the configuration says so. A master listens on a
// port that is the same for all voters; of the two voters, only the follower does.
func (e *Ensemble) observe(c Config, member, port int, settings map[string]string) error {
	const last = EnsembleSize - 1
	if !c.Observer {
		return nil
	}
	if member == last {
		settings["peerType"] = "observer"
	}
	if !c.ObserverMaster {
		return nil
	}
	settings["observerMasterPort"] = strconv.Itoa(port)
	if member != last {
		return nil
	}
	// The observer looks for a master at the voters' addresses, and at the port of its own configuration.
	master, err := faultproxy.Start(loopback(port))
	if err != nil {
		return err
	}
	e.links[last][0].master = master
	settings["observerMasterPort"] = strconv.Itoa(portOf(master))
	return nil
}
