import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * One process with AWS's lock client, driven by commands on standard input, each answered with the nanoseconds it took:
 *
 * <pre>
 * run KEY N  acquires and releases N times, one after the other, a lock that nobody else wants
 * </pre>
 *
 * <p>It reads the item, and then writes it; a release deletes the item, as is its default.
 *
 * <p>Arguments: the table, its partition key, the owner, the lease and the heartbeat period in milliseconds.
 */
public final class AWSLock {
    public static void main(String[] args) throws Exception {
        DynamoDbClient dynamo = DynamoDbClient.builder().endpointOverride(URI.create(System.getenv("DYNAMODB_ENDPOINT"))).build();
        AmazonDynamoDBLockClient locks = new AmazonDynamoDBLockClient(AmazonDynamoDBLockClientOptions.builder(dynamo, args[0])
                .withPartitionKeyName(args[1])
                .withOwnerName(args[2])
                .withTimeUnit(TimeUnit.MILLISECONDS)
                .withLeaseDuration(Long.valueOf(args[3]))
                .withHeartbeatPeriod(Long.valueOf(args[4]))
                .withCreateHeartbeatBackgroundThread(true)
                .build());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            AcquireLockOptions key = AcquireLockOptions.builder(words[1]).build();
            int n = Integer.parseInt(words[2]);
            System.gc(); // as before a block of the other side
            long began = System.nanoTime();
            for (int i = 0; i < n; i++) {
                locks.releaseLock(locks.acquireLock(key));
            }
            System.out.println(System.nanoTime() - began);
        }
        System.exit(0);
    }
}
