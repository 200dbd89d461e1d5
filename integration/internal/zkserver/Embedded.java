import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.zookeeper.server.DataNode;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ServerConfig;
import org.apache.zookeeper.server.ZooKeeperServer;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * A standalone server whose data tree can be changed from outside, for states that clients need weeks to bring about.
 *
 * <p>Requests are lines on standard input, with one line on standard output as the answer: "ok" or "error" and a text. The end
 * of the input ends the server, so it cannot outlive its parent.
 *
 * <pre>
 * setcversion N PATH    the next sequential child of PATH gets N
 * </pre>
 */
public final class Embedded {
    public static void main(String[] args) throws Exception {
        ServerConfig config = new ServerConfig();
        config.parse(args[0]);
        FileTxnSnapLog log = new FileTxnSnapLog(config.getDataLogDir(), config.getDataDir());
        // Not by the constructors that take all this: each version of ZooKeeper has others.
        ZooKeeperServer server = new ZooKeeperServer();
        server.setTxnLogFactory(log);
        server.setTickTime(config.getTickTime());
        server.setMinSessionTimeout(config.getMinSessionTimeout());
        server.setMaxSessionTimeout(config.getMaxSessionTimeout());
        ServerCnxnFactory connections = ServerCnxnFactory.createFactory();
        connections.configure(config.getClientPortAddress(), config.getMaxClientCnxns());
        connections.startup(server);
        Runtime.getRuntime().addShutdownHook(new Thread(connections::shutdown));

        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = run(server.getZKDatabase().getDataTree(), line);
            } catch (RuntimeException e) {
                answer = "error " + e;
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0);
    }

    private static String run(DataTree tree, String line) {
        String[] words = line.split(" ", 3);
        if (words.length < 3 || !words[0].equals("setcversion")) {
            return "error unknown request: " + line;
        }
        DataNode node = tree.getNode(words[2]);
        if (node == null) {
            return "error no node " + words[2];
        }
        synchronized (node) {
            node.stat.setCversion(Integer.parseInt(words[1]));
        }
        return "ok";
    }
}
