import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.retry.RetryForever;

/**
 * One process with Curator's LeaderLatch, driven by commands on standard input, each answered with the nanoseconds it took:
 *
 * <pre>
 * run PATH N    is elected and resigns N times, one after the other; nobody else stands
 * fill PATH N   lets candidates join until there are N: a leader and others that wait
 * pass PATH N   lets the leader resign, and each one after it, until the Nth goes on leading
 * stand PATH N  lets a candidate stand for each of PATH-0 to PATH-(N-1), with a session of its own
 * lead PATH N   waits until all of these lead; it is answered with N numbers, until each did
 * </pre>
 *
 * <p>Arguments: the server, the session timeout in milliseconds, the number of sessions for all but the last two.
 */
public final class Latch {
    private static final List<CuratorFramework> sessions = new ArrayList<>();
    private static final Map<String, Line> lines = new HashMap<>();
    private static final Map<String, List<CompletableFuture<Long>>> heats = new HashMap<>();
    private static String server;
    private static int timeoutMs;

    /** An election with a leader and others that wait, which are spread over the sessions. */
    private static final class Line {
        private final String path;
        private final AtomicInteger allowed = new AtomicInteger();
        private final BlockingQueue<Long> kept = new LinkedBlockingQueue<>();
        private LeaderLatch leader;
        private int next;
        private int inside;

        Line(String path) {
            this.path = path;
        }

        void fill(int candidates) throws Exception {
            if (next == 0) {
                join();
                kept.take();
            }
            while (inside < candidates) {
                join();
            }
        }

        long pass(int n) throws Exception {
            allowed.set(n - 1);
            LeaderLatch resigns = leader;
            long began = System.nanoTime();
            resigns.close();
            long ended = kept.take();
            inside -= n;
            return ended - began;
        }

        private void join() {
            CuratorFramework session = sessions.get(next++ % sessions.size());
            inside++;
            start(() -> {
                LeaderLatch latch = elected(session, path);
                if (allowed.decrementAndGet() < 0) {
                    leader = latch;
                    kept.put(System.nanoTime());
                } else {
                    latch.close();
                }
            });
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception e) {
                fail(e);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void fail(Exception e) {
        e.printStackTrace();
        System.exit(1);
    }

    private static LeaderLatch elected(CuratorFramework session, String path) throws Exception {
        LeaderLatch latch = new LeaderLatch(session, path, "bench-host:12345:ABCDEFGHIJ");
        latch.start();
        latch.await();
        return latch;
    }

    private static CuratorFramework open() throws Exception {
        CuratorFramework session = CuratorFrameworkFactory.builder()
                .connectString(server)
                .sessionTimeoutMs(timeoutMs)
                .retryPolicy(new RetryForever(100))
                .build();
        session.start();
        session.blockUntilConnected();
        return session;
    }

    private static long run(String path, int n) throws Exception {
        System.gc(); // as before a block of the other side
        long began = System.nanoTime();
        for (int i = 0; i < n; i++) {
            elected(sessions.get(0), path).close();
        }
        return System.nanoTime() - began;
    }

    /** Returns when all have a session. Their heartbeats are not sent at the same time. */
    private static List<CompletableFuture<Long>> stand(String path, int n) throws Exception {
        List<CompletableFuture<Long>> led = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            String key = path + "-" + i;
            CuratorFramework session = open();
            CompletableFuture<Long> at = new CompletableFuture<>();
            led.add(at);
            start(() -> {
                elected(session, key);
                at.complete(System.nanoTime());
            });
            Thread.sleep(timeoutMs / 24);
        }
        return led;
    }

    private static String lead(List<CompletableFuture<Long>> led) throws Exception {
        long began = System.nanoTime();
        List<String> took = new ArrayList<>();
        for (CompletableFuture<Long> at : led) {
            took.add(Long.toString(Math.max(0, at.get() - began)));
        }
        return String.join(" ", took);
    }

    private static String answer(String[] words) throws Exception {
        String path = words[1];
        int n = Integer.parseInt(words[2]);
        switch (words[0]) {
            case "run":
                return Long.toString(run(path, n));
            case "fill":
                lines.computeIfAbsent(path, Line::new).fill(n);
                return "0";
            case "pass":
                return Long.toString(lines.get(path).pass(n));
            case "stand":
                heats.put(path, stand(path, n));
                return "0";
            case "lead":
                return lead(heats.get(path));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        server = args[0];
        timeoutMs = Integer.parseInt(args[1]);
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            sessions.add(open());
        }
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                System.out.println(answer(line.split(" ")));
            }
        } catch (Exception e) {
            fail(e);
        }
        System.exit(0);
    }
}
