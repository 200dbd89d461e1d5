import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.data.Stat;

/**
 * One process with Curator's InterProcessMutex, or another recipe of Curator's, that does what it is told, a line of standard input
 * at a time, and reports in lines of JSON: of a lock that it has, again and again that it believes so. It ends with its input.
 *
 * <p>Arguments: the server, the session timeout in milliseconds; for elections, the candidate's id, and the recipe.
 */
public final class CuratorPeer {
    private static final long STAMP_MS = 25;

    /** Something of Curator's that one holder has at a time. */
    private interface Recipe {
        void acquire() throws Exception;

        void release() throws Exception;

        /** The node that stands for the hold, or null where it has no token. */
        default String node() throws Exception {
            return null;
        }
    }

    /** Tells which node is the present thread's. */
    private static final class Mutex extends InterProcessMutex implements Recipe {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        @Override
        public String node() {
            return getLockPath();
        }
    }

    private static final class Write implements Recipe {
        private final InterProcessReadWriteLock lock;
        private final Node node;
        private InterProcessMutex held;

        Write(CuratorFramework client, String path) {
            lock = new InterProcessReadWriteLock(client, path);
            node = new Node(client, path);
        }

        @Override
        public String node() throws Exception {
            return node.own();
        }

        @Override
        public void acquire() throws Exception {
            lock.writeLock().acquire();
            held = lock.writeLock();
        }

        /** Goes on with the read lock alone, without a moment at which it has neither. */
        void downgrade() throws Exception {
            lock.readLock().acquire();
            held.release();
            held = lock.readLock();
        }

        @Override
        public void release() throws Exception {
            held.release();
        }
    }

    private static final class Read implements Recipe {
        private final InterProcessMutex lock;
        private final Node node;

        Read(CuratorFramework client, String path) {
            lock = new InterProcessReadWriteLock(client, path).readLock();
            node = new Node(client, path);
        }

        @Override
        public String node() throws Exception {
            return node.own();
        }

        @Override
        public void acquire() throws Exception {
            lock.acquire();
        }

        @Override
        public void release() throws Exception {
            lock.release();
        }
    }

    private static final class Latch implements Recipe {
        private final LeaderLatch latch;
        private final Node node;

