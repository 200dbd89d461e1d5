package dynamofake

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ErrUnsupported: the fake does not have this part of the API.
var ErrUnsupported = errors.New("not supported by dynamofake")

func unsupported(what string) error { return fmt.Errorf("%s: %w", what, ErrUnsupported) }

// invalid returns a ValidationException.
func invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{
		Code: "ValidationException", Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient,
	}
}

func notFound(table string) error {
	return &types.ResourceNotFoundException{Message: aws.String("Requested resource not found: Table: " + table + " not found")}
}

// Throttled is the answer of an overloaded table with provisioned capacity.
func Throttled() error {
	return &types.ProvisionedThroughputExceededException{Message: aws.String("The level of configured provisioned throughput for the table was exceeded")}
}

// Throttling is the answer of an overloaded service.
func Throttling() error {
	return &types.ThrottlingException{Message: aws.String("Rate exceeded")}
}

// TransactionConflict is the answer to a write while a transaction writes the item.
func TransactionConflict() error {
	return &types.TransactionConflictException{Message: aws.String("Transaction is ongoing for the item")}
}

// ServerError is a reply with HTTP status 500: the outcome of a write is unknown.
func ServerError() error {
	return &types.InternalServerError{Message: aws.String("Internal server error")}
}

// Denied is the answer to a caller without permission.
func Denied() error {
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User is not authorized to perform this action", Fault: smithy.FaultClient}
}

// Reset is the error of a connection that the other side has reset.
func Reset() error {
	return &smithyhttp.RequestSendError{Err: &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}}
}

// canceled is how the SDK reports that a call outlived its context.
func canceled(err error) error {
	return &aws.RequestCanceledError{Err: &smithy.CanceledError{Err: err}}
}

// operationError wraps an error as the SDK does: the service's answers come in an HTTP
// response.
func operationError(operation string, err error) error {
	var answer smithy.APIError
	var response *awshttp.ResponseError
	if errors.As(err, &answer) && !errors.As(err, &response) {
		status := http.StatusBadRequest
		if answer.ErrorFault() == smithy.FaultServer {
			status = http.StatusInternalServerError
		}
		err = &awshttp.ResponseError{
			ResponseError: &smithyhttp.ResponseError{
				Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}},
				Err:      err,
			},
			RequestID: "DYNAMOFAKE",
		}
	}
	return &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: operation, Err: err}
}

// refused is the error of a refused connection, as the SDK wraps it.
func refused() error {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	return &smithyhttp.RequestSendError{Err: dial}
}
