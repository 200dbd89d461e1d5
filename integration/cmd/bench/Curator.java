import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryForever;

/**
 * One process with a recipe of Curator's, driven by commands on standard input, each answered with the nanoseconds it took:
 *
 * <pre>
 * run PATH N   acquires and releases N times, one after the other, a lock that nobody else wants
 * fill PATH N  lets contenders join until there are N: a holder and waiters
 * pass PATH N  lets the holder release, and each one after it, until the Nth keeps the lock
 * many PATH N  acquires and releases N times in all, by as many threads as there are, at the same time
 * </pre>
 *
 * <p>Arguments: the server, the session timeout in milliseconds, the number of sessions; what "run" and "many" acquire, "mutex",
 * "read" for the lock of a reader, or the number of permits of a semaphore; and the number of threads, which use the sessions in turn.
 * "fill" and "pass" are of the mutex.
 */
public final class Curator {
    private static final List<CuratorFramework> sessions = new ArrayList<>();
    private static final Map<String, Line> lines = new HashMap<>();
    private static String recipe;
    private static int threads;

    /** Acquires and releases. */
    private interface Hold {
        void once() throws Exception;
    }

    /** The recipe, for one thread. */
    private static Hold hold(CuratorFramework session, String path) {
        if (recipe.equals("mutex") || recipe.equals("read")) {
            InterProcessMutex lock = recipe.equals("read")
                    ? new InterProcessReadWriteLock(session, path).readLock()
                    : new InterProcessMutex(session, path);
            return () -> {
                lock.acquire();
                lock.release();
            };
        }
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(session, path, Integer.parseInt(recipe));
        return () -> {
            Lease lease = semaphore.acquire();
            semaphore.returnLease(lease);
        };
    }

    /** A held lock with waiters, which are spread over the sessions. */
    private static final class Line {
        private final String path;
        private final AtomicInteger allowed = new AtomicInteger();
        private final BlockingQueue<Long> kept = new LinkedBlockingQueue<>();
        private final BlockingQueue<Integer> go = new LinkedBlockingQueue<>();
        private volatile long began;
        private int next;
        private int inside;

        Line(String path) {
            this.path = path;
        }

        void fill(int contenders) throws Exception {
            if (next == 0) {
                join();
                kept.take();
            }
            while (inside < contenders) {
                join();
            }
        }

        long pass(int n) throws Exception {
            allowed.set(n - 1);
            go.put(n);
            long ended = kept.take();
            inside -= n;
            return ended - began;
        }

        private void join() {
            InterProcessMutex mutex = new InterProcessMutex(sessions.get(next++ % sessions.size()), path);
            inside++;
            Thread thread = new Thread(() -> contend(mutex));
            thread.setDaemon(true);
            thread.start();
        }

        /** The thread that acquired the lock must release it. */
        private void contend(InterProcessMutex mutex) {
            try {
                mutex.acquire();
                if (allowed.decrementAndGet() < 0) {
                    kept.put(System.nanoTime());
                    go.take();
                    began = System.nanoTime();
                }
                mutex.release();
            } catch (Exception e) {
                fail(e);
            }
        }
    }

    private static void fail(Exception e) {
        e.printStackTrace();
        System.exit(1);
    }

    private static long run(String path, int n) throws Exception {
        Hold hold = hold(sessions.get(0), path);
        System.gc(); // as before a block of the other side
        long began = System.nanoTime();
        for (int i = 0; i < n; i++) {
            hold.once();
        }
        return System.nanoTime() - began;
    }

    private static long many(String path, int n) throws Exception {
        AtomicInteger left = new AtomicInteger(n);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Hold hold = hold(sessions.get(i % sessions.size()), path);
            all.add(new Thread(() -> {
                try {
                    while (left.decrementAndGet() >= 0) {
                        hold.once();
                    }
                } catch (Exception e) {
                    fail(e);
                }
            }));
        }
        System.gc();
        long began = System.nanoTime();
        for (Thread thread : all) {
            thread.start();
        }
        for (Thread thread : all) {
            thread.join();
        }
        return System.nanoTime() - began;
    }

    private static long answer(String[] words) throws Exception {
        int n = Integer.parseInt(words[2]);
        Line line = lines.computeIfAbsent(words[1], Line::new);
        switch (words[0]) {
            case "run":
                return run(words[1], n);
            case "many":
                return many(words[1], n);
            case "fill":
                line.fill(n);
                return 0;
            case "pass":
                return line.pass(n);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        recipe = args[3];
        threads = Integer.parseInt(args[4]);
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            CuratorFramework client = CuratorFrameworkFactory.builder()
                    .connectString(args[0])
                    .sessionTimeoutMs(Integer.parseInt(args[1]))
                    .retryPolicy(new RetryForever(100))
                    .build();
            client.start();
            client.blockUntilConnected();
            sessions.add(client);
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
