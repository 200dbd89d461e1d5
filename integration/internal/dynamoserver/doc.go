// Package dynamoserver finds or starts a server with the API of DynamoDB, for tests, benchmarks and the demo.
//
// [Open] looks in this order:
//
//   - DYNAMODB_ENDPOINT: a server that is already running, or AWS itself;
//   - Docker: a container of Amazon's DynamoDB Local, or of another image;
//   - dynalite, a server from npm, as a local process (see package npm).
//
// Moto, a server from PyPI, is started only when HOLDFAST_DYNAMODB names it: it has transactions, Time to Live and ALL_OLD, which
// dynalite lacks, but it is slower.
//
// For tests there is [Find]: all tests of a binary share one server, which [Main] stops at the end, and each has tables of its own. A
// missing server is always a failure whose text says how to fix it; no test is skipped.
//
// Started servers listen on loopback only, keep all data in memory or in a container, and end with the process that started them (on Linux;
// elsewhere, and for containers, only on a normal exit).
//
// Environment:
//
//	DYNAMODB_ENDPOINT        URL of a running server, which takes any credentials; for AWS a URL below amazonaws.com, or "aws"
//	AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//	                         for AWS only; tables named holdfast-test-... are made there and deleted again
//	HOLDFAST_DYNAMODB        "docker", "dynalite" or "moto": the only place where Open may look
//	HOLDFAST_PYTHON          a Python that has moto[dynamodb,server], for moto
//	HOLDFAST_DYNAMODB_IMAGE  the container image (default docker.io/amazon/dynamodb-local:latest)
//	HOLDFAST_DYNAMODB_PORT   its port (default 8000)
package dynamoserver
