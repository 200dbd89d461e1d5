import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import javax.security.sasl.SaslException;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.common.PathUtils;
import org.apache.zookeeper.server.DataNode;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.ZooKeeperServer;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.apache.zookeeper.server.quorum.QuorumPeerMain;

/**
 * A member of an ensemble whose own data tree can be changed from outside, for states in which servers should never be.
 *
 * <p>Requests are lines on standard input, with one line on standard output as the answer: "ok" or "error" and a text. The end
 * of the input ends the server, so it cannot outlive its parent.
 *
 * <pre>
 * plant SESSION DATA PATH    while this server follows, its tree gets the ephemeral node PATH, DATA in base64, of SESSION
 * </pre>
 */
public final class Member {
    public static void main(String[] args) {
        // Some logging back ends print on standard output. None is at work yet: this class must not load one.
        PrintStream answers = System.out;
        System.setOut(System.err);

        Peer peer = new Peer();
        Thread requests = new Thread(() -> answer(peer, answers), "requests");
        requests.setDaemon(true);
        requests.start();
        try {
            peer.run(args);
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static void answer(Peer peer, PrintStream answers) {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String answer;
                try {
                    answer = run(peer, line);
                } catch (KeeperException | RuntimeException e) {
                    answer = "error " + e;
                }
                answers.println(answer);
                answers.flush();
            }
        } catch (IOException e) {
            e.printStackTrace();
        }
        System.exit(0);
    }

    private static String run(Peer peer, String line) throws KeeperException {
        String[] words = line.split(" ", 4);
        if (words.length < 4 || !words[0].equals("plant")) {
            return "error unknown request: " + line;
        }
        DataTree tree = peer.followersTree();
        if (tree == null) {
            return "error not following";
        }
        return plant(tree, Long.parseLong(words[1]), Base64.getDecoder().decode(words[2]), words[3]);
    }

    private static String plant(DataTree tree, long session, byte[] data, String path) throws KeeperException {
        PathUtils.validatePath(path);
        DataNode parent = tree.getNode(path.substring(0, Math.max(0, path.lastIndexOf('/'))));
        if (parent == null) {
            return "error no parent of " + path;
        }
        synchronized (parent) {
            // The parent's own version leaves its counter where it is, and with that, but in 3.5, the zxid of its last change. The
            // node is as old as its parent, and so older than whatever clients make there next.
            long changed = parent.stat.getPzxid();
            tree.createNode(
                    path,
                    data,
                    ZooDefs.Ids.OPEN_ACL_UNSAFE,
                    session,
                    parent.stat.getCversion(),
                    parent.stat.getCzxid(),
                    System.currentTimeMillis());
            parent.stat.setPzxid(changed);
        }
        return "ok";
    }

    /** ZooKeeper's own main program, with a way to what it runs. */
    private static final class Peer extends QuorumPeerMain {
        private volatile QuorumPeer peer;

        void run(String[] args) throws Exception {
            initializeAndRun(args);
        }

        @Override
        protected QuorumPeer getQuorumPeer() throws SaslException {
            peer = super.getQuorumPeer();
            return peer;
        }

        /** The tree from which this server's clients read, or null unless it serves them as a follower. */
        DataTree followersTree() {
            if (peer == null || peer.getPeerState() != QuorumPeer.ServerState.FOLLOWING) {
                return null;
            }
            ZooKeeperServer server = peer.getActiveServer();
            return server != null && server.isRunning() ? server.getZKDatabase().getDataTree() : null;
        }
    }
}
