import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import java.time.Instant;
import java.util.List;

/**
 * mongo-java-server on a port of the loopback interface, with what the Go driver and mongolock need besides: the wire version of MongoDB
 * 5.0, the command hello, whose answer is that of the primary of a replica set, and reads of whole documents.
 */
public final class Server {
    public static void main(String[] args) throws Exception {
        MemoryBackend backend = new MemoryBackend() {
            // One request at a time, with a copy as the answer: the server changes its documents in place, also while it sends them.
            @Override
            public synchronized Document handleMessage(MongoMessage message) {
                if (!message.getDocument().containsKey("hello")) {
                    return super.handleMessage(message).cloneDeeply();
                }
                return new Document("isWritablePrimary", true).append("setName", "emulated").append("localTime", Instant.now())
                    .append("maxBsonObjectSize", 16 << 20).append("maxMessageSizeBytes", 48_000_000).append("maxWriteBatchSize", 100_000)
                    .append("minWireVersion", 0).append("maxWireVersion", 13).append("ok", 1.0);
            }
        };
        backend.version(new MongoVersion() {
            @Override
            public List<Integer> getVersionArray() {
                return List.of(5, 0, 0);
            }

            @Override
            public int getWireVersion() {
                return 13;
            }

            @Override
            public String toVersionString() {
                return "5.0.0";
            }
        });
        new MongoServer(backend).bind("127.0.0.1", Integer.parseInt(args[0]));
        Thread.sleep(Long.MAX_VALUE);
    }
}
