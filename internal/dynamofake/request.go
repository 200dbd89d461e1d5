package dynamofake

import (
	"reflect"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// required fails as the SDK does, before anything is sent, if one of the fields
// is missing.
func required(input any, fields ...string) error {
	v := reflect.ValueOf(input).Elem()
	missing := smithy.InvalidParamsError{Context: v.Type().Name()}
	for _, field := range fields {
		if v.FieldByName(field).IsNil() {
			missing.Add(smithy.NewErrParamRequired(field))
		}
	}
	if missing.Len() > 0 {
		return missing
	}
	return nil
}

// only fails if a field is set that is not among those that the fake knows.
func only(input any, fields ...string) error {
	v := reflect.ValueOf(input).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Type().Field(i).IsExported() && !v.Field(i).IsZero() && !slices.Contains(fields, name) {
			return unsupported(v.Type().Name() + "." + name)
		}
	}
	return nil
}

// oneOf fails for a value that the fake does not know; the zero value it does.
func oneOf[T ~string](v T, known ...T) error {
	if v != "" && !slices.Contains(known, v) {
		return unsupported(string(v))
	}
	return nil
}

// fields of requests that have conditions, and of all that can cost something.
var (
	conditional = []string{"TableName", "Key", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues", "ReturnValuesOnConditionCheckFailure"}
	paged       = []string{"TableName", "ConsistentRead", "FilterExpression", "ExpressionAttributeNames", "ExpressionAttributeValues", "Limit", "ExclusiveStartKey"}
)

func checkOldOnFailure(v types.ReturnValuesOnConditionCheckFailure) error {
	return oneOf(v, types.ReturnValuesOnConditionCheckFailureNone, types.ReturnValuesOnConditionCheckFailureAllOld)
}

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

func checkTableName(name *string) error {
	if name == nil || !tableName.MatchString(*name) {
		return invalid("TableName must be at least 3 characters long and at most 255 characters long, of a-z, A-Z, 0-9, _ . -")
	}
	return nil
}

// firstOf returns the first failure.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
