package holdfast_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/zklock"
)

// exported has a value of each exported type of the package.
var exported = append([]any(nil),
	holdfast.Client{}, holdfast.Election{}, holdfast.ElectionOptions{}, holdfast.Event{}, holdfast.EventKind(0), holdfast.Events{},
	holdfast.HeldError{}, holdfast.Holder{}, holdfast.Info{}, holdfast.InvalidError{}, holdfast.Lock{}, holdfast.Locks{},
	holdfast.LostError{}, holdfast.Option(nil), holdfast.Retry{}, holdfast.Token(0), holdfast.Waiter{})

func TestZeroValues_EveryMethod_FailsWithErrInvalid(t *testing.T) {
	var named, declared []string
	for _, v := range exported {
		named = append(named, reflect.TypeOf(v).Name())
		callAll(t, v)
	}
	for _, v := range []any{memlock.Client{}, zklock.Client{}, dynamolock.Client{}} {
		callAll(t, v)
	}
	store := memlock.NewStore() // its own zero value is not for use, but it is given that of a client
	store.Cut(new(memlock.Client))
	store.Heal(new(memlock.Client))
	store.Expire(new(memlock.Client))

	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() && !strings.HasSuffix(name, "_test.go") {
				declared = append(declared, spec.Name.Name)
			}
			if decl, ok := n.(*ast.GenDecl); ok && decl.Tok == token.TYPE {
				if spec := decl.Specs[0].(*ast.TypeSpec); spec.Assign.IsValid() && spec.Name.IsExported() {
					checkFields(t, spec.Name.Name, decl.Doc.Text())
				}
			}
			return true
		})
	}
	slices.Sort(named)
	slices.Sort(declared)
	if !slices.Equal(named, declared) {
		t.Errorf("the list of types has\n%v, the package\n%v", named, declared)
	}
}

// checkFields compares the list of fields in the comment of an alias, for which go doc shows nothing else, with its type.
func checkFields(t *testing.T, name, doc string) {
	of := reflect.TypeOf(exported[slices.IndexFunc(exported, func(v any) bool { return reflect.TypeOf(v).Name() == name })])
	if of.Kind() != reflect.Struct {
		return
	}
	var fields []string
	for _, field := range reflect.VisibleFields(of) {
		fields = append(fields, field.Name)
	}
	_, list, _ := strings.Cut(doc, "\nFields: ")
	list = strings.TrimSuffix(strings.ReplaceAll(regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(list, ""), "\n", " "), ". ")
	if got := strings.Split(list, ", "); !slices.Equal(got, fields) {
		t.Errorf("the comment of %s lists the fields %q, the type has %q", name, got, fields)
	}
}

// callAll calls each method of a zero value of v's type, with zero arguments and with others.
func callAll(t *testing.T, v any) {
	zero := reflect.New(reflect.TypeOf(v))
	_, isError := zero.Interface().(error)
	for i := range zero.NumMethod() {
		method := zero.Type().Method(i)
		_, isData := reflect.TypeOf(v).MethodByName(method.Name) // of a value, and not of what a client looks after
		for _, some := range []bool{false, true} {
			t.Run(zero.Type().String()[1:]+"."+method.Name, func(t *testing.T) {
				returned := make(chan []reflect.Value, 1)
				go func() {
					defer close(returned)
					defer func() {
						if p := recover(); p != nil {
							t.Errorf("with arguments %v: panic: %v", some, p)
						}
					}()
					returned <- zero.Method(i).Call(arguments(t, zero.Method(i).Type(), some))
				}()
				select {
				case results := <-returned:
					for _, r := range results {
						if !isError && !isData {
							checkZero(t, r)
						}
					}
				case <-time.After(time.Minute):
					t.Fatal("the method hangs")
				}
			})
		}
	}
}

// arguments returns the zero value of each parameter, or else one that is plausible.
func arguments(t *testing.T, method reflect.Type, some bool) (args []reflect.Value) {
	for i := range method.NumIn() {
		in := method.In(i)
		arg := reflect.Zero(in)
		switch {
		case method.IsVariadic() && i == method.NumIn()-1:
			continue
		case !some:
		case in == reflect.TypeFor[context.Context]():
			arg = reflect.ValueOf(t.Context())
		case in == reflect.TypeFor[holdfast.Info]():
			arg = reflect.ValueOf(holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Grant: "g"}})
		case in.Kind() == reflect.Func:
			arg = reflect.MakeFunc(in, func([]reflect.Value) []reflect.Value { panic("a function is called") })
		case in.Kind() == reflect.Slice && in.Elem().Kind() == reflect.String:
			arg = reflect.ValueOf([]string{"j", "k"})
		case in.Kind() == reflect.Pointer:
			arg = reflect.New(in.Elem())
		case in.Kind() == reflect.String:
			arg = reflect.ValueOf("k").Convert(in)
		case in.Kind() == reflect.Int64:
			arg = reflect.ValueOf(time.Second).Convert(in)
		}
		args = append(args, arg)
	}
	return args
}

// checkZero checks the result of a method of a zero value.
func checkZero(t *testing.T, r reflect.Value) {
	t.Helper()
	switch got := r.Interface().(type) {
	case error:
		if !errors.Is(got, holdfast.ErrInvalid) {
			t.Errorf("the error is %v", got)
		}
		return
	case context.Context:
		if !errors.Is(context.Cause(got), holdfast.ErrInvalid) {
			t.Errorf("the context has ended with %v", context.Cause(got))
		}
		return
	case context.CancelFunc:
		got()
		return
	case iter.Seq2[holdfast.Info, error]:
		n := 0
		for info, err := range got {
			if n++; n > 1 || info.Key != "" {
				t.Errorf("the sequence has %+v", info)
			}
			checkZero(t, reflect.ValueOf(&err).Elem())
		}
		return
	}
	switch {
	case r.Type() == reflect.TypeFor[error]():
		t.Error("there is no error")
	case r.Kind() == reflect.Chan:
		chosen, _, open := reflect.Select([]reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: r}, {Dir: reflect.SelectDefault}})
		if chosen != 0 || open {
			t.Error("the channel is not closed")
		}
	case !r.IsZero():
		t.Errorf("the result is %v", r)
	}
}

// A nil ctx is refused before anything is done.
func TestNilContext_EveryMethod_FailsWithErrInvalid(t *testing.T) {
	client := (&engine{}).open(t, driver.Config{})
	lock, locks := acquire(t, client, "held"), mustAll(t, client, three)
	for _, live := range []any{client, lock, locks, election(t, client, nil)} {
		of := reflect.ValueOf(live)
		for i := range of.NumMethod() {
			method, name := of.Method(i), of.Type().Method(i).Name
			if name == "Context" || method.Type().NumIn() == 0 || method.Type().In(0) != reflect.TypeFor[context.Context]() {
				continue
			}
			t.Run(of.Type().String()[1:]+"."+name, func(t *testing.T) {
				args := arguments(t, method.Type(), true)
				args[0] = reflect.Zero(method.Type().In(0))
				for _, r := range method.Call(args) {
					checkZero(t, r)
				}
			})
		}
	}
	if err := errors.Join(lock.Err(), locks.Err()); err != nil {
		t.Error(err)
	}
	mustClose(t, client) // no call is left that it would wait for
}
