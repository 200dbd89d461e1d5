import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.retry.RetryForever;

/**
 * One process with a recipe of Curator's. Each line of standard input is an order; the answer is the nanoseconds that N
 * acquisitions and releases took:
 *
 * <pre>
 * run PATH N   by one thread
 * many PATH N  by all threads together, at the same time
 * </pre>
 *
 * <p>Arguments: the server, the session timeout in milliseconds, the number of sessions, the number of permits of a semaphore or 0
 * for the mutex, and the number of threads, which use the sessions in turn.
 */
public final class Curator {
    /** Acquires and releases. */
    private interface Hold {
        void once() throws Exception;
    }

    private static Hold hold(CuratorFramework session, String path, int permits) {
        if (permits == 0) {
            InterProcessMutex lock = new InterProcessMutex(session, path);
            return () -> {
                lock.acquire();
                lock.release();
            };
        }
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(session, path, permits);
        return () -> semaphore.returnLease(semaphore.acquire());
    }

    private static long time(List<CuratorFramework> sessions, String path, int permits, int threads, int n) throws Exception {
        AtomicInteger left = new AtomicInteger(n);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Hold hold = hold(sessions.get(i % sessions.size()), path, permits);
            all.add(new Thread(() -> {
                try {
                    while (left.decrementAndGet() >= 0) {
                        hold.once();
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            }));
        }
        System.gc(); // as before a block of the other side
        long began = System.nanoTime();
        for (Thread thread : all) {
            thread.start();
        }
        for (Thread thread : all) {
            thread.join();
        }
        return System.nanoTime() - began;
    }

    public static void main(String[] args) throws Exception {
        List<CuratorFramework> sessions = new ArrayList<>();
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
        int permits = Integer.parseInt(args[3]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            int threads = words[0].equals("many") ? Integer.parseInt(args[4]) : 1;
            System.out.println(time(sessions, words[1], permits, threads, Integer.parseInt(words[2])));
        }
        System.exit(0);
    }
}
