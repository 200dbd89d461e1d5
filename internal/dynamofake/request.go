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

// refuse fails if a field is set that the fake knows nothing of.
func refuse(input any, fields ...string) error {
	v := reflect.ValueOf(input).Elem()
	for _, field := range fields {
		if !v.FieldByName(field).IsZero() {
			return unsupported(v.Type().Name() + "." + field)
		}
	}
	return nil
}

var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

func checkTableName(name *string) error {
	if name == nil || !tableName.MatchString(*name) {
		return invalid("TableName must be at least 3 characters long and at most 255 characters long, of a-z, A-Z, 0-9, _ . -")
	}
	return nil
}

// oneOf checks an enumeration; its zero value is always good.
func oneOf[T ~string](field string, v T, allowed ...T) error {
	if v != "" && !slices.Contains(allowed, v) {
		return invalid("Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum value set: %v", v, field, allowed)
	}
	return nil
}

func checkLevel(v types.ReturnConsumedCapacity) error {
	return oneOf("returnConsumedCapacity", v, v.Values()...)
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

// expressions are the expressions of one request with what they refer to. The
// fields that the request does not have are nil.
type expressions struct {
	names                                      map[string]string
	values                                     item
	condition, filter, key, update, projection *string
	parsedCondition, parsedFilter, parsedKey   node
	parsedUpdate                               []action
	parsedProjection                           []attribute
}

// parse parses them all; what parses is ready for evaluation.
func (e *expressions) parse() error {
	if e.condition == nil && e.filter == nil && e.key == nil && e.update == nil {
		if e.values != nil {
			return invalid("ExpressionAttributeValues can only be specified when using expressions")
		}
		if e.names != nil && e.projection == nil {
			return invalid("ExpressionAttributeNames can only be specified when using expressions")
		}
	}
	p, err := newPlaceholders(e.names, e.values)
	if err != nil {
		return err
	}
	if e.update != nil {
		if e.parsedUpdate, err = parseUpdate(*e.update, p); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		source *string
		parsed *node
	}{{e.condition, &e.parsedCondition}, {e.key, &e.parsedKey}, {e.filter, &e.parsedFilter}} {
		if c.source == nil {
			continue
		}
		if *c.parsed, err = parseCondition(*c.source, p); err != nil {
			return err
		}
	}
	if e.projection != nil {
		if e.parsedProjection, err = parseProjection(*e.projection, p); err != nil {
			return err
		}
	}
	return p.finish()
}

// parseProjection parses a ProjectionExpression.
func parseProjection(s string, names *placeholders) ([]attribute, error) {
	p, err := newParser(s, names)
	if err != nil {
		return nil, err
	}
	var paths []attribute
	for {
		path, err := p.attribute()
		if err != nil {
			return nil, err
		}
		if slices.Contains(paths, path) {
			return nil, invalid("Two document paths overlap with each other; must remove or rewrite one of these paths; path: [%s]", path)
		}
		paths = append(paths, path)
		if !p.accept(",") {
			break
		}
	}
	return paths, p.expect(kindEnd)
}

// project returns the attributes of an item that were asked for: all of them
// without a projection.
func project(it item, paths []attribute) item {
	if paths == nil || it == nil {
		return it
	}
	out := make(item)
	for _, path := range paths {
		if v, ok := it[string(path)]; ok {
			out[string(path)] = v
		}
	}
	return out
}

// attributesIn calls visit for each attribute that a condition mentions.
func attributesIn(n node, visit func(attribute)) {
	all := func(nodes ...node) {
		for _, n := range nodes {
			attributesIn(n, visit)
		}
	}
	switch n := n.(type) {
	case attribute:
		visit(n)
	case logical:
		all(n.x, n.y)
	case not:
		all(n.x)
	case comparison:
		all(n.x, n.y)
	case between:
		all(n.x, n.low, n.high)
	case in:
		all(append(slices.Clone(n.list), n.x)...)
	case call:
		all(n.args...)
	}
}
