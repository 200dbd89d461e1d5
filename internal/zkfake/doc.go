// Package zkfake is an ensemble of ZooKeeper servers inside the process. It speaks ZooKeeper's wire protocol with real clients and
// runs on the time of the process, which is virtual in a [testing/synctest] bubble.
//
// An [Ensemble] has one or more members. One leads: it orders all writes in one log, and ends sessions of which it has not heard.
// The others follow, a little behind: they answer reads themselves, pass writes and syncs on, and report the sessions that they
// have heard of when the leader pings them. Members can be parted from each other, stand still, be killed and started
// ([Ensemble.Part], [Ensemble.Stall], [Ensemble.Kill]); then others lead, and members that do not know that yet go on for a while. A
// [Link] is the network of one client, a [Wire] its way to one member: frames can be held, connections broken or refused, and
// single requests and replies lost ([Wire.Hold], [Wire.LoseReply]).
//
// It has: sessions that are resumed, moved and expire by ticks; ephemeral, sequential and container znodes; all requests that zklock and
// go-zookeeper make, transactions among them; watches, also set again on a new connection; zxids and Stats; ACLs.
//
// It does not have: checks of credentials, so each entry of an ACL applies to every client; bounds of sizes; time-to-live znodes;
// observers; members that come, go or lose their data; a leader whose last transactions reach some members and are lost, or kept, with
// the next leader.
//
// It follows the source of ZooKeeper 3.8: names in comments are classes and methods there.
package zkfake