        Latch(CuratorFramework client, String path, String id, Runnable lost) {
            latch = new LeaderLatch(client, path, id);
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {}

                @Override
                public void notLeader() {
                    lost.run();
                }
            });
            node = new Node(client, path);
        }

        @Override
        public String node() throws Exception {
            return node.own();
        }

        @Override
        public void acquire() throws Exception {
            latch.start();
            latch.await();
        }

        @Override
        public void release() throws Exception {
            latch.close();
        }
    }

    private static final class Selector extends LeaderSelectorListenerAdapter implements Recipe {
        private final LeaderSelector selector;
        private final CountDownLatch elected = new CountDownLatch(1);
        private final CountDownLatch over = new CountDownLatch(1);

        private final Node node;
        private final Runnable lost;

        Selector(CuratorFramework client, String path, String id, Runnable lost) {
            selector = new LeaderSelector(client, path, this);
            selector.setId(id);
            node = new Node(client, path);
            this.lost = lost;
        }

        @Override
        public String node() throws Exception {
            return node.own();
        }

        @Override
        public void takeLeadership(CuratorFramework client) throws Exception {
            elected.countDown();
            try {
                over.await();
            } catch (InterruptedException e) {
                lost.run();
                throw e;
            }
        }

        @Override
        public void acquire() throws Exception {
            selector.start();
            while (!elected.await(100, TimeUnit.MILLISECONDS)) {
                selector.requeue(); // an outage takes a candidate out of the queue, without a word
            }
        }

        @Override
        public void release() throws Exception {
            over.countDown();
            while (selector.hasLeadership()) {
                Thread.sleep(1);
            }
            selector.close();
        }
    }

    /** Finds the node of a recipe that does not tell its name: the one of the client's own session. */
    private record Node(CuratorFramework client, String path) {
        String own() throws Exception {
            long session = client.getZookeeperClient().getZooKeeper().getSessionId();
            for (String child : client.getChildren().forPath(path)) {
                Stat stat = client.checkExists().forPath(path + "/" + child);
                if (stat != null && stat.getEphemeralOwner() == session) {
                    return path + "/" + child;
                }
            }
            throw new IllegalStateException("the node is gone");
        }
    }

    private Recipe recipe(String name, String path) {
        return switch (name) {
            case "InterProcessMutex" -> new Mutex(client, path);
            case "revocable" -> {
                Mutex mutex = new Mutex(client, path);
                mutex.makeRevocable(asked -> report("revoked", System.nanoTime(), 0, ""));
                yield mutex;
            }
            case "InterProcessReadWriteLock.writeLock" -> new Write(client, path);
            case "InterProcessReadWriteLock.readLock" -> new Read(client, path);
            case "LeaderLatch" -> new Latch(client, path, id, () -> end("lost"));
            case "LeaderSelector" -> new Selector(client, path, id, () -> end("lost"));
            default -> throw new IllegalArgumentException(name);
        };
    }

    private final CuratorFramework client;
    private final String id; // in elections
    private final String usual; // the recipe, if an order names none
    private Recipe mutex; // of the thread that obeys: Curator's locks belong to threads

    private boolean held; // guarded by this, as are the next two
    private long token; // the czxid of the lock's node
    private boolean closed;

    private CuratorPeer(CuratorFramework client, String id, String usual) {
        this.client = client;
        this.id = id;
        this.usual = usual;
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[1]), 15_000, new RetryForever(50));
        CuratorPeer peer = new CuratorPeer(client, args.length > 2 ? args[2] : "", args.length > 3 ? args[3] : "InterProcessMutex");
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.LOST) {
                peer.end("lost");
            }
        });
        client.start();
        client.blockUntilConnected();
        LinkedBlockingQueue<String> orders = new LinkedBlockingQueue<>();
        background(() -> {
            while (true) {
                peer.obey(orders.take());
            }
        });
        background(() -> {
            while (true) {
                Thread.sleep(STAMP_MS);
                peer.stamp("holding");
            }
        });
        report("ready", System.nanoTime(), 0, version());
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            orders.add(line);
        }
        peer.close();
        client.close(); // ends the session, and so removes a node that still waits
        System.exit(0);
    }

    private static String version() throws IOException {
        Properties of = new Properties();
        try (InputStream in = CuratorFramework.class.getResourceAsStream("/META-INF/maven/org.apache.curator/curator-framework/pom.properties")) {
            of.load(in);
        }
        return of.getProperty("version");
    }

    private interface Task {
        void run() throws Exception;
    }

    private static void background(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception e) {
                e.printStackTrace();
                System.exit(1);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private void obey(String order) {
        String[] words = order.split(" ");
        try {
            switch (words[0]) {
                case "acquire" -> acquire(words[1], words.length > 2 ? words[2] : usual);
                case "downgrade" -> {
                    ((Write) mutex).downgrade();
                    report("downgraded", System.nanoTime(), 0, "");
                }
                case "release" -> release();
                case "revoke" -> {
                    Revoker.attemptRevoke(client, words[1]);
                    report("asked", System.nanoTime(), 0, "");
                }
                case "participants" -> report("participants", participants(words[1]));
                case "leaders" -> report("leaders", leaders(words[1]));
                case "latches" -> report("latches", latches(words[1]));
                default -> throw new IllegalArgumentException(order);
            }
        } catch (Exception e) {
            report("failed", System.nanoTime(), 0, e.toString());
        }
    }

    private void acquire(String path, String name) throws Exception {
        leave(); // what was lost
        mutex = recipe(name, path);
        mutex.acquire();
        long at = System.nanoTime();
        long czxid = 0;
        if (mutex.node() != null) {
            Stat node = client.checkExists().forPath(mutex.node());
            if (node == null) {
                leave();
                throw new IllegalStateException("the node is gone");
            }
            czxid = node.getCzxid();
        }
        synchronized (this) {
            if (!closed) {
                held = true;
                token = czxid;
                report("acquired", at, token, "");
            }
        }
    }

    /** Gives up what it holds, and what it is granted from now on. */
    private synchronized void close() {
        held = false;
        closed = true;
    }

    private void release() {
        stamp("holding");
        synchronized (this) {
            held = false;
        }
        String note = leave();
        report("released", System.nanoTime(), token, note);
    }

    /** Gives the mutex back, and returns what went wrong: for one that was lost, that is to be expected. */
    private String leave() {
        if (mutex == null) {
            return "";
        }
        try {
            mutex.release();
            return "";
        } catch (Exception e) {
            return e.toString();
        } finally {
            mutex = null;
        }
    }

    private synchronized void stamp(String what) {
        if (held) {
            report(what, System.nanoTime(), token, "");
        }
    }

    private synchronized void end(String what) {
        stamp(what);
        held = false;
    }

    /** The data of the nodes that Curator's mutex takes for participants. */
    private List<String> participants(String path) throws Exception {
        List<String> names = new ArrayList<>();
        for (String node : new InterProcessMutex(client, path).getParticipantNodes()) {
            names.add(new String(client.getData().forPath(node), StandardCharsets.UTF_8));
        }
        return names;
    }

    /** The ids of those that Curator's election takes for participants; the leader's has a star. */
    private List<String> leaders(String path) throws Exception {
        List<String> names = new ArrayList<>();
        // Not started, as it would queue: it is there to be asked.
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework c) {}
        });
        for (Participant p : selector.getParticipants()) {
            names.add(p.getId() + (p.isLeader() ? "*" : ""));
        }
        return names;
    }

    /** The same of Curator's latch. */
    private List<String> latches(String path) throws Exception {
        List<String> names = new ArrayList<>();
        for (Participant p : new LeaderLatch(client, path).getParticipants()) {
            names.add(p.getId() + (p.isLeader() ? "*" : ""));
        }
        return names;
    }

    private static void report(String what, List<String> names) {
        StringBuilder list = new StringBuilder();
        for (String name : names) {
            list.append(list.length() > 0 ? "," : "").append(quote(name));
        }
        print("{\"what\":" + quote(what) + ",\"names\":[" + list + "]}");
    }

    private static void report(String what, long at, long token, String note) {
        print("{\"what\":" + quote(what) + ",\"at\":" + at + ",\"token\":" + token + ",\"note\":" + quote(note) + "}");
    }

    private static synchronized void print(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c < ' ' || c == '"' || c == '\\' || c > '~') {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.append('"').toString();
    }
}
