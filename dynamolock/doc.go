// Package dynamolock takes locks in a DynamoDB table.
package dynamolock
